"""Results of comparisons that survive a kill, are not computed again, and are refused by another protocol."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from problems_compare import X, Y, quiet

from multikernel import MKLClassifier, stack_kernels
from multikernel.inspection import compare
from multikernel.inspection.records import Records, fingerprint
from multikernel.kernels import RBF


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


def test_failures_are_tried_again(tmp_path, monkeypatch):
    path = tmp_path / "results.jsonl"

    def fail(self, *args, **kwargs):
        raise RuntimeError("no\nluck")

    with monkeypatch.context() as patch:
        patch.setattr(MKLClassifier, "fit", fail)
        assert quiet(["joint"], results=path).table[0]["error"] == "RuntimeError: no"
    assert quiet(["joint"], results=path).table[0]["splits"] == 3


def impatient(monkeypatch, number):
    """Let the fit of this number of MKLClassifier be interrupted after its first iteration; return how many began."""
    fit, count = MKLClassifier.fit, []

    def interrupted(self, *args, **kwargs):
        count.append(1)
        if len(count) == number:
            self.callback = raise_interrupt
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(MKLClassifier, "fit", interrupted)
    return count


def raise_interrupt(row):
    raise KeyboardInterrupt


@pytest.mark.parametrize("grid", [None, {"C": [0.1, 1.0]}])
def test_an_interrupted_fit_is_not_a_result(tmp_path, monkeypatch, grid):
    path = tmp_path / "results.jsonl"
    impatient(monkeypatch, 2)
    with pytest.raises(KeyboardInterrupt):
        quiet(["joint"], results=path, grid=grid)
    assert len(path.read_text().splitlines()) == 1


def test_an_interrupted_comparison_keeps_its_finished_fits(tmp_path, monkeypatch):
    # a first fit on few samples, a finished one, and the one that is interrupted
    with monkeypatch.context() as patch:
        impatient(patch, 3)
        with pytest.raises(KeyboardInterrupt) as raised, pytest.warns(UserWarning, match="after 1 of 3 fits. They are"):
            quiet(["joint"])
    (row,) = raised.value.comparison.table
    assert row["splits"] == 1 and np.isfinite(row["accuracy"])
    path = tmp_path / "results.jsonl"
    with monkeypatch.context() as patch:
        impatient(patch, 3)
        with pytest.raises(KeyboardInterrupt), pytest.warns(UserWarning, match="the same call goes on from there"):
            quiet(["joint"], results=path)
    assert len(path.read_text().splitlines()) == 2
    count = impatient(monkeypatch, 0)
    assert quiet(["joint"], results=path).table[0]["splits"] == 3 and len(count) == 3


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


def test_a_line_that_is_no_result_ends_the_file(tmp_path):
    path = tmp_path / "results.jsonl"
    quiet(["uniform"], results=path)
    lines = path.read_text().splitlines()
    for wrong in ("[1, 2]", '{"method": "uniform"}', "null", "[" * 100_000):
        path.write_text("\n".join([*lines[:2], wrong, lines[2]]) + "\n")
        assert quiet(["uniform"], results=path).table[0]["splits"] == 3
        assert path.read_text().splitlines()[:2] == lines[:2]


def test_no_second_file_is_left(tmp_path, monkeypatch):
    def stop(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("pathlib.Path.replace", stop)
        quiet(["uniform"], results=tmp_path / "results.jsonl")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "wrong",
    [{"inner_cv": 1}, {"inner_cv": 2.5}, {"results": 3}, {"resume": "yes"}, {"verbose": -1}, {"verbose": None}],
    ids=str,
)
def test_settings_of_a_comparison_are_checked(wrong):
    with pytest.raises(ValueError, match=f"The '{next(iter(wrong))}' parameter of compare must be .*. Got"):
        compare(X, Y, ["uniform"], **wrong)
