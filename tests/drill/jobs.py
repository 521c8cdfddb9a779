"""Jobs that are worth disturbing: fits of all estimators, searches, a path, comparisons and commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.exceptions import NotFittedError
from typer.testing import CliRunner

import multikernel
from drill.fits import ESTIMATORS, draw_samples, fit, make, unsound
from multikernel import MKLClassifier, Views
from multikernel.cli.app import app
from multikernel.inspection import compare, view_importance
from multikernel.model_selection import mkl_path

# settings in which a fit crosses other code
VARIANTS = (
    {}, {"norm": 2.0}, {"loss": "squared_hinge"}, {"loss": "logistic"}, {"gram": "lazy"}, {"gram": "memmap"},
    {"solver": "silp"},
    {"solver": "level"}, {"solver": "alternating", "tol": 1e-6}, {"multiclass": "ovo"}, {"n_jobs": 2},
    {"normalize": ["center", "cosine"]},
)  # fmt: skip
EXTRA = ("mkl_path", "compare", "multikernel compare", "multikernel fit", "view_importance")


def draw_job(rng, largest: int = 120) -> tuple[str, Callable[[Path], dict]]:
    """Return the name of a job on at most so many samples, and the job: it returns what became of it, as plain data."""
    name = str(rng.choice([*ESTIMATORS, *EXTRA]))
    variant, classes = VARIANTS[rng.integers(len(VARIANTS))], int(rng.integers(2, 4))
    seed, n = int(rng.integers(1 << 30)), int(rng.integers(30, largest))
    if name == "mkl_path":
        return name, lambda folder: _path(seed, n)
    if name == "view_importance":
        return name, lambda folder: _importance(seed, n)
    if name == "multikernel fit":
        return name, lambda folder: _commands(folder, seed, n)
    if name in EXTRA:
        return name, lambda folder: _compare(folder, seed, n, name != "compare")
    # losses are those of classifiers, and one class takes no centred kernels
    absent = {"MKLOneClass": {"loss", "normalize"}}.get(name, set() if name.startswith("MKLClassifier") else {"loss"})
    own = {key: value for key, value in variant.items() if key not in absent}

    def job(folder: Path) -> dict:
        model = make(name, **own)
        X, y = draw_samples(model, np.random.default_rng(seed), n, classes)
        return attempt(lambda: require_finished(fit(model, X, y)), lambda: usable(model, X))

    return f"{name} {own or ''}".strip(), job


def attempt(run: Callable[[], object], check: Callable[[], str | None]) -> dict:
    """Run, and return how it ended: "done" or "interrupted", with what is wrong with the result; or the error."""
    end = "done"
    try:
        try:
            run()
        except KeyboardInterrupt:
            end = "interrupted"
        return {"end": end, "wrong": check()}
    except Exception as error:
        return {"end": "error", "error": f"{type(error).__name__}: {error}"[:500]}


def require_finished(model) -> None:
    """Raise where a fit that Ctrl-C cut short returned its model as if nothing had happened."""
    if "interrupted" in np.ravel(getattr(model, "status_", "")):
        raise AssertionError("Ctrl-C was swallowed: fit returned an interrupted model.")


def usable(model, X) -> str | None:
    """Return what is wrong with a model after an end of any kind: fitted and sound, or not fitted at all."""
    try:
        wrong = unsound(model, X)
    except NotFittedError:
        return None
    return wrong


def _path(seed: int, n: int) -> dict:
    X, y = draw_samples(MKLClassifier(), np.random.default_rng(seed), n)
    found: list = []
    return attempt(
        lambda: found.extend(mkl_path(make("MKLClassifier"), X, y, Cs=[0.1, 1.0, 10.0]).models),
        lambda: next(filter(None, (usable(model, X) for model in found)), None),
    )


def _importance(seed: int, n: int) -> dict:
    """Leave out each of two views, trained again on bootstraps; the model that was given stays as it is."""
    X, y = draw_samples(MKLClassifier(), np.random.default_rng(seed), n)
    views = Views({"left": X[:, :2], "right": X[:, 2:]})
    found: list = []

    def run() -> None:
        found.append(MKLClassifier("auto", max_iter=20).fit(views, y))
        view_importance(found[0], views, y, cv=2, n_bootstraps=2)

    return attempt(run, lambda: next(filter(None, (usable(model, views) for model in found)), None))


def _commands(folder: Path, seed: int, n: int) -> dict:
    """Fit, predict and report on files; whatever the end, a file is whole or not there, and a second run finishes."""
    X, y = draw_samples(MKLClassifier(), np.random.default_rng(seed), n)
    data, model, out, page = (folder / name for name in ("data.csv", "model.mk", "out.csv", "page.html"))
    np.savetxt(data, np.column_stack([X, y]), fmt="%.6g", delimiter=",", header="a,b,c,d,y", comments="")

    def run() -> None:
        invoke("fit", data, "--target", "y", "--C", "1", "--norm", "1", "--cv", "2", "--out", model, "--quiet")
        invoke("predict", model, data, "--out", out)
        invoke("report", model, data, "--bootstraps", "0", "--out", page, "--quiet")

    def whole() -> None:
        if model.exists():
            multikernel.load(model)
        if out.exists() and len(out.read_text().splitlines()) != n + 1:
            raise AssertionError("half of the predictions were written.")
        if page.exists() and not page.read_text(encoding="utf-8").rstrip().endswith("</html>"):
            raise AssertionError("half of a page was written.")

    def check() -> str | None:
        if left := {each.name for each in folder.glob("*")} - {data.name, model.name, out.name, page.name}:
            return f"files left: {sorted(left)}"
        whole()
        run()
        whole()
        return None

    return attempt(run, check)


def invoke(*arguments) -> None:
    """Run a command; what it ends with is raised as it would be in Python."""
    result = CliRunner().invoke(app, list(map(str, arguments)))
    if result.exit_code == 130 or "Aborted" in result.output or isinstance(result.exception, KeyboardInterrupt):
        raise KeyboardInterrupt
    # the task that was taken is told before
    _, error, sentence = result.output.rpartition("Error: ")
    if result.exit_code == 2 and error:
        raise ValueError(" ".join(sentence.split()))
    if result.exit_code:
        raise RuntimeError(f"exit status {result.exit_code}: {result.output[-300:]} {result.exception!r}")


def _compare(folder: Path, seed: int, n: int, command: bool) -> dict:
    """Compare with a file of results; whatever the end, a second run must finish from that file."""
    X, y = draw_samples(MKLClassifier(), np.random.default_rng(seed), n)
    np.savez(folder / "data.npz", X=X, y=y)

    def run(resume: bool = True) -> None:
        if not command:
            compare(X, y, ["uniform", "mkl"], cv=2, results=folder / "out" / "results.jsonl", resume=resume, verbose=0)
            return
        options = ["--methods", "uniform,mkl", "--cv", "2", "--quiet", "--output", str(folder / "out")]
        invoke("compare", folder / "data.npz", *options)

    def check() -> str | None:
        expected = {"results.jsonl", "table.csv", "fits.csv", "comparison.png"}
        left = {each.name for each in (folder / "out").glob("*")} - expected
        if left:
            return f"files left: {sorted(left)}"
        run()
        return None

    return attempt(run, check)
