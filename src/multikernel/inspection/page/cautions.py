"""What may be wrong with a model or its data although the numbers look right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.utils.validation import _num_samples

from multikernel.estimators.baselines.kernel_products import kernel_products
from multikernel.estimators.reporting import FINISHED
from multikernel.estimators.validation import check_samples
from multikernel.estimators.weights_table import view_columns, views_of
from multikernel.gram.dense import DenseGram
from multikernel.gram.stack import KernelStack
from multikernel.inspection.columns import known_values, why_not
from multikernel.inspection.compare import evaluate
from multikernel.inspection.page.given import as_samples_of, check_importance, checked_model, checked_targets
from multikernel.inspection.trials import check_count
from multikernel.inspection.weights_display import fold_weights
from multikernel.kernels.base import is_real
from multikernel.kernels.inputs import is_frame, take_rows
from multikernel.kernels.views.views import Views
from multikernel.threads import ROWS

# kinds of cautions, and how the page calls them
TITLES = {
    "certificate": "Training not finished", "leakage": "Possible leakage", "classes": "Unknown classes",
    "imbalance": "Imbalanced classes", "missing": "Missing data", "unstable": "Unstable weights",
    "misleading": "A weight that misleads", "narrow": "Kernels too narrow", "collinear": "Kernels alike",
    "grid": "Edge of the grid", "small": "Few test samples",
}  # fmt: skip


@dataclass(frozen=True)
class Caution:
    """Something to look at before a model is trusted.

    Attributes
    ----------
    kind : str
        A key of `TITLES`: "leakage", "collinear", "imbalance", ...
    text : str
        What was found.
    advice : str
        What to do.
    """

    kind: str
    text: str
    advice: str


def find_cautions(
    model: Any,
    X_test: Any,
    y_test: Any,
    *,
    X_train: Any = None,
    y_train: Any = None,
    importance: Any = None,
    collinear: float = 0.99,
    unstable: float = 0.3,
    misleading: float = 0.25,
    imbalance: float = 5.0,
    few: int = 30,
) -> list[Caution]:
    """Return what speaks against trusting a model or its scores.

    Parameters
    ----------
    model : estimator or Pipeline
        Fitted; of a pipeline the last step learns the mix.
    X_test, y_test
        Samples and targets that the model is scored on.
    X_train, y_train : optional
        Those it was trained on; without them the columns and kernels of the test samples are looked at.
    importance : ViewImportance, optional
        What `view_importance` found.
    collinear : float, default=0.99
        Kernels whose centred alignment is above this say the same; so do a column and the target of that correlation.
    unstable : float, default=0.3
        A view whose share of the weight differs by more than this between folds is unstable.
    misleading : float, default=0.25
        The largest weight misleads where its contribution is less than this part of its share of the weights.
    imbalance : float, default=5.0
        How many times as large as the smallest class the largest may be.
    few : int, default=30
        Fewer test samples than this say little.

    Returns
    -------
    list of Caution
        The most serious first; empty where nothing was found.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import MKLClassifier
    >>> from multikernel.inspection import find_cautions
    >>> X = np.random.default_rng(0).normal(size=(90, 2))
    >>> y = X[:, 0] > 0
    >>> X = np.column_stack([X, np.arange(90)])
    >>> model = MKLClassifier("linear").fit(X[:60], y[:60])
    >>> [each.kind for each in find_cautions(model, X[60:], y[60:], X_train=X[:60], y_train=y[:60])]
    ['leakage']
    """
    owner = "find_cautions"
    last, before = checked_model(owner, model)
    X_test, X_train = as_samples_of(last, X_test), as_samples_of(last, X_train)
    y_test = checked_targets(owner, "y_test", X_test, y_test)
    check_samples(last, X_test if before is None else before.transform(X_test), reset=False)
    if (X_train is None) != (y_train is None):
        raise ValueError(f"{owner} needs both 'X_train' and 'y_train', or neither of them. Got one.")
    X, y = X_test, y_test
    if X_train is not None:
        X, y = X_train, checked_targets(owner, "y_train", X_train, y_train)
    check_importance(owner, importance)
    check_count(owner, "few", few, 0)
    limits = {"collinear": collinear, "unstable": unstable, "misleading": misleading, "imbalance": imbalance}
    for name, value in limits.items():
        if not is_real(value) or not value >= 0:
            raise ValueError(
                f"The '{name}' parameter of {owner} must be a number of at least 0. Got {value!r} instead."
            )
    found = [
        *_certificate(last),
        *_leakage(model, X, _target_columns(y, is_classifier(last)), collinear),
        *_copies(model, X_train, X_test),
        *_classes(last, y_test, y, imbalance),
        *_gaps(model, X_test),
        *_unstable(last, importance, unstable),
        *_misleading(last, misleading),
        *_collinear(last, X if before is None else before.transform(X), collinear),
        *_grid(last),
    ]
    n = _num_samples(X_test)
    if n < few:
        found.append(Caution("small", f"There are only {n} test samples.", "Read the intervals, not the scores alone."))
    return found


def _certificate(last: Any) -> Iterator[Caution]:
    status = getattr(last, "status_", None)
    states = [status] if isinstance(status, str) else list(status or ())
    if late := [state for state in states if state not in FINISHED]:
        gap = float(np.max(last.duality_gap_))
        yield Caution(
            "certificate",
            f"The training ended as '{late[0]}' at a relative gap of {gap:.2g}, above the tol of {last.tol:g}.",
            "Raise max_iter, or read the model as no more than the best one found so far.",
        )


# ---- columns


def _columns(model: Any, X: Any) -> Iterator[tuple[str, Any]]:
    """Yield the columns that the model can see, by name."""
    if isinstance(X, Views):
        for view in X.names:
            part = X[view]
            for name, column in _columns(None, part) if is_frame(part) or np.ndim(part) == 2 else ():
                yield f"{view}: {name}", column
    elif is_frame(X):
        used = getattr(model[0], "kinds", None) if hasattr(model, "steps") else None
        for name in X.columns if used is None else used:
            yield str(name), X[name]
    elif (isinstance(X, np.ndarray) and X.ndim == 2) or sparse.issparse(X):
        dense = X.toarray() if sparse.issparse(X) else X
        for j in range(dense.shape[1]):
            yield f"column {j}", dense[:, j]


def _leakage(model: Any, X: Any, target: np.ndarray, collinear: float) -> Iterator[Caution]:
    """Columns that count the rows or name the samples, that rise with the row, or that are the target."""
    advice = "If the model is not meant to know it, leave the column out and train again."
    n = _num_samples(X)
    for name, column in _columns(model, X):
        values, known = known_values(column)
        numeric = known.dtype.kind in "iuf"
        reason = None
        if not numeric or np.all(known == np.floor(known)):
            reason = why_not(name, column)
        if reason is not None and reason not in ("constant", "empty"):
            yield Caution("leakage", f"The column '{name}' looks {reason}.", advice)
            continue
        if not numeric or len(known) < n:
            continue
        steps = np.diff(values.astype(float))
        if n > 9 and (np.all(steps > 0) or np.all(steps < 0)):
            yield Caution(
                "leakage", f"The column '{name}' rises or falls from row to row, as a sorted index does.", advice
            )
        elif _tells(values.astype(float), target) > collinear:
            yield Caution("leakage", f"The column '{name}' alone tells the target almost perfectly.", advice)


def _target_columns(y: Any, classes: bool) -> np.ndarray:
    """Return an orthonormal basis of the centred targets, or of the indicators of the classes, shape (n, m)."""
    y = np.asarray(y)
    columns = (y[:, None] == np.unique(y)) if classes else y.reshape(len(y), -1)
    centred = columns.astype(float) - columns.mean(axis=0)
    basis, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    return basis[:, sizes > sizes.max(initial=0.0) * np.finfo(float).eps * len(y)]


def _tells(values: np.ndarray, target: np.ndarray) -> float:
    """Return the multiple correlation of a column with the targets."""
    centred = values - values.mean()
    size = float(np.linalg.norm(centred))
    return float(np.linalg.norm(target.T @ centred)) / size if size > 0 else 0.0


def _copies(model: Any, X_train: Any, X_test: Any) -> Iterator[Caution]:
    """Test samples that are training samples too, by all columns that the model can see."""
    both = [X_train, X_test]
    if all(hasattr(each, "iloc") and is_frame(each) for each in both):
        from pandas.util import hash_pandas_object

        used = getattr(model[0], "kinds", X_train.columns) if hasattr(model, "steps") else X_train.columns
        shared = [name for name in used if name in X_train.columns and name in X_test.columns]
        rows = [set(hash_pandas_object(each[shared], index=False).tolist()) for each in both] if shared else [set()]
    elif all(isinstance(each, np.ndarray) and each.ndim == 2 and each.dtype.kind in "biuf" for each in both):
        # the sum makes minus zero zero
        rows = [{row.tobytes() for row in np.asarray(each, float) + 0.0} for each in both]
    else:
        return
    if same := len(set.intersection(*rows)):
        words = "1 test sample is" if same == 1 else f"{same} test samples are"
        yield Caution(
            "leakage", f"{words} also among the training samples, in all columns.",
            "Split the data so that a sample, and a patient, is on one side only.",
        )  # fmt: skip


# ---- targets and gaps


def _classes(last: Any, y_test: Any, y: Any, imbalance: float) -> Iterator[Caution]:
    if not is_classifier(last):
        return
    new = sorted({str(each) for each in np.unique(y_test)} - {str(each) for each in last.classes_})
    if new:
        yield Caution("classes", f"The test samples have classes that training had not: {', '.join(new[:5])}.",
                      "They are always predicted wrong: train with them, or leave them out of the test.")  # fmt: skip
    names, counts = np.unique(y, return_counts=True)
    if len(counts) > 1 and counts.max() > imbalance * counts.min():
        yield Caution(
            "imbalance",
            f"The class '{names[counts.argmax()]}' has {counts.max()} samples, '{names[counts.argmin()]}' has "
            f"{counts.min()}: a model that ignores small classes still has a high accuracy.",
            "Read balanced accuracy and the recall of each class; class_weight='balanced' trains for it.",
        )


def _gaps(model: Any, X_test: Any) -> Iterator[Caution]:
    last = model[-1] if hasattr(model, "steps") else model
    here = X_test.missing() if isinstance(X_test, Views) else {}
    for where, gaps in (("training", getattr(last, "missing_in_", {})), ("test", here)):
        for view, counts in gaps.items():
            parts = [
                f"{counts[what]} {words}"
                for what, words in (("samples", "samples lack it"), ("values", "values are missing"))
                if counts[what]
            ]
            yield Caution("missing", f"View '{view}' in the {where} samples: {', '.join(parts)}.",
                          "They were completed from samples that have them: see docs/views.md.")  # fmt: skip
    filled = getattr(model[0], "gaps_", {}) if hasattr(model, "steps") else {}
    if filled:
        first = max(filled, key=lambda name: filled[name])
        yield Caution(
            "missing",
            f"{sum(filled.values())} values were missing in {len(filled)} columns, most of them in '{first}' "
            f"({filled[first]}).", "They were filled with the mean of the column, or with no word.",
        )  # fmt: skip


# ---- kernels


def _unstable(last: Any, importance: Any, unstable: float) -> Iterator[Caution]:
    folds, views = fold_weights(last), views_of(last) if hasattr(last, "kernel_names_") else []
    names = list(dict.fromkeys(views))
    advice = "Do not read much into the weight: look at the drop in score without the view."
    seen = set()
    if folds is not None and len(names) > 1:
        shares = np.array([folds[:, [view == name for view in views]].sum(axis=1) for name in names])
        shares = shares / np.maximum(shares.sum(axis=0), np.finfo(float).tiny)
        for name, low, high in zip(names, shares.min(axis=1), shares.max(axis=1), strict=True):
            if high - low > unstable:
                seen.add(name)
                share = f"from {100 * low:.0f} % to {100 * high:.0f} %"
                yield Caution(
                    "unstable", f"The share of '{name}' in the weights ranges {share} over the folds.", advice
                )
    if importance is not None:
        for name, share in zip(importance.names, importance.selected, strict=True):
            if unstable < share < 1.0 - unstable and name not in seen:
                yield Caution("unstable", f"'{name}' has weight in {100 * share:.0f} % of the bootstraps only.", advice)


def _misleading(last: Any, misleading: float) -> Iterator[Caution]:
    weights, parts = getattr(last, "weights_", None), getattr(last, "kernel_contributions_", None)
    if weights is None or parts is None or np.size(weights) < 2:
        return
    weights, parts = np.atleast_2d(weights).mean(axis=0), np.atleast_2d(parts).mean(axis=0)
    k = int(weights.argmax())
    share = weights[k] / max(weights.sum(), np.finfo(float).tiny)
    # a model without variance has no contributions
    if parts.any() and parts[k] < misleading * share:
        yield Caution(
            "misleading",
            f"The kernel of the largest weight, '{last.kernel_names_[k]}', has {100 * share:.0f} % of the weight and "
            f"contributes {100 * parts[k]:.0f} % of the decision.",
            "A weight is no importance: narrow kernels get large ones.",
        )


def _collinear(last: Any, X: Any, collinear: float) -> Iterator[Caution]:
    """Pairs of kernels that say the same, on as many samples as one block holds."""
    if len(getattr(last, "kernel_names_", ())) < 2:
        return
    rows = np.unique(np.linspace(0, _num_samples(X) - 1, ROWS).astype(int))
    try:
        if isinstance(X, KernelStack):
            part = X[rows]
            matrices, names = np.asarray(part.train_stack(), float), part.names
        else:
            stack = evaluate(last.kernels, X[rows] if isinstance(X, Views) else take_rows(X, rows))
            matrices, names = np.asarray(stack.train_stack(), float), stack.names
    except (ValueError, TypeError, MemoryError):
        # rows of a stack of test samples are not square; kernels on a device stay there
        return
    # the identity is the last: a kernel that looks like it lets the model learn samples by heart
    matrices = np.concatenate([matrices, np.eye(len(rows))[None]])
    M = kernel_products(DenseGram(matrices), np.zeros((len(rows), 1)), np.ones(len(rows))).M
    size = np.sqrt(np.maximum(np.diag(M), 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        aligned = np.triu(np.nan_to_num(M / np.outer(size, size)), 1)
    narrow = aligned[:-1, -1] > collinear
    if narrow.any():
        first = names[int(narrow.argmax())]
        words = f"The kernel '{first}' is" if narrow.sum() == 1 else f"{narrow.sum()} kernels (such as '{first}') are"
        yield Caution(
            "narrow", f"{words} nearly the identity: every sample is like itself and no other.",
            "Such kernels cannot predict new samples, though they may get weight: take wider ones.",
        )  # fmt: skip
    views = dict(zip(last.kernel_names_, views_of(last), strict=True))
    across: list[tuple[int, int]] = []
    within: list[tuple[int, int]] = []
    for k, m in np.argwhere(aligned[:-1, :-1] > collinear).tolist():
        if not (narrow[k] or narrow[m]):
            same = views.get(names[k], names[k]) == views.get(names[m], names[m])
            (within if same else across).append((k, m))
    for where, pairs, advice in (
        ("from different views", across, "Such views stand in for each other: a small drop without one says little."),
        ("from the same view", within, "Their weights are exchangeable: read the weight of the view."),
    ):
        if pairs:
            k, m = max(pairs, key=lambda pair: aligned[pair])
            words = f"1 pair of kernels {where} is" if len(pairs) == 1 else f"{len(pairs)} pairs of kernels {where} are"
            example = f"'{names[k]}' and '{names[m]}' (alignment {aligned[k, m]:.3f})"
            yield Caution(
                "collinear", f"{words} nearly the same: {'for example ' * (len(pairs) > 1)}{example}.", advice
            )


def _grid(last: Any) -> Iterator[Caution]:
    best, points = getattr(last, "best_params_", {}), getattr(last, "cv_results_", {}).get("params", ())
    tried = sorted({point["C"] for point in points if "C" in point})
    if len(tried) > 1 and best.get("C") in (tried[0], tried[-1]):
        side, word = ("smallest", "smaller") if best["C"] == tried[0] else ("largest", "larger")
        yield Caution("grid", f"The search chose C={best['C']:g}, the {side} value it tried.",
                      f"Try {word} ones: the best may lie outside the grid.")  # fmt: skip


def view_shares(last: Any) -> dict[str, tuple[float, float]]:
    """Return weight and contribution of each view, means over the problems."""
    table = view_columns(last)
    problems = len(set(table.get("problem", ("",))))
    found: dict[str, tuple[float, float]] = {}
    for view, weight, part in zip(table["view"], table["weight"], table["contribution"], strict=True):
        old = found.get(view, (0.0, 0.0))
        found[view] = (old[0] + weight / problems, old[1] + part / problems)
    return found
