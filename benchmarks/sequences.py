"""Kernels on sequences and the FASTA reader, as multiples of other work in the same run.

    python benchmarks/sequences.py [name ...]       grams, fasta (both by default)

grams    Gram matrices of 2000 sequences of length 200, from strings to float64, on one thread, in NumPy comparison
         sweeps (for i: (S == S[i]).sum(1) over the same bytes)
fasta    a file of 100,000 records of which 1,000 are corrupted: every corruption must be reported with its line; as a
         multiple of the time of splitting the same bytes into lines and joining them again
"""

from __future__ import annotations

import io
import os
import sys
import time

if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from run import report

REPEATS = 5


def cpu_time(call, repeats: int) -> float:
    """Return the smallest processor time of several calls."""
    times = []
    for _ in range(repeats):
        began = time.process_time()
        call()
        times.append(time.process_time() - began)
    return min(times)


def grams(n: int = 2000, repeats: int = REPEATS) -> None:
    from multikernel.datasets import dna
    from multikernel.kernels import Spectrum, WeightedDegree, WeightedDegreeShift

    sequences, _ = dna(n)
    S = sequences.view(np.uint8).reshape(n, -1)

    def sweep() -> None:
        for i in range(n):
            (S == S[i]).sum(1)

    for kernel, bar in ((WeightedDegree(20), 0.08), (Spectrum(6), 0.25), (WeightedDegreeShift(20, 5), 0.5)):
        kernel(sequences)
        unit = cpu_time(sweep, repeats)
        report(f"Gram of {kernel!r}, n = {n}", cpu_time(lambda k=kernel: k(sequences), repeats) / unit, "sweeps", bar)


def corrupted(n: int, wrong: int) -> tuple[bytes, dict[int, int]]:
    """Return a FASTA file and the lines of the errors of its corrupted records."""
    from multikernel.datasets import dna

    rng = np.random.default_rng(0)
    faults = dict(zip(rng.choice(n, wrong, replace=False).tolist(), rng.integers(0, 4, wrong).tolist(), strict=True))
    lines: list[str] = []
    places: dict[int, int] = {}
    for i, sequence in enumerate(dna(n)[0]):
        text, header, fault = sequence.decode(), f">record{i} random", faults.get(i)
        body = [text[t : t + 60] for t in range(0, len(text), 60)]
        if fault == 0:
            header = ">"
        elif fault == 1:
            body = []
        elif fault is not None:
            body[fault] = body[fault][:7] + ("7" if fault == 2 else "\0") + body[fault][8:]
        if fault is not None:
            places[i + 1] = len(lines) + 1 + (fault + 1 if fault > 1 else 0)
        lines += [header, *body]
    return "\n".join(lines).encode(), places


def fasta(n: int = 100_000, wrong: int = 1000) -> None:
    from multikernel.datasets import read_fasta

    data, places = corrupted(n, wrong)
    found = read_fasta(io.BytesIO(data), errors="collect")
    assert {problem.record: problem.line for problem in found.problems} == places
    assert len(found) == n - wrong
    unit = cpu_time(lambda: b"\n".join(data.split(b"\n")), 3)
    figure = cpu_time(lambda: read_fasta(io.BytesIO(data), errors="collect"), 3) / unit
    report(f"FASTA of {n} records, {wrong} corrupted", figure, "splits", 50)


if __name__ == "__main__":
    for name in sys.argv[1:] or ("grams", "fasta"):
        globals()[name]()
