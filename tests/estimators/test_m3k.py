"""M3K as an estimator: laws of the margin, storage, bad input, and the search for its parameters."""

import importlib
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from interrupted import interrupted
from problems_margin import inexact, views
from reference_margin import eta_of, margin_programme
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from multikernel import M3KClassifier, M3KClassifierCV, MKLClassifier, stack_kernels
from multikernel.estimators.baselines import KernelMarginWeights
from multikernel.kernels import RBF, Linear
from multikernel.theory import kernel_margin
from multikernel.training import margin_targets

pytestmark = inexact


def fit(stack, y, **options):
    return M3KClassifier("precomputed", normalize=None, tol=1e-6, **options).fit(stack_kernels(stack), y)


# ---- laws


@pytest.mark.parametrize("c", [2, 3, 5])
def test_the_margin_only_takes_away(c):
    stack, y = views(c=c)
    joint = MKLClassifier(
        "precomputed", multiclass="joint", fit_intercept=False, normalize=None, tol=1e-6, C=2.0 if c == 2 else 1.0
    ).fit(stack_kernels(stack), y)
    # two classes: joint(K, C) = 1/2 binary(K, 2 C)
    optimum = joint.objective_ / (2.0 if c == 2 else 1.0)
    free = fit(stack, y, gamma0=-np.inf)
    assert free.objective_ == pytest.approx(optimum, rel=1e-5) and free.gamma0_ == -np.inf
    values = [fit(stack, y, gamma0_fraction=fraction).objective_ for fraction in (0.0, 0.6, 0.9, 1.0)]
    assert np.all(np.diff(values) >= -2e-6 * values[0]) and values[0] >= optimum * (1 - 2e-6)


def test_the_largest_margin_solves_the_linear_programme():
    stack, y = views(c=4, seed=3)
    model = fit(stack, y)
    value, _ = margin_programme(eta_of(stack, y), y, None)
    assert kernel_margin(stack, y, model.weights_) == pytest.approx(value, abs=1e-6)
    assert model.gamma0_ == model.gamma0_max_ == pytest.approx(value, abs=1e-6)
    assert model.margin_ == pytest.approx(kernel_margin(stack, y, model.weights_))
    again = fit(stack, y, gamma0=model.gamma0_max_)
    assert again.weights_ == pytest.approx(model.weights_, abs=1e-6)


def test_copies_of_kernels_change_nothing_but_the_weights():
    stack, y = views()
    one, two = (fit(each, y, gamma0_fraction=0.9) for each in (stack, np.concatenate([stack, stack])))
    assert two.objective_ == pytest.approx(one.objective_, rel=1e-5)
    assert two.gamma0_max_ == pytest.approx(one.gamma0_max_)


def test_two_classes_have_one_output_and_the_joint_scale():
    stack, y = views(c=2)
    model = fit(stack, np.array(["no", "yes"])[y], gamma0_fraction=0.9)
    scores = model.decision_function(stack_kernels(stack))
    assert scores.shape == (60,) and model.dual_coef_.shape[0] == 2
    assert np.array_equal(model.predict(stack_kernels(stack)), np.where(scores > 0, "yes", "no"))
    assert model.intercept_ == pytest.approx(np.zeros(2))


def test_sample_weights_count_as_repetitions_in_the_margins_too():
    stack, y = views()
    weight = np.where(np.arange(60) % 3 == 0, 2.0, 1.0)
    weight[5] = 0.0
    rows = np.repeat(np.arange(60), weight.astype(int))
    one = M3KClassifier("precomputed", normalize=None, tol=1e-7, gamma0_fraction=0.95).fit(
        stack_kernels(stack), y, sample_weight=weight
    )
    two = fit(np.ascontiguousarray(stack[:, rows][:, :, rows]), y[rows], gamma0_fraction=0.95)
    assert one.gamma0_ == pytest.approx(two.gamma0_, rel=1e-9)
    assert one.objective_ == pytest.approx(two.objective_, rel=1e-5)
    assert one.weights_ == pytest.approx(two.weights_, abs=1e-3)


