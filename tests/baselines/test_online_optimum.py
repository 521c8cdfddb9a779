"""UFO-MKL and OBSCURE against a conic solver: the optimum, the bounds on it, and the radius that holds it."""

import numpy as np
import pytest
from problems_online import BOTH, K, N, Y, exponent, quiet
from reference_online import conic_online, online_value

from multikernel import MKLClassifier, OBSCUREClassifier, UFOMKLClassifier, stack_kernels
from multikernel.estimators.baselines.obscure import obscure
from multikernel.estimators.baselines.online_blocks import KernelBlocks
from multikernel.estimators.baselines.online_loops import SECOND
from multikernel.estimators.baselines.online_run import Penalty, Sample, power_for
from multikernel.estimators.baselines.ufo import ufo
from multikernel.gram.dense import DenseGram
from multikernel.kernels import KernelBank, Linear

pytestmark = quiet
ALL = Sample(Y, np.ones(N), np.arange(N), np.zeros(0, int))
NO_SEED = np.random.RandomState(0)

CASES = [
    (UFOMKLClassifier, {"C": 0.1}, 0.0),
    (UFOMKLClassifier, {"C": 1.0}, 0.0),
    (UFOMKLClassifier, {"C": 1.0, "alpha": 0.05}, 0.05),
    (UFOMKLClassifier, {"C": 0.1, "alpha": 0.05, "block_norm": 2.0}, 0.05),
    (OBSCUREClassifier, {"C": 0.1}, 0.0),
    (OBSCUREClassifier, {"C": 1.0}, 0.0),
    (OBSCUREClassifier, {"C": 1.0, "block_norm": 1.2}, 0.0),
    (OBSCUREClassifier, {"C": 0.1, "block_norm": 2.0}, 0.0),
]
# epochs to 1e-2 and to 1e-4: the error falls as C / epochs
EPOCHS = {0.1: (50, 3000), 1.0: (200, 12_000)}


@pytest.mark.parametrize(("learner", "options", "alpha"), CASES, ids=lambda value: str(value)[:60])
def test_the_optimum_of_the_objective_is_reached(learner, options, alpha):
    # values are in units of the objective of w = 0, which is 1
    r = exponent(r=options.get("block_norm"))
    best, norms = conic_online(K, Y, 1.0 / (options["C"] * N), alpha, r)
    model = learner("precomputed", normalize=None, tol=1e-9, random_state=0, **options)
    stack = stack_kernels(K)
    few, enough = EPOCHS[options["C"]]
    model.set_params(max_iter=few).fit(stack, Y)
    assert model.n_iter_ == few and model.objective_ <= best + 1e-2
    model.set_params(max_iter=enough).fit(stack, Y)
    assert -1e-6 <= model.objective_ - best <= 1e-4
    assert best - 1e-4 <= model.dual_objective_ <= best + 1e-6
    np.testing.assert_allclose(model.weights_, norms / norms.sum(), atol=2e-2)


@pytest.mark.parametrize(("learner", "options", "alpha"), CASES[1::2], ids=lambda value: str(value)[:60])
def test_the_objective_is_that_of_the_predictions(learner, options, alpha):
    model = learner("precomputed", normalize=None, max_iter=30, random_state=0, **options).fit(stack_kernels(K), Y)
    value = online_value(
        model.block_norms_, model.decision_function(stack_kernels(K)), Y, 1.0 / (options["C"] * N), alpha,
        exponent(r=options.get("block_norm")),
    )  # fmt: skip
    assert model.objective_ == pytest.approx(value, rel=1e-10)
    assert model.duality_gap_ == pytest.approx(1.0 - model.dual_objective_ / model.objective_)


@pytest.mark.parametrize("learner", BOTH)
def test_without_sparsity_it_is_the_joint_problem(learner):
    r = exponent()
    joint = MKLClassifier(
        "precomputed", multiclass="joint", fit_intercept=False, normalize=None, C=0.2, norm=r / (2.0 - r), tol=1e-6
    ).fit(stack_kernels(K), Y)
    model = learner("precomputed", normalize=None, C=0.2, tol=1e-9, max_iter=2000, random_state=0)
    assert model.fit(stack_kernels(K), Y).objective_ == pytest.approx(joint.objective_ / (0.2 * N), rel=1e-3)


@pytest.mark.parametrize("learner", BOTH)
def test_costs_are_those_of_repetition_and_of_classes(learner):
    weight = np.where(np.arange(N) % 5 == 0, 0.0, 1.0 + np.arange(N) % 3)
    options = {"class_weight": {0: 2.0}, "tol": 1e-9, "max_iter": 3000, "random_state": 0}
    model = learner("precomputed", normalize=None, C=0.1, **options)
    model.fit(stack_kernels(K), Y, weight)
    kept = np.flatnonzero(weight)
    total = weight.sum()
    cost = weight[kept] * np.where(Y[kept] == 0, 2.0, 1.0) * len(kept) / total
    best, _ = conic_online(K[:, kept][:, :, kept], Y[kept], 1.0 / (0.1 * total), 0.0, exponent(), cost)
    assert model.objective_ == pytest.approx(best, rel=2e-3)
    assert model.dual_objective_ <= best * (1 + 1e-6)
    assert not np.isin(model.support_, np.flatnonzero(weight == 0)).any()


