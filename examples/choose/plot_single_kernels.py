"""
Single kernels, their sum, and the learned mix
==============================================

The picture of Zien and Ong 2007, Figure 2, for the digits: the accuracy of each kernel alone, of the plain sum and of
the learned mix. The kernels are Gaussian, one for each row and each column of the picture.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from multikernel import MKLClassifier
from multikernel.inspection import KernelComparisonDisplay
from multikernel.kernels import RBF

X, y = load_digits(return_X_y=True)
rows = np.random.default_rng(0).permutation(len(y))
X, y = X[rows[:300]], y[rows[:300]]
cells = np.arange(64).reshape(8, 8)
kernels = [(f"row {i}", RBF(), cells[i].tolist()) for i in range(8)]
kernels += [(f"column {i}", RBF(), cells[:, i].tolist()) for i in range(1, 7)]

# %%
# Five folds; a point is the mean, its line the standard error.
display = KernelComparisonDisplay.from_estimator(MKLClassifier(kernels, C=10.0, norm=2), X, y, cv=5)
display.figure_.set_size_inches(7, 5)
plt.show()
