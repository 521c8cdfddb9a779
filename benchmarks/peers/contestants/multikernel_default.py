"""multikernel at its defaults, `MKLClassifier()`, on the stack."""

TITLE = "multikernel, defaults"
REQUIREMENTS: list[str] = []
VARIANTS = [""]
EFFORTS = [{}]


def skip(problem, variant):
    return ""


def prepare(data, variant):
    from multikernel import stack_kernels

    return stack_kernels(data.K)


def fit(stack, data, variant):
    from multikernel import MKLClassifier

    return MKLClassifier("precomputed", n_jobs=1).fit(stack, data.y)


def predict(model, stack, data, variant):
    from multikernel import stack_kernels

    return model.predict(stack_kernels(data.K_test))


def solution(model, data):
    return None
