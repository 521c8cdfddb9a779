"""Train the problems of a fit on prepared kernels, from nothing or from earlier solutions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from multikernel.problem import Problem, Start
from multikernel.solution import INTERRUPTED, Solution
from multikernel.solve import solve
from multikernel.threads import is_interrupt, single_threaded_blas
from multikernel.training.core import Fit, Prepared, Settings, Starts, Target, Targets
from multikernel.training.progress import progress
from multikernel.training.publish import expand, in_units
from multikernel.training.repair import repaired_if_met

# exponent of two of the largest k(x, x) from which on kernels are divided by it: one view more against other numbers
_FAR = 16


def train(prepared: Prepared, targets: Targets, settings: Settings, starts: Starts | None = None) -> Fit:
    """Solve the problems that ``targets`` makes of the kernels; repair indefinite kernels that they meet.

    Parameters
    ----------
    prepared : Prepared
        The kernels.
    targets : callable
        Returns the problems on these kernels.
    settings : Settings
        Solver, accuracy, callback.
    starts : callable, optional
        Returns a start, or None, for each problem.

    Returns
    -------
    Fit
        One solution for each problem; after Ctrl-C the best one found, and the starts of the problems not reached.
    """
    far = math.frexp(float(prepared.gram.diag().max()))[1]
    if abs(far) > _FAR:
        # (s K, C / s) has the weights and outputs of (K, C): in this unit nothing overflows, and nothing is rounded
        unit = 2.0 ** max(min(far, 1000), -1000)
        prepared = replace(prepared, gram=prepared.gram.rescaled(1.0 / unit), unit=unit * prepared.unit)
    while True:
        made = targets(prepared)
        begin = [None] * len(made) if starts is None else starts(made)
        if (state := settings.checkpoint) is not None:
            begin = state.starts(prepared, made, begin)
        solutions: list[Solution] = []
        # once for all problems: setting the limit takes as long as a step on few samples
        with single_threaded_blas():
            for t, (target, start) in enumerate(zip(made, begin, strict=True)):
                interrupted = bool(solutions) and solutions[-1].status == INTERRUPTED
                own = settings if state is None else replace(settings, checkpoint=state.part(t))
                solutions.append(_solve(prepared, target, start, own, interrupted))
                if state is not None and not interrupted:
                    state.file.stays |= solutions[-1].status == INTERRUPTED
                    state.part(t).put(weights=solutions[-1].weights, coef=solutions[-1].dual_coef)
        curvatures = [
            solution.curvature if target.classes is None else target.classes.by_input(solution.curvature)
            for target, solution in zip(made, solutions, strict=True)
        ]
        definite = repaired_if_met(prepared, settings, curvatures)
        if definite is prepared:
            return Fit(prepared, tuple(made), tuple(solutions))
        # the outputs that a start knows are those of the kernels before the repair
        prepared, starts = definite, None
        if state is not None:
            state.clear()


def _solve(prepared: Prepared, target: Target, start: Start | None, settings: Settings, interrupted: bool) -> Solution:
    """Solve one problem; after an interruption it keeps its start."""
    gram = prepared.gram if target.samples is None else prepared.gram.take_samples(target.samples)
    gram = gram if target.classes is None else target.classes.products(gram)
    problem = Problem(gram, target.machine, target.mixing)
    if start is not None:
        start = replace(start, weights=target.mixing.make_feasible(start.weights))
    shown = progress(settings.verbose, settings.tol, target.label) if settings.verbose else nullcontext()
    plain = settings.callback is None and settings.checkpoint is None
    with shown as show:
        try:
            solution = solve(
                problem, settings.solver, tol=settings.tol, max_iter=0 if interrupted else settings.max_iter,
                start=start, callback=show if plain else _watch(show, settings, prepared, target),
            )  # fmt: skip
        except SystemError as error:
            if is_interrupt(error):
                raise KeyboardInterrupt from error
            raise
    return replace(solution, status=INTERRUPTED) if interrupted else solution


def _watch(
    show: Callable[[dict], None] | None, settings: Settings, prepared: Prepared, target: Target
) -> Callable[[dict], None]:
    """Return what the solver calls after each iteration: the checkpoint, the progress shown, the user's callback."""

    def tell(row: dict) -> None:
        if settings.checkpoint is not None and row["primal"] <= row["upper"]:
            settings.checkpoint.put(weights=row["weights"], coef=np.asarray(row["coef"]))
        a, intercept, fixed = np.asarray(row.pop("coef")), np.ravel(row.pop("intercept")), target.machine.total != 0.0
        if (unit := target.unit) != 1.0:
            a, intercept = a / (1.0 if fixed else unit), intercept * (unit if fixed else 1.0)
            row |= in_units({name: row[name] for name in ("upper", "lower", "primal")}, fixed, unit)
        if show is not None:
            show(row)

        def evaluate(X: Any, n_threads: int = 1) -> np.ndarray:
            coef = np.zeros((prepared.gram.n_samples, len(intercept)))
            coef[slice(None) if target.samples is None else target.samples] = a.reshape(len(a), -1)
            weights = np.repeat(row["weights"][None], len(intercept), axis=0)
            mixed = weights if target.classes is None else target.classes.mixed(row["weights"])
            return expand(prepared, mixed, coef, intercept, balanced=False).evaluate(X, n_threads)

        if settings.callback is not None:
            settings.callback({"problem": target.label, **row, "evaluate": evaluate})

    return tell


