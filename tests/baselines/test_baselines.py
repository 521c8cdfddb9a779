"""Two-stage estimators, EasyMKL and LP-beta: what all of them keep, take and refuse."""

import pickle
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from problems_baselines import FULL, KERNELS, LABELS, NUMBERS, TWO, N, X
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_predict, cross_val_score
from sklearn.svm import SVC, SVR

from multikernel import (
    DiscriminantMKLClassifier,
    EasyMKLClassifier,
    LPBetaClassifier,
    OBSCUREClassifier,
    TwoStageClassifier,
    TwoStageRegressor,
    UFOMKLClassifier,
    stack_kernels,
)
from multikernel.estimators import baselines as twostage

CLASSIFIERS = [
    TwoStageClassifier(KERNELS),
    TwoStageClassifier(KERNELS, weights=twostage.BinaryMKLWeights(), normalize=["center", "trace"]),
    EasyMKLClassifier(KERNELS),
    EasyMKLClassifier(KERNELS, normalize=["cosine", "center"]),
    LPBetaClassifier(KERNELS, cv=3),
    LPBetaClassifier(KERNELS, cv=3, per_class=True, C=[0.1, 1.0]),
]


@pytest.mark.parametrize("model", CLASSIFIERS, ids=str)
def test_models_survive_pickling_and_know_their_kernels(model):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    fitted = clone(model).fit(frame[:N], TWO[:N])
    assert fitted.kernel_names_ == ["wide", "narrow", "line"]
    assert list(fitted.feature_names_in_) == list("abcdef")
    assert np.atleast_2d(fitted.weights_).shape[1] == 3
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(frame[N:]), fitted.predict(frame[N:]))
    assert set(fitted.predict(frame[N:])) <= {"no", "yes"}
    assert fitted.score(frame[N:], TWO[N:]) > 0.6
    with pytest.raises(NotFittedError):
        clone(model).predict(X)


@pytest.mark.parametrize("model", CLASSIFIERS, ids=str)
def test_stacks_go_through_model_selection(model):
    model = clone(model).set_params(kernels="precomputed", normalize="variance")
    stack = stack_kernels(FULL)
    predicted = cross_val_predict(model, stack, LABELS, cv=3)
    assert np.mean(predicted == LABELS) > 0.45
    assert cross_val_score(model, stack, LABELS, cv=3).mean() == pytest.approx(np.mean(predicted == LABELS), abs=0.02)


@pytest.mark.parametrize(
    ("model", "y", "sentence"),
    [
        (
            TwoStageClassifier(weights=3),
            TWO,
            "'weights' parameter of TwoStageClassifier must be None or a weights object",
        ),
        (
            TwoStageClassifier(estimator=SVC()),
            TWO,
            "must be None or a classifier that takes a precomputed kernel, such as SVC(",
        ),
        (
            TwoStageClassifier(estimator=SVR(kernel="precomputed")),
            TWO,
            "must be None or a classifier that takes a precomputed",
        ),
        (TwoStageRegressor(estimator=SVC(kernel="precomputed")), NUMBERS, "must be None or a regressor that takes"),
        (TwoStageRegressor(weights=twostage.BinaryMKLWeights()), NUMBERS, "BinaryMKLWeights needs classes"),
        (TwoStageClassifier(), np.zeros(N), "TwoStageClassifier needs samples of at least 2 classes"),
        (
            EasyMKLClassifier(lam=0),
            TWO,
            "'lam' parameter of EasyMKLClassifier must be a number above 0 and at most 1. Got 0",
        ),
        (EasyMKLClassifier(lam=1.1), TWO, "must be a number above 0 and at most 1. Got 1.1 instead"),
        (EasyMKLClassifier(), np.zeros(N), "EasyMKLClassifier needs samples of at least 2 classes"),
        (
            LPBetaClassifier(nu=0),
            TWO,
            "'nu' parameter of LPBetaClassifier must be a number above 0 and at most 1, or a list of them. Got 0",
        ),
        (LPBetaClassifier(C=[]), TWO, "'C' parameter of LPBetaClassifier must be a positive number or a list of them"),
        (LPBetaClassifier(C=-1), TWO, "must be a positive number or a list of them. Got -1 instead"),
        (
            LPBetaClassifier(per_class="B"),
            TWO,
            "'per_class' parameter of LPBetaClassifier must be True or False. Got 'B'",
        ),
        (LPBetaClassifier(), np.zeros(N), "LPBetaClassifier needs samples of at least 2 classes"),
    ],
    ids=lambda value: str(value)[:40] if not isinstance(value, np.ndarray) else "",
)
def test_a_sentence_says_what_is_wrong(model, y, sentence):
    with pytest.raises(ValueError) as error:
        model.fit(X[:N], y[:N])
    assert sentence in str(error.value)


