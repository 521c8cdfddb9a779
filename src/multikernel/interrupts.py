"""Ctrl-C that compiled code has turned into another error, as what it was."""

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
def interruptible(*disguises: type[Exception]) -> Iterator[None]:
    """Raise KeyboardInterrupt for errors that Ctrl-C is behind, and for any of ``disguises``."""
    try:
        yield
    except Exception as error:
        if isinstance(error, disguises) or is_interrupt(error):
            raise KeyboardInterrupt from error
        raise


@contextmanager
def heard_interrupts() -> Iterator[list[int]]:
    """Give a list that is empty until Ctrl-C has come, which is passed on to the handler of before."""
    heard: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        # other threads never get Ctrl-C; and some programs ignore it
        yield heard
        return

    def hear(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        before(number, frame)

    try:
        signal.signal(signal.SIGINT, hear)
        yield heard
    finally:
        signal.signal(signal.SIGINT, before)
