"""
Single kernels, their sum, and the learned mix
==============================================

The picture of Zien and Ong 2007, Figure 2, for the digits: the accuracy of each kernel alone, of the plain sum and of
the learned mix, with the weights below. The kernels are Gaussian, one for each row and each column of the picture.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from multikernel import MKLClassifier
from multikernel.kernels import RBF

X, y = load_digits(return_X_y=True)
rows = np.random.default_rng(0).permutation(len(y))
train, test = rows[:300], rows[300:900]
cells = np.arange(64).reshape(8, 8)
kernels = [(f"row {i}", RBF(), cells[i].tolist()) for i in range(8)]
kernels += [(f"column {i}", RBF(), cells[:, i].tolist()) for i in range(1, 7)]
names = [name for name, _, _ in kernels]


def accuracy(kernels, **settings):
    """Return the accuracy on new digits, and the model."""
    model = MKLClassifier(kernels, C=10.0, **settings).fit(X[train], y[train])
    return model.score(X[test], y[test]), model


single = [accuracy([kernel])[0] for kernel in kernels]
plain_sum, _ = accuracy(kernels, norm=np.inf)
learned, model = accuracy(kernels, norm=2)

# %%
fig, (ax, below) = plt.subplots(2, 1, figsize=(8, 5), sharex=True, height_ratios=[2, 1], layout="constrained")
ax.bar(names, single, color="0.6", label="one kernel alone")
ax.axhline(plain_sum, color="tab:orange", linestyle="--", label=f"plain sum, {plain_sum:.3f}")
ax.axhline(learned, color="tab:blue", label=f"learned mix, {learned:.3f}")
ax.set(ylabel="accuracy", ylim=(0, 1.05))
ax.legend(loc="lower right")
below.bar(names, model.weights_, color="tab:blue")
below.set_ylabel("weight")
below.tick_params(axis="x", rotation=90)
plt.show()
