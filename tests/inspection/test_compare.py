"""Comparisons: the same kernels and splits for all, what cannot be compared, the table, the plot."""

import numpy as np
import pytest
from problems_compare import CV, RNG, WIDTHS, X, Y, quiet
from sklearn.dummy import DummyClassifier
from sklearn.metrics import make_scorer, matthews_corrcoef
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from multikernel import MKLClassifier, stack_kernels
from multikernel.inspection import Comparison
from multikernel.inspection.compare import evaluate
from multikernel.inspection.methods import METHODS, make_methods
from multikernel.kernels import RBF, Linear

# ---- what is compared


def test_scores_are_those_of_cross_validation():
    found = quiet({"mkl": MKLClassifier(C=2.0), "joint": MKLClassifier("precomputed", multiclass="joint")})
    for name, model in (("mkl", MKLClassifier(WIDTHS, C=2.0)), ("joint", MKLClassifier(WIDTHS, multiclass="joint"))):
        scores = [row["score"] for row in found.rows if row["method"] == name]
        np.testing.assert_allclose(scores, cross_val_score(model, X, Y, cv=CV))
    assert found.n_kernels == 3 and found.n_splits == 3 and found.methods == ["mkl", "joint"]


def test_the_table_is_the_mean_of_the_rows():
    found = quiet(["uniform", "joint"])
    for row in found.table:
        mine = [each for each in found.rows if each["method"] == row["method"]]
        scores = np.array([each["score"] for each in mine])
        assert row["accuracy"] == pytest.approx(scores.mean()) and row["splits"] == 3
        assert row["standard_error"] == pytest.approx(scores.std(ddof=1) / np.sqrt(3))
        assert row["fit_time"] == pytest.approx(np.mean([each["fit_time"] for each in mine])) and row["fit_time"] > 0
    uniform, joint = found.table
    assert uniform["gap"] is None and uniform["active"] == 3
    models = [MKLClassifier(WIDTHS, multiclass="joint").fit(X[train], Y[train]) for train, _ in CV.split(X, Y)]
    assert joint["active"] == pytest.approx(np.mean([np.count_nonzero(model.weights_) for model in models]))
    assert 0 < joint["gap"] <= 1e-3
    frame = found.to_frame()
    assert list(frame.index) == ["uniform", "joint"] and frame.loc["joint", "gap"] == joint["gap"]


@pytest.mark.parametrize("name", METHODS)
def test_every_name_is_a_method(name):
    found = quiet([name], cv=2, params={"max_iter": 5} if name in ("ufo", "obscure") else None)
    (row,) = found.table
    assert row["error"] is None and row["accuracy"] > 0.4


def test_numbers_are_regression():
    y = X[:, 0] + 0.1 * RNG.normal(size=66)
    able = [name for name, (_, _, both) in METHODS.items() if both]
    found = quiet(able, y=y, cv=2)
    assert found.scoring == "r2" and all(row["error"] is None and row["r2"] > 0.3 for row in found.table)
    with pytest.raises(ValueError, match=r"must be among .*alignf.* for targets that are numbers. Got 'm3k'"):
        quiet(["m3k"], y=y)


def test_kernels_are_evaluated_once(monkeypatch):
    calls = []

    def counted(self, A, B):
        calls.append(1)
        return original(self, A, B)

    original = Linear._cross
    monkeypatch.setattr(Linear, "_cross", counted)
    quiet(["uniform", "joint", "mkl"], kernels=[("left", Linear(), [0, 1]), ("right", Linear(), [2, 3])])
    assert len(calls) == 2


def test_samples_stacks_and_lists_agree():
    K = np.array([kernel.fit(X)(X) for kernel in WIDTHS])
    K.flags.writeable = False
    scores = [
        [row["score"] for row in quiet(["joint"], X=data).rows]
        for data in (X, X.tolist(), stack_kernels(K), stack_kernels(list(K)))
    ]
    assert scores[0] == scores[1] == scores[2] == scores[3]
    with pytest.raises(ValueError, match=r"With a KernelStack every method .* Got SVC\(\) for 'svc'"):
        quiet({"svc": SVC()}, X=stack_kernels(K))


def test_estimators_of_any_kind_take_part():
    methods = {
        "dummy": DummyClassifier(),
        "pipeline": make_pipeline(StandardScaler(), SVC()),
        "own kernels": MKLClassifier([RBF(), Linear()]),
        "search": GridSearchCV(MKLClassifier("precomputed"), {"C": [0.1, 1.0]}, cv=2),
    }
    table = {row["method"]: row for row in quiet(methods).table}
    assert all(row["error"] is None for row in table.values())
    assert table["dummy"]["active"] is None and table["dummy"]["gap"] is None
    assert table["own kernels"]["active"] > 0 and 0 < table["search"]["gap"] <= 1e-3
    assert table["dummy"]["accuracy"] < min(row["accuracy"] for name, row in table.items() if name != "dummy")


def test_parameters_and_grids_reach_those_that_have_them():
    made = make_methods(["uniform", "joint", "rkda"], True, False, {"C": 7.0, "normalize": "cosine"})
    assert made["uniform"].estimator.C == made["joint"].C == 7.0 and made["rkda"].normalize == "cosine"
    made = make_methods(["uniform", "joint", "rkda"], True, False, None, {"C": [1, 2]}, 4)
    assert made["uniform"].param_grid == {"estimator__C": [1, 2]} and made["joint"].param_grid == {"C": [1, 2]}
    assert not isinstance(made["rkda"], GridSearchCV) and made["joint"].cv == 4
    assert quiet(["uniform"], grid={"C": [0.1, 1.0]}, inner_cv=2).table[0]["active"] == 3


