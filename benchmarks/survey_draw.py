"""What the survey fits: data sets, banks of kernels and settings, each fit named by a key from which it can be redone.

    yeast/widths/n=500/loss=hinge/multi=joint/norm=inf/C=100

A data set is a tabular set of MULTIKERNEL_DATA or a generated one; `yeast.reg` predicts the last column of yeast from
the others, and `yeast.one` is its largest class without labels. A family is one data set with one bank. In each family
a few settings (loss, norm, several classes jointly or not) are drawn; each is fitted at C = 1, at C = 1e4 and at some
of the values of C between 1e-3 and 1e3. One class has nu instead of C.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from tasks import blob_samples, wave_samples
from workloads import overlap, ring, weak

CS = (1e-3, 1e-2, 0.1, 10.0, 100.0, 1e3)
NUS = (0.01, 0.05, 0.1, 0.5, 0.9)
NORMS = (1.0, 1.0, 4 / 3, 2.0, np.inf, np.inf)
CLASSIFICATION = ("hinge", "squared_hinge", "logistic", "hinge", "multinomial", "smooth_hinge", "squared")
REGRESSION = ("epsilon_insensitive", "huber", "epsilon_insensitive", "squared", "logcosh")
# largest stack, in values: 2,000 kernels of 250 samples
LARGEST = 2000 * 250**2
LARGEST_LONG = 20 * 2000**2

# name of a generated set: its number of classes, and the call that draws n samples of it
GENERATED = {
    "ring": (2, lambda n: ring(n, 1)),
    "overlap2": (2, lambda n: overlap(n, 2)),
    "overlap5": (5, lambda n: overlap(n, 5)),
    "overlap11": (11, lambda n: overlap(n, 11)),
    "overlap20": (20, lambda n: overlap(n, 20)),
    "overlap50": (50, lambda n: overlap(n, 50)),
    "overlap200": (200, lambda n: overlap(n, 200)),
    "apart5": (5, lambda n: overlap(n, 5, spread=1.0)),
    "apart20": (20, lambda n: overlap(n, 20, spread=1.0)),
    "apart100": (100, lambda n: overlap(n, 100, spread=1.0)),
    "ties2": (2, lambda n: overlap(n, 2, levels=1)),
    "ties11": (11, lambda n: overlap(n, 11, levels=1)),
    "copies2": (2, lambda n: copies(n, 2)),
    "copies11": (11, lambda n: copies(n, 11)),
    "tiny": (8, lambda n: tiny(n)),
    "weak": (2, lambda n: weak(n, 40)),
    "waves.reg": (0, lambda n: wave_samples(n)),
    "steps.reg": (0, lambda n: steps(n)),
    "copies.reg": (0, lambda n: (copies(n, 2)[0], steps(n)[1])),
    "blobs.one": (0, lambda n: (blob_samples(n), np.zeros(n))),
    "copies.one": (0, lambda n: (copies(n, 2)[0], np.zeros(n))),
}
# pairs of classes are drawn up to so many classes
MOST_PAIRED = 15
# banks that every set may get, and families of 2,000 samples or with rarer banks
BANKS = ("widths", "columns", "linear", "poly", "mixed", "many100")
EXTRA = (
    ("weak", "many500"), ("weak", "many2000"), ("overlap5", "many500"), ("copies.reg", "many500"), ("ring", "features"),
    ("overlap11", "features"), ("waves.reg", "features"), ("tiny", "many2000"), ("blobs.one", "many500"),
)  # fmt: skip
LONG = (
    ("ring", "columns"), ("overlap5", "widths"), ("overlap20", "mixed"), ("waves.reg", "widths"),
    ("blobs.one", "mixed"), ("magic", "columns"), ("spambase", "widths"), ("twonorm", "mixed"), ("waveform", "widths"),
    ("satimage", "mixed"), ("segment", "columns"), ("mfeat", "views"), ("usps_pca50", "widths"),
    ("banana", "linear"), ("pendigits.one", "widths"),
)  # fmt: skip


def copies(n: int, classes: int, times: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Every row several times; a tenth of the copies have another class."""
    X, y = overlap(-(-n // times), classes)
    rng = np.random.default_rng(3)
    X, y = np.repeat(X, times, axis=0)[:n], np.repeat(y, times)[:n]
    return X, np.where(rng.random(n) < 0.1, rng.integers(0, classes, n), y)


def tiny(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Two large classes and six of 1 to 8 samples, all overlapping."""
    X, y = overlap(n, 2)
    few = np.repeat(np.arange(2, 8), (1, 2, 3, 4, 6, 8))
    y[: len(few)] = few
    X[:, :2] += 0.5 * np.random.default_rng(4).standard_normal((8, 2))[y]
    return X, y


def steps(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Targets of five values only."""
    X, _ = ring(n, 1)
    return X, np.clip(np.round(X[:, 0] * X[:, 2]), -2, 2)


@dataclass(frozen=True)
class Fit:
    """One fit of the survey."""

    dataset: str
    bank: str
    n: int
    loss: str
    multi: str
    norm: float
    C: float
    solver: str = "auto"

    @property
    def family(self) -> str:
        return f"{self.dataset}/{self.bank}" + ("" if self.n <= 500 else f"/n={self.n}")

    @property
    def task(self) -> str:
        return {"reg": "regression", "one": "one class"}.get(self.dataset.partition(".")[2], "classes")

    @property
    def key(self) -> str:
        parts = [self.dataset, self.bank, f"n={self.n}", f"loss={self.loss}", f"multi={self.multi}"]
        parts += [f"norm={self.norm:.4g}", f"{'nu' if self.task == 'one class' else 'C'}={self.C:g}"]
        return "/".join(parts if self.solver == "auto" else [*parts, f"solver={self.solver}"])


def parse(key: str) -> Fit:
    """Return the fit of a key."""
    dataset, bank, *rest = key.split("/")
    given = dict(part.split("=") for part in rest)
    norm = 4 / 3 if given["norm"] == "1.333" else float(given["norm"])
    C = float(given.get("C", given.get("nu", 1)))
    solver = given.get("solver", "auto")
    return Fit(dataset, bank, int(given["n"]), given["loss"], given["multi"], norm, C, solver)


@lru_cache(maxsize=1)
def tabular() -> dict[str, tuple[int, bool]]:
    """Return the tabular sets of MULTIKERNEL_DATA: their number of classes, and whether they have several views."""
    folder = os.environ.get("MULTIKERNEL_DATA")
    found = {}
    for path in sorted(Path(folder).expanduser().glob("*/*.npz")) if folder else []:
        with np.load(path) as arrays:
            if "y" in arrays.files and ("X" in arrays.files or "X_0" in arrays.files):
                found[path.stem] = len(np.unique(arrays["y"])), "X" not in arrays.files
    return found


@lru_cache(maxsize=1)
def samples(dataset: str, n: int) -> tuple[np.ndarray, np.ndarray, list[list[int]]]:
    """Return standardised columns, targets and the columns of each view, of at most n samples."""
    if dataset in GENERATED:
        X, y = GENERATED[dataset][1](n)
        views = [list(columns) for columns in np.array_split(np.arange(X.shape[1]), min(4, X.shape[1]))]
    else:
        X, y, views = real(dataset, n)
    kept = np.flatnonzero(X.std(axis=0) > 1e-9 * np.abs(X).max())
    X = (X[:, kept] - X[:, kept].mean(axis=0)) / X[:, kept].std(axis=0)
    places = {column: place for place, column in enumerate(kept.tolist())}
    views = [[places[column] for column in view if column in places] for view in views]
    return X, y, [view for view in views if view]


def real(dataset: str, n: int) -> tuple[np.ndarray, np.ndarray, list[list[int]]]:
    """Rows of a real set in a fixed random order."""
    from multikernel.datasets import load

    name, _, task = dataset.partition(".")
    data = load(name)
    parts = [
        np.nan_to_num(np.asarray(part, float)) for part in (data.data if isinstance(data.data, list) else [data.data])
    ]
    X, y = np.hstack(parts), np.unique(data.target, return_inverse=True)[1]
    ends = np.cumsum([part.shape[1] for part in parts])
    views = [list(range(end - part.shape[1], end)) for part, end in zip(parts, ends, strict=True)]
    if task == "one":
        X = X[y == np.bincount(y).argmax()]
    rows = np.random.default_rng(0).permutation(len(X))[:n]
    X = X[rows]
    if task == "reg":
        target = np.flatnonzero(X.std(axis=0) > 0)[-1]
        y = (X[:, target] - X[:, target].mean()) / X[:, target].std()
        return np.delete(X, target, axis=1), y, [[c for c in range(X.shape[1] - 1)]]
    return X, y[rows] if task != "one" else np.zeros(len(rows)), views


def kernels(bank: str, X: np.ndarray, views: list[list[int]]) -> list:
    """Return the kernels of a bank on the columns of X."""
    from multikernel.kernels import RBF, Cosine, Laplacian, Linear, Polynomial

    widths, d = (0.25, 0.5, 1.0, 2.0, 4.0), X.shape[1]
    some = np.linspace(0, d - 1, min(d, 60 if len(X) <= 500 else 18)).astype(int)
    if bank == "widths":
        return [RBF(factor=f) for f in widths]
    if bank == "columns":
        return [RBF(), *((f"column {j}", RBF(), [int(j)]) for j in some)]
    if bank in ("linear", "features"):
        return [(f"column {j}", Linear(), [int(j)]) for j in some]
    if bank == "poly":
        return [Linear(), *(Polynomial(degree=e) for e in (2, 3, 4)), Cosine()]
    if bank == "mixed":
        return [*(RBF(factor=f) for f in widths), *(Laplacian(factor=f) for f in (0.5, 2.0)), Linear(),
                Polynomial(degree=2), Cosine()]  # fmt: skip
    if bank == "views":
        return [(f"view {v}, factor {f}", RBF(factor=f), view) for v, view in enumerate(views) for f in (0.5, 2.0)]
    rng = np.random.default_rng(5)
    drawn = [(rng.choice(d, min(d, 1 + k % 3), replace=False), 4.0 ** rng.uniform(-1, 1)) for k in range(int(bank[4:]))]
    return [(f"kernel {k}", RBF(factor=f), columns.tolist()) for k, (columns, f) in enumerate(drawn)]


@lru_cache(maxsize=1)
def stack(dataset: str, bank: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the kernels of a family, each divided by its variance in feature space, and the targets.

    In the precision that computed kernels of that size are kept in: linear kernels rounded to float32 are not positive
    semidefinite, which shows at a large C.
    """
    from multikernel.gram.storage import storage_dtype
    from multikernel.kernels import KernelBank

    X, y, views = samples(dataset, n)
    spec = kernels(bank, X, views)
    most = LARGEST if n <= 500 else LARGEST_LONG
    m = min(len(X), int(np.sqrt(most / len(spec))))
    fitted = KernelBank.fit(spec, X[:m])
    K = np.empty((fitted.n_kernels, m, m), storage_dtype(fitted.n_kernels, m))
    for k, G in fitted.raw_each(X[:m]):
        K[k] = G / max(np.trace(G) / m - G.mean(), 1e-12)
    return K, y[:m]


def families(long: bool = False) -> list[tuple[str, str]]:
    """Return pairs of a data set and a bank; those of real sets only where MULTIKERNEL_DATA is set."""
    sets = tabular()
    if long:
        return [pair for pair in LONG if pair[0] in GENERATED or pair[0].partition(".")[0] in sets]
    pairs = []
    for turn, (name, (_, several)) in enumerate(sets.items()):
        pairs += [(name, "views" if several else "widths"), (name, BANKS[1 + turn % 5])]
        if turn % 3 == 0:
            pairs.append((f"{name}.reg", BANKS[turn // 3 % 6]))
        if turn % 4 == 0:
            pairs.append((f"{name}.one", BANKS[turn // 4 % 6]))
    for turn, name in enumerate(GENERATED):
        pairs += [(name, "widths"), (name, BANKS[1 + turn % 5])]
    return pairs + list(EXTRA)


def settings(dataset: str, bank: str, n: int, number: int, seed: int, solver: str = "auto") -> list[Fit]:
    """Draw some settings of a family, each at four values of C."""
    rng = np.random.default_rng([seed, n, *map(ord, dataset + bank)])
    base = Fit(dataset, bank, n, "hinge", "joint", 1.0, 1.0, solver)
    losses = {"classes": CLASSIFICATION, "regression": REGRESSION, "one class": ("hinge",)}[base.task]
    losses, norms = rng.permutation(losses), rng.permutation(NORMS)
    classes = 0 if base.task != "classes" else GENERATED.get(dataset, tabular().get(dataset))[0]
    apart = ["joint"] if classes <= 2 else ["ovr", "ovo"] if classes <= MOST_PAIRED else ["ovr"]
    drawn = []
    for t in range(number):
        multi = "joint" if rng.random() < 0.7 else str(rng.choice(apart))
        one = replace(base, loss=str(losses[t % len(losses)]), multi=multi, norm=float(norms[t % len(norms)]))
        values = rng.permutation(NUS)[:4] if base.task == "one class" else [1.0, 1e4, *rng.permutation(CS)[:2]]
        drawn += [replace(one, C=float(C)) for C in values]
    return list(dict.fromkeys(drawn))


def draw(seed: int = 0, per_family: int = 6, per_long: int = 4, every: int = 1, n: int = 500) -> list[Fit]:
    """Return the fits of the survey, those of one family next to each other."""
    fits = [fit for pair in families()[::every] for fit in settings(*pair, n, per_family, seed)]
    return fits + [fit for pair in families(long=True)[::every] for fit in settings(*pair, 2000, per_long, seed)]
