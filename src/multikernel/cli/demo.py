"""``multikernel demo``: learn weights of kernels on data that come with scikit-learn.

Ten features of cell nuclei come in three groups (the mean, the error and the worst value of each feature); three groups
of noise are added. Every group has Gaussian kernels of several widths, and the model learns which of them matter.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.preprocessing import StandardScaler

from multikernel.estimators import MKLClassifier
from multikernel.kernels import RBF, rbf_family

GROUPS = {
    "mean": slice(0, 10),
    "error": slice(10, 20),
    "worst": slice(20, 30),
    "noise 1": slice(30, 40),
    "noise 2": slice(40, 50),
    "noise 3": slice(50, 60),
}


@dataclass(frozen=True)
class Comparison:
    """One split: the learned model, and held-out accuracies of the model, the uniform sum and each kernel alone."""

    model: MKLClassifier
    mix: float
    uniform: float
    alone: np.ndarray
    best: int


def make_kernels() -> list[tuple[str, RBF, slice]]:
    """Return one Gaussian kernel per group and width, the width a multiple of the median distance."""
    return [
        (f"{group}, width x {kernel.factor:g}", kernel, columns)
        for group, columns in GROUPS.items()
        for kernel in rbf_family(factors=[1.0, 2.0, 4.0])
    ]


def load_samples(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the standardised features with thirty columns of noise, and the names of the classes."""
    data = load_breast_cancer()
    noise = np.random.default_rng(seed).normal(size=(len(data.data), 30))
    return np.hstack([StandardScaler().fit_transform(data.data), noise]), data.target_names[data.target]


def compare(X: np.ndarray, y: np.ndarray, norm: float, C: float, seed: int) -> Comparison:
    """Train on one half, test on the other; the best single kernel is chosen by cross-validation."""
    kernels = make_kernels()
    A, B, a, b = train_test_split(X, y, train_size=0.5, stratify=y, random_state=seed)
    model = MKLClassifier(kernels, norm=norm, C=C).fit(A, a)
    # the sum of p kernels at cost C / p has the predictions of their mean at cost C
    uniform = MKLClassifier(kernels, norm=np.inf, C=C / len(kernels)).fit(A, a)
    singles = [MKLClassifier([kernel], C=C) for kernel in kernels]
    validated = [cross_val_score(single, A, a, cv=3).mean() for single in singles]
    alone = np.array([single.fit(A, a).score(B, b) for single in singles])
    return Comparison(model, model.score(B, b), uniform.score(B, b), alone, int(np.argmax(validated)))


def run_demo(splits: int = 3, norm: float = 1.0, C: float = 1.0, console: Console | None = None) -> list[Comparison]:
    """Learn, compare and print.

    Parameters
    ----------
    splits : int
        Random halves of the data to average over.
    norm, C : float
        Parameters of the classifier.
    console : rich.console.Console, optional
        Where to print.
    """
    console = console or Console()
    began = time.perf_counter()
    X, y = load_samples()
    names = [name for name, _, _ in make_kernels()]
    console.print(
        f"Breast cancer: {len(X)} samples, three groups of ten features and three groups of noise, each "
        f"with {len(names) // len(GROUPS)} Gaussian kernels (widths in multiples of the median distance). "
        f"Means over {splits} random halves.\n",
        highlight=False,
    )
    results = [compare(X, y, norm, C, seed) for seed in range(splits)]
    console.print(_kernel_table(names, results))
    console.print(_accuracy_table(results))
    model = results[0].model
    console.print(
        f"\nCertificate of the first half: objective {model.objective_:.6g}, optimum at least "
        f"{model.dual_objective_:.6g}, relative duality gap {model.duality_gap_:.1e} ({model.status_} in "
        f"{model.n_iter_} iterations of {model.solver_}); {len(model.support_)} support vectors, "
        f"{np.count_nonzero(model.weights_)} of {len(names)} kernels in use.",
        highlight=False,
    )
    console.print(f"All of this took {time.perf_counter() - began:.1f} seconds.", highlight=False)
    return results


def _kernel_table(names: list[str], results: list[Comparison]) -> Table:
    weights = np.mean([result.model.weights_ for result in results], axis=0)
    shares = np.mean([result.model.kernel_contributions_ for result in results], axis=0)
    alone = np.mean([result.alone for result in results], axis=0)
    table = Table(title="Learned weights")
    table.add_column("kernel")
    for heading in ("weight", "contribution", "accuracy alone"):
        table.add_column(heading, justify="right")
    for k, name in enumerate(names):
        ends = (k + 1) % (len(names) // len(GROUPS)) == 0
        row = (f"{weights[k]:.3f}", f"{shares[k]:.3f}", f"{alone[k]:.3f}")
        table.add_row(name, *row, style=None if weights[k] > 5e-4 else "dim", end_section=ends)
    return table


def _accuracy_table(results: list[Comparison]) -> Table:
    rows = {
        "learned weights": [result.mix for result in results],
        "uniform sum of all kernels": [result.uniform for result in results],
        "best single kernel (cross-validated)": [result.alone[result.best] for result in results],
    }
    table = Table(title="Accuracy on held-out data")
    table.add_column("model")
    table.add_column("accuracy", justify="right")
    for label, values in rows.items():
        table.add_row(label, f"{np.mean(values):.3f}")
    return table
