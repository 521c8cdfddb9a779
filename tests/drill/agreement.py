"""Agreement with a general conic solver: every loss, norm, solver and storage, on random and degenerate kernels."""

from __future__ import annotations

import warnings

import numpy as np
from problems import linear, random_problem
from reference import conic_solution
from reference_joint import conic_joint, conic_other, joint_loss, other_loss
from reference_losses import LOSSES, conic_loss
from reference_margin import conic_largest, conic_m3k, eta_of
from reference_tasks import conic_oneclass, conic_svr, tube_loss

from drill import Kind
from drill.fits import foreign_warnings
from multikernel import M3KClassifier, MKLClassifier, MKLOneClass, MKLRegressor, stack_kernels
from multikernel.kernels import Linear
from multikernel.solvers import solver_names

NORMS = (1.0, 4 / 3, 2.0, np.inf)
STORAGE = ("dense", "lazy", "memmap", "features")
WITH_FEATURES = ("hinge", "epsilon_insensitive", "squared", "squared_hinge")
BINARY = ("hinge", "squared", "squared_hinge", "smooth_hinge", "logistic")
REGRESSION = ("epsilon_insensitive", "squared", "huber", "logcosh")
JOINT = ("hinge", "squared_hinge", "logistic", "smooth_hinge", "multinomial")
TASKS = (
    *(("binary", loss) for loss in BINARY),
    *(("regression", loss) for loss in REGRESSION),
    *(("joint", loss) for loss in JOINT),
    ("one class", "plane"),
    ("margin", "hinge"),
)
TOL = 1e-5
# relative accuracy that every reference is asked for
ACCURACY = 1e-6
EPSILON = 0.1


def targets(task, score, rng):
    """Return labels of two or more classes, or numbers."""
    if task == "regression":
        return score * 10.0 ** rng.uniform(-1, 1) + rng.uniform(-3, 3)
    classes = 2 if task == "binary" else int(rng.integers(3, 6))
    return np.argsort(np.argsort(score)) * classes // len(score)


def reference(task, loss, stack, y, C, norm, intercept, gamma0):
    """Return bounds (lower, upper) on the optimum by the conic solver; -inf where it has no lower one."""
    # a kernel of zeros adds nothing, and the general solver takes no empty blocks
    stack = stack[[np.any(K) for K in stack]] if np.any(stack) else stack[:1] + 1e-300
    if task == "binary" and loss == "hinge":
        found = conic_solution(stack, 2.0 * y - 1, C, norm, fit_intercept=intercept)
    elif task == "regression" and loss == "epsilon_insensitive":
        found = conic_svr(stack, y, C, EPSILON, norm, fit_intercept=intercept)
    elif task == "one class":
        found = conic_oneclass(stack, C, norm)
    elif loss == "hinge":
        value = (
            conic_m3k(stack, y, C, norm, gamma0, certain=True)
            if task == "margin"
            else conic_joint(stack, y, C, norm, None, intercept)
        )
        return value * (1 - ACCURACY), value * (1 + 10 * ACCURACY)
    elif task == "joint":
        return -np.inf, conic_other(stack, y, C, norm, loss, intercept)
    else:
        return -np.inf, conic_loss(stack, 2.0 * y - 1 if task == "binary" else y, C, norm, loss, intercept)
    return found.lower, found.upper


def margin_level(task, stack, y, norm, rng) -> float:
    """Return the smallest kernel margin that M3K shall have: none, or a part of the largest."""
    if task != "margin" or rng.random() < 0.5:
        return -np.inf
    eta = eta_of(stack, y)
    # in a ball of another norm than 1 the largest is zero where no mix has a positive one
    largest = conic_largest(eta, y, norm)
    return float(rng.uniform(0.1, 0.9)) * largest if largest > 1e-6 * np.abs(eta).max() else -np.inf


def own_value(task, loss, model, f, y, C) -> float:
    """The primal value of the published model, from its outputs f on the training samples alone."""
    f, coef = f.reshape(len(f), -1), np.atleast_2d(model.dual_coef_).T
    intercept = np.atleast_1d(getattr(model, "intercept_", 0.0))
    penalty = 0.5 * np.sum(coef * (f - intercept)[model.support_])
    if task == "one class":
        return penalty + float(intercept[0]) + float(np.maximum(0.0, -f).sum()) / (C * len(f))
    if task in ("joint", "margin"):
        return penalty + (joint_loss(f, y, C) if loss == "hinge" else other_loss(f, y, C, loss))
    f, y = f[:, 0], 2.0 * y - 1 if task == "binary" else y
    if loss == "epsilon_insensitive":
        return penalty + tube_loss(f, y, C, EPSILON)
    if loss == "hinge":
        return penalty + C * float(np.maximum(0.0, 1.0 - y * f).sum())
    return penalty + C * float(np.sum(LOSSES[loss][1](f, y)))


def estimator(task, loss, C, norm, intercept, gamma0, options):
    """Return the estimator of a task; C is nu for one class."""
    if task == "one class":
        return MKLOneClass(nu=C, norm=norm, **options)
    if task == "margin":
        return M3KClassifier(C=C, norm=norm, gamma0=gamma0, **options)
    if task == "regression":
        return MKLRegressor(loss=loss, C=C, norm=norm, epsilon=EPSILON, fit_intercept=intercept, **options)
    return MKLClassifier(loss=loss, C=C, norm=norm, fit_intercept=intercept, **options)


