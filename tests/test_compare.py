"""Comparisons: the same kernels and splits for all, results that survive a kill, the table, the plot, the command."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.metrics import make_scorer, matthews_corrcoef
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from typer.testing import CliRunner

from multikernel import MKLClassifier, stack_kernels
from multikernel.cli.app import app
from multikernel.cli.compare import KERNELS, load_table, make_kernels
from multikernel.inspection import Comparison, compare
from multikernel.inspection.compare import evaluate
from multikernel.inspection.methods import METHODS, make_methods
from multikernel.inspection.records import Records, fingerprint
from multikernel.kernels import RBF, Linear, rbf_family

RNG = np.random.default_rng(0)
X = RNG.normal(size=(66, 4))
Y = np.digitize(X[:, 0] + 0.3 * RNG.normal(size=66), [-0.5, 0.5])
WIDTHS = rbf_family([1.0, 4.0, 16.0])
CV = StratifiedKFold(3, shuffle=True, random_state=0)


def quiet(methods=("uniform", "joint"), **options):
    options = {"kernels": WIDTHS, "cv": CV, "verbose": 0, **options}
    return compare(options.pop("X", X), options.pop("y", Y), methods, **options)


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
    assert 0 <= joint["gap"] <= 1e-3 and joint["active"] <= 3
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
    assert table["own kernels"]["active"] <= 2 and table["search"]["gap"] <= 1e-3
    assert table["dummy"]["accuracy"] < min(row["accuracy"] for name, row in table.items() if name != "dummy")


def test_parameters_and_grids_reach_those_that_have_them():
    made = make_methods(["uniform", "joint", "rkda"], True, False, {"C": 7.0, "normalize": "cosine"})
    assert made["uniform"].estimator.C == made["joint"].C == 7.0 and made["rkda"].normalize == "cosine"
    made = make_methods(["uniform", "joint", "rkda"], True, False, None, {"C": [1, 2]}, 4)
    assert made["uniform"].param_grid == {"estimator__C": [1, 2]} and made["joint"].param_grid == {"C": [1, 2]}
    assert not isinstance(made["rkda"], GridSearchCV) and made["joint"].cv == 4
    assert quiet(["uniform"], grid={"C": [0.1, 1.0]}, inner_cv=2).table[0]["active"] == 3


def test_any_scorer_and_groups():
    found = quiet(["uniform"], scoring=make_scorer(matthews_corrcoef))
    assert found.scoring == "score" and -1 <= found.table[0]["score"] <= 1
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


def test_kernels_are_stored_as_estimators_store_them():
    stack = evaluate([("a", RBF(width=2.0), [0]), ("b", Linear(), [1, 2])], X)
    assert stack.names == ["a", "b"] and stack.shape == (66, 66, 2)
    np.testing.assert_allclose(stack.kernel_rows(1, stack.col_ids), X[:, 1:3] @ X[:, 1:3].T)


# ---- results that survive


def count_fits(monkeypatch):
    fits = []
    original = MKLClassifier.fit

    def counted(self, *args, **kwargs):
        fits.append(len(args[1]))
        return original(self, *args, **kwargs)

    monkeypatch.setattr(MKLClassifier, "fit", counted)
    return fits


def test_what_was_done_is_not_done_again(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "results.jsonl"
    first = quiet(["uniform", "joint"], results=path)
    # as if killed in the middle of a line: the last fit is lost
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:-1]) + "\n" + lines[-1][:25])
    fits = count_fits(monkeypatch)
    again = quiet(["uniform", "joint"], results=path)
    assert sum(size > 40 for size in fits) == 1
    assert [row["score"] for row in again.rows] == [row["score"] for row in first.rows]
    assert len(path.read_text().splitlines()) == len(lines)
    fits.clear()
    assert quiet(["uniform", "joint"], results=path).n_kernels == 3 and not fits
    more = quiet(["joint", "mkl"], results=path)
    assert more.methods == ["joint", "mkl"] and sum(size > 40 for size in fits) == 3


def test_a_killed_run_loses_the_fit_in_flight_only(tmp_path):
    path = tmp_path / "results.jsonl"
    program = f"""