@pytest.mark.parametrize("model", CLASSIFIERS, ids=str)
def test_texts_and_numbers_together_are_no_classes(model):
    mixed = TWO.astype(object)
    mixed[TWO == "no"] = 1
    with pytest.raises(ValueError, match=f"y of {type(model).__name__} must hold targets of one kind. Got texts and 1"):
        clone(model).fit(X, mixed)


class _Rule(BaseEstimator):
    """Weights that are given."""

    def __init__(self, given=None):
        self.given = given

    def fit(self, stack, y, sample_weight=None):
        if self.given is not None:
            self.weights_ = self.given
        return self


@pytest.mark.parametrize(
    ("given", "got"), [(None, "None"), ([1.0] * 5, r"shape \(5,\)"), ([1.0, -1.0, 0.0], "-1"), ([np.nan] * 3, "nan")]
)
def test_weights_of_ones_own_must_be_one_number_for_each_kernel(given, got):
    sentence = f"'weights' parameter of TwoStageClassifier must set weights_ to 3 non-negative numbers.* Got ({got})"
    with pytest.raises(ValueError, match=sentence):
        TwoStageClassifier(KERNELS, weights=_Rule(given)).fit(X, TWO)


@pytest.mark.parametrize("options", [{"weights": _Rule}, {"estimator": SVC}], ids=str)
def test_a_class_is_no_object(options):
    with pytest.raises(ValueError, match=f"'{next(iter(options))}' parameter of TwoStageClassifier must be None or a"):
        TwoStageClassifier(KERNELS, **options).fit(X, TWO)


@pytest.mark.parametrize(
    "model",
    [
        TwoStageClassifier(),
        TwoStageClassifier(normalize=["center", "cosine"]),
        TwoStageClassifier(weights=twostage.BinaryMKLWeights()),
        TwoStageClassifier(weights=twostage.BestSingleKernel(cv=3)),
        EasyMKLClassifier(),
        LPBetaClassifier(cv=3),
    ],
    ids=str,
)
def test_memory_stays_below_the_stack_and_a_quarter(model):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(400, 3))
    distance = np.square(Z[:, None] - Z).sum(axis=2)
    stack = stack_kernels(np.stack([np.exp(-distance / width) for width in np.logspace(-2, 2, 24)]).astype(np.float32))
    y = Z[:, 0] > 0
    model = clone(model).set_params(kernels="precomputed", n_jobs=1)
    model.fit(stack, y)
    tracemalloc.start()
    model.fit(stack, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.25 * stack.nbytes


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_benchmarks_run_on_small_draws(monkeypatch, capsys):
    folder = Path(__file__).parents[2] / "benchmarks"
    monkeypatch.syspath_prepend(str(folder))
    for name in ("run", "workloads"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import importlib

    baselines = importlib.import_module("baselines")
    baselines.weights([(100, name, 1e9) for _, name, _ in baselines.WEIGHTS], repeats=1)
    baselines.fits([(100, name, 1e9) for _, name, _ in baselines.FITS[1:]], repeats=1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(baselines.WEIGHTS) + len(baselines.FITS) - 1
    assert all(line.endswith("ok") for line in lines)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    "estimator, setting, wrong, words",
    [
        (OBSCUREClassifier, "C", 5e-324, "'C' times the number of samples, must be at least 2e-308"),
        (UFOMKLClassifier, "C", 1e100, r"'C' times the number of samples, must be at most 3e\+61"),
        (LPBetaClassifier, "C", 1e200, "'C' times the sample weights, must be at most"),
        (DiscriminantMKLClassifier, "reg", 1e-300, r"the sample weights over 2 'reg', must be at most 3e\+61"),
    ],
)
def test_costs_that_float64_cannot_work_with_are_refused(estimator, setting, wrong, words):
    X = np.random.default_rng(0).normal(size=(20, 2))
    y = np.arange(20) % 2
    with pytest.raises(ValueError, match=f"costs of {estimator.__name__}, {words}"):
        estimator(**{setting: wrong}).fit(X, y)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_discriminants_of_tiny_sample_weights_are_those_of_equal_ones():
    X = np.random.default_rng(0).normal(size=(24, 2))
    y = np.arange(24) % 3
    tiny = DiscriminantMKLClassifier(reg=1e-12).fit(X, y, sample_weight=np.full(24, 1e-300))
    np.testing.assert_allclose(tiny.weights_, DiscriminantMKLClassifier(reg=1e-12).fit(X, y).weights_, atol=1e-6)
