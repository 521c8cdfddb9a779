"""Samples that every kernel takes, and distances between two of them by their definitions."""

import math

import numpy as np


def l1(x, z):
    return np.abs(x - z).sum()


def l2(x, z):
    return math.sqrt(((x - z) ** 2).sum())


def chi2(x, z):
    return sum((a - b) ** 2 / (a + b) for a, b in zip(x, z, strict=True) if a + b > 0)


def samples(n=30, d=5, seed=0):
    """Non-negative and a third zeros, with a zero row and a repeated one."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(2.0, size=(n, d)) * (rng.random((n, d)) < 0.7)
    X[3] = 0.0
    X[5] = X[7]
    return X
