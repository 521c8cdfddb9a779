"""MKLClassifier: what it learns, what it keeps, what it predicts."""

import pickle
import sys
import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.svm import SVC
from sklearn.utils import estimator_html_repr

from multikernel import MKLClassifier, stack_kernels
from multikernel.estimators import expansion
from multikernel.kernels import RBF, KernelBank, Linear, Polynomial, learn_normalizer, per_column, rbf_family
from multikernel.solvers.newton import Newton

KERNELS = [
    ("wide", RBF(width=8.0), slice(0, 2)),
    ("narrow", RBF(width=1.0), [0, 1]),
    ("linear", Linear(), [2, 3]),
]
TIGHT = {"tol": 1e-10, "max_iter": 2000}


def two_classes(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = np.where(X[:, 0] ** 2 + X[:, 1] ** 2 + 0.5 * X[:, 2] + 0.3 * rng.normal(size=n) > 1.5, "far", "near")
    return X, y


def raw_stack(X, Z=None):
    bank = KernelBank.fit(KERNELS, X)
    return np.array([bank.raw(k, X if Z is None else Z, X) for k in range(3)])


X, Y = two_classes()
X_TEST, _ = two_classes(40, seed=1)


# ---- what it learns


@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("norm", [1.0, 2.0, np.inf])
def test_one_kernel_is_the_svm_of_scikit_learn(C, norm):
    K, K_test = raw_stack(X)[1], raw_stack(X, X_TEST)[1]
    model = MKLClassifier("precomputed", norm=norm, C=C, normalize=None, **TIGHT).fit(stack_kernels([K]), Y)
    svm = SVC(kernel="precomputed", C=C, tol=1e-10).fit(K, Y)
    np.testing.assert_allclose(
        model.decision_function(stack_kernels([K_test])), svm.decision_function(K_test), rtol=1e-4, atol=1e-5
    )
    np.testing.assert_array_equal(model.predict(stack_kernels([K_test])), svm.predict(K_test))
    assert model.weights_ == pytest.approx([1.0])


def test_the_fitted_attributes_of_two_classes():
    model = MKLClassifier(KERNELS, C=2.0).fit(X, Y)
    p, m = 3, len(model.support_)
    assert model.classes_.tolist() == ["far", "near"]
    assert model.kernel_names_ == ["wide", "narrow", "linear"]
    assert model.weights_.shape == (p,) and model.weights_.sum() == pytest.approx(1.0)
    assert model.dual_coef_.shape == (m,) and model.dual_coef_.sum() == pytest.approx(0.0, abs=1e-9)
    assert isinstance(model.intercept_, float) and isinstance(model.objective_, float)
    assert model.dual_objective_ <= model.objective_
    gap = (model.objective_ - model.dual_objective_) / model.objective_
    assert model.duality_gap_ == pytest.approx(gap) and gap <= model.tol
    assert model.n_iter_ == len(model.history_["gap"]) >= 1
    assert set(model.history_) >= {"time", "upper", "lower", "gap", "active"}
    assert all(isinstance(column, np.ndarray) for column in model.history_.values())
    assert model.status_ == "converged" and model.solver_ in (
        "newton",
        "level",
        "silp",
        "simplemkl",
        "alternating",
    )
    assert (model.gram_.kind, model.gram_.dtype, model.gram_.nbytes) == ("dense", "float64", 3 * 60 * 60 * 8)
    assert model.n_features_in_ == 4


def test_the_objective_is_that_of_the_conventions():
    model = MKLClassifier(KERNELS, C=2.0, **TIGHT).fit(X, Y)
    K = normalised(raw_stack(X))
    y = np.where(Y == "near", 1.0, -1.0)
    a = np.zeros(len(y))
    a[model.support_] = model.dual_coef_
    q = np.einsum("i,kij,j->k", a, K, a)
    f = np.einsum("k,kij,j->i", model.weights_, K, a) + model.intercept_
    primal = 0.5 * model.weights_ @ q + 2.0 * np.maximum(0, 1 - y * f).sum()
    assert model.objective_ == pytest.approx(primal, rel=1e-9)
    assert model.dual_objective_ <= primal <= model.dual_objective_ * (1 + 1e-9)
    assert np.all((y * a >= 0) & (y * a <= 2.0))
    np.testing.assert_allclose(model.decision_function(X), f, atol=1e-9)


def normalised(K, steps="variance", weight=None):
    return np.array([learn_normalizer(steps, np.diag(M), M.dot, weight).train_block(M) for M in K])


def test_contributions_are_shares_of_the_variance_of_the_outputs():
    model = MKLClassifier(KERNELS, norm=2.0).fit(X, Y)
    a = np.zeros(len(X))
    a[model.support_] = model.dual_coef_
    parts = model.weights_[:, None] * (normalised(raw_stack(X)) @ a)
    expected = [np.cov(part, parts.sum(axis=0))[0, 1] / parts.sum(axis=0).var(ddof=1) for part in parts]
    np.testing.assert_allclose(model.kernel_contributions_, expected, atol=1e-9)
    assert model.kernel_contributions_.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_every_storage_gives_the_same_model(norm):
    models = [MKLClassifier(KERNELS, norm=norm, gram=kind, **TIGHT).fit(X, Y) for kind in ("dense", "lazy", "mapped")]
    models.append(MKLClassifier(KERNELS, norm=norm, memory_limit=40_000, **TIGHT).fit(X, Y))
    assert [model.gram_.kind for model in models] == ["dense", "lazy", "mapped", "lazy"]
    for model in models[1:]:
        np.testing.assert_allclose(model.weights_, models[0].weights_, atol=1e-4)
        np.testing.assert_allclose(model.decision_function(X_TEST), models[0].decision_function(X_TEST), atol=1e-4)


def test_many_kernels_are_kept_in_float32(monkeypatch):
    monkeypatch.setattr("multikernel.gram.choose.SINGLE_ABOVE", 1000)
    single = MKLClassifier(KERNELS).fit(X, Y)
    assert single.gram_.dtype == "float32"
    assert single.duality_gap_ <= 1e-3


# ---- normalisation of test rows


STEPS = [
    None,
    "variance",
    "trace",
    "cosine",
    "center",
    ["cosine", "center"],
    ["center", "variance"],
    ["center", "cosine"],
]


def explicit_outputs(model, steps):
    """beta, a and b applied to explicitly normalised test rows."""
    K, K_test = raw_stack(X), raw_stack(X, X_TEST)
    a = np.zeros(len(X))
    a[model.support_] = model.dual_coef_
    f = np.full(len(X_TEST), model.intercept_)
    for k in range(3):
        normalizer = learn_normalizer(steps, np.diag(K[k]), K[k].dot)
        f += model.weights_[k] * normalizer.cross(K_test[k], KernelBank.fit(KERNELS, X).raw_diag(k, X_TEST)) @ a
    return f


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("steps", STEPS, ids=str)
def test_test_rows_are_normalised_as_the_training_samples_were(steps, fit_intercept):
    options = {"norm": 2.0, "normalize": steps, "fit_intercept": fit_intercept, **TIGHT}
    model = MKLClassifier(KERNELS, **options).fit(X, Y)
    np.testing.assert_allclose(model.decision_function(X_TEST), explicit_outputs(model, steps), atol=1e-9)
    whole = (
        steps is not None and "center" in steps and (not fit_intercept or "cosine" in steps[steps.index("center") :])
    )
    assert model._expansion.n_kept == (len(X) if whole else len(model.support_))

    stacked = MKLClassifier("precomputed", **options).fit(stack_kernels(raw_stack(X)), Y)
    bank = KernelBank.fit(KERNELS, X)
    diag = [bank.raw_diag(k, X_TEST) for k in range(3)]
    outputs = stacked.decision_function(stack_kernels(raw_stack(X, X_TEST), diag=diag))
    np.testing.assert_allclose(outputs, model.decision_function(X_TEST), atol=1e-6)


def test_unit_diagonals_of_a_test_stack_need_its_diagonal():
    model = MKLClassifier("precomputed", normalize="cosine").fit(stack_kernels(raw_stack(X)), Y)
    with pytest.raises(
        ValueError, match=r"needs the values k\(x, x\) of the test samples: give stack_kernels .* 'diag'"
    ):
        model.predict(stack_kernels(raw_stack(X, X_TEST)))
    assert model.score(stack_kernels(raw_stack(X)), Y) > 0.8


def test_a_large_test_set_is_taken_block_by_block(monkeypatch):
    model = MKLClassifier(KERNELS, n_jobs=2).fit(X, Y)
    stacked = MKLClassifier("precomputed", n_jobs=2).fit(stack_kernels(raw_stack(X)), Y)
    whole = model.decision_function(X_TEST), stacked.decision_function(stack_kernels(raw_stack(X, X_TEST)))
    monkeypatch.setattr(expansion, "_BLOCK_BYTES", 3 * 8 * len(model.support_))
    np.testing.assert_allclose(model.decision_function(X_TEST), whole[0])
    np.testing.assert_allclose(stacked.decision_function(stack_kernels(raw_stack(X, X_TEST))), whole[1])


# ---- more than two classes


@pytest.mark.parametrize("precomputed", [False, True])
@pytest.mark.parametrize("scheme", ["ovr", "ovo"])
def test_more_classes_are_several_problems_with_their_own_weights(scheme, precomputed):
    data = load_iris()
    rng = np.random.default_rng(0)
    rows = rng.permutation(150)[:90]
    Z, y = data.data[rows], data.target_names[data.target[rows]]
    kernels = "precomputed" if precomputed else rbf_family([1.0, 10.0])
    samples = stack_kernels(np.exp(-np.square(Z[:, None] - Z).sum(2) / np.array([1.0, 10.0])[:, None, None]))
    model = MKLClassifier(kernels, norm=2.0, multiclass=scheme, normalize=None, **TIGHT)
    model.fit(samples if precomputed else Z, y)
    classes = data.target_names
    assert model.weights_.shape == model.kernel_contributions_.shape == (3, 2)
    assert model.dual_coef_.shape == (3, len(model.support_))
    for values in (
        model.intercept_,
        model.objective_,
        model.dual_objective_,
        model.duality_gap_,
        model.n_iter_,
    ):
        assert values.shape == (3,)
    assert model.status_ == ["converged"] * 3 and len(model.history_) == 3
    np.testing.assert_allclose(model.kernel_contributions_.sum(axis=1), 1.0)
    if scheme == "ovo":
        assert model.pairs_ == [(classes[0], classes[1]), (classes[0], classes[2]), (classes[1], classes[2])]
    for t in range(3):
        if scheme == "ovr":
            part, labels = slice(None), y == classes[t]
        else:
            part = np.isin(y, model.pairs_[t])
            labels = y[part] == model.pairs_[t][1]
        alone = MKLClassifier(rbf_family([1.0, 10.0]), norm=2.0, normalize=None, **TIGHT).fit(Z[part], labels)
        assert model.objective_[t] == pytest.approx(alone.objective_, rel=1e-8)
        np.testing.assert_allclose(model.weights_[t], alone.weights_, atol=1e-4)
    scores = model.decision_function(samples if precomputed else Z)
    assert scores.shape == (90, 3)
    np.testing.assert_array_equal(classes[scores.argmax(axis=1)], model.predict(samples if precomputed else Z))
    assert model.score(samples if precomputed else Z, y) > 0.9


def test_pairs_vote_and_outputs_break_ties():
    from multikernel.estimators.multiclass import pairwise_votes

    # each class wins once; the third most clearly
    scores = pairwise_votes(np.array([[-1.0, 3.0, -1.0]]), 3)
    assert scores.argmax() == 2
    assert pairwise_votes(np.array([[-1.0, -1.0, 99.0]]), 3).argmax() == 0


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


@pytest.mark.parametrize("gram", ["lazy", "mapped"])
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


# ---- what it keeps


def test_a_pickled_model_holds_active_kernels_and_support_vectors_only():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(400, 8))
    y = np.abs(Z[:, 0]) + 0.2 * rng.normal(size=400) > 0.7
    model = MKLClassifier(per_column(RBF(factor=2.0)), C=0.3).fit(Z, y)
    active, m = np.count_nonzero(model.weights_), len(model.support_)
    assert active < 8 and m < 200
    assert model._expansion.bank.n_kernels == active
    assert model._expansion.samples.shape == (m, 8)
    assert len(pickle.dumps(model)) < m * 8 * 8 + 2 * active * m * 8 + 10_000
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(Z), model.decision_function(Z))

    K = np.array([model_kernel(Z[:, [j]]) for j in range(8)])
    stacked = MKLClassifier("precomputed", C=0.3).fit(stack_kernels(K), y)
    assert len(pickle.dumps(stacked)) < 40_000 < K.nbytes / 100
    again = pickle.loads(pickle.dumps(stacked))
    np.testing.assert_array_equal(again.predict(stack_kernels(K)), stacked.predict(stack_kernels(K)))


