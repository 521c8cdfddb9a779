"""The searches choose as GridSearchCV does."""

import pickle
from contextlib import nullcontext

import numpy as np
import pytest
import sklearn
from interrupted import interrupted
from joblib import parallel_config
from problems_search import CS, CV, EXACT, FIXED, KERNELS, STACK, WEIGHT, N, T, X, Y, compare, cosine_of
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    PredefinedSplit,
    ShuffleSplit,
    cross_val_predict,
)

from multikernel import MKLClassifier, MKLClassifierCV, MKLRegressor, MKLRegressorCV, stack_kernels
from multikernel.kernels import RBF, Linear
from multikernel.model_selection import folds
from multikernel.solvers.newton import Newton

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
    search = MKLClassifierCV(Cs=[0.01, 1.0, 100.0], cv=3, multiclass=multiclass, tol=1e-9)
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


@pytest.mark.parametrize("normalize", ["variance", "cosine", ["center", "trace"]], ids=str)
@pytest.mark.parametrize("kernels", [FIXED, [*FIXED, cosine_of], [*FIXED, RBF()]], ids=["fixed", "unvouched", "both"])
def test_folds_that_train_on_all_samples_leave_the_shared_kernels_alone(kernels, normalize):
    every = np.arange(N)
    cv = [(every, every[:20]), (every, every[20:]), (every[10:], every[:10])]
    compare(MKLClassifierCV(kernels, Cs=CS, cv=cv, normalize=normalize, **EXACT), X, Y)


def test_the_weights_of_the_folds():
    search = MKLClassifierCV("precomputed", Cs=CS, norms=[1.0, 2.0], cv=CV, baselines=False, **EXACT).fit(STACK, Y)
    for s, (train, _) in enumerate(CV.split(X, Y)):
        for point, weights in zip(search.cv_results_["params"], search.weights_path_[s], strict=True):
            model = MKLClassifier("precomputed", **point, **EXACT).fit(STACK[train], Y[train])
            np.testing.assert_allclose(weights, model.weights_, atol=1e-4)


def test_the_search_is_its_best_estimator():
    search = MKLClassifierCV("precomputed", Cs=CS, norms=[1.0, 2.0], cv=CV, baselines=False, **EXACT).fit(STACK, Y)
    best = MKLClassifier("precomputed", **search.best_params_, **EXACT).fit(STACK, Y)
    assert search.objective_ == pytest.approx(best.objective_, rel=1e-9) and search.duality_gap_ <= EXACT["tol"]
    for name in ("weights_", "dual_coef_", "intercept_", "support_"):
        np.testing.assert_allclose(getattr(search, name), getattr(best, name), atol=1e-4, err_msg=name)
        np.testing.assert_array_equal(getattr(search, name), getattr(search.best_estimator_, name))
    assert type(search.best_estimator_) is MKLClassifier and search.best_estimator_.model_ is search.model_
    assert search.score(STACK, Y) == best.score(STACK, Y)
    assert (search.C_, search.norm_) == (search.best_params_["C"], search.best_params_["norm"])
    assert search.n_splits_ == 3 and search.C is None


def test_every_parameter_of_the_base_estimator():
    for search, base in ((MKLClassifierCV(), MKLClassifier()), (MKLRegressorCV(), MKLRegressor())):
        own, wanted = search.get_params(deep=False), base.get_params(deep=False)
        # nobody wants to watch every fit of every fold
        del wanted["callback"]
        # what the grid decides
        for name in {"C", "norm", "loss", "epsilon"} & set(wanted):
            assert own[name] is None
            del wanted[name]
        assert {name: own[name] for name in wanted} == wanted
    named = MKLClassifierCV([("wave", RBF(), [0])], Cs=CS).set_params(wave__quantile=0.3)
    assert named.kernels[0][1].quantile == 0.3 and clone(named).get_params()["wave__quantile"] == 0.3


def test_one_point():
    search = MKLClassifierCV("precomputed", C=3.0, cv=CV, baselines=False, **EXACT).fit(STACK, Y)
    assert search.best_params_ == {} and search.C_ == 3.0 and search.cv_results_["params"] == [{}]
    plain = MKLClassifier("precomputed", C=3.0, **EXACT).fit(STACK, Y)
    assert search.objective_ == pytest.approx(plain.objective_, rel=1e-9)


def test_pickles_are_those_of_the_model():
    for kernels, samples in (("precomputed", STACK), (FIXED, X), ("rbf", X)):
        search = MKLClassifierCV(kernels, Cs=CS, cv=3, baselines=False).fit(samples, Y)
        again = pickle.loads(pickle.dumps(search))
        np.testing.assert_array_equal(again.decision_function(samples), search.decision_function(samples))
        plain = MKLClassifier(kernels, **search.best_params_).fit(samples, Y)
        assert len(pickle.dumps(search.best_estimator_)) < 1.2 * len(pickle.dumps(plain))


@pytest.mark.parametrize("jobs", [1, 2])
def test_folds_side_by_side(jobs):
    search = MKLClassifierCV("precomputed", Cs=CS, cv=3, n_jobs=jobs).fit(STACK, Y)
    other = MKLClassifierCV("precomputed", Cs=CS, cv=3).fit(STACK, Y)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"])


