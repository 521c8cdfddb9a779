"""What Ctrl-C does to a fit: a warning that says what is kept, and the interrupt again."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sklearn.exceptions import ConvergenceWarning


@contextmanager
def interrupted(match: str) -> Iterator[None]:
    """Expect a warning of this text, then the interrupt."""
    with pytest.warns(ConvergenceWarning, match=match), pytest.raises(KeyboardInterrupt):
        yield
