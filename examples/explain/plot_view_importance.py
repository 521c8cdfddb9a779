"""
Which source does the model need?
=================================

The honest number: how much the cross-validated score drops when a source is left out, with a 90 % interval from
bootstraps. A full point lies above zero with its whole interval: the model needs the source. A hollow one may be
chance, or the other sources tell the same.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from multikernel import MKLClassifier, make_views
from multikernel.inspection import ImportanceDisplay, WeightsDisplay, view_importance

wine = load_wine(as_frame=True)
groups = {
    "minerals": ["malic_acid", "ash", "alcalinity_of_ash", "magnesium"],
    "alcohol": ["alcohol"],
    "phenols": ["total_phenols", "flavanoids", "nonflavanoid_phenols", "proanthocyanins"],
    "colour": ["color_intensity", "hue"],
    "proline": ["proline"],
}
X = make_views({name: wine.data[columns] for name, columns in groups.items()}, verbose=False)
model = MKLClassifier("auto", norm=2).fit(X, wine.target)
found = view_importance(model, X, wine.target, n_bootstraps=20, random_state=0)
print(found)

# %%
# Beside it the weights, which the model hands out to all of them.
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
ImportanceDisplay.from_importance(found, ax=left)
WeightsDisplay.from_estimator(model, by="view", ax=right)
plt.show()
