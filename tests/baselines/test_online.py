"""UFO-MKL and OBSCURE as estimators: kernels, stacks and features, when to stop, and what is refused."""

import pickle
import signal
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from interrupted import interrupted
from problems_online import BOTH, NAMED, K, N, X, Y, draw, quiet
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from multikernel import OBSCUREClassifier, UFOMKLClassifier, stack_kernels
from multikernel.estimators.baselines.linear_features import LinearFeatures
from multikernel.estimators.baselines.online_blocks import KernelBlocks
from multikernel.estimators.baselines.online_run import Run
from multikernel.kernels import RBF, KernelBank, Linear

pytestmark = quiet


# ---- kernels, stacks, features


@pytest.mark.parametrize("learner", BOTH)
@pytest.mark.parametrize("normalize", [None, "variance", "cosine", ["center", "cosine"], ["cosine", "center", "trace"]])
def test_features_and_kernels_agree(learner, normalize):
    options = {"normalize": normalize, "max_iter": 12, "random_state": 5}
    features = learner(NAMED, **options).fit(X, Y)
    kernels = learner(NAMED, gram="dense", **options).fit(X, Y)
    lazy = learner(NAMED, gram="lazy", **options).fit(X, Y)
    assert (features.gram_.kind, kernels.gram_.kind, lazy.gram_.kind) == ("features", "dense", "lazy")
    new = draw(15, seed=9)[0]
    for other in (kernels, lazy):
        assert features.objective_ == pytest.approx(other.objective_, rel=1e-6)
        assert features.duality_gap_ == pytest.approx(other.duality_gap_, rel=1e-4)
        np.testing.assert_allclose(features.weights_, other.weights_, rtol=1e-5)
        np.testing.assert_allclose(features.decision_function(new), other.decision_function(new), atol=1e-5)
        np.testing.assert_allclose(features.kernel_contributions_, other.kernel_contributions_, atol=1e-6)


@pytest.mark.parametrize("steps", [None, "variance", "trace", "cosine", "center", ["center", "cosine", "variance"]])
@pytest.mark.parametrize("weight", [None, 1.0 + np.arange(N) % 4])
def test_normalised_features_have_the_normalised_kernel(steps, weight):
    bank = KernelBank.fit(NAMED, X, weight, steps)
    source = LinearFeatures.fit(NAMED, X, weight, steps)
    new = draw(7, seed=2)[0]
    for k, (Z, T) in enumerate(zip(source.maps(X), source.maps(new), strict=True)):
        known = bank.normalizer(k, X, weight)
        np.testing.assert_allclose(Z @ Z.T, known.train_block(bank.raw(k, X)), atol=1e-12)
        diag = bank.raw_diag(k, new)
        np.testing.assert_allclose(T @ Z.T, known.cross(bank.raw(k, new, X), diag), atol=1e-12)


@pytest.mark.parametrize("learner", BOTH)
@pytest.mark.parametrize("average", [True, False])
def test_stacks_of_any_kind_give_the_model_of_the_kernels(learner, average):
    kernels = [RBF(width=1.0), RBF(width=3.0), ("linear", Linear(), [0, 1])]
    options = {"average": average, "max_iter": 10, "random_state": 1}
    computed = learner(kernels, **options).fit(X, Y)
    raw = np.array([KernelBank.fit(kernels, X).raw(k, X) for k in range(3)])
    raw.flags.writeable = False
    for stack in (stack_kernels(raw), stack_kernels(list(raw))):
        model = learner("precomputed", **options).fit(stack, Y)
        assert model.objective_ == pytest.approx(computed.objective_, rel=1e-5)
        np.testing.assert_allclose(model.decision_function(stack), computed.decision_function(X), atol=1e-3)
    small = learner("precomputed", **options).fit(stack_kernels(raw.astype(np.float32)), Y)
    assert small.gram_.dtype == "float32"
    assert small.objective_ == pytest.approx(computed.objective_, rel=1e-3)
    half = np.arange(0, N, 2)
    part = learner("precomputed", **options).fit(stack_kernels(raw)[half], Y[half])
    own = stack_kernels(np.ascontiguousarray(raw[:, half][:, :, half]))
    alone = learner("precomputed", **options).fit(own, Y[half])
    np.testing.assert_allclose(part.weights_, alone.weights_)
    assert part.predict(stack_kernels(raw)).shape == (N,)


@pytest.mark.parametrize("learner", BOTH)
def test_a_model_survives_pickling_and_frames(learner):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcd"))
    labels = np.array(["red", "green", "blue"])[Y]
    model = learner([("ab", Linear(), ["a", "b"]), ("cd", Linear(), ["c", "d"])], max_iter=20, random_state=0)
    model.fit(frame, labels)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(frame), model.predict(frame))
    assert set(model.predict(frame)) <= set(labels) and model.score(frame, labels) > 0.7
    assert list(model.feature_names_in_) == list("abcd") and model.kernel_names_ == ["ab", "cd"]
    assert model.coef_.shape == (3, 4) and not hasattr(model, "support_")


