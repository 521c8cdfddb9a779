"""Out of memory and disk full: one sentence, or a sound result; never a dead process or half a file."""

from __future__ import annotations

import os
import resource
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from drill import Kind
from drill.child import in_child
from drill.fits import draw_samples, fit, make
from drill.interrupts import verdict
from drill.jobs import attempt, draw_job, usable

MEMORY = 1 << 20


def short_of_memory(job: Callable[[Path], dict], room: int) -> Callable[[Path], dict]:
    """Return a job that may take only so many bytes more than this process has."""

    def run(folder: Path) -> dict:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + room
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
        try:
            return job(folder)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (hard, hard))

    return run


@contextmanager
def small_disk(size: int) -> Iterator[Path]:
    """Mount a file system of so many bytes in memory."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "drill", folder], check=True)
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", folder], check=True)


def on_disk(job: Callable[[Path], dict], disk: Path) -> Callable[[Path], dict]:
    """Return a job whose files, temporary ones too, go to a small disk."""

    def run(folder: Path) -> dict:
        tempfile.tempdir = os.environ["TMPDIR"] = str(disk)
        return {**job(disk), "files": sorted(each.name for each in disk.iterdir())}

    return run


def memmap_fit(rng) -> tuple[str, Callable[[Path], dict]]:
    """A fit whose kernels lie on disk."""
    name, n, seed = "MKLClassifier", int(rng.integers(40, 160)), int(rng.integers(1 << 30))

    def job(folder: Path) -> dict:
        model = make(name, gram="memmap")
        X, y = draw_samples(model, np.random.default_rng(seed), n)
        return attempt(lambda: fit(model, X, y), lambda: usable(model, X))

    return f"{name} on disk", job


def cannot_mount() -> str | None:
    """Return why no small disk can be made here, or None."""
    if os.name != "posix" or not Path("/proc/self/statm").exists():
        return "memory can be limited on Linux only."
    return None


def can_mount() -> bool:
    """Whether a small disk can be made: for that one has to be root."""
    with tempfile.TemporaryDirectory() as folder:
        tried = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "drill", folder], capture_output=True)
        return tried.returncode == 0 and subprocess.run(["umount", folder]).returncode == 0


def judge(result: dict) -> str | None:
    """Return what is wrong after a shortage: an error must be about it."""
    error = result.get("error", "")
    told = any(word in error for word in ("MemoryError", "memory", "No space left"))
    if told and len(error.splitlines()) == 1 and not error.startswith("RuntimeError"):
        result = {**result, "end": "refused"}
    return verdict(result)


def case(rng):
    """Starve one job of memory or of disk."""
    if rng.random() < 0.6 or not can_mount():
        name, job = draw_job(rng, 500)
        # loads what is compiled, so that the limit meets the fit
        with tempfile.TemporaryDirectory() as folder:
            job(Path(folder))
        room = int(rng.integers(0, 24)) * MEMORY
        wrong = judge(in_child(short_of_memory(job, room)))
        return f"memory, {name.split()[0]}", wrong and f"{name} with {room >> 20} MB: {wrong}"
    name, job = memmap_fit(rng) if rng.random() < 0.5 else next(iter(disk_jobs(rng)))
    # room for the data of the job, and for less or more of its files
    size = int(rng.integers(4, 64)) * 4096
    with small_disk(size) as disk:
        result = in_child(on_disk(job, disk))
    wrong = judge(result)
    return f"disk, {name.split()[0]}", wrong and f"{name} on {size} bytes: {wrong}"


def disk_jobs(rng) -> Iterator[tuple[str, Callable[[Path], dict]]]:
    """Draw jobs until one writes files."""
    while True:
        name, job = draw_job(rng)
        if "compare" in name:
            yield name, job


KIND = Kind(
    "scarcity",
    "A job that may take only a few MB more than the process has (`RLIMIT_AS`), or whose files go to a disk "
    "of a few pages (a tmpfs; as root only). A finding is anything but a sound result or a MemoryError or "
    "OSError of one sentence: a dead process, another exception, a file that a second run cannot go on from.",
    share=2,
    full=300,
    case=case,
    absent=cannot_mount,
)
