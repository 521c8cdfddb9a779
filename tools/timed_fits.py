"""The fits that `tools/alternate.py` times.

They are the fits of `make bench`, of benchmarks/selection.py, joint.py and many.py, at the same sizes where one takes a
few seconds at most, and one fit of each other kind of training. Their data are made by the functions of benchmarks/.
Only public estimators are used, and only parameters that every version knows.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))

START = "import numpy as np, multikernel as m; X = np.random.default_rng(0).normal(size=(200, 5)); {}"
FIRST_FIT = "m.MKLClassifier().fit(X, X[:, 0] > 0)"


class Work(NamedTuple):
    """What is timed: ``call`` does it once and returns the model, numbers or None; ``tol`` is the gap asked for."""

    call: Callable[[], object]
    tol: float = 1e-3


def fits(model, *data) -> Work:
    """Make the work of fitting one estimator."""
    return Work(lambda: model.fit(*data), getattr(model, "tol", 1e-3))


def binary_stack(n: int = 2000, kernels: int | None = None, model: str = "MKLClassifier", **options) -> Work:
    """Precomputed kernels of two rings, as in benchmarks/run.py."""
    from workloads import binary

    import multikernel

    K, _, y, _ = binary(n, 10)
    return fits(getattr(multikernel, model)("precomputed", **options), multikernel.stack_kernels(K[:kernels]), y)


def selection(name: str) -> Work:
    """A search over seven values of C in three folds."""
    import selection

    from multikernel import MKLClassifierCV

    kernels, X, y = selection.workload(name)
    return fits(MKLClassifierCV(kernels, Cs=selection.CS, cv=3, baselines=False), X, y)


def joint(n: int = 1000, classes: int = 5, model: str = "MKLClassifier", **options) -> Work:
    """All classes at once, centres at the vertices of the simplex."""
    from joint import simplex

    import multikernel

    K, y = simplex(n, classes)
    model = getattr(multikernel, model)("precomputed", normalize=None, **options)
    return fits(model, multikernel.stack_kernels(K), y)


def joint_views() -> Work:
    """Many classes of few samples."""
    from workloads import views

    from multikernel import MKLClassifier, stack_kernels

    K, y = views(102, 15, 12)
    return fits(MKLClassifier("precomputed", normalize=None, tol=1e-2), stack_kernels(K), y)


def many_lazy(n: int, groups: int, squared: bool = False) -> Work:
    """Kernels that are computed when needed and never stored."""
    from many import kernels, many

    from multikernel import MKLClassifier, MKLRegressor

    X, y = many(n, groups)
    kind = partial(MKLRegressor, loss="squared") if squared else MKLClassifier
    return fits(kind(kernels(groups), tol=1e-2, gram="lazy"), X, y)


def regression(**options) -> Work:
    """A line plus two sines under ten widths."""
    from tasks import waves

    from multikernel import MKLRegressor, stack_kernels

    K, y = waves(2000)
    return fits(MKLRegressor("precomputed", normalize=None, **options), stack_kernels(K), y)


def one_class() -> Work:
    """Two clusters, no labels."""
    from tasks import blobs

    from multikernel import MKLOneClass, stack_kernels

    return fits(MKLOneClass("precomputed", normalize=None), stack_kernels(blobs(2000)))


def squared_loss() -> Work:
    """Ten targets that share their kernel weights."""
    from losses import targets

    from multikernel import MKLRegressor, stack_kernels

    K, _, Y, _ = targets(1000, 1)
    return fits(MKLRegressor("precomputed", loss="squared", tol=1e-4), stack_kernels(K), Y)


def samples(n: int, predict: bool = False) -> Work:
    """Kernels computed from samples by the defaults: fit, or predict as many samples as were fitted."""
    from workloads import ring

    from multikernel import MKLClassifier

    X, y = ring(n, 1)
    model = MKLClassifier()
    if not predict:
        return fits(model, X, y)
    model.fit(X, y)
    # labels near the boundary may differ between versions: their number by one in a hundred
    return Work(lambda: [float((model.predict(X) > 0).sum())], tol=5e-3)


def start(statement: str) -> Work:
    """A new process that imports the package and does what a statement says."""
    return Work(lambda: subprocess.run([sys.executable, "-c", START.format(statement)], check=True) and None)


WORKLOADS: dict[str, Callable[[], Work]] = {
    "bench n=2000 C=1": binary_stack,
    "bench n=2000 C=1 tol=1e-5": partial(binary_stack, tol=1e-5),
    "bench n=2000 norm=2": partial(binary_stack, norm=2),
    "bench n=2000 C=0.1": partial(binary_stack, C=0.1),
    "bench n=2000 C=10": partial(binary_stack, C=10.0),
    "bench n=2000 C=100": partial(binary_stack, C=100.0),
    "bench n=5000 C=1": partial(binary_stack, 5000),
    "bench one kernel": partial(binary_stack, kernels=1, C=10.0),
    "bench start": partial(start, FIRST_FIT),
    "fit 200 samples": partial(samples, 200),
    "fit 1000 samples": partial(samples, 1000),
    "predict 1000 samples": partial(samples, 1000, predict=True),
    "selection stack": partial(selection, "stack"),
    "selection fixed": partial(selection, "fixed"),
    "selection learned": partial(selection, "learned"),
    "joint 5 classes": joint,
    "joint 5 classes tol=1e-5": partial(joint, tol=1e-5),
    "joint 5 classes norm=2": partial(joint, norm=2),
    "joint 20 classes": partial(joint, classes=20),
    "joint n=2000": partial(joint, 2000),
    "joint views": joint_views,
    "joint output kernels": partial(joint, 600, 6, output_kernels=[np.eye(6), np.kron(np.ones((3, 3)), np.eye(2))]),
    "joint logistic": partial(joint, loss="logistic"),
    "many lazy": partial(many_lazy, 1000, 20),
    "many lazy squared": partial(many_lazy, 700, 10, squared=True),
    "regression": regression,
    "one class": one_class,
    "squared loss": squared_loss,
    "squared hinge": partial(binary_stack, 1000, loss="squared_hinge"),
    "M3K": partial(joint, 600, 4, model="M3KClassifier"),
    "two-stage alignf": partial(binary_stack, 2000, model="TwoStageClassifier"),
}
