"""
Probabilities, and whether they can be trusted
==============================================

The logistic loss has probabilities of its own; the hinge has scores, which ``probability=True`` turns into
probabilities by folds. A reliable model lies on the diagonal: of the patients to whom it gives 70 %, 70 % are in the
class.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from multikernel import MKLClassifier

X, y = load_breast_cancer(return_X_y=True)
X = X[:, :10] / X[:, :10].std(axis=0)
models = {
    "logistic loss": MKLClassifier("rbf", loss="logistic", C=1.0),
    "hinge, calibrated": MKLClassifier("rbf", probability=True),
}

fig, (ax, below) = plt.subplots(2, 1, figsize=(5, 6), sharex=True, height_ratios=[3, 1], layout="constrained")
ax.plot([0, 1], [0, 1], color="0.7", linestyle=":")
for name, model in models.items():
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    probability = cross_val_predict(model, X, y, cv=folds, method="predict_proba")[:, 1]
    observed, predicted = calibration_curve(y, probability, n_bins=6, strategy="quantile")
    ax.plot(predicted, observed, "o-", label=f"{name}, Brier score {brier_score_loss(y, probability):.3f}")
    below.hist(probability, bins=np.linspace(0, 1, 21), histtype="step")
ax.set(ylabel="share of benign tumours")
ax.legend()
below.set(xlabel="predicted probability of a benign tumour", ylabel="patients")
plt.show()