def from_fit(previous: Fit, targets: Sequence[Target]) -> list[Start | None]:
    """Return starts at the solutions of a fit of the same problems with other costs or norms."""
    if len(targets) != len(previous.targets):
        return [None] * len(targets)
    starts: list[Start | None] = []
    for target, old, solution in zip(targets, previous.targets, previous.solutions, strict=True):
        a, b, outputs = target.machine.warm_start(old.machine, solution.dual_coef, solution.outputs)
        same = target.mixing.norm == old.mixing.norm
        weights = solution.weights if same else target.mixing.scale_to_boundary(solution.weights)
        # multiples of outputs have multiples of their rounding, and a few roundings more
        ratio = max(1.0, target.machine.scale / old.machine.scale)
        wander = (ratio + 8.0 / len(b)) * solution.wander
        starts.append(Start(weights, a, (b, outputs), wander))
    return starts


def kernel_alone(prepared: Prepared, k: int) -> Prepared:
    """Return one of the kernels, over the same memory."""
    return replace(
        prepared, gram=prepared.gram.take_kernels(np.array([k])), names=prepared.names[k : k + 1],
        normalizers=prepared.normalizers[k : k + 1], constant=prepared.constant[k : k + 1],
        known_psd=prepared.known_psd[k : k + 1],
        projectors={0: prepared.projectors[k]} if k in prepared.projectors else {},
    )  # fmt: skip


def among_all(fit: Fit, prepared: Prepared, k: int) -> Fit:
    """Return a fit of `kernel_alone` as one of all kernels, in which every other kernel has weight zero."""
    p, solutions = len(prepared.names), []
    for each in fit.solutions:
        outputs = np.zeros((p, *each.outputs.shape[1:]))
        outputs[k] = np.asarray(each.outputs[0])
        solutions.append(replace(each, weights=np.eye(1, p, k)[0] * each.weights[0], outputs=outputs))
    # a repair in training
    projectors = {**prepared.projectors, **{k: each for each in fit.prepared.projectors.values()}}
    return Fit(replace(prepared, projectors=projectors), fit.targets, tuple(solutions))


# the weights of a problem, the samples that took part among all, and their coefficients
Found = tuple[np.ndarray, np.ndarray, np.ndarray]


def found_by(fit: Fit, rows: np.ndarray) -> list[Found]:
    """Return what a fit on the samples ``rows`` found, without its kernels and outputs."""
    return [
        (solution.weights, rows if target.samples is None else rows[target.samples], solution.dual_coef)
        for target, solution in zip(fit.targets, fit.solutions, strict=True)
    ]


def mean_start(
    folds: Sequence[Sequence[Found]], taking_part: np.ndarray, targets: Sequence[Target]
) -> list[Start | None]:
    """Return starts that are the mean of what several folds have found for the same problems.

    A sample that is in every training set but one counts in all of them but one, so that bounds and sums hold for the
    mean as they do in the folds; with other splits the machine makes the mean feasible.

    Parameters
    ----------
    folds : sequence of sequence of Found
        For each fold, and each of its problems.
    taking_part : bool array
        Which of all samples take part in the training to be started.
    targets : sequence of Target
        The problems.
    """
    starts: list[Start | None] = [None] * len(targets)
    for t, target in enumerate(targets):
        parts, shape = [fold[t] for fold in folds if len(fold) == len(targets)], target.machine.start().shape[1:]
        # a fold that failed or lacks a class has fewer problems, or fewer columns
        if not parts or len(parts) < len(folds) or {coef.shape[1:] for _, _, coef in parts} != {shape}:
            continue
        total, count = np.zeros((len(taking_part), *shape)), np.zeros(len(taking_part))
        for _, samples, coef in parts:
            total[samples] += coef
            count[samples] += 1
        a = (total.T / np.maximum(count, 1)).T[taking_part]
        a = target.machine.make_feasible(a if target.samples is None else a[target.samples])
        starts[t] = Start(np.mean([weights for weights, _, _ in parts], axis=0), a)
    return starts
