"""The searches choose as GridSearchCV does, and share what they can."""

import pickle
import warnings

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_predict,
)

from multikernel import MKLClassifier, MKLClassifierCV, MKLRegressor, MKLRegressorCV, stack_kernels
from multikernel.certificate import certify
from multikernel.estimators.path import order
from multikernel.kernels import RBF, Linear, rbf_family
from multikernel.machines.ridge import Ridge as RidgeMachine
from multikernel.machines.svc import SVC
from multikernel.machines.svr import SVR
from multikernel.problem import Point
from multikernel.warm import solve_from

N = 66
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, 3))
Y = np.where(np.square(X[:, :2]).sum(1) + 0.5 * RNG.normal(size=N) > 1.4, "far", "near")
T = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * RNG.normal(size=N)
WEIGHT = RNG.integers(0, 4, N).astype(float)
KERNELS = np.exp(-np.square(X[:, None] - X).sum(2) / np.array([0.5, 2.0, 8.0])[:, None, None])
STACK = stack_kernels(KERNELS)
CV = StratifiedKFold(3, shuffle=True, random_state=0)
CS = [0.1, 1.0, 10.0]
EXACT = {"tol": 1e-9, "max_iter": 2000}
TIMES = {"mean_fit_time", "std_fit_time", "mean_score_time", "std_score_time"}


def cosine_of(A, B):
    """A kernel that nobody vouches for."""
    norms = np.linalg.norm(A, axis=1)[:, None] * np.linalg.norm(B, axis=1)
    return A @ B.T / norms


def compare(ours, samples, y, *, atol=1e-6, **fit):
    """Fit both searches with the same parameters; the tables, the choice and the refitted model must agree."""
    axes = {"Cs": "C", "norms": "norm", "epsilons": "epsilon"}
    own = ours.get_params(deep=False)
    grid = {axis: own[name] for name, axis in axes.items() if own.get(name) is not None}
    base = ours._base(**{name: own[name] for name in ours._base._get_param_names() if name in own})
    groups = fit.get("groups")
    other = GridSearchCV(base, grid, cv=own["cv"], scoring=own["scoring"], error_score=own["error_score"])
    ours.fit(samples, y, **fit)
    other.fit(samples, y, groups=groups, **{k: v for k, v in fit.items() if k != "groups"})
    mine, theirs = ours.cv_results_, other.cv_results_
    assert list(mine) == list(theirs)
    assert mine["params"] == theirs["params"]
    # equal models may rank either way where scores are not counts
    ranks = {"rank_test_score"} if atol > 1e-6 else set()
    for key in set(mine) - TIMES - ranks - {"params"}:
        assert mine[key].dtype == theirs[key].dtype, key
        np.testing.assert_allclose(np.asarray(mine[key], float), np.asarray(theirs[key], float), atol=atol, err_msg=key)
    for key in TIMES:
        assert np.all(mine[key] >= 0) and mine[key].shape == theirs[key].shape
    assert ours.best_index_ == other.best_index_ and ours.best_params_ == other.best_params_
    np.testing.assert_allclose(ours.best_score_, other.best_score_, atol=atol)
    np.testing.assert_allclose(ours.weights_, other.best_estimator_.weights_, atol=1e-4)
    outputs = "decision_function" if hasattr(ours, "decision_function") else "predict"
    np.testing.assert_allclose(getattr(ours, outputs)(samples), getattr(other, outputs)(samples), atol=1e-3)
    return other


