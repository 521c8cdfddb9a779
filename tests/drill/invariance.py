"""Laws: changes of a problem that do not change its optimum, or multiply it by a known factor."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from problems import random_problem

from drill import Kind
from drill.agreement import NORMS, TASKS, estimator, targets
from drill.fits import evaluate, foreign_warnings, make
from multikernel import stack_kernels
from multikernel.solvers import solver_names

TOL = 1e-6
# two-stage methods and EasyMKL have no objective that could be compared: their outputs are
BASELINES = ("EasyMKLClassifier", "TwoStageClassifier", "TwoStageRegressor")


@dataclass(frozen=True)
class Posed:
    """A problem as it is given to an estimator, and the factor of its objective."""

    task: str
    loss: str
    stack: np.ndarray
    y: np.ndarray
    C: float
    norm: float
    intercept: bool
    weight: np.ndarray | None = None
    options: dict = field(default_factory=dict)
    factor: float = 1.0

    def fit(self):
        """Return the fitted model."""
        options = {"kernels": "precomputed", "normalize": None, "tol": TOL, "max_iter": 2000, **self.options}
        model = estimator(self.task, self.loss, self.C, self.norm, self.intercept, -np.inf, options)
        y = () if self.task == "one class" else (self.y,)
        return model.fit(stack_kernels(self.stack), *y, sample_weight=self.weight)


def _rows(p: Posed, rows) -> dict:
    return {"stack": p.stack[:, rows][:, :, rows], "y": p.y[rows]}


def permute_samples(p, rng):
    """The order of the samples does not matter."""
    return replace(p, **_rows(p, rng.permutation(len(p.y))))


def permute_kernels(p, rng):
    """The order of the kernels does not matter."""
    return replace(p, stack=p.stack[rng.permutation(len(p.stack))])


def duplicate_kernel(p, rng):
    """On the simplex a second copy of a kernel adds nothing; in the plain sum two halves are the whole."""
    k = rng.integers(len(p.stack))
    if p.norm == 1:
        return replace(p, stack=np.concatenate([p.stack, p.stack[k : k + 1]]))
    if p.norm == np.inf:
        halves = p.stack.copy()
        halves[k] /= 2
        return replace(p, stack=np.concatenate([halves, halves[k : k + 1]]))
    return None


def zero_kernel(p, rng):
    """A kernel of zeros adds nothing."""
    return replace(p, stack=np.concatenate([p.stack, np.zeros_like(p.stack[:1])]))


def scale(p, rng):
    """The problem (sK, C / s) has the objective divided by s; that of one class has s K alone."""
    s = float(10.0 ** rng.uniform(-12, 12))
    if p.task == "one class":
        return replace(p, stack=p.stack * s, factor=s)
    return replace(p, stack=p.stack * s, C=p.C / s, factor=1 / s)


def relabel(p, rng):
    """Names of classes, or the sign of the targets, do not matter."""
    if p.task == "one class":
        return None
    return replace(p, y=-p.y)


def split_sample(p, rng):
    """A sample is two samples of half its weight."""
    i = int(rng.integers(len(p.y)))
    weight = np.ones(len(p.y) + 1)
    weight[[i, -1]] = 0.5
    return replace(p, **_rows(p, np.append(np.arange(len(p.y)), i)), weight=weight)


def weightless_sample(p, rng):
    """A sample of weight zero is no sample."""
    i = int(rng.integers(len(p.y)))
    weight = np.append(np.ones(len(p.y)), 0.0)
    return replace(p, **_rows(p, np.append(np.arange(len(p.y)), i)), weight=weight)


def double_weights(p, rng):
    """Weights multiply C; of one class only their ratios count."""
    return replace(p, C=p.C if p.task == "one class" else p.C / 2, weight=np.full(len(p.y), 2.0))


def shift_kernels(p, rng):
    """A constant added to a kernel does not matter where there is an intercept."""
    if not p.intercept or p.task in ("one class", "margin"):
        return None
    return replace(p, stack=p.stack + np.abs(p.stack).mean(axis=(1, 2), keepdims=True))


def other_storage(p, rng):
    """Where the kernels are kept does not matter."""
    return replace(p, options={"gram": str(rng.choice(["lazy", "memmap"]))})


def other_solver(p, rng):
    """Which solver is used does not matter."""
    return replace(p, options={"solver": str(rng.choice(solver_names()))})


LAWS = (
    permute_samples, permute_kernels, duplicate_kernel, zero_kernel, scale, relabel, split_sample, weightless_sample,
    double_weights, shift_kernels, other_storage, other_solver,
)  # fmt: skip


def case(rng):
    """Draw a problem and a law, fit both sides, compare their certified intervals."""
    if rng.random() < 0.1:
        return baseline(rng)
    task, loss = TASKS[rng.integers(len(TASKS))]
    drawn = random_problem(int(rng.integers(70)), int(rng.integers(1 << 30)))
    norm = float(rng.choice(NORMS)) if task != "margin" else 1.0
    y = targets(task, drawn.stack.mean(axis=0) @ rng.normal(size=drawn.n) + rng.normal(size=drawn.n), rng)
    C = float(rng.uniform(0.05, 1.0)) if task == "one class" else drawn.C
    law = LAWS[rng.integers(len(LAWS))]
    one = Posed(task, loss, drawn.stack, y, C, norm, bool(rng.integers(2)))
    two = law(one, rng)
    label = f"{law.__name__}, {task}"
    if two is None:
        return f"{label}: does not apply", None
    foreign: list[str] = []
    with foreign_warnings(foreign):
        try:
            models = one.fit(), two.fit()
        except ValueError as error:
            if not any(words in str(error) for words in ("cannot be used with", "must not be centred")):
                raise
            return f"{label}: does not apply", None
    (low, high), (other_low, other_high) = (
        (model.dual_objective_ / posed.factor, model.objective_ / posed.factor)
        for model, posed in zip(models, (one, two), strict=True)
    )
    slack = 1e-9 * max(abs(high), abs(other_high), 1e-9)
    if low > other_high + slack or other_low > high + slack:
        return label, (
            f"{loss}: [{low:.9g}, {high:.9g}] and [{other_low:.9g}, {other_high:.9g}] have no number in common "
            f"(n={drawn.n}, p={drawn.p}, C={C:.3g}, norm={norm:.3g}, {drawn.kind}, {two.options})"
        )
    return label, f"a warning from below: {foreign[0]}" if foreign else None


def baseline(rng):
    """Outputs of a method without an objective, under a law that keeps them."""
    name, law = str(rng.choice(BASELINES)), str(rng.choice(["samples", "kernels", "scale"]))
    X = rng.normal(size=(50, 4))
    score = X[:, 0] + np.sin(2 * X[:, 1])
    y = score if name.endswith("Regressor") else (score > np.median(score)).astype(int)
    stack = np.array([np.exp(-np.square(X[:, None] - X).sum(2) * g) for g in (0.05, 0.3, 2.0)])
    rows = rng.permutation(len(X)) if law == "samples" else np.arange(len(X))
    order = rng.permutation(3) if law == "kernels" else np.arange(3)
    factor = float(10.0 ** rng.uniform(-12, 12)) if law == "scale" else 1.0
    changed = factor * stack[order][:, rows][:, :, rows]
    f = [
        evaluate(make(name, kernels="precomputed", tol=1e-9).fit(K, t), K) for K, t in ((stack, y), (changed, y[rows]))
    ]
    difference = np.abs(f[0][rows] - f[1]).max() / np.ptp(f[0])
    return f"{law}, {name}", f"outputs differ by {difference:.2g} of their range" if difference > 1e-3 else None


KIND = Kind(
    "invariance",
    "A problem and a changed one whose optimum is known to be the same, or a known multiple: samples or "
    "kernels in another order, a kernel twice, a kernel of zeros, (sK, C / s), other names of classes, a "
    "sample split into two of half the weight, a sample of weight zero, weights against C, a constant added "
    "to the kernels, another storage, another solver. A finding is a pair of certified intervals without a "
    "common number, or outputs of a baseline that differ.",
    share=4,
    full=5000,
    case=case,
)
