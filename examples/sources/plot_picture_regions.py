"""
Which part of a picture decides
===============================

One kernel for each of sixteen patches of two by two pixels. With norm 1 the model is asked to find few patches that
suffice; the map shows where they are for three pairs of digits.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from multikernel import MKLClassifier
from multikernel.kernels import RBF, per_group

X, y = load_digits(return_X_y=True)
positions = np.arange(64).reshape(8, 8)
patches = {
    f"rows {r}-{r + 1}, columns {c}-{c + 1}": positions[r : r + 2, c : c + 2].ravel().tolist()
    for r in range(0, 8, 2)
    for c in range(0, 8, 2)
}

fig, axes = plt.subplots(2, 3, figsize=(7.5, 5), layout="constrained")
for (one, other), (above, below) in zip([(1, 7), (3, 8), (4, 9)], axes.T, strict=True):
    chosen = np.flatnonzero((y == one) | (y == other))[:240]
    model = MKLClassifier(per_group(RBF(), patches), C=1.0).fit(X[chosen], y[chosen])
    difference = X[chosen][y[chosen] == one].mean(axis=0) - X[chosen][y[chosen] == other].mean(axis=0)
    above.imshow(difference.reshape(8, 8), cmap="PuOr", vmin=-16, vmax=16)
    above.set(title=f"mean {one} less mean {other}", xticks=[], yticks=[])
    below.imshow(np.kron(model.weights_.reshape(4, 4), np.ones((2, 2))), cmap="cividis", vmin=0)
    below.set(title=f"{np.count_nonzero(model.weights_)} of 16 patches", xticks=[], yticks=[])
axes[1, 0].set_ylabel("weight")
plt.show()
