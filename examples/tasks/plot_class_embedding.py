"""
Which classes resemble each other
=================================

Kernels on the classes let what is learned for one class help those that resemble it. ``pairwise_output_kernels``
offers one for every pair of classes, and the learned mix places the classes on a map: here the digits. Classes that
are hard to tell apart are moved apart.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from multikernel import MKLClassifier
from multikernel.inspection import ClassEmbeddingDisplay
from multikernel.kernels import RBF, pairwise_output_kernels

X, y = load_digits(return_X_y=True)
rows = np.random.default_rng(0).permutation(len(y))
train, test = rows[:250], rows[250:800]
kernels = pairwise_output_kernels(10)
model = MKLClassifier([RBF()], C=10.0, multiclass="joint", output_kernels=kernels).fit(X[train], y[train])
print(f"{len(model.weights_)} kernels, accuracy on new digits {model.score(X[test], y[test]):.3f}")

# %%
fig, ax = plt.subplots(figsize=(5, 4.5), layout="constrained")
ClassEmbeddingDisplay.from_estimator(model, ax=ax)
plt.show()
