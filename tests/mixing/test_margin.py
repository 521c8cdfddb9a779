"""Kernel margins and the sets of weights that hold them, against general solvers and against laws."""

import numpy as np
import pytest
from problems_joint import draw
from problems_margin import INDICES, inexact, table_of, views
from reference_margin import conic_largest, eta_of, margin_programme, margins_at, smallest_programme

from multikernel import TwoStageClassifier, stack_kernels
from multikernel.estimators.baselines import KernelMarginWeights
from multikernel.gram.dense import DenseGram
from multikernel.mixing import (
    SmallestMargins,
    largest_margin,
    margin_mixing,
    margin_table,
)
from multikernel.theory import kernel_margin, margin_coefficients

pytestmark = inexact


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


class CountingGram(DenseGram):
    """Counts the rows that products with the kernels read, kernel by kernel."""

    read = 0

    def apply(self, v, kernels=None):
        self.read += np.count_nonzero(v) * (self.n_kernels if kernels is None else len(kernels))
        return super().apply(v, kernels)


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
        beta = mixing.base.scale_to_boundary(rng.dirichlet(np.full(5, 0.5)))
        value, top = mixing.table.value(beta), mixing.largest.value
        t = max(0.0, (gamma0 - value) / (top - value)) if top > value else 1.0
        yield mixing.base.scale_to_boundary((1 - t) * beta + t * mixing.largest.weights)


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
    if mixing.norm > 1:
        # the model must fall in every weight, or its minimum is inside the ball: |H (b - beta)| < min q / 2
        H *= 0.01 / np.linalg.norm(H, 2)
    others = list(members(mixing, gamma0, rng))
    beta = mixing.start(5)
    value, best = mixing.support(q)
    closed, step = mixing.closed_form(beta, q), mixing.newton_step(beta, q, H)
    relaxed = mixing.closed_form(beta, q, relax=1.6)
    for each in (
        beta,
        best,
        closed,
        step,
        relaxed,
        mixing.scale_to_boundary(np.eye(5)[0]),
        mixing.make_feasible(others[0]),
    ):
        assert_member(mixing, gamma0, each)
    s = beta**2 * q

    def model(b):
        return float(-0.5 * q @ (b - beta) + 0.5 * (b - beta) @ H @ (b - beta))

    assert best @ q == pytest.approx(value, rel=1e-7)
    for other in others:
        assert other @ q <= value * (1 + 1e-9)
        assert np.sum(s / closed) <= np.sum(s / other) * (1 + 1e-6)
        assert model(step) <= model(other) + 1e-6
    zero, _ = mixing.support(np.zeros(5))
    assert zero == 0.0
    assert_member(mixing, gamma0, mixing.closed_form(beta, np.zeros(5)))
    assert_member(mixing, gamma0, mixing.scale_to_boundary(np.zeros(5)))


@pytest.mark.parametrize("fraction", [0.2, 0.8, 1.0])
def test_the_support_function_is_a_linear_programme(fraction):
    stack, y = views(c=4)
    table, eta = table_of(stack, y), eta_of(stack, y)
    largest = largest_margin(table)
    mixing = margin_mixing(1, table, fraction * largest.value, largest)
    rng = np.random.default_rng(0)
    for _ in range(5):
        q = rng.random(5)
        value, _ = margin_programme(eta, y, q, fraction * largest.value - 1e-9)
        assert mixing.support(q)[0] == pytest.approx(value, abs=1e-6)


def test_a_set_knows_when_it_is_a_point():
    stack, y = views()
    table = table_of(stack, y)
    largest = largest_margin(table)
    assert margin_mixing(1, table, largest.value).is_point
    assert not margin_mixing(1, table, 0.99 * largest.value).is_point
    assert margin_mixing(2.0, table, largest_margin(table, 2.0).value).is_point
    # two copies of the best kernel: a whole edge of weights has the largest margin
    double = table_of(np.concatenate([stack, stack]), y)
    assert not margin_mixing(1, double, largest_margin(double).value).is_point


def test_an_infeasible_margin_is_refused_by_the_sets():
    table = table_of(*views())
    with pytest.raises(ValueError, match=r"gamma0 must be at most 0\.\d+, the largest feasible value"):
        margin_mixing(1, table, 2.0)
    with pytest.raises(ValueError, match="must not be negative for weights of norm 2"):
        margin_mixing(2.0, table, -0.5)


@pytest.mark.parametrize("value", [1.0, 0.3, 7e-9, 1e12, -3e-5])
def test_rounding_of_constant_kernels_is_no_margin(value):
    n = 301
    for y in (np.arange(n) % 3, (np.arange(n) > 40).astype(int)):
        weight = np.random.default_rng(0).uniform(0.5, 2.0, n)
        table = margin_table(DenseGram(np.full((2, n, n), value)), y, weight)
        assert table.size == 1.0 and table.value(np.array([0.4, 0.6])) == 0.0
        # another kernel is left as it is
        both = margin_table(DenseGram(np.stack([np.full((n, n), value), np.eye(n)])), y, weight)
        alone = margin_table(DenseGram(np.eye(n)[None]), y, weight)
        assert both.size == alone.size and both.value(np.array([0.5, 0.5])) == pytest.approx(
            0.5 * alone.value(np.ones(1))
        )
