"""Ctrl-C that compiled code turns into another error."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
import typer
from interrupted import interrupted

from multikernel import MKLClassifier, UFOMKLClassifier
from multikernel.cli.app import refusals
from multikernel.interrupts import heard_interrupts, interruptible


@pytest.fixture
def heard():
    """Ctrl-C as in a terminal: a shell leaves it ignored in what it starts in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


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
    ],
)
def test_compiled_loops_before_and_beside_the_solver_are_interrupted_too(place, estimator, monkeypatch):
    X = np.random.default_rng(0).normal(size=(30, 2))
    monkeypatch.setattr(place, dispatcher)
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(X, X[:, 0] > 0)


def test_commands_tell_ctrl_c_from_errors_of_libraries(capsys, heard):
    with pytest.raises(typer.Exit) as ended, refusals():
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            raise ValueError("incompatible function arguments") from None
    assert ended.value.exit_code == 130 and capsys.readouterr().err == "Interrupted.\n"
    with pytest.raises(SystemError), refusals():
        raise SystemError


def test_commands_say_what_could_not_be_written_after_ctrl_c(capsys, heard):
    with pytest.raises(typer.Exit) as ended, refusals():
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            raise OSError("No space left") from None
    assert ended.value.exit_code == 130 and capsys.readouterr().err == "Error: No space left\nInterrupted.\n"


def test_handlers_of_ctrl_c_come_back(heard):
    before = signal.getsignal(signal.SIGINT)
    with heard_interrupts() as numbers:
        assert not numbers and signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
