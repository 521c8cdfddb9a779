"""scMKL: a group lasso on random Fourier features of each group of columns; it has no precomputed kernels."""

import numpy as np

TITLE = "scMKL"
REQUIREMENTS = ["scmkl==0.5.1"]
VARIANTS = [""]
EFFORTS = [{"alpha": 0.5}, {"alpha": 0.1}, {"alpha": 0.02}]


def skip(problem, variant):
    return "two classes only" if problem["classes"] > 2 else ""


def prepare(data, variant):
    return np.vstack([data.X, data.X_test]), np.array([f"column{j}" for j in range(data.X.shape[1])])


def fit(prepared, data, variant, alpha):
    import scmkl

    X, names = prepared
    labels = np.where(np.concatenate([data.y, data.y_test]) > 0, "up", "down")
    part = np.array(["train"] * len(data.X) + ["test"] * len(data.X_test))
    groups = {f"group{g}": list(names[group]) for g, group in enumerate(data.groups)}
    table = scmkl.create_adata(X, names, labels, groups, split_data=part, scale_data=False, random_state=1)
    table = scmkl.calculate_z(scmkl.estimate_sigma(table))
    return scmkl.train_model(table, alpha=alpha)


def predict(table, prepared, data, variant):
    import scmkl

    found = scmkl.predict(table)
    found = found[0] if isinstance(found, tuple) else found
    return np.where(np.asarray(found).ravel() == "up", 1.0, -1.0)


def solution(model, data):
    return None
