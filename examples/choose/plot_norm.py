"""
Which norm: few kernels or all of them
======================================

The norm of the weights decides how many kernels take part. Norm 1 keeps few, large norms keep all, infinity is the
plain sum. ``mkl_path`` trains the models along the norm, each from the solution of its neighbour: here with one
kernel for each of the thirty columns of the breast cancer data, the lines named by the largest weights at norm 1.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from multikernel import MKLClassifier
from multikernel.inspection import PathDisplay
from multikernel.kernels import RBF
from multikernel.model_selection import mkl_path

data = load_breast_cancer()
X_train, X_test, y_train, y_test = train_test_split(data.data, data.target, test_size=0.5, random_state=0)
kernels = [(name, RBF(), [k]) for k, name in enumerate(data.feature_names)]
norms = [1.0, 1.05, 1.1, 1.2, 1.5, 2.0, 4.0, 8.0]
path = mkl_path(MKLClassifier(kernels), X_train, y_train, norms=norms)
accuracy = [model.score(X_test, y_test) for model in path.models]

# %%
# Weights are divided by their sum, so that they compare between norms. The display names the kernels of the largest
# weights and draws the others faintly.
shares = path.weights / path.weights.sum(axis=1, keepdims=True)
fig, (ax, below) = plt.subplots(2, 1, figsize=(7, 6), sharex=True, height_ratios=[2, 1], layout="constrained")
PathDisplay(path.values, shares, data.feature_names, "norm").plot(ax=ax, max_lines=5)
ax.set(ylabel="share of the weights", xlabel="")
below.plot(norms, accuracy, "o-", color="black")
below.set(xlabel="norm", ylabel="accuracy on\nnew patients")
plt.show()
