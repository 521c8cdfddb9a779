"""
Which norm: few kernels or all of them
======================================

The norm of the weights decides how many kernels take part. Norm 1 keeps few, large norms keep all, infinity is the
plain sum. ``mkl_path`` trains the models along the norm, each from the solution of its neighbour: here with one
kernel for each of the thirty columns of the breast cancer data, the lines named by the largest weights at norm 1.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from multikernel import MKLClassifier
from multikernel.kernels import RBF, per_column
from multikernel.model_selection import mkl_path

data = load_breast_cancer()
X_train, X_test, y_train, y_test = train_test_split(data.data, data.target, test_size=0.5, random_state=0)
norms = [1.0, 1.05, 1.1, 1.2, 1.5, 2.0, 4.0, 8.0]
path = mkl_path(MKLClassifier(per_column(RBF())), X_train, y_train, norms=norms)
accuracy = [model.score(X_test, y_test) for model in path.models]

# %%
# Weights are divided by their sum here, so that they compare between norms.
shares = path.weights / path.weights.sum(axis=1, keepdims=True)
largest = np.argsort(shares[0])[::-1][:5]
fig, (ax, below) = plt.subplots(2, 1, figsize=(7, 5.5), sharex=True, height_ratios=[2, 1], layout="constrained")
ax.plot(norms, shares, color="0.8", linewidth=1)
for k in largest:
    ax.plot(norms, shares[:, k], label=data.feature_names[k])
ax.set(ylabel="share of the weights", xscale="log", title="30 kernels, one for each column")
ax.legend(fontsize=8)
ticks = [1, 1.2, 1.5, 2, 4, 8]
below.plot(norms, accuracy, "o-", color="black")
below.set(xlabel="norm", ylabel="accuracy on\nnew patients", xticks=ticks, xticklabels=[f"{tick:g}" for tick in ticks])
below.minorticks_off()
plt.show()
