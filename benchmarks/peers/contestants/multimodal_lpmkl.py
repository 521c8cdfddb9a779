"""scikit-multimodallearn's MKL: kernel ridge regression on the labels with weights of norm 2; two classes."""

import numpy as np

TITLE = "scikit-multimodallearn MKL"
REQUIREMENTS = ["scikit-multimodallearn==0.1.0"]
VARIANTS = [""]
EFFORTS = [{"loops": 3}, {"loops": 50}]


def skip(problem, variant):
    return "two classes only" if problem["classes"] > 2 else ""


def prepare(data, variant):
    return {k: K.astype(np.float64) for k, K in enumerate(data.K)}


def fit(kernels, data, variant, loops):
    from multimodal.kernels.lpMKL import MKL

    return MKL(lmbda=1.0, kernel="precomputed", n_loops=loops).fit(kernels, data.y.astype(int))


def predict(model, kernels, data, variant):
    return model.predict({k: K.astype(np.float64) for k, K in enumerate(data.K_test)})


def solution(model, data):
    return None
