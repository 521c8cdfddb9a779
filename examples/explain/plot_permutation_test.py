"""
Is there anything to learn?
===========================

Before a weight is read, a question: does the model predict better than chance? The labels are permuted many times, and
the model is scored on each. Above, real labels of two wines that are easy to tell apart; below, labels drawn at random.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from multikernel import MKLClassifier
from multikernel.inspection import permutation_test

X, y = load_wine(return_X_y=True)
X, y = StandardScaler().fit_transform(X)[y < 2][::2], y[y < 2][::2]
labels = {"real labels": y, "labels drawn at random": np.random.default_rng(1).integers(0, 2, len(y))}

fig, axes = plt.subplots(2, 1, figsize=(6, 4.5), sharex=True, layout="constrained")
for ax, (title, target) in zip(axes, labels.items(), strict=True):
    test = permutation_test(MKLClassifier("rbf"), X, target, n_permutations=49, random_state=0)
    print(f"{title}: {test}")
    ax.hist(test.permuted, bins=np.linspace(0.2, 1, 33), color="0.7", label="permuted labels")
    ax.axvline(test.score, color="tab:blue", label="these labels")
    ax.set(title=f"{title}: p = {test.p_value:.2f}", ylabel="permutations")
axes[0].legend()
axes[1].set_xlabel("cross-validated accuracy")
plt.show()
