"""
Which columns, through the kernels
==================================

A kernel sees many columns at once. To see which of them a fitted model relies on, one column of new samples is permuted
at a time, and the drop of the score is measured; nothing is trained again. Columns that tell the same as others seem to
matter less than they do.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from multikernel import MKLRegressor
from multikernel.inspection import column_importance

data = load_diabetes(as_frame=True, scaled=False)
X_train, X_test, y_train, y_test = train_test_split(data.data, data.target, test_size=0.5, random_state=0)
scale = X_train.std()
kernels = [("body", "rbf", ["age", "sex", "bmi", "bp"]), ("blood", "rbf", "s[1-6]")]
model = MKLRegressor(kernels, C=30.0, epsilon=10.0, norm=2).fit(X_train / scale, y_train)
found = column_importance(model, X_test / scale, y_test, n_repeats=10, random_state=0)
print(f"R2 on new patients {found.score:.2f}")

# %%
fig, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
order = np.argsort(found.drop)
colours = {"body": "tab:blue", "blood": "tab:orange"}
ax.barh(
    np.array(found.names)[order], found.drop[order], xerr=found.std[order],
    color=[colours[found.views[k]] for k in order],
)  # fmt: skip
ax.set(xlabel="drop of R2 when the column is permuted", title="blue: body, orange: blood")
plt.show()