FIXED = rbf_family([0.5, 2.0, 8.0])
BOTH = [RBF(), RBF(width=2.0), ("line", Linear(), [0, 2])]
CLASSIFIERS = {
    "precomputed": (MKLClassifierCV("precomputed", Cs=CS, norms=[1.0, 2.0], cv=CV, **EXACT), STACK),
    "precomputed list": (MKLClassifierCV("precomputed", Cs=CS, cv=CV, **EXACT), stack_kernels([+K for K in KERNELS])),
    "float32": (MKLClassifierCV("precomputed", Cs=CS, cv=3, tol=1e-5), stack_kernels(KERNELS.astype(np.float32))),
    "normalised": (MKLClassifierCV("precomputed", Cs=CS, cv=CV, normalize=["center", "cosine"], **EXACT), STACK),
    "centred": (MKLClassifierCV("precomputed", Cs=CS, cv=CV, normalize="center", fit_intercept=False, tol=1e-8), STACK),
    "lazy stack": (MKLClassifierCV("precomputed", Cs=CS, cv=CV, gram="lazy", **EXACT), STACK),
    "fixed widths": (MKLClassifierCV(FIXED, Cs=CS, norms=[1.0, np.inf], cv=3, **EXACT), X),
    "learned widths": (MKLClassifierCV(Cs=CS, norms=[2.0], cv=CV, **EXACT), X),
    "both": (MKLClassifierCV(BOTH, Cs=CS, cv=3, normalize="cosine", **EXACT), X),
    "callable": (MKLClassifierCV([RBF(), cosine_of], Cs=CS, cv=3, **EXACT), X),
    "lazy": (MKLClassifierCV(FIXED, Cs=CS, cv=3, gram="lazy", **EXACT), X),
    "sparse": (MKLClassifierCV(FIXED, Cs=CS, cv=3, **EXACT), sparse.csr_array(X)),
    "balanced": (MKLClassifierCV("precomputed", Cs=CS, cv=KFold(3), class_weight="balanced", **EXACT), STACK),
    "another solver": (MKLClassifierCV("precomputed", Cs=CS, norms=[2.0], cv=3, solver="alternating", **EXACT), STACK),
}  # fmt: skip


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_the_table_and_the_choice_are_those_of_grid_search(name):
    search, samples = CLASSIFIERS[name]
    compare(clone(search), samples, Y)


