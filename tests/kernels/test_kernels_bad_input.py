"""Kernels: parameters and samples that are refused, each in one sentence."""

import math

import numpy as np
import pytest
from problems_kernels import samples
from scipy import sparse
from sklearn.exceptions import NotFittedError

from multikernel.kernels import (
    RBF,
    ChiSquared,
    Constant,
    Cosine,
    FunctionKernel,
    HashedDegree,
    HistogramIntersection,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Nystroem,
    Polynomial,
    Scaled,
    Sum,
)
from multikernel.kernels.class_kernels import ClassKernels

BAD = [
    (RBF(gamma=-1), "The 'gamma' parameter of RBF must be a positive number or None. Got -1 instead."),
    (RBF(gamma=math.nan), "The 'gamma' parameter of RBF must be a positive number or None. Got nan instead."),
    (RBF(width="a"), "The 'width' parameter of RBF must be a positive number or None. Got 'a' instead."),
    (RBF(quantile=2), "The 'quantile' parameter of RBF must be a number in (0, 1] or None. Got 2 instead."),
    (RBF(factor=0), "The 'factor' parameter of RBF must be a positive number. Got 0 instead."),
    (
        RBF(1.0, factor=2.0),
        "The 'factor' parameter of RBF must be 1 where 'gamma' is given. Got 2.0 instead.",
    ),
    (
        RBF(1.0, width=2.0),
        "Only one of the parameters 'gamma' and 'width' of RBF may be given. Got 1.0 and 2.0.",
    ),
    (
        Laplacian(True),
        "The 'gamma' parameter of Laplacian must be a positive number or None. Got True instead.",
    ),
    (
        Matern(nu=0),
        "The 'nu' parameter of Matern must be a positive number up to 100, or infinity. Got 0 instead.",
    ),
    (Polynomial(2.5), "The 'degree' parameter of Polynomial must be a positive integer. Got 2.5 instead."),
    (
        Polynomial(gamma=0),
        "The 'gamma' parameter of Polynomial must be a positive number or None. Got 0 instead.",
    ),
    (Polynomial(coef0=None), "The 'coef0' parameter of Polynomial must be a number. Got None instead."),
    (Constant("a"), "The 'value' parameter of Constant must be a number. Got 'a' instead."),
    (
        FunctionKernel(np.dot, psd="yes"),
        "The 'psd' parameter of FunctionKernel must be True or False. Got 'yes' instead.",
    ),
    (
        HashedDegree("a"),
        "The 'kernel' parameter of HashedDegree must be a WeightedDegree or None. Got 'a' instead.",
    ),
    (
        Nystroem(random_state=-1),
        "The 'random_state' parameter of Nystroem must be a non-negative integer. Got -1 instead.",
    ),
    (Linear() ** -1, "The 'exponent' parameter of Power must be a non-negative number. Got -1 instead."),
    (Scaled(Linear(), math.inf), "The 'constant' parameter of Scaled must be a number. Got inf instead."),
]


@pytest.mark.parametrize(("kernel", "sentence"), BAD, ids=[sentence[:40] for _, sentence in BAD])
def test_bad_parameters(kernel, sentence):
    with pytest.raises(ValueError) as caught:
        kernel.fit(samples())
    assert str(caught.value) == sentence


def test_bad_samples():
    X = samples()
    with pytest.raises(ValueError, match=r"ChiSquared needs non-negative columns\. Got the value -1 instead"):
        ChiSquared().fit(X - 1.0 * (X == 0))
    with pytest.raises(ValueError, match="HistogramIntersection needs non-negative"):
        HistogramIntersection().fit(sparse.csr_array(-X))
    with pytest.raises(ValueError, match=r"RBF was fitted on 5 columns\. Got 4 instead"):
        RBF().fit(X)(X[:, :4])
    with pytest.raises(ValueError, match="NaN or infinity"):
        RBF().fit(np.where(X == 0, np.nan, X))
    with pytest.raises(ValueError, match="NaN or infinity"):
        RBF().fit(sparse.csr_array(np.where(X > 2, np.inf, X)))
    with pytest.raises(ValueError, match="numeric columns"):
        Linear().fit([["a"], ["b"]])
    with pytest.raises(ValueError, match="real numbers"):
        Linear().fit(X * 1j)
    with pytest.raises(ValueError, match="real numbers"):
        Linear().fit(sparse.csr_array(X * 1j))
    with pytest.raises(ValueError, match=r"shape \(n, d\)"):
        Linear().fit(X[0])
    with pytest.raises(ValueError, match=r"shape \(30,\)"):
        RBF().fit(X, np.ones(3))
    with pytest.raises(ValueError, match="not all zero"):
        RBF().fit(X, np.zeros(30))
    with pytest.raises(NotFittedError, match="call fit first"):
        (RBF() + Linear())(X)
    with pytest.raises(NotFittedError, match="call fit first"):
        (2 * RBF())(X)
    with pytest.raises(ValueError, match="must be an integer for a kernel with negative values"):
        (Linear() ** 0.5)(X - 1)
    with pytest.raises(TypeError, match="must be a Kernel or a callable"):
        Sum(Linear(), 3).fit(X)
    # the sum of finite values may overflow
    assert Cosine().fit(np.full((2, 2), 1e308)).n_features_in_ == 2


def test_base_class_asks_for_its_methods():
    class Half(Kernel):
        pass

    with pytest.raises(NotImplementedError, match="Half does not define _cross"):
        Half()(samples(), samples())
    with pytest.raises(NotImplementedError, match="Half does not define _diag"):
        Half().diag(samples())


def test_products_with_kernels_on_the_classes_need_the_host():
    classes = ClassKernels(["a x b"], np.ones((1, 2, 2)), np.zeros((1, 2), int), 1)
    with pytest.raises(TypeError, match=r"need a HostGram\. Got object instead"):
        classes.products(object())


@pytest.mark.parametrize("factor", [1j, 1 + 0j])
def test_a_callable_must_return_real_numbers(factor):
    kernel = FunctionKernel(lambda X, Y: factor * (X @ Y.T))
    with pytest.raises(ValueError, match=r"must return real numbers. Got complex128 instead"):
        kernel([[1.0], [2.0]])
