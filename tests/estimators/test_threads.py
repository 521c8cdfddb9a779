"""The number of threads changes the time of a fit and of a prediction, and no bit of their results."""

import numpy as np
import pytest

from multikernel import M3KClassifier, MKLClassifier, MKLOneClass, MKLRegressor
from multikernel.kernels import RBF, Linear, RandomFourier

WIDTHS = [RBF(factor=factor) for factor in (0.5, 1.0, 2.0)]


def drawn(n=700, classes=2):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, 6))
    z = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.3 * rng.standard_normal(n)
    return X, np.digitize(z, np.arange(1, classes) - 0.3)


@pytest.mark.parametrize(
    ("model", "classes"),
    [
        (MKLClassifier(WIDTHS), 2),
        (MKLClassifier(WIDTHS, norm=np.inf, C=100.0), 2),
        (MKLClassifier([*WIDTHS, Linear()], normalize=["center", "cosine"], norm=2.0), 2),
        (MKLClassifier(WIDTHS, loss="logistic", gram="lazy"), 2),
        (MKLClassifier(WIDTHS), 3),
        (M3KClassifier(WIDTHS), 3),
        (MKLRegressor(WIDTHS, loss="squared"), 3),
        (MKLOneClass(WIDTHS), 3),
        (MKLClassifier([RandomFourier(n_features=50), Linear()], gram="features"), 2),
    ],
)
def test_results_have_the_same_bits_for_every_number_of_threads(model, classes):
    X, y = drawn(classes=classes)
    found = []
    for n_jobs in (1, 2, 5):
        fitted = model.set_params(n_jobs=n_jobs).fit(X, y)
        outputs = fitted.decision_function(X) if hasattr(fitted, "decision_function") else fitted.predict(X)
        found.append((fitted.weights_, fitted.objective_, fitted.duality_gap_, outputs))
    for other in found[1:]:
        for first, again in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(first, again)
