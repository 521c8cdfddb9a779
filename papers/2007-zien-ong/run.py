"""Table 1 and Figure 4 of Zien & Ong 2007: how the time of joint training grows, and kernels on the classes.

    python papers/2007-zien-ong/run.py [--small]

Class centres at the vertices of a simplex, noise 0.3, Gaussian kernels whose first width is the 1/c quantile of the
distances and the others 2^-0.5, 2^0.5, 2^-1, 2, ... times it, each kernel scaled to variance one, C = 1, relative gap
1e-2. One of the numbers of examples, classes and kernels grows at a time from the base case of 300, 3 and 3. CPU
seconds of one thread, the best of a few fits, kernels computed beforehand. ``--small`` takes sizes for a test.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import pdist, squareform
from threadpoolctl import threadpool_limits

from multikernel import MKLClassifier, stack_kernels
from multikernel.datasets import make_related_classes, make_simplex
from multikernel.kernels import Linear, pairwise_output_kernels

BASE = {"examples": 300, "classes": 3, "kernels": 3}
# the number that grows, and its sizes; the paper prints the smallest and the largest
SIZES = {
    "examples": (100, 200, 500, 1000, 2000, 5000),
    "classes": (3, 6, 12, 25, 50, 100),
    "kernels": (2, 4, 7, 12, 20),
}
SMALL = {"examples": (30, 60), "classes": (3, 6), "kernels": (2, 4)}
# examples for the forms that go to a conic solver
FORMS = (60, 120, 240)
# the slopes that the paper prints, and the bar for ours
PAPER = {
    "QP, unfolded": {"examples": 2.5, "classes": 1.8},
    "QCQP, unfolded (9)": {"examples": 3.0, "classes": 2.0, "kernels": 2.3},
    "SILP, unfolded (11)": {"examples": 2.4, "classes": 1.7, "kernels": 1.1},
    "SILP, compact": {"examples": 2.6, "classes": 2.2, "kernels": 1.0},
}
BARS = {"examples": 2.2, "classes": 1.2, "kernels": 1.05}
GAP = 1e-2
# three classes as in Figure 4, whose numbers the paper does not print
ARRANGEMENTS = {
    "on a line": ((0.0, 0.0), (1.0, 0.0), (4.0, 0.0)),
    "in the plane": ((-2.0, 0.0), (-1.0, 1.0), (2.5, 0.0)),
}


@dataclass
class Growth:
    """CPU seconds over sizes, and the slope of their logarithms."""

    sizes: list[int]
    seconds: list[float]

    @property
    def slope(self) -> float:
        """Order of the polynomial over all sizes."""
        return float(np.polyfit(np.log(self.sizes), np.log(self.seconds), 1)[0])

    @property
    def last(self) -> float:
        """Order between the two largest sizes, where fixed costs weigh least."""
        return float(np.diff(np.log(self.seconds[-2:]))[0] / np.diff(np.log(self.sizes[-2:]))[0])

    def __str__(self) -> str:
        row = "  ".join(f"{size}: {1e3 * each:.3g} ms" for size, each in zip(self.sizes, self.seconds, strict=True))
        return f"slope {self.slope:5.2f}   last {self.last:5.2f}   {row}"


def toy(examples: int, classes: int, kernels: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the kernels, float32 of shape (p, n, n), and the classes."""
    X, y = make_simplex(examples, n_classes=classes, noise=0.3, random_state=seed)
    distances = pdist(X)
    width = np.quantile(distances, 1.0 / classes)
    squares = squareform(distances**2)
    # 0, -0.5, 0.5, -1, 1, ...
    powers = [0.5 * ((k + 1) // 2) * (-1) ** k for k in range(kernels)]
    K = np.empty((kernels, examples, examples), np.float32)
    for k, power in enumerate(powers):
        G = np.exp(-squares / (2.0 * (2.0**power * width) ** 2))
        K[k] = G / (1.0 - G.mean())
    return K, y


def seconds_of(solver: str, K: np.ndarray, y: np.ndarray, repeats: int = 3) -> float:
    """Return the CPU seconds of the best of several fits."""
    stack, taken = stack_kernels(K), []
    for _ in range(repeats):
        model = MKLClassifier("precomputed", multiclass="joint", normalize=None, tol=GAP, solver=solver, n_jobs=1)
        began = time.process_time()
        model.fit(stack, y)
        taken.append(time.process_time() - began)
        if model.duality_gap_ > GAP:
            raise RuntimeError(f"{solver} stopped at the gap {model.duality_gap_:.2g}.")
        if taken[-1] > 20.0:
            break
    return min(taken)


def grow(solver: str, what: str, sizes: tuple[int, ...], repeats: int = 3) -> Growth:
    """Measure one column of the table."""
    found = Growth([], [])
    for size in sizes:
        found.sizes.append(size)
        found.seconds.append(seconds_of(solver, *toy(**{**BASE, what: size}), repeats=repeats))
    return found


def arrangement(centers: tuple[tuple[float, float], ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the distances between three class centres, and those of the learned kernel on the classes (Figure 4)."""
    X, y = make_related_classes(300, centers=centers, random_state=0)
    model = MKLClassifier([Linear()], multiclass="joint", output_kernels=pairwise_output_kernels(3), n_jobs=1)
    return pdist(np.array(centers)), pdist(model.fit(X, y).class_embedding_)


def main(small: bool) -> dict[str, Growth]:
    """Print the table, ours next to the paper's, and the distances of Figure 4."""
    sizes = SMALL if small else SIZES
    seconds_of("auto", *toy(60, 3, 2), repeats=1)
    ours = {}
    for what in sizes:
        found = ours[what] = grow("auto", what, sizes[what])
        verdict = "ok" if found.slope <= BARS[what] else "MISSED"
        print(f"{what:<9} bar {BARS[what]:<5g} {verdict:<7} {found}", flush=True)
    print("the paper's slopes")
    for name, slopes in PAPER.items():
        print(f"{name:<20} " + "  ".join(f"{what} {slopes[what]:.1f}" for what in BARS if what in slopes))
    print("the four forms and the default, examples")
    for solver in ("qcqp", "qcqp-compact", "silp", "silp-compact", "auto"):
        ours[solver] = grow(solver, "examples", SMALL["examples"] if small else FORMS, repeats=1 if small else 2)
        print(f"{solver:<13} {ours[solver]}", flush=True)
    print("Figure 4: distances 0-1, 0-2, 1-2 of the class centres, and of the learned kernel on the classes")
    for name, centers in ARRANGEMENTS.items():
        given, learned = arrangement(centers)
        print(f"{name:<13} {given.round(2)} {learned.round(2)}")
    return ours


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="sizes for a test")
    with threadpool_limits(1):
        main(parser.parse_args().small)