def model_kernel(column):
    return RBF(factor=2.0).fit(column)(column)


def test_a_fit_on_a_stack_takes_a_quarter_of_its_memory_at_most():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(700, 3))
    distance = np.square(Z[:, None] - Z).sum(2)
    K = np.exp(-distance / np.geomspace(0.1, 50, 10)[:, None, None]).astype(np.float32)
    stack, y = stack_kernels(K), np.sin(2 * Z[:, 0]) + Z[:, 1] > 0
    MKLClassifier("precomputed", n_jobs=1).fit(stack[:50], y[:50])  # compile first
    tracemalloc.start()
    MKLClassifier("precomputed", n_jobs=1).fit(stack, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < K.nbytes / 4


# ---- repairs


def indefinite_matrix(n=60):
    rng = np.random.default_rng(3)
    A = rng.normal(size=(n, n))
    values, U = np.linalg.eigh(raw_stack(X)[0] + 0.4 * (A + A.T) / np.sqrt(n))
    return (U * values) @ U.T, values, U


@pytest.mark.parametrize("gram", ["dense", "mapped"])
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
        ("clip", "needs gram='dense' or 'mapped'"),
    ):
        with pytest.raises(ValueError, match=sentence):
            MKLClassifier([RBF(), sigmoid], psd=how, gram="lazy").fit(X, Y)


