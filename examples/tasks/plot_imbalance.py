"""
One rare class
==============

Of the breast cancer data we keep all benign tumours, few malignant ones, one in twenty, and four of the columns.
Accuracy then says little: calling everything benign is right in 95 % of the cases. ``class_weight="balanced"`` makes
an error on the rare class cost as much in sum as the errors on the other.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import ConfusionMatrixDisplay, balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from multikernel import MKLClassifier

X, y = load_breast_cancer(return_X_y=True)
X = X[:, [0, 1, 4, 8]] / X[:, [0, 1, 4, 8]].std(axis=0)
malignant, benign = np.flatnonzero(y == 0), np.flatnonzero(y == 1)
kept = np.sort(np.concatenate([malignant[:19], benign]))
X, y = X[kept], np.where(y[kept] == 0, "malignant", "benign")

fig, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
for ax, weight in zip(axes, [None, "balanced"], strict=True):
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    predicted = cross_val_predict(MKLClassifier("rbf", C=0.1, norm=2, class_weight=weight), X, y, cv=folds)
    ConfusionMatrixDisplay.from_predictions(y, predicted, ax=ax, colorbar=False, cmap="cividis")
    balanced = balanced_accuracy_score(y, predicted)
    ax.set_title(
        f"class_weight={weight!r}\naccuracy {np.mean(predicted == y):.3f}, balanced {balanced:.3f}", fontsize=10
    )
plt.show()
