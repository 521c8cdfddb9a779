"""
Regression: one curve for each column
=====================================

With one kernel on each column the model is a sum of curves, one for each column, and the weights say which curves there
are. The target is the progress of diabetes after a year; the curves are those of the six columns that contribute most.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from multikernel import MKLRegressor
from multikernel.kernels import RBF

data = load_diabetes(scaled=False)
X_train, X_test, y_train, y_test = train_test_split(data.data, data.target, random_state=0)
kernels = [(name, RBF(factor=4.0), [k]) for k, name in enumerate(data.feature_names)]
model = MKLRegressor(kernels, C=10.0, epsilon=10.0).fit(X_train, y_train)
print(f"R2 on new patients {model.score(X_test, y_test):.2f}")
print(model.weights_frame().round(2).to_string(index=False))

# %%
# The curve of a column: all other columns held at their means.
order = np.argsort(model.kernel_contributions_)[::-1][:6]
fig, axes = plt.subplots(2, 3, figsize=(8, 4.5), sharey=True, layout="constrained")
middle = X_train.mean(axis=0)
for ax, k in zip(axes.flat, order, strict=True):
    line = np.tile(middle, (60, 1))
    line[:, k] = np.linspace(*np.percentile(X_train[:, k], [2, 98]), 60)
    ax.plot(line[:, k], model.predict(line))
    ax.plot(X_train[:, k], np.full(len(X_train), 60.0), "|", color="0.6", markersize=4)
    ax.set_title(f"{data.feature_names[k]}: {model.kernel_contributions_[k]:.2f}", fontsize=10)
    ax.set_xlim(line[0, k], line[-1, k])
fig.supylabel("predicted progress")
plt.show()
