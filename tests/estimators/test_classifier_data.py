"""MKLClassifier: weights of samples and classes, kinds of samples, and kernels that need a repair."""

import numpy as np
import pytest
from problems_classifier import KERNELS, STEPS, TIGHT, X_TEST, X, Y, raw_stack
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import cross_validate

from multikernel import MKLClassifier, stack_kernels
from multikernel.kernels import RBF, KernelBank, Linear

# ---- weights of samples and classes


@pytest.mark.parametrize("steps", ["variance", "cosine", ["center", "variance"]], ids=str)
@pytest.mark.parametrize("precomputed", [False, True])
def test_weights_count_as_repetitions_and_zeros_leave_samples_out(precomputed, steps):
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    repeated = np.repeat(np.arange(len(X)), weight)
    options = {"normalize": steps, **TIGHT}
    if precomputed:
        weighted = MKLClassifier("precomputed", **options).fit(stack_kernels(raw_stack(X)), Y, weight)
        plain = MKLClassifier("precomputed", **options).fit(
            stack_kernels(raw_stack(X)[:, repeated][:, :, repeated]), Y[repeated]
        )
        K_test = raw_stack(X, X_TEST)
        bank = KernelBank.fit(KERNELS, X)
        diag = [bank.raw_diag(k, X_TEST) for k in range(3)]
        outputs = weighted.decision_function(stack_kernels(K_test, diag=diag))
        expected = plain.decision_function(stack_kernels(K_test[:, :, repeated], diag=diag))
    else:
        weighted = MKLClassifier(KERNELS, **options).fit(X, Y, weight)
        plain = MKLClassifier(KERNELS, **options).fit(X[repeated], Y[repeated])
        outputs, expected = weighted.decision_function(X_TEST), plain.decision_function(X_TEST)
    np.testing.assert_allclose(outputs, expected, atol=1e-5)
    np.testing.assert_allclose(weighted.weights_, plain.weights_, atol=1e-4)
    np.testing.assert_allclose(weighted.kernel_contributions_, plain.kernel_contributions_, atol=1e-4)
    assert weight[weighted.support_].all()
    assert set(weighted.support_) <= set(repeated)


def test_support_holds_the_row_numbers_of_the_caller():
    weight = np.ones(len(X))
    weight[:20] = 0
    model = MKLClassifier(KERNELS).fit(X, Y, weight)
    rest = MKLClassifier(KERNELS).fit(X[20:], Y[20:])
    np.testing.assert_array_equal(model.support_, rest.support_ + 20)


def test_class_weights_multiply_the_cost():
    heavy = MKLClassifier(KERNELS, class_weight={"far": 3.0}, **TIGHT).fit(X, Y)
    weighted = MKLClassifier(KERNELS, normalize=None, **TIGHT)
    same = clone(weighted).set_params(class_weight={"far": 3.0, "near": 1.0}).fit(X, Y)
    by_sample = clone(weighted).fit(X, Y, np.where(Y == "far", 3.0, 1.0))
    assert same.objective_ == pytest.approx(by_sample.objective_)
    assert heavy.duality_gap_ <= 1e-10
    counts = {label: np.mean(Y == label) for label in ("far", "near")}
    balanced = clone(weighted).set_params(class_weight="balanced").fit(X, Y)
    explicit = (
        clone(weighted).set_params(class_weight={label: 0.5 / share for label, share in counts.items()}).fit(X, Y)
    )
    assert balanced.objective_ == pytest.approx(explicit.objective_)


def test_sample_weights_are_routed():
    with config_context(enable_metadata_routing=True):
        model = MKLClassifier(KERNELS).set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        weight = np.random.default_rng(0).uniform(0.1, 1, len(X))
        folds = [(np.arange(0, 40), np.arange(40, 60))]
        result = cross_validate(model, X, Y, params={"sample_weight": weight}, cv=folds, return_estimator=True)
    alone = MKLClassifier(KERNELS).fit(X[:40], Y[:40], weight[:40])
    assert result["estimator"][0].objective_ == pytest.approx(alone.objective_)


# ---- kinds of samples


def test_sparse_samples_are_the_same_samples():
    Z = np.where(np.abs(X) < 0.5, 0.0, X)
    model = MKLClassifier(KERNELS, **TIGHT).fit(Z, Y)
    for kind in (sparse.csr_matrix, sparse.csc_array):
        thin = MKLClassifier(KERNELS, **TIGHT).fit(kind(Z), Y)
        np.testing.assert_allclose(thin.decision_function(kind(X_TEST)), model.decision_function(X_TEST), atol=1e-5)
        np.testing.assert_allclose(thin.decision_function(X_TEST), model.decision_function(X_TEST), atol=1e-5)


