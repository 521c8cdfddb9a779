"""Discriminant analysis with learned kernels: the criterion by its own formula, its optimum by a conic solver."""

from __future__ import annotations

import numpy as np
import pytest
from reference_losses import conic_loss
from sklearn.datasets import load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from multikernel import DiscriminantMKLClassifier, stack_kernels
from multikernel.kernels import RBF, Linear


def wine():
    X, y = load_wine(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def kernels_on(X):
    def square(A):
        return np.sum((A[:, None] - A[None]) ** 2, axis=2)

    first, rest = np.exp(-square(X[:, :6]) / 4), np.exp(-square(X[:, 6:]) / 4)
    return np.array([first, rest, X @ X.T + 3.0, np.outer(X[:, 0], X[:, 0])])


def indicators(y):
    n, counts = len(y), np.bincount(y)
    H = np.tile(-np.sqrt(counts / n), (n, 1))
    H[np.arange(n), y] += np.sqrt(n / counts[y])
    return H


def criterion(stack, y, theta, reg):
    n = len(y)
    P = np.eye(n) - 1.0 / n
    M = sum(t * P @ K @ P for t, K in zip(theta, stack, strict=True))
    H = indicators(y)
    return float(np.trace(H.T @ np.linalg.solve(reg * np.eye(n) + M, H)))


@pytest.mark.parametrize("reg", [1e-4, 1e-2])
def test_the_objective_is_the_criterion(reg):
    X, y = wine()
    stack = kernels_on(X)
    model = DiscriminantMKLClassifier("precomputed", reg=reg, tol=1e-8).fit(stack_kernels(stack), y)
    assert model.objective_ == pytest.approx(criterion(stack, y, model.theta_, reg), rel=1e-7)
    n = len(y)
    P = np.eye(n) - 1.0 / n
    traces = np.array([np.trace(P @ K @ P) for K in stack])
    assert model.theta_ @ traces == pytest.approx(1.0)
    assert model.theta_ * traces == pytest.approx(model.weights_)


def test_the_optimum_of_a_conic_solver():
    X, y = wine()
    pick = np.r_[0:15, 70:85, 140:155]
    X, y, reg = X[pick], y[pick], 1e-2
    stack, n = kernels_on(X), len(y)
    P = np.eye(n) - 1.0 / n
    centred = np.array([P @ K @ P / np.trace(P @ K @ P) for K in stack])
    # 1/2 tr H' (lambda I + sum beta K)^-1 H is least squares with C = 1 / (2 lambda)
    value = conic_loss(centred, indicators(y), 0.5 / reg, 1.0, "squared")
    for solver in ("auto", "silp", "level"):
        model = DiscriminantMKLClassifier("precomputed", reg=reg, tol=1e-6, solver=solver).fit(stack_kernels(stack), y)
        assert model.objective_ == pytest.approx(2 * value, rel=1e-5)
        assert model.dual_objective_ <= 2 * value * (1 + 1e-7)


def test_one_linear_kernel_is_discriminant_analysis():
    X, y = load_iris(return_X_y=True)
    ours = DiscriminantMKLClassifier([Linear()], reg=1e-7, tol=1e-6).fit(X, y)
    Z = LinearDiscriminantAnalysis(solver="eigen").fit(X, y).transform(X)
    for ours_column, theirs in zip(ours.transform(X).T, Z.T, strict=True):
        assert abs(np.corrcoef(ours_column, theirs)[0, 1]) == pytest.approx(1.0, abs=1e-4)
    assert np.all(np.diff(ours.discriminant_ratios_) < 0)


def test_coordinates_have_regularised_total_variance_one():
    X, y = wine()
    reg = 1e-3
    model = DiscriminantMKLClassifier([RBF(0.1)], reg=reg, tol=1e-9).fit(X, y)
    Z = model.transform(X)
    assert np.abs(Z.mean(axis=0)).max() < 1e-9
    # what is missing to one is lambda times the squared length of the direction
    assert np.all(np.mean(Z**2, axis=0) < 1.0)
    means = np.array([Z[y == c].mean(axis=0) for c in range(3)])
    assert model.centroids_ == pytest.approx(means, abs=1e-9)
    assert model.predict(X).tolist() == np.argmin([np.sum((Z - m) ** 2, axis=1) for m in means], axis=0).tolist()


@pytest.mark.parametrize("prediction", ["centroid", "neighbors"])
def test_predicts_held_out_samples(prediction):
    X, y = wine()
    model = DiscriminantMKLClassifier(prediction=prediction).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.9
    assert model.transform(X[1::2]).shape == (89, 2)


def test_two_classes_have_one_direction():
    X, y = wine()
    names = np.array(["no", "yes"])[(y == 1).astype(int)]
    model = DiscriminantMKLClassifier().fit(X, names)
    assert model.transform(X).shape == (178, 1)
    assert np.array_equal(model.predict(X), np.where(model.decision_function(X) > 0, "yes", "no"))


def test_weights_count_as_repetitions():
    X, y = wine()
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    once = DiscriminantMKLClassifier([RBF(0.1), Linear()], tol=1e-9).fit(X, y, sample_weight=weight)
    often = DiscriminantMKLClassifier([RBF(0.1), Linear()], tol=1e-9)
    often.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert once.objective_ == pytest.approx(often.objective_, rel=1e-6)
    assert once.transform(X) == pytest.approx(often.transform(X), abs=1e-3)


@pytest.mark.parametrize(
    ("parameter", "value", "sentence"),
    [
        ("reg", 0.0, "The 'reg' parameter of DiscriminantMKLClassifier must be a positive number. Got 0.0 instead."),
        ("prediction", "svm", "must be 'centroid' or 'neighbors'. Got 'svm' instead."),
        ("n_neighbors", 0, "must be a positive integer. Got 0 instead."),
    ],
)
def test_bad_parameters(parameter, value, sentence):
    X, y = wine()
    with pytest.raises(ValueError, match=sentence):
        DiscriminantMKLClassifier(**{parameter: value}).fit(X, y)
