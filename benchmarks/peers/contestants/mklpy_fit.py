"""MKLpy's EasyMKL and the plain average, at their defaults."""

TITLE = "MKLpy {}"
REQUIREMENTS = ["MKLpy==0.6"]
VARIANTS = ["EasyMKL", "AverageMKL"]
EFFORTS = [{}]


def skip(problem, variant):
    return ""


def prepare(data, variant):
    import torch

    torch.set_num_threads(1)
    return [torch.tensor(K, dtype=torch.float64) for K in data.K]


def fit(kernels, data, variant):
    import MKLpy.algorithms
    import torch

    return getattr(MKLpy.algorithms, variant)().fit(kernels, torch.tensor(data.y))


def predict(model, kernels, data, variant):
    import torch

    return model.predict([torch.tensor(K, dtype=torch.float64) for K in data.K_test])


def solution(model, data):
    return None
