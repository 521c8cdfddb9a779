"""
Samples that lack a view
========================

In most studies some samples lack some measurements. Here a growing share of the views of the digits is removed at
random: the picture is cut into four quarters, and each quarter is a view. The library completes a sample from those
most alike in the views that both have; the usual way out, leaving incomplete samples out, soon leaves nothing to
train on.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from multikernel import MKLClassifier, Views

digits, y = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
chosen = rng.permutation(len(y))[:600]
digits, y = digits[chosen], y[chosen]
pictures = digits.reshape(-1, 8, 8)
quarters = {
    "upper left": pictures[:, :4, :4], "upper right": pictures[:, :4, 4:],
    "lower left": pictures[:, 4:, :4], "lower right": pictures[:, 4:, 4:],
}  # fmt: skip
train, test = slice(0, 300), slice(300, 600)

shares, completed, left_out = [0.0, 0.15, 0.3, 0.45, 0.6], [], []
for share in shares:
    absent = rng.random((len(y), 4)) < share
    absent[absent.all(axis=1), 0] = False
    views = {}
    for (name, part), gone in zip(quarters.items(), absent.T, strict=True):
        views[name] = np.where(gone[:, None], np.nan, part.reshape(len(y), 16))
    X = Views(views)
    model = MKLClassifier("rbf", norm=2, C=10.0)
    completed.append(model.fit(X[train], y[train]).score(X[test], y[test]))
    whole = np.flatnonzero(~absent[train].any(axis=1))
    left_out.append(model.fit(X[whole], y[whole]).score(X[test], y[test]))
    print(f"{share:.0%} missing: {len(whole)} complete training samples")

# %%
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.plot(shares, completed, "o-", label="all samples, completed")
ax.plot(shares, left_out, "s--", label="incomplete training samples left out")
ax.set(xlabel="share of the views that is missing", ylabel="accuracy on new digits", ylim=(0, 1))
ax.legend()
plt.show()
