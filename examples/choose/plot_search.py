"""
Choosing C and the norm by cross-validation
===========================================

``MKLClassifierCV`` tries every point of a grid on the same folds, shares the kernels between them, and trains the best
point on all samples. The table has the form of scikit-learn's ``GridSearchCV``; the plain
sum and single kernels compete too, and the search says what learning the mix bought.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from multikernel import MKLClassifierCV
from multikernel.kernels import RBF, per_column

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
Cs, norms = [0.01, 0.1, 1.0, 10.0], [1.0, 1.33, 2.0, np.inf]
search = MKLClassifierCV(per_column(RBF()), Cs=Cs, norms=norms, cv=5).fit(X, y)
print(search.best_params_, f"accuracy {search.best_score_:.3f}")
print(search.mix_gain_)

# %%
scores = np.full((len(norms), len(Cs)), np.nan)
points = len(Cs) * len(norms)  # rows of the table after these are baselines
for params, score in zip(search.cv_results_["params"][:points], search.cv_results_["mean_test_score"], strict=False):
    scores[norms.index(params["norm"]), Cs.index(params["C"])] = score
fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
image = ax.imshow(scores, cmap="cividis")
for (row, column), score in np.ndenumerate(scores):
    dark = score < (scores.min() + scores.max()) / 2
    ax.text(column, row, f"{score:.3f}", ha="center", va="center", color="white" if dark else "black")
ax.set(xticks=range(len(Cs)), xticklabels=Cs, yticks=range(len(norms)), yticklabels=norms, xlabel="C", ylabel="norm")
fig.colorbar(image, label="mean accuracy of five folds")
plt.show()
