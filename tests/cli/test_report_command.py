"""The command report, and fit --hold-out: from files to a page in two commands."""

import json
import shlex

import numpy as np
import pytest
from typer.testing import CliRunner

import multikernel
from multikernel.cli.app import app

pd = pytest.importorskip("pandas")
RNG = np.random.default_rng(0)
N = 90


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(each) for each in arguments], env={"COLUMNS": "140"})
    assert result.exit_code == code, result.output + repr(result.exception)
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three tables of the same patients in different orders, and a model of them with a third kept aside."""
    folder = tmp_path_factory.mktemp("omics")
    names = [f"P{i:03d}" for i in range(N)]
    rna = pd.DataFrame(RNG.normal(size=(N, 4)), columns=[f"gene_{j}" for j in range(4)]).assign(patient=names)
    clinical = pd.DataFrame({"patient": names, "age": RNG.integers(20, 90, N), "stage": RNG.choice(["I", "II"], N)})
    clinical["subtype"] = np.where(rna["gene_0"] + 0.3 * RNG.normal(size=N) > 0, "basal", "luminal")
    rna.to_csv(folder / "rna.csv", index=False)
    clinical.sample(frac=1, random_state=0).to_csv(folder / "clinical.csv", index=False)
    fitted = run("fit", folder / "rna.csv", folder / "clinical.csv", "--index", "patient", "--target", "subtype",
                 "--C", "1,10", "--norm", "1", "--cv", 3, "--hold-out", 0.3, "--out", folder / "model.mk",
                 "--quiet")  # fmt: skip
    (folder / "fit.txt").write_text(fitted.stdout)
    return folder


def test_two_commands_lead_from_files_to_the_page(folder, tmp_path):
    text = (folder / "fit.txt").read_text()
    following = (
        f"multikernel report {folder / 'model.mk'} {folder / 'model.test.csv'} --train {folder / 'model.train.csv'}"
    )
    assert f"Next: {following}" in text and "Learning the mix bought" in text
    train, test = pd.read_csv(folder / "model.train.csv"), pd.read_csv(folder / "model.test.csv")
    assert (len(train), len(test)) == (63, 27) and not set(train["patient"]) & set(test["patient"])
    out = tmp_path / "page.html"
    result = run(*shlex.split(following)[1:], "--out", out, "--bootstraps", 4)
    assert f"The page is {out}." in result.stdout and "27 new samples" in result.stdout
    page, model = out.read_text(encoding="utf-8"), multikernel.load(folder / "model.mk")
    score = model.score(test, test["subtype"])
    assert f'value="{score!r}" data-key="test.accuracy"' in page
    assert f'value="{model[-1].duality_gap_!r}" data-key="certificate.0.gap"' in page
    for part in ("multikernel fit rna.csv clinical.csv --target subtype", "--hold-out 0.3", "--train model.train.csv"):
        assert part in page, part
    assert str(folder) not in page and "drop in accuracy without the view" in page.replace("\n", " ").lower()


def test_the_report_as_json_and_without_training_samples(folder, tmp_path):
    arguments = ["report", folder / "model.mk", folder / "model.test.csv", "--out", tmp_path / "r.html", "--quiet"]
    found = json.loads(run(*arguments, "--json", "--title", "A <title>").stdout)
    assert found["importance"] is None and 0 < found["scores"]["accuracy"] <= 1 and found["summary"]
    assert "A &lt;title&gt;" in (tmp_path / "r.html").read_text(encoding="utf-8")
    train = ["--train", folder / "rna.csv", "--train", folder / "clinical.csv", "--bootstraps", 0]
    found = json.loads(run(*arguments, "--json", *train).stdout)
    assert {row["view"] for row in found["importance"]} == {"rna", "clinical"}
    assert any(each["kind"] == "leakage" for each in found["cautions"])


def test_models_saved_from_python(tmp_path):
    X = pd.DataFrame(RNG.normal(size=(80, 3)), columns=list("abc"))
    y = X["a"] + 0.1 * RNG.normal(size=80)
    multikernel.MKLRegressor().fit(X[:50], y[:50]).save(tmp_path / "model.mk")
    X.assign(y=y)[50:].to_csv(tmp_path / "test.csv", index=False)
    result = run(
        "report", tmp_path / "model.mk", tmp_path / "test.csv", "--out", tmp_path / "page.html", "--target", "y"
    )
    assert "of the variance of the target" in result.stdout


@pytest.mark.parametrize(("arguments", "match"), [
    (["--target", "outcome"], "The column 'outcome' is not in"),
    (["--out", "no/such/folder/page.html"], "The option --out must be a file in an existing folder"),
    (["--confidence", "1.5"], "The 'confidence' parameter of report must be a number between 0 and 1"),
    (["--train", "missing.csv"], "The file 'missing.csv' does not exist"),
])  # fmt: skip
def test_bad_options_end_in_one_sentence(arguments, match, folder):
    result = run("report", folder / "model.mk", folder / "model.test.csv", "--quiet", *arguments, code=2)
    assert match in result.output and "Traceback" not in result.output and result.stdout == ""


def test_gaps_in_the_targets_are_refused(folder, tmp_path):
    frame = pd.read_csv(folder / "model.test.csv")
    frame.loc[2, "subtype"] = None
    frame.to_csv(tmp_path / "gaps.csv", index=False)
    result = run("report", folder / "model.mk", tmp_path / "gaps.csv", "--quiet", code=2)
    assert "The column 'subtype' of" in result.output and "Got 1 of them" in result.output


@pytest.mark.parametrize(("arguments", "match"), [
    (["--hold-out", "1.5", "--out", "model.mk"], "--hold-out must be a share between 0 and 1. Got 1.5"),
    (["--hold-out", "0.3"], "The option --hold-out needs --out"),
    (["--hold-out", "0.001", "--out", "model.mk"], "The option --hold-out cannot keep 0.001 of the samples aside"),
])  # fmt: skip
def test_bad_shares_to_hold_out(arguments, match, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("fit", folder / "clinical.csv", "--target", "subtype", "--quiet", *arguments, code=2)
    assert match in result.output
