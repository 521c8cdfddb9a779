"""Weights learned before the predictor: against general solvers, against laws, on every storage."""

import pickle

import numpy as np
import pytest
from reference_baselines import alignment_problem, centred, solve_alignf, solve_binary_mkl
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import cross_val_score

from multikernel import TwoStageClassifier, stack_kernels
from multikernel.estimators.baselines import (
    AlignFWeights,
    AlignWeights,
    BestSingleKernel,
    BinaryMKLWeights,
    FHeuristicWeights,
    PWMKWeights,
    UniformWeights,
)
from multikernel.estimators.baselines import (
    kernel_products as products,
)
from multikernel.estimators.baselines.alignment_weights import nonnegative_minimiser
from multikernel.estimators.baselines.each_kernel import each_kernel
from multikernel.estimators.baselines.kernel_products import kernel_products
from multikernel.estimators.baselines.pair_draws import AllPairs, draw_pairs
from multikernel.estimators.baselines.pair_weights import ascend_pairs
from multikernel.gram.dense import AffineForm, DenseGram
from multikernel.gram.lazy import LazyGram
from multikernel.gram.memmap import MemmapGram, memmap_stack
from multikernel.gram.subset import SubsetGram
from multikernel.kernels import Linear

N = 40
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, 5))
Y = np.where(X[:, 0] + 0.5 * X[:, 1] + 0.3 * RNG.normal(size=N) > 0, "b", "a")
THREE = np.digitize(X[:, 0], [-0.5, 0.5])
NUMBERS = X[:, 0] - X[:, 1] ** 2


def gaussian(columns, width):
    distance = np.square(X[:, None, columns] - X[None, :, columns]).sum(axis=2)
    return np.exp(-distance / width)


STACK = np.array([gaussian([0, 1], 1.0), gaussian([2, 3], 2.0), X @ X.T, gaussian([0], 5.0)])

STORAGES = {
    "array": lambda K: DenseGram(K),
    "list": lambda K: DenseGram(list(K)),
    "two threads": lambda K: DenseGram(K, n_threads=2),
    "read-only": lambda K: DenseGram(_frozen(K)),
    "scaled": lambda K: DenseGram(
        K / np.array([2.0, 3.0, 0.5, 1.0])[:, None, None], AffineForm(np.array([2.0, 3, 0.5, 1]))
    ),
    "unit factors": lambda K: DenseGram(K, AffineForm(np.ones(len(K)), u=np.ones(K.shape[:2]))),
    "subset": lambda K: SubsetGram(DenseGram(np.pad(K, ((0, 0), (3, 2), (3, 2)))), np.arange(3, N + 3)),
    "lazy": lambda K: _lazy(K),
    "lazy, two threads": lambda K: _lazy(K, n_threads=2),
    "memmap": lambda K: _mapped(K),
}
RULES = [
    UniformWeights(),
    AlignWeights(),
    AlignFWeights(),
    FHeuristicWeights(),
    BestSingleKernel(cv=2),
    PWMKWeights(cv=2, threshold=0.4),
    BinaryMKLWeights(max_pairs=300),
    BinaryMKLWeights(max_pairs=None, reg=0.1),
]


def _frozen(K):
    view = K.view()
    view.flags.writeable = False
    return view


def _lazy(K, **options):
    return LazyGram(lambda kernels, idx: ((k, K[k, idx]) for k in kernels), np.diagonal(K, axis1=1, axis2=2), **options)


def _mapped(K):
    file = memmap_stack(*K.shape[:2], K.dtype)
    file[:] = K
    return MemmapGram(file)


# ---- products


