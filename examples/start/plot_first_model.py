"""
A first model: which group of columns matters
=============================================

The breast cancer data describe every cell nucleus by thirty numbers: ten measurements, each as a mean, as a standard
error and as the worst value found. We give one kernel to each of the three groups and let the model learn the mix.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from multikernel import MKLClassifier
from multikernel.inspection import WeightsDisplay

data = load_breast_cancer(as_frame=True)
X = data.data / data.data.std()
X_train, X_test, y_train, y_test = train_test_split(X, data.target, random_state=0)

# %%
# A kernel is a name, a kind and the columns it looks at. Patterns choose columns by their names.
kernels = [("mean", "rbf", "mean *"), ("error", "rbf", "* error"), ("worst", "rbf", "worst *")]
model = MKLClassifier(kernels, C=1.0).fit(X_train, y_train)
print(f"accuracy on new patients {model.score(X_test, y_test):.3f}, relative duality gap {model.duality_gap_:.0e}")

# %%
# ``by_view`` sums weights and contributions over the five widths of each group. The weight says how much of a kernel
# the mix takes; the contribution says how much of the decision function comes from it.
table = model.by_view()
print(table.round(2).to_string(index=False))

WeightsDisplay.from_estimator(model, by="view")
plt.show()
