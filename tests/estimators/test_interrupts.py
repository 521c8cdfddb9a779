"""Ctrl-C and progress of the baselines: the best model so far with a warning, or the interrupt; lines on stderr."""

import threading
import warnings

import numpy as np
import pytest
from interrupted import interrupted
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from multikernel import EasyMKLClassifier, LPBetaClassifier, TwoStageClassifier, TwoStageRegressor, stack_kernels
from multikernel.estimators.baselines import (
    AlignFWeights,
    AlignWeights,
    BestSingleKernel,
    BinaryMKLWeights,
    KernelMarginWeights,
    PWMKWeights,
    easymkl,
)
from multikernel.estimators.baselines import (
    kernel_products as products,
)
from multikernel.estimators.baselines import lp_beta as lpbeta
from multikernel.estimators.baselines import (
    pair_weights as pairs,
)
from multikernel.inspection import compare
from multikernel.kernels import RBF, Linear
from multikernel.machines.svc import SVC as Machine

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
TWO, THREE = X[:, 0] + 0.3 * RNG.normal(size=60) > 0, np.arange(60) % 3
MATRICES = [np.outer(X[:, j], X[:, j]) if j % 2 == 0 else rbf_kernel(X[:, [j]], gamma=0.5) for j in range(4)]
KERNELS = [(f"column {j}", RBF(gamma=0.5) if j % 2 else Linear(), [j]) for j in range(4)]


def stop_at(monkeypatch, owner, name, number, before=None):
    """Let the call of this number raise what Ctrl-C raises; ``before`` changes the arguments of the others."""
    call, count = getattr(owner, name), []

    def interrupted(*args):
        count.append(1)
        if len(count) == number:
            raise KeyboardInterrupt
        return call(*(args if before is None else before(*args)))

    monkeypatch.setattr(owner, name, interrupted)
    return count


# ---- EasyMKL


def test_easymkl_interrupted_in_its_second_stage_is_the_machine_of_the_first(monkeypatch):
    whole = EasyMKLClassifier(KERNELS, tol=1e-2).fit(X, TWO)
    stop_at(monkeypatch, Machine, "fit", 2)
    sentence = "EasyMKLClassifier was interrupted after the second stage of 0 of 1 problem. The model kept has equal"
    model = EasyMKLClassifier(KERNELS, tol=1e-2)
    with interrupted(sentence):
        model.fit(X, TWO)
    assert model.status_ == "interrupted" and whole.status_ == "converged" and model.duality_gap_ <= 1e-2
    np.testing.assert_array_equal(model.weights_, 0.25)
    monkeypatch.undo()
    # the first stage is the one stage of the sum of the kernels
    total = EasyMKLClassifier("precomputed", normalize=None, tol=1e-2)
    stack = stack_kernels([sum(K * len(K) / np.trace(K) for K in MATRICES)])
    alone = total.fit(stack, TWO)
    assert model.objective_ == pytest.approx(alone.objective_, rel=1e-5)
    np.testing.assert_allclose(4.0 * model.decision_function(X), alone.decision_function(stack), atol=1e-5)


def test_easymkl_interrupted_before_it_has_points_is_not_fitted(monkeypatch):
    stop_at(monkeypatch, Machine, "fit", 1)
    model = EasyMKLClassifier(KERNELS)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, TWO)
    assert not model.__sklearn_is_fitted__()


def test_easymkl_interrupted_between_two_solves_keeps_the_rougher_one(monkeypatch):
    stop_at(monkeypatch, Machine, "fit", 2, before=lambda machine, K, start, tol: (machine, K, start, 0.5))
    model = EasyMKLClassifier(KERNELS, tol=1e-6)
    with interrupted("after the second stage of 0 of 1 problem"):
        model.fit(X, TWO)
    assert model.status_ == "interrupted" and model.n_iter_ == 1
    monkeypatch.undo()
    stop_at(monkeypatch, Machine, "fit", 2)
    finer = EasyMKLClassifier(KERNELS, tol=1e-2)
    with interrupted("interrupted"):
        finer.fit(X, TWO)
    assert model.duality_gap_ > 1e-2 >= finer.duality_gap_
    assert model.dual_objective_ <= finer.objective_ and finer.dual_objective_ <= model.objective_