def test_any_scorer_and_groups():
    scorer = make_scorer(matthews_corrcoef)
    found = quiet(["joint"], scoring=scorer)
    expected = cross_val_score(MKLClassifier(WIDTHS, multiclass="joint"), X, Y, cv=CV, scoring=scorer)
    assert found.scoring == "score" and found.table[0]["score"] == pytest.approx(expected.mean())
    assert quiet(["uniform"], scoring="f1_macro").table[0]["f1_macro"] > 0.4
    from sklearn.model_selection import LeaveOneGroupOut

    assert quiet(["uniform"], cv=LeaveOneGroupOut(), groups=np.arange(66) % 4).n_splits == 4


def test_a_method_that_fails_does_not_stop_the_others():
    found = quiet({"bad": MKLClassifier(C=-1), "good": MKLClassifier()})
    bad, good = found.table
    assert bad["accuracy"] is None and bad["splits"] == 0 and good["splits"] == 3
    assert bad["error"] == "ValueError: The 'C' parameter of MKLClassifier must be a positive number. Got -1 instead."
    assert "bad: ValueError: The 'C' parameter" in " ".join(str(found).split()) and "failed" in str(found)
    assert [text.get_text() for text in found.plot().texts if "failed" in text.get_text()] == ["failed"]


def test_warnings_are_kept_not_shown(recwarn):
    found = quiet(["ufo"], params={"max_iter": 1})
    assert not len(recwarn) and "reached max_iter" in found.rows[0]["warnings"][0]
    assert found.rows[0]["status"] == "max_iter"


@pytest.mark.parametrize(
    ("methods", "sentence"),
    [
        (["mkll"], "Got 'mkll' instead. Did you mean 'mkl'?"),
        ("mkl", "must be a dict from names to estimators or a list of names. Got 'mkl' instead."),
        ([], "a list of names. Got [] instead."),
        ({"a": "mkl"}, "must be estimators or names. Got str for 'a' instead."),
    ],
)
def test_wrong_methods_are_named(methods, sentence):
    with pytest.raises(ValueError) as error:
        quiet(methods)
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"cv": []}, r"The 'cv' parameter of compare must be .* Got \[\] instead"),
        ({"cv": [([0, 1], [99])]}, "The 'cv' parameter of compare must be"),
        ({"params": [1]}, r"The 'params' parameter of compare must be a dict from names. Got \[1\]"),
        ({"params": {"c": 1.0}}, "must name parameters that some method has. Got 'c'"),
        ({"grid": {"C": 1.0}}, "dict from names to lists of values, not empty. Got 1.0 for 'C'"),
        ({"grid": {"c": [1.0]}}, "must name parameters that some method has. Got 'c'"),
        ({"grid": {"C": [1.0, 2.0]}, "inner_cv": 1}, "'inner_cv' parameter of compare must be an integer"),
        ({"y": None}, "compare requires y to be passed"),
        ({"y": np.array(["a", 1] * 33, object)}, "y of compare must hold targets of one kind. Got texts and 1"),
    ],
    ids=str,
)
def test_what_cannot_be_compared_is_one_sentence(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        quiet(["uniform"], **change)


def test_kernels_are_stored_as_estimators_store_them():
    stack = evaluate([("a", RBF(width=2.0), [0]), ("b", Linear(), [1, 2])], X)
    assert stack.names == ["a", "b"] and stack.shape == (66, 66, 2)
    np.testing.assert_allclose(stack.kernel_rows(1, stack.col_ids), X[:, 1:3] @ X[:, 1:3].T)


# ---- table, picture, files


def test_what_is_saved_can_be_read(tmp_path):
    pandas = pytest.importorskip("pandas")
    found = quiet(["uniform", "joint"])
    paths = found.save(tmp_path / "new")
    assert [path.name for path in paths] == ["table.csv", "fits.csv", "comparison.png"]
    table = pandas.read_csv(paths[0], index_col="method")
    assert table.loc["joint", "accuracy"] == pytest.approx(found.table[1]["accuracy"])
    assert len(pandas.read_csv(paths[1])) == 6
    assert paths[2].read_bytes()[:4] == b"\x89PNG"


def test_the_plot_has_a_row_for_each_method():
    found = quiet(["uniform", "joint"])
    ax = found.plot()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["uniform", "joint"]
    assert "accuracy (mean and standard error over 3 splits)" == ax.get_xlabel()
    means = [container.lines[0].get_xdata()[0] for container in ax.containers]
    assert [row["accuracy"] for row in found.table] == pytest.approx(means)
    assert found.plot(ax) is ax


def test_one_split_has_no_error_bar():
    rows = [{"method": "a", "fold": 0, "score": 0.5, "fit_time": 1.0, "active": None, "gap": None, "error": None}]
    found = Comparison(rows, ["a"], "accuracy", 2, 1)
    assert found.table[0]["standard_error"] is None and "0.5000" in str(found) and "±" not in str(found)
    found.plot()


def test_names_and_errors_are_no_markup():
    found = quiet({"svm [bold]": SVC(), "bad [/x]": MKLClassifier(norm=[2.0])}, cv=2)
    text = " ".join(str(found).split())
    assert "svm [bold]" in text and "bad [/x]: ValueError" in text and "Got [2.0] instead" in text


def test_the_bar_is_on_a_terminal_only(capsys, monkeypatch):
    quiet(["uniform"], verbose=1)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setenv("FORCE_COLOR", "1")
    quiet(["uniform"], verbose=1)
    shown = capsys.readouterr()
    assert shown.out == "" and "uniform, split 3 of 3" in shown.err
