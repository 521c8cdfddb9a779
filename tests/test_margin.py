"""Kernel margins, the sets of weights that hold them, and M3K, against general solvers and against laws."""

from __future__ import annotations

import importlib
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from reference_joint import conic_joint, joint_infeasibility, joint_loss, trace_forms
from reference_margin import (
    conic_largest,
    conic_m3k,
    eta_of,
    margin_programme,
    margins_at,
    smallest_programme,
)
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from test_joint import draw

from multikernel import M3KClassifier, M3KClassifierCV, MKLClassifier, TwoStageClassifier, stack_kernels
from multikernel.estimators import m3k
from multikernel.gram.base import Gram
from multikernel.gram.dense import DenseGram
from multikernel.kernels import RBF, Linear
from multikernel.machines.crammer import CrammerSinger
from multikernel.margins import MarginBall, MarginSimplex, SmallestMargins, largest_margin, margin_mixing, margin_table
from multikernel.problem import Problem
from multikernel.solve import solve
from multikernel.theory import kernel_margin, margin_coefficients
from multikernel.twostage import KernelMarginWeights

# general solvers call an answer inexact that is not exact to 1e-10; what they are worth is checked by their own proofs
pytestmark = pytest.mark.filterwarnings("ignore:Solution may be inaccurate")

# problems of test_joint with at least three kernels and a positive margin for every norm: 2 to 6 classes
INDICES = (5, 1, 2, 23, 4)


