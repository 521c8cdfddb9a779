"""The commands fit, predict, inspect, kernels and datasets: from files to a saved model, as a new user would."""

import gzip
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import typer
from scipy import sparse
from typer.testing import CliRunner

import multikernel
from multikernel.cli.app import app, refusals
from multikernel.cli.fit_command import parse_views
from multikernel.cli.table_encoder import TableEncoder
from multikernel.cli.tables import choose_columns, read_tables, take_task
from multikernel.inspection.columns import why_not

pd = pytest.importorskip("pandas")
RNG = np.random.default_rng(0)
N = 60


def patients():
    genes = RNG.normal(size=(N, 4)).round(3)
    frame = pd.DataFrame(genes, columns=[f"gene_{j}" for j in range(4)])
    frame["age"] = RNG.integers(20, 80, N).astype(float)
    frame.loc[3, "age"] = np.nan
    frame["stage"] = RNG.choice(["I", "II", "III"], N)
    frame["patient_id"] = RNG.permutation(1000)[:N]
    frame["name"] = [f"P{i}" for i in range(N)]
    frame["batch"] = 1
    frame["y"] = np.where(genes[:, 0] > 0, "case", "control")
    return frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    frame = patients()
    frame.to_csv(folder / "data.csv")
    frame[["patient_id", "gene_0", "gene_1"]].to_csv(folder / "rna.csv", index=False)
    frame[["patient_id", "age", "stage", "y"]].sample(frac=1, random_state=0).to_csv(
        folder / "clinical.csv", index=False
    )
    run("fit", folder / "data.csv", "--C", "1", "--norm", "1", "--cv", 3, "--out", folder / "model.mk", "--quiet")
    return folder


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(each) for each in arguments], env={"COLUMNS": "140"})
    assert result.exit_code == code, result.output + repr(result.exception)
    return result


def test_fit_says_what_it_used_and_saves_a_model(folder, tmp_path):
    path = tmp_path / "model.mk"
    result = run("fit", folder / "data.csv", "--target", "y", "--view", "rna=gene_*", "--view", "clinical=age,stage",
                 "--task", "auto", "--cv", 3, "--C", "1,10", "--norm", "1", "--out", path)  # fmt: skip
    for text in (
        "Task: classification, the targets are words", "View rna: 4 columns (gene_0, gene_1, ..., gene_3)",
        "View clinical: 2 columns (age, stage)", "Not used, index-like: it counts the rows: 1 column (Unnamed: 0)",
        "Not used, id-like: its name: 1 column (patient_id)",
        "Not used, id-like: every row has its own word: 1 column (name)", "Not used, constant: 1 column (batch)",
        "--keep", "Gaps filled with the mean, or with no word: 1 column (age (1))", "Cross-validated accuracy",
        "relative duality gap", "Learning the mix bought", f"Saved to {path}",
    ):  # fmt: skip
        assert text in result.stdout, text
    assert "Reading" in result.stderr and "72 of 72 fits" in result.stderr and "Reading" not in result.stdout
    frame = pd.read_csv(folder / "data.csv")
    assert multikernel.load(path).score(frame, frame["y"]) > 0.8


def test_predict_and_inspect_a_saved_model(folder, tmp_path):
    model, data = folder / "model.mk", folder / "data.csv"
    loaded = multikernel.load(model)
    frame = pd.read_csv(data)
    result = run("predict", model, data, "--target", "y")
    lines = result.stdout.splitlines()
    assert lines[0] == "prediction,score" and len(lines) == N + 1 and "Score on these data" in result.stderr
    assert [line.split(",")[0] for line in lines[1:]] == loaded.predict(frame).tolist()
    result = run("predict", model, data, "--out", tmp_path / "out.csv", "--target", "y")
    assert f"{N} predictions are in" in result.stdout and (tmp_path / "out.csv").read_text().splitlines() == lines
    found = json.loads(run("predict", model, data, "--json").stdout)
    assert found["prediction"] == loaded.predict(frame).tolist()
    text = run("inspect", model).stdout
    assert "MKLClassifierCV, classes case, control" in text and "number: 5 columns" in text and "all: rbf(" in text
    report = json.loads(run("inspect", model, "--json").stdout)
    assert report["duality_gap"] == loaded[-1].duality_gap_ and report["columns"]["stage"] == "words"
    # a word that training did not have is no word of it
    frame.loc[0, "stage"] = "IV"
    assert len(loaded.predict(frame)) == N


