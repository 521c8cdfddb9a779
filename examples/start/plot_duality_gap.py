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
from multikernel.inspection import ConvergenceDisplay
from multikernel.kernels import RBF, per_column

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)

fig, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
for ax, solver in zip(axes, ["newton", "level", "silp"], strict=True):
    model = MKLClassifier(per_column(RBF()), C=10.0, solver=solver, tol=1e-4).fit(X, y)
    ConvergenceDisplay.from_estimator(model, ax=ax)
    ax.set(title=f"{solver}: {model.n_iter_} iterations", ylim=(0, 40))
    ax.legend(loc="upper right", fontsize=8) if solver == "newton" else ax.get_legend().remove()
    print(f"{solver:7} objective {model.objective_:.4f}, relative gap {model.duality_gap_:.1e}")
plt.show()
