"""Baselines of the searches, what learning the mix buys, default grids, and probabilities from the folds."""

import numpy as np
import pytest
from problems_search import CV, EXACT, FIXED, KERNELS, STACK, T, X, Y
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss
from sklearn.model_selection import ShuffleSplit, StratifiedKFold, cross_val_score

import multikernel
from multikernel import MKLClassifier, MKLClassifierCV, MKLRegressor, MKLRegressorCV, stack_kernels
from multikernel.kernels import RBF, Linear
from multikernel.model_selection.baselines import described, mix_gain, with_baselines


@pytest.mark.parametrize(
    ("search", "samples"),
    [
        (MKLClassifierCV(FIXED, Cs=[0.1, 10.0], cv=CV, **EXACT), X),
        (MKLClassifierCV("rbf", Cs=[0.1, 10.0], cv=CV, **EXACT), X),
        (MKLClassifierCV("precomputed", Cs=[0.1, 10.0], cv=CV, normalize=["center", "cosine"], **EXACT), STACK),
        (MKLClassifierCV(FIXED, Cs=[0.1, 10.0], cv=CV, gram="lazy", **EXACT), X),
    ],
    ids=["shared", "learned", "stack", "lazy"],
)
def test_a_row_is_the_score_of_a_fit_of_these_kernels(search, samples):
    table = search.fit(samples, Y).cv_results_
    p = len(search.kernel_names_)
    assert len(table["params"]) == 2 * (1 + 1 + p)
    for i, point in enumerate(table["params"]):
        kernels, given, options = search.kernels, samples, {name: v for name, v in point.items() if name != "kernel"}
        if "kernel" in point:
            k = search.kernel_names_.index(point["kernel"])
            np.testing.assert_array_equal(search.weights_path_[:, i], np.tile(np.eye(p)[k], (3, 1)))
            if kernels == "precomputed":
                given = stack_kernels(KERNELS[[k]])
            else:
                kernels = [FIXED[k] if kernels is FIXED else RBF(factor=(0.25, 0.5, 1.0, 2.0, 4.0)[k])]
        plain = MKLClassifier(kernels, normalize=search.normalize, **options, **EXACT)
        scores = [table[f"split{s}_test_score"][i] for s in range(3)]
        np.testing.assert_allclose(scores, cross_val_score(plain, given, Y, cv=CV), atol=1e-9, err_msg=str(point))
    assert search.best_score_ == max(table["mean_test_score"])


@pytest.mark.parametrize("multiclass", ["joint", "ovr", "ovo"])
def test_the_model_of_one_kernel(multiclass, tmp_path):
    X, y = load_iris(return_X_y=True)
    kernels = [("width", RBF(), None), ("line", Linear(), [0, 1])]
    search = MKLClassifierCV(kernels, Cs=[1.0], cv=3, multiclass=multiclass, refit=lambda table: 3, tol=1e-8).fit(X, y)
    plain = MKLClassifier(kernels[1:], multiclass=multiclass, tol=1e-8).fit(X, y)
    assert search.best_params_ == {"C": 1.0, "kernel": "line"} and search.C_ == 1.0
    np.testing.assert_allclose(search.decision_function(X), plain.decision_function(X), atol=1e-2)
    np.testing.assert_allclose(search.objective_, plain.objective_, rtol=1e-6)
    assert np.all(np.atleast_2d(search.weights_) == [0.0, 1.0]) and np.all(np.asarray(search.duality_gap_) <= 1e-8)
    np.testing.assert_allclose(np.atleast_2d(search.kernel_contributions_)[:, 1], 1.0)
    assert search.kernel_names_ == ["width", "line"]
    search.set_params(refit=True).save(tmp_path / "m.mk")
    again = multikernel.load(tmp_path / "m.mk")
    np.testing.assert_array_equal(again.decision_function(X), search.decision_function(X))
    assert str(again.mix_gain_) == str(search.mix_gain_)


def test_kernels_are_computed_once():
    calls = []

    def counted(A, B):
        calls.append(A.shape)
        return A @ B.T + 1.0

    counts = []
    for baselines in (False, True):
        calls.clear()
        MKLClassifierCV([counted, *FIXED], Cs=[0.1, 1.0], cv=3, psd="shift", baselines=baselines).fit(X, Y)
        counts.append(len(calls))
    assert counts[0] == counts[1]


