"""Ctrl-C that compiled code turns into another error."""

from __future__ import annotations

import pydoc
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import typer
from interrupted import interrupted
from typer.testing import CliRunner

from multikernel import MKLClassifier, MKLClassifierCV, TwoStageClassifier, UFOMKLClassifier, threads
from multikernel.cli.app import app, refusals
from multikernel.estimators.baselines import BinaryMKLWeights
from multikernel.inspection import compare
from multikernel.kernels import RBF
from multikernel.threads import interruptible


def dispatcher(*args, **kwargs):
    """What a compiled function does that Ctrl-C meets on its way out, in one of the functions that it calls."""
    inner = SystemError("_numba_unpickle returned a result with an exception set")
    inner.__cause__ = KeyboardInterrupt()
    raise SystemError("CPUDispatcher returned a result with an exception set") from inner


def test_a_system_error_of_ctrl_c_is_ctrl_c():
    with pytest.raises(KeyboardInterrupt), interruptible():
        dispatcher()
    with pytest.raises(SystemError, match="another"), interruptible():
        raise SystemError("another")


@pytest.mark.parametrize("error", [None, TypeError("a wrong type")])
def test_ctrl_c_is_ctrl_c_whatever_becomes_of_it(error, heard):
    with pytest.raises(KeyboardInterrupt), interruptible():
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        if error is not None:
            raise error
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_programs_that_handle_ctrl_c_themselves_are_left_alone(heard):
    numbers = []
    signal.signal(signal.SIGINT, lambda number, frame: numbers.append(number))
    with interruptible():
        signal.raise_signal(signal.SIGINT)
    assert numbers == [signal.SIGINT]


def test_a_second_press_is_heard_where_the_first_one_only_asks_to_stop(heard):
    numbers = []

    def politely(number, frame):
        numbers.append(number)
        if len(numbers) > 1:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, politely)
    with pytest.raises(KeyboardInterrupt), interruptible():
        signal.raise_signal(signal.SIGINT)
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert len(numbers) == 2 and signal.getsignal(signal.SIGINT) is politely


def test_a_handler_that_calls_the_one_before_it_stays(heard):
    numbers = []
    with pytest.raises(KeyboardInterrupt), interruptible():
        inner = signal.getsignal(signal.SIGINT)

        def count(number, frame):
            numbers.append(number)
            inner(number, frame)

        signal.signal(signal.SIGINT, count)
        for _ in range(2):
            with suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
    assert len(numbers) == 2 and signal.getsignal(signal.SIGINT) is count


_EMBEDDED = """
import _thread, sys

sys.path.insert(0, sys.argv[1])
done = _thread.allocate_lock()
done.acquire()

def run():
    try:
        from multikernel.threads import interruptible
        with interruptible():
            print("inside")
    finally:
        done.release()

_thread.start_new_thread(run, ())
done.acquire()
"""


def test_threads_that_python_takes_for_the_main_one_never_get_ctrl_c():
    """As in a program around Python whose first import of ``threading`` is in another thread."""
    folder = Path(threads.__file__).parents[1]
    command = [sys.executable, "-I", "-c", _EMBEDDED, str(folder)]
    assert subprocess.run(command, capture_output=True, text=True, timeout=60).stdout == "inside\n"


def test_a_fit_that_compiled_code_interrupts_leaves_a_model():
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = MKLClassifier(callback=dispatcher)
    with interrupted("MKLClassifier was interrupted after"):
        model.fit(X, X[:, 0] > 0)
    assert model.status_ == "interrupted" and model.predict(X).shape == (30,)


@pytest.mark.parametrize(
    ("place", "estimator"),
    [
        ("multikernel.gram.dense_loops.complete", MKLClassifier()),
        ("multikernel.estimators.baselines.online_blocks.visit_features", UFOMKLClassifier(["linear"])),
        ("multikernel.estimators.baselines.kernel_products.centre_tile", TwoStageClassifier()),
        ("multikernel.estimators.baselines.pair_weights.ascend_pairs", TwoStageClassifier(weights=BinaryMKLWeights())),
        ("multikernel.model_selection.folds.compute_tiles", MKLClassifierCV(RBF(gamma=1.0), cv=2)),
    ],
)
def test_compiled_loops_before_and_beside_the_solver_are_interrupted_too(place, estimator, monkeypatch):
    X = np.random.default_rng(0).normal(size=(30, 2))
    monkeypatch.setattr(place, dispatcher)
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(X, X[:, 0] > 0)