@pytest.mark.parametrize("options", [{}, {"gram": "lazy"}, {"norm": 2.0}, {"solver": "level"}])
def test_the_papers_normalisation_pickles_and_other_storages(options):
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 25)
    X = np.hstack([np.repeat(np.eye(3), 25, axis=0) + 0.4 * rng.normal(size=(75, 3)), rng.normal(size=(75, 2))])
    X.flags.writeable = False
    kernels = [("useful", Linear(), [0, 1, 2]), ("mixed", RBF(), slice(None)), ("noise", RBF(), [3, 4])]
    model = M3KClassifier(kernels, normalize=["center", "cosine"], gamma0_fraction=0.8, **options).fit(X, y)
    assert model.status_ == "converged" and model.score(X, y) > 0.85
    assert model.margin_ >= model.gamma0_ - 1e-9
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.predict(X), model.predict(X))
    assert "_samples" not in vars(model) and "_margins" not in vars(model)
    dense = M3KClassifier(kernels, normalize=["center", "cosine"], gamma0_fraction=0.8, norm=options.get("norm", 1.0))
    assert dense.fit(X, y).objective_ == pytest.approx(model.objective_, rel=2e-3)


def test_single_precision_stays_and_nothing_is_written():
    stack, y = views()
    small = stack.astype(np.float32)
    small.flags.writeable = False
    model = M3KClassifier("precomputed", normalize=None, gamma0_fraction=0.9).fit(stack_kernels(small), y)
    assert model.gram_.dtype == "float32"
    assert model.objective_ == pytest.approx(fit(stack, y, gamma0_fraction=0.9).objective_, rel=2e-3)


def test_iterations_are_told_and_an_interrupted_fit_keeps_its_best_model():
    stack, y = views()
    rows = []

    def stop(row):
        rows.append(row)
        if len(rows) == 3:
            raise KeyboardInterrupt

    model = M3KClassifier("precomputed", normalize=None, tol=1e-9, gamma0_fraction=0.9, callback=stop)
    with interrupted("M3KClassifier was interrupted"):
        model.fit(stack_kernels(stack), y)
    assert model.status_ == "interrupted" and model.margin_ >= model.gamma0_ - 1e-9
    assert rows[0]["decision_function"](stack_kernels(stack)).shape == (60, 3)
    assert fit(stack, y, gamma0_fraction=0.9).objective_ <= model.objective_ * (1 + 1e-6)


def test_a_class_of_one_sample_takes_part():
    stack, y = views()
    y[0] = 3
    model = fit(stack, y, gamma0_fraction=0.9)
    assert len(model.classes_) == 4 and model.status_ == "converged"


# ---- bad input

SENTENCES = [
    ({"gamma0": np.nan}, "The 'gamma0' parameter of M3KClassifier must be 'max', a number or -inf. Got nan instead."),
    ({"gamma0": np.inf}, "The 'gamma0' parameter of M3KClassifier must be 'max', a number or -inf. Got inf instead."),
    ({"gamma0": "large"}, "must be 'max', a number or -inf. Got 'large' instead."),
    ({"gamma0": 0.1, "gamma0_fraction": 0.5}, "must be 'max' where 'gamma0_fraction' is given. Got 0.1 instead."),
    ({"gamma0_fraction": 1.5}, "must be None or a number from 0 to 1. Got 1.5 instead."),
    ({"norm": np.inf}, "The 'norm' parameter of M3KClassifier must be a finite number of at least 1. Got inf instead."),
    ({"norm": 2.0, "gamma0": -0.1}, "would hold weights of zero. Got norm=2 with gamma0=-0.1 instead."),
]


@pytest.mark.parametrize(("options", "sentence"), SENTENCES, ids=lambda value: str(value)[:30])
def test_a_wrong_parameter_is_named(options, sentence):
    stack, y = views(n=20)
    with pytest.raises(ValueError) as error:
        fit(stack, y, **options)
    assert str(error.value).endswith(sentence)


def test_an_infeasible_margin_is_printed_as_a_number():
    stack, y = views(n=20)
    with pytest.raises(ValueError, match=r"Got 1000 instead\.$"):
        fit(stack, y, gamma0=np.float64(1000.0))


def test_an_infeasible_margin_names_the_largest():
    stack, y = views(n=20)
    top, _ = margin_programme(eta_of(stack, y), y, None)
    with pytest.raises(ValueError, match="'gamma0' parameter of M3KClassifier must be at most") as error:
        fit(stack, y, gamma0=1.01 * top)
    assert float(str(error.value).split("at most ")[1].split(",")[0]) == pytest.approx(top, rel=1e-6)


