"""Importance of views: the drops of models trained without them, the intervals, and what is refused."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import GroupKFold, StratifiedKFold, cross_val_score

from multikernel import (
    EasyMKLClassifier,
    M3KClassifier,
    MKLClassifier,
    MKLClassifierCV,
    MKLOneClass,
    MKLRegressor,
    Views,
    stack_kernels,
)
from multikernel.inspection import trials as engine
from multikernel.inspection import view_importance
from multikernel.inspection.view_importance import _bootstrap, _margins, _strata, verdict
from multikernel.kernels import RBF, Linear, Spectrum, rbf_family

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 5))
F = X[:, 0] + 0.8 * X[:, 2]
TWO, NUMBERS = np.where(F + 0.3 * RNG.normal(size=80) > 0, "yes", "no"), F + 0.3 * RNG.normal(size=80)
THREE = np.digitize(F, [-0.5, 0.5])
VIEWS = [("a", rbf_family(factors=[0.5, 2.0]), [0, 1]), ("b", RBF(), [2, 3]), ("noise", Linear(), [4])]
CV = StratifiedKFold(4)


def quick(model, X=X, y=TWO, **options):
    return view_importance(model, X, y, **{"n_bootstraps": 3, "random_state": 0, "cv": 4, **options})


def brute_force(model, entries, X, y, cv=4, scoring=None):
    """Return the score, and the drops of models that never saw a view."""
    whole = cross_val_score(model, X, y, cv=cv, scoring=scoring).mean()
    drops = {}
    for name, _, _ in entries:
        left = model.__class__(**{**model.get_params(deep=False), "kernels": [e for e in entries if e[0] != name]})
        drops[name] = whole - cross_val_score(left, X, y, cv=cv, scoring=scoring).mean()
    return whole, drops


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (MKLClassifier(VIEWS, norm=2.0, tol=1e-7), TWO),
        (MKLClassifier(VIEWS, tol=1e-7), THREE),
        (MKLClassifier(VIEWS, multiclass="ovr", loss="squared", tol=1e-7), THREE),
        (MKLClassifier(VIEWS, multiclass="ovo", norm=2.0, tol=1e-7), THREE),
        (M3KClassifier(VIEWS, gamma0_fraction=0.5, tol=1e-7), TWO),
    ],
    ids=["norm 2", "joint", "one against rest", "pairs", "margin"],
)
def test_drops_are_those_of_models_that_never_saw_the_view(model, y):
    found = quick(model, y=y)
    score, drops = brute_force(model, VIEWS, X, y)
    assert found.score == pytest.approx(score) and found.scorer == "accuracy"
    # a sample at the boundary may fall on either side within the tolerance
    np.testing.assert_allclose(found.drop, [drops[name] for name in found.names], atol=1.01 / 80)
    assert list(found.drop) == sorted(found.drop, reverse=True)


def test_drops_of_a_regression_and_another_score():
    model = MKLRegressor(VIEWS, loss="squared", norm=2.0, tol=1e-9)
    for scoring in (None, "neg_mean_absolute_error"):
        found = quick(model, y=NUMBERS, scoring=scoring)
        score, drops = brute_force(model, VIEWS, X, NUMBERS, scoring=scoring)
        assert found.score == pytest.approx(score, rel=1e-4)
        np.testing.assert_allclose(found.drop, [drops[name] for name in found.names], atol=1e-4)
        assert found.scorer == (scoring or "r2") and found.names[-1] == "noise"


def test_kernels_one_by_one():
    model = MKLRegressor(VIEWS, loss="squared", norm=2.0, tol=1e-9)
    found = quick(model, y=NUMBERS, by="kernel")
    assert set(found.names) == {"a: rbf(0.5)", "a: rbf(2)", "b", "noise"} and found.by == "kernel"
    entries = [("a1", RBF(quantile=0.5, factor=0.5), [0, 1]), ("a2", RBF(quantile=0.5, factor=2.0), [0, 1]), *VIEWS[1:]]
    drops = brute_force(MKLRegressor(entries, loss="squared", norm=2.0, tol=1e-9), entries, X, NUMBERS)[1]
    mine = dict(zip(found.names, found.drop, strict=True))
    assert mine["a: rbf(2)"] == pytest.approx(drops["a2"], abs=1e-4)


def test_weights_are_those_of_the_model():
    model = MKLClassifier(VIEWS, norm=2.0).fit(X, TWO)
    found, table = quick(model), model.by_view()
    for row in found.rows():
        at = list(table["view"]).index(row["view"])
        assert row["weight"] == pytest.approx(table["weight"][at])
        assert row["contribution"] == pytest.approx(table["contribution"][at])
    # norm 2 selects nothing
    assert (found.selected == 1.0).all()
    several = MKLClassifier(VIEWS, multiclass="ovr").fit(X, THREE)
    again = quick(several, y=THREE)
    first = again.rows()[0]["view"]
    weights = np.asarray(several.weights_)[:, [name.startswith(first) for name in several.kernel_names_]]
    assert again.weight[0] == pytest.approx(weights.sum() / 3)
    assert np.all(quick(MKLClassifier(VIEWS, C=0.01)).selected <= 1.0)


def test_an_unfitted_model_a_search_and_a_fitted_one_agree():
    fitted = MKLClassifier(VIEWS, C=0.1).fit(X, TWO)
    search = MKLClassifierCV(VIEWS, Cs=[0.1], cv=2)
    results = [quick(model) for model in (MKLClassifier(VIEWS, C=0.1), fitted, search, search.fit(X, TWO))]
    for other in results[1:]:
        np.testing.assert_array_equal(other.drop, results[0].drop)
        np.testing.assert_array_equal(other.low, results[0].low)
        assert other.score == results[0].score


def test_stacks_views_sequences_and_frames():
    expected = quick(MKLClassifier([("a", Linear(), [0, 1]), ("b", Linear(), [2, 3])], norm=2.0))
    stack = stack_kernels({"a": X[:, :2] @ X[:, :2].T, "b": X[:, 2:4] @ X[:, 2:4].T})
    views = {"a": X[:, :2], "b": X[:, 2:4]}
    for model, data in (
        (MKLClassifier("precomputed", norm=2.0), stack),
        (MKLClassifier(Linear(), norm=2.0), views),
        (MKLClassifier(Linear(), norm=2.0), Views(views)),
    ):
        found = quick(model, data)
        assert found.names.tolist() == expected.names.tolist()
        np.testing.assert_allclose(found.drop, expected.drop, atol=1.01 / 80)
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"x": F, "dna": ["".join(RNG.choice(list("ACGT"), 8)) for _ in range(80)]})
    found = quick(MKLClassifier([("numbers", RBF(), ["x"]), ("dna", Spectrum(2), "dna")]), frame)
    assert found.names[0] == "numbers" and found.drop[0] > 0.2


def test_kernels_on_classes_and_features():
    joint = MKLClassifier(VIEWS, output_kernels=[np.eye(3), np.ones((3, 3)) + np.eye(3)])
    found = quick(joint, y=THREE)
    assert set(found.names) == {"a", "b", "noise"} and found.weight.sum() == pytest.approx(1.0, abs=0.01)
    linear = [("a", Linear(), [0, 1]), ("b", Linear(), [2, 3]), ("noise", Linear(), [4])]
    dense = quick(MKLRegressor(linear, loss="squared", norm=2.0, tol=1e-8), y=NUMBERS)
    features = quick(MKLRegressor(linear, loss="squared", norm=2.0, tol=1e-8, gram="features"), y=NUMBERS)
    np.testing.assert_allclose(features.drop, dense.drop, atol=1e-3)


def test_a_single_view_is_compared_with_constant_predictions():
    found = quick(MKLClassifier(RBF()), y=TWO)
    constant = cross_val_score(DummyClassifier(), X, TWO, cv=4).mean()
    assert found.names.tolist() == ["all columns"] and found.drop[0] == pytest.approx(found.score - constant)
    assert quick(MKLRegressor(RBF()), y=NUMBERS).drop[0] > 0.3


def test_the_margin_is_test_and_training_variance():
    rng = np.random.default_rng(1)
    n, n2, k, B = 1000, 368, 5, 20_000
    folds = [engine.Trial(np.setdiff1d(np.arange(n), test), [test]) for test in np.split(np.arange(n), k)]
    trials = [*folds, engine.Trial(np.arange(n), [np.arange(n2 // 2), np.arange(n2 // 2)])]
    s2, v = 4.0, 0.03
    common = rng.normal(scale=np.sqrt(v), size=(B, 1))
    # halves of test samples drawn from n without replacement: their mean has variance s2 (1 / n2 - 1 / n)
    whole = rng.normal(scale=np.sqrt(s2 * (1 / n2 - 1 / n)), size=(B, 1))
    apart = rng.normal(scale=np.sqrt(s2 / n2), size=(B, 1))
    drops = (common + whole)[:, None] + np.stack([apart, -apart], axis=1)
    margin = _margins(drops, trials, k, 0.9, 1)
    assert margin[0] == pytest.approx(1.645 * np.sqrt(s2 / n + v / k), rel=0.03)
    # half of the samples tested: twice the variance that is theirs
    one = _margins(drops, [engine.Trial(np.arange(n // 2, n), [np.arange(n // 2)]), trials[-1]], 1, 0.9, 1)
    assert one[0] == pytest.approx(1.645 * np.sqrt(2 * s2 / n + v), rel=0.03)
    assert np.isnan(_margins(drops[:1], trials, k, 0.9, 1)).all() and np.isnan(_margins(drops[:0], trials, k, 0.9, 1))


def test_bootstraps_keep_classes_and_test_on_what_was_not_drawn():
    y, rng = np.repeat([0, 1, 2], [30, 20, 10]), np.random.default_rng(0)
    for _ in range(20):
        trial = _bootstrap(_strata(y, None, 60), rng)
        assert [trial.counts[y == c].sum() for c in range(3)] == [30, 20, 10]
        np.testing.assert_array_equal(np.sort(np.concatenate(trial.tests)), np.flatnonzero(trial.counts == 0))
        assert abs(len(trial.tests[0]) - len(trial.tests[1])) <= 1
    groups = np.arange(60) // 3
    trial = _bootstrap(_strata(y, groups, 60), rng)
    assert all(len(set(trial.counts[groups == g])) == 1 for g in range(20)) and trial.counts.sum() == 60
    found = quick(MKLClassifier(VIEWS), cv=GroupKFold(4), groups=np.arange(80) % 20)
    assert np.isfinite(found.low).all()


def test_kernels_are_not_computed_again_without_a_view(monkeypatch):
    calls = []

    def counted(self, A, B):
        calls.append(1)
        return original(self, A, B)

    original = Linear._cross
    entries = [("a", Linear(), [0, 1]), ("b", Linear(), [2, 3])]
    model = MKLClassifier(entries, norm=2.0).fit(X, TWO)
    monkeypatch.setattr(Linear, "_cross", counted)
    quick(model)
    # each kernel once between all samples, whatever folds, bootstraps and views
    assert len(calls) == 2


def test_the_same_seed_gives_the_same_result_with_any_number_of_workers():
    model = MKLClassifier(VIEWS, n_jobs=1)
    one = quick(model)
    with parallel_config("threading", n_jobs=2):
        two = quick(model)
    np.testing.assert_array_equal(one.drop, two.drop)
    np.testing.assert_array_equal(one.low, two.low)
    assert not np.array_equal(one.low, quick(model, random_state=1).low)
    assert np.isnan(quick(model, n_bootstraps=0).low).all()


def test_without_pandas_and_in_words(monkeypatch):
    found, without = quick(MKLClassifier(VIEWS)), quick(MKLClassifier(VIEWS), n_bootstraps=0)
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert found.frame()["view"] == found.names.tolist()
    text = str(found)
    assert "Cross-validated accuracy of the whole model" in text and "90 % intervals from 3 bootstraps" in text
    assert [line.split()[0] for line in text.splitlines()[1:4]] == found.names.tolist()
    assert "no interval" in str(without)
    assert verdict(-0.2, -0.1) == "the model is better without it"


def test_ctrl_c_keeps_what_is_finished(monkeypatch):
    count, original = [], engine.run_trial

    def stopping(*arguments):
        count.append(1)
        if len(count) > 6:
            raise KeyboardInterrupt
        return original(*arguments)

    model = MKLClassifier(VIEWS, n_jobs=1).fit(X, TWO)
    whole = quick(model)
    module = sys.modules["multikernel.inspection.view_importance"]
    monkeypatch.setattr(module, "run_trial", stopping)
    with pytest.warns(UserWarning, match="interrupted after 6 of 7"), pytest.raises(KeyboardInterrupt) as stop:
        quick(model)
    kept = stop.value.importance
    np.testing.assert_array_equal(kept.drop, whole.drop)
    assert kept.n_bootstraps == 2 and np.isfinite(kept.low).all()
    count.clear()
    with (
        parallel_config("threading", n_jobs=2),
        pytest.warns(UserWarning, match="interrupted"),
        pytest.raises(KeyboardInterrupt),
    ):
        quick(model)
    count[:] = [1] * 10
    with pytest.raises(KeyboardInterrupt) as stop:
        quick(model)
    assert not hasattr(stop.value, "importance")


def test_a_training_that_was_interrupted_is_no_result(monkeypatch):
    original = engine.train

    def stopped(*arguments):
        fit = original(*arguments)
        return replace(fit, solutions=tuple(replace(each, status="interrupted") for each in fit.solutions))

    model = MKLClassifier(VIEWS).fit(X, TWO)
    monkeypatch.setattr(engine, "train", stopped)
    with pytest.raises(KeyboardInterrupt):
        quick(model)


def test_progress_is_shown_on_stderr(capsys):
    quick(MKLClassifier(VIEWS), verbose=1)
    assert "7 of 7 folds and bootstraps" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"by": "columns"}, "'by' parameter of view_importance must be 'view' or 'kernel'. Got 'columns'"),
        ({"n_bootstraps": -1}, "'n_bootstraps' parameter of view_importance must be an integer of at least 0"),
        ({"confidence": 1.0}, "'confidence' parameter .* between 0 and 1. Got 1.0"),
        ({"scoring": "acuracy"}, "'scoring' parameter .* Got 'acuracy' instead. Did you mean 'accuracy'"),
        ({"n_jobs": 0}, "'n_jobs' parameter"),
        ({"verbose": -1}, "'verbose' parameter"),
        ({"random_state": "seed"}, "'random_state' parameter .* Got 'seed'"),
        ({"groups": [1, 2]}, r"'groups' parameter of view_importance must be None or one group .* Got shape \(2,\)"),
        ({"cv": 1}, "'cv' parameter of view_importance"),
        ({"y": None}, "needs y"),
        ({"model": MKLOneClass(VIEWS)}, "must be MKLClassifier, .* Got MKLOneClass"),
        ({"model": EasyMKLClassifier(VIEWS)}, "must be MKLClassifier, .* Got EasyMKLClassifier"),
        ({"model": DummyClassifier()}, "must be MKLClassifier, .* Got DummyClassifier"),
        ({"scoring": lambda estimator, X, y: "high"}, "could not score the models. .*must return a number"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(options, match):
    options = {"model": MKLClassifier(VIEWS), **options}
    with pytest.raises(ValueError, match=match):
        quick(options.pop("model"), **options)


def test_a_search_without_a_model_is_refused():
    search = MKLClassifierCV(VIEWS, Cs=[1.0], cv=2, refit=False).fit(X, TWO)
    with pytest.raises(ValueError, match="refit=False"):
        quick(search)
    assert np.isfinite(quick(MKLClassifier(VIEWS), random_state=np.random.RandomState(0)).low).all()
