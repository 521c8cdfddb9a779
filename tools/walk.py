"""Trace which files and functions of the package a fit, a prediction and a search cross; run by `make walk`.

    python tools/walk.py [--check] [--totals]

Four calls are traced by `sys.setprofile` on 200 generated samples of 10 columns, each after the same call was made once
untraced, in a single thread: `MKLClassifier().fit`, its `predict`, a joint fit of three classes, and
`MKLClassifierCV(Cs=[.1, 1, 10], cv=3).fit`.

- A function is a name in a file: methods of one name count once a file, and so do all list comprehensions, all
  lambdas and so on (Python 3.12 and later inline most comprehensions). Compiled functions count where Python calls
  them. Beside each total stands the number of code objects, in which each of them counts by itself.
- A room is the first folder below the package; modules that lie beside `__init__.py` are the room "frame". Folders
  inside a room (machines/joint) are listed apart, and belong to the room in the bars and in the counts of entries.
- An entry into a room is a call of one of its functions while no other function of the room is on the stack. Entries
  that follow each other from one and the same calling function count as one. The call that is traced is an entry too.

Printed for each call: its rooms in the order first entered, each with its numbers of files, functions and entries, the
callers that enter it and the functions of its files (`--totals`: the numbers alone), and the totals. A line follows for
each bar that is missed; with `--check` the exit status is then 1:

    a fit (binary or joint)     at most 35 files and 180 functions; estimators, training, kernels entered once each
    a search                    at most 45 files and 260 functions
    every file of the package   at most 400 lines
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType, FrameType

FIT_BAR, SEARCH_BAR, LINES_BAR = (35, 180), (45, 260), 400
ENTERED_ONCE = ("estimators", "training", "kernels")
FRAME = "frame"


def room_of(folder: str) -> str:
    """Return the room of a folder: its first part."""
    return folder.split("/")[0]


@dataclass
class Walk:
    """What one call crossed: functions by file, in the order first entered, and who entered each room from outside."""

    package: Path
    functions: dict[str, dict[CodeType, None]] = field(default_factory=dict)
    entries: dict[str, list[CodeType]] = field(default_factory=dict)

    def file_of(self, code: CodeType) -> str | None:
        """Return the path of a function's file below the package, None for a function of others."""
        start = str(self.package) + os.sep
        return code.co_filename[len(start) :].replace(os.sep, "/") if code.co_filename.startswith(start) else None

    def trace(self, call: Callable[[], object]) -> Walk:
        """Make the call and record what it crosses; the garbage collector waits, since finalizers run anywhere."""
        file_of = cache(self.file_of)

        def room(frame: FrameType) -> str | None:
            file = file_of(frame.f_code)
            return file and room_of(folder_of(file))

        def note(frame: FrameType, event: str, _) -> None:
            own = room(frame) if event == "call" else None
            if own is None:
                return
            self.functions.setdefault(file_of(frame.f_code), {})[frame.f_code] = None
            entries = self.entries.setdefault(own, [])
            # the frame that Numba makes for a compiled function has no caller: the caller is what runs now
            caller = frame.f_back or sys._getframe(1)
            inside = any(room(outer) == own for outer in frames_from(caller))
            if not inside and (not entries or entries[-1] is not caller.f_code):
                entries.append(caller.f_code)

        gc.collect()
        gc.disable()
        before = sys.getprofile()
        sys.setprofile(note)
        try:
            call()
        finally:
            sys.setprofile(before)
            gc.enable()
        return self

    @property
    def totals(self) -> tuple[int, int]:
        """Numbers of files and of functions."""
        return len(self.functions), sum(map(names_of, self.functions.values()))

    def folders(self) -> dict[str, list[str]]:
        """Return the files by folder, rooms in the order first entered, folders inside a room after it."""
        found: dict[str, list[str]] = {}
        for file in self.functions:
            found.setdefault(folder_of(file), []).append(file)
        order = list(self.entries)
        return dict(sorted(found.items(), key=lambda item: (order.index(room_of(item[0])), item[0])))

    def show(self, title: str, numbers_only: bool = False) -> None:
        """Print rooms, callers, functions and totals."""
        print(f"== {title}")
        for folder, files in self.folders().items():
            count = sum(names_of(self.functions[file]) for file in files)
            entered = f"   entered {len(self.entries[folder])}" if folder in self.entries else ""
            print(f"{folder:<22} {len(files):3d} files {count:4d} functions{entered}")
            for caller, times in Counter(() if numbers_only else self.entries.get(folder, ())).items():
                where = self.file_of(caller) or Path(caller.co_filename).name
                print(f"    entered {times:3d} from {where}: {plain_name(caller)}")
            for file in () if numbers_only else files:
                print(f"    {file}: {', '.join(map(plain_name, self.functions[file]))}")
        objects = sum(map(len, self.functions.values()))
        print("total                  {:3d} files {:4d} functions   ({} code objects)\n".format(*self.totals, objects))


