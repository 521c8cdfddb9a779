"""Support vector regression of a sine whose frequency grows: the switch between three widths (section 5.2)."""

from __future__ import annotations

import numpy as np
from experiments import claim, column, numbers, values

from multikernel import MKLRegressor
from multikernel.datasets import make_sine
from multikernel.kernels import rbf_family

title = "Figure 2: a sine of growing frequency, three widths"
compared = """The paper prints neither widths, C, epsilon, nor the points. Ours: widths 0.005, 0.05, 0.5 of
exp(-d^2 / width) on [0, 10], 200 points without noise, C = 10, epsilon = 0.01, kernels without normalisation, five
draws a frequency."""
WIDTHS = (0.005, 0.05, 0.5)
FREQUENCIES = tuple(np.round(np.geomspace(0.5, 20.0, 28), 3))


def tasks(small):
    """Every frequency and draw."""
    frequencies, draws = ((1.0, 6.0, 20.0), 1) if small else (FREQUENCIES, 5)
    return [{"frequency": float(frequency), "draw": draw} for frequency in frequencies for draw in range(draws)]


def work(small, frequency, draw):
    """Weights of one draw."""
    X, y = make_sine(80 if small else 200, frequency=frequency, random_state=draw)
    model = MKLRegressor(rbf_family(WIDTHS), C=10.0, epsilon=0.01, normalize=None, n_jobs=1).fit(X, y)
    return {"weights": model.weights_, "r2": model.score(*make_sine(500, frequency=frequency, random_state=99))}


def profiles(rows):
    """Return the frequencies and the mean weights at each."""
    frequencies = values(rows, "frequency")
    weights = [np.mean([numbers(w) for w in column(rows, "weights", frequency=f)], axis=0) for f in frequencies]
    return np.array(frequencies), np.array(weights)


def verdicts(rows):
    """The switch."""
    _, weights = profiles(rows)
    chosen = weights.argmax(axis=1)
    mixed = np.mean(weights.max(axis=1) < 0.9)
    return [
        claim("width of largest weight as the frequency grows", "decreases", " to ".join(
              f"{WIDTHS[k]:g}" for k in dict.fromkeys(chosen)), np.all(np.diff(chosen) <= 0) and len(set(chosen)) > 1,
              "goes back to a wider one"),
        claim("frequencies at which no width has weight 0.9", "few: the switch is abrupt (at most 10 %)",
              f"{100 * mixed:.0f} %", mixed <= 0.1, "the widths share the weight over a wide range of frequencies"),
    ]  # fmt: skip


def draw(rows, figure):
    """Draw the weights against the frequency."""
    frequencies, weights = profiles(rows)
    axes = figure.subplots()
    for width, weight in zip(WIDTHS, weights.T, strict=True):
        axes.plot(frequencies, weight, "o-", ms=3, label=f"width {width:g}")
    axes.set(xlabel="frequency of the sine", ylabel="weight", xscale="log")
    axes.legend()
