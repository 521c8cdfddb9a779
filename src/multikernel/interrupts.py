"""Ctrl-C that compiled code or another package has turned into another error, or lost, as what it was."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


def is_interrupt(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind an error: Numba returns a result all the same, which Python reports as a SystemError."""
    while isinstance(error, SystemError):
        error = error.__cause__
    return isinstance(error, KeyboardInterrupt)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt where Ctrl-C has come, whatever became of it inside: another error, or none at all."""
    with heard_interrupts() as heard:
        try:
            yield
        except Exception as error:
            if heard or is_interrupt(error):
                raise KeyboardInterrupt from error
            raise
    if heard:
        raise KeyboardInterrupt


@contextmanager
def heard_interrupts() -> Iterator[list[int]]:
    """Give a list that is empty until Ctrl-C has raised KeyboardInterrupt, which may be lost on its way."""
    heard: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        # other threads never get Ctrl-C; and some programs ignore it
        yield heard
        return

    def hear(number: int, frame: FrameType | None) -> None:
        # first, since Ctrl-C that arrives while the context is left ends it before its last lines
        signal.signal(signal.SIGINT, before)
        try:
            before(number, frame)
        except KeyboardInterrupt:
            heard.append(number)
            raise

    try:
        signal.signal(signal.SIGINT, hear)
        yield heard
    finally:
        # a handler that the program has set meanwhile stays
        if signal.getsignal(signal.SIGINT) is hear:
            signal.signal(signal.SIGINT, before)
