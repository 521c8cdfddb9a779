"""Ctrl-C that compiled code has turned into another error, as what it was."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interruptible(*disguises: type[Exception]) -> Iterator[None]:
    """Raise KeyboardInterrupt for errors that Ctrl-C has caused, and for any of ``disguises``.

    Numba returns a result although Ctrl-C has come, which Python reports as a SystemError.
    """
    try:
        yield
    except disguises as error:
        raise KeyboardInterrupt from error
    except SystemError as error:
        cause: BaseException | None = error
        while isinstance(cause, SystemError):
            cause = cause.__cause__
        if isinstance(cause, KeyboardInterrupt):
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
