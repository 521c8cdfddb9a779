"""MKLClassifier: what it learns and what it predicts."""

import numpy as np
import pytest
from problems_classifier import KERNELS, STEPS, TIGHT, X_TEST, X, Y, raw_stack
from sklearn.datasets import load_iris
from sklearn.svm import SVC

from multikernel import MKLClassifier, stack_kernels
from multikernel.kernels import KernelBank, learn_normalizer, rbf_family
from multikernel.training import expansion

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
    models = [MKLClassifier(KERNELS, norm=norm, gram=kind, **TIGHT).fit(X, Y) for kind in ("dense", "lazy", "memmap")]
    models.append(MKLClassifier(KERNELS, norm=norm, memory_limit=40_000, **TIGHT).fit(X, Y))
    assert [model.gram_.kind for model in models] == ["dense", "lazy", "memmap", "lazy"]
    for model in models[1:]:
        np.testing.assert_allclose(model.weights_, models[0].weights_, atol=1e-4)
        np.testing.assert_allclose(model.decision_function(X_TEST), models[0].decision_function(X_TEST), atol=1e-4)


def test_many_kernels_are_kept_in_float32(monkeypatch):
    monkeypatch.setattr("multikernel.gram.storage.SINGLE_ABOVE", 1000)
    single = MKLClassifier(KERNELS).fit(X, Y)
    assert single.gram_.dtype == "float32"
    assert single.duality_gap_ <= 1e-3


# ---- normalisation of test rows


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
    assert len(model.model_.expansion.kept) == (len(X) if whole else len(model.support_))

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
    monkeypatch.setattr(expansion, "BLOCK_BYTES", 3 * 8 * len(model.support_))
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
    from multikernel.estimators.classes import pairwise_votes

    # each class wins once; the third most clearly
    scores = pairwise_votes(np.array([[-1.0, 3.0, -1.0]]), 3)
    assert scores.argmax() == 2
    assert pairwise_votes(np.array([[-1.0, -1.0, 99.0]]), 3).argmax() == 0