def test_models_saved_from_python(tmp_path):
    X = pd.DataFrame(RNG.normal(size=(40, 3)), columns=list("abc"))
    y = np.repeat(["u", "v"], 20)
    multikernel.MKLClassifier(loss="logistic").fit(X, y).save(tmp_path / "named.mk")
    multikernel.MKLRegressor().fit(X.to_numpy(), X["a"]).save(tmp_path / "plain.mk")
    X.assign(y=y).to_csv(tmp_path / "data.csv", index=False)
    X.to_csv(tmp_path / "plain.csv", index=False)
    lines = run("predict", tmp_path / "named.mk", tmp_path / "data.csv", "--target", "y").stdout.splitlines()
    assert lines[0] == "prediction,probability u,probability v"
    assert run("predict", tmp_path / "plain.mk", tmp_path / "plain.csv").stdout.splitlines()[0] == "prediction"
    assert json.loads(run("inspect", tmp_path / "plain.mk", "--json").stdout)["columns"] == 3
    assert "MKLRegressor" in run("inspect", tmp_path / "plain.mk").stdout
    X[["a", "b"]].to_csv(tmp_path / "less.csv", index=False)
    assert "The column 'c' is not in" in run("predict", tmp_path / "named.mk", tmp_path / "less.csv", code=2).output


def test_several_files_are_matched_by_the_index(folder, tmp_path):
    path = tmp_path / "model.mk"
    result = run("fit", folder / "rna.csv", folder / "clinical.csv", "--index", "patient_id", "--cv", 3, "--C", "1",
                 "--norm", "1", "--out", path, "--json", "--float32")  # fmt: skip
    report = json.loads(result.stdout)
    assert report["columns"] == {"rna": ["gene_0", "gene_1"], "clinical": ["age", "stage"]} and report["score"] > 0.6
    # the model remembers by which column the rows of several files are matched
    lines = run("predict", path, folder / "clinical.csv", folder / "rna.csv").stdout.splitlines()
    other = run(
        "predict", path, folder / "rna.csv", folder / "clinical.csv", "--index", "patient_id"
    ).stdout.splitlines()
    assert lines[0] == "sample,prediction,score" and sorted(lines) == sorted(other) and lines != other


def test_the_config_file_and_checkpoints(folder, tmp_path):
    options = 'target = "y"\nC = [1]\nnorm = 2\nview = ["rna=gene_*"]\ncv = 3\njson = true\nbaselines = false\n'
    (tmp_path / "fit.toml").write_text(options)
    out = tmp_path / "model.mk"
    arguments = ["fit", folder / "data.csv", "--config", tmp_path / "fit.toml", "--quiet", "--out", out, "--resume"]
    report = json.loads(run(*arguments).stdout)
    assert report["chosen"] == {"C": 1.0, "norm": 2.0} and list(report["columns"]) == ["rna"]
    assert report["mix_gain"] is None
    report = json.loads(run(*arguments, "--baselines").stdout)
    assert report["chosen"] == {"C": 1.0, "kernel": "rna: rbf(2)"}
    assert report["mix_gain"].endswith("the search chose the kernel 'rna: rbf(2)' alone.")
    assert not (tmp_path / "model.mk.state").exists()
    assert json.loads(run(*arguments, "--C", "10").stdout)["chosen"]["C"] == 10.0
    (tmp_path / "fit.json").write_text('{"targett": "y"}')
    result = run("fit", folder / "data.csv", "--config", tmp_path / "fit.json", code=2)
    assert "Got 'targett'" in result.output and "target" in result.output
    for text in ("[1, 2", "[1, 2]"):
        (tmp_path / "fit.json").write_text(text)
        assert (
            "--config must be a file of"
            in run("fit", folder / "data.csv", "--config", tmp_path / "fit.json", code=2).output
        )


