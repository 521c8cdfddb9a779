"""How much a fitted model relies on each column: the drop of its score when the values of the column are permuted.

Nothing is trained. A column reaches the model through the kernels that read it: only their parts of the outputs are
evaluated again, the others are kept,

    f(x with column j permuted)  =  f(x)  -  sum over kernels of j  f_k(x)  +  sum over kernels of j  f_k(x permuted).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import _num_samples

from multikernel.estimators.validation import check_labels, check_samples
from multikernel.estimators.weights_table import AsTable, kernels_of, views_of
from multikernel.gram.stack import KernelStack
from multikernel.inspection.trials import check_count, find_scorer, fitted_model, generator, quiet
from multikernel.kernels.sequences.samples import Sequences
from multikernel.kernels.table import Table
from multikernel.kernels.views.views import Views
from multikernel.threads import resolve_threads
from multikernel.training.expansion import ComputedExpansion


@dataclass(frozen=True, eq=False)
class ColumnImportance(AsTable):
    """What `column_importance` found, the most important column first.

    Attributes
    ----------
    names : ndarray of str, shape (d,)
        The columns: their names, or their numbers.
    views : ndarray of str, shape (d,)
        The views whose kernels read the column, separated by commas; empty where no active kernel does.
    drop, std : ndarrays of shape (d,)
        Mean and standard deviation, over the repeats, of the drop of the score.
    score : float
        Score without permutation.
    scorer : str
        Name of the score; larger is better.
    """

    names: np.ndarray
    views: np.ndarray
    drop: np.ndarray
    std: np.ndarray
    score: float
    scorer: str

    def _columns(self) -> dict[str, list]:
        lists = [getattr(self, name).tolist() for name in ("names", "views", "drop", "std")]
        return dict(zip(("column", "view", "drop", "std"), lists, strict=True))

    def __str__(self) -> str:
        """Return the first columns as a table."""
        shown = self.rows()[:20]
        lines = [f"{self.scorer} {self.score:.3f}. Permuted, a column takes away:"]
        width = max(len(row["column"]) for row in shown)
        for row in shown:
            where = f"  ({row['view']})" if row["view"] else "  (not read by the model)"
            lines.append(f"  {row['column']:<{width}}  {row['drop']:+.3f} +- {row['std']:.3f}{where}")
        if len(self.names) > len(shown):
            lines.append(f"  and {len(self.names) - len(shown)} more")
        lines.append("Columns that tell the same stand in for each other: each alone may seem to matter little.")
        return "\n".join(lines)


def column_importance(
    model: Any, X: Any, y: Any, *, n_repeats: int = 10, scoring: Any = None, random_state: Any = None
) -> ColumnImportance:
    """Return how much the score of a fitted model drops when a column is permuted.

    Parameters
    ----------
    model : estimator
        A fitted classifier or regressor of this library, or a search; one that is not fitted is fitted to X and y.
    X : array, sparse matrix, data frame or Views of shape (n_samples, n_features)
        Samples with columns; test samples say what the model relies on, training samples also what it has memorised.
    y : array of shape (n_samples,) or (n_samples, n_targets)
        Their targets.
    n_repeats : int, default=10
        Permutations of each column.
    scoring : str, callable or None, default=None
        Any scorer of scikit-learn; None for accuracy, or R^2 for numbers.
    random_state : int, generator or None, default=None
        Seed of the permutations.

    Returns
    -------
    ColumnImportance
        With ``names``, ``views``, ``drop``, ``std``, ``score``, ``frame()``, ``rows()``; it prints as a table.

    Notes
    -----
    The model is not trained again, so that columns that tell the same as others seem to matter less than they do, and
    permuted samples may be unlike any that exist: `view_importance` trains without a view, and is the number to report.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import MKLClassifier
    >>> from multikernel.inspection import column_importance
    >>> from multikernel.kernels import RBF
    >>> X = np.random.default_rng(0).normal(size=(120, 3))
    >>> y = X[:, 1] > 0
    >>> model = MKLClassifier([("a", RBF(), [0, 1]), ("b", RBF(), [2])]).fit(X[:80], y[:80])
    >>> found = column_importance(model, X[80:], y[80:], random_state=0)
    >>> found.rows()[0]["column"], found.rows()[0]["view"], bool(found.drop[0] > 0.2)
    ('1', 'a', True)
    """
    owner = "column_importance"
    check_count(owner, "n_repeats", n_repeats, 1)
    rng = generator(owner, random_state)
    model = copy(fitted_model(owner, model, X, y, trains=False))
    scorer, scorer_name = find_scorer(owner, model, scoring)
    samples = check_samples(model, X, reset=False)
    y = check_labels(owner, y, _num_samples(samples))
    columns = list(_columns(owner, model, samples, X))
    outputs = _Outputs(model, samples)

    def score(changed: Any, values: np.ndarray) -> float:
        model._known = changed, values
        with quiet():
            return float(scorer(model, changed, y))

    whole, drops = score(samples, outputs.whole), np.zeros((len(columns), n_repeats))
    for j, column in enumerate(columns):
        part = outputs.reading(column.position)
        if part is None:
            continue
        for r in range(n_repeats):
            changed = column.permuted(rng)
            drops[j, r] = whole - score(changed, outputs.changed(part, changed))
    views = np.array([outputs.views(column.position) for column in columns])
    drop, std = drops.mean(axis=1), drops.std(axis=1, ddof=min(1, n_repeats - 1))
    order = np.argsort(-drop, kind="stable")
    names = np.array([column.name for column in columns])
    return ColumnImportance(names[order], views[order], drop[order], std[order], whole, scorer_name)


class _Outputs:
    """Outputs of a model, of which parts are evaluated again."""

    def __init__(self, model: Any, samples: Any) -> None:
        self.model, self.samples = model, samples
        self.threads = resolve_threads(model.n_jobs)
        self.expansion = model.model_.expansion
        self.computed = isinstance(self.expansion, ComputedExpansion)
        self.whole = self.expansion.evaluate(samples, self.threads)
        self.known: dict[tuple[int, ...], tuple[Any, np.ndarray]] = {}
        self.view_of = dict(zip(kernels_of(model), views_of(model), strict=True))

    def _terms(self, position: int) -> tuple[int, ...]:
        """Return which terms of the model read a column."""
        reads = self.expansion.bank.columns
        return tuple(j for j, columns in enumerate(reads) if columns is None or position in columns)

    def reading(self, position: int) -> tuple[Any, np.ndarray] | None:
        """Return the part of the model that reads a column, and its outputs; None where nothing does."""
        if not self.computed:
            return self.expansion, self.whole
        terms = self._terms(position)
        if not terms:
            return None
        if terms not in self.known:
            whole = self.expansion
            part = replace(
                whole,
                terms=[whole.terms[j] for j in terms],
                active=whole.active[list(terms)],
                offset=np.zeros_like(whole.offset),
                bank=whole.bank.take(terms),
            )
            self.known = {terms: (part, part.evaluate(self.samples, self.threads))}
        return self.known[terms]

    def changed(self, part: tuple[Any, np.ndarray], samples: Any) -> np.ndarray:
        """Return the outputs on samples that differ in what a part of the model reads."""
        expansion, before = part
        return self.whole - before + expansion.evaluate(samples, self.threads)

    def views(self, position: int) -> str:
        """Return the views that read a column."""
        if not self.computed:
            return ", ".join(dict.fromkeys(self.view_of.values()))
        names = [self.expansion.bank.names[j] for j in self._terms(position)]
        return ", ".join(dict.fromkeys(self.view_of[name] for name in names))


@dataclass(frozen=True)
class _Column:
    """A column: its name, what kernels call it, and samples in which it is permuted."""

    name: str
    position: int
    permuted: Callable[[np.random.Generator], Any]


def _columns(owner: str, model: Any, samples: Any, given: Any) -> Iterator[_Column]:
    """Yield the columns of valid samples; names of those in a dict of data frames are in what was given."""
    if isinstance(samples, (KernelStack, Sequences)):
        instead = "view_importance(by='kernel')" if isinstance(samples, KernelStack) else "position_importance"
        raise ValueError(
            f"{owner} needs samples with columns. Got {type(samples).__name__} instead: use {instead} for these."
        )
    if isinstance(samples, Views):
        samples = samples.detach()
        for v, view in enumerate(samples._store.views):
            if isinstance(view.samples, KernelStack) or view.samples.ndim == 1:
                # kernels and sequences are permuted as a whole
                yield _Column(view.name, v, partial(_permuted_view, samples, v, None))
                continue
            own = given[view.name] if isinstance(given, Mapping) else view.samples
            names = getattr(own, "columns", range(view.samples.shape[1]))
            for j, name in enumerate(names):
                yield _Column(f"{view.name}: {name}", v, partial(_permuted_view, samples, v, j))
        return
    frame = samples.detach()._frame if isinstance(samples, Table) else samples
    known = getattr(model, "feature_names_in_", None)
    names = list(frame.columns) if isinstance(samples, Table) else range(samples.shape[1]) if known is None else known
    for j, name in enumerate(names):
        yield _Column(str(name), j, partial(_permuted_column, frame, j))


def _permuted_column(samples: Any, j: int, rng: np.random.Generator) -> Any:
    """Return a copy of samples with one column permuted."""
    return _permuted(samples, j, rng.permutation(_num_samples(samples)))


def _permuted(samples: Any, j: int, order: np.ndarray) -> Any:
    """Return a copy of samples with one column in another order."""
    if hasattr(samples, "iloc"):
        changed = samples.copy()
        changed.isetitem(j, samples.iloc[order, j].to_numpy())
        return Table(changed)
    if sparse.issparse(samples):
        changed = samples.tolil(copy=True)
        changed[:, [j]] = samples[:, [j]][order]
        return changed.tocsr()
    changed = samples.copy()
    changed[:, j] = samples[order, j]
    return changed


def _permuted_view(samples: Views, v: int, j: int | None, rng: np.random.Generator) -> Views:
    """Return views with one column of one of them, or all of it, permuted among the samples that have the view."""
    view = samples._store.views[v]
    have, order = np.flatnonzero(~view.missing), np.arange(len(samples))
    order[have] = rng.permutation(have)
    if j is None:
        changed = view.take(order).samples
    else:
        changed = _permuted(view.samples, j, order)
        changed = changed._frame if isinstance(changed, Table) else changed
    part = samples.take_views(samples.names)
    part._store.views[v] = replace(view, samples=changed)
    return part
