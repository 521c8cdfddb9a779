"""From trained problems to a model: what predicts, and what a fitted estimator says about itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from multikernel.gram.base import Gram
from multikernel.training.core import Fit, Prepared
from multikernel.training.expansion import Expansion, Term, make_term, needs_all
from multikernel.training.featured import FeatureSource


@dataclass(frozen=True)
class GramInfo:
    """How the kernels of a fit were kept.

    Attributes
    ----------
    kind : str
        "dense", "lazy", "memmap", "features", "torch" or "dask".
    dtype : str
        Precision of the entries.
    nbytes : int
        Bytes of kernels held beside the caller's own at the end of the fit.
    device : str
        Where they were: "host", or a device of PyTorch.
    recomputed : bool
        Whether kernels on a device were computed whenever they were read.
    """

    kind: str
    dtype: str
    nbytes: int
    device: str = "host"
    recomputed: bool = False


@dataclass(frozen=True)
class Model:
    """What a fit learned, of T problems with all their columns.

    Attributes
    ----------
    expansion : Expansion
        What evaluates the model on other samples.
    weights : ndarray of shape (T, p)
        Kernel weights.
    support : ndarray of int, shape (m,)
        Training samples with a coefficient that is not zero.
    coef : ndarray of shape (m, columns)
        Their coefficients.
    intercepts : ndarray of shape (columns,)
        Constants of the outputs.
    gap : ndarray of shape (T,)
        Relative duality gaps.
    status : tuple of str
        How each run ended.
    attributes : dict
        The attributes that every fitted estimator has; a single problem drops their first axis.
    """

    expansion: Expansion
    weights: np.ndarray
    support: np.ndarray
    coef: np.ndarray
    intercepts: np.ndarray
    gap: np.ndarray
    status: tuple[str, ...]
    attributes: Mapping[str, Any]


def publish(fit: Fit) -> Model:
    """Return the model of a fit."""
    prepared, whole = fit.prepared, fit.prepared.gram
    n = whole.n_samples
    columns, shares, found, mixed = [], [], [], []
    for target, solution in zip(fit.targets, fit.solutions, strict=True):
        rows = slice(None) if target.samples is None else target.samples
        column = np.zeros((n, *solution.dual_coef.shape[1:]))
        column[rows] = solution.dual_coef
        columns.append(column.reshape(n, -1))
        weight = None if prepared.weight is None else prepared.weight[rows]
        gram = None if target.classes is None else target.classes.products(whole)
        if hasattr(solution.outputs, "contributions"):
            # samples in partitions: the workers sum over them
            shares.append(solution.outputs.contributions(solution.weights, weight))
        else:
            shares.append(contributions(solution.weights, solution.outputs, weight, gram))
        if target.unit != 1.0:
            fixed = target.machine.total != 0.0
            columns[-1] = columns[-1] / (1.0 if fixed else target.unit)
            intercept = solution.intercept * (target.unit if fixed else 1.0)
            solution = replace(solution, intercept=intercept, **in_units(vars(solution), fixed, target.unit))
        found.append(solution)
        mixed.append(np.repeat(solution.weights[None], np.size(solution.intercept), axis=0))
    coef = columns[0] if len(columns) == 1 else np.hstack(columns)
    intercepts = np.concatenate([np.ravel(solution.intercept) for solution in found])
    products = fit.targets[0].classes
    per_column = np.concatenate(mixed) if products is None else products.mixed(found[0].weights)
    expansion = expand(prepared, per_column, coef, intercepts, all([target.balanced for target in fit.targets]))
    support = np.flatnonzero(coef.any(axis=1))
    own, single = coef if len(support) == n else coef[support], coef.shape[1] == 1
    attributes: dict[str, Any] = {
        "kernel_names_": list(prepared.names if products is None else products.names),
        # the attributes of an estimator are its own: a change of them leaves the model as it is
        "dual_coef_": (own[:, 0] if single else own.T).copy(),
        "intercept_": float(intercepts[0]) if single else intercepts.copy(),
        "solver_": found[0].solver,
        "gram_": GramInfo(whole.kind, str(whole.dtype), whole.nbytes, str(whole.device), whole.recomputed),
    }
    several: dict[str, Any] = {
        "objective_": np.array([solution.upper for solution in found]),
        "dual_objective_": np.array([solution.lower for solution in found]),
        "duality_gap_": np.array([solution.gap for solution in found]),
        "n_iter_": np.array([solution.n_iter for solution in found]),
        "weights_": np.array([solution.weights for solution in found]),
        "kernel_contributions_": np.array(shares),
        "status_": [solution.status for solution in found],
        "history_": [dict(zip(each.history, map(np.array, each.history.values()), strict=True)) for each in found],
    }
    weights = several["weights_"].copy()
    for name, values in several.items():
        first = values[0].item() if isinstance(values[0], np.generic) else values[0]
        attributes[name] = values if len(found) > 1 else first
    return Model(
        expansion, weights, support, own, intercepts, several["duality_gap_"], tuple(several["status_"]),
        attributes,
    )  # fmt: skip


def in_units(values: Mapping[str, Any], fixed: bool, unit: float) -> dict[str, Any]:
    """Return those values of a run that are in units of the objective, for kernels that are ``unit`` times as large.

    Parameters
    ----------
    values : mapping
        A row of the history, or the fields of a solution with its history.
    fixed : bool
        Whether the sum of the coefficients is fixed, and not their costs.
    unit : float
        A power of two.
    """
    factor, out = unit if fixed else 1.0 / unit, {}
    for name in {"upper", "lower", "primal"} & values.keys():
        value = values[name]
        out[name] = [each * factor for each in value] if isinstance(value, list) else value * factor
    if "history" in values:
        out["history"] = {**values["history"], **in_units(values["history"], fixed, unit)}
    return out


def expand(
    prepared: Prepared, weights: np.ndarray, coef: np.ndarray, intercepts: np.ndarray, balanced: bool
) -> Expansion:
    """Return what evaluates a model on other samples.

    Parameters
    ----------
    prepared : Prepared
        The kernels.
    weights : ndarray of shape (T, p) or (p, T, T)
        Kernel weights of T columns; or the kernels between T columns with which each kernel is multiplied.
    coef : ndarray of shape (n, T) or (p, n, T)
        Their coefficients, or those of each kernel.
    intercepts : ndarray of shape (T,)
        Their intercepts.
    balanced : bool
        Whether the coefficients of each problem sum to zero.
    """
    offset, products = np.array(intercepts, float), weights.ndim == 3
    # with coefficients that sum to zero a constant kernel adds nothing
    useful = ~(prepared.constant & balanced)
    if isinstance(prepared.source, FeatureSource):
        return prepared.source.model(weights * useful, coef, offset)
    useful &= weights.any(axis=(1, 2) if products else 0)
    active = np.flatnonzero(useful) if coef.any() else np.zeros(0, np.intp)
    support = coef.any(axis=-1).reshape(-1, coef.shape[-2]).any(axis=0)
    projected = not prepared.projectors.keys().isdisjoint(active.tolist())
    whole = projected or needs_all([prepared.normalizers[k] for k in active], balanced)
    kept = None if whole else np.flatnonzero(support)
    terms: list[Term] = []
    for k in active:
        own = coef if coef.ndim == 2 else coef[k]
        if int(k) in prepared.projectors:
            own = prepared.projectors[int(k)] @ own
        term, shift = make_term(prepared.normalizers[k], own, kept, weights[k] if products else weights[:, k])
        terms.append(term)
        offset += shift
    return prepared.source.expansion(terms, offset, active, np.arange(coef.shape[-2]) if kept is None else kept)


def contributions(
    weights: np.ndarray, outputs: np.ndarray, sample_weight: np.ndarray | None = None, gram: Gram | None = None
) -> np.ndarray:
    """Return cov(f_k, f) / var(f) over the samples, f_k = beta_k K_k a and f their sum.

    They sum to one, and are negative for a kernel that works against the others; zeros where f is constant.

    Parameters
    ----------
    weights : ndarray of shape (p,)
        Kernel weights beta.
    outputs : ndarray of shape (p, n) or (p, n, c)
        K_k a; the covariances of several columns are added up.
    sample_weight : ndarray of shape (n,), optional
        Weights of the samples.
    gram : Gram, optional
        What the outputs are those of, where kernels share them.

    Examples
    --------
    >>> import numpy as np
    >>> contributions(np.array([0.5, 0.5]), np.array([[1.0, -1.0], [3.0, -3.0]]))
    array([0.25, 0.75])
    """
    shares = np.zeros(len(weights))
    # kernels of weight zero add nothing
    some = np.flatnonzero(weights) if gram is None else slice(None)
    beta, parts = weights[some], outputs.reshape(*outputs.shape[:2], -1)[some]
    # outputs may be an array on a device
    parts = parts - np.average(parts, axis=1, weights=sample_weight)[:, None]
    total = np.tensordot(beta, parts, 1) if gram is None else gram.new_outputs((), (parts[0], parts)).mix(beta)
    size = np.abs(total).max(initial=0.0)
    if size <= 1e-300:
        return shares
    total = total / size
    weighted = total if sample_weight is None else total * sample_weight[:, None]
    if gram is None:
        inner = np.tensordot(parts, weighted, 2)
    else:
        inner = gram.new_outputs((), (weighted, parts)).quadratic_forms()
    shares[some] = beta * inner / (size * np.vdot(total, weighted))
    return shares