def test_columns_of_a_data_frame_are_chosen_by_name():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    named = [
        ("wide", RBF(width=8.0), ["a", "b"]),
        ("narrow", RBF(width=1.0), ["a", "b"]),
        ("linear", Linear(), slice("c", "d")),
    ]
    model = MKLClassifier(named, **TIGHT).fit(frame, Y)
    plain = MKLClassifier(KERNELS, **TIGHT).fit(X, Y)
    assert model.feature_names_in_.tolist() == list("abcd")
    outputs = model.decision_function(pd.DataFrame(X_TEST, columns=["a", "b", "c", "d"]))
    np.testing.assert_allclose(outputs, plain.decision_function(X_TEST), atol=1e-9)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(pd.DataFrame(X_TEST, columns=list("badc")))


def test_a_data_frame_may_hold_columns_that_are_not_numbers():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "blue"], len(X))
    frame = pd.DataFrame({"colour": colour, "a": X[:, 0], "b": X[:, 1]})

    def same(A, B):
        return (np.asarray(A) == np.asarray(B).T).astype(float)

    model = MKLClassifier([("colour", same, ["colour"]), ("position", RBF(), ["a", "b"])], norm=2.0)
    model.fit(frame, np.where(colour == "red", 1, 0))
    assert model.kernel_contributions_[0] > 0.9
    assert model.score(frame, colour == "red") == 1.0


def test_samples_may_be_strings():
    words = ["aab", "aba", "baa", "bbb", "bba", "abb"] * 4
    y = np.array([word.count("a") > 1 for word in words])

    def shared(A, B):
        return np.array([[sum(min(s.count(c), t.count(c)) for c in "ab") for t in B] for s in A], float)

    model = MKLClassifier([("letters", shared, None)]).fit(words, y)
    assert model.score(words, y) == 1.0


def test_what_the_caller_hands_in_is_never_written_to():
    Z, weight, stack = X.copy(), np.random.default_rng(0).integers(0, 3, len(X)).astype(float), raw_stack(X)
    for array in (Z, weight, stack):
        array.flags.writeable = False
    before = stack.copy()
    for steps in STEPS:
        MKLClassifier(KERNELS, normalize=steps).fit(Z, Y, weight).predict(Z)
        MKLClassifier("precomputed", normalize=steps).fit(stack_kernels(stack), Y, weight).predict(stack_kernels(stack))
    np.testing.assert_array_equal(stack, before)


@pytest.mark.parametrize("layout", ["list", "float32", "fortran", "strided", "sample-major"])
def test_a_stack_may_lie_in_memory_in_any_way(layout):
    K, K_test = raw_stack(X), raw_stack(X, X_TEST)
    reference = MKLClassifier("precomputed", **TIGHT).fit(stack_kernels(K), Y).decision_function(stack_kernels(K_test))
    wide = np.zeros((3, 120, 120))
    wide[:, ::2, ::2] = K
    handed = {
        "list": [M.copy() for M in K],
        "float32": K.astype(np.float32),
        "fortran": [np.asfortranarray(M) for M in K],
        "strided": wide[:, ::2, ::2],
        "sample-major": np.moveaxis(np.ascontiguousarray(np.moveaxis(K, 0, -1)), -1, 0),
    }[layout]
    tol = {"tol": 1e-6} if layout == "float32" else TIGHT
    model = MKLClassifier("precomputed", **tol).fit(stack_kernels(handed), Y)
    assert model.gram_.nbytes == 0  # nothing was copied
    close = 2e-2 if layout == "float32" else 1e-5
    np.testing.assert_allclose(model.decision_function(stack_kernels(K_test)), reference, atol=close)


@pytest.mark.parametrize("gram", ["lazy", "memmap"])
@pytest.mark.parametrize("steps", ["variance", ["cosine", "center"]], ids=str)
def test_scattered_rows_of_a_stack_need_not_be_gathered(gram, steps):
    rows = np.random.default_rng(0).permutation(len(X))[:45]
    part = stack_kernels(raw_stack(X))[rows]
    options = {"normalize": steps, **TIGHT}
    model = MKLClassifier("precomputed", gram=gram, **options).fit(part, Y[rows])
    dense = MKLClassifier("precomputed", **options).fit(part, Y[rows])
    assert (model.gram_.kind, dense.gram_.kind) == (gram, "dense")
    assert dense.gram_.nbytes == 3 * 45 * 45 * 8
    np.testing.assert_allclose(model.decision_function(part), dense.decision_function(part), atol=1e-4)