@pytest.mark.parametrize("scoring", ["roc_auc", "balanced_accuracy", make_scorer(accuracy_score), "custom"], ids=str)
def test_any_scorer(scoring):
    def custom(estimator, samples, y):
        # slices of the test samples are evaluated as any others
        return float(np.mean(estimator.predict(samples[: len(y) // 2]) == y[: len(y) // 2]))

    scoring = custom if scoring == "custom" else scoring
    for kernels, samples in (("precomputed", STACK), (FIXED, X), ("rbf", X)):
        compare(MKLClassifierCV(kernels, Cs=CS, cv=CV, scoring=scoring, **EXACT), samples, Y)


@pytest.mark.parametrize("kernels", ["precomputed", "rbf", FIXED], ids=["stack", "learned", "fixed"])
def test_sample_weights(kernels):
    samples = STACK if kernels == "precomputed" else X
    compare(MKLClassifierCV(kernels, Cs=CS, cv=CV, **EXACT), samples, Y, sample_weight=WEIGHT)
    compare(MKLRegressorCV(kernels, Cs=CS, cv=3, **EXACT), samples, T, sample_weight=WEIGHT)


@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
def test_more_than_two_classes(multiclass):
    samples, y = load_iris(return_X_y=True)
    samples, y = samples[::3], y[::3]
    search = MKLClassifierCV(Cs=[0.01, 1.0, 100.0], cv=3, multiclass=multiclass, tol=1e-7)
    compare(search, samples, y)
    assert search.weights_path_.shape == (3, 3, 3, 5)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_other_losses_of_the_classifier(loss):
    search = MKLClassifierCV("precomputed", Cs=CS, norms=[1.0, 2.0], cv=CV, loss=loss, tol=1e-8)
    compare(search, STACK, Y)
    if loss == "logistic":
        np.testing.assert_allclose(search.predict_proba(STACK).sum(axis=1), 1.0)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared", "huber"])
def test_regression(loss):
    epsilons = [0.01, 0.2] if loss == "epsilon_insensitive" else None
    for kernels, samples in (("precomputed", STACK), ("rbf", X)):
        search = MKLRegressorCV(kernels, Cs=CS, norms=[1.0, 2.0], epsilons=epsilons, loss=loss, cv=3, tol=1e-9)
        compare(search, samples, T, atol=1e-4)
        compare(search.set_params(scoring="neg_mean_absolute_error"), samples, T, atol=1e-4)
        assert search.predict(samples).shape == (N,) and search.C_ == search.best_params_["C"]


def test_several_targets():
    search = MKLRegressorCV("precomputed", Cs=CS, loss="squared", cv=3, tol=1e-9)
    compare(search, STACK, np.column_stack([T, X[:, 2]]))
    assert search.predict(STACK).shape == (N, 2)


GROUPS = np.arange(N) % 5
SPLITTERS = [
    (4, None),
    (KFold(3), None),
    (ShuffleSplit(2, random_state=0), None),
    (GroupKFold(4), GROUPS),
    (PredefinedSplit(GROUPS), None),
    ([(np.arange(40), np.arange(40, N)), (np.arange(20, N), np.arange(20))], None),
    ([(np.arange(N) < 40, np.arange(N) >= 40)], None),
]


@pytest.mark.parametrize(("cv", "groups"), SPLITTERS, ids=lambda each: type(each).__name__)
def test_splitters(cv, groups):
    fit = {} if groups is None else {"groups": groups}
    compare(MKLClassifierCV("precomputed", Cs=CS, cv=cv, **EXACT), STACK, Y, **fit)
    compare(MKLClassifierCV(FIXED, Cs=CS, cv=cv, **EXACT), X, Y, **fit)


def test_the_weights_of_the_folds():
    search = MKLClassifierCV("precomputed", Cs=CS, norms=[1.0, 2.0], cv=CV, **EXACT).fit(STACK, Y)
    for s, (train, _) in enumerate(CV.split(X, Y)):
        for point, weights in zip(search.cv_results_["params"], search.weights_path_[s], strict=True):
            model = MKLClassifier("precomputed", **point, **EXACT).fit(STACK[train], Y[train])
            np.testing.assert_allclose(weights, model.weights_, atol=1e-4)


def test_the_search_is_its_best_estimator():
    search = MKLClassifierCV("precomputed", Cs=CS, norms=[1.0, 2.0], cv=CV, **EXACT).fit(STACK, Y)
    best = MKLClassifier("precomputed", **search.best_params_, **EXACT).fit(STACK, Y)
    assert search.objective_ == pytest.approx(best.objective_, rel=1e-9) and search.duality_gap_ <= EXACT["tol"]
    for name in ("weights_", "dual_coef_", "intercept_", "support_"):
        np.testing.assert_allclose(getattr(search, name), getattr(best, name), atol=1e-4, err_msg=name)
        assert getattr(search, name) is getattr(search.best_estimator_, name)
    assert type(search.best_estimator_) is MKLClassifier and "_lent" not in vars(search.best_estimator_)
    assert search.score(STACK, Y) == best.score(STACK, Y)
    assert (search.C_, search.norm_) == (search.best_params_["C"], search.best_params_["norm"])
    assert search.n_splits_ == 3 and search.C == 1.0


def test_every_parameter_of_the_base_estimator():
    for search, base in ((MKLClassifierCV(), MKLClassifier()), (MKLRegressorCV(), MKLRegressor())):
        own, wanted = search.get_params(deep=False), base.get_params(deep=False)
        # nobody wants to watch every fit of every fold
        del wanted["callback"]
        assert {name: own[name] for name in wanted} == wanted
    named = MKLClassifierCV([("wave", RBF(), [0])], Cs=CS).set_params(wave__quantile=0.3)
    assert named.kernels[0][1].quantile == 0.3 and clone(named).get_params()["wave__quantile"] == 0.3


def test_one_point():
    search = MKLClassifierCV("precomputed", C=3.0, cv=CV, **EXACT).fit(STACK, Y)
    assert search.best_params_ == {} and search.C_ == 3.0 and search.cv_results_["params"] == [{}]
    plain = MKLClassifier("precomputed", C=3.0, **EXACT).fit(STACK, Y)
    assert search.objective_ == pytest.approx(plain.objective_, rel=1e-9)


def test_pickles_are_those_of_the_model():
    for kernels, samples in (("precomputed", STACK), (FIXED, X), ("rbf", X)):
        search = MKLClassifierCV(kernels, Cs=CS, cv=3).fit(samples, Y)
        again = pickle.loads(pickle.dumps(search))
        np.testing.assert_array_equal(again.decision_function(samples), search.decision_function(samples))
        plain = MKLClassifier(kernels, **search.best_params_).fit(samples, Y)
        assert len(pickle.dumps(search.best_estimator_)) < 1.2 * len(pickle.dumps(plain))


@pytest.mark.parametrize("jobs", [1, 2])
def test_folds_side_by_side(jobs):
    search = MKLClassifierCV("precomputed", Cs=CS, cv=3, n_jobs=jobs).fit(STACK, Y)
    other = MKLClassifierCV("precomputed", Cs=CS, cv=3).fit(STACK, Y)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"])


def test_refit():
    search = MKLClassifierCV("precomputed", Cs=CS, cv=CV, refit=False).fit(STACK, Y)
    assert search.best_params_ and not hasattr(search, "best_estimator_")
    with pytest.raises(AttributeError, match=r"refit=False, and has no model to predict with"):
        search.predict(STACK)
    search = MKLClassifierCV("precomputed", Cs=CS, cv=CV, refit=lambda table: 0).fit(STACK, Y)
    assert search.C_ == 0.1 and search.best_score_ == search.cv_results_["mean_test_score"][0]
    with pytest.raises(ValueError, match=r"must return a row of cv_results_, from 0 to 2. Got 7"):
        MKLClassifierCV("precomputed", Cs=CS, cv=CV, refit=lambda table: 7).fit(STACK, Y)
    search.set_params(refit=True, Cs=[1.0]).fit(STACK, Y)
    assert len(search.cv_results_["params"]) == 1


@pytest.mark.parametrize("multiclass", ["joint", "ovr", "ovo"])
@pytest.mark.parametrize("cv", [CV, ShuffleSplit(4, train_size=0.5, random_state=1)], ids=["k folds", "random splits"])
def test_the_refit_starts_from_the_folds(multiclass, cv, monkeypatch):
    starts = []

    def spy(problem, start, *args, **options):
        starts.append((problem, start))
        return solve_from(problem, start, *args, **options)

    monkeypatch.setattr("multikernel.estimators.base.solve_from", spy)
    data = load_iris()
    weight = np.arange(150) % 5.0
    kernels = rbf_family([0.5, 2.0, 8.0])
    search = MKLClassifierCV(kernels, Cs=[1.0], cv=cv, multiclass=multiclass)
    search.fit(data.data, data.target, sample_weight=weight)
    tasks = {"joint": 1, "ovr": 3, "ovo": 3}[multiclass]
    for problem, start in starts[-tasks:]:
        beta, a, _ = start
        assert np.all(beta >= 0) and beta.sum() == pytest.approx(1.0)
        np.testing.assert_allclose(problem.machine.repair(a), a, atol=1e-9)
        warm, cold = certify(Point(problem, beta, a)), certify(Point(problem))
        # random splits leave samples out, which the mean knows nothing of
        assert warm.gap < (0.5 if cv is CV else 1.0) * cold.gap
    plain = MKLClassifier(kernels, multiclass=multiclass).fit(data.data, data.target, sample_weight=weight)
    assert np.all(np.asarray(search.duality_gap_) <= 1e-3)
    np.testing.assert_allclose(search.objective_, plain.objective_, rtol=2e-3)


def test_the_refit_starts_anew_where_a_fold_lacks_a_class():
    y = np.repeat([0, 1, 2], N // 3)
    splits = [(np.flatnonzero(y < 2), np.flatnonzero(y == 2)), (np.arange(0, N, 2), np.arange(1, N, 2))]
    search = MKLClassifierCV("precomputed", Cs=[1.0], cv=splits, error_score="raise", scoring=lambda *_: 0.0)
    search.fit(STACK, y)
    plain = MKLClassifier("precomputed").fit(STACK, y)
    np.testing.assert_array_equal(search.dual_coef_, plain.dual_coef_)


def test_within_cross_validation():
    search = MKLClassifierCV("precomputed", Cs=CS, cv=3, **EXACT)
    other = GridSearchCV(MKLClassifier("precomputed", **EXACT), {"C": CS}, cv=3)
    np.testing.assert_array_equal(cross_val_predict(search, STACK, Y, cv=2), cross_val_predict(other, STACK, Y, cv=2))


def test_samples_of_other_kinds():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    kernels = [("a", RBF(), ["a"]), ("rest", Linear(), ["b", "c"])]
    search = MKLClassifierCV(kernels, Cs=CS, cv=3, **EXACT)
    compare(search, frame, Y)
    assert list(search.feature_names_in_) == ["a", "b", "c"]

    def shared(left, right):
        return np.array([[len(set(a) & set(b)) for b in right] for a in left], float)

    words = ["abc", "abd", "xyz", "xyw", "abe", "xzw"] * 4
    labels = ["first", "first", "second", "second", "first", "second"] * 4
    search = MKLClassifierCV([shared], Cs=[0.1, 1.0], cv=2).fit(words, labels)
    assert search.best_score_ == 1.0 and search.predict(["abz"]) == ["first"]


def test_a_stack_is_examined_once_and_indefinite_kernels_are_refused_or_repaired():
    bad = KERNELS.copy()
    bad[1] -= 0.3 * np.eye(N)
    with pytest.raises(ValueError, match="kernel 'kernel_1' must be positive semidefinite"):
        MKLClassifierCV("precomputed", Cs=CS, cv=3).fit(stack_kernels(bad), Y)
    compare(MKLClassifierCV("precomputed", Cs=CS, cv=3, psd="clip", **EXACT), stack_kernels(bad), Y)


def test_the_callers_data_are_never_written():
    K, samples, y, weight = KERNELS.copy(), X.copy(), Y.copy(), WEIGHT.copy()
    for array in (K, samples, y, weight):
        array.flags.writeable = False
    MKLClassifierCV("precomputed", Cs=CS, cv=3).fit(stack_kernels(K), y, sample_weight=weight)
    MKLClassifierCV(FIXED, Cs=CS, cv=3).fit(samples, y, sample_weight=weight)


def test_a_fold_of_one_class_is_one_clear_sentence():
    y = np.repeat(["a", "b"], N // 2)
    splits = [(np.arange(N // 2), np.arange(N // 2, N)), (np.arange(0, N, 2), np.arange(1, N, 2))]
    search = MKLClassifierCV("precomputed", Cs=CS, cv=splits)
    with pytest.warns(
        FitFailedWarning, match=r"3 of 6 fits .* In fold 0: ValueError: MKLClassifier needs samples of at"
    ):
        search.fit(STACK, y)
    assert np.isnan(search.cv_results_["split0_test_score"]).all() and search.best_index_ == 0
    assert np.isnan(search.weights_path_[0]).all() and np.isfinite(search.weights_path_[1]).all()
    with pytest.warns(FitFailedWarning):
        assert search.set_params(error_score=0.0).fit(STACK, y).cv_results_["split0_test_score"].tolist() == [0.0] * 3
    with pytest.raises(ValueError, match="needs samples of at least 2 classes"):
        search.set_params(error_score="raise").fit(STACK, y)
    with pytest.raises(ValueError, match=r"All 3 fits of MKLClassifierCV failed. In fold 0: ValueError: MKLClassifier"):
        search.set_params(error_score=np.nan, cv=splits[:1]).fit(STACK, y)
    single = [([0], np.arange(1, N)), (np.arange(1, N), [0])]
    with pytest.warns(FitFailedWarning, match="Got one class only"):
        MKLClassifierCV("precomputed", Cs=CS, cv=single).fit(STACK, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = MKLRegressorCV("precomputed", Cs=CS, cv=single, scoring="neg_mean_squared_error").fit(STACK, T)
    assert np.isfinite(search.best_score_)


def test_a_scorer_that_fails():
    def broken(estimator, samples, y):
        raise RuntimeError("no score today")

    with pytest.raises(
        ValueError, match=r"All 6 fits of MKLClassifierCV failed. In fold 0: RuntimeError: no score today"
    ):
        MKLClassifierCV("precomputed", Cs=CS, cv=2, scoring=broken).fit(STACK, Y)
    with pytest.raises(ValueError, match=r"must return a number. Got 'high'"):
        MKLClassifierCV("precomputed", Cs=CS, cv=2, scoring=lambda *_: "high").fit(STACK, Y)


BAD = [
    ({"Cs": []}, "The 'Cs' parameter of MKLRegressorCV must be None or a list, not empty, of which each is a positive"),
    ({"Cs": [1.0, -1.0]}, r"'Cs' .* Got -1.0 instead"),
    ({"Cs": 3.0}, r"'Cs' .* Got 3.0 instead"),
    ({"Cs": "many"}, r"'Cs' .* Got 'many' instead"),
    ({"norms": [0.5]}, r"'norms' .* each is a number of at least 1, or infinity. Got 0.5"),
    ({"epsilons": [-0.1]}, r"'epsilons' .* a non-negative number. Got -0.1"),
    ({"scoring": ["r2"]}, "The 'scoring' parameter of MKLRegressorCV must be None, the name of a scorer or a callable"),
    ({"refit": "yes"}, "The 'refit' parameter of MKLRegressorCV must be True, False or a callable"),
    ({"error_score": "nan"}, "The 'error_score' parameter of MKLRegressorCV must be 'raise' or a number. Got 'nan'"),
    ({"tol": -1}, "The 'tol' parameter of MKLRegressorCV must be a positive number. Got -1"),
    ({"loss": "hinge"}, "The 'loss' parameter of MKLRegressorCV"),
    ({"n_jobs": 0}, "The 'n_jobs' parameter of MKLRegressorCV"),
]


@pytest.mark.parametrize(("params", "sentence"), BAD, ids=str)
def test_bad_parameters(params, sentence):
    with pytest.raises(ValueError, match=sentence):
        MKLRegressorCV("precomputed", **params).fit(STACK, T)


def test_bad_input():
    with pytest.raises(
        ValueError, match=r"MKLClassifierCV needs samples of at least 2 classes. Got one class only: 'a'"
    ):
        MKLClassifierCV(Cs=CS).fit(X, ["a"] * N)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        MKLClassifierCV(Cs=CS).fit(X, Y[:-1])
    with pytest.raises(ValueError, match="NaN"):
        MKLRegressorCV(Cs=CS).fit(np.where(X > 2, np.nan, X), T)
    with pytest.raises(ValueError, match="must be 'precomputed' for a KernelStack"):
        MKLClassifierCV(Cs=CS).fit(STACK, Y)


def test_scorers_get_weights_only_where_grid_search_hands_them_on():
    seen = []

    def metric(y, predicted, sample_weight=None):
        seen.append(sample_weight is not None)
        return accuracy_score(y, predicted, sample_weight=sample_weight)

    def plain(estimator, samples, y):
        return accuracy_score(y, estimator.predict(samples))

    compare(MKLClassifierCV("precomputed", Cs=CS, cv=2, scoring=plain, **EXACT), STACK, Y, sample_weight=WEIGHT)
    compare(MKLClassifierCV("precomputed", Cs=CS, cv=2, scoring=make_scorer(metric), **EXACT), STACK, Y)
    assert not any(seen)
    with sklearn.config_context(enable_metadata_routing=True):
        search = MKLClassifierCV("precomputed", Cs=[1.0], cv=2, scoring=make_scorer(metric))
        search.fit(STACK, Y, sample_weight=WEIGHT)
        assert not any(seen)
        scorer = make_scorer(metric).set_score_request(sample_weight=True)
        search.set_params(scoring=scorer).fit(STACK, Y, sample_weight=WEIGHT)
    assert seen[-2:] == [True, True]


def test_paths_are_walked_down_and_norms_are_kept_apart():
    points = [{"C": C, "epsilon": e, "norm": r} for C in (1.0, 2.0) for e in (0.1, 0.2) for r in (1, 2)]
    walked = [[points[i] for i in path] for path in order(points)]
    assert [[point["C"] for point in path] for path in walked] == [[2.0, 1.0]] * 4
    assert [path[0]["norm"] for path in walked] == [1, 1, 2, 2]


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_what_is_carried_over_is_feasible(fit_intercept):
    labels = np.where(Y == "far", 1.0, -1.0)
    a = np.zeros(N)
    a[labels > 0], a[labels < 0] = 0.5 / np.sum(labels > 0), -0.5 / np.sum(labels < 0)
    a[0] = labels[0] * 1.0
    for old, new in ((1.0, 7.0), (1.0, 0.01)):
        before, after = SVC(labels, old, fit_intercept), SVC(labels, new, fit_intercept)
        moved = after.carry_over(before.repair(a), before)
        assert np.all((moved >= after.lo) & (moved <= after.hi))
        assert not fit_intercept or abs(moved.sum()) < 1e-12
        if not fit_intercept:
            assert moved[0] == labels[0] * new
        before, after = SVR(T, old, 0.1, fit_intercept), SVR(T, new, 0.1, fit_intercept)
        moved = after.carry_over(before.repair(a), before)
        assert np.all(np.abs(moved) <= new) and (not fit_intercept or abs(moved.sum()) < 1e-12)
        before, after = RidgeMachine(T, old, fit_intercept), RidgeMachine(T, new, fit_intercept)
        moved = after.carry_over(a, before)
        assert not fit_intercept or abs(moved.sum()) < 1e-12


def test_the_one_kernel_baseline():
    # least squares on one kernel: C here is 1 / (2 alpha) of kernel ridge
    search = MKLRegressorCV(
        RBF(gamma=0.5), Cs=[0.1, 1.0, 10.0], loss="squared", fit_intercept=False, normalize=None, cv=3, tol=1e-10
    ).fit(X, T)
    from sklearn.kernel_ridge import KernelRidge

    alphas = [1.0 / (2.0 * C) for C in (0.1, 1.0, 10.0)]
    other = GridSearchCV(KernelRidge(kernel="rbf", gamma=0.5), {"alpha": alphas}, cv=3).fit(X, T)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"], atol=1e-6)
    np.testing.assert_allclose(search.predict(X), other.predict(X), atol=1e-4)