@pytest.mark.filterwarnings("ignore")
def test_a_fit_that_did_not_finish_ends_with_1(folder, monkeypatch):
    monkeypatch.setattr("multikernel.estimators.reporting.FINISHED", frozenset())
    assert "Cross-validated" in run("fit", folder / "data.csv", "--C", "1", "--norm", "1", "--cv", 2, code=1).stdout


def test_interrupts_end_with_130(folder, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("multikernel.cli.fit_command.run_fit", stop)
    assert "Interrupted." in run("fit", folder / "data.csv", code=130).output


@pytest.mark.parametrize(("arguments", "match"), [
    (["--target", "outcome"], "The column 'outcome' is not in"),
    (["--view", "rna"], "The option --view must be a name and columns"),
    (["--view", "a=gene_0", "--view", "a=gene_1"], "must name every view once"),
    (["--view", "a=gen_*"], "The option --view a must name columns of the data. Got 'gen_*'"),
    (["--view", "a=batch"], "The view 'a' must have columns that a model can use. Got none:"),
    (["--task", "clustering"], "The option --task must be one of auto, classification, regression"),
    (["--task", "regression"], "must be 'classification' for targets that are words"),
    (["--task", "classification", "--target", "gene_0"], "--cv must be at most the size of the smallest class"),
    (["--target", "age"], "The column 'age' must not have gaps. Got 1 of them."),
    (["--resume"], "The option --resume needs --out or --checkpoint"),
    (["--out", "no/such/folder/model.mk"], "The option --out must be a file in an existing folder"),
    (["--kernels", "rfb"], "The kernels must be among"),
    (["--C", "-1"], "The option --C must be positive numbers"),
    (["--index", "stage"], "must name a column without repetitions"),
])  # fmt: skip
def test_bad_options_of_fit_end_in_one_sentence(arguments, match, folder):
    result = run("fit", folder / "data.csv", "--quiet", *arguments, code=2)
    assert match in result.output and "Traceback" not in result.output and result.stdout == ""


def test_files_that_do_not_fit_together(folder, tmp_path):
    pd.DataFrame({"patient_id": [1, 2], "b": [1.5, 2.5]}).to_csv(tmp_path / "short.csv", index=False)
    assert "must have as many rows as" in run("fit", folder / "rna.csv", tmp_path / "short.csv", code=2).output
    both = ["fit", folder / "rna.csv", tmp_path / "short.csv", "--index", "patient_id"]
    assert "the same values of 'patient_id' as" in run(*both, code=2).output
    assert "--index names no column" in run(*both[:3], "--index", "who", code=2).output
    (tmp_path / "broken.csv").write_bytes(b"a,b\n1,2,3\n4\n\xff\xfe")
    assert "must be a table with a line of names" in run("fit", tmp_path / "broken.csv", code=2).output
    (tmp_path / "empty.csv").write_text("a,y\n")
    assert "must hold samples" in run("fit", tmp_path / "empty.csv", code=2).output
    assert "does not exist" in run("predict", tmp_path / "no.mk", folder / "rna.csv", code=2).output
    assert "does not exist" in run("fit", tmp_path / "no.csv", code=2).output
    twice = read_tables([folder / "rna.csv", folder / "rna.csv"])
    assert twice.frame.columns.tolist() == ["patient_id", "gene_0", "gene_1"]
    # rows in another order, which nothing but a column of both files tells
    both = ["fit", folder / "rna.csv", folder / "clinical.csv"]
    assert "--index patient_id matches rows by it" in run(*both, code=2).output
    pd.DataFrame({"gene_0": np.zeros(N), "other": RNG.normal(size=N)}).to_csv(tmp_path / "more.csv", index=False)
    assert "more:gene_0" in read_tables([folder / "rna.csv", tmp_path / "more.csv"]).frame.columns


def test_kernels_and_data_sets_are_listed(tmp_path):
    assert "RBF" in run("kernels").stdout and "Gaussian" in json.loads(run("kernels", "--json").stdout)["RBF"]
    (tmp_path / "points").mkdir()
    np.savez(tmp_path / "points" / "points.npz", X=np.eye(4), y=[0, 1, 0, 1])
    np.savez(tmp_path / "points" / "views.npz", X_0=np.eye(4), X_1=np.ones((4, 2)))
    assert "points" in run("datasets", "--folder", tmp_path).stdout
    rows = json.loads(run("datasets", "--folder", tmp_path, "--json").stdout)
    assert rows[0] == {"name": "points", "samples": 4, "columns": [4], "targets": 2} and rows[1]["columns"] == [4, 2]
    assert "does not exist" in run("datasets", "--folder", tmp_path / "no", code=2).output


def test_help_has_examples_and_completion():
    text = run("fit", "--help").stdout
    assert "multikernel fit data.csv --target y" in text and "--resume" in text
    assert "--install-completion" in run("--help").stdout


# ---- tables and columns


def test_arrays_and_sequences_as_tables(tmp_path):
    texts = ["".join(RNG.choice(list("ACGT"), 9)) for _ in range(20)]
    np.savez(tmp_path / "a.npz", X=RNG.normal(size=(20, 2)), Z=RNG.normal(size=(20, 3)), y=np.arange(20) % 2,
             seq=np.array(texts, "S"), other=np.arange(3))  # fmt: skip
    tables = read_tables([tmp_path / "a.npz"])
    assert list(tables.groups) == ["X", "Z"] and "other" not in tables.frame.columns
    columns = choose_columns(tables, "y", {})
    assert columns.kinds["seq"] == "sequence" and columns.views["others"] == ["seq"]
    result = run("fit", tmp_path / "a.npz", "--cv", 2, "--C", "1", "--norm", "1", "--json", "--quiet",
                 "--out", tmp_path / "a.mk")  # fmt: skip
    assert any(row["kernel"] == "others: seq" for row in json.loads(result.stdout)["kernels"])
    assert len(run("predict", tmp_path / "a.mk", tmp_path / "a.npz").stdout.splitlines()) == 21
    (tmp_path / "s.fasta").write_text(
        "".join(f">s{i} {'ab'[i % 2]}\n{text[: 9 - i % 3]}\n" for i, text in enumerate(texts))
    )
    result = run(
        "fit", tmp_path / "s.fasta", "--target", "description", "--cv", 2, "--C", "1", "--norm", "1", "--quiet"
    )
    assert "View all: 1 column (sequence)" in result.stdout and "id-like: every row has its own word" in result.stdout
    np.savez(tmp_path / "none.npz", X=np.zeros((2, 2, 2)))
    assert "one or two dimensions" in run("fit", tmp_path / "none.npz", code=2).output


@pytest.mark.parametrize(("reader", "name"), [
    ("pyarrow", "a.parquet"), ("h5py", "a.h5"), ("anndata", "a.h5ad"), ("mudata", "a.h5mu"),
])  # fmt: skip
def test_parquet_hdf5_and_annotated_data(reader, name, tmp_path):
    frame, module = patients(), pytest.importorskip(reader)
    if reader == "pyarrow":
        frame.to_parquet(tmp_path / name)
    elif reader == "h5py":
        with module.File(tmp_path / name, "w") as file:
            file["omics/rna"] = frame[["gene_0", "gene_1"]].to_numpy()
            file["y"] = [each.encode() for each in frame["y"]]
    else:
        import anndata

        obs = frame[["y"]].set_axis([f"p{i}" for i in range(N)])
        part = anndata.AnnData(frame[["gene_0", "gene_1"]].to_numpy(), obs=obs, obsm={"pca": np.ones((N, 2))})
        whole = part if reader == "anndata" else module.MuData({"rna": part})
        (whole.write_h5ad if reader == "anndata" else whole.write)(tmp_path / name)
    tables = read_tables([tmp_path / name])
    assert len(tables.frame) == N and any("y" in column for column in tables.frame.columns)


def test_readers_of_packages_that_may_be_missing(tmp_path, monkeypatch):
    """Stand-ins with the few methods that are used, for where the packages themselves are not installed."""
    frame = patients()
    genes, y = frame[["gene_0", "gene_1"]].to_numpy(), frame[["y"]].set_axis([f"p{i}" for i in range(N)])

    class Dataset(SimpleNamespace):
        def __getitem__(self, key):
            return self.values

    class File(SimpleNamespace):
        def __init__(self, path, mode):
            assert mode == "r"

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def visititems(self, call):
            call("omics", self)
            call("omics/rna", Dataset(values=genes))
            call("y", Dataset(values=np.array([each.encode() for each in frame["y"]], object)))

    part = SimpleNamespace(X=sparse.csr_array(genes), var_names=["a", "b"], obs=y, obsm={"pca": np.ones((N, 2))})
    stand_ins = {
        "h5py": SimpleNamespace(File=File, Dataset=Dataset),
        "anndata": SimpleNamespace(read_h5ad=lambda path: part),
        "mudata": SimpleNamespace(read_h5mu=lambda path: SimpleNamespace(mod={"rna": part}, obs=y)),
    }
    for name, module in stand_ins.items():
        monkeypatch.setitem(sys.modules, name, module)
    groups = {"a.h5": ["omics/rna"], "a.h5ad": ["X", "pca"], "a.h5mu": ["rna", "pca"]}
    for name, expected in groups.items():
        (tmp_path / name).write_bytes(b"")
        tables = read_tables([tmp_path / name])
        assert list(tables.groups) == (expected if len(expected) > 1 else []), name
        assert np.array_equal(tables.frame["y"], frame["y"]) and len(tables.frame) == N


def test_odds_and_ends_of_tables(folder, tmp_path, monkeypatch):
    with gzip.open(tmp_path / "a.csv.gz", "wt") as file:
        file.write("a;y\n1;2\n3;4\n")
    assert read_tables([tmp_path / "a.csv.gz"]).frame["a"].tolist() == [1, 3]
    monkeypatch.setattr(
        "multikernel.cli.tables._READERS", {".csv": lambda path: (pd.DataFrame([[1, 2]], columns=["a", "a"]), {})}
    )
    with pytest.raises(ValueError, match="must have names of their own"):
        read_tables([folder / "data.csv"])
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ValueError, match="pip install"):
        read_tables([folder / "data.csv"])


