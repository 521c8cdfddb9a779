"""Discriminant analysis in a learned mix of kernels; see docs/losses.md for the problem that is solved."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.metrics import pairwise_distances_chunked

from multikernel.estimators.classes import ClassifierFace
from multikernel.estimators.docstrings import documented
from multikernel.estimators.validation import Samples, check_classes, check_parameters, one_of
from multikernel.machines.ridge import Ridge
from multikernel.mixing.base import NEGLIGIBLE
from multikernel.training.core import Fit, Prepared
from multikernel.training.publish import Model
from multikernel.training.targets import costs_in_range, one_problem


@documented
class DiscriminantMKLClassifier(TransformerMixin, ClassifierFace):
    """Regularised kernel discriminant analysis that learns the weights of its kernels.

    With P the centring, H the class indicators H_ij = sqrt(n / n_j) - sqrt(n_j / n) for y_i = j and -sqrt(n_j / n)
    otherwise, it solves [1]_

        min over theta >= 0, sum_k theta_k tr(P K_k P) = 1     tr H' (lambda I + sum_k theta_k P K_k P)^-1 H,

    which is twice the least squares problem of `MKLClassifier` without intercepts, on the kernels
    P K_k P / tr(P K_k P), with targets H, C = 1 / (2 lambda) and weights beta_k = theta_k tr(P K_k P) on the simplex.

    Parameters
    ----------
    <kernels>
    reg : float, default=1e-3
        lambda; the mix of kernels it is added to has trace one.
    norm : float, default=1.0
        Norm of the weights beta; 1 is the problem above.
    prediction : {"centroid", "neighbors"}, default="centroid"
        Whether a sample gets the class whose mean is nearest in the discriminant space, or that of most of its
        nearest training samples there.
    n_neighbors : int, default=5
        Number of neighbours.
    normalize : None, "cosine", "variance" or list of these, default=None
        Scaling of every kernel before it is centred and divided by its trace.
    <psd, solver, tol, max_iter, gram, memory_limit, verbose, n_jobs, callback, checkpoint>

    Attributes
    ----------
    <classes_>
    weights_ : ndarray of shape (p,)
        Kernel weights beta, of sum one.
    theta_ : ndarray of shape (p,)
        The same as factors of the centred kernels, beta_k / tr(P K_k P); with sample weights the trace is weighted.
    objective_, dual_objective_ : float
        Value of the criterion at the model, and a lower bound on its optimum.
    duality_gap_ : float
        Their relative distance.
    discriminant_ratios_ : ndarray of shape (d,)
        Ratios of the variance between classes to the regularised total variance along the discriminant directions,
        the largest first, d at most the number of classes less one.
    centroids_ : ndarray of shape (n_classes, d)
        Means of the classes in the discriminant space.
    <kernel_names_, kernel_contributions_, dual_coef_, support_>
    n_iter_, status_, history_, solver_, gram_, model_, n_features_in_
        As in `MKLClassifier`.

    References
    ----------
    .. [1] J. Ye, S. Ji, J. Chen, Multi-class discriminant kernel learning via convex programming, JMLR 9:719-758, 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import DiscriminantMKLClassifier
    >>> from multikernel.kernels import RBF, Linear
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1, 2], 30)
    >>> X = rng.normal(size=(90, 4)) + 4 * np.eye(4)[y]
    >>> kernels = [("useful", Linear(), [0, 1, 2]), ("noise", RBF(), [3])]
    >>> model = DiscriminantMKLClassifier(kernels).fit(X, y)
    >>> model.transform(X).shape, bool(model.duality_gap_ <= 1e-3), model.score(X, y) > 0.9
    ((90, 2), True, True)
    """

    def __init__(
        self,
        kernels="rbf",
        *,
        reg=1e-3,
        norm=1.0,
        prediction="centroid",
        n_neighbors=5,
        normalize=None,
        psd="error",
        solver="auto",
        tol=1e-3,
        max_iter=500,
        gram="auto",
        memory_limit=None,
        verbose=0,
        n_jobs=None,
        callback=None,
        checkpoint=None,
    ):
        self._store(locals())

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # least squares of few samples are solved far below tol
        tags.expected_failed_checks = {}
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DiscriminantMKLClassifier:
        """Learn the weights of the kernels and the discriminant directions.

        <fit>
        """
        check_parameters(self, prediction=one_of("centroid", "neighbors"))
        samples = check_classes(self, X, y, sample_weight)
        weight = samples.ones

        def machine(prepared: Prepared) -> Ridge:
            # divided by their mean diagonal the kernels have trace n, not one: lambda becomes n lambda
            with np.errstate(over="ignore"):
                cost = 0.5 * (weight / weight.sum()) / self.reg
            cost = costs_in_range(type(self).__name__, cost, prepared.unit, what="the sample weights over 2 'reg'")[0]
            return Ridge(indicators(samples.codes, weight), cost)

        # centred, and divided by the trace, after what the user asks for
        steps = [step for step in np.ravel(self.normalize) if step is not None]
        settings = self._settings(normalize=[*steps, "center", "trace"])
        return self._learn(samples, one_problem(machine, self.norm, "discriminant", balanced=False), settings)

    def _set(self, model: Model, fit: Fit, samples: Samples) -> None:
        super()._set(model, fit, samples)
        solution, weight = fit.solutions[0], samples.ones
        n = float(weight.sum())
        for name in ("objective_", "dual_objective_"):
            setattr(self, name, 2.0 * n * model.attributes[name])
        self.theta_ = solution.weights * [normalizer.scale / n for normalizer in fit.prepared.normalizers]
        outputs = np.tensordot(solution.weights, solution.outputs, 1)
        self._rotation, self.discriminant_ratios_ = directions(indicators(samples.codes, weight), outputs, weight)
        Z = outputs @ self._rotation
        members = weight[:, None] * (samples.codes[:, None] == np.arange(len(self.classes_)))
        self.centroids_ = members.T @ Z / members.sum(axis=0)[:, None]
        self._neighbors = (Z, members) if self.prediction == "neighbors" else None

    def transform(self, X: Any) -> np.ndarray:
        """Return the samples in the discriminant space.

        <samples>

        Returns
        -------
        ndarray of shape (n_samples, d)
            Coordinates along the discriminant directions, the most telling first.
        """
        return self._outputs(X) @ self._rotation

    def decision_function(self, X: Any) -> np.ndarray:
        """Return how near each sample is to each class in the discriminant space.

        <samples>

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Minus half the squared distance to the mean of each class, or its share of the neighbours. Two classes:
            the difference of the second and the first.
        """
        Z = self.transform(X)
        if self._neighbors is not None:
            shares = neighbor_shares(Z, *self._neighbors, self.n_neighbors)
            return shares[:, 1] - shares[:, 0] if len(self.classes_) == 2 else shares
        scores = Z @ self.centroids_.T - 0.5 * np.sum(self.centroids_**2, axis=1)
        if len(self.classes_) == 2:
            return scores[:, 1] - scores[:, 0]
        return scores - 0.5 * np.sum(Z**2, axis=1)[:, None]


def indicators(codes: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return H: sqrt(n / n_j) - sqrt(n_j / n) for the class of a sample, -sqrt(n_j / n) for the others.

    Parameters
    ----------
    codes : ndarray of int
        Numbers of the classes.
    weight : ndarray
        Weights of the samples, whose sums are n and n_j.

    Examples
    --------
    >>> import numpy as np
    >>> indicators(np.array([0, 0, 0, 1]), np.ones(4)).round(3)[2:]
    array([[ 0.289, -0.5  ],
           [-0.866,  1.5  ]])
    """
    counts = np.bincount(codes, weight)
    n = counts.sum()
    return np.sqrt(n / counts) * (codes[:, None] == np.arange(len(counts))) - np.sqrt(counts / n)