def test_margins_that_are_all_negative():
    # most samples are most similar to the other class: seven at 1, one at 2
    y, x = np.append(np.zeros(7, int), 1), np.append(np.ones(7), 2.0)
    stack = np.array([np.outer(x, x), np.outer(x, x) + 0.1 * np.eye(8)])
    assert kernel_margin(stack, y, [1.0, 0.0]) == pytest.approx(-5.0 / 8.0)
    with pytest.raises(ValueError, match="norm=2 with kernels of which no mix has a positive margin"):
        fit(stack, y, norm=2.0)
    with pytest.raises(ValueError, match="must be 1 where no mix of the kernels has a positive margin"):
        KernelMarginWeights(norm=2.0).fit(stack, y)
    model = fit(stack, y, gamma0_fraction=0.5)
    assert model.gamma0_ == pytest.approx(1.5 * model.gamma0_max_) and model.gamma0_max_ < 0


def test_one_class_is_refused():
    stack, y = views(n=20)
    with pytest.raises(ValueError, match="needs samples of at least 2 classes"):
        fit(stack, np.zeros(20))
    with pytest.raises(ValueError, match=r"at least 2 classes\. Got 1 instead"):
        kernel_margin(stack, np.zeros(20))
    with pytest.raises(ValueError, match="one class for each of 20 samples"):
        kernel_margin(stack, y[:5])
    with pytest.raises(ValueError, match="5 non-negative numbers"):
        kernel_margin(stack, y, [1.0, -1.0, 0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="20 positive numbers"):
        kernel_margin(stack, y, sample_weight=np.zeros(20))


# ---- cross-validation


def test_the_search_chooses_as_a_grid_search_and_shares_the_margins(monkeypatch):
    stack, y = views(n=60, seed=4)
    counted = []
    original = margin_targets.margin_table
    monkeypatch.setattr(margin_targets, "margin_table", lambda *args: counted.append(1) or original(*args))
    folds = StratifiedKFold(3)
    grid = {"C": [0.05, 1.0], "gamma0_fraction": [0.3, 0.9, 1.0]}
    base = M3KClassifier("precomputed", normalize=None, tol=1e-5)
    search = M3KClassifierCV(
        "precomputed", normalize=None, tol=1e-5, Cs=grid["C"], gamma0_fractions=grid["gamma0_fraction"], cv=folds
    ).fit(stack_kernels(stack), y)
    # one table a fold, and one for the model that is kept
    assert len(counted) == 4
    baseline = GridSearchCV(clone(base), grid, cv=folds).fit(stack_kernels(stack), y)
    assert search.cv_results_["mean_test_score"] == pytest.approx(baseline.cv_results_["mean_test_score"], abs=0.02)
    assert search.best_params_ == baseline.best_params_
    assert search.margin_ >= search.gamma0_ - 1e-9
    assert search.gamma0_fraction_ == search.best_params_["gamma0_fraction"]
    assert search.weights_path_.shape == (3, 6, 5)


def test_wrong_axes_are_named():
    stack, y = views(n=20)
    with pytest.raises(ValueError, match="'gamma0_fractions' parameter of M3KClassifierCV must be None or a list"):
        M3KClassifierCV("precomputed", gamma0_fractions=[0.5, 2.0]).fit(stack_kernels(stack), y)
    with pytest.raises(ValueError, match="must be 'max' where 'gamma0_fractions' are given"):
        M3KClassifierCV("precomputed", gamma0=0.1, gamma0_fractions=[0.5]).fit(stack_kernels(stack), y)


def test_the_search_refuses_norms_that_the_estimator_refuses():
    X, y = np.random.default_rng(0).normal(size=(30, 3)), np.arange(30) % 3
    with pytest.raises(ValueError, match=r"'norms' parameter .* each is a finite number of at least 1. Got inf"):
        M3KClassifierCV(norms=[1.0, np.inf]).fit(X, y)
    with pytest.raises(ValueError, match=r"The 'cv' parameter of M3KClassifierCV must be .* Got \[\] instead"):
        M3KClassifierCV(Cs=[1.0, 2.0], cv=[]).fit(X, y)


# ---- benchmarks


def test_the_benchmarks_run_on_small_draws(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    for name in ("run", "workloads", "joint", "tasks", "margin"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    margin = importlib.import_module("margin")
    margin.passes("toy", (60, 3, 4), [(1.0, 1e-3, 1e9), (0.8, 1e-3, 1e9)], repeats=1)
    margin.passes("images", (60, 6, 4), [(0.9, 1e-2, 1e9)], repeats=1)
    monkeypatch.setattr(margin, "report", lambda *args: print("weights ok"))
    margin.weights({"toy": (60, 3, 4), "sequences": (60, 3, 4)}, repeats=1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 9 and all(line.endswith("ok") for line in lines)
