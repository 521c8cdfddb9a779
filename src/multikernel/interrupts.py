"""Raise KeyboardInterrupt where compiled code or another package has turned Ctrl-C into another error, or lost it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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

    def hear(number: int, frame: FrameType | None) -> None:
        assert callable(before)
        try:
            before(number, frame)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                heard.append(number)
            # at once, since an error that comes while the context is left ends it before its last lines
            restore()
            raise

    def restore() -> None:
        # a handler that the program has set meanwhile stays
        if signal.getsignal(signal.SIGINT) is hear:
            signal.signal(signal.SIGINT, before)

    try:
        # some programs ignore Ctrl-C
        if callable(before):
            # a ValueError: only the main thread of the main interpreter gets Ctrl-C, and may set handlers
            with suppress(ValueError):
                signal.signal(signal.SIGINT, hear)
        yield heard
    finally:
        restore()