@pytest.mark.parametrize("place", ["score", "fit"])
def test_searches_and_comparisons_take_it_for_no_error_of_the_method(place, monkeypatch):
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = X[:, 0] > 0
    with pytest.raises(KeyboardInterrupt):
        if place == "score":
            MKLClassifierCV(scoring=dispatcher, cv=2).fit(X, y)
        else:
            monkeypatch.setattr("multikernel.estimators.baselines.kernel_products.centre_tile", dispatcher)
            compare(X, y, methods=["alignf"], cv=2)


@pytest.mark.parametrize(
    "place",
    [
        "multikernel.kernels.bank.KernelBank.raw_diags",
        "multikernel.model_selection.folds.from_fit",
        "multikernel.model_selection.folds.evaluate_together",
        "multikernel.training.train.repaired_if_met",
    ],
)
def test_searches_hear_it_once_wherever_it_comes(place, monkeypatch):
    X = np.random.default_rng(0).normal(size=(30, 2))
    folder, _, name = place.rpartition(".")
    owner = pydoc.locate(folder)
    whole, calls = getattr(owner, name), []

    def once(*args, **kwargs):
        calls.append(place)
        return dispatcher() if len(calls) == 1 else whole(*args, **kwargs)

    monkeypatch.setattr(owner, name, once)
    with pytest.raises(KeyboardInterrupt):
        MKLClassifierCV(RBF(gamma=1.0), Cs=[0.1, 1.0], cv=2).fit(X, X[:, 0] > 0)
    assert len(calls) == 1


def test_commands_tell_ctrl_c_from_errors_of_libraries(capsys, heard):
    with pytest.raises(typer.Exit) as ended, refusals():
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ValueError("incompatible function arguments") from None
    assert ended.value.exit_code == 130 and capsys.readouterr().err == "Interrupted.\n"
    with pytest.raises(SystemError), refusals():
        raise SystemError


def test_commands_say_what_could_not_be_written_after_ctrl_c(capsys, heard):
    with pytest.raises(typer.Exit) as ended, refusals():
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise OSError("No space left") from None
    assert ended.value.exit_code == 130 and capsys.readouterr().err == "Error: No space left\nInterrupted.\n"


def test_commands_that_lose_ctrl_c_end_as_interrupted(capsys, heard):
    with pytest.raises(typer.Exit) as ended, refusals(), suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert ended.value.exit_code == 130 and capsys.readouterr().err == "Interrupted.\n"


@pytest.mark.parametrize(
    ("command", "place"),
    [
        (["warm-up"], "multikernel.cli.warm_up.run_warm_up"),
        (["compare", "--methods", "list"], "rich.console.Console.print"),
        (["kernels"], "multikernel.cli.output.print_kernels"),
    ],
)
def test_every_command_says_that_it_was_interrupted(command, place, monkeypatch):
    monkeypatch.setattr(place, dispatcher)
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 130 and "Interrupted." in result.output


def test_a_handler_that_is_set_inside_stays(heard):
    numbers = []

    def politely(number, frame):
        numbers.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    signal.signal(signal.SIGINT, politely)
    for _ in range(2):
        with interruptible():
            if not numbers:
                signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), interruptible():
        signal.raise_signal(signal.SIGINT)
    assert numbers == [signal.SIGINT]


def test_handlers_of_ctrl_c_come_back(heard):
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), interruptible():
        assert signal.getsignal(signal.SIGINT) is not before
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        # at once: another one may come where the context ends
        assert signal.getsignal(signal.SIGINT) is before
    assert signal.getsignal(signal.SIGINT) is before