def views(n=60, c=3, p=5, seed=0):
    """Kernels on views of the samples that know the classes more or less well; unit diagonals."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % c
    stack = []
    for k in range(p):
        X = rng.normal(size=(n, 4)) + 0.5 * k * rng.normal(size=(c, 4))[y]
        stack.append(np.exp(-np.square(X[:, None] - X).sum(axis=2) / 8.0))
    return np.array(stack), y


def table_of(stack, y, c=None, weight=None):
    return margin_table(DenseGram(stack), y, weight, c)


# ---- margins


@pytest.mark.parametrize("weighted", [False, True])
def test_the_coefficients_are_those_of_the_definition(weighted):
    stack, y, *_ = draw(7)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if weighted else None
    eta = margin_coefficients(stack, y, sample_weight=weight)
    assert eta == pytest.approx(eta_of(stack, y, weight=weight), abs=1e-12)
    beta = np.random.default_rng(1).dirichlet(np.ones(len(stack)))
    margins = margins_at(eta_of(stack, y, weight=weight), y, beta)
    assert kernel_margin(stack, y, beta, sample_weight=weight, per_sample=True) == pytest.approx(margins)
    assert kernel_margin(stack, y, beta, sample_weight=weight) == pytest.approx(np.average(margins, weights=weight))


def test_equal_weights_are_the_default_and_labels_may_be_words():
    stack, y = views()
    words = np.array(["c", "a", "b"])[y]
    p = len(stack)
    assert kernel_margin(stack_kernels(stack), words) == pytest.approx(kernel_margin(stack, y, np.full(p, 1 / p)))


def test_a_class_of_one_sample_is_as_similar_to_itself_as_its_diagonal():
    stack, y = views(n=20)
    y[0] = 3
    margins = kernel_margin(stack[:1], y, per_sample=True)
    others = [stack[0][0, y == u].mean() for u in range(3)]
    assert margins[0] == pytest.approx(stack[0][0, 0] - max(others))


class CountingGram(Gram):
    """Counts the rows that are read, kernel by kernel."""

    kind = "counting"

    def __init__(self, stack):
        self.stack, self.read = stack, 0
        self.n_kernels, self.n_samples, self.dtype = len(stack), stack.shape[1], stack.dtype

    def rows(self, idx, kernels=None):
        self.read += len(idx) * (self.n_kernels if kernels is None else len(kernels))
        return self.stack[:, idx] if kernels is None else self.stack[kernels][:, idx]

    def diag(self):
        return np.einsum("kii->ki", self.stack)


def test_the_coefficients_take_one_pass_over_the_kernels():
    stack, y = views()
    gram = CountingGram(stack)
    table = margin_table(gram, y)
    assert gram.read == stack.shape[0] * stack.shape[1]
    assert table.means == pytest.approx(table_of(stack, y).means)


@pytest.mark.parametrize("kind", ["mean", "smallest"])
def test_cuts_lie_above_the_margin_and_touch_it(kind):
    table = table_of(*views(c=4))
    if kind == "smallest":
        table = SmallestMargins(table.means, table.codes, table.weight)
    rng = np.random.default_rng(0)
    for _ in range(20):
        beta, other = rng.dirichlet(np.ones(5)), rng.random(5)
        value, rows, groups = table.cuts(beta)
        assert len(groups) == len(rows) and value == pytest.approx(table.value(beta), abs=1e-14)
        lines = rows.sum(axis=0)[None] if kind == "mean" else rows
        assert (lines @ beta).min() == pytest.approx(value, abs=1e-14)
        assert np.all(lines @ other >= table.value(other) - 1e-12) or kind == "smallest"
        assert (lines @ other).min() >= table.value(other) - 1e-12


def test_sparse_weights_are_added_up_kernel_by_kernel():
    table = table_of(*views(p=7))
    beta = np.eye(7)[6]
    dense = beta + 1e-18
    assert table.nearest(beta)[1] == pytest.approx(table.nearest(dense)[1], abs=1e-15)


# ---- the largest margin


@pytest.mark.parametrize("index", range(12))
def test_the_largest_margin_is_that_of_the_whole_programme(index):
    stack, y, _, _, c, _ = draw(index)
    table = table_of(stack, y, c)
    found = largest_margin(table)
    value, _ = margin_programme(eta_of(stack, y, c), y, None)
    assert found.weights.sum() == pytest.approx(1.0) and np.all(found.weights >= 0)
    assert found.value == pytest.approx(value, abs=2e-7 * table.size)
    assert found.value <= found.bound <= found.value + 1e-9 * table.size
    mean = np.mean(margins_at(eta_of(stack, y, c), y, found.weights))
    assert mean == pytest.approx(found.value, abs=1e-12 * table.size)


@pytest.mark.parametrize("norm", [1.5, 2.0, 4.0])
@pytest.mark.parametrize("index", INDICES)
def test_the_largest_margin_of_other_norms(index, norm):
    stack, y, _, _, c, _ = draw(index)
    table = table_of(stack, y, c)
    found = largest_margin(table, norm)
    assert np.sum(found.weights**norm) == pytest.approx(1.0, abs=1e-7)
    assert found.value == pytest.approx(conic_largest(eta_of(stack, y, c), y, norm), rel=1e-6)


def test_weights_of_two_stages():
    stack, y = views()
    table = table_of(stack, y)
    two = KernelMarginWeights(norm=2.0).fit(stack, y)
    assert two.margin_ == pytest.approx(kernel_margin(stack, y, two.weights_))
    one = KernelMarginWeights().fit(stack_kernels(stack), np.array(["x", "y", "z"])[y])
    assert one.weights_ == pytest.approx(largest_margin(table).weights)
    smallest = KernelMarginWeights(objective="smallest").fit(stack, y)
    assert smallest.margin_ == pytest.approx(smallest_programme(eta_of(stack, y), y), abs=1e-8)
    assert kernel_margin(stack, y, smallest.weights_, per_sample=True).min() == pytest.approx(smallest.margin_)
    # the paper: this alternative is poor, in the mean at least
    assert kernel_margin(stack, y, smallest.weights_) <= one.margin_
    for wrong in ({"norm": 0.5}, {"norm": np.inf}, {"norm": True}, {"objective": "median"}):
        with pytest.raises(ValueError, match="parameter of KernelMarginWeights must be"):
            KernelMarginWeights(**wrong).fit(stack, y)
    trained = TwoStageClassifier("precomputed", weights=KernelMarginWeights()).fit(stack_kernels(stack), y)
    assert trained.score(stack_kernels(stack), y) > 0.8
    weighted = KernelMarginWeights().fit(stack, y, sample_weight=np.arange(60) % 2 + 1.0)
    twice = np.r_[np.arange(60), np.arange(1, 60, 2)]
    repeated = KernelMarginWeights().fit(stack[:, twice][:, :, twice], y[twice])
    assert weighted.weights_ == pytest.approx(repeated.weights_, abs=1e-8)


# ---- the sets


def sets(seed=0):
    table = table_of(*views(seed=seed))
    for norm in (1, 1.5, 2.0):
        largest = largest_margin(table, norm)
        for fraction in (0.3, 0.9, 0.99):
            yield margin_mixing(norm, table, fraction * largest.value, largest), fraction * largest.value


def members(mixing, gamma0, rng, count=30):
    """Points of the set: random ones that have the margin, and points between those that do not and the best."""
    for _ in range(count):
        beta = mixing.base.saturate(rng.dirichlet(np.full(5, 0.5)))
        value, top = mixing.table.value(beta), mixing.largest.value
        t = max(0.0, (gamma0 - value) / (top - value)) if top > value else 1.0
        yield mixing.base.saturate((1 - t) * beta + t * mixing.largest.weights)


def assert_member(mixing, gamma0, beta):
    norm = mixing.norm
    assert np.all(beta >= 0) and np.sum(beta**norm) == pytest.approx(1.0, abs=1e-9)
    assert mixing.table.value(beta) >= gamma0 - 3e-10 * mixing.table.size


@pytest.mark.parametrize("case", range(9))
def test_what_leaves_a_set_is_in_it_and_best(case):
    mixing, gamma0 = list(sets())[case]
    rng = np.random.default_rng(case)
    A = rng.normal(size=(5, 5))
    H, q = A @ A.T, rng.random(5) + 0.05
    others = list(members(mixing, gamma0, rng))
    beta = mixing.start(5)
    value, best = mixing.support(q)
    projected, closed = mixing.project(0.3 * rng.normal(size=5) + 0.2), mixing.closed_form(beta, q)
    step = mixing.newton_step(beta, q, H)
    x = 0.3 * np.random.default_rng(case).normal(size=5)
    near = mixing.project(x)
    relaxed = mixing.closed_form(beta, q, relax=1.6)
    kept = mixing.newton_step(beta, q, H, keep=0.1)
    for each in (beta, best, closed, step, relaxed, kept, mixing.saturate(np.eye(5)[0]), mixing.admit(others[0])):
        assert_member(mixing, gamma0, each)
    for each in (projected, near):
        assert mixing.table.value(each) >= gamma0 - 3e-10 * mixing.table.size
    assert np.all(kept >= 0.1 * beta - 1e-7)
    s = beta**2 * q

    def model(b):
        return float(-0.5 * q @ (b - beta) + 0.5 * (b - beta) @ H @ (b - beta))

    assert best @ q == pytest.approx(value, rel=1e-7)
    for other in others:
        assert other @ q <= value * (1 + 1e-9)
        assert np.sum(s / closed) <= np.sum(s / other) * (1 + 1e-6)
        assert model(step) <= model(other) + 1e-6 or mixing.norm > 1
        assert np.linalg.norm(near - x) <= np.linalg.norm(other - x) + 1e-6
    zero, _ = mixing.support(np.zeros(5))
    assert zero == 0.0
    assert_member(mixing, gamma0, mixing.closed_form(beta, np.zeros(5)))
    assert_member(mixing, gamma0, mixing.saturate(np.zeros(5)))


@pytest.mark.parametrize("fraction", [0.2, 0.8, 1.0])
def test_the_support_function_is_a_linear_programme(fraction):
    stack, y = views(c=4)
    table, eta = table_of(stack, y), eta_of(stack, y)
    largest = largest_margin(table)
    mixing = MarginSimplex(table, fraction * largest.value, largest)
    rng = np.random.default_rng(0)
    for _ in range(5):
        q = rng.random(5)
        value, _ = margin_programme(eta, y, q, fraction * largest.value - 1e-9)
        assert mixing.support(q)[0] == pytest.approx(value, abs=1e-6)


def test_a_set_knows_when_it_is_a_point():
    stack, y = views()
    table = table_of(stack, y)
    largest = largest_margin(table)
    assert MarginSimplex(table, largest.value).is_point
    assert not MarginSimplex(table, 0.99 * largest.value).is_point
    assert MarginBall(2.0, table, largest_margin(table, 2.0).value).is_point
    # two copies of the best kernel: a whole edge of weights has the largest margin
    double = table_of(np.concatenate([stack, stack]), y)
    assert not MarginSimplex(double, largest_margin(double).value).is_point


def test_an_infeasible_margin_is_refused_by_the_sets():
    table = table_of(*views())
    with pytest.raises(ValueError, match=r"gamma0 must be at most 0\.\d+, the largest feasible value"):
        MarginSimplex(table, 2.0)
    with pytest.raises(ValueError, match="must not be negative for weights of norm 2"):
        MarginBall(2.0, table, -0.5)


# ---- M3K


def levels(largest, norm):
    """No margin, and margins more and more of the largest, to which a general solver needs a little distance."""
    rooms = (1.5, 0.5, 0.05, 1e-4) if norm == 1 else (0.9, 0.5, 0.05, 1e-2)
    return [-np.inf] + [largest.value - room * abs(largest.value) for room in rooms]


def run(stack, y, C, c, mixing, solver="auto", tol=1e-6):
    return solve(Problem(DenseGram(stack), CrammerSinger(y, C, False, c), mixing), solver, tol=tol)


def assert_solved(solution, stack, y, C, norm, gamma0, c):
    """The set A, the margin, the value recomputed, the optimum, and the bounds on both sides of it."""
    eta, A, beta = eta_of(stack, y, c), solution.dual_coef, solution.weights
    size = np.abs(eta).max()
    assert solution.status == "converged" and solution.gap <= 1e-6
    assert joint_infeasibility(A, y, C, False) < 1e-9
    assert np.sum(beta**norm) == pytest.approx(1.0, abs=1e-9)
    assert np.mean(margins_at(eta, y, beta)) >= gamma0 - 2e-10 * size
    f = np.tensordot(beta, np.array([K @ A for K in stack]), 1)
    upper = 0.5 * float(beta @ trace_forms(stack, A)) + joint_loss(f, y, C)
    assert upper == pytest.approx(solution.upper, rel=1e-9)
    optimum = conic_m3k(stack, y, C, norm, gamma0, c)
    assert solution.upper == pytest.approx(optimum, rel=1e-5)
    assert solution.lower <= optimum * (1 + 1e-6) and solution.upper >= optimum * (1 - 1e-6)


@pytest.mark.parametrize("level", range(5))
@pytest.mark.parametrize("norm", [1.0, 2.0])
@pytest.mark.parametrize("index", INDICES)
def test_agrees_with_the_conic_solver(index, norm, level):
    stack, y, C, _, c, _ = draw(index, n=24)
    table = table_of(stack, y, c)
    largest = largest_margin(table, norm)
    gamma0 = levels(largest, norm)[level]
    if norm > 1 and (-np.inf < gamma0 < 0 or largest.value <= 0):
        pytest.skip("refused: the set would hold weights of zero")
    plain = gamma0 == -np.inf
    mixing = m3k.mixing_for(norm) if plain else margin_mixing(norm, table, gamma0, largest)
    assert_solved(run(stack, y, C, c, mixing), stack, y, C, norm, gamma0, c)


@pytest.mark.parametrize("norm", [1.0, 2.0])
@pytest.mark.parametrize("index", INDICES)
def test_at_the_largest_margin_the_problem_has_one_kernel(index, norm):
    stack, y, C, _, c, _ = draw(index, n=24)
    largest = largest_margin(table_of(stack, y, c), norm)
    if norm > 1 and largest.value <= 0:
        pytest.skip("refused: the set would hold weights of zero")
    mixing = margin_mixing(norm, table_of(stack, y, c), largest.value, largest)
    solution = run(stack, y, C, c, mixing)
    mixed = np.tensordot(solution.weights, stack, 1)[None]
    assert solution.upper == pytest.approx(conic_joint(mixed, y, C, 1, c, fit_intercept=False), rel=1e-5)
    assert np.mean(margins_at(eta_of(stack, y, c), y, solution.weights)) >= largest.value - 2e-10 * mixing.table.size


@pytest.mark.parametrize("norm", [1.0, 2.0])
@pytest.mark.parametrize(
    "solver", ["newton", "silp", "sip", "level", "alternating", "qcqp", "qcqp-compact", "silp-compact"]
)
def test_every_solver_reaches_the_optimum(solver, norm):
    if "silp" in solver and norm == 2:
        pytest.skip("the solver is for polyhedra")
    stack, y, C, _, c, _ = draw(2, n=24)
    table = table_of(stack, y, c)
    largest = largest_margin(table, norm)
    for fraction in (0.95, 0.6):
        gamma0 = fraction * largest.value
        solution = run(stack, y, C, c, margin_mixing(norm, table, gamma0, largest), solver)
        assert_solved(solution, stack, y, C, norm, gamma0, c)


def test_a_solver_that_does_not_apply_says_who_needs_what():
    stack, y = views()
    with pytest.raises(ValueError, match=r"The solver 'simplemkl' .*needs .*mixing\.reduced_gradient.*MarginSimplex"):
        M3KClassifier("precomputed", solver="simplemkl").fit(stack_kernels(stack), y)


def fit(stack, y, **options):
    return M3KClassifier("precomputed", normalize=None, tol=1e-6, **options).fit(stack_kernels(stack), y)


@pytest.mark.parametrize("c", [2, 3, 5])
def test_the_margin_only_takes_away(c):
    stack, y = views(c=c)
    joint = MKLClassifier(
        "precomputed", multiclass="joint", fit_intercept=False, normalize=None, tol=1e-6, C=2.0 if c == 2 else 1.0
    ).fit(stack_kernels(stack), y)
    # two classes: joint(K, C) = 1/2 binary(K, 2 C)
    optimum = joint.objective_ / (2.0 if c == 2 else 1.0)
    free = fit(stack, y, gamma0=-np.inf)
    assert free.objective_ == pytest.approx(optimum, rel=1e-5) and free.gamma0_ == -np.inf
    values = [fit(stack, y, gamma0_fraction=fraction).objective_ for fraction in (0.0, 0.6, 0.9, 1.0)]
    assert np.all(np.diff(values) >= -2e-6 * values[0]) and values[0] >= optimum * (1 - 2e-6)


def test_the_largest_margin_solves_the_linear_programme():
    stack, y = views(c=4, seed=3)
    model = fit(stack, y)
    value, _ = margin_programme(eta_of(stack, y), y, None)
    assert kernel_margin(stack, y, model.weights_) == pytest.approx(value, abs=1e-6)
    assert model.gamma0_ == model.gamma0_max_ == pytest.approx(value, abs=1e-6)
    assert model.margin_ == pytest.approx(kernel_margin(stack, y, model.weights_))
    again = fit(stack, y, gamma0=model.gamma0_max_)
    assert again.weights_ == pytest.approx(model.weights_, abs=1e-6)


def test_copies_of_kernels_change_nothing_but_the_weights():
    stack, y = views()
    one, two = (fit(each, y, gamma0_fraction=0.9) for each in (stack, np.concatenate([stack, stack])))
    assert two.objective_ == pytest.approx(one.objective_, rel=1e-5)
    assert two.gamma0_max_ == pytest.approx(one.gamma0_max_)


def test_two_classes_have_one_output_and_the_joint_scale():
    stack, y = views(c=2)
    model = fit(stack, np.array(["no", "yes"])[y], gamma0_fraction=0.9)
    scores = model.decision_function(stack_kernels(stack))
    assert scores.shape == (60,) and model.dual_coef_.shape[0] == 2
    assert np.array_equal(model.predict(stack_kernels(stack)), np.where(scores > 0, "yes", "no"))
    assert model.intercept_ == pytest.approx(np.zeros(2))


def test_sample_weights_count_as_repetitions_in_the_margins_too():
    stack, y = views()
    weight = np.where(np.arange(60) % 3 == 0, 2.0, 1.0)
    weight[5] = 0.0
    rows = np.repeat(np.arange(60), weight.astype(int))
    one = M3KClassifier("precomputed", normalize=None, tol=1e-7, gamma0_fraction=0.95).fit(
        stack_kernels(stack), y, sample_weight=weight
    )
    two = fit(np.ascontiguousarray(stack[:, rows][:, :, rows]), y[rows], gamma0_fraction=0.95)
    assert one.gamma0_ == pytest.approx(two.gamma0_, rel=1e-9)
    assert one.objective_ == pytest.approx(two.objective_, rel=1e-5)
    assert one.weights_ == pytest.approx(two.weights_, abs=1e-3)


@pytest.mark.parametrize("options", [{}, {"gram": "lazy"}, {"norm": 2.0}, {"solver": "level"}])
def test_the_papers_normalisation_pickles_and_other_storages(options):
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 25)
    X = np.hstack([np.repeat(np.eye(3), 25, axis=0) + 0.4 * rng.normal(size=(75, 3)), rng.normal(size=(75, 2))])
    X.flags.writeable = False
    kernels = [("useful", Linear(), [0, 1, 2]), ("mixed", RBF(), slice(None)), ("noise", RBF(), [3, 4])]
    model = M3KClassifier(kernels, normalize=["center", "cosine"], gamma0_fraction=0.8, **options).fit(X, y)
    assert model.status_ == "converged" and model.score(X, y) > 0.85
    assert model.margin_ >= model.gamma0_ - 1e-9
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.predict(X), model.predict(X))
    assert "_samples" not in vars(model) and "_margins" not in vars(model)
    dense = M3KClassifier(kernels, normalize=["center", "cosine"], gamma0_fraction=0.8, norm=options.get("norm", 1.0))
    assert dense.fit(X, y).objective_ == pytest.approx(model.objective_, rel=2e-3)


def test_single_precision_stays_and_nothing_is_written():
    stack, y = views()
    small = stack.astype(np.float32)
    small.flags.writeable = False
    model = M3KClassifier("precomputed", normalize=None, gamma0_fraction=0.9).fit(stack_kernels(small), y)
    assert model.gram_.dtype == "float32"
    assert model.objective_ == pytest.approx(fit(stack, y, gamma0_fraction=0.9).objective_, rel=2e-3)


def test_iterations_are_told_and_an_interrupted_fit_keeps_its_best_model():
    stack, y = views()
    rows = []

    def stop(row):
        rows.append(row)
        if len(rows) == 3:
            raise KeyboardInterrupt

    model = M3KClassifier("precomputed", normalize=None, tol=1e-9, gamma0_fraction=0.9, callback=stop)
    with pytest.warns(ConvergenceWarning, match="M3KClassifier was interrupted"):
        model.fit(stack_kernels(stack), y)
    assert model.status_ == "interrupted" and model.margin_ >= model.gamma0_ - 1e-9
    assert rows[0]["decision_function"](stack_kernels(stack)).shape == (60, 3)
    assert fit(stack, y, gamma0_fraction=0.9).objective_ <= model.objective_ * (1 + 1e-6)


def test_a_class_of_one_sample_takes_part():
    stack, y = views()
    y[0] = 3
    model = fit(stack, y, gamma0_fraction=0.9)
    assert len(model.classes_) == 4 and model.status_ == "converged"


# ---- bad input

SENTENCES = [
    ({"gamma0": np.nan}, "The 'gamma0' parameter of M3KClassifier must be 'max', a number or -inf. Got nan instead."),
    ({"gamma0": np.inf}, "The 'gamma0' parameter of M3KClassifier must be 'max', a number or -inf. Got inf instead."),
    ({"gamma0": "large"}, "must be 'max', a number or -inf. Got 'large' instead."),
    ({"gamma0": 0.1, "gamma0_fraction": 0.5}, "must be 'max' where 'gamma0_fraction' is given. Got 0.1 instead."),
    ({"gamma0_fraction": 1.5}, "must be None or a number from 0 to 1. Got 1.5 instead."),
    ({"norm": np.inf}, "The 'norm' parameter of M3KClassifier must be a finite number of at least 1. Got inf instead."),
    ({"norm": 2.0, "gamma0": -0.1}, "would hold weights of zero. Got norm=2 with gamma0=-0.1 instead."),
]


@pytest.mark.parametrize(("options", "sentence"), SENTENCES, ids=lambda value: str(value)[:30])
def test_a_wrong_parameter_is_named(options, sentence):
    stack, y = views(n=20)
    with pytest.raises(ValueError) as error:
        fit(stack, y, **options)
    assert str(error.value).endswith(sentence)


def test_an_infeasible_margin_names_the_largest():
    stack, y = views(n=20)
    top, _ = margin_programme(eta_of(stack, y), y, None)
    with pytest.raises(ValueError, match="'gamma0' parameter of M3KClassifier must be at most") as error:
        fit(stack, y, gamma0=1.01 * top)
    assert float(str(error.value).split("at most ")[1].split(",")[0]) == pytest.approx(top, rel=1e-6)


def test_margins_that_are_all_negative():
    # most samples are most similar to the other class: seven at 1, one at 2
    y, x = np.append(np.zeros(7, int), 1), np.append(np.ones(7), 2.0)
    stack = np.array([np.outer(x, x), np.outer(x, x) + 0.1 * np.eye(8)])
    assert kernel_margin(stack, y, [1.0, 0.0]) == pytest.approx(-5.0 / 8.0)
    with pytest.raises(ValueError, match="norm=2 with kernels of which no mix has a positive margin"):
        fit(stack, y, norm=2.0)
    with pytest.raises(ValueError, match="must be 1 where no mix of the kernels has a positive margin"):
        KernelMarginWeights(norm=2.0).fit(stack, y)
    model = fit(stack, y, gamma0_fraction=0.5)
    assert model.gamma0_ == pytest.approx(1.5 * model.gamma0_max_) and model.gamma0_max_ < 0


def test_one_class_is_refused():
    stack, y = views(n=20)
    with pytest.raises(ValueError, match="needs samples of at least 2 classes"):
        fit(stack, np.zeros(20))
    with pytest.raises(ValueError, match=r"at least 2 classes\. Got 1 instead"):
        kernel_margin(stack, np.zeros(20))
    with pytest.raises(ValueError, match="one class for each of 20 samples"):
        kernel_margin(stack, y[:5])
    with pytest.raises(ValueError, match="5 non-negative numbers"):
        kernel_margin(stack, y, [1.0, -1.0, 0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="20 positive numbers"):
        kernel_margin(stack, y, sample_weight=np.zeros(20))


# ---- cross-validation


def test_the_search_chooses_as_a_grid_search_and_shares_the_margins(monkeypatch):
    stack, y = views(n=60, seed=4)
    counted = []
    original = m3k.margin_table
    monkeypatch.setattr(m3k, "margin_table", lambda *args: counted.append(1) or original(*args))
    folds = StratifiedKFold(3)
    grid = {"C": [0.05, 1.0], "gamma0_fraction": [0.3, 0.9, 1.0]}
    base = M3KClassifier("precomputed", normalize=None, tol=1e-5)
    search = M3KClassifierCV(
        "precomputed", normalize=None, tol=1e-5, Cs=grid["C"], gamma0_fractions=grid["gamma0_fraction"], cv=folds
    ).fit(stack_kernels(stack), y)
    # one table a fold, and one for the model that is kept
    assert len(counted) == 4
    rival = GridSearchCV(clone(base), grid, cv=folds).fit(stack_kernels(stack), y)
    assert search.cv_results_["mean_test_score"] == pytest.approx(rival.cv_results_["mean_test_score"], abs=0.02)
    assert search.best_params_ == rival.best_params_
    assert search.margin_ >= search.gamma0_ - 1e-9
    assert search.gamma0_fraction_ == search.best_params_["gamma0_fraction"]
    assert search.weights_path_.shape == (3, 6, 5)


def test_wrong_axes_are_named():
    stack, y = views(n=20)
    with pytest.raises(ValueError, match="'gamma0_fractions' parameter of M3KClassifierCV must be None or a list"):
        M3KClassifierCV("precomputed", gamma0_fractions=[0.5, 2.0]).fit(stack_kernels(stack), y)
    with pytest.raises(ValueError, match="must be 'max' where 'gamma0_fractions' are given"):
        M3KClassifierCV("precomputed", gamma0=0.1, gamma0_fractions=[0.5]).fit(stack_kernels(stack), y)


# ---- benchmarks


def test_the_benchmarks_run_on_small_draws(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent / "benchmarks"))
    for name in ("run", "workloads", "joint", "tasks", "margin"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    margin = importlib.import_module("margin")
    margin.passes("toy", (60, 3, 4), [(1.0, 1e-3, 1e9), (0.8, 1e-3, 1e9)], repeats=1)
    margin.passes("images", (60, 6, 4), [(0.9, 1e-2, 1e9)], repeats=1)
    monkeypatch.setattr(margin, "report", lambda *args: print("weights ok"))
    margin.weights({"toy": (60, 3, 4), "sequences": (60, 3, 4)}, repeats=1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 9 and all(line.endswith("ok") for line in lines)


def test_the_search_refuses_norms_that_the_estimator_refuses():
    X, y = np.random.default_rng(0).normal(size=(30, 3)), np.arange(30) % 3
    with pytest.raises(ValueError, match=r"'norms' parameter .* each is a finite number of at least 1. Got inf"):
        M3KClassifierCV(norms=[1.0, np.inf]).fit(X, y)
    with pytest.raises(ValueError, match=r"The 'cv' parameter of M3KClassifierCV must be .* Got \[\] instead"):
        M3KClassifierCV(Cs=[1.0, 2.0], cv=[]).fit(X, y)
