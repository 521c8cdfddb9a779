"""Two nested stars that move apart: which of five widths is chosen, and the test error (section 5.1)."""

from __future__ import annotations

import numpy as np
from experiments import claim, column, mean_and_error, note, numbers, values

from multikernel import MKLClassifier
from multikernel.datasets import make_stars
from multikernel.kernels import rbf_family

title = "Figure 1: nested stars, five widths"
compared = """The paper prints neither the shape of the stars, nor the widths, C and numbers of samples. Ours: six
rays, noise 0.1, widths 0.01, ..., 100, C = 1, kernels without normalisation, 1000 training and 5000 test points, 20
draws a distance."""
WIDTHS = (0.01, 0.1, 1.0, 10.0, 100.0)
DISTANCES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0, 1.2, 1.4, 1.7, 2.0)


def tasks(small):
    """Every distance and draw."""
    distances, draws = ((0.1, 0.5, 1.0, 2.0), 2) if small else (DISTANCES, 20)
    return [{"distance": distance, "draw": draw} for distance in distances for draw in range(draws)]


def work(small, distance, draw):
    """Weights and test error of one draw."""
    X, y = make_stars(300 if small else 1000, distance=distance, random_state=draw)
    model = MKLClassifier(rbf_family(WIDTHS), normalize=None, n_jobs=1).fit(X, y)
    test = make_stars(2000 if small else 5000, distance=distance, random_state=1000 + draw)
    return {"error": 1.0 - model.score(*test), "weights": model.weights_}


def profiles(rows):
    """Return the distances, the mean weights at each, and the mean test errors with their standard errors."""
    distances = values(rows, "distance")
    weights = [np.mean([numbers(w) for w in column(rows, "weights", distance=d)], axis=0) for d in distances]
    return (
        np.array(distances),
        np.array(weights),
        np.array([mean_and_error(column(rows, "error", distance=d)) for d in distances]),
    )


def verdicts(rows):
    """The three statements of section 5.1, and how many kernels are used between the ends."""
    distances, weights, errors = profiles(rows)
    widest = max(numbers(row["weights"])[-1] for row in rows)
    mean_width = weights @ np.log10(WIDTHS)
    return [
        claim("largest weight of the widest kernel, over all draws", "never chosen (below 0.001)", f"{widest:.3f}",
              widest < 1e-3, "chosen in some draw"),
        claim("mean log10 width, nearest to farthest stars", "grows (by over 1, nowhere back by 0.05)",
              f"{mean_width[0]:.2f} to {mean_width[-1]:.2f}",
              np.all(np.diff(mean_width) > -0.05) and mean_width[-1] > mean_width[0] + 1, "does not grow throughout"),
        claim("test error, nearest to farthest stars", "drops to 0 (below 0.001)",
              f"{errors[0, 0]:.3f} to {errors[-1, 0]:.4f}", errors[-1, 0] < 1e-3, "does not reach 0",
              f"{errors[0, 1]:.3f}"),
        note("kernels with weight above 0.01 at middle distances", "; ".join(
             f"{d:g}: {(w > 0.01).sum()}" for d, w in zip(distances, weights, strict=True) if 0.3 <= d <= 1.0)),
    ]  # fmt: skip


def draw(rows, figure):
    """Draw the stars, the weights and the error."""
    distances, weights, errors = profiles(rows)
    axes = figure.subplot_mosaic([["a", "b", "c"], ["w", "w", "w"], ["e", "e", "e"]], height_ratios=[2, 2, 1])
    for key, distance in zip("abc", (distances[0], distances[len(distances) // 2], distances[-1]), strict=True):
        X, y = make_stars(500, distance=distance, random_state=0)
        axes[key].scatter(*X.T, c=np.where(y > 0, "0.3", "0.7"), s=2)
        axes[key].set(title=f"distance {distance:g}", aspect="equal", xticks=[], yticks=[])
    for width, weight in zip(WIDTHS, weights.T, strict=True):
        axes["w"].plot(distances, weight, "o-", ms=3, label=f"width {width:g}")
    axes["w"].legend(fontsize="small")
    axes["w"].set(ylabel="weight")
    axes["e"].errorbar(distances, *errors.T, color="black", marker="o", ms=3)
    axes["e"].set(xlabel="distance of the stars", ylabel="test error")


size = (8, 8)
