"""LP-beta against linprog, and against the machines that it is made of."""

import numpy as np
import pytest
from problems_baselines import KERNELS, LABELS, ROWS, STACK, TEST, TWO, N, X
from reference_baselines import lp_beta
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from multikernel import LPBetaClassifier, stack_kernels
from multikernel.estimators.baselines.lp_beta_programme import solve_lp_beta


@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize(("y", "nu"), [(LABELS, 0.1), (LABELS, 0.6), ((LABELS > 0).astype(int), 0.2)])
def test_lp_beta_agrees_with_linprog_on_the_stated_programme(y, nu, per_class):
    y, c = y[:N], y.max() + 1
    scores = np.random.default_rng(0).normal(size=(5, N, c)) + 0.5 * (y[:, None] == np.arange(c))
    _, found = solve_lp_beta(scores, y, [0.9, nu], np.ones(N), per_class)
    assert found.objective == pytest.approx(lp_beta(scores, y, nu, per_class), abs=1e-8)
    assert found.weights.shape == ((c, 5) if per_class else (5,))
    np.testing.assert_allclose(found.weights.sum(axis=-1), 1.0)
    # the weights themselves attain it
    mixed = np.einsum("uk,knu->nu", np.broadcast_to(found.weights, (c, 5)), scores)
    margins = mixed[np.arange(N), y] - np.where(np.arange(c) == y[:, None], -np.inf, mixed).max(axis=1)
    slack = np.maximum(0, found.rho - margins).sum() / (nu * N)
    assert -found.rho + slack == pytest.approx(found.objective, abs=1e-7)


@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("y", [TWO, LABELS], ids=["two", "three"])
def test_lp_beta_is_made_of_validated_scores_and_of_machines_on_all_samples(y, per_class):
    folds = StratifiedKFold(4)
    options = {"cv": folds, "normalize": None, "tol": 1e-7, "nu": 0.3, "per_class": per_class}
    # of full rank, on which libsvm too is quick at a tight tol
    K = STACK + 0.1 * np.eye(N)
    model = LPBetaClassifier("precomputed", **options).fit(stack_kernels(K), y[:N])
    classes, codes = np.unique(y[:N], return_inverse=True)
    machine = SVC(kernel="precomputed", tol=1e-7)
    scores, outputs = np.zeros((3, N, len(classes))), np.zeros((3, TEST, len(classes)))
    for k in range(3):
        for u in range(len(classes)):
            for train, test in folds.split(K[k], codes):
                machine.fit(K[k][np.ix_(train, train)], codes[train] == u)
                scores[k, test, u] = machine.decision_function(K[k][np.ix_(test, train)])
            outputs[k, :, u] = machine.fit(K[k], codes == u).decision_function(ROWS[k])
    assert model.objective_ == pytest.approx(lp_beta(scores, codes, 0.3, per_class), abs=1e-4)
    mixed = np.einsum("uk,knu->nu", np.broadcast_to(model.weights_, (len(classes), 3)), outputs)
    expected = mixed if len(classes) > 2 else 0.5 * (mixed[:, 1] - mixed[:, 0])
    np.testing.assert_allclose(model.decision_function(stack_kernels(ROWS)), expected, atol=1e-4)
    right = (scores.argmax(axis=2) == codes).mean(axis=1)
    np.testing.assert_allclose(model.kernel_scores_, right)
    assert model.kernel_contributions_.sum() == pytest.approx(1.0)


def test_every_kernel_chooses_its_own_cost():
    model = LPBetaClassifier("precomputed", C=[0.01, 1.0, 100.0], cv=3).fit(stack_kernels(STACK), TWO[:N])
    alone = [LPBetaClassifier("precomputed", C=C, cv=3).fit(stack_kernels(STACK), TWO[:N]) for C in (0.01, 1.0, 100.0)]
    table = np.array([each.kernel_scores_ for each in alone])
    np.testing.assert_allclose(model.kernel_scores_, table.max(axis=0))
    np.testing.assert_allclose(model.C_, np.array([0.01, 1.0, 100.0])[table.argmax(axis=0)])


def test_nu_is_chosen_by_the_accuracy_of_held_out_mixes():
    # below the error rate kernels that say nothing win
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 30)
    noisy = np.where(rng.random(N) < 0.25, 1 - y, y)
    good, silent = np.outer(2 * noisy - 1, 2 * noisy - 1) + np.eye(N), 1e-3 * np.eye(N)
    model = LPBetaClassifier("precomputed", normalize=None, nu=[0.1, 0.6]).fit(stack_kernels([good, silent]), y)
    assert model.nu_ == 0.6
    assert model.weights_[0] > 0.9
    low = LPBetaClassifier("precomputed", normalize=None, nu=0.1).fit(stack_kernels([good, silent]), y)
    assert low.nu_ == 0.1
    assert low.weights_[0] < 0.1


def test_samples_without_a_held_out_score_are_left_out_of_the_programme():
    splits = [(np.arange(20, N), np.arange(20)), (np.arange(N), np.zeros(0, int))]
    model = LPBetaClassifier("precomputed", cv=splits).fit(stack_kernels(STACK), TWO[:N])
    assert model.weights_.sum() == pytest.approx(1.0)
    weight = np.ones(N)
    weight[50:] = 0
    part = LPBetaClassifier("precomputed", cv=[(np.arange(20, 50), np.arange(20))]).fit(
        stack_kernels(STACK[:, :50, :50]), TWO[:50]
    )
    same = LPBetaClassifier("precomputed", cv=splits).fit(stack_kernels(STACK), TWO[:N], weight)
    np.testing.assert_allclose(same.weights_, part.weights_, atol=1e-6)


@pytest.mark.parametrize("cv", [[], [1.0], 1], ids=str)
def test_folds_that_are_none_are_one_sentence(cv):
    with pytest.raises(ValueError, match="'cv' parameter of LPBetaClassifier must be None, an integer of at least 2"):
        LPBetaClassifier(KERNELS, cv=cv).fit(X, TWO)


@pytest.mark.parametrize("factor", [2.0**-300, 2.0**300])
def test_the_programme_does_not_depend_on_the_unit_of_the_scores(factor):
    rng = np.random.default_rng(0)
    scores, codes = rng.normal(size=(3, 20, 3)), rng.integers(3, size=20)
    one, other = (solve_lp_beta(scores * s, codes, [0.5], np.ones(20))[0] for s in (1.0, factor))
    np.testing.assert_array_equal(other.weights, one.weights)
    assert other.rho == one.rho * factor and other.objective == one.objective * factor


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_fraction_below_one_sample_is_the_smallest_margin():
    rng = np.random.default_rng(0)
    scores, codes = rng.normal(size=(3, 20, 3)), rng.integers(3, size=20)
    least, small = solve_lp_beta(scores, codes, [5e-324, 1e-3], np.ones(20))
    np.testing.assert_allclose(least.weights, small.weights, atol=1e-9)
    assert least.objective == pytest.approx(small.objective, abs=1e-9)
