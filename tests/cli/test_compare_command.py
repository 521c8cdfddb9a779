"""The command that compares: its options, the tables and archives that it reads, and the table of a paper."""

import numpy as np
import pytest
from problems_compare import WIDTHS, X, Y
from typer.testing import CliRunner

from multikernel.cli.app import app
from multikernel.cli.compare_command import KERNELS, load_table, make_kernels, run_compare
from multikernel.inspection.methods import METHODS

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


def test_a_full_disk_is_one_sentence(table, tmp_path, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("multikernel.inspection.records.Records.add", full)
    result = invoke(table, "--target", "class", "--methods", "uniform", "--cv", 2, "--output", tmp_path / "out")
    assert result.exit_code == 2 and "Error: [Errno 28] No space left on device" in result.output


def test_names_with_line_breaks_are_shown_in_one_line(tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text('a,"y\x0b1\n2"\n1,2\n')
    with pytest.raises(ValueError, match="which holds a, y 1 2"):
        load_table(path, "class")


# ---- what it takes for columns and targets


@pytest.fixture
def noise(tmp_path):
    """Noise with labels sorted by row, as a data frame writes it with its index, beside ids and a constant."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.normal(size=(120, 3)), columns=["a", "b", "c"])
    frame["sample_id"] = 1000 + 7 * np.arange(120)
    frame["number"] = rng.permutation(120)
    frame["tube"] = [f"T{i:04d}" for i in range(120)]
    frame["batch"] = "one"
    frame["class"] = np.repeat(["healthy", "ill"], 60)
    frame.to_csv(tmp_path / "noise.csv")
    return tmp_path / "noise.csv"


def test_indices_and_ids_are_dropped_and_told(noise):
    result = invoke(noise, "--target", "class", "--methods", "uniform", "--cv", 3)
    told = " ".join(result.output.split())
    assert "Columns used (3): a, b, c." in told
    for part in (
        "Columns dropped (5): 'Unnamed: 0' (index-like: it counts the rows)",
        "'sample_id' (index-like: it counts the rows)",
        "'number' (index-like: consecutive whole numbers)",
        "'tube' (id-like: every row has its own word)",
        "'batch' (constant). --keep NAME uses one nevertheless.",
        "Task: classification, since 'class' holds 2 different labels in 120 rows.",
    ):
        assert part in told, part
    data, _ = load_table(noise, "class")
    assert data.shape == (120, 3)
    # the order of the rows tells the class
    assert load_table(noise, "class", keep=["number", "sample_id"])[0].shape == (120, 5)
    assert run_compare(noise, "class", "uniform", cv=3, verbose=0).table[0]["accuracy"] < 0.7


def test_columns_to_keep_must_be_there_and_some_must_be_left(noise, tmp_path):
    result = invoke(noise, "--target", "class", "--keep", "sample")
    assert result.exit_code == 2 and "--keep: The column 'sample' is not in" in result.output.replace("\n", " ")
    (tmp_path / "ids.csv").write_text("id,class\n3,x\n5,y\n")
    with pytest.raises(ValueError, match=r"columns to learn from. Got only 'id' \(id-like: its name\): --keep"):
        load_table(tmp_path / "ids.csv", "class")


def test_whole_numbers_are_told_as_the_task_they_are_taken_for(tmp_path):
    pandas = pytest.importorskip("pandas")
    from sklearn.datasets import load_diabetes

    frame = load_diabetes(as_frame=True).frame.iloc[:120]
    frame.astype({"target": int}).to_csv(tmp_path / "diabetes.csv")
    options = (tmp_path / "diabetes.csv", "--target", "target", "--methods", "uniform", "--cv", 2)
    count = frame["target"].nunique()
    told = " ".join(invoke(*options).output.split())
    line = f"Task: regression, since 'target' holds {count} different whole numbers in 120 rows; --task classification"
    assert line in told and "r2" in told and "accuracy" not in told
    told = " ".join(invoke(*options, "--task", "classification").output.split())
    assert "Task: classification, as --task says." in told and "accuracy" in told
    frame.assign(target=frame["target"] // 100).to_csv(tmp_path / "diabetes.csv")
    told = " ".join(invoke(*options).output.split())
    assert "Task: classification, since 'target' holds 4 different whole numbers in 120 rows; --task regression" in told
    wrong = invoke(*options, "--task", "ranking")
    assert wrong.exit_code == 2 and "The option --task must be auto, classification or regression" in wrong.output
    assert pandas.__version__


def test_compare_takes_the_task_of_the_estimators(tmp_path):
    from sklearn.svm import SVC, SVR

    from multikernel.inspection import compare

    y = np.arange(60) % 20
    Z = np.random.default_rng(0).normal(size=(60, 3))
    options = {"cv": 2, "verbose": 0}
    assert compare(Z, y, ["uniform"], **options).scoring == "r2"
    assert compare(Z, y, ["uniform"], task="classification", **options).scoring == "accuracy"
    assert compare(Z, y, {"own": SVC()}, **options).scoring == "accuracy"
    assert compare(Z, y % 2, {"own": SVR()}, **options).scoring == "r2"
    with pytest.raises(ValueError, match="The 'task' parameter of compare must be one of 'auto'"):
        compare(Z, y, ["uniform"], task="classes", **options)
