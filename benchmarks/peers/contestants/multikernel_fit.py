"""multikernel on the stack: `MKLClassifier` by each of its solvers, to the gaps asked for."""

import numpy as np

TITLE = "multikernel, {}"
REQUIREMENTS: list[str] = []
VARIANTS = ["auto", "newton", "active-set", "level", "alternating", "silp", "sip", "simplemkl", "qcqp"]
EFFORTS = [{"tol": 1e-2}, {"tol": 1e-3}, {"tol": 1e-5}]
# samples times classes up to which the conic program is solved
LARGEST_CONIC = 150


def skip(problem, variant):
    if variant in ("active-set", "silp", "simplemkl") and problem["norm"] != 1:
        return "norm 1 only"
    if (
        variant == "qcqp"
        and problem["samples"] * (1 if problem["classes"] == 2 else problem["classes"]) > LARGEST_CONIC
    ):
        return f"the conic program of {problem['samples']} samples is too large"
    return ""


def prepare(data, variant):
    from multikernel import stack_kernels

    return stack_kernels(data.K)


def fit(stack, data, variant, tol):
    from multikernel import MKLClassifier

    # the kernels have variance one already
    model = MKLClassifier("precomputed", norm=data.norm, C=data.C, solver=variant, tol=tol, normalize=None, n_jobs=1)
    return model.fit(stack, data.y)


def predict(model, stack, data, variant):
    from multikernel import stack_kernels

    return model.predict(stack_kernels(data.K_test))


def solution(model, data):
    coefficients = np.zeros((len(data.y), *np.shape(model.dual_coef_)[:-1]))
    coefficients[model.support_] = model.dual_coef_.T
    return {"weights": model.weights_, "dual_coef": coefficients, "intercept": model.intercept_}