@pytest.mark.loops
@pytest.mark.parametrize("tile", [1 << 20, 1 << 12])
@pytest.mark.parametrize("storage", STORAGES)
def test_products_of_centred_kernels_are_those_of_centred_copies(storage, tile, monkeypatch):
    monkeypatch.setattr(products, "BLOCK_BYTES", tile)
    T = np.where(Y == "b", 1.0, -1.0)[:, None]
    M, a = alignment_problem(STACK, T)
    found = kernel_products(STORAGES[storage](STACK), T - T.mean(), np.ones(N))
    np.testing.assert_allclose(found.M / found.unit**2, M, rtol=1e-11)
    np.testing.assert_allclose(found.a / found.unit, a, rtol=1e-10)
    norms = kernel_products(STORAGES[storage](STACK), T - T.mean(), np.ones(N), cross=False)
    np.testing.assert_allclose(norms.M / norms.unit**2, np.diag(M), rtol=1e-11)


# powers of two: entries and results are the same digits
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [2.0**-900, 2.0**-540, 2.0**540, 2.0**1000])
@pytest.mark.parametrize("weights", [AlignFWeights(), AlignWeights(), FHeuristicWeights()], ids=str)
def test_the_scale_of_the_kernels_does_not_change_alignments(weights, scale):
    expected = clone(weights).fit(STACK, Y)
    found = clone(weights).fit(scale * STACK, Y)
    np.testing.assert_array_equal(found.weights_, expected.weights_)
    assert np.ptp(expected.weights_) > 0


@pytest.mark.filterwarnings("error")
def test_normalised_kernels_of_large_samples_have_the_weights_of_small_ones():
    kernels = [("first", Linear(), [0, 1]), ("second", Linear(), [2, 3])]
    small, large = (TwoStageClassifier(kernels).fit(scale * X, Y) for scale in (1.0, 2.0**500))
    np.testing.assert_allclose(large.weights_, small.weights_, rtol=1e-12)


def test_sample_weights_and_repetition_agree_in_products():
    weight = RNG.integers(1, 4, N).astype(float)
    again = np.repeat(np.arange(N), weight.astype(int))
    T = NUMBERS[:, None] - np.average(NUMBERS, weights=weight)
    one = kernel_products(DenseGram(STACK), T, weight)
    two = kernel_products(DenseGram(np.ascontiguousarray(STACK[:, again][:, :, again])), T[again], np.ones(len(again)))
    np.testing.assert_allclose(one.M, two.M, rtol=1e-11)
    np.testing.assert_allclose(one.a, two.a, rtol=1e-10)


def test_nearly_constant_float32_kernels_keep_their_digits():
    K = (1000.0 + STACK).astype(np.float32)
    T = NUMBERS[:, None] - NUMBERS.mean()
    M, _ = alignment_problem(K, T)
    found = kernel_products(DenseGram(K), T, np.ones(N))
    np.testing.assert_allclose(found.M / found.unit**2, M, rtol=1e-9)


# ---- alignment


@pytest.mark.parametrize("y", [Y, THREE, NUMBERS], ids=["two classes", "three", "numbers"])
def test_alignf_agrees_with_a_quadratic_programme(y):
    if y is Y:
        T = np.where(Y == "b", 1.0, -1.0)[:, None]
    else:
        T = np.equal.outer(THREE, np.arange(3)).astype(float) if y is THREE else NUMBERS[:, None]
    M, a = alignment_problem(STACK, T)
    value, v = solve_alignf(M, a)
    found = AlignFWeights().fit(STACK, y)
    assert found.objective_ == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(found.weights_, v / np.linalg.norm(v), atol=1e-5)
    assert found.weights_.min() >= 0
    assert np.linalg.norm(found.weights_) == pytest.approx(1.0, abs=1e-12)
    mix = np.tensordot(found.weights_, [centred(K) for K in STACK], 1)
    target = centred(T @ T.T)
    expected = np.sum(mix * target) / (np.linalg.norm(mix) * np.linalg.norm(target))
    assert found.alignment_ == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_the_nonnegative_programme_on_random_and_singular_matrices(seed):
    rng = np.random.default_rng(seed)
    # products of positive semidefinite kernels are not negative
    B = rng.random((5, 8)) * rng.random(8) ** 4
    M = (B @ B.T)[np.ix_([0, 1, 2, 3, 4, 0, 1], [0, 1, 2, 3, 4, 0, 1])]
    a = M @ rng.normal(size=7)
    v = nonnegative_minimiser(M, a)
    assert v.min() >= 0
    value = v @ M @ v - 2 * v @ a
    assert value == pytest.approx(solve_alignf(M, a)[0], rel=1e-8, abs=1e-8 * np.trace(M))