def neighbor_shares(Z: np.ndarray, train: np.ndarray, members: np.ndarray, count: int) -> np.ndarray:
    """Return the share of each class among the nearest training samples, those of total weight ``count``.

    Parameters
    ----------
    Z, train : ndarrays of shape (m, d) and (n, d)
        Samples and training samples.
    members : ndarray of shape (n, n_classes)
        Weight of each training sample in the column of its class.
    count : int
        Number of neighbours.

    Examples
    --------
    >>> import numpy as np
    >>> neighbor_shares(np.array([[0.0]]), np.array([[1.0], [-2.0], [5.0]]), np.array([[0, 1], [1, 0], [0, 1]]), 2)
    array([[0.5, 0.5]])
    """
    weight = members.sum(axis=1)
    total = min(float(count), float(weight.sum()))

    def shares(distances, _):
        order = np.argsort(distances, axis=1, kind="stable")
        before = np.cumsum(weight[order], axis=1) - weight[order]
        # the last one counts as far as it is needed
        taken = np.clip(total - before, 0.0, weight[order]) / weight[order]
        return np.einsum("ij,ijc->ic", taken, members[order].astype(float)) / total

    return np.concatenate(list(pairwise_distances_chunked(Z, train, reduce_func=shares, working_memory=64)))


def directions(H: np.ndarray, outputs: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rotation of the outputs to discriminant coordinates, and the ratio of each.

    With M the mix of centred kernels the outputs are M A = M (lambda I + M)^-1 H, and R = H' M (lambda I + M)^-1 H / n
    holds what the classes share with the total variance: its eigenvectors V are the directions, its eigenvalues the
    ratios, and V / sqrt(ratio) gives coordinates of regularised total variance one.
    """
    R = H.T @ (weight[:, None] * outputs) / weight.sum()
    ratios, V = np.linalg.eigh(0.5 * (R + R.T))
    ratios, V = ratios[::-1], V[:, ::-1]
    kept = np.flatnonzero(ratios[: len(R) - 1] > NEGLIGIBLE * max(float(ratios[0]), 1e-300))
    V = V[:, kept]
    # the largest entry of each direction is positive: signs do not depend on the library
    V = V * np.sign(V[np.argmax(np.abs(V), axis=0), np.arange(V.shape[1])])
    return V / np.sqrt(ratios[kept]), ratios[kept]
