"""How the time of an epoch grows with the number of sequences, up to a million (section 5.3)."""

from __future__ import annotations

import warnings

import numpy as np
from experiments import column, load_script, note
from sklearn.exceptions import ConvergenceWarning

title = "Section 5.3: time of an epoch against the number of examples"
compared = """The paper prints no times. Processor seconds of the first epoch, which goes through all samples; the
setting of section53. The bar of this project is n^1.2."""
one_at_a_time = True
SIZES = (10_000, 31_623, 100_000, 316_228, 1_000_000)


def tasks(small):
    """Every number of sequences."""
    return [{"n": n} for n in ((200, 400) if small else SIZES)]


def work(small, n):
    """Processor seconds of one epoch."""
    section = load_script("2005-sonnenburg/section53")
    data = "dna" if small else "splice42"
    S, y = section.sequences(data, n, 42)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = section.learner(1.0, tol=1e-9, max_iter=1).fit(S, y)
    return {"data": data, "seconds": float(model.history_["epoch_seconds"][0])}


def exponent(rows):
    """Return the exponent of n from the first to the last size."""
    n, seconds = column(rows, "n"), column(rows, "seconds")
    return np.log(seconds[-1] / seconds[0]) / np.log(n[-1] / n[0])


def label(rows):
    """Return what stands in for the data of the paper."""
    return load_script("2005-sonnenburg/section53").LABELS[rows[0]["data"]]


def verdicts(rows):
    """The exponent."""
    shown = "; ".join(f"{row['n']:,}: {1e6 * row['seconds'] / row['n']:.1f}" for row in rows)
    return [
        note(f"{label(rows)}: exponent of n, first to last size", f"{exponent(rows):.2f}"),
        note(f"{label(rows)}: microseconds a sample, by number of samples", shown),
    ]


def draw(rows, figure):
    """Draw the times on logarithmic scales."""
    n, seconds = column(rows, "n"), column(rows, "seconds")
    axes = figure.subplots()
    axes.loglog(n, seconds, "o-", label=f"one epoch, n^{exponent(rows):.2f} end to end")
    axes.loglog(n, seconds[0] * (n / n[0]) ** 1.2, "--", color="grey", label="n^1.2")
    axes.set(xlabel="sequences n", ylabel="processor seconds", title=f"{label(rows)}, 42 letters, 20 kernels")
    axes.legend()
