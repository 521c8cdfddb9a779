"""himalaya's multiple kernel ridge regression on the labels, by random search over the weights, three folds."""

import numpy as np

TITLE = "himalaya, random search"
REQUIREMENTS = ["himalaya==0.4.11", "packaging"]
VARIANTS = [""]
EFFORTS = [{"draws": 3}, {"draws": 10}]


def skip(problem, variant):
    return ""


def prepare(data, variant):
    return (data.y[:, None] == np.unique(data.y)).astype(np.float32)


def fit(targets, data, variant, draws):
    from himalaya.kernel_ridge import MultipleKernelRidgeCV

    settings = {"n_iter": draws, "alphas": np.logspace(-3, 3, 7), "progress_bar": False}
    model = MultipleKernelRidgeCV(
        kernels="precomputed", solver="random_search", solver_params=settings, cv=3, fit_intercept=True, random_state=0
    )
    # it scales the kernels that it is given in place
    return model.fit(data.K.copy(), targets)


def predict(model, targets, data, variant):
    return np.unique(data.y)[np.argmax(model.predict(data.K_test), axis=1)]


def solution(model, data):
    return None
