"""The training core: functions of their arguments, shared kernels, explicit starts, repairs that leave no trace."""

from dataclasses import FrozenInstanceError, replace
from functools import partial

import numpy as np
import pytest

from multikernel import MKLClassifier, stack_kernels
from multikernel.estimators.validation import kept_samples
from multikernel.kernels import RBF, Linear, rbf_family
from multikernel.training.core import Settings
from multikernel.training.expansion import evaluate_together
from multikernel.training.prepare import Shared, prepare
from multikernel.training.publish import publish
from multikernel.training.targets import Classification, Regression
from multikernel.training.train import found_by, from_fit, mean_start, train

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
CLASSES = np.array(["a", "b", "c"])
CODES = np.digitize(X[:, 0] + 0.3 * RNG.normal(size=60), [-0.5, 0.5])
KERNELS = [("one", RBF(gamma=0.3), [0, 1]), ("two", Linear(), [2, 3]), ("all", RBF(gamma=0.1), slice(None))]
SETTINGS = Settings("the test", "variance", tol=1e-7)


def spec(**options):
    return Classification("the test", CODES, CLASSES, None, **options)


@pytest.mark.parametrize("multiclass", ["joint", "ovr", "ovo"])
def test_the_three_steps_are_the_estimator(multiclass):
    model = publish(train(prepare(KERNELS, X, None, SETTINGS), spec(multiclass=multiclass), SETTINGS))
    estimator = MKLClassifier(KERNELS, multiclass=multiclass, tol=1e-7).fit(X, CLASSES[CODES])
    for name, value in model.attributes.items():
        if name not in ("history_", "gram_"):
            np.testing.assert_array_equal(value, getattr(estimator, name), err_msg=name)
    np.testing.assert_array_equal(model.expansion.evaluate(X), estimator.model_.expansion.evaluate(X))


def test_training_leaves_its_arguments_as_they_were_and_depends_on_nothing_else():
    prepared = prepare(KERNELS, X, None, SETTINGS)
    gram, names = prepared.gram, prepared.names
    runs = [publish(train(prepared, spec(C=C), SETTINGS)) for C in (1.0, 50.0, 1.0)]
    assert prepared.gram is gram and prepared.names == names and not prepared.projectors
    np.testing.assert_array_equal(runs[0].coef, runs[2].coef)
    np.testing.assert_array_equal(runs[0].weights, runs[2].weights)
    assert runs[0].attributes["objective_"] != runs[1].attributes["objective_"]
    with pytest.raises(FrozenInstanceError):
        prepared.gram = None


def test_starts_change_the_work_and_not_the_answer():
    prepared = prepare(KERNELS, X, None, SETTINGS)
    before = train(prepared, spec(C=2.0), SETTINGS)
    cold, warm = train(prepared, spec(), SETTINGS), train(prepared, spec(), SETTINGS, partial(from_fit, before))
    assert cold.solutions[0].upper == pytest.approx(warm.solutions[0].upper, rel=3e-7)
    # the same problem again is certified as it is
    again = train(prepared, spec(), SETTINGS, partial(from_fit, cold))
    assert again.solutions[0].n_iter <= 1
    # a fit of other problems starts nothing
    pairs = train(prepared, spec(multiclass="ovo"), SETTINGS, partial(from_fit, cold))
    assert [solution.status for solution in pairs.solutions] == ["converged"] * 3


@pytest.mark.parametrize("stacked", [False, True])
def test_some_of_the_kernels_are_those_alone(stacked):
    data = stack_kernels([X[:, :2] @ X[:, :2].T, X[:, 2:] @ X[:, 2:].T, X @ X.T]) if stacked else X
    whole = prepare(KERNELS, data, None, SETTINGS)
    left = np.array([0, 2])
    part = whole.take_kernels(left)
    some = data.take_kernels(left) if stacked else data
    alone = prepare([KERNELS[0], KERNELS[2]], some, None, SETTINGS)
    assert part.names == alone.names
    models = [publish(train(each, spec(), SETTINGS)) for each in (part, alone)]
    np.testing.assert_array_equal(models[0].weights, models[1].weights)
    np.testing.assert_allclose(models[0].expansion.evaluate(data), models[1].expansion.evaluate(some), atol=1e-10)
    # the expansion has the numbers of the whole; the source of the part its own
    together = evaluate_together(whole.source, [models[0].expansion], data, None)[0]
    np.testing.assert_allclose(together, models[1].expansion.evaluate(some), atol=1e-10)
    for (k, K, _), (_, other, _) in zip(
        part.source.blocks(data, [0, 1], False), alone.source.blocks(some, [0, 1], False), strict=True
    ):
        assert k in (0, 1)
        np.testing.assert_array_equal(K, other)


def test_the_mean_of_folds_is_a_feasible_start():
    rows = [np.flatnonzero(np.arange(60) % 3 != k) for k in range(3)]
    fits = []
    for part in rows:
        own = replace(spec(), codes=CODES[part])
        fits.append(found_by(train(prepare(KERNELS, X[part], None, SETTINGS), own, SETTINGS), part))
    prepared = prepare(KERNELS, X, None, SETTINGS)
    targets = spec()(prepared)
    (start,) = mean_start(fits, np.ones(60, bool), targets)
    assert start.weights.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(targets[0].machine.make_feasible(start.coef), start.coef, atol=1e-12)
    # a fold that lacks a class has other columns, and no mean
    short = [(weights, samples, coef[:, :2]) for weights, samples, coef in fits[0]]
    assert mean_start([short, fits[1]], np.ones(60, bool), targets) == [None]