def test_collinear_kernels_never_get_the_negative_weights_of_the_inverse():
    # nearly copies of the first kernel: the unconstrained inverse goes negative, by a lot
    noise = [np.outer(z, z) for z in np.random.default_rng(1).normal(size=(3, N))]
    K = np.stack([STACK[0], *[STACK[0] + 1e-3 * E for E in noise], STACK[1]])
    M, a = alignment_problem(K, np.where(Y == "b", 1.0, -1.0)[:, None])
    assert np.linalg.solve(M, a).min() < -0.1 * np.linalg.solve(M, a).max()
    found = AlignFWeights().fit(K, Y)
    assert found.weights_.min() >= 0
    assert found.objective_ == pytest.approx(solve_alignf(M, a)[0], rel=1e-8)


def test_exact_copies_share_their_weight_whatever_their_scale():
    once = AlignFWeights().fit(STACK, Y)
    twice = AlignFWeights().fit(np.concatenate([STACK, STACK[:1]]), Y)
    assert twice.objective_ == pytest.approx(once.objective_, rel=1e-9)
    assert twice.weights_[0] == pytest.approx(twice.weights_[4], rel=1e-3)
    scaled = AlignFWeights().fit(STACK * np.array([1e6, 1.0, 1e-6, 1.0])[:, None, None], Y)
    np.testing.assert_allclose(
        scaled.weights_ * [1e6, 1.0, 1e-6, 1.0] / (scaled.weights_[3] or 1), once.weights_ / once.weights_[3], atol=1e-7
    )


def test_align_is_the_cosine_with_the_target_and_fheuristic_the_one_before_centring():
    T = np.where(Y == "b", 1.0, -1.0)
    target = np.outer(T, T)

    def cosine(K, L):
        return np.sum(K * L) / (np.linalg.norm(K) * np.linalg.norm(L))

    align, plain = AlignWeights().fit(STACK, Y), FHeuristicWeights().fit(STACK, Y)
    expected = np.array([cosine(centred(K), centred(target)) for K in STACK])
    np.testing.assert_allclose(align.alignments_, expected, rtol=1e-10)
    np.testing.assert_allclose(align.weights_, expected / expected.sum(), rtol=1e-10)
    np.testing.assert_allclose(plain.alignments_, [cosine(K, target) for K in STACK], rtol=1e-10)
    assert plain.weights_.sum() == pytest.approx(1.0)


def test_kernels_without_any_alignment_get_equal_weights():
    flat = np.ones((3, N, N))
    assert AlignFWeights().fit(flat, Y).weights_ == pytest.approx(np.full(3, 1 / np.sqrt(3)))
    assert AlignWeights().fit(flat, Y).weights_ == pytest.approx(np.full(3, 1 / 3))


# ---- BinaryMKL


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("reg", [1e-3, 0.1])
def test_binary_mkl_on_all_pairs_agrees_with_a_conic_solver(reg, balanced):
    K = np.array([centred(each) for each in STACK])[:, :25, :25]
    value, mu = solve_binary_mkl(K, Y[:25], reg, balanced)
    streamed = BinaryMKLWeights(reg=reg, balanced=balanced, max_pairs=None, tol=1e-8, max_iter=20_000).fit(K, Y[:25])
    assert streamed.objective_ == pytest.approx(value, rel=1e-7)
    np.testing.assert_allclose(streamed.mu_, mu, atol=2e-3 * mu.max())
    # a draw of more pairs than there are takes them all
    drawn = BinaryMKLWeights(reg=reg, balanced=balanced, max_pairs=10_000, tol=1e-8, max_iter=20_000).fit(K, Y[:25])
    assert drawn.n_pairs_ == streamed.n_pairs_ == 25 * 26 // 2
    assert drawn.objective_ == pytest.approx(value, rel=1e-7)