def test_probabilities_and_a_reader_that_has_seen_enough(folder, tmp_path, monkeypatch):
    path = tmp_path / "model.mk"
    run(
        "fit", folder / "data.csv", "--loss", "logistic", "--C", "1", "--norm", "1", "--cv", 2, "--quiet", "--out", path
    )
    assert run("predict", path, folder / "data.csv").stdout.startswith(
        "prediction,probability case,probability control"
    )
    assert "'no' is not in" in run("predict", path, folder / "data.csv", "--target", "no", code=2).output

    def stop(*_):
        raise BrokenPipeError

    monkeypatch.setattr("os.dup2", lambda *_: None)
    monkeypatch.setattr("sys.stdout", SimpleNamespace(fileno=lambda: 1))
    with pytest.raises(typer.Exit), refusals():
        stop()


def test_a_package_that_is_missing_is_named(tmp_path, monkeypatch):
    (tmp_path / "a.h5").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ValueError, match="needs a package that is missing"):
        read_tables([tmp_path / "a.h5"])
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(ValueError, match=r"a\.parquet"):
        read_tables([tmp_path / "a.parquet"])


@pytest.mark.parametrize(("name", "values", "reason"), [
    ("row", np.arange(9), "index-like"), ("row", np.arange(9)[::-1] * 2.0, "index-like"),
    ("x", RNG.normal(size=9), None),
    ("patient_id", [5, 2, 9, 1], "id-like"), ("count", [5, 2, 9, 1], None), ("word", list("abcd"), "id-like"),
    ("word", list("abab"), None), ("dna", ["ACG", "CGT", "GTA"], None), ("flat", [1, 1, 1], "constant"),
    ("gone", [None, None], "empty"), ("year", [2001, 2003, 2002, 2001], None), ("year", [2003, 2001, 2002], "index"),
    ("PatientID", [4, 9, 4], "id-like: its name"), ("ID_REF", ["x", "y", "x"], "id-like: its name"),
    ("idle", [4.0, 9.0, 2.0], None), ("lipid", [4, 9, 2], None), ("humid", [4, 9, 2], None),
    ("Unnamed: 0", [4, 9, 2], "index-like: its name"), ("barcode", [4, 9, 2], "id-like: every row has its own number"),
    ("age", [0.5, 1.5, 2.5], None), ("seen", [True, False, True], None), ("colour", ["red", "blue", "red"], None),
    ("gaps", pd.array([1, None, 3, 4], "Int64"), None), ("gone", [None, None, None], "empty"),
])  # fmt: skip
def test_columns_of_no_use(name, values, reason):
    found = why_not(name, pd.Series(values))
    assert found is None if reason is None else found.startswith(reason)


