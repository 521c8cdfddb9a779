"""
Which width? Several at once
============================

Two nested stars, drawn at random, at growing distance. A narrow kernel suits stars that nearly
touch, a wide one stars far apart. Four widths are given at once, and the weights follow the distance, as in Figure 1 of
Sonnenburg, Raetsch and Schaefer 2005.
"""

import matplotlib.pyplot as plt
import numpy as np

from multikernel import MKLClassifier
from multikernel.datasets import make_stars
from multikernel.kernels import rbf_family

widths = [0.01, 0.1, 1.0, 10.0]
distances = np.linspace(0.1, 2.0, 9)
weights, drawn = [], {}
for distance in distances:
    X, y = make_stars(200, distance=distance, random_state=0)
    model = MKLClassifier(rbf_family(widths), C=10.0, normalize=None).fit(X, y)
    weights.append(model.weights_)
    drawn[distance] = X, y, model

fig, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
for ax, distance in zip(axes, [distances[1], distances[-1]], strict=False):
    X, y, model = drawn[distance]
    low, high = X.min() - 0.5, X.max() + 0.5
    grid = np.stack(np.meshgrid(np.linspace(low, high, 80), np.linspace(low, high, 80)), axis=-1)
    values = model.decision_function(grid.reshape(-1, 2)).reshape(80, 80)
    ax.contourf(grid[..., 0], grid[..., 1], values > 0, levels=1, alpha=0.25, cmap="cividis")
    ax.scatter(*X.T, c=y, s=8, cmap="cividis")
    ax.set(title=f"distance {distance:.2f}", xticks=[], yticks=[])
axes[2].stackplot(distances, np.transpose(weights), labels=[f"width {width:g}" for width in widths])
axes[2].set(xlabel="distance", ylabel="weight", title="weights by width")
axes[2].legend(fontsize=8, loc="lower left")
plt.show()