@pytest.mark.parametrize("learner", BOTH)
def test_two_classes_have_one_column(learner):
    y = np.where(Y == 0, "no", "yes")
    model = learner(max_iter=30, random_state=0).fit(X, y)
    scores = model.decision_function(X)
    assert scores.shape == (N,) and np.array_equal(model.predict(X), np.where(scores > 0, "yes", "no"))


@pytest.mark.parametrize("learner", BOTH)
def test_seeds_decide_the_path(learner):
    fits = [learner(max_iter=3, random_state=seed).fit(X, Y).history_["primal"] for seed in (0, 0, 1)]
    assert np.array_equal(fits[0], fits[1]) and not np.array_equal(fits[0], fits[2])


# ---- when to stop


@pytest.mark.parametrize("learner", BOTH)
@pytest.mark.parametrize("kernels", ["rbf", [Linear()]])
def test_samples_held_out_stop_it(learner, kernels):
    big, labels = draw(150, seed=4)
    model = learner(kernels, early_stopping=True, validation_fraction=0.2, n_iter_no_change=4, tol=1e-9, random_state=0)
    model.fit(big, labels)
    assert model.status_ == "settled" and model.n_iter_ < model.max_iter
    score = model.history_["score"]
    assert np.all(np.diff(score) >= 0) and score[-1] == score[-5] and score[-1] > 0.6
    if kernels == "rbf":
        assert len(model.support_) <= 120


@pytest.mark.parametrize("learner", BOTH)
def test_the_gap_stops_it(learner):
    model = learner("precomputed", normalize=None, C=0.1, tol=0.1, random_state=0).fit(stack_kernels(K), Y)
    assert model.status_ == "converged" and model.duality_gap_ <= 0.1
    assert len(model.history_["gap"]) == model.n_iter_ < 100


@pytest.mark.parametrize("learner", BOTH)
def test_too_few_epochs_are_told(learner):
    with pytest.warns(ConvergenceWarning, match=r"max_iter: after 1 epoch the relative duality gap is .* raise"):
        learner(max_iter=1).fit(X, Y)


@pytest.mark.parametrize("learner", BOTH)
@pytest.mark.parametrize("seed", range(3))
def test_few_epochs_are_never_worse_than_the_zero_predictor(learner, seed):
    rng = np.random.default_rng(seed)
    far, kinds = 100 * rng.standard_normal((60, 5)), rng.integers(0, 3, 60)
    model = learner([Linear(), RBF()], max_iter=3, normalize=None, C=10.0).fit(far, kinds)
    # the mean of the hinge of outputs that are all zero
    assert model.objective_ <= 1.0


@pytest.mark.parametrize("learner", BOTH)
def test_an_interruption_leaves_the_best_model(learner, monkeypatch):
    visit, count = KernelBlocks.visit, []

    def stop(self, *args):
        count.append(1)
        if len(count) > 8:
            raise KeyboardInterrupt
        visit(self, *args)

    monkeypatch.setattr(KernelBlocks, "visit", stop)
    model = learner(tol=1e-9, random_state=0)
    with interrupted("was interrupted after"):
        model.fit(X, Y)
    assert model.status_ == "interrupted" and model.score(X, Y) > 0.5 and model.duality_gap_ < np.inf


def test_an_interruption_in_the_first_epoch_leaves_a_model(monkeypatch):
    def stop(self, *args):
        raise KeyboardInterrupt

    monkeypatch.setattr(KernelBlocks, "visit", stop)
    model = UFOMKLClassifier()
    with interrupted("interrupted after 0 epochs"):
        model.fit(X, Y)
    assert model.predict(X).shape == (N,) and not model.block_norms_.any()


# found by the drill: Ctrl-C while Numba fills its list of kernels, or looks at it
def turned(*args):
    """Ctrl-C that Numba turns into an error of its own while it looks at a list."""
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        raise TypeError("can't unbox a <class 'numba.typed.typedlist.List'> as a <NULL>") from None


def lost(*args):
    """Ctrl-C that nothing is left of."""
    with suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("become", [turned, lost])
def test_an_interruption_that_numba_turns_into_another_error_or_loses_is_one(become, monkeypatch, heard):
    monkeypatch.setattr("multikernel.estimators.baselines.online_blocks.visit_kernels", become)
    with interrupted("interrupted after 0 epochs"):
        UFOMKLClassifier().fit(X, Y)


@pytest.mark.parametrize("become", [turned, lost])
def test_an_interruption_while_the_list_is_filled_is_one(become, monkeypatch, heard):
    monkeypatch.setattr("multikernel.estimators.baselines.online_blocks.List", become)
    with pytest.raises(KeyboardInterrupt):
        UFOMKLClassifier().fit(X, Y)


def test_a_wrong_type_without_an_interruption_stays_one(monkeypatch):
    def wrong(*args):
        raise TypeError("another")

    monkeypatch.setattr("multikernel.estimators.baselines.online_blocks.visit_kernels", wrong)
    with pytest.raises(TypeError, match="another"):
        UFOMKLClassifier().fit(X, Y)