@pytest.mark.loops
def test_drawn_pairs_are_different_balanced_and_read_from_the_kernels():
    from multikernel.estimators.baselines.weights import TargetValues

    targets = TargetValues(THREE, 3, np.ones(N))
    pairs = draw_pairs(DenseGram(STACK), targets, 200, True, np.random.RandomState(0))
    assert len(pairs) == 200
    assert np.sum(pairs.labels > 0) == 100
    assert pairs.costs.sum() == pytest.approx(1.0)
    values = {tuple(z) for z in pairs.Z}
    every = {(*STACK[:, i, j], float(np.where(THREE[i] == THREE[j], 1, -1))) for i in range(N) for j in range(i, N)}
    assert len(values) > 190
    assert {(*z, t) for z, t in zip(pairs.Z, pairs.labels, strict=True)} <= every
    blocks = list(AllPairs(_lazy(STACK), targets, True))
    assert sum(len(costs) for _, _, costs, _ in blocks) == N * (N + 1) // 2
    assert sum(costs.sum() for _, _, costs, _ in blocks) == pytest.approx(1.0)
    for Z, labels, _, _ in blocks:
        assert {(*z, t) for z, t in zip(Z, labels, strict=True)} <= every


@pytest.mark.loops
def test_a_pair_moves_to_the_maximum_of_its_bound():
    # z = (2, 0), t = 1, reg = 1: the maximum of alpha - (2 alpha)^2 / 2 is 1/4; z = 0 goes to its cost
    alpha, theta = np.zeros(3), np.zeros(2)
    Z = np.array([[2.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    ascend_pairs(Z, np.array([1.0, 1.0, -1.0]), np.array([0.5, 0.3, 0.2]), np.arange(3), 1.0, alpha, theta)
    np.testing.assert_allclose(alpha, [0.25, 0.3, 0.2])
    np.testing.assert_allclose(theta, [0.5, -0.2])


def test_a_draw_depends_on_its_seed_alone():
    def fit(seed):
        return BinaryMKLWeights(max_pairs=100, random_state=seed).fit(STACK, Y).weights_

    np.testing.assert_array_equal(fit(0), fit(0))
    assert np.abs(fit(0) - fit(1)).max() > 1e-4


def test_binary_mkl_says_when_it_found_nothing_or_did_not_finish():
    with pytest.warns(UserWarning, match="no kernel that is larger within the classes"):
        found = BinaryMKLWeights().fit(-STACK[:2], Y)
    np.testing.assert_array_equal(found.weights_, [0.5, 0.5])
    with pytest.warns(ConvergenceWarning, match=r"after 1 sweeps .* above tol=1e-09"):
        BinaryMKLWeights(max_iter=1, tol=1e-9).fit(STACK, Y)
    with pytest.raises(ValueError, match=r"BinaryMKLWeights needs classes\. Got the targets of a regression"):
        BinaryMKLWeights().fit(STACK, NUMBERS)


# ---- one kernel at a time


def test_scores_are_those_of_cross_val_score():
    from sklearn.svm import SVC

    found = BestSingleKernel(cv=4).fit(STACK, Y)
    expected = np.array([cross_val_score(SVC(kernel="precomputed"), K, Y, cv=4) for K in STACK])
    np.testing.assert_allclose(found.scores_, expected)
    best = expected.mean(axis=1).argmax()
    np.testing.assert_array_equal(found.weights_, np.eye(4)[best])
    above = np.maximum(expected.mean(axis=1) - 0.6, 0)
    np.testing.assert_allclose(PWMKWeights(threshold=0.6, cv=4).fit(STACK, Y).weights_, above / above.sum())


def test_single_kernels_in_a_regression():
    ridge = KernelRidge(alpha=0.1, kernel="precomputed")
    found = BestSingleKernel(ridge, cv=3, scoring="neg_mean_absolute_error").fit(STACK, NUMBERS)
    expected = [cross_val_score(ridge, K, NUMBERS, cv=3, scoring="neg_mean_absolute_error").mean() for K in STACK]
    np.testing.assert_allclose(found.scores_.mean(axis=1), expected)
    assert BestSingleKernel(cv=3).fit(STACK, NUMBERS).weights_.sum() == 1


def test_each_kernel_keeps_the_order_of_the_kernels_among_threads():
    K = np.arange(20.0)[:, None, None] * np.eye(3)
    rows = np.arange(3)
    for gram in (DenseGram(K, n_threads=2), DenseGram(K), _lazy(K)):
        assert each_kernel(gram, lambda k, block: (k, block(rows, rows).trace())) == [(k, 3.0 * k) for k in range(20)]


# ---- what all of them share


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_every_storage_gives_the_same_weights(rule):
    reference = clone(rule).fit(stack_kernels(STACK), Y).weights_
    assert reference.min() >= 0
    assert reference.max() > 0
    for name, storage in STORAGES.items():
        np.testing.assert_allclose(clone(rule).fit(storage(STACK), Y).weights_, reference, atol=1e-9, err_msg=name)
    single = clone(rule).fit(STACK.astype(np.float32), Y).weights_
    np.testing.assert_allclose(single, reference, atol=1e-3)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_inputs_are_left_alone_and_labels_are_only_labels(rule):
    K, y = _frozen(STACK.copy()), _frozen(Y.copy())
    first = clone(rule).fit(K, y)
    np.testing.assert_array_equal(K, STACK)
    np.testing.assert_array_equal(clone(rule).fit(list(K), np.where(Y == "b", 7, 3)).weights_, first.weights_)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(first)).weights_, first.weights_)
    zero = np.ones(N)
    zero[30:] = 0
    part = clone(rule).fit(K[:, :30, :30].copy(), Y[:30])
    np.testing.assert_allclose(clone(rule).fit(K, y, zero).weights_, part.weights_, atol=1e-9)


@pytest.mark.parametrize(
    "rule", [each for each in RULES if not isinstance(each, (BestSingleKernel, PWMKWeights))], ids=str
)
def test_sample_weights_count_as_repetitions(rule):
    weight = RNG.integers(1, 3, N)
    again = np.repeat(np.arange(N), weight)
    rule = clone(rule)
    if isinstance(rule, BinaryMKLWeights):
        rule.set_params(tol=1e-9, reg=0.1, max_iter=20_000, max_pairs=None if rule.max_pairs is None else 10**6)
    one = rule.fit(STACK, Y, weight).weights_
    two = clone(rule).fit(STACK[:, again][:, :, again], Y[again]).weights_
    np.testing.assert_allclose(one, two, atol=2e-4)


@pytest.mark.parametrize(
    ("rule", "stack", "y", "sentence"),
    [
        (
            BinaryMKLWeights(reg=-1),
            STACK,
            Y,
            "The 'reg' parameter of BinaryMKLWeights must be a positive number. Got -1",
        ),
        (BinaryMKLWeights(max_pairs="all"), STACK, Y, "must be 'auto', None or an integer of at least 2. Got 'all'"),
        (BinaryMKLWeights(balanced=1), STACK, Y, "The 'balanced' parameter of BinaryMKLWeights must be True or False"),
        (PWMKWeights(threshold="x"), STACK, Y, "The 'threshold' parameter of PWMKWeights must be a number. Got 'x'"),
        (BestSingleKernel(cv=1), STACK, Y, "must be None, an integer of at least 2, a splitter or an iterable"),
        (BestSingleKernel(3), STACK, Y, "must be None or an estimator that takes a precomputed kernel. Got 3 instead"),
        (
            AlignWeights(),
            STACK,
            np.zeros(N),
            "AlignWeights needs samples of at least 2 classes. Got one class only: 0.0",
        ),
        (AlignWeights(), STACK, Y[:20], "must hold one target for each of 40 samples. Got shape (20,) instead"),
        (AlignWeights(), STACK, None, "AlignWeights requires y to be passed"),
        (AlignWeights(), STACK, np.where(X[:, 0] > 0, np.nan, 1.0), "Input y contains NaN"),
        (AlignWeights(), STACK, np.array(["a", 1] * 20, object), "must hold targets of one kind. Got texts and 1."),
        (BestSingleKernel(cv=[]), STACK, Y, "The 'cv' parameter of BestSingleKernel must be None, an integer"),
        (PWMKWeights(cv=[1.0]), STACK, Y, "(train, test) of sample numbers, not empty. Got [1.0] instead"),
        (PWMKWeights(cv=[([0, 1], [99])]), STACK, Y, "The 'cv' parameter of PWMKWeights must be None, an integer"),
        (AlignWeights(), STACK[:, :20], Y, "must be square to fit. Got 20 rows and 40 columns"),
        (AlignWeights(), np.full((1, N, N), np.nan), Y, "The kernel 'kernel_0' must hold finite numbers"),
        (AlignWeights(), np.triu(STACK), Y, "The kernel 'kernel_0' (and 3 more) must be symmetric"),
    ],
    ids=lambda value: str(value)[:20] if not isinstance(value, np.ndarray) else "",
)
def test_a_sentence_says_what_is_wrong(rule, stack, y, sentence):
    with pytest.raises(ValueError) as error:
        rule.fit(stack, y)
    assert sentence in str(error.value)


def test_wrong_sample_weights_and_tasks_are_named():
    with pytest.raises(ValueError, match="40 non-negative numbers, not all zero"):
        AlignWeights().fit(STACK, Y, np.zeros(N))
    for weight, got in ((np.full(N, -2.0), "-2"), (np.ones(3), r"shape \(3,\)"), (["a"] * N, "list without numbers")):
        with pytest.raises(ValueError, match=f"40 non-negative numbers, not all zero. Got {got} instead"):
            AlignWeights().fit(STACK, Y, weight)
    with pytest.raises(ValueError, match=r"The 'task' of AlignWeights must be 'classification' or 'regression'"):
        AlignWeights().fit(STACK, Y, task="ranking")
    whole = AlignWeights().fit(STACK, np.round(NUMBERS), task="regression").weights_
    np.testing.assert_array_equal(
        whole, AlignWeights().fit(STACK, np.round(NUMBERS)[:, None], task="regression").weights_
    )


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_pairs_of_kernels_of_any_size():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    stack, y = np.array([np.outer(x, x) for x in X.T]), (X[:, 0] > 0).astype(int)
    one = BinaryMKLWeights(reg=2.0**-6).fit(stack, y)
    for power in (-90, 30, 90):
        # the same problem in other units
        other = BinaryMKLWeights(reg=2.0 ** (2 * power - 6)).fit(stack * 2.0**power, y)
        np.testing.assert_array_equal(other.weights_, one.weights_)
        np.testing.assert_allclose(other.mu_, one.mu_ * 2.0**-power, rtol=1e-12)
        assert other.objective_ == one.objective_
    # in the limit of small kernels the weights are in proportion to sum_e c_e t_e z_e
    limit = BinaryMKLWeights().fit(stack * 2.0**-60, y).weights_
    np.testing.assert_allclose(BinaryMKLWeights().fit(stack * 2.0**-900, y).weights_, limit, rtol=1e-9)
    with pytest.raises(ValueError, match=r"'reg' parameter of BinaryMKLWeights must be larger for kernels"):
        BinaryMKLWeights().fit(stack * 1e160, y)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("method", [AlignWeights, AlignFWeights, FHeuristicWeights])
@pytest.mark.parametrize("power", [-400, 400])
def test_alignment_with_targets_of_any_size(method, power):
    X = np.random.default_rng(0).normal(size=(30, 3))
    stack, y = np.array([np.outer(x, x) for x in X.T]), X @ [1.0, 0.5, 0.1]
    one, other = (method().fit(stack, y * s, task="regression") for s in (1.0, 2.0**power))
    np.testing.assert_allclose(other.weights_, one.weights_, rtol=1e-12)