def test_easymkl_interrupted_between_two_solves_of_the_second_stage_keeps_its_weights(monkeypatch):
    whole = EasyMKLClassifier(KERNELS, tol=1e-3).fit(X, TWO)
    assert whole.n_iter_ == 1
    count = []

    def rougher(machine, K, start, tol):
        count.append(1)
        return machine, K, start, 0.5 if len(count) == 2 else tol

    stop_at(monkeypatch, Machine, "fit", 3, before=rougher)
    model = EasyMKLClassifier(KERNELS, tol=1e-3)
    with interrupted("after the second stage of 1 of 1 problem. The model"):
        model.fit(X, TWO)
    np.testing.assert_array_equal(model.weights_, whole.weights_)
    assert model.status_ == "interrupted" and model.duality_gap_ > 1e-3
    assert model.dual_objective_ <= whole.objective_ and whole.dual_objective_ <= model.objective_


def test_easymkl_interrupted_among_several_classes_ends_all_of_them(monkeypatch):
    whole = EasyMKLClassifier(KERNELS, tol=1e-2).fit(X, THREE)
    # three problems in the first stage, one in the second
    stop_at(monkeypatch, easymkl, "nearest_points", 5)
    model = EasyMKLClassifier(KERNELS, tol=1e-2)
    with interrupted("was interrupted after the second stage of 1 of 3 problems"):
        model.fit(X, THREE)
    assert model.status_ == ["converged", "interrupted", "interrupted"]
    assert model.objective_[0] == whole.objective_[0] and model.duality_gap_.max() <= 1e-2
    np.testing.assert_array_equal(model.weights_[0], whole.weights_[0])
    np.testing.assert_array_equal(model.weights_[1:], 0.25)
    assert model.predict(X).shape == THREE.shape


def test_easymkl_interrupted_while_classes_have_no_points_is_not_fitted(monkeypatch):
    count = stop_at(monkeypatch, Machine, "fit", 2)
    with pytest.raises(KeyboardInterrupt):
        EasyMKLClassifier(KERNELS, tol=1e-2).fit(X, THREE)
    assert len(count) == 2


# ---- LP-beta


@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("storage", ["dense", "lazy"])
def test_lp_beta_interrupted_among_its_kernels_is_that_of_the_kernels_before(monkeypatch, storage, per_class):
    options = {"per_class": per_class, "gram": storage, "n_jobs": 1}
    few = LPBetaClassifier(KERNELS[:2], **options).fit(X, THREE)
    stop_at(monkeypatch, lpbeta._Machines, "train", 3)
    model = LPBetaClassifier(KERNELS, **options)
    with interrupted("was interrupted after the machines of 2 of 4 kernels. The model"):
        model.fit(X, THREE)
    assert model.status_ == "interrupted" and few.status_ == "converged"
    np.testing.assert_allclose(model.weights_[..., :2], few.weights_)
    assert not model.weights_[..., 2:].any() and model.weights_.shape[-1] == 4
    assert np.isnan(model.C_).tolist() == np.isnan(model.kernel_scores_).tolist() == [False, False, True, True]
    np.testing.assert_allclose(model.decision_function(X), few.decision_function(X))
    np.testing.assert_allclose(model.kernel_contributions_, [*few.kernel_contributions_, 0.0, 0.0])


def test_lp_beta_interrupted_at_its_first_kernel_is_not_fitted(monkeypatch):
    stop_at(monkeypatch, lpbeta._Machines, "train", 1)
    model = LPBetaClassifier(KERNELS, n_jobs=1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, TWO)
    assert not model.__sklearn_is_fitted__()


