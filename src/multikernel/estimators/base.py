"""What every estimator that learns a mix of kernels shares.

parameters -> samples -> kernels -> Gram -> problems -> solutions -> fitted attributes
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.validation import check_is_fitted

from multikernel.estimators.validation import as_numbers, check_samples
from multikernel.gram.base import Gram
from multikernel.kernels.bank import KernelBank
from multikernel.kernels.base import len_of
from multikernel.kernels.class_kernels import ClassKernels
from multikernel.machines.base import Machine
from multikernel.mixing.base import Mixing
from multikernel.mixing.norms import mixing_for
from multikernel.problem import Problem
from multikernel.solution import INTERRUPTED, Solution
from multikernel.solve import solve
from multikernel.threads import resolve_threads
from multikernel.training.computed import ComputedKernels
from multikernel.training.core import TrainingKernels
from multikernel.training.expansion import Expansion
from multikernel.training.featured import FeatureKernels, suited_machine, takes_features
from multikernel.training.prepare import warn_constant
from multikernel.training.progress import progress
from multikernel.training.publish import GramInfo
from multikernel.training.stacked import StackedKernels


class BaseMKL(_BaseComposition):
    """Base class of the estimators; the parameters are those of its subclasses."""

    kernels: Any
    norm: float
    normalize: Any
    psd: str
    solver: Any
    tol: float
    max_iter: int
    gram: str
    memory_limit: Any
    verbose: int
    n_jobs: int | None
    _expansion: Expansion
    callback: Callable[[dict], None] | None = None
    # what a search lends to the models of one path: kernels, starts, outputs (multikernel.model_selection.lending)
    _lent: Any = None

    # ---- parameters: name__gamma of the entries (name, kernel, columns)

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernels, str) and self.kernels == "precomputed"

    @property
    def _entries(self) -> list[tuple[str, Any, Any]]:
        entries = self.kernels if isinstance(self.kernels, list) else []
        return [entry for entry in entries if isinstance(entry, tuple) and len(entry) == 3]

    @property
    def _named_kernels(self) -> list[tuple[str, Any]]:
        return [(name, kernel) for name, kernel, _ in self._entries]

    @_named_kernels.setter
    def _named_kernels(self, pairs: Sequence[tuple[str, Any]]) -> None:
        new = dict(pairs)
        own = {id(entry) for entry in self._entries}
        self.kernels = [(entry[0], new[entry[0]], entry[2]) if id(entry) in own else entry for entry in self.kernels]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with ``deep`` also those of named kernels, as ``name__parameter``."""
        return self._get_params("_named_kernels", deep=deep)

    def set_params(self, **params: Any) -> BaseMKL:
        """Set parameters, also those of named kernels, as ``name__parameter``."""
        if "kernels" in params:
            self.kernels = params.pop("kernels")
        self._set_params("_named_kernels", **params)
        return self

    def _sk_visual_block_(self):
        try:
            from sklearn.utils._repr_html.estimator import _VisualBlock
        except ImportError:  # before scikit-learn 1.7
            from sklearn.utils._estimator_html_repr import _VisualBlock

        if not self._entries:
            return _VisualBlock("single", self, names=type(self).__name__, name_details=str(self))
        names, kernels, columns = zip(*self._entries, strict=True)
        return _VisualBlock("parallel", kernels, names=names, name_details=[str(each) for each in columns])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.three_d_array = self._precomputed
        tags.target_tags.required = True
        return tags

    # ---- the parts of a fit

    def _checked(self, check: Callable[[], Any]) -> Any:
        """Return what ``check`` makes of parameters and samples; models that a search trains on the same share it."""
        return check() if self._lent is None else self._lent.checked(self, check)

    def _make_kernels(self, X: Any, weight: np.ndarray | None, linear: bool = False) -> TrainingKernels:
        """Fit the kernels and evaluate them on the training samples; a stack leaves out weights of zero.

        ``linear`` says that all machines have one that works on explicit features.
        """
        if self._lent is not None and self._lent.kernels is not None:
            return self._lent.kernels
        options = {
            "psd": self.psd, "gram": self.gram, "memory_limit": self.memory_limit,
            "n_threads": resolve_threads(self.n_jobs),
        }  # fmt: skip
        if weight is not None and np.all(weight == weight[0]):
            weight = None
        kernels: TrainingKernels
        if self._precomputed:
            kernels = StackedKernels(X, weight, self.normalize, **options)
        else:
            bank = KernelBank.fit(self.kernels, X, weight, self.normalize)
            samples = as_numbers(X)
            by_features = takes_features(bank, len_of(samples), self.gram, linear, self)
            kernels = (FeatureKernels if by_features else ComputedKernels)(bank, samples, weight, **options)
        warn_constant(kernels.names, kernels.constant)
        return kernels

    def _solve_all(
        self,
        kernels: TrainingKernels,
        machines: Sequence[Machine],
        subsets: Sequence[np.ndarray | None],
        labels: Sequence[str],
        outputs: ClassKernels | None = None,
    ) -> list[Solution]:
        """Solve one problem per machine, each on its subset of the samples (None for all).

        With ``outputs`` the kernels are their products with kernels on the classes.
        """
        solutions: list[Solution] = []
        starts = [None] * len(machines) if self._lent is None else self._lent.starts(machines, subsets)
        while len(solutions) < len(machines):
            t = len(solutions)
            # Ctrl-C ends the whole fit: what follows keeps its start
            interrupted = bool(solutions) and solutions[-1].status == INTERRUPTED
            gram = kernels.gram if subsets[t] is None else kernels.gram.take_samples(subsets[t])
            gram = gram if outputs is None else outputs.products(gram)
            mixing, start = self._mixing(gram), starts[t]
            if start is not None:
                start = replace(start, weights=mixing.make_feasible(start.weights))
            with progress(self.verbose, self.tol, labels[t]) as show:
                callback = self._watch(show, kernels, subsets[t], labels[t], outputs)
                solution = solve(
                    Problem(gram, suited_machine(gram, machines[t]), mixing), self.solver, tol=self.tol,
                    max_iter=0 if interrupted else self.max_iter, start=start, callback=callback,
                )  # fmt: skip
            if interrupted:
                solution = replace(solution, status=INTERRUPTED)
            suspects = kernels.negative_curvature(
                solution if outputs is None else replace(solution, curvature=outputs.by_input(solution.curvature))
            )
            if len(suspects):
                # problems solved before shared the kernel, and are solved again with the repaired one
                kernels.repair_or_raise(suspects)
                solutions = []
            else:
                solutions.append(solution)
        if self._lent is not None:
            self._lent.keep(machines, solutions, subsets)
        return solutions

    def _watch(
        self,
        show: Callable[[dict], None] | None,
        kernels: TrainingKernels,
        subset: np.ndarray | None,
        label: str,
        outputs: ClassKernels | None,
    ) -> Callable[[dict], None] | None:
        """Return what the solver calls after each iteration: the progress shown, then the user's ``callback``."""
        if self.callback is None:
            return show

        def tell(row: dict) -> None:
            if show is not None:
                show(row)
            a, intercept = row.pop("coef"), np.ravel(row.pop("intercept"))

            def decision_function(X: Any) -> np.ndarray:
                coef = np.zeros((kernels.gram.n_samples, len(intercept)))
                coef[slice(None) if subset is None else subset] = a.reshape(len(a), -1)
                repeated = np.repeat(row["weights"][None], len(intercept), axis=0)
                mixed = repeated if outputs is None else outputs.mixed(row["weights"])
                expansion = kernels.expansion(mixed, coef, intercept, balanced=False)
                values = expansion.evaluate(check_samples(self, X, reset=False), resolve_threads(self.n_jobs))
                return values[:, 0] if values.shape[1] == 1 else values

            self.callback({"problem": label, **row, "decision_function": decision_function})

        return tell

    def _mixing(self, gram: Gram) -> Mixing:
        """Return the set in which the weights of these kernels live."""
        return mixing_for(self.norm)

    def _store_model(
        self,
        kernels: TrainingKernels,
        solutions: Sequence[Solution],
        coef: np.ndarray,
        balanced: bool,
        outputs: ClassKernels | None = None,
    ) -> None:
        """Set the attributes that every fitted estimator has; a single problem drops their first axis.

        Parameters
        ----------
        kernels : TrainingKernels
            The kernels.
        solutions : sequence of Solution
            One per problem.
        coef : ndarray of shape (n, T)
            Coefficients of all samples that take part; a problem whose outputs share the weights has a column for each.
        balanced : bool
            Whether they sum to zero.
        outputs : ClassKernels, optional
            The kernels on the classes with which the kernels were multiplied.
        """
        weights = np.array([solution.weights for solution in solutions])
        intercepts = np.concatenate([np.ravel(solution.intercept) for solution in solutions])
        columns = [np.size(solution.intercept) for solution in solutions]
        mixed = np.repeat(weights, columns, axis=0) if outputs is None else outputs.mixed(weights[0])
        self._expansion = kernels.expansion(mixed, coef, intercepts, balanced)
        support = np.flatnonzero(coef.any(axis=1))
        one = len(solutions) == 1

        def each(values: Sequence, kind: Any = np.array) -> Any:
            return values[0] if one else kind(values)

        self.kernel_names_ = list(kernels.names if outputs is None else outputs.names)
        self.weights_ = each(weights)
        single = coef.shape[1] == 1
        self.dual_coef_ = coef[support, 0] if single else np.ascontiguousarray(coef[support].T)
        self.intercept_ = float(intercepts[0]) if single else intercepts
        self.objective_ = each([solution.upper for solution in solutions])
        self.dual_objective_ = each([solution.lower for solution in solutions])
        self.duality_gap_ = each([solution.gap for solution in solutions])
        self.n_iter_ = each([solution.n_iter for solution in solutions])
        self.status_ = each([solution.status for solution in solutions], list)
        self.history_ = each(
            [{key: np.array(column) for key, column in solution.history.items()} for solution in solutions],
            list,
        )
        self.solver_ = solutions[0].solver
        self.gram_ = GramInfo(kernels.gram.kind, str(kernels.gram.dtype), kernels.gram.nbytes)
        self._support = support

    # ---- evaluation

    def _outputs(self, X: Any) -> np.ndarray:
        """Return the outputs of all problems on other samples, shape (n_samples, T)."""
        check_is_fitted(self)
        if self._lent is not None and (known := self._lent.outputs(self, X)) is not None:
            return known
        X = check_samples(self, X, reset=False)
        return self._expansion.evaluate(X, resolve_threads(self.n_jobs))

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` has made a model."""
        return hasattr(self, "_expansion")