def test_no_baselines_of_one_kernel_nor_of_many():
    assert len(MKLClassifierCV([RBF()], Cs=[1.0], cv=2).fit(X, Y).cv_results_["params"]) == 1
    many = MKLClassifierCV([RBF(width=w) for w in range(1, 32)], Cs=[1.0], cv=2).fit(X, Y)
    assert many.cv_results_["params"] == [{"C": 1.0}, {"C": 1.0, "norm": np.inf}]
    search = MKLClassifierCV([Linear(), ("rest", Linear(), [0])], Cs=[1.0], cv=2, gram="features").fit(X, Y)
    assert len(search.cv_results_["params"]) == 2
    y = np.digitize(X[:, 0], [-0.4, 0.4])
    products = MKLClassifierCV(FIXED, Cs=[1.0], cv=2, output_kernels=[np.eye(3), np.eye(3) + 1.0]).fit(X, y)
    assert len(products.cv_results_["params"]) == 2
    # the plain sum is on the grid already
    points = with_baselines([{"C": 1.0, "norm": 1.0}, {"C": 1.0, "norm": np.inf}], ["a", "b"], False)
    assert points == [{"C": 1.0, "norm": 1.0}, {"C": 1.0, "norm": np.inf}]


def test_what_learning_the_mix_bought():
    points = [{"norm": 1.0}, {"norm": 2.0}, {"norm": np.inf}, {"kernel": "a"}]
    scores = np.array([[0.9, 0.1, 0.5, 0.6], [0.7, 0.2, 0.6, 0.4], [0.8, 0.9, 0.5, 0.6]])
    found = mix_gain(points, scores, [(20, 10)] * 3, 0)
    # in the last fold the others prefer the first mix, and either of the baselines
    d = np.array([0.9 - 0.5, 0.7 - 0.4, 0.8 - 0.5])
    assert found.gain == pytest.approx(0.8 - (0.5 + 0.4 + 0.5) / 3) and found.mix == pytest.approx(0.8)
    assert found.standard_error == pytest.approx(np.sqrt((1 / 3 + 0.5) * d.var(ddof=1)))
    assert found.best_baseline in ("the plain sum", "the kernel 'a' alone") and found.chosen == "a mix of norm 1"
    assert "Learning the mix bought +0.333 (standard error" in str(found)
    assert mix_gain(points[2:], scores[:, 2:], [(20, 10)] * 3, 0) is None
    assert np.isnan(mix_gain(points, scores[:1], [(20, 10)], 0).standard_error)
    assert described({"norm": np.inf}) == "the plain sum"
    search = MKLClassifierCV(FIXED, Cs=[1.0], cv=CV).fit(X, Y)
    assert search.mix_gain_.mix >= 0.5 and np.isfinite(search.mix_gain_.standard_error)
    assert not hasattr(search.set_params(baselines=False).fit(X, Y), "mix_gain_")
    with pytest.raises(ValueError, match="The 'baselines' parameter of MKLClassifierCV must be True or False"):
        search.set_params(baselines=3).fit(X, Y)


def test_the_default_grids():
    search = MKLClassifierCV(FIXED, cv=2, refit=False).fit(X, Y)
    table = search.cv_results_["params"]
    grid = [point for point in table if "kernel" not in point and point["norm"] < np.inf]
    assert {(point["C"], point["norm"], point["loss"]) for point in grid} == {
        (C, norm, loss) for C in (0.1, 1, 10, 100, 1000) for norm in (1.0, 2.0) for loss in ("hinge", "squared")
    }
    assert {point["loss"] for point in table if "kernel" in point} == {"squared"}
    assert search.loss_ in ("hinge", "squared") and search.C_ in (0.1, 1, 10, 100, 1000)
    # what is given is not searched
    for given, axes in (
        ({"norm": 2.0}, {"C"}), ({"C": 3.0}, set()), ({"Cs": [1.0, 2.0]}, {"C"}), ({"loss": "hinge"}, {"C", "norm"}),
        ({"losses": ["hinge", "logistic"], "norms": [1.0]}, {"C", "loss", "norm"}),
    ):  # fmt: skip
        found = MKLClassifierCV(FIXED, cv=2, refit=False, baselines=False, **given).fit(X, Y)
        assert set(found.cv_results_["params"][0]) == axes, given
    assert set(found.cv_results_["param_loss"]) == {"hinge", "logistic"}


def test_the_default_grids_of_regression_follow_the_unit_of_the_targets():
    one, many = (MKLRegressorCV(FIXED, cv=3, tol=1e-6).fit(X, T * unit) for unit in (1.0, 1000.0))
    np.testing.assert_allclose(one.cv_results_["mean_test_score"], many.cv_results_["mean_test_score"], atol=1e-3)
    assert one.best_score_ > 0.5
    tubes = {point["epsilon"] for point in one.cv_results_["params"] if point["loss"] == "epsilon_insensitive"}
    np.testing.assert_allclose(sorted(tubes), np.array([0.01, 0.1]) * T.std())
    both = MKLRegressorCV(FIXED, cv=2).fit(X, np.column_stack([T, -T]))
    assert both.loss_ == "squared" and both.predict(X).shape == (len(X), 2)
    given = MKLRegressorCV(FIXED, cv=2, epsilon=0.3, refit=False).fit(X, T)
    assert not any("epsilon" in point for point in given.cv_results_["params"]) and given.epsilon_ == 0.3
    assert MKLRegressorCV(FIXED, cv=2, loss="huber").fit(X, T).C_ in (0.1, 1, 10, 100, 1000)
    assert MKLRegressor().loss == "epsilon_insensitive"


