"""
Unusual digits
==============

``MKLOneClass`` learns what is usual from samples without labels. Trained on pictures of one digit it ranks new
pictures: here zeros, mixed with other digits that it has never seen.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from multikernel import MKLOneClass

X, y = load_digits(return_X_y=True)
zeros = np.flatnonzero(y == 0)
model = MKLOneClass("rbf", nu=0.1, norm=2, normalize="cosine").fit(X[zeros[:100]])
others = np.concatenate([zeros[100:], np.flatnonzero(y != 0)[:150]])
scores = model.decision_function(X[others])
print(f"area under the ROC curve, zeros against other digits: {roc_auc_score(y[others] == 0, scores):.3f}")

# %%
# The most usual of the new zeros, the most unusual of them, and the other digits most like a zero.
is_zero = y[others] == 0
ranked_zeros, ranked_others = (np.flatnonzero(kind)[np.argsort(-scores[kind])] for kind in (is_zero, ~is_zero))
rows = {"usual zeros": ranked_zeros[:6], "unusual zeros": ranked_zeros[-6:], "most like a zero": ranked_others[:6]}
fig, axes = plt.subplots(3, 6, figsize=(6.5, 4), layout="constrained")
for line, (title, chosen) in zip(axes, rows.items(), strict=True):
    for ax, i in zip(line, chosen, strict=True):
        ax.imshow(X[others[i]].reshape(8, 8), cmap="gray_r")
        ax.set(xticks=[], yticks=[], title=f"{scores[i]:+.3f}")
        ax.title.set_fontsize(8)
    line[0].set_ylabel(title, fontsize=8)
plt.show()
