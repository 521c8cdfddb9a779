"""More than two classes as one problem of several columns, or as several problems of two classes each.

joint  one problem for all classes, a column of labels for each; one set of weights; the largest output wins
ovr    one problem per class, that class against the rest; the largest output wins
ovo    one problem per pair of classes, on their samples alone; the pairs vote, ties go to the larger outputs
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np


@dataclass(frozen=True)
class BinaryTask:
    """One problem of two classes.

    Attributes
    ----------
    y : ndarray of -1 and 1
        Labels of the samples that take part; for "joint" with a column per class.
    idx : ndarray of int or None
        These samples, None for all.
    label : str
        What the problem decides, in words.
    """

    y: np.ndarray
    idx: np.ndarray | None
    label: str


def binary_tasks(codes: np.ndarray, classes: np.ndarray, multiclass: str) -> list[BinaryTask]:
    """Return the problems: one for two classes, else those of the scheme.

    Parameters
    ----------
    codes : ndarray of int
        Position in ``classes`` of each sample's class.
    classes : ndarray
        The classes.
    multiclass : {"joint", "ovr", "ovo", "products"}
        The scheme; "products" is "joint", of two classes as well.

    Examples
    --------
    >>> import numpy as np
    >>> tasks = binary_tasks(np.array([0, 1, 2]), np.array(["a", "b", "c"]), "ovo")
    >>> [(task.label, task.y.tolist(), task.idx.tolist()) for task in tasks[:2]]
    [('a and b', [-1.0, 1.0], [0, 1]), ('a and c', [-1.0, 1.0], [0, 2])]
    """
    if len(classes) == 2 and multiclass != "products":
        return [BinaryTask(np.where(codes == 1, 1.0, -1.0), None, f"{classes[0]} and {classes[1]}")]
    if multiclass in ("joint", "products"):
        return [BinaryTask(np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0), None, "all classes")]
    if multiclass == "ovr":
        return [
            BinaryTask(np.where(codes == c, 1.0, -1.0), None, f"{label} and the rest")
            for c, label in enumerate(classes)
        ]
    tasks = []
    for i, j in combinations(range(len(classes)), 2):
        idx = np.flatnonzero((codes == i) | (codes == j))
        tasks.append(BinaryTask(np.where(codes[idx] == j, 1.0, -1.0), idx, f"{classes[i]} and {classes[j]}"))
    return tasks


def pairwise_votes(outputs: np.ndarray, n_classes: int) -> np.ndarray:
    """Turn the outputs of all pairs into one score per class: votes, plus outputs squeezed into (-1/3, 1/3).

    Parameters
    ----------
    outputs : ndarray of shape (n_samples, n_pairs)
        Positive where the second class of the pair is the likelier.
    n_classes : int
        Number of classes.
    """
    votes = np.zeros((len(outputs), n_classes))
    sums = np.zeros_like(votes)
    for column, (i, j) in zip(outputs.T, combinations(range(n_classes), 2), strict=True):
        votes[:, i] += column <= 0
        votes[:, j] += column > 0
        sums[:, i] -= column
        sums[:, j] += column
    return votes + sums / (3 * (np.abs(sums) + 1))