def test_columns_are_kept_and_dropped_as_asked(folder):
    tables = read_tables([folder / "data.csv"])
    columns = choose_columns(tables, "y", {}, drop=["gene_*"], keep=["patient_id", "name"])
    assert columns.kinds["patient_id"] == "number" and columns.kinds["name"] == "words"
    assert columns.dropped["gene_0"] == "asked for by --drop" and columns.dropped["batch"] == "constant"
    with pytest.raises(ValueError, match="The data must have columns that a model can use"):
        choose_columns(tables, "y", {}, drop=["*"])


def test_noise_with_an_index_and_sorted_labels_scores_like_noise(tmp_path):
    frame = pd.DataFrame(RNG.normal(size=(80, 2)), columns=["a", "b"])
    frame["y"] = np.repeat(["u", "v"], 40)
    frame.to_csv(tmp_path / "noise.csv")
    report = json.loads(run("fit", tmp_path / "noise.csv", "--C", "1", "--norm", "1", "--json", "--quiet").stdout)
    assert "Unnamed: 0" in report["dropped"] and report["score"] < 0.75


def test_the_task_follows_from_the_targets():
    diabetes = pd.Series(RNG.integers(25, 346, 442))
    assert take_task(diabetes)[0] == "regression" and take_task(pd.Series([0.5, 1.5]))[0] == "regression"
    assert take_task(pd.Series([True, False]))[0] == "classification"
    assert take_task(pd.Series([1, 2, 1]))[0] == "classification"
    assert take_task(diabetes, "classification") == ("classification", "as asked for by --task")
    assert parse_views(["a=b"]) == {"a": ["b"]}


def test_the_encoder_refuses_what_it_was_not_fitted_on():
    frame = pd.DataFrame({"a": [1.0, 2.0], "w": ["x", "z"]})
    encoder = TableEncoder({"a": "number", "w": "words"}, standardize=False).fit(frame)
    assert encoder.transform(frame).columns.tolist() == ["a", "w=x", "w=z"]
    with pytest.raises(ValueError, match="The column 'a' must hold numbers"):
        encoder.transform(frame.assign(a=["p", "q"]))
    with pytest.raises(ValueError, match="must hold finite numbers"):
        encoder.transform(frame.assign(a=np.inf))
    with pytest.raises(ValueError, match="The column 'w' is not in 'the data'"):
        encoder.transform(frame[["a"]])
