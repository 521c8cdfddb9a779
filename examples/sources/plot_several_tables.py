"""
Several tables about the same samples
=====================================

Wines were measured by several laboratories, say: one table on alcohol and minerals, one on phenols, one on colour. The
tables have their own order, and the third lacks thirty wines. ``make_views`` aligns them by their index, proposes
kernels, and says what it chose.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score

from multikernel import MKLClassifier, make_views

wine = load_wine(as_frame=True)
rng = np.random.default_rng(0)
table = wine.data.rename(index="wine {}".format)
tables = {
    "minerals": table[["alcohol", "malic_acid", "ash", "alcalinity_of_ash", "magnesium", "proline"]],
    "phenols": table[["total_phenols", "flavanoids", "nonflavanoid_phenols", "proanthocyanins"]].sample(
        frac=1, random_state=0
    ),
    "colour": table[["color_intensity", "hue", "od280/od315_of_diluted_wines"]].drop(
        rng.choice(table.index, 30, False)
    ),
}
X = make_views(tables)
y = wine.target_names[wine.target]

# %%
# The views are one X: they go through cross-validation as any array does. Scales and widths are learned in each fold.
for name in tables:
    score = cross_val_score(MKLClassifier("auto"), X.take_views([name]), y, cv=5).mean()
    print(f"{name:9} alone {score:.3f}")
print(f"all together    {cross_val_score(MKLClassifier('auto'), X, y, cv=5).mean():.3f}")

# %%
model = MKLClassifier("auto").fit(X, y)
print(model.missing_in_)
table = model.weights_frame()
fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
colours = {name: f"C{i}" for i, name in enumerate(tables)}
ax.barh(table["kernel"], table["contribution"], color=[colours[kernel.split(":")[0]] for kernel in table["kernel"]])
ax.set(xlabel="contribution to the decision function")
ax.invert_yaxis()
plt.show()
