"""
A large weight is no importance
===============================

Three numbers about the same three groups of columns: the weight, the contribution, and the drop of the
cross-validated accuracy when the group is left out. They need not agree. Beside them, the same with shuffled labels:
the weights still prefer one group, but nothing can be predicted, and only the third number says so.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from multikernel import MKLClassifier
from multikernel.inspection import view_importance

X, y = load_breast_cancer(return_X_y=True)
X, y = X[:300] / X.std(axis=0), y[:300]
kernels = [("mean", "rbf", slice(0, 10)), ("error", "rbf", slice(10, 20)), ("worst", "rbf", slice(20, 30))]
labels = {"true labels": y, "shuffled labels": np.random.default_rng(0).permutation(y)}

fig, axes = plt.subplots(1, 2, figsize=(9, 3.5), sharey=True, layout="constrained")
for ax, (title, target) in zip(axes, labels.items(), strict=True):
    found = view_importance(MKLClassifier(kernels), X, target, n_bootstraps=0)
    places = np.arange(3)
    ax.bar(places - 0.27, found.weight, 0.25, label="weight")
    ax.bar(places, found.contribution, 0.25, label="contribution")
    ax.bar(places + 0.27, found.drop, 0.25, label="drop in accuracy without it")
    guess = max(np.mean(target), 1 - np.mean(target))
    ax.set(title=f"{title}: accuracy {found.score:.2f}, guessing {guess:.2f}", xticks=places, xticklabels=found.names)
    ax.axhline(0, color="black", linewidth=0.8)
axes[0].legend()
plt.show()
