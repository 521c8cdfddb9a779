"""
How close to optimal: the two bounds
====================================

Every fit keeps two numbers: the objective of the best model so far, and a lower bound that no model can be below. The
optimum lies between them, and training stops when they are close. This picture shows both for three solvers on the
wine data with 13 kernels, one for each column.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from multikernel import MKLClassifier
from multikernel.kernels import RBF, per_column

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)

fig, axes = plt.subplots(1, 3, figsize=(9, 3), sharey=True, layout="constrained")
for ax, solver in zip(axes, ["newton", "level", "silp"], strict=True):
    model = MKLClassifier(per_column(RBF()), C=10.0, solver=solver, tol=1e-4).fit(X, y)
    history = model.history_
    steps = range(1, len(history["upper"]) + 1)
    ax.fill_between(steps, history["lower"], history["upper"], alpha=0.2)
    ax.plot(steps, history["upper"], label="best model")
    ax.plot(steps, history["lower"], label="lower bound")
    ax.set(title=f"{solver}: {model.n_iter_} iterations", xlabel="iteration")
    print(f"{solver:7} objective {model.objective_:.4f}, relative gap {model.duality_gap_:.1e}")
axes[0].set_ylabel("objective")
axes[0].set_ylim(0, 2 * model.objective_)
axes[0].legend()
plt.show()
