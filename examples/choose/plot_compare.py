"""
Several methods on the same folds
=================================

Does learning the mix pay? ``compare`` runs other ways to weight kernels on the same kernels and the same splits: the
plain sum (``uniform``), the best single kernel (``best``), alignment with the labels (``alignf``), the joint problem
and others. A difference that is small against the standard errors is none.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from multikernel.inspection import compare
from multikernel.kernels import RBF, per_column

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
methods = ["uniform", "best", "alignf", "easymkl", "joint", "l2", "m3k"]
found = compare(X, y, methods, kernels=per_column(RBF()), cv=5, verbose=0)
print(found)

# %%
found.plot()
plt.show()
