"""
A map of the samples
====================

``DiscriminantMKLClassifier`` learns a mix of kernels in which the classes lie apart, and the coordinates in which they
do: a supervised map of the samples. Wines of the training set are dots, new wines crosses.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from multikernel import DiscriminantMKLClassifier

wine = load_wine()
X = StandardScaler().fit_transform(wine.data)
X_train, X_test, y_train, y_test = train_test_split(X, wine.target, random_state=0, stratify=wine.target)
model = DiscriminantMKLClassifier("rbf").fit(X_train, y_train)
print(f"accuracy on new wines {model.score(X_test, y_test):.3f}")

fig, ax = plt.subplots(figsize=(5.5, 4.5), layout="constrained")
for k, name in enumerate(wine.target_names):
    ax.scatter(*model.transform(X_train[y_train == k]).T, s=12, color=f"C{k}", label=f"grower {name[-1]}")
    ax.scatter(*model.transform(X_test[y_test == k]).T, s=40, color=f"C{k}", marker="x")
ax.set(xlabel="first discriminant coordinate", ylabel="second")
ax.legend()
plt.show()