def test_known_kernels_are_sliced_and_not_computed_again():
    whole = prepare(KERNELS, X, None, replace(SETTINGS, normalize=None))
    stack = whole.gram.rows(np.arange(60))
    places = {key: k for k, key in enumerate(zip(whole.names, whole.source.bank.columns, strict=True))}
    rows = np.array([3, 40, 7, 12, 55, 20, 31])
    shared = Shared(stack, places, rows)
    part, plain = (prepare(KERNELS, X[rows], None, SETTINGS, known) for known in (shared, None))
    np.testing.assert_allclose(part.gram.rows(np.arange(7)), plain.gram.rows(np.arange(7)), atol=1e-14)
    # all samples: read where they lie
    every = prepare(KERNELS, X, None, SETTINGS, Shared(stack, places))
    assert np.shares_memory(every.gram.stored(0)[0], stack)
    y = np.where(CODES[rows] == CODES[rows][0], 1.0, -1.0)
    fit = train(part, Regression("the test", y, None, "squared"), SETTINGS)
    model = publish(fit)
    (together,) = evaluate_together(part.source, [model.expansion], X[:9], np.arange(9))
    np.testing.assert_allclose(together, model.expansion.evaluate(X[:9]), atol=1e-10)


@pytest.mark.parametrize("gram", ["dense", "memmap"])
def test_weights_of_zero_repairs_and_callbacks_go_together(gram):
    K = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    K2 = K - 0.4 * np.eye(60)
    weight = (np.arange(60) % 4 > 0).astype(float)
    seen = []
    stack = stack_kernels([K, K2])
    model = MKLClassifier("precomputed", psd="clip", gram=gram, callback=lambda row: seen.append(row))
    model.fit(stack, CODES > 0, sample_weight=weight)
    assert seen
    for row in seen:
        assert row["decision_function"](stack).shape == (60,)
    np.testing.assert_allclose(seen[-1]["decision_function"](stack), model.decision_function(stack), atol=1e-6)
    kept = np.flatnonzero(weight)
    part = stack_kernels([K[np.ix_(kept, kept)], K2[np.ix_(kept, kept)]])
    explicit = MKLClassifier("precomputed", psd="clip").fit(part, CODES[kept] > 0)
    assert model.objective_ == pytest.approx(explicit.objective_, rel=1e-3)
    # the caller's matrices are as they were
    np.testing.assert_array_equal(K2, K - 0.4 * np.eye(60))


def test_a_repair_makes_another_gram():
    bad = np.diag(np.r_[np.ones(59), -0.5])
    stack = stack_kernels([np.eye(60), bad])
    with pytest.raises(ValueError, match="must be positive semidefinite"):
        prepare("precomputed", stack, None, SETTINGS)
    clipped = prepare("precomputed", stack, None, replace(SETTINGS, psd="clip", normalize=None))
    assert clipped.known_psd.tolist() == [False, True] and list(clipped.projectors) == [1]
    np.testing.assert_allclose(clipped.gram.rows(np.arange(60))[1], np.diag(np.r_[np.ones(59), 0.0]), atol=1e-12)


def test_constant_kernels_are_named_once():
    with pytest.warns(UserWarning, match="constant on the training samples") as caught:
        prepare([("flat", Linear(), [0]), *KERNELS], np.column_stack([np.ones(60), X]), None, SETTINGS)
    assert len(caught) == 1 and "'flat'" in str(caught[0].message)


def test_samples_without_weights_count_once():
    samples = kept_samples(X, CODES, None)
    np.testing.assert_array_equal(samples.ones, np.ones(60))
    assert prepare(rbf_family([1.0]), X, np.full(60, 2.0), SETTINGS).weight is None


@pytest.mark.parametrize("loss", ["squared", "hinge"])
def test_arrays_that_callers_write_to_are_not_those_that_predict(loss):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 3
    for multiclass in ("joint", "ovr"):
        model = MKLClassifier("rbf", C=1e-3, loss=loss, multiclass=multiclass).fit(X, y)
        before = model.decision_function(X)
        # every sample is a support vector: nothing had to be gathered
        assert len(model.support_) == 40
        for name in ("dual_coef_", "weights_", "intercept_", "kernel_contributions_"):
            getattr(model, name)[...] = 7.0
        np.testing.assert_array_equal(model.decision_function(X), before)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("loss", ["squared", "hinge"])
def test_a_change_of_the_attributes_leaves_the_model_as_it_is(loss, classes):
    # with the squared loss every sample is a support vector
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), np.arange(30) % classes
    model = MKLClassifier(loss=loss).fit(X, y)
    before, weights = model.decision_function(X), model.model_.weights.copy()
    for name in ("dual_coef_", "intercept_", "weights_"):
        if isinstance(value := getattr(model, name), np.ndarray):
            value[...] = 7.0
    assert np.array_equal(model.decision_function(X), before) and np.array_equal(model.model_.weights, weights)
    assert not np.any(model.model_.coef == 7.0)
