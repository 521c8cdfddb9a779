"""scikit-learn's `SVC` on the uniform sum of the kernels; the sum is part of the fit."""

import numpy as np

TITLE = "SVC on the uniform sum"
REQUIREMENTS: list[str] = []
VARIANTS = [""]
EFFORTS = [{"tol": 1e-3}]


def skip(problem, variant):
    return ""


def prepare(data, variant):
    # the largest equal weights in the unit ball
    return len(data.K) ** (-1.0 / data.norm)


def fit(weight, data, variant, tol):
    from sklearn.svm import SVC

    K = np.tensordot(np.full(len(data.K), weight, np.float32), data.K, 1)
    return SVC(kernel="precomputed", C=data.C, tol=tol).fit(K, data.y)


def predict(model, weight, data, variant):
    return model.predict(np.tensordot(np.full(len(data.K), weight, np.float32), data.K_test, 1))


def solution(model, data):
    # several classes: pairs of them, another problem
    if data.classes > 2:
        return None
    coefficients = np.zeros(len(data.y))
    coefficients[model.support_] = model.dual_coef_[0]
    weights = np.full(len(data.K), len(data.K) ** (-1.0 / data.norm))
    return {"weights": weights, "dual_coef": coefficients, "intercept": model.intercept_[0]}
