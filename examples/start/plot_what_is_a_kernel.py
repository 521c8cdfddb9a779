"""
What a kernel sees
==================

A kernel compares two samples and returns one number: how alike they are. On n samples it is a table of n x n numbers.
Here are four such tables of the same 178 wines, sorted by the grower. A good kernel has bright squares on the diagonal:
wines of one grower are alike, wines of two growers are not.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from multikernel.kernels import RBF
from multikernel.theory import kernel_margin

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
phenols, acids = X[:, [5, 6, 7, 8]], X[:, [1, 2, 3]]

tables = {
    "Gaussian, all columns": RBF().fit(X)(X),
    "Gaussian, a tenth of that width": RBF(factor=0.1).fit(X)(X),
    "Gaussian, four columns on phenols": RBF().fit(phenols)(phenols),
    "Gaussian, three columns on acids": RBF().fit(acids)(acids),
}

# %%
# The number in each title is the kernel margin: how much more alike a wine is to its own grower than to the nearest
# other one, on average. The narrow kernel sees every wine as unlike all others: it can be learned by heart, and tells
# nothing.
fig, axes = plt.subplots(2, 2, figsize=(7, 7.2), layout="constrained")
for ax, (title, K) in zip(axes.flat, tables.items(), strict=True):
    image = ax.imshow(K, vmin=0, vmax=1, cmap="cividis")
    ax.set_title(f"{title}\nmargin {kernel_margin([K], y):.2f}", fontsize=10)
    borders = np.flatnonzero(np.diff(y)) + 0.5
    ax.set(xticks=borders, yticks=borders, xticklabels=[], yticklabels=[])
fig.colorbar(image, ax=axes, shrink=0.5, label="likeness")
plt.show()
