"""What the kinds share: estimators with quick settings, samples and targets, what a model or an error must be."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning

import multikernel
from multikernel.kernels import RBF, Linear

ESTIMATORS = {
    name: getattr(multikernel, name) for name in multikernel.__all__ if hasattr(getattr(multikernel, name), "fit")
}
# settings that make a fit quick, for the estimators that have them
QUICK = {"Cs": [0.1, 1.0], "cv": 2, "online_epochs": 2, "n_jobs": 1}
KERNELS = [("left", RBF(), [0, 1]), ("right", RBF(gamma=0.5), [2, 3]), ("line", Linear(), slice(None))]
# the library's own warnings are of these classes; NumPy's are RuntimeWarnings
OWN_WARNINGS = (ConvergenceWarning, FitFailedWarning, UserWarning)


def make(name: str, **params):
    """Return an estimator with three kernels and quick settings, and those of ``params`` that it has."""
    model = ESTIMATORS[name]()
    own = model.get_params(deep=False)
    chosen = {"kernels": KERNELS, **QUICK, **params}
    return model.set_params(**{key: value for key, value in chosen.items() if key in own})


def draw_samples(model, rng, n: int = 40, classes: int = 2):
    """Return samples in four columns and targets that suit the estimator, None where it takes none."""
    X = rng.normal(size=(n, 4))
    score = X[:, 0] + np.sin(2 * X[:, 2]) + 0.3 * rng.normal(size=n)
    if is_regressor(model):
        return X, score
    if not is_classifier(model):
        return X, None
    # classes of about equal size, ordered by the score
    return X, np.argsort(np.argsort(score)) * classes // n


def fit(model, X, y):
    """Fit with or without targets."""
    return model.fit(X) if y is None else model.fit(X, y)


def evaluate(model, X) -> np.ndarray:
    """Return the outputs of a model: its decision function, or its predictions where it has none."""
    return np.asarray(getattr(model, "decision_function", model.predict)(X), dtype=np.float64)


@contextmanager
def foreign_warnings(found: list[str]) -> Iterator[None]:
    """Add to ``found`` the warnings that are not the library's own, such as NumPy's about overflow."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for each in caught:
        if not issubclass(each.category, OWN_WARNINGS):
            found.append(f"{each.category.__name__}: {each.message} at {each.filename.split('/')[-1]}:{each.lineno}")


def unsound(model, X) -> str | None:
    """Return what is wrong with a fitted model that cannot be right whatever the data, or None."""
    for name in ("weights_", "dual_coef_", "intercept_", "objective_", "dual_objective_", "duality_gap_"):
        value = getattr(model, name, None)
        if value is not None and not all(np.isfinite(each).all() for each in parts_of(value)):
            return f"{name} is not finite"
    gaps = parts_of(getattr(model, "duality_gap_", 0.0))
    if any(np.min(gap) < 0 for gap in gaps):
        return f"negative duality gap {model.duality_gap_}"
    if getattr(model, "status_", None) == "converged" and max(map(np.max, gaps)) > getattr(model, "tol", np.inf):
        return f"converged with a gap of {model.duality_gap_} above tol={model.tol}"
    outputs = evaluate(model, X)
    if len(outputs) != len(X) or not np.isfinite(outputs).all():
        return "outputs are not finite"
    return None


def parts_of(value) -> list[np.ndarray]:
    """Return the arrays of an attribute that is one array or a list of them."""
    return [np.asarray(each, dtype=np.float64) for each in (value if isinstance(value, list) else [value])]


def unclear(error: BaseException, *names: str) -> str | None:
    """Return what an error lacks: the right class, one sentence, one of the names of what is wrong; None if nothing."""
    text = str(error)
    if not isinstance(error, ValueError | TypeError):
        return f"{type(error).__name__}: {text[:200]}"
    if not text or len(text.strip().splitlines()) > 1:
        return f"an error of {len(text.splitlines())} lines: {text[:200]!r}"
    if names and not any(name.lower() in text.lower() for name in names):
        return f"an error that does not name {' or '.join(names)}: {text[:200]!r}"
    return None


def where() -> str:
    """Return the innermost place in the library, or in the drill, of the exception at hand."""
    frames = traceback.extract_tb(sys.exc_info()[2])
    frames = [frame for frame in frames if "multikernel" in frame.filename] or frames
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}"
