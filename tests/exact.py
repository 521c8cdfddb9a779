"""Reported duality gaps against exact arithmetic, on problems drawn at random, degenerate ones among them.

    python tests/exact.py [N] [--seed S] [--file results.jsonl] [--page docs/reliability.md]

Problem number i of a seed depends on (seed, i) alone. The primal and the dual value of the returned weights,
coefficients and intercepts are computed from the very kernel entries that were used, as whole numbers and fractions;
logarithms and powers in decimals of 80 digits. Nothing of ``multikernel`` takes part in that. With ``--file``, finished
problems are written there and not tried again. Printed: for every loss and every storage the number of problems, the
largest ratio of the true to the reported gap, which is at most one, and how the runs ended; with ``--page`` these
tables go into their section of that page.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections import defaultdict
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path

import numpy as np
from drill.page import write_section

from multikernel import MKLClassifier, MKLOneClass, MKLRegressor
from multikernel.gram.dense import AffineForm, DenseGram
from multikernel.gram.features import FeatureGram
from multikernel.gram.lazy import LazyGram
from multikernel.gram.memmap import MemmapGram, memmap_stack
from multikernel.gram.product import ProductGram
from multikernel.gram.sources import DenseSource
from multikernel.gram.stack import stack_kernels
from multikernel.losses import Huber, LogCosh, Logistic, Multinomial, SmoothHinge, SquaredHinge
from multikernel.machines.descent import Descent
from multikernel.machines.joint.class_products import ProductCrammerSinger
from multikernel.machines.joint.crammer_singer import CrammerSinger
from multikernel.machines.joint.joint_loss import JointLoss
from multikernel.machines.oneclass import OneClass
from multikernel.machines.ridge import Ridge
from multikernel.machines.smooth import Smooth
from multikernel.machines.svc import SVC
from multikernel.machines.svr import SVR
from multikernel.mixing.norms import mixing_for
from multikernel.problem import Problem
from multikernel.solve import solve
from multikernel.solvers.base import REGISTRY, get_solver, missing

NORMS = (1.0, 1.0, 1.1, 4 / 3, 2.0, 3.0, 10.0, np.inf)
BINARY = ("hinge", "squared", "squared_hinge", "logistic", "smooth_hinge")
REGRESSION = ("epsilon_insensitive", "squared", "huber", "logcosh")
JOINT = ("joint hinge", "joint squared", "joint squared_hinge", "joint logistic", "joint multinomial")
LINEAR = ("hinge", "epsilon_insensitive", "squared", "squared_hinge", "one class")
STORAGES = (
    "dense", "float32", "list", "unit diagonal", "centred", "lazy", "memmap", "features", "products", "subset",
    "estimator",
)  # fmt: skip
DIGITS = 80


# ---- whole numbers


def whole(values) -> tuple[list[int], int]:
    """Return integers m and one exponent e with values = m 2^-e."""
    ratios = [float(v).as_integer_ratio() for v in np.ravel(values)]
    e = max((d.bit_length() - 1 for _, d in ratios), default=0)
    return [n << (e - d.bit_length() + 1) for n, d in ratios], e


def exact(values) -> list[Fraction]:
    """Return numbers as fractions."""
    return [Fraction(float(v)) for v in np.ravel(values)]


def products(K, A) -> np.ndarray:
    """Return the matrix product of arrays of floats in exact arithmetic, as an array of fractions."""
    K, A = np.asarray(K), np.asarray(A)
    (k, ke), (a, ae) = whole(K), whole(A)
    k, a = np.array(k, object).reshape(K.shape), np.array(a, object).reshape(A.shape)
    return np.array([Fraction(int(x), 1) / (1 << (ke + ae)) for x in np.ravel(k.dot(a))], object).reshape(
        (*K.shape[:-1], *A.shape[1:])
    )


def decimal(x: Fraction) -> Decimal:
    """Return a fraction in decimals, rounded once."""
    return Decimal(x.numerator) / Decimal(x.denominator)


def dual_norm(q: list[Fraction], norm: float) -> Decimal:
    """Return the support function of the weights, at numbers that are not negative."""
    q = [max(x, Fraction(0)) for x in q]
    if norm == 1:
        return decimal(max(q))
    if np.isinf(norm):
        return decimal(sum(q))
    top, r = max(q), Fraction(norm)
    if top == 0:
        return Decimal(0)
    power = decimal(r / (r - 1))
    total = sum(((decimal(x / top).ln() * power).exp() for x in q if x > 0), Decimal(0))
    return decimal(top) * (total.ln() / power).exp()


# ---- losses and conjugates of one sample, C l(f, y) and (C l)*(-a, y); None where the conjugate is infinite


def _entropy(u: Decimal) -> Decimal:
    return u * u.ln() if u > 0 else Decimal(0)


def _softplus(u: Decimal) -> Decimal:
    return u + (1 + (-u).exp()).ln() if u > 0 else (1 + u.exp()).ln()


def value(loss: str, C, f, y, par) -> Decimal:
    """Return the loss of one output; all numbers but the result are fractions."""
    if loss == "hinge":
        return decimal(C * max(0, 1 - y * f))
    if loss == "squared_hinge":
        return decimal(C * max(0, 1 - y * f) ** 2)
    if loss == "squared":
        return decimal(C * (y - f) ** 2)
    if loss == "epsilon_insensitive":
        return decimal(C * max(0, abs(y - f) - par))
    if loss == "huber":
        t = abs(f - y)
        return decimal(C * (t * t / 2 if t <= par else par * (t - par / 2)))
    if loss == "logcosh":
        t = decimal(abs(f - y))
        return decimal(C) * (t + (1 + (-2 * t).exp()).ln() - Decimal(2).ln())
    margin, sigma = (Fraction(0), Fraction(1)) if loss == "logistic" else (Fraction(1), par)
    return decimal(C / sigma) * _softplus(decimal(sigma * (margin - y * f)))


def conjugate(loss: str, C, a, y, par) -> Decimal | None:
    """Return the conjugate at -a."""
    if loss == "hinge":
        return decimal(-y * a) if 0 <= y * a <= C else None
    if loss == "squared_hinge":
        return decimal(a * a / (4 * C) - y * a) if y * a >= 0 else None
    if loss == "squared":
        return decimal(a * a / (4 * C) - y * a)
    if loss == "epsilon_insensitive":
        return decimal(par * abs(a) - y * a) if abs(a) <= C else None
    if loss == "huber":
        return decimal(a * a / (2 * C) - y * a) if abs(a) <= C * par else None
    if loss == "logcosh":
        if abs(a) > C:
            return None
        u = a / C
        return decimal(-y * a) + decimal(C) * (
            _entropy(decimal((1 + u) / 2)) + _entropy(decimal((1 - u) / 2)) + Decimal(2).ln()
        )
    margin, sigma = (Fraction(0), Fraction(1)) if loss == "logistic" else (Fraction(1), par)
    u = y * a / C
    if not 0 <= u <= 1:
        return None
    return decimal(-margin * y * a) + decimal(C / sigma) * (_entropy(decimal(u)) + _entropy(decimal(1 - u)))


def row_value(loss: str, C, f, y, par) -> Decimal:
    """Return the loss of all outputs of a sample of class y."""
    if loss == "multinomial":
        top = max(f)
        return decimal(C) * (sum(((decimal(x - top)).exp() for x in f), Decimal(0)).ln() + decimal(top - f[y]))
    if loss == "squared":
        return sum((value(loss, C, x, Fraction(1 if u == y else -1), par) for u, x in enumerate(f)), Decimal(0))
    margin = min(f[y] - x for u, x in enumerate(f) if u != y)
    if loss == "hinge":
        return decimal(C * max(0, 1 - margin))
    return value(loss, C, margin, Fraction(1), par)


def row_conjugate(loss: str, C, a, y, par) -> Decimal | None:
    """Return the conjugate at minus a row of coefficients."""
    if loss == "squared":
        return sum((conjugate(loss, C, x, Fraction(1 if u == y else -1), par) for u, x in enumerate(a)), Decimal(0))
    if sum(a) != 0 or any(x > 0 for u, x in enumerate(a) if u != y):
        return None
    if loss == "multinomial":
        p = [-x / C + (1 if u == y else 0) for u, x in enumerate(a)]
        return decimal(C) * sum((_entropy(decimal(x)) for x in p), Decimal(0)) if min(p) >= 0 else None
    return conjugate(loss, C, a[y], Fraction(1), par)


# ---- one problem


def draw(seed: int):
    """Return the random numbers of a problem, its loss, storage, and everything else."""
    rng = np.random.default_rng([seed, 15])
    storage = STORAGES[seed % len(STORAGES)]
    losses = [*BINARY, *REGRESSION, *JOINT, "one class"]
    if storage == "features":
        losses = list(LINEAR)
    elif storage == "products":
        losses = ["joint hinge"]
    loss = losses[seed // len(STORAGES) % len(losses)]
    n, p = int(rng.integers(4, 26)), int(rng.integers(1, 6))
    kind = rng.choice(["plain", "plain", "low rank", "copies", "constant", "zero", "same kernels", "one feature"])
    X = rng.normal(size=(n, 4))
    if kind == "copies":
        X[n // 2 :] = X[: n - n // 2]
    Phis = []
    for k in range(p):
        cols = X[:, : 1 + k % 4] if kind != "one feature" else X[:, :1]
        Phi = cols if kind == "low rank" or kind == "one feature" else np.hstack([cols, np.tanh(cols), cols**2])
        if kind == "constant" and k == 0:
            Phi = np.ones((n, 1))
        if kind == "zero" and k == 0:
            Phi = np.zeros((n, 1))
        if kind == "same kernels":
            Phi = X
        Phis.append(Phi)
    score = X[:, 0] + 0.5 * rng.normal(size=n)
    C = float(10.0 ** rng.choice([-3, -1, 0, 1, 3, 6])) * float(rng.uniform(0.5, 2.0))
    scale = float(10.0 ** rng.choice([0, 0, 0, 0, -8, 8]))
    return rng, loss, storage, n, p, Phis, score, C, scale, str(kind)


def check_one(seed: int) -> dict:
    """Solve one problem and compare its gaps.

    Returns a dictionary with what was drawn, the reported gap, the true one and their ratio, zero where both are zero
    and infinite where the coefficients break a constraint.
    """
    rng, loss, storage, n, p, Phis, score, C, scale, kind = draw(seed)
    norm, tol = float(rng.choice(NORMS)), float(rng.choice([1e-2, 1e-3, 1e-3, 1e-6, 1e-9]))
    balanced = bool(rng.random() < 0.7) or loss == "one class"
    cost = C * (np.ones(n) if rng.random() < 0.7 else rng.uniform(0.1, 1.0, n))
    joint = loss.startswith("joint")
    name = loss.removeprefix("joint ")
    par = Fraction(float(rng.choice([0.0, 0.1, 1.0]))) if name == "epsilon_insensitive" else Fraction(10)
    if name == "huber":
        par = Fraction(0.3)
    if joint:
        c = int(rng.integers(2, 5)) if storage != "products" else 3
        y = np.searchsorted(np.quantile(score, np.arange(1, c) / c), score)
        y[:c] = np.arange(c)[: len(y[:c])]
    elif loss in REGRESSION and not (loss == "squared" and rng.random() < 0.5):
        y = float(rng.choice([1.0, 100.0])) * score + float(rng.choice([0.0, 1e3]))
    else:
        y = np.where(score > np.quantile(score, float(rng.choice([0.2, 0.5]))), 1.0, -1.0)
        y[:2] = 1.0, -1.0
    stack = np.array([scale * (Phi @ Phi.T) for Phi in Phis])
    stack = 0.5 * (stack + stack.transpose(0, 2, 1))
    row = {"seed": seed, "loss": loss, "storage": storage, "norm": norm, "C": C, "scale": scale, "n": n, "p": p,
           "kind": kind, "tol": tol, "intercept": balanced}  # fmt: skip
    with warnings.catch_warnings(), localcontext() as context:
        warnings.simplefilter("ignore")
        context.prec, context.Emax, context.Emin = DIGITS, 10**8, -(10**8)
        if storage == "estimator":
            found = _estimated(rng, loss, name, stack, y, cost, C, norm, tol, balanced, par)
        else:
            found = _solved(rng, loss, name, storage, stack, Phis, scale, y, cost, norm, tol, balanced, par)
        if found is None:
            return {**row, "skipped": True}
        weights, a, b, gap, floor, K, classes, solver, status, cost = found
        true = true_gap(name, joint, y, cost, norm, balanced, par, K, classes, weights, a, b, floor)
    ratio = true / gap if gap > 0 else (0.0 if true <= 0 else np.inf)
    return {**row, "solver": solver, "status": status, "reported": gap, "true": true, "ratio": ratio}


def _machine(loss, name, y, cost, balanced, par, size):
    """Return the machine of a loss."""
    if loss == "one class":
        return OneClass(cost / cost.max(), 0.5, size)
    if loss.startswith("joint"):
        c = int(y.max()) + 1
        if name == "hinge":
            return CrammerSinger(y, cost, balanced, c)
        if name == "squared":
            return Ridge(np.where(y[:, None] == np.arange(c), 1.0, -1.0), cost, balanced)
        kind = {"squared_hinge": SquaredHinge(), "logistic": Logistic(), "multinomial": Multinomial()}[name]
        return JointLoss(y, kind, cost, balanced, c)
    if name == "hinge":
        return SVC(y, cost, balanced)
    if name == "squared":
        return Ridge(y, cost, balanced)
    if name == "epsilon_insensitive":
        return SVR(y, cost, float(par), balanced)
    kind = {"squared_hinge": SquaredHinge(), "logistic": Logistic(), "smooth_hinge": SmoothHinge(),
            "huber": Huber(delta=float(par)), "logcosh": LogCosh()}[name]  # fmt: skip
    return Smooth(y, kind, cost, balanced)


def _solved(rng, loss, name, storage, stack, Phis, scale, y, cost, norm, tol, balanced, par):
    """Solve a problem on some storage; return the answer and the exact kernels, shape (p, n, n)."""
    p, n = stack.shape[:2]
    classes = None
    size = float(np.einsum("kii->ki", stack).mean()) or 1.0
    machine = _machine(loss, name, y, cost, balanced, par, size)
    K = [np.array(exact(k), object).reshape(n, n) for k in stack]
    if storage == "dense":
        gram = DenseGram(stack)
    elif storage == "list":
        gram = DenseGram(list(stack))
    elif storage == "float32":
        single = stack.astype(np.float32)
        gram, K = DenseGram(single), [np.array(exact(k), object).reshape(n, n) for k in single]
    elif storage in ("unit diagonal", "centred"):
        s, u = rng.uniform(0.5, 2.0, p), rng.uniform(0.5, 1.5, (p, n))
        A = B = None
        if storage == "centred":
            # K - r 1' - 1 r' + m, which is not negative but for rounding
            scaled = s[:, None, None] * u[:, :, None] * u[:, None, :] * stack
            means = scaled.mean(axis=2)
            A, B = (means - 0.5 * means.mean(axis=1, keepdims=True))[:, :, None], np.ones((p, n, 1))
        gram = DenseGram(stack, AffineForm(s, u, A, B))
        for k in range(p):
            U = np.array(exact(u[k]), object)
            K[k] = Fraction(float(s[k])) * U[:, None] * U * K[k]
            if A is not None:
                v = np.array(exact(A[k, :, 0]), object)
                K[k] = K[k] - v[:, None] - v
    elif storage == "lazy":
        gram = LazyGram(lambda kernels, idx: ((k, stack[k][idx]) for k in kernels), np.einsum("kii->ki", stack),
                        budget=float(rng.choice([0, 1e6])))  # fmt: skip
    elif storage == "memmap":
        disk = memmap_stack(p, n, np.dtype(float))
        disk[:] = stack
        gram = MemmapGram(disk)
    elif storage == "features":
        gram = FeatureGram([DenseSource(np.hstack(Phis), np.repeat(np.arange(p), [P.shape[1] for P in Phis]))],
                           scale=np.full(p, scale))  # fmt: skip
        K = [Fraction(scale) * products(P, P.T) for P in Phis]
        machine = Descent(machine)
    elif storage == "products":
        classes = np.array([np.eye(3), np.ones((3, 3)) + np.diag([1.0, 2.0, 0.5])])
        gram, machine = ProductGram(DenseGram(stack), classes), ProductCrammerSinger(y, cost, balanced, 3)
    else:
        wide = np.zeros((p, n + 3, n + 3))
        keep = rng.permutation(n + 3)[:n]
        wide[np.ix_(np.arange(p), keep, keep)] = stack
        gram = DenseGram(wide).take_samples(keep)
    problem = Problem(gram, machine, mixing_for(norm))
    able = [s for s in REGISTRY if not missing(problem, *get_solver(s).requires)]
    solver = str(rng.choice([*able, "auto", "auto"]))
    solution = solve(problem, solver, tol=tol, max_iter=200)
    return (solution.weights, solution.dual_coef, solution.intercept, solution.gap, machine.floor, K, classes,
            solution.solver, solution.status, machine.hi if loss == "one class" else cost)  # fmt: skip


def _estimated(rng, loss, name, stack, y, cost, C, norm, tol, balanced, par):
    """Fit an estimator to precomputed kernels; return the answer and the exact kernels."""
    n = stack.shape[1]
    weight = None if np.all(cost == cost[0]) else cost / C
    K = stack_kernels(stack)
    common = {"kernels": "precomputed", "normalize": None, "norm": norm, "tol": tol, "max_iter": 200}
    if loss == "one class":
        model = MKLOneClass(nu=0.5, **common).fit(K, sample_weight=weight)
        w = np.ones(n) if weight is None else weight
        size = float((np.einsum("kii->ki", stack) @ (w / w.sum())).max())
        machine = OneClass(w, 0.5, size)
        intercept, cost, floor = float(model.intercept_), machine.hi, machine.floor
    elif loss in REGRESSION and not (loss == "squared" and set(np.unique(y)) == {-1.0, 1.0}):
        own = Huber(delta=float(par)) if name == "huber" else name
        more = {"epsilon": float(par)} if name == "epsilon_insensitive" else {}
        model = MKLRegressor(C=C, loss=own, fit_intercept=balanced, **common, **more).fit(K, y, sample_weight=weight)
        cost = C * (np.ones(n) if weight is None else weight)
        intercept, floor = model.intercept_, _machine(loss, name, y, cost, balanced, par, 1.0).floor
    else:
        own = "multinomial" if name == "multinomial" else name
        model = MKLClassifier(C=C, loss=own, fit_intercept=balanced, **common).fit(K, y, sample_weight=weight)
        cost = C * (np.ones(n) if weight is None else weight)
        intercept = model.intercept_
        if loss.startswith("joint") and len(model.classes_) == 2:
            # two classes are one problem, of the labels -1 and 1
            return None
        floor = _machine(loss, name, y, cost, balanced, par, 1.0).floor
    a = np.zeros((n, *np.shape(model.dual_coef_)[:-1][::-1]))
    a[model.support_] = np.asarray(model.dual_coef_).T
    exactly = [np.array(exact(k), object).reshape(n, n) for k in stack]
    return (model.weights_, a, intercept, float(model.duality_gap_), floor, exactly, None, model.solver_, model.status_,
            cost)  # fmt: skip


def true_gap(name, joint, y, cost, norm, balanced, par, K, classes, weights, a, b, floor) -> float:
    """Return (P - D) / max(|P|, floor) in exact arithmetic, rounded up; infinite where a constraint is broken."""
    a = np.asarray(a)
    A = np.array(exact(a), object).reshape(len(a), -1)
    beta, C, shift = exact(weights), exact(cost), exact(b)
    total = Fraction(1) if name == "one class" else Fraction(0)
    if balanced and any(sum(column) != total for column in A.T):
        return np.inf
    F, q, out = [], [], 0
    for k in K:
        F.append(k.dot(A))
    if classes is None:
        q = [sum((A * f).ravel()) for f in F]
        out = sum(w * f for w, f in zip(beta, F, strict=True))
    else:
        for j, w in enumerate(beta):
            f = F[j // len(classes)].dot(np.array(exact(classes[j % len(classes)]), object).reshape(classes[0].shape))
            q.append(sum((A * f).ravel()))
            out = out + w * f
    out = out + np.array(shift, object)
    primal, dual = decimal(sum(w * x for w, x in zip(beta, q, strict=True)) / 2), Decimal(0)
    for i in range(len(A)):
        if name == "one class":
            primal += decimal(C[i] * max(Fraction(0), -out[i, 0]))
            if not 0 <= A[i, 0] <= C[i]:
                return np.inf
            continue
        if joint:
            loss, other = (
                row_value(name, C[i], list(out[i]), y[i], par),
                row_conjugate(name, C[i], list(A[i]), y[i], par),
            )
        else:
            target = Fraction(float(y[i]))
            loss, other = value(name, C[i], out[i, 0], target, par), conjugate(name, C[i], A[i, 0], target, par)
        if other is None:
            return np.inf
        primal, dual = primal + loss, dual - other
    if name == "one class":
        primal += decimal(shift[0])
    dual -= dual_norm(q, norm) / 2
    return float((primal - dual) / max(abs(primal), Decimal(float(floor))))


def main(arguments: list[str] | None = None) -> int:
    """Check many problems; the exit status is one where a true gap exceeds the reported one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("number", type=int, nargs="?", default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--file", type=Path)
    parser.add_argument("--page", type=Path)
    given = parser.parse_args(arguments)
    rows = []
    if given.file is not None and given.file.exists():
        rows = [json.loads(line) for line in given.file.read_text().splitlines()]
    known = {row["seed"] for row in rows}
    for seed in range(given.seed, given.seed + given.number):
        if seed in known:
            continue
        rows.append(check_one(seed))
        if given.file is not None:
            with given.file.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
    rows = [row for row in rows if "ratio" in row]
    tables = "\n".join(table_by(column, rows) for column in ("loss", "storage", "solver"))
    wrong = [row for row in rows if not row["ratio"] <= 1.0]
    total = f"{len(rows):,} problems, {len(wrong)} whose true gap exceeds the reported one"
    print(tables, *wrong, total, sep="\n")
    if given.page is not None:
        write_section(given.page, f"{INTRODUCTION}{total}.\n\n{tables}")
    return int(bool(wrong))


INTRODUCTION = """`tests/exact.py` solves random and degenerate problems of every loss, norm, solver and storage,
kernels times 1e-8 and 1e8 among them, and computes the primal and dual values of the returned weights, coefficients and
intercepts as whole numbers and fractions. A ratio of the true to the reported gap above one would be a false
certificate. Problems that have not converged report the gap at which they stand.

"""


def table_by(column: str, rows: list[dict]) -> str:
    """Return how many problems there were of each loss, storage or solver, and their largest ratio."""
    some = defaultdict(list)
    for row in rows:
        some[row[column]].append(row)
    lines = [f"| {column} | problems | largest ratio | not converged |", "| --- | --- | --- | --- |"]
    for key, those in sorted(some.items()):
        ratio, left = max(row["ratio"] for row in those), sum(row["status"] != "converged" for row in those)
        shown = f"1 - {1.0 - ratio:.0e}" if 0.999 < ratio < 1.0 else f"{ratio:.4g}"
        lines.append(f"| {key} | {len(those)} | {shown} | {left} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