# ---- parameters


def test_parameters_of_named_kernels_are_nested():
    model = MKLClassifier([RBF(), *KERNELS])
    assert model.get_params()["narrow__width"] == 1.0
    model.set_params(narrow__width=3.0, C=2.0)
    assert model.kernels[2][1].width == 3.0 and model.kernels[2][2] == [0, 1]
    model.set_params(narrow=Polynomial(degree=2))
    assert model.get_params()["narrow__degree"] == 2
    model.set_params(kernels=KERNELS, linear=RBF(), linear__gamma=0.5)
    assert model.kernels[2][1].gamma == 0.5
    assert clone(model).get_params()["linear__gamma"] == 0.5
    assert MKLClassifier(RBF(gamma=2.0)).get_params()["kernels__gamma"] == 2.0
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(nothing__gamma=1.0)


def test_parameters_of_kernels_can_be_searched():
    search = GridSearchCV(MKLClassifier(KERNELS), {"narrow__width": [0.1, 1.0], "norm": [1.0, 2.0]}, cv=2).fit(X, Y)
    assert set(search.best_params_) == {"narrow__width", "norm"}


def test_the_html_representation_shows_the_kernels():
    html = estimator_html_repr(MKLClassifier(KERNELS))
    for name in ("MKLClassifier", "wide", "narrow", "linear"):
        assert name in html
    assert "MKLClassifier" in estimator_html_repr(MKLClassifier())
    assert "MKLClassifier" in estimator_html_repr(MKLClassifier(KERNELS).fit(X, Y))