def test_each_fit_is_reported_with_its_fold_and_point(monkeypatch, capsys):
    rows = []
    search = MKLClassifierCV("precomputed", Cs=CS, cv=2, verbose=2, callback=rows.append, baselines=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    search.fit(STACK, Y)
    total = 2 * len(CS)
    assert [(row["done"], row["of"]) for row in rows] == [(i + 1, total) for i in range(total)]
    assert [row["fold"] for row in rows] == [0] * len(CS) + [1] * len(CS)
    assert all(row["gap"] <= search.tol for row in rows)
    out, err = capsys.readouterr()
    assert out == "" and f"{total} of {total} fits, fold 2 of 2, C={min(CS)}" in err


def test_within_cross_validation():
    search = MKLClassifierCV("precomputed", Cs=CS, cv=3, baselines=False, **EXACT)
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


@pytest.mark.parametrize("loss", ["hinge", "squared"])
def test_searches_work_on_explicit_features(loss):
    kernels = [("one", Linear(), [0, 1]), ("two", Linear(), [2])]
    options = {"Cs": [1.0], "cv": CV, "loss": loss, "tol": 1e-6, "fit_intercept": False}
    options["baselines"] = False
    found = MKLClassifierCV(kernels, gram="features", **options).fit(X, Y)
    dense = MKLClassifierCV(kernels, **options).fit(X, Y)
    assert found.gram_.kind == "features" and dense.gram_.kind == "dense"
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], dense.cv_results_["mean_test_score"], atol=0.02)
    assert found.objective_ == pytest.approx(dense.objective_, rel=1e-5)


@pytest.mark.parametrize(
    "options", [{"output_kernels": [np.eye(3), np.ones((3, 3)) + np.eye(3)]}, {}], ids=["products", "joint"]
)
def test_the_active_set_takes_every_machine(options):
    y = np.digitize(X[:, 0], [-0.4, 0.4])
    one, other = (
        MKLClassifier(FIXED, solver=solver, tol=1e-6, **options).fit(X, y) for solver in ("active-set", "newton")
    )
    assert one.status_ == "converged" and one.objective_ == pytest.approx(other.objective_, rel=2e-6)


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_folds_run_at_once_in_a_context_of_joblib(backend):
    search = MKLClassifierCV(FIXED, Cs=CS, cv=CV, loss="logistic", scoring="neg_log_loss", tol=1e-6)
    alone = clone(search).fit(X, Y)
    with parallel_config(backend, n_jobs=2):
        together = clone(search).fit(X, Y)
    np.testing.assert_allclose(together.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"], rtol=1e-4)
    np.testing.assert_allclose(together.weights_, alone.weights_, atol=1e-4)


def test_a_search_interrupted_before_its_model_is_not_fitted(monkeypatch):
    def stop(self, *args):
        raise KeyboardInterrupt

    search = MKLClassifierCV(FIXED, Cs=CS, cv=CV)
    monkeypatch.setattr(MKLClassifierCV, "_refit", stop)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, Y)
    with pytest.raises(NotFittedError):
        search.predict(X)


@pytest.mark.parametrize("at_once", [False, True])
def test_an_interrupted_search_keeps_its_finished_folds(monkeypatch, at_once):
    run, whole = folds.run_fold, MKLClassifierCV(FIXED, Cs=CS, cv=CV).fit(X, Y)

    def stop(job, rows, test, fold=0):
        if fold == 2:
            raise KeyboardInterrupt
        return run(job, rows, test, fold)

    monkeypatch.setattr(folds, "run_fold", stop)
    search = MKLClassifierCV(FIXED, Cs=CS, cv=CV)
    context = parallel_config("threading", n_jobs=2) if at_once else nullcontext()
    with context, interrupted(r"was interrupted after 2 of 3 folds\. cv_results_ and best_params_ are those of"):
        search.fit(X, Y)
    assert search.n_splits_ == 2 and "split2_test_score" not in search.cv_results_
    for key in ("params", "split0_test_score", "split1_test_score"):
        np.testing.assert_array_equal(search.cv_results_[key], whole.cv_results_[key])
    np.testing.assert_array_equal(search.weights_path_, whole.weights_path_[:2])
    assert search.best_params_ in search.cv_results_["params"]
    with pytest.raises(NotFittedError):
        search.predict(X)


def test_a_search_interrupted_in_its_last_training_keeps_the_model():
    count = []

    class Impatient(Newton):
        def step(self, point, state, certificate):
            if point.problem.gram.n_samples == len(X):
                count.append(1)
                if len(count) == 2:
                    raise KeyboardInterrupt
            return super().step(point, state, certificate)

    search = MKLClassifierCV(FIXED, Cs=CS, cv=CV, solver=Impatient(), tol=1e-9, baselines=False)
    with interrupted("MKLClassifier was interrupted after .*The model kept is the best one found"):
        search.fit(X, Y)
    assert search.n_splits_ == 3 and search.status_ == "interrupted" and search.refit_time_ > 0
    assert search.predict(X).shape == Y.shape and search.best_estimator_.duality_gap_ == search.duality_gap_


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_scores_whose_squares_overflow_have_a_standard_deviation():
    X = np.random.default_rng(0).normal(size=(16, 2))

    def scoring(estimator, X, y):
        return -1e200 * float(X[0, 0] ** 2 + 1.0)

    table = MKLRegressorCV([RBF()], Cs=[0.1, 1.0], cv=4, scoring=scoring).fit(X, X[:, 0]).cv_results_
    scores = np.array([table[f"split{s}_test_score"] for s in range(4)]) / 1e200
    np.testing.assert_allclose(table["std_test_score"] / 1e200, scores.std(axis=0), rtol=1e-12)
