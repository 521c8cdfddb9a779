"""Where proteins go: stand-ins for the data sets plant, nonplant, psort+ and psort- and their 69 kernels.

The sets and kernels of Ong & Zien are not to be had. In place of the sets: TargetP 2.0 (plant and non-plant proteins,
the first 200 residues; luminal proteins count as those of the chloroplast) and UniProt's bacterial proteins with one
location, as many of each class as there are, up to the size of the paper's set. In place of the kernels: the same 64
motif kernels; composition and spectrum in place of 2 kernels on phylogenetic profiles; and 3 kernels on local
alignment scores in place of 3 on BLAST scores. As with BLAST, a protein is described by its scores against all
proteins of the set.
"""

from __future__ import annotations

import numpy as np
from experiments import cached, normalised
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch

from multikernel import KernelStack, stack_kernels
from multikernel.datasets import load_dataset
from multikernel.kernels import RBF, AminoAcidComposition, Linear, LocalAlignment, Spectrum, motif_kernels

# name: data set, and the size of the paper's set
SETS = {
    "plant": ("targetp2", 940),
    "nonplant": ("targetp2", 2732),
    "psort+": ("psort_pos_uni", 541),
    "psort-": ("psort_neg_uni", 1444),
}
# the sets of the papers and what stands in for them, for the lines of the tables
LABELS = {
    "plant": "plant (TargetP 2.0)",
    "nonplant": "nonplant (TargetP 2.0)",
    "psort+": "psort+ (UniProt)",
    "psort-": "psort- (UniProt)",
    "protein fold, public": "protein fold (public kernels of rank 27)",
    "protein fold, recomputed": "protein fold (recomputed kernels)",
    "leaves100": "leaves100 (for Caltech-101)",
    "scene15": "scene15 (for Caltech-101)",
}
NAMES = [f"motif {i}" for i in range(64)] + [
    "composition",
    "spectrum 3",
    "alignment",
    "alignment rbf",
    "alignment rbf/2",
]


def draw(name: str, n: int | None = None, ambiguous: int = 0, seed: int = 0) -> Bunch:
    """Return sequences and classes: n with one location, as equally over classes as possible, and ambiguous ones.

    Those have several locations; their class is the first of these.
    """
    source, size = SETS[name]
    data = load_dataset(source)
    y = np.asarray(data["y"]).astype(int)
    if source == "targetp2":
        y[y == 4] = 3
        y[np.asarray(data["org"]) != (name == "plant")] = -1
    rng = np.random.default_rng(seed)
    groups = [rng.permutation(np.flatnonzero(y == u)) for u in np.unique(y[y >= 0])]
    taken = np.zeros(len(groups), int)
    for _ in range(n or size):
        able = [u for u, group in enumerate(groups) if taken[u] < len(group)]
        taken[min(able, key=lambda u: taken[u])] += 1
    rows = np.concatenate([group[:count] for group, count in zip(groups, taken, strict=True)])
    if ambiguous:
        several = rng.permutation(np.flatnonzero(y < 0))[:ambiguous]
        y[several] = np.asarray(data["Y"])[several].argmax(axis=1)
        rows = np.concatenate([rows, several])
    rows = rng.permutation(rows)
    return Bunch(seq=np.asarray(data["seq"])[rows], y=y[rows])


def small_set(n: int = 90, seed: int = 0) -> Bunch:
    """Return random proteins of three classes, with a signal in their first letters, for a test without data."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    letters = np.frombuffer(b"ACDEFGHIKLMNPQRSTVWY", "S1")
    texts = rng.choice(letters, (n, 60))
    for u, strong in enumerate((b"KR", b"LV", b"ST")):
        own = np.flatnonzero(y == u)
        at = rng.random((len(own), 15)) < 0.3
        texts[own, :15] = np.where(at, rng.choice(np.frombuffer(strong, "S1"), (len(own), 15)), texts[own, :15])
    return Bunch(seq=np.array([text.tobytes() for text in texts]), y=y)


def kernels(seq: np.ndarray) -> np.ndarray:
    """Return the 69 kernels, float32, each with a unit diagonal where it is not zero."""
    S = normalised(LocalAlignment(matrix="blosum62")(seq), "cosine", dtype=float)
    found = np.empty((len(NAMES), len(seq), len(seq)), np.float32)
    for k, kernel in enumerate([*motif_kernels(), AminoAcidComposition(), Spectrum(3, alphabet="protein")]):
        found[k] = normalised(kernel(seq), "cosine")
    for k, kernel in enumerate((Linear(), RBF(), RBF(factor=0.5))):
        found[len(NAMES) - 3 + k] = normalised(kernel.fit(S)(S), "cosine")
    return found


def centred(K: np.ndarray) -> np.ndarray:
    """Return kernels centred over all samples, with a unit diagonal."""
    return np.array([normalised(each, "center", "cosine") for each in K])


def folds(kind: str = "public") -> Bunch:
    """Return the 12 kernels of protein fold recognition, the classes, and the official training and test rows.

    The kernels of the paper are not to be had in full. "public": their truncations to rank 27, as they are published.
    "recomputed": polynomial kernels of degree 2 on features computed from the sequences, and alignment scores; the
    predicted secondary structure S is that of "public".
    """
    data = load_dataset("protein_fold")
    names = [str(name) for name in data["view_names"]]
    K = {name: data[f"X_{i}"] @ data[f"X_{i}"].T for i, name in enumerate(names)}
    if kind == "recomputed":
        features = load_dataset("protein_fold_feats")
        for name in names:
            if f"F_{name}" in features:
                F = features[f"F_{name}"]
                Z = StandardScaler().fit_transform(F)
                K[name] = (1.0 + Z @ Z.T) ** 2
            elif name in features:
                # scores against all proteins, as features
                S = normalised(features[name], "cosine", dtype=float)
                K[name] = S @ S.T
    found = np.array([normalised(K[name], "cosine") for name in names])
    return Bunch(kernels=found, names=names, y=np.asarray(data["y"]), train=data["train"], test=data["test"])


def task(name: str, small: bool = False, centre: bool = False, **options: int) -> tuple[KernelStack, np.ndarray]:
    """Return the stack of 69 kernels (of a few, in a small run) and the classes; kernels are computed once and kept.

    ``centre`` centres the kernels over all samples and gives them unit diagonals, as Cortes et al. 2013 do.
    """
    if small:
        data = small_set()
        few = [*range(0, 64, 9), 64, 65, 66]
        K = kernels(data.seq)[few]
        return stack_kernels(centred(K) if centre else K, names=[NAMES[k] for k in few]), data.y
    data = draw(name, **options)
    key = "-".join(["proteins", name, *(f"{key}{value}" for key, value in sorted(options.items()))])
    K = cached(key, lambda: kernels(data.seq))
    return stack_kernels(cached(f"{key}-centred", lambda: centred(K)) if centre else K, names=NAMES), data.y


def name_largest(ax, weights: np.ndarray) -> None:
    """Write the name of the kernel of largest weight beside its bar."""
    k = int(np.argmax(weights))
    if len(weights) == len(NAMES):
        ax.annotate(f"{k}: {NAMES[k]}", (k, 0.8 * weights[k]), (-6, 0), textcoords="offset points", ha="right")
