"""
Which C: the path of the weights
================================

``C`` is the price of errors on the training samples. A small C gives a smooth model, a large C one that fits every
sample. The weights move with it: at a small C wide kernels suffice, at a large C narrow ones get in.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from multikernel import MKLClassifier
from multikernel.model_selection import mkl_path

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / X.std(axis=0), y, test_size=0.5, random_state=0)
Cs = np.logspace(-2, 3, 11)
path = mkl_path(MKLClassifier("rbf"), X_train, y_train, Cs=Cs)

# %%
# The gap between training and test accuracy says where fitting turns into learning by heart.
fig, (ax, below) = plt.subplots(2, 1, figsize=(7, 5.5), sharex=True, layout="constrained")
ax.stackplot(Cs, path.weights.T, labels=path.models[0].kernel_names_, colors=plt.cm.cividis(np.linspace(0, 1, 5)))
ax.set(ylabel="weight", ylim=(0, 1), title="five Gaussian kernels, from a quarter to four times the median distance")
ax.legend(fontsize=8, loc="lower left")
below.plot(Cs, [model.score(X_train, y_train) for model in path.models], "s--", label="training samples")
below.plot(Cs, [model.score(X_test, y_test) for model in path.models], "o-", label="new samples")
below.set(xscale="log", xlabel="C", ylabel="accuracy")
below.legend()
plt.show()