def test_numbers_may_be_whole_or_single_precision():
    whole = np.round(10 * X).astype(int)
    model = MKLClassifier(KERNELS).fit(whole, Y)
    np.testing.assert_array_equal(
        model.predict(whole), MKLClassifier(KERNELS).fit(whole.astype(float), Y).predict(whole)
    )
    single = MKLClassifier("precomputed").fit(stack_kernels((whole @ whole.T)[None]), Y)
    assert single.duality_gap_ <= 1e-3
    assert MKLClassifier(KERNELS).fit(X.astype(np.float32), Y).duality_gap_ <= 1e-3


# ---- repairs


def indefinite_matrix(n=60):
    rng = np.random.default_rng(3)
    A = rng.normal(size=(n, n))
    values, U = np.linalg.eigh(raw_stack(X)[0] + 0.4 * (A + A.T) / np.sqrt(n))
    return (U * values) @ U.T, values, U


@pytest.mark.parametrize("gram", ["dense", "memmap"])
@pytest.mark.parametrize("how", ["clip", "shift", "flip"])
def test_an_indefinite_kernel_is_repaired_on_request(how, gram):
    S, values, U = indefinite_matrix()
    S = (S + S.T) / 2
    fixed = {"clip": np.maximum(values, 0), "flip": np.abs(values), "shift": values - values.min()}[how]
    K = raw_stack(X)
    options = {"normalize": None, "norm": 2.0, **TIGHT}
    model = MKLClassifier("precomputed", psd=how, gram=gram, **options).fit(stack_kernels([K[0], S]), Y)
    explicit = MKLClassifier("precomputed", **options).fit(stack_kernels([K[0], (U * fixed) @ U.T]), Y)
    assert model.objective_ == pytest.approx(explicit.objective_, rel=1e-7)
    # rows of test samples become k P with K P the repaired matrix
    P = np.eye(60) if how == "shift" else (U * np.where(values < 0, 0.0 if how == "clip" else -1.0, 1.0)) @ U.T
    T = np.random.default_rng(4).normal(size=(2, 10, 60))
    outputs = model.decision_function(stack_kernels(T))
    np.testing.assert_allclose(outputs, explicit.decision_function(stack_kernels([T[0], T[1] @ P])), atol=1e-4)


def test_a_repair_leaves_out_samples_of_weight_zero():
    S = indefinite_matrix()[0]
    S = (S + S.T) / 2
    weight = np.ones(60)
    weight[::4] = 0
    kept = np.flatnonzero(weight)
    options = {"psd": "clip", "normalize": None, **TIGHT}
    model = MKLClassifier("precomputed", **options).fit(stack_kernels([S]), Y, weight)
    rest = MKLClassifier("precomputed", **options).fit(stack_kernels([S[np.ix_(kept, kept)]]), Y[kept])
    assert model.objective_ == pytest.approx(rest.objective_)
    T = np.random.default_rng(4).normal(size=(1, 10, 60))
    outputs = rest.decision_function(stack_kernels(T[:, :, kept]))
    np.testing.assert_allclose(model.decision_function(stack_kernels(T)), outputs, atol=1e-6)


def test_a_computed_kernel_is_repaired_on_request():
    def sigmoid(A, B):
        return np.tanh(A @ B.T - 1.0)

    with pytest.raises(
        ValueError, match=r"The kernel 'sigmoid' must be positive semidefinite\. Got a smallest eigenvalue of"
    ):
        MKLClassifier([RBF(), sigmoid]).fit(X, Y)
    model = MKLClassifier([RBF(), sigmoid], psd="clip", norm=2.0).fit(X, Y)
    assert model.duality_gap_ <= 1e-3
    assert model.score(X, Y) > 0.8
    for how, sentence in (
        ("error", "must be positive semidefinite"),
        ("clip", "needs gram='dense' or 'memmap'"),
    ):
        with pytest.raises(ValueError, match=sentence):
            MKLClassifier([RBF(), sigmoid], psd=how, gram="lazy").fit(X, Y)
