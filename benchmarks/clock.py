"""Processor time of short and long calls; standard library only, so that any environment can use it.

Other programs disturb processor time less than wall-clock time, but its clock is coarse: a short call is repeated until
all repetitions together take long enough.
"""

from __future__ import annotations

import time
from collections.abc import Callable

# processor seconds that the clock measures to about ten per cent
FINE = 0.05
# seconds from which on one call is enough: loading compiled code in the first call no longer matters
LONG = 5.0


def processor_seconds(call: Callable[[], object], warm: bool = False) -> float:
    """Return the processor seconds of one call, after a first one that loads what it needs unless it is ``warm``."""
    if not warm:
        began = time.process_time()
        call()
        if (first := time.process_time() - began) > LONG:
            return first
    repeats = 1
    while True:
        began = time.process_time()
        for _ in range(repeats):
            call()
        seconds = time.process_time() - began
        if seconds >= FINE:
            return seconds / repeats
        repeats *= 2 if seconds > FINE / 4 else 4