def test_an_interruption_stops_all_threads(monkeypatch):
    train, mine, others = lpbeta._Machines.train, [], []
    halted = threading.Event()

    def impatient(self, k, block):
        if threading.current_thread() is threading.main_thread():
            mine.append(k)
            if len(mine) == 2:
                halted.set()
                raise KeyboardInterrupt
        else:
            others.append(k)
            if len(others) == 2:
                halted.wait(30)
        return train(self, k, block)

    monkeypatch.setattr(lpbeta._Machines, "train", impatient)
    many = [RBF(gamma=0.1 * (j + 1)) for j in range(24)]
    model = LPBetaClassifier(many, gram="dense", n_jobs=2)
    with interrupted("machines of [1-9] of 24 kernels"):
        model.fit(X, TWO)
    assert len(mine) == 2 and len(others) <= 3
    assert np.count_nonzero(~np.isnan(model.C_)) == 1 + len(others)
    np.testing.assert_allclose(model.weights_.sum(), 1.0)


@pytest.mark.parametrize(
    ("number", "done", "taken"), [(1, 0, "the largest nu"), (3, 2, "the nu that was best on them")]
)
def test_lp_beta_interrupted_while_it_chooses_nu_takes_the_best_so_far(monkeypatch, number, done, taken):
    given = (0.2, 0.9, 0.5)
    stop_at(monkeypatch, lpbeta, "solve_lp_beta", number)
    model = LPBetaClassifier(KERNELS, nu=given)
    with interrupted(f"after {done} of 5 folds that choose nu. The model kept takes {taken}"):
        model.fit(X, TWO)
    assert model.status_ == "interrupted" and not np.isnan(model.C_).any()
    assert model.nu_ in given if done else model.nu_ == 0.9
    monkeypatch.undo()
    np.testing.assert_allclose(model.weights_, LPBetaClassifier(KERNELS, nu=model.nu_).fit(X, TWO).weights_)


def test_lp_beta_interrupted_in_its_last_programme_is_not_fitted(monkeypatch):
    stop_at(monkeypatch, lpbeta, "solve_lp_beta", 1)
    with pytest.raises(KeyboardInterrupt):
        LPBetaClassifier(KERNELS, nu=0.5).fit(X, TWO)


def test_compare_ends_where_a_baseline_was_interrupted(monkeypatch):
    stop_at(monkeypatch, lpbeta._Machines, "train", 2 * len(KERNELS) - 1)
    with pytest.raises(KeyboardInterrupt):
        compare(X, TWO, {"lp": LPBetaClassifier(KERNELS, n_jobs=1)}, cv=2, verbose=0)


# ---- two stages


def test_pairs_interrupted_after_a_certificate_keep_the_best_weights(monkeypatch):
    options = {"weights": BinaryMKLWeights(tol=1e-9), "normalize": ["center", "trace"]}
    best = TwoStageClassifier(KERNELS, **options).fit(X, TWO)
    stop_at(monkeypatch, pairs, "ascend_pairs", 8)
    sentence = "BinaryMKLWeights was interrupted after 7 sweeps. The weights are the best found, certified to within"
    model = TwoStageClassifier(KERNELS, **options)
    with interrupted(sentence):
        model.fit(X, TWO)
    assert best.status_ == "converged" and model.status_ == model.weights_estimator_.status_ == "interrupted"
    rule, optimum = model.weights_estimator_, best.weights_estimator_.objective_
    assert rule.n_iter_ == 7 and rule.duality_gap_ > 1e-9
    assert rule.objective_ * (1.0 - rule.duality_gap_) <= optimum <= rule.objective_
    assert model.predict(X).shape == TWO.shape


def test_pairs_interrupted_before_any_certificate_have_no_weights(monkeypatch):
    stop_at(monkeypatch, pairs, "ascend_pairs", 1)
    model = TwoStageClassifier(KERNELS, weights=BinaryMKLWeights())
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, TWO)
    assert not model.__sklearn_is_fitted__()


def test_too_few_sweeps_are_a_status():
    with pytest.warns(ConvergenceWarning, match="reached max_iter"):
        model = TwoStageClassifier(KERNELS, weights=BinaryMKLWeights(tol=1e-12, max_iter=3)).fit(X, TWO)
    assert model.status_ == "max_iter"