import os, signal
import numpy as np
from multikernel import MKLClassifier
from multikernel.inspection import compare
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2))
class Killer(MKLClassifier):
    def fit(self, X, y):
        if len(y) > 20 and os.path.exists({str(path)!r}) and len(open({str(path)!r}).readlines()) == 4:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(X, y)
compare(X, X[:, 0] > 0, {{"a": Killer(), "b": Killer(norm=2.0)}}, cv=4, results={str(path)!r})
"""
    run = subprocess.run([sys.executable, "-c", program], env=dict(os.environ), capture_output=True)
    assert run.returncode == -9
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["method"], line["fold"]) for line in lines[1:]] == [("a", 0), ("b", 0), ("a", 1)]


def test_another_protocol_is_refused(tmp_path):
    path = tmp_path / "results.jsonl"
    quiet(["uniform"], results=path)
    for change, sentence in (
        ({"X": X + 1.0}, "the data are not the same"),
        ({"y": np.roll(Y, 1), "cv": 3}, "the data, the splits of cv are not the same"),
        ({"cv": 4}, "the splits of cv are not the same"),
        ({"scoring": "f1_macro"}, "the scorer is not the same"),
        ({"kernels": "rbf"}, "the kernels are not the same"),
        ({"params": {"C": 3.0}}, "The results of 'uniform' in .* are those of other parameters"),
    ):
        with pytest.raises(ValueError, match=sentence):
            quiet(["uniform"], results=path, **change)
    assert quiet(["uniform"], results=path, cv=4, resume=False).n_splits == 4
    for text in ('{"a": 1}\n', "3\n", "a,b,c\n1,2,3\n"):
        path.write_text(text)
        with pytest.raises(ValueError, match="must hold results of compare"):
            quiet(["uniform"], results=path)
        assert path.read_text() == text
    path.write_text('{"proto')
    assert quiet(["uniform"], results=path).table[0]["splits"] == 3
    for place in (tmp_path, path / "below" / "results.jsonl"):
        with pytest.raises(ValueError, match="'results' parameter of compare must be a file that can be written"):
            quiet(["uniform"], results=place)


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


def test_names_and_errors_are_no_markup():
    found = quiet({"svm [bold]": SVC(), "bad [/x]": MKLClassifier(norm=[2.0])}, cv=2)
    text = " ".join(str(found).split())
    assert "svm [bold]" in text and "bad [/x]: ValueError" in text and "Got [2.0] instead" in text


def test_failures_are_tried_again(tmp_path, monkeypatch):
    path = tmp_path / "results.jsonl"

    def fail(self, *args, **kwargs):
        raise RuntimeError("no\nluck")

    with monkeypatch.context() as patch:
        patch.setattr(MKLClassifier, "fit", fail)
        assert quiet(["joint"], results=path).table[0]["error"] == "RuntimeError: no"
    assert quiet(["joint"], results=path).table[0]["splits"] == 3


def test_an_interrupted_fit_is_not_a_result(tmp_path, monkeypatch):
    path = tmp_path / "results.jsonl"

    def stop(self, *args, **kwargs):
        self.status_ = "interrupted"
        return self

    monkeypatch.setattr(MKLClassifier, "fit", stop)
    with pytest.raises(KeyboardInterrupt):
        quiet(["joint"], results=path)
    assert len(path.read_text().splitlines()) == 1


def test_fingerprints_tell_values_apart():
    pandas = pytest.importorskip("pandas")
    from scipy import sparse

    for one, other in (
        (X, X.astype(np.float32)),
        (sparse.csr_array(X), sparse.csr_array(2 * X)),
        (pandas.DataFrame({"a": [1, 2]}), pandas.DataFrame({"b": [1, 2]})),
        (np.array(["a", None], object), np.array(["b", None], object)),
        (stack_kernels([np.eye(3)]), stack_kernels([2 * np.eye(3)])),
        (RBF(width=1.0), RBF(width=2.0)),
    ):
        assert fingerprint(one) == fingerprint(one) != fingerprint(other)
    assert fingerprint(lambda: 0) == fingerprint(lambda: 0)
    assert Records(None, {}, {}).rows == []


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


def test_the_bar_is_on_a_terminal_only(capsys, monkeypatch):
    quiet(["uniform"], verbose=1)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setenv("FORCE_COLOR", "1")
    quiet(["uniform"], verbose=1)
    assert capsys.readouterr().out == ""


# ---- the command


@pytest.fixture
def table(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c", "d"])
    frame["colour"] = np.where(X[:, 1] > 0, "red", "blue")
    frame["class"] = np.array(["low", "middle", "high"])[Y]
    frame.to_csv(tmp_path / "data.csv", index=False)
    return tmp_path / "data.csv"


def invoke(*arguments):
    return CliRunner().invoke(app, ["compare", *map(str, arguments)], env={"COLUMNS": "120"})


def test_the_command_writes_a_table_and_a_plot(table):
    output = table.parent / "out"
    options = ("--target", "class", "--methods", "uniform,joint", "--widths", "1,4", "--cv", 3, "--output", output)
    result = invoke(table, *options)
    assert result.exit_code == 0, result.output
    assert "uniform" in result.output and "of 2" in result.output and str(output) in result.output.replace("\n", "")
    names = ["comparison.png", "fits.csv", "results.jsonl", "table.csv"]
    assert sorted(path.name for path in output.iterdir()) == names
    before = (output / "results.jsonl").read_text()
    assert invoke(table, *options).exit_code == 0 and (output / "results.jsonl").read_text() == before
    changed = invoke(table, *options, "--seed", 1)
    assert changed.exit_code == 2 and "belong to another comparison: the splits of cv" in changed.output
    more = ("--seed", 1, "--no-resume", "--C", "0.1,1", "--normalize", "center,cosine")
    assert invoke(table, *options, *more).exit_code == 0


def test_the_command_lists_the_methods():
    result = invoke("--methods", "list")
    assert result.exit_code == 0 and all(name in result.output for name in METHODS)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--target", "clas"], "The column 'clas' is not in"),
        (["--target", "class", "--methods", "unform"], "Did you mean 'uniform'?"),
        (["--target", "class", "--kernels", "gauss"], "The kernels must be among rbf, linear"),
        (["--target", "class", "--widths", "1,x"], "The option --widths must be positive numbers"),
        (["--target", "class", "--C", "-1"], "The option --C must be positive numbers"),
        (["--target", "class", "--scoring", "accurcy"], "Got 'accurcy' instead. Did you mean 'accuracy'?"),
    ],
)
def test_the_command_says_what_is_wrong(table, options, sentence):
    result = invoke(table, *options)
    assert sentence in result.output.replace("\n", " ") and result.exit_code == 2


def test_the_command_needs_data(tmp_path):
    assert "The data are missing" in invoke().output
    assert "does not exist" in invoke(tmp_path / "no.csv").output.replace("\n", " ")


def test_tables_with_gaps_are_refused(table):
    text = table.read_text().splitlines()
    table.write_text("\n".join([text[0], "," + text[1].split(",", 1)[1], *text[2:]]))
    with pytest.raises(ValueError, match=r"must not have gaps. Got some in 'a'"):
        load_table(table, "class")
    table.write_text("\n".join([text[0], text[1].rsplit(",", 1)[0] + ",", *text[2:]]))
    with pytest.raises(ValueError, match=r"The column 'class' .* must not have gaps. Got 1 of them"):
        load_table(table, "class")


BROKEN = {
    "ragged": ("a,class\n1,x\n1,2,3,y\n", "must be a table with a line of names. Got: .* line 3, saw 4"),
    "empty": ("", "must be a table with a line of names"),
    "header": ("a,class\n", "must hold samples and columns beside 'class'. Got 0 rows and 1 columns"),
    "target alone": ("class\nx\ny\n", "must hold samples and columns beside 'class'. Got 2 rows and 0 columns"),
    "infinite": ("a,class\ninf,x\n1,y\n", "must hold finite numbers or words. Got infinity"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_table_is_one_sentence(name, tmp_path):
    path, (text, sentence) = tmp_path / "broken.csv", BROKEN[name]
    path.write_text(text)
    with pytest.raises(ValueError, match=sentence):
        load_table(path, "class")


def test_files_of_another_kind_are_one_sentence(tmp_path, table):
    for name in ("other.csv", "other.npz"):
        (tmp_path / name).write_bytes(bytes(range(256)))
        with pytest.raises(ValueError, match=f"{name}' must be a"):
            load_table(tmp_path / name, "class")
    np.savez(tmp_path / "objects.npz", X=np.array([object()]), y=[0])
    with pytest.raises(ValueError, match="must be an npz archive of numbers and words"):
        load_table(tmp_path / "objects.npz", "y")
    result = invoke(table, "--target", "class", "--output", table)
    assert result.exit_code == 2 and "The option --output must be a folder" in result.output


@pytest.mark.parametrize("separator", [";", "\t", "|", " "])
def test_columns_may_be_separated_otherwise(separator, tmp_path):
    path = tmp_path / "table.txt"
    path.write_text("\n".join(separator.join(row) for row in (("a", "b", "class"), ("1", "2", "x"), ("3", "5", "y"))))
    data, y = load_table(path, "class", standardize=False)
    assert data.tolist() == [[1.0, 2.0], [3.0, 5.0]] and y.tolist() == ["x", "y"]


def test_a_comparison_in_which_all_fails_is_a_failed_command(table):
    result = invoke(table, "--target", "class", "--methods", "mkl", "--normalize", "foo", "--cv", 2)
    assert result.exit_code == 1 and "must be None, 'variance'" in " ".join(result.output.split())


def test_words_become_columns_and_columns_are_standardised(table):
    data, y = load_table(table, "class")
    assert data.shape == (66, 6) and set(y) == {"low", "middle", "high"}
    np.testing.assert_allclose(data.mean(axis=0), 0, atol=1e-12)
    raw, _ = load_table(table, "class", standardize=False)
    np.testing.assert_allclose(raw[:, :4], X, atol=1e-9)


def test_archives_hold_samples_or_kernels(tmp_path):
    np.savez(tmp_path / "x.npz", X=X, y=Y)
    np.savez(tmp_path / "k.npz", K=np.array([kernel.fit(X)(X) for kernel in WIDTHS]), y=Y)
    np.savez(tmp_path / "none.npz", Z=X, y=Y)
    np.savez(tmp_path / "text.npz", X=np.array(["a", "b"]), y=[0, 1])
    for name in ("x.npz", "k.npz"):
        result = invoke(tmp_path / name, "--methods", "joint", "--cv", 2, "--sample", 50)
        assert result.exit_code == 0 and "joint" in result.output
    for name, sentence in (("none.npz", "must hold the samples X"), ("text.npz", "must be a table of numbers")):
        with pytest.raises(ValueError, match=sentence):
            load_table(tmp_path / name, "y")
    with pytest.raises(ValueError, match="The array 'label' is not in"):
        load_table(tmp_path / "x.npz", "label")


def test_all_kernels_of_the_command_exist():
    chosen = make_kernels(KERNELS, [], [0.5, 1.0])
    assert len(chosen) == 6 and [kernel.factor for kernel in chosen[:2]] == [0.5, 1.0]


# ---- the paper

SCRIPT = Path(__file__).parents[1] / "papers" / "2013-cortes" / "run.py"


@pytest.mark.skipif("MULTIKERNEL_DATA" not in os.environ, reason="MULTIKERNEL_DATA names no folder with the data")
def test_the_table_of_the_paper_is_one_command(tmp_path):
    run = subprocess.run(
        [sys.executable, SCRIPT, "--small", "--output", tmp_path], env=dict(os.environ), capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    for name in ("spambase", "splice"):
        lines = (tmp_path / name / "table.csv").read_text().splitlines()
        assert [line.split(",")[0] for line in lines[1:]] == ["uniform", "alignf", "joint", "m3k"]
        assert (tmp_path / name / "comparison.png").stat().st_size > 5000