@pytest.mark.parametrize("learner", BOTH)
def test_bounds_enclose_the_optimum_after_every_epoch(learner):
    best, _ = conic_online(K, Y, 1.0 / N, 0.0, exponent())
    history = learner("precomputed", normalize=None, tol=1e-9, random_state=3).fit(stack_kernels(K), Y).history_
    assert np.all(history["lower"] <= best + 1e-6) and np.all(history["upper"] >= best - 1e-6)
    assert np.all(np.diff(history["upper"]) <= 0) and np.all(np.diff(history["lower"]) >= 0)
    assert np.all(history["upper"] <= history["primal"])


@pytest.mark.parametrize("kernels", ["rbf", [Linear()]])
@pytest.mark.parametrize("seed", range(4))
def test_epochs_without_violations_prove_nothing(kernels, seed):
    # pairs of equal samples, easily told apart: the first stage ends before the second begins
    Z = np.repeat([[1.0, 3.0], [2.0, 1.0], [3.0, 3.0], [4.0, 1.0]], 4, axis=0)
    y = np.repeat([0, 1, 0, 1], 4)
    model = OBSCUREClassifier(kernels, normalize=["center", "variance"], max_iter=40, tol=1e-9, random_state=seed)
    model.fit(Z, y)
    bank = KernelBank.fit(kernels, Z, None, ["center", "variance"])
    stack = [bank.normalizer(k, Z).train_block(bank.raw(k, Z)) for k in range(bank.n_kernels)]
    best, _ = conic_online(stack, y, 1.0 / 16, 0.0, exponent(len(stack)))
    assert np.all(model.history_["lower"] <= best * (1 + 1e-5)) and model.objective_ >= best * (1 - 1e-5)


def test_sparsity_leaves_few_kernels():
    model = UFOMKLClassifier("precomputed", normalize=None, alpha=0.2, max_iter=300, random_state=0)
    model.fit(stack_kernels(K), Y)
    _, norms = conic_online(K, Y, 1.0 / N, 0.2, exponent())
    assert np.array_equal(model.weights_ > 1e-3, norms > 1e-3 * norms.max())
    assert np.count_nonzero(model.weights_) == model.history_["active"][-1] < len(K)


def test_the_radius_holds_the_optimum():
    penalty = Penalty(1.0 / N, 0.0, 3.0)
    blocks = KernelBlocks(DenseGram(K), 3)
    found = obscure(blocks, ALL, penalty, online_epochs=3, max_iter=20, tol=1e-9, seed=np.random.RandomState(0))
    _, norms = conic_online(K, Y, penalty.lam, 0.0, 1.5)
    assert np.linalg.norm(norms, 1.5) <= found.radius <= np.sqrt(2.0 / penalty.lam)
    assert np.linalg.norm(blocks.current(SECOND, penalty.limits())[1], 1.5) <= found.radius * (1 + 1e-9)


def test_with_no_online_epochs_it_starts_at_zero():
    model = OBSCUREClassifier("precomputed", normalize=None, online_epochs=0, max_iter=300, C=0.1, random_state=0)
    model.fit(stack_kernels(K), Y)
    assert model.radius_ == pytest.approx(np.sqrt(2.0 * 0.1 * N))
    assert model.duality_gap_ <= 1e-2


def test_power_and_penalty():
    assert power_for(1) == power_for(2) == 2.0 and power_for(100) == pytest.approx(2 * np.log(100))
    penalty = Penalty(0.5, 0.1, 3.0)
    w = np.array([0.3, 0.0, 1.2])
    theta = np.array([0.4, 0.05, 0.9])
    # Fenchel: h(w) + h*(theta) >= <w, theta>, with equality at the mirror image
    assert penalty.value(w) + penalty.conjugate(theta) >= w @ theta
    v = np.maximum(theta - 0.1, 0)
    image = v**2 / np.linalg.norm(v, 3) / 0.5
    assert penalty.value(image) + penalty.conjugate(theta) == pytest.approx(image @ theta)


def test_ufo_alone():
    found = ufo(KernelBlocks(DenseGram(K), 3), ALL, Penalty(1.0 / N, 0.0, 2.0), max_iter=5, tol=1e-9, seed=NO_SEED)
    assert found.n_iter == 5 and found.gap == pytest.approx(1 - found.lower / found.upper) and found.radius == np.inf
