"""
Kernels of your own
===================

Whatever says how alike two samples are can be a kernel: here a function that compares two pictures of digits after a
shift by one pixel in each direction and keeps the best match, beside two kernels of the library. ``stack_kernels`` puts
matrices under names; the stack goes through scikit-learn's tools like any X.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score

from multikernel import MKLClassifier, stack_kernels
from multikernel.kernels import RBF, Linear

X, y = load_digits(return_X_y=True)
X, y = X[:150] / 16, y[:150]
pictures = np.pad(X.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))


def best_match(pictures):
    """Return the largest inner product over shifts by at most one pixel."""
    flat = pictures.reshape(len(pictures), -1)
    shifts = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1)]
    products = [flat @ np.roll(pictures, shift, axis=(1, 2)).reshape(len(flat), -1).T for shift in shifts]
    return np.max(products, axis=0)


kernels = {"linear": Linear()(X), "rbf": RBF(gamma=0.5)(X), "shifted": best_match(pictures)}
K = stack_kernels(kernels)

# %%
# The best match need not be positive semidefinite. The library says so and repairs it when asked: ``psd="clip"`` sets
# negative eigenvalues to zero.
try:
    MKLClassifier("precomputed").fit(K, y)
except ValueError as error:
    print(error)

settings = {"psd": "clip", "normalize": ["center", "cosine"], "norm": 2}
scores = {}
for place, name in enumerate(kernels):
    scores[name] = cross_val_score(MKLClassifier("precomputed", **settings), K.take_kernels([place]), y, cv=3)
scores["all three"] = cross_val_score(MKLClassifier("precomputed", **settings), K, y, cv=3)

fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
for place, values in enumerate(scores.values()):
    ax.plot(values, np.full(3, place), "o", color=f"C{place}", alpha=0.6)
    ax.plot(values.mean(), place, "|", markersize=24, color=f"C{place}")
ax.set(yticks=range(len(scores)), yticklabels=list(scores), xlabel="accuracy in three folds, with the mean")
plt.show()
