"""Scores of the models of a fold, whose outputs on the test samples are known."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from numbers import Number
from typing import Any

import numpy as np
import sklearn
from sklearn.model_selection import GridSearchCV


def with_known_outputs(base: type) -> type:
    """Return the class of estimators that know their outputs on one object, and evaluate any other as ``base`` does."""

    class KnownOutputs(base):
        def knows(self, X: Any, outputs: np.ndarray) -> KnownOutputs:
            """Take note of the outputs on X."""
            self._known = X, outputs
            return self

        def _outputs(self, X: Any) -> np.ndarray:
            known, outputs = self._known
            return outputs if X is known else super()._outputs(X)

    KnownOutputs.__name__ = KnownOutputs.__qualname__ = base.__name__
    return KnownOutputs


def score_of(scorer: Callable, model: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> Any:
    """Return the score of a model, or raise where the scorer returns no number."""
    score = scorer(model, X, y, **({} if weight is None else {"sample_weight": weight}))
    if hasattr(score, "item"):
        score = score.item()
    if not isinstance(score, Number):
        raise ValueError(f"The scorer must return a number. Got {score!r} instead.")
    return score


def takes_weight(scorer: Callable) -> bool:
    """Whether GridSearchCV hands sample weights to this scorer: where it takes them or, with metadata routing, asks."""
    if sklearn.get_config().get("enable_metadata_routing"):
        request = getattr(scorer, "get_metadata_routing", lambda: None)()
        return getattr(getattr(request, "score", None), "requests", {}).get("sample_weight") is True
    # before scikit-learn 1.7 scorers had no such method, and got no weights
    accepts = getattr(scorer, "_accept_sample_weight", None)
    if accepts is None and hasattr(GridSearchCV, "_check_scorers_accept_sample_weight"):
        return "sample_weight" in signature(scorer).parameters
    return accepts is not None and accepts()
