"""Small binary problems of many kinds, the same in every run: what each solver is held against.

Problem number i of a seed depends on (seed, i) only, so a longer list begins with a shorter one. Norms and
kinds are cycled (7 and 10 are coprime: any 70 consecutive problems hold every pair), sizes and C are drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

NORMS = (1.0, 1.1, 4 / 3, 2.0, 3.0, 10.0, np.inf)
POLYHEDRAL = (1.0, np.inf)

# a new solver is one line, and inherits the batteries of tests/solvers
SOLVERS = {
    # solver: (norms it applies to, number of problems it is tried on, largest number of iterations)
    "newton": (NORMS, 420, 200),
    "active-set": ((1.0,), 120, 200),
    "silp": (POLYHEDRAL, 210, 500),
    "sip": (NORMS, 210, 300),
    "level": (NORMS, 210, 200),
    "alternating": (NORMS, 280, 5000),
    "simplemkl": ((1.0,), 120, 500),
    "qcqp": (NORMS, 210, 1),
}


@dataclass(frozen=True)
class Problem:
    """One problem: p kernels on n samples in float64, labels +-1, C and the norm of the weights.

    ``degenerate`` marks low rank, zero, constant or duplicated kernels, and identical samples.
    """

    id: str
    kind: str
    stack: np.ndarray
    y: np.ndarray
    C: float
    norm: float
    degenerate: bool

    @property
    def n(self) -> int:
        """Number of samples."""
        return len(self.y)

    @property
    def p(self) -> int:
        """Number of kernels."""
        return len(self.stack)


def linear(X) -> np.ndarray:
    """The Gram matrix X X'."""
    return X @ X.T


def gaussian(X, width: float) -> np.ndarray:
    """The Gram matrix exp(-||x - x'||^2 / (2 width^2)), exactly symmetric with unit diagonal."""
    squared = np.sum((X[:, None, :] - X[None, :, :]) ** 2, axis=2)
    return np.exp(-squared / (2.0 * width**2))


def _widths(X, p, rng):
    return [gaussian(X, w) for w in np.geomspace(0.2, 20.0, p) * rng.uniform(0.7, 1.4)]


def _low_rank(X, p, rng):
    return [linear(X @ rng.normal(size=(X.shape[1], rng.integers(1, 4)))) for _ in range(p)]


def _groups(X, p, rng):
    kernels = []
    for _ in range(p):
        columns = rng.permutation(X.shape[1])[: rng.integers(1, 4)]
        width = 10.0 ** rng.uniform(-0.5, 1.0)
        kernels.append(gaussian(X[:, columns], width) if rng.random() < 0.7 else linear(X[:, columns]))
    return kernels


def _duplicated(X, p, rng):
    distinct = _groups(X, (p + 1) // 2, rng)
    return distinct + [distinct[rng.integers(len(distinct))].copy() for _ in range(p - len(distinct))]


def _zero_constant(X, p, rng):
    kernels = _groups(X, p, rng)
    void = [np.zeros((len(X), len(X))), np.full((len(X), len(X)), 10.0 ** rng.uniform(-2, 2))]
    for k, K in zip(rng.permutation(p)[: max(0, min(2, p - 1))], void, strict=False):
        kernels[k] = K
    return kernels


def _scales(X, p, rng):
    return [10.0 ** rng.uniform(-3, 3) * K for K in _groups(X, p, rng)]


def _unnormalised(X, p, rng):
    shifted = X * 10.0 ** rng.uniform(-0.5, 0.5, size=X.shape[1]) + rng.normal(size=X.shape[1])
    pairs = [shifted[:, rng.permutation(X.shape[1])[:2]] for _ in range(p)]
    return [(linear(pair) + rng.uniform()) ** rng.integers(1, 3) for pair in pairs]


def _mixed(X, p, rng):
    makers = (_widths, _low_rank, _groups, _zero_constant, _scales)
    kernels = [makers[rng.integers(len(makers))](X, 2, rng)[rng.integers(2)] for _ in range(p)]
    if p > 2:
        kernels[-1] = kernels[0].copy()
    return kernels


KINDS = {
    # kind: (maker of the kernels, degenerate)
    "widths": (_widths, False),
    "low_rank": (_low_rank, True),
    "groups": (_groups, False),
    "duplicated": (_duplicated, True),
    "zero_constant": (_zero_constant, True),
    "twins": (_groups, True),
    "unbalanced": (_widths, False),
    "scales": (_scales, True),
    "unnormalised": (_unnormalised, True),
    "mixed": (_mixed, True),
}


def random_problem(index: int, seed: int = 0) -> Problem:
    """Problem number ``index`` of the list of this seed."""
    rng = np.random.default_rng([seed, index])
    kind = list(KINDS)[index % len(KINDS)]
    norm = NORMS[index % len(NORMS)]
    n = int(np.floor(np.exp(rng.uniform(np.log(4), np.log(81)))))
    p = int(rng.integers(1, 13))
    C = float(10.0 ** rng.uniform(-3, 3))

    X = rng.normal(size=(n, 6))
    score = X[:, 0] + np.sin(2 * X[:, 1]) + rng.choice([0.0, 0.5, 2.0]) * rng.normal(size=n)
    positive = int(rng.integers(1, 3)) if kind == "unbalanced" else n // 2
    y = np.full(n, -1.0)
    y[np.argsort(score)[n - positive :]] = 1.0
    if kind == "twins":
        # the second half repeats samples of the first with the opposite label
        half = n // 2
        pick = rng.permutation(half)[: max(1, half // 2)]
        X[half + np.arange(len(pick))] = X[pick]
        y[half + np.arange(len(pick))] = -y[pick]
        if abs(y.sum()) == n:
            y[0] = -y[0]

    make, degenerate = KINDS[kind]
    stack = np.array(make(X, p, rng), dtype=np.float64)
    stack = (stack + stack.transpose(0, 2, 1)) / 2
    name = f"{seed}.{index:03d}-{kind}-n{n}-p{p}-C{C:.2g}-norm{norm:.3g}"
    return Problem(name, kind, stack, y, C, float(norm), degenerate)


def random_problems(count: int = 300, seed: int = 0) -> Iterator[Problem]:
    """The first ``count`` problems of a seed."""
    for index in range(count):
        yield random_problem(index, seed)


def combined_rows(gram, beta, rows) -> np.ndarray:
    """Return rows of sum_k beta_k K_k, as the Gram forms them."""
    out = np.empty((len(rows), gram.n_samples), gram.dtype)
    gram.combine(beta, rows, out, np.arange(len(rows)))
    return out