# ---- bad input

SENTENCES = [
    ("C", 0, "a positive number. Got 0 instead."),
    ("alpha", -0.1, "a non-negative number. Got -0.1 instead."),
    ("block_norm", 1.0, "None or a number above 1 and at most 2. Got 1.0 instead."),
    ("block_norm", 3, "None or a number above 1 and at most 2. Got 3 instead."),
    ("average", "yes", "True or False. Got 'yes' instead."),
    ("early_stopping", 1, "True or False. Got 1 instead."),
    ("validation_fraction", 1.0, "a number between 0 and 1. Got 1.0 instead."),
    ("n_iter_no_change", 0, "a positive integer. Got 0 instead."),
    ("online_epochs", -1, "a non-negative integer. Got -1 instead."),
    ("max_iter", 0, "a positive integer. Got 0 instead."),
    ("tol", 0, "a positive number. Got 0 instead."),
]
OWNED = [(learner, *each) for learner in BOTH for each in SENTENCES if each[0] in learner().get_params()]


@pytest.mark.parametrize(("learner", "name", "value", "rest"), OWNED, ids=lambda value: str(value)[:12])
def test_a_wrong_parameter_is_named(learner, name, value, rest):
    with pytest.raises(ValueError) as error:
        learner(**{name: value}).fit(X, Y)
    assert str(error.value) == f"The '{name}' parameter of {learner.__name__} must be {rest}"


def test_one_class_and_a_class_of_one_are_refused():
    with pytest.raises(ValueError, match="UFOMKLClassifier needs samples of at least 2 classes"):
        UFOMKLClassifier().fit(X, np.zeros(N))
    lonely = np.array([7, *Y[1:]])
    with pytest.raises(ValueError, match=r"'validation_fraction' parameter .* must leave samples of every class"):
        UFOMKLClassifier(early_stopping=True).fit(X, lonely)
    with pytest.raises(NotFittedError):
        OBSCUREClassifier().predict(X)


def test_indefinite_kernels_are_refused_or_repaired():
    bad = K[0] - 0.5 * np.eye(N)
    with pytest.raises(ValueError, match="must be positive semidefinite"):
        UFOMKLClassifier("precomputed").fit(stack_kernels([K[1], bad]), Y)
    model = UFOMKLClassifier("precomputed", psd="clip", random_state=0).fit(stack_kernels([K[1], bad]), Y)
    assert model.score(stack_kernels([K[1], bad]), Y) > 0.6


def test_a_kernel_that_proves_indefinite_in_training_is_refused_or_repaired(monkeypatch):
    run, met = Run.run, []

    def suspect(self, *args):
        result = run(self, *args)
        met.append(result.curvature)
        # as if the first run had met a negative curvature of the first kernel
        return replace(result, curvature=np.where(np.arange(len(K)) == 0, -1e3, np.inf)) if len(met) == 1 else result

    monkeypatch.setattr(Run, "run", suspect)
    UFOMKLClassifier("precomputed", psd="clip", max_iter=3).fit(stack_kernels(K), Y)
    assert len(met) == 2 and np.all(met[0] > 0)
    met.clear()
    with pytest.raises(ValueError, match="'kernel_0' must be positive semidefinite"):
        UFOMKLClassifier("precomputed", max_iter=3).fit(stack_kernels(K), Y)


def test_features_need_linear_kernels():
    assert UFOMKLClassifier(NAMED, gram="features", max_iter=2).fit(X, Y).gram_.kind == "features"
    with pytest.raises(ValueError, match=r"gram='features' of UFOMKLClassifier needs .* Got kernels='rbf' instead"):
        UFOMKLClassifier(gram="features").fit(X, Y)


def test_a_constant_kernel_is_named():
    with pytest.warns(UserWarning, match="'flat'"):
        UFOMKLClassifier([("x", Linear(), [0]), ("flat", Linear(), [1])]).fit(np.c_[X[:, 0], np.ones(N)], Y)


def test_progress_is_told_in_plain_lines_on_standard_error(capsys):
    UFOMKLClassifier(verbose=2, max_iter=2).fit(X, Y)
    told = capsys.readouterr()
    assert told.out == "" and told.err.startswith("UFOMKLClassifier: starting\nUFOMKLClassifier: iteration 1, gap ")


# ---- benchmarks


def test_the_benchmarks_run_on_small_draws(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    import online

    online.epochs(60, 4, repeats=1)
    online.fits(60, 4, repeats=1)
    online.m3k(60, 4, repeats=1)
    online.memory_of(60, 4)
    assert capsys.readouterr().out.count("passes") == 6


def test_small_costs_are_certified_at_once():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    model = OBSCUREClassifier(C=1e-300, max_iter=10**9).fit(X, X[:, 0] > 0)
    assert model.status_ == "converged" and model.duality_gap_ <= model.tol and model.n_iter_ == 1