def test_a_solver_with_its_own_settings_is_taken():
    model = MKLClassifier(KERNELS, solver=Newton(inner=0.1)).fit(X, Y)
    assert model.solver_ == "newton" and model.duality_gap_ <= 1e-3


# ---- progress and interruption


def test_progress_is_silent_where_nobody_looks(capsys):
    MKLClassifier(KERNELS, verbose=1).fit(X, Y)
    assert capsys.readouterr() == ("", "")


def test_progress_is_shown_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    MKLClassifier(KERNELS, verbose=2).fit(X, Y)
    out, err = capsys.readouterr()
    assert out == ""
    assert "gap" in err and "active kernels" in err


class Impatient(Newton):
    """Newton's method, interrupted at its second step."""

    def step(self, point, state, certificate):
        if getattr(state, "count", 0) == 2:
            raise KeyboardInterrupt
        state.count = getattr(state, "count", 0) + 1
        return super().step(point, state, certificate)


def test_an_interruption_keeps_the_best_certified_model():
    with pytest.warns(
        ConvergenceWarning,
        match=r"was interrupted after 2 iterations\. The model returned is the best one found",
    ):
        model = MKLClassifier(KERNELS, solver=Impatient(), tol=1e-9).fit(X, Y)
    assert model.status_ == "interrupted" and model.n_iter_ == 2
    best = MKLClassifier(KERNELS, **TIGHT).fit(X, Y)
    assert model.dual_objective_ <= best.objective_ <= model.objective_ + 1e-9
    assert model.predict(X).shape == Y.shape


def test_an_interruption_ends_all_problems():
    y = np.array([0, 1, 2])[np.arange(60) % 3]
    with pytest.warns(ConvergenceWarning, match="interrupted on the problem '. and the rest'"):
        model = MKLClassifier(KERNELS, multiclass="ovr", solver=Impatient(), tol=1e-9).fit(X, y)
    assert model.status_ == ["interrupted"] * 3
    assert model.n_iter_.tolist() == [2, 0, 0]
    assert model.predict(X).shape == y.shape


def test_rich_is_not_needed_to_fit():
    assert MKLClassifier(KERNELS).fit(X, Y) is not None
    assert "multikernel.estimators.progress" in sys.modules


def test_a_second_fit_forgets_the_first():
    model = MKLClassifier(KERNELS, multiclass="ovo").fit(X, np.arange(60) % 3)
    assert len(model.pairs_) == 3
    assert not hasattr(model.fit(X, Y), "pairs_")
    assert model.weights_.shape == (3,)


def test_numbers_may_be_whole_or_single_precision():
    whole = np.round(10 * X).astype(int)
    model = MKLClassifier(KERNELS).fit(whole, Y)
    np.testing.assert_array_equal(
        model.predict(whole), MKLClassifier(KERNELS).fit(whole.astype(float), Y).predict(whole)
    )
    single = MKLClassifier("precomputed").fit(stack_kernels((whole @ whole.T)[None]), Y)
    assert single.duality_gap_ <= 1e-3
    assert MKLClassifier(KERNELS).fit(X.astype(np.float32), Y).duality_gap_ <= 1e-3