def names_of(codes: Iterable[CodeType]) -> int:
    """Return the number of names among functions of one file."""
    return len({code.co_name for code in codes})


def plain_name(code: CodeType) -> str:
    """Return a function's qualified name without the marks of local functions."""
    return code.co_qualname.replace(".<locals>", "")


def frames_from(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and its callers, innermost first."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def folder_of(file: str) -> str:
    """Return the folder of a file below the package, "frame" for a file that lies in the package itself."""
    return file.rpartition("/")[0] or FRAME


def missed(title: str, walk: Walk, bar: tuple[int, int], once: tuple[str, ...] = ()) -> list[str]:
    """Return a sentence for each bar that a walk misses."""
    sentences = [
        f"{title} crosses {count} {what}, at most {most} allowed"
        for what, count, most in zip(("files", "functions"), walk.totals, bar, strict=True)
        if count > most
    ]
    for room in once:
        if len(walk.entries.get(room, ())) != 1:
            sentences.append(f"{title} enters {room} {len(walk.entries.get(room, ()))} times, once allowed")
    return sentences


def long_files(package: Path, most: int = LINES_BAR) -> list[str]:
    """Return a sentence for each file of more than ``most`` lines."""
    counts = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in sorted(package.rglob("*.py"))}
    long = ((path.relative_to(package), count) for path, count in counts.items() if count > most)
    return [f"{file} has {count} lines, at most {most} allowed" for file, count in long]


def main(arguments: list[str] | None = None) -> int:
    """Trace the four calls, print what they cross, return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit status 1 if a bar is missed")
    parser.add_argument("--totals", action="store_true", help="print numbers alone")
    options = parser.parse_args(arguments)

    import numpy as np

    import multikernel
    from multikernel import MKLClassifier, MKLClassifierCV

    X = np.random.default_rng(0).standard_normal((200, 10))
    score = np.sin(2 * X[:, 0]) + X[:, 1]
    two, three = np.where(score > 0, 1, -1), np.digitize(score, (-0.5, 0.5))
    fitted = MKLClassifier().fit(X, two)
    calls = {
        "fit": lambda: MKLClassifier().fit(X, two),
        "predict": lambda: fitted.predict(X),
        "joint fit": lambda: MKLClassifier(multiclass="joint").fit(X, three),
        "search": lambda: MKLClassifierCV(Cs=[0.1, 1, 10], cv=3).fit(X, two),
    }
    package = Path(multikernel.__file__).parent
    faults = long_files(package)
    for title, call in calls.items():
        call()
        walk = Walk(package).trace(call)
        walk.show(title, options.totals)
        if title != "predict":
            bar, once = (SEARCH_BAR, ()) if title == "search" else (FIT_BAR, ENTERED_ONCE)
            faults += missed(title, walk, bar, once)
    for fault in faults:
        print(fault)
    return 1 if options.check and faults else 0


if __name__ == "__main__":
    # set before NumPy and Numba are imported
    for name in ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM", "NUMBA"):
        os.environ[f"{name}_NUM_THREADS".replace("MAXIMUM_NUM", "MAXIMUM")] = "1"
    sys.exit(main())