def case(rng):
    """Draw a problem, solve it both ways and compare."""
    task, loss = TASKS[rng.integers(len(TASKS))]
    drawn = random_problem(int(rng.integers(70)), int(rng.integers(1 << 30)))
    norm, intercept = float(rng.choice(NORMS)), bool(rng.integers(2))
    storage, solver = str(rng.choice(STORAGE)), str(rng.choice([*solver_names(), *["auto"] * 4]))
    stack, n = drawn.stack, drawn.n
    kernels = "precomputed"
    X = rng.normal(size=(n, 6))
    if storage == "features":
        if loss not in WITH_FEATURES or task not in ("binary", "regression"):
            storage = "dense"
        else:
            groups = [np.sort(rng.permutation(6)[: rng.integers(1, 5)]) for _ in range(rng.integers(1, 5))]
            kernels = [(f"k{k}", Linear(), group) for k, group in enumerate(groups)]
            stack, solver = np.array([linear(X[:, group]) for group in groups]), "auto"
    y = targets(task, X[:, 0] + stack.mean(axis=0) @ rng.normal(size=n) / (np.abs(stack).max() or 1.0), rng)
    C = float(rng.uniform(0.05, 1.0)) if task == "one class" else drawn.C
    label = f"{task} {loss}, {storage}, {solver}"
    if task == "margin":
        # M3K takes no infinite norm
        norm = min(norm, 2.0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gamma0 = margin_level(task, stack, y, norm, rng)
            lower, upper = reference(task, loss, stack, y, C, norm, intercept, gamma0)
    except Exception as error:
        # kernels of zeros have no units in which the conic solver could work
        unsolved = "solver" in str(error).lower() or not stack.any()
        return "no reference", None if unsolved else f"{label}: {error}"
    # one common factor of all kernels, a power of two: the same problem in other units
    scale = 2.0 ** int(rng.integers(-30, 31)) if kernels == "precomputed" and rng.random() < 0.5 else 1.0
    unit = scale if task == "one class" else 1.0 / scale
    options = {"kernels": kernels, "gram": storage, "solver": solver, "tol": TOL, "normalize": None, "max_iter": 2000}
    model = estimator(task, loss, C if task == "one class" else C / scale, norm, intercept, gamma0 * scale, options)
    samples, foreign = X if kernels != "precomputed" else stack_kernels(stack * scale), []
    with foreign_warnings(foreign):
        try:
            model.fit(samples, *(() if task == "one class" else (y,)))
        except ValueError as error:
            if task == "one class" and "must not be centred" in str(error):
                return "no reference", None if abs(stack.mean()) <= 1e-9 * np.abs(stack).max() else f"{label}: {error}"
            if "cannot be used with" not in str(error) and "needs" not in str(error):
                raise
            model.set_params(solver="auto", gram="dense" if storage == "features" else storage)
            model.fit(samples, *(() if task == "one class" else (y,)))
            label = f"{task} {loss}, {storage}, auto"
    finding = disagreement(task, loss, model, samples, y, (lower, upper), unit, scale)
    if finding is None and foreign:
        finding = f"a warning from below: {foreign[0]}"
    return (
        label,
        finding and f"{finding} (n={n}, p={len(stack)}, C={C:.3g}, norm={norm:.3g}, {drawn.kind}, x {scale:.0e})",
    )


def disagreement(task, loss, model, samples, y, bounds, unit, scale) -> str | None:
    """Return how the model's bounds contradict those of the reference or its own outputs, or None."""
    primal, dual, gap = (value / unit for value in (model.objective_, model.dual_objective_, unit * model.duality_gap_))
    lower, upper = bounds
    # one class: both bounds may be near zero, where the kernels themselves are the scale
    size = max(abs(primal), *(abs(each) for each in bounds if np.isfinite(each)), 1e-9)
    if dual > upper + ACCURACY * size:
        return f"the lower bound {dual:.9g} is above the optimum {upper:.9g}"
    if primal < lower - ACCURACY * size:
        return f"the objective {primal:.9g} is below the optimum {lower:.9g}"
    f = np.asarray(getattr(model, "decision_function", model.predict)(samples))
    cost = model.nu if task == "one class" else model.C
    own = own_value(task, loss, model, f, y, cost) / unit
    if abs(own - primal) > 1e-6 * size:
        return f"the objective is {primal:.9g}, and that of the published outputs {own:.9g}"
    if model.status_ != "converged" and model.solver_ in ("newton", "auto"):
        return f"{model.status_} at a gap of {gap:.2g} by {model.solver_}"
    return None


KIND = Kind(
    "agreement",
    "A problem of a random loss, norm, solver, storage and common factor of the kernels, on random or "
    "degenerate kernels (low rank, duplicated, zero, constant, of very different scales; repeated samples of "
    "opposite labels), is solved by the library and by a general conic solver. A finding is a bound on the "
    "wrong side of the optimum, an objective that is not that of the published model, or a fit of the default"
    " solver that does not converge.",
    share=5,
    full=3000,
    case=case,
)