@pytest.mark.parametrize("rule", [BestSingleKernel, PWMKWeights])
def test_validated_scores_interrupted_are_those_of_the_kernels_before(monkeypatch, rule):
    kernels = KERNELS[::-1]
    weights = rule(SVC(kernel="precomputed"), cv=3)
    few = TwoStageClassifier(kernels[:3], weights=weights, n_jobs=1).fit(X, TWO)
    stop_at(monkeypatch, SVC, "score", 11)
    model = TwoStageClassifier(kernels, weights=weights, n_jobs=1)
    with interrupted(f"{rule.__name__} was interrupted after 3 of 4 kernels. The weights"):
        model.fit(X, TWO)
    assert model.status_ == "interrupted"
    np.testing.assert_allclose(model.weights_, [*few.weights_, 0.0])
    scores = model.weights_estimator_.scores_
    np.testing.assert_allclose(scores[:3], few.weights_estimator_.scores_)
    assert np.isnan(scores[3]).all()
    np.testing.assert_array_equal(model.predict(X), few.predict(X))


@pytest.mark.parametrize("weights", [AlignFWeights(), AlignWeights()], ids=lambda rule: type(rule).__name__)
def test_alignment_interrupted_has_no_weights(monkeypatch, weights):
    stop_at(monkeypatch, products, "_products", 1)
    with pytest.raises(KeyboardInterrupt):
        TwoStageClassifier(KERNELS, weights=weights, n_jobs=1).fit(X, TWO)


# ---- progress

SHOWN = [
    (EasyMKLClassifier(KERNELS), ["False and True, all kernels: iteration 1, gap", "the mix: iteration 1", "active"]),
    (LPBetaClassifier(KERNELS), ["LPBetaClassifier: 1 of 4 kernels", "4 of 4 kernels", "5 of 5 folds for nu"]),
    (TwoStageClassifier(KERNELS), ["AlignFWeights: 60 of 60 rows"]),
    (TwoStageClassifier(KERNELS, weights=AlignWeights()), ["AlignWeights: 60 of 60 rows"]),
    (TwoStageClassifier(KERNELS, weights=BestSingleKernel()), ["BestSingleKernel: 4 of 4 kernels"]),
    (TwoStageClassifier(KERNELS, weights=BinaryMKLWeights()), ["BinaryMKLWeights: iteration 1, gap", "of 1e-04"]),
    (TwoStageRegressor(KERNELS), ["AlignFWeights: 60 of 60 rows"]),
]


@pytest.mark.parametrize(("estimator", "lines"), SHOWN)
def test_progress_is_shown_on_a_terminal_and_in_a_file(monkeypatch, capsys, estimator, lines):
    y = X[:, 0] if isinstance(estimator, TwoStageRegressor) else TWO
    estimator.set_params(verbose=2).fit(X, y)
    out, err = capsys.readouterr()
    assert out == "" and all(line in err for line in lines) and "\x1b" not in err, err
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    estimator.set_params(verbose=0).fit(X, y)
    assert capsys.readouterr() == ("", "")
    estimator.set_params(verbose=2).fit(X, y)
    out, err = capsys.readouterr()
    assert out == "" and all(line in err for line in lines), err


@pytest.mark.parametrize("learner", [EasyMKLClassifier, LPBetaClassifier, TwoStageClassifier, TwoStageRegressor])
def test_verbose_is_checked(learner):
    with pytest.raises(ValueError, match=f"'verbose' parameter of {learner.__name__} must be a non-negative integer"):
        learner(KERNELS, verbose=-1).fit(X, TWO)


def test_weights_tell_how_far_they_are():
    rows = []
    AlignFWeights().fit([np.eye(60), X @ X.T], TWO, callback=rows.append)
    assert rows[-1] == {"done": 60, "of": 60, "parts": "rows"}
    rows.clear()
    found = BinaryMKLWeights(tol=1e-6).fit([np.outer(x, x) for x in X.T], TWO, callback=rows.append)
    assert rows[-1]["gap"] == found.duality_gap_ <= 1e-6 < rows[0]["gap"]
    assert rows[-1]["active"] == np.count_nonzero(found.weights_)


def test_weights_without_steps_have_nothing_to_tell():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = KernelMarginWeights().fit([np.eye(60), X @ X.T], TWO, callback=lambda row: pytest.fail("told"))
    assert found.status_ == "converged"
