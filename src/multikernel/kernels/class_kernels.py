"""Kernels on the classes, Y(u, v), with which kernels on the samples are multiplied: Zien & Ong 2007, 2.5 and 3.4.

    k((x, u), (x', v)) = K(x, x') Y(u, v)

Each row of the coefficients sums to zero over the classes. Hence only the centred matrix Y - r1' - 1r' + m matters:
the distances Y_uu + Y_vv - 2 Y_uv between classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from multikernel.gram.base import Gram
from multikernel.gram.host import HostGram
from multikernel.gram.product import ProductGram
from multikernel.kernels.base import Kernel, as_kernel, is_integer, kernel_name

# Asymmetry and negative eigenvalues up to this fraction of the largest entry are rounding of what the user computed.
_ROUNDING = np.sqrt(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class OutputKernels:
    """Kernels on the classes, and which kernels on the samples they are multiplied with.

    Parameters
    ----------
    kernels : list
        Each entry a matrix (c, c), a kernel over the class labels, a pair (kernel, attributes) with an array of a row
        for each class or a dict from labels to vectors, or (name, one of these).
    pairs : list of (input, output), optional
        The products that take part, each kernel by its number or name; by default all.
    classes : sequence, optional
        The label that each row of the matrices and arrays stands for, by default the classes in training, sorted. With
        it, classes that have no training samples, as happens in cross-validation, are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import MKLClassifier
    >>> from multikernel.kernels import RBF, Linear, OutputKernels
    >>> X, y = np.repeat(np.eye(3), 4, axis=0), np.repeat(["cat", "dog", "oak"], 4)
    >>> animals = {"cat": [1.0], "dog": [1.0], "oak": [-1.0]}
    >>> kernels = [np.eye(3), ("animal", (Linear(), animals))]
    >>> outputs = OutputKernels(kernels, pairs=[(0, 0), ("rbf(gamma=1)", "animal")])
    >>> model = MKLClassifier([Linear(), RBF(gamma=1.0)], multiclass="joint", output_kernels=outputs).fit(X, y)
    >>> model.kernel_names_
    ['linear x identity', 'rbf(gamma=1) x animal']
    """

    kernels: Sequence[Any]
    pairs: Sequence[tuple[Any, Any]] | None = None
    classes: Sequence[Any] | None = None


def pairwise_output_kernels(n_classes: int) -> np.ndarray:
    """Return the family of Zien & Ong 2007, 3.4: two kernels for every two classes u and v.

    They are z z' with z = e_u + e_v and with z = e_u - e_v: zero but in the rows and columns u and v, with ones on the
    diagonal and 1 or -1 off it. Weighted sums of them span a large part of all kernels on the classes.

    Parameters
    ----------
    n_classes : int
        Number c of classes, at least two.

    Returns
    -------
    ndarray of shape (c (c - 1), c, c)
        The pairs in lexicographic order, each with +1 and then with -1.

    Examples
    --------
    >>> from multikernel.kernels import pairwise_output_kernels
    >>> pairwise_output_kernels(2)
    array([[[ 1.,  1.],
            [ 1.,  1.]],
    <BLANKLINE>
           [[ 1., -1.],
            [-1.,  1.]]])
    >>> pairwise_output_kernels(5).shape
    (20, 5, 5)
    """
    if not is_integer(n_classes) or n_classes < 2:
        raise ValueError(
            "The 'n_classes' parameter of pairwise_output_kernels must be an integer of at least 2. "
            f"Got {n_classes!r} instead."
        )
    eye = np.eye(n_classes)
    u, v = np.triu_indices(n_classes, 1)
    vectors = np.stack([eye[u] + eye[v], eye[u] - eye[v]], axis=1).reshape(-1, n_classes)
    return vectors[:, :, None] * vectors[:, None, :]


@dataclass(frozen=True, eq=False)
class ClassKernels:
    """Kernels on the classes of one fit.

    Attributes
    ----------
    names : list of str
        Names of the pairs, "input x output".
    matrices : ndarray of shape (m, c, c)
        The kernels on the classes.
    pairs : ndarray of int, shape (P, 2)
        Numbers of the kernel on the samples and of the kernel on the classes.
    n_inputs : int
        Number of kernels on the samples.
    """

    names: list[str]
    matrices: np.ndarray
    pairs: np.ndarray
    n_inputs: int

    @property
    def trivial(self) -> bool:
        """Whether the identity is the only kernel on the classes, paired with every kernel on the samples in order."""
        one = len(self.matrices) == 1 and np.array_equal(self.matrices[0], np.eye(len(self.matrices[0])))
        return one and np.array_equal(self.pairs[:, 0], np.arange(self.n_inputs))

    def products(self, gram: Gram) -> Gram:
        """Return the products with the kernels of a Gram."""
        if self.trivial:
            return gram
        if not isinstance(gram, HostGram):
            raise TypeError(f"Products with kernels on the classes need a HostGram. Got {type(gram).__name__} instead.")
        return ProductGram(gram, self.matrices, self.pairs)

    def mixed(self, beta: np.ndarray) -> np.ndarray:
        """Return sum_m beta_km Y_m for every kernel k on the samples, shape (n_inputs, c, c)."""
        out = np.zeros((self.n_inputs, *self.matrices.shape[1:]))
        for b, (k, m) in zip(beta, self.pairs, strict=True):
            if b:
                out[k] += b * self.matrices[m]
        return out

    def by_input(self, curvature: np.ndarray) -> np.ndarray:
        """Return for each kernel on the samples the least curvature of its pairs over the largest eigenvalue of Y."""
        largest = np.linalg.eigvalsh(self.matrices)[:, -1][self.pairs[:, 1]]
        out = np.full(self.n_inputs, np.inf)
        np.minimum.at(out, self.pairs[:, 0], np.where(largest > 0, curvature / np.where(largest > 0, largest, 1), 0.0))
        return out


def class_kernels(spec: Any, classes: np.ndarray, inputs: Sequence[str], owner: str) -> ClassKernels:
    """Make what the user wrote into matrices on the classes in training, or raise one sentence.

    Parameters
    ----------
    spec : sequence or OutputKernels
        What the user wrote.
    classes : ndarray of shape (c,)
        The classes in training, sorted.
    inputs : sequence of str
        Names of the kernels on the samples.
    owner : str
        Name of the estimator.
    """
    who = f"The 'output_kernels' parameter of {owner} must"
    if not isinstance(spec, OutputKernels):
        spec = OutputKernels(spec)
    if not len(spec.kernels):
        raise ValueError(f"{who} hold at least one kernel on the classes. Got none.")
    rows = _rows(spec.classes, classes, who)
    names: list[str] = []
    matrices = []
    for entry in spec.kernels:
        name = None
        if isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str):
            name, entry = entry
        label = repr(name) if name is not None else f"number {len(names)}"
        Y = _matrix(entry, classes, rows, f"{who} hold kernels on the classes", label)
        Y = _checked(Y, len(classes), label, who)
        names.append(_unique(name or _name(entry, Y, len(names)), names))
        matrices.append(Y)
    if not any(np.ptp(Y - Y[0]) > _ROUNDING * np.abs(Y).max() for Y in matrices):
        raise ValueError(f"{who} hold a matrix that tells two classes apart. Got only matrices of equal rows.")
    pairs = _pairs(spec.pairs, inputs, names, who)
    joined = [f"{inputs[k]} x {names[m]}" for k, m in pairs]
    return ClassKernels(joined, np.array(matrices), np.array(pairs, np.intp), len(inputs))


def embed_classes(K: np.ndarray) -> np.ndarray:
    """Return one point for each class, with the distances that a kernel on the classes gives, (c, c - 1).

    The centred kernel is V diag(l) V', and the points are V sqrt(l): principal coordinates, the longest axis first,
    with the largest entry of each axis positive.

    Examples
    --------
    >>> import numpy as np
    >>> np.abs(embed_classes(np.diag([2.0, 2.0]))).round(3)
    array([[1.],
           [1.]])
    """
    means = K.mean(axis=0)
    values, vectors = np.linalg.eigh(K - means - means[:, None] + means.mean())
    order = np.argsort(values)[::-1][: len(K) - 1]
    axes = vectors[:, order] * np.sqrt(np.maximum(values[order], 0.0))
    return axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(len(order))] < 0, -1.0, 1.0)


def _rows(given: Sequence[Any] | None, classes: np.ndarray, who: str) -> np.ndarray | None:
    """Positions of the classes in training among those given, None for the classes in training themselves."""
    if given is None:
        return None
    known = {label: at for at, label in enumerate(given)}
    missing = [label for label in classes.tolist() if label not in known]
    if missing or len(known) < len(given):
        got = f"none for {missing[0]!r}" if missing else "one label twice"
        raise ValueError(f"{who} name every class once in 'classes'. Got {got}.")
    return np.array([known[label] for label in classes.tolist()])


def _matrix(entry: Any, classes: np.ndarray, rows: np.ndarray | None, who: str, label: str) -> np.ndarray:
    """The matrix of an entry on the classes in training."""
    if isinstance(entry, tuple) and len(entry) == 2:
        return _evaluate(entry[0], _attributes(entry[1], classes, rows, who, label), who, label)
    if isinstance(entry, Kernel) or callable(entry):
        numbers = classes.dtype.kind in "biuf"
        return _evaluate(entry, classes[:, None].astype(float) if numbers else classes.tolist(), who, label)
    try:
        Y = _numbers(entry)
    except (TypeError, ValueError):
        shown = "complex numbers" if np.iscomplexobj(entry) else repr(entry)
        raise ValueError(f"{who} as matrices, kernels or (kernel, attributes). Got {shown} as {label}.") from None
    if rows is not None and Y.ndim == 2 and Y.shape[0] == Y.shape[1] > rows.max():
        Y = Y[np.ix_(rows, rows)]
    return Y


def _numbers(given: Any) -> np.ndarray:
    """Return real numbers as a fresh array; complex ones are an error, not their real parts."""
    if np.iscomplexobj(given):
        raise TypeError
    return np.array(given, float)


def _attributes(given: Any, classes: np.ndarray, rows: np.ndarray | None, who: str, label: str) -> np.ndarray:
    """Rows of numbers, one for each class in training."""
    if isinstance(given, Mapping):
        missing = [each for each in classes.tolist() if each not in given]
        if missing:
            raise ValueError(f"{who} with attributes of every class. Got none for {missing[0]!r} in {label}.")
        given = [np.ravel(given[each]) for each in classes.tolist()]
    try:
        table = _numbers(given)
    except (TypeError, ValueError):
        raise ValueError(
            f"{who} with attributes that are vectors of real numbers, all of one length. Got others in {label}."
        ) from None
    table = table[:, None] if table.ndim == 1 else table
    if rows is not None and len(table) > rows.max():
        table = table[rows]
    if table.ndim != 2 or len(table) != len(classes) or not np.isfinite(table).all():
        got = f"shape {table.shape}" if np.isfinite(table).all() else "NaN or infinity"
        raise ValueError(
            f"{who} with a row of finite attributes for each of {len(classes)} classes. Got {got} in {label}."
        )
    return table


def _evaluate(kernel: Any, over: Any, who: str, label: str) -> np.ndarray:
    try:
        own = clone(as_kernel(kernel))
        return own.fit(over)(over)
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"{who} that can be evaluated on class labels or on attributes given as (kernel, attributes). "
            f"Got {kernel!r} as {label}, which says: {error}"
        ) from error


def _checked(Y: np.ndarray, c: int, label: str, who: str) -> np.ndarray:
    """Return a symmetric positive semidefinite matrix, or raise."""
    if Y.shape != (c, c):
        raise ValueError(
            f"{who} hold matrices of shape ({c}, {c}), a row for each class of y. Got shape {Y.shape} in {label}; "
            "OutputKernels(..., classes=...) says which class each row is."
        )
    if not np.isfinite(Y).all():
        raise ValueError(f"{who} hold finite numbers. Got NaN or infinity in {label}.")
    size, wrong = np.abs(Y).max(), np.abs(Y - Y.T).max()
    if wrong > _ROUNDING * size:
        raise ValueError(f"{who} hold symmetric matrices. Got entries that differ by {wrong:.3g} in {label}.")
    Y = 0.5 * (Y + Y.T)
    least = float(np.linalg.eigvalsh(Y)[0])
    if least < -_ROUNDING * size:
        raise ValueError(f"{who} hold positive semidefinite matrices. Got the eigenvalue {least:.3g} in {label}.")
    return Y


def _name(entry: Any, Y: np.ndarray, number: int) -> str:
    if isinstance(entry, tuple):
        entry = entry[0]
    if isinstance(entry, Kernel) or callable(entry):
        return kernel_name(entry)
    return "identity" if np.array_equal(Y, np.eye(len(Y))) else f"classes{number}"


def _unique(name: str, taken: Sequence[str]) -> str:
    if name not in taken:
        return name
    number = 2
    while f"{name} ({number})" in taken:
        number += 1
    return f"{name} ({number})"


def _pairs(given: Any, inputs: Sequence[str], outputs: Sequence[str], who: str) -> list[tuple[int, int]]:
    """Numbers of the kernels of each pair."""
    if given is None:
        return [(k, m) for k in range(len(inputs)) for m in range(len(outputs))]
    pairs: list[tuple[int, int]] = []
    for pair in given:
        if not isinstance(pair, (tuple, list, np.ndarray)) or len(pair) != 2:
            raise ValueError(f"{who} have 'pairs' of an input and an output kernel. Got {pair!r} instead.")
        pairs.append((_position(pair[0], inputs, "input", who), _position(pair[1], outputs, "output", who)))
    if not pairs or len(set(pairs)) < len(pairs):
        raise ValueError(f"{who} have 'pairs' that name each product once. Got {'one twice' if pairs else 'none'}.")
    return pairs


def _position(key: Any, names: Sequence[str], side: str, who: str) -> int:
    if isinstance(key, str) and key in names:
        return list(names).index(key)
    if is_integer(key) and 0 <= key < len(names):
        return int(key)
    listed = ", ".join(repr(name) for name in list(names)[:8])
    raise ValueError(
        f"{who} have 'pairs' of numbers below {len(names)} or names for the {side} kernels ({listed}). "
        f"Got {key!r} instead."
    )