@pytest.mark.parametrize("samples", [X, STACK], ids=["vectors", "stack"])
def test_probabilities_for_every_loss(samples, tmp_path):
    kernels = "precomputed" if samples is STACK else FIXED
    with pytest.raises(AttributeError, match="probability=True learns probabilities for this loss by folds"):
        MKLClassifier(kernels).fit(samples, Y).predict_proba(samples)
    for loss in ("hinge", "squared", "squared_hinge", "smooth_hinge", "logistic"):
        model = MKLClassifier(kernels, loss=loss, probability=True).fit(samples, Y)
        found = model.predict_proba(samples)
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
        assert np.mean((found[:, 1] > 0.5) == (model.predict(samples) == model.classes_[1])) > 0.9
        np.testing.assert_allclose(np.exp(model.predict_log_proba(samples)), found)
        # rows in the order of the scores
        assert np.all(np.diff(found[np.argsort(model.decision_function(samples)), 1]) >= 0)
    model.save(tmp_path / "m.mk")
    np.testing.assert_array_equal(multikernel.load(tmp_path / "m.mk").predict_proba(samples), found)
    assert not hasattr(model.set_params(probability=False).fit(samples, Y), "calibration_")


@pytest.mark.parametrize("multiclass", ["joint", "ovr", "ovo"])
def test_probabilities_of_several_classes_are_calibrated(multiclass):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 600)
    X = np.eye(3)[y] + 0.8 * rng.normal(size=(600, 3))
    weight = np.ones(300)
    model = MKLClassifier([RBF(factor=2.0), Linear()], multiclass=multiclass, probability=True, tol=1e-2)
    found = model.fit(X[:300], y[:300], sample_weight=weight).predict_proba(X[300:])
    # Gaussian classes: the exact probabilities are those of this softmax
    exact = np.exp(X / 0.64) / np.exp(X / 0.64).sum(axis=1, keepdims=True)
    best = log_loss(y[300:], exact[300:])
    # the votes of pairs say less than outputs
    assert log_loss(y[300:], found) < best + (0.15 if multiclass == "ovo" else 0.1)


def test_probabilities_of_a_search_come_from_its_folds(monkeypatch, tmp_path):
    from multikernel.training import train

    fits = []
    solve = train.solve
    monkeypatch.setattr(train, "solve", lambda *args, **options: fits.append(1) or solve(*args, **options))
    search = MKLClassifierCV(FIXED, Cs=[0.1, 1.0], cv=CV, probability=True, checkpoint=tmp_path).fit(X, Y)
    assert len(fits) == 3 * 2 * 5 + 1
    found = search.predict_proba(X)
    assert log_loss(Y, found) < 0.6 and search.best_estimator_.predict_proba(X).tolist() == found.tolist()
    other = MKLClassifierCV(FIXED, Cs=[0.1, 1.0], cv=ShuffleSplit(3, random_state=0), probability=True).fit(X, Y)
    assert other.predict_proba(X).shape == (len(X), 2)

    def scoring(model, samples, y):
        return -log_loss(y, model.predict_proba(samples))

    with pytest.raises(ValueError, match="and none in the folds of a search: choose another 'scoring'"):
        MKLClassifierCV(FIXED, Cs=[1.0], cv=2, probability=True, scoring=scoring).fit(X, Y)
    three = np.repeat([0, 1, 2], len(X) // 3)
    lacking = [(np.flatnonzero(three < 2), np.flatnonzero(three == 2))] * 2
    with pytest.raises(ValueError, match="must be False where no fold has all classes"):
        MKLClassifierCV(FIXED, Cs=[1.0], cv=lacking, probability=True, baselines=False).fit(X, three)


def test_probabilities_need_two_samples_of_each_class():
    y = np.where(np.arange(len(X)) == 0, "one", "other")
    with pytest.raises(
        ValueError, match="'probability' parameter of MKLClassifier must be False where a class has one"
    ):
        MKLClassifier(FIXED, probability=True).fit(X, y)
    with pytest.raises(ValueError, match="'probability' parameter of MKLClassifier must be True or False"):
        MKLClassifier(FIXED, probability="yes").fit(X, Y)
    folds = StratifiedKFold(3)
    assert MKLClassifierCV(FIXED, Cs=[1.0], cv=folds, probability=True).fit(X, Y).predict_proba(X).shape == (len(X), 2)
