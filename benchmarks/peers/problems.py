"""The problems of the comparison: a stack of kernels for training and test, the columns that they come from, labels.

`write` puts a problem into a folder of plain arrays, which contestants of any environment read without this package.
Kernels are divided by their variance in feature space, so that C means the same for all.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from workloads import EVERYTHING, NOISE, RING, SHIFT, _gaussian, binary, ring


def rings(n: int) -> dict:
    """Two rings, 20 Gaussian kernels: `binary` of the workloads, and the samples it comes from."""
    K, K_test, y, y_test = binary(n, 1000)
    X, X_test = ring(n, 1)[0], ring(1000, 2)[0]
    groups = [list(subset) for subset in (RING, SHIFT, NOISE, EVERYTHING)]
    return {"K": K, "K_test": K_test, "X": X, "X_test": X_test, "y": y, "y_test": y_test,
            "groups": groups}  # fmt: skip


def gaussians(X, y, X_test, y_test, specs) -> dict:
    """Gaussian kernels of given columns and widths."""
    K = np.empty((len(specs), len(X), len(X)), np.float32)
    K_test = np.empty((len(specs), len(X_test), len(X)), np.float32)
    for k, (columns, width) in enumerate(specs):
        G = _gaussian(X[:, columns], X[:, columns], width)
        G = 0.5 * (G + G.T)
        np.fill_diagonal(G, 1.0)
        scale = 1.0 / (1.0 - G.mean())
        K[k], K_test[k] = scale * G, scale * _gaussian(X_test[:, columns], X[:, columns], width)
    groups = [list(group) for group in dict.fromkeys(tuple(columns) for columns, _ in specs)]
    return {"K": K, "K_test": K_test, "X": X, "X_test": X_test, "y": y, "y_test": y_test, "groups": groups}


def simplex(n: int, classes: int) -> dict:
    """Class centres at the vertices of the simplex (Zien & Ong 2007, 3.1), ten widths."""
    y, y_test = np.arange(n) % classes, np.arange(1000) % classes
    X, X_test = (
        np.eye(classes)[labels] + 0.3 * np.random.default_rng(seed).standard_normal((len(labels), classes))
        for labels, seed in ((y, 5), (y_test, 6))
    )
    return gaussians(X, y, X_test, y_test, [(list(range(classes)), width) for width in np.logspace(-2, 2, 10)])


def bundled(name: str) -> dict:
    """A data set that scikit-learn brings: two thirds for training; all columns at three widths, and each tenth."""
    from sklearn import datasets
    from sklearn.model_selection import train_test_split

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    X = X[:, X.std(axis=0) > 0]
    X, X_test, y, y_test = train_test_split(X, y, test_size=1 / 3, random_state=0, stratify=y)
    mean, spread = X.mean(axis=0), np.maximum(X.std(axis=0), 1e-9)
    X, X_test = (X - mean) / spread, (X_test - mean) / spread
    groups = [list(map(int, part)) for part in np.array_split(np.arange(X.shape[1]), 10)]
    specs = [(list(range(X.shape[1])), width * X.shape[1]) for width in (0.5, 2.0, 8.0)]
    specs += [(group, 2.0 * len(group)) for group in groups]
    if len(np.unique(y)) == 2:
        y, y_test = 2.0 * y - 1, 2.0 * y_test - 1
    return gaussians(X, y, X_test, y_test, specs)


# name: (title, norm, C, how it is made)
PROBLEMS = {
    "rings-2000": ("two rings, n = 2000, 20 kernels, norm 1", 1.0, 1.0, lambda: rings(2000)),
    "rings-150": ("two rings, n = 150, 20 kernels, norm 1", 1.0, 1.0, lambda: rings(150)),
    "cancer": (
        "breast cancer of scikit-learn, n = 379, 13 kernels, norm 1",
        1.0,
        1.0,
        lambda: bundled("breast_cancer"),
    ),
    "simplex-1000": ("five classes, n = 1000, 10 kernels, norm 1", 1.0, 1.0, lambda: simplex(1000, 5)),
    "l2-rings-2000": ("two rings, n = 2000, 20 kernels, norm 2", 2.0, 1.0, lambda: rings(2000)),
    "digits": ("digits of scikit-learn, n = 1198, 10 classes, 13 kernels, norm 1", 1.0, 1.0, lambda: bundled("digits")),
}
QUICK = {
    "rings-150": PROBLEMS["rings-150"],
    "simplex-200": ("five classes, n = 200, 10 kernels, norm 1", 1.0, 1.0, lambda: simplex(200, 5)),
}


def write(name: str, folder: Path, problems: dict) -> dict:
    """Write the arrays of a problem, and return what is known of it."""
    title, norm, C, make = problems[name]
    arrays = make()
    folder.mkdir(parents=True, exist_ok=True)
    for key in ("K", "K_test", "X", "X_test", "y", "y_test"):
        np.save(folder / f"{key}.npy", arrays[key])
    p, n, _ = arrays["K"].shape
    about = {"name": name, "title": title, "norm": norm, "C": C, "samples": n, "kernels": p,
             "classes": len(np.unique(arrays["y"])), "groups": arrays["groups"]}  # fmt: skip
    (folder / "about.json").write_text(json.dumps(about), encoding="utf-8")
    return about
