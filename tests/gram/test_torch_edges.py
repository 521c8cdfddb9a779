"""Kernels on a device of PyTorch: arrays of unusual layout, samples and parameters far from one."""

import numpy as np
import pytest
from scipy import sparse

from multikernel import MKLClassifier, MKLRegressor
from multikernel.gram import TorchStorage
from multikernel.gram.dense import DenseGram
from multikernel.kernels import RBF, ChiSquared, Laplacian, Linear, Matern
from multikernel.training.core import Settings
from multikernel.training.prepare import prepare

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from multikernel.gram.device import StoredValues, to_host  # noqa: E402
from multikernel.gram.torch import TorchGram  # noqa: E402
from multikernel.kernels import on_device  # noqa: E402

CPU, N = TorchStorage("cpu"), 40
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
Y = np.c_[X[:, 0], np.sin(X[:, 1]), RNG.normal(size=N)]


@pytest.mark.parametrize("order", [np.arange(N)[::-1], np.r_[np.zeros(N // 2, int), np.arange(N // 2)], np.arange(N)])
def test_rows_come_in_the_order_asked_for(order):
    K = np.stack([X @ X.T, np.eye(N)])
    gram = TorchGram(StoredValues([torch.from_numpy(each) for each in K]))
    np.testing.assert_array_equal(gram.rows(order), DenseGram(K).rows(order))


@pytest.mark.parametrize("layout", [np.flip, np.asfortranarray, sparse.csr_array, lambda A: A.astype(np.float32)])
def test_samples_of_any_layout_are_taken(layout):
    y = X[:, 0] > 0.0
    for kernels in ([RBF(), Linear()], [Laplacian()]):
        found = MKLClassifier(kernels, gram=CPU, tol=1e-5).fit(layout(X), y)
        plain = MKLClassifier(kernels, tol=1e-5).fit(layout(X), y)
        assert found.objective_ == pytest.approx(plain.objective_, rel=3e-5)
        np.testing.assert_array_equal(found.predict(layout(X)), plain.predict(layout(X)))


def test_targets_with_negative_strides_are_taken():
    before = Y.copy()
    found = MKLRegressor([RBF(), Linear()], loss="squared", gram=CPU).fit(X, Y[::-1])
    plain = MKLRegressor([RBF(), Linear()], loss="squared").fit(X, Y[::-1])
    np.testing.assert_allclose(found.predict(X), plain.predict(X), atol=1e-7)
    np.testing.assert_array_equal(Y, before)


FAR = {
    # distances that are small in units of the entries
    "laplacian": (1.6e9 + 50.0 * X, [2.0 * Laplacian(gamma=0.01), Laplacian(gamma=0.01) + Linear()]),
    "chi squared": (1e9 + 1e6 * np.abs(X), [2.0 * ChiSquared(gamma=1e-3)]),
    # a width below the range of float64, where the kernel is the identity
    "narrow": (X, [RBF(width=1e-320), Matern(1e-170, nu=np.inf)]),
    "very small": (1e-200 * X, [RBF(), 2.0 * RBF(), Matern(nu=np.inf)]),
    # exponents that have no size in common
    "rates": (X, [RBF(gamma=1e45), RBF(gamma=1.0), RBF(gamma=1e-45)]),
}


@pytest.mark.parametrize("name", FAR)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_kernels_far_from_one_are_those_of_the_host(name, dtype, monkeypatch):
    monkeypatch.setattr("multikernel.training.on_torch.storage_dtype", lambda p, n, sizes: np.dtype(dtype))
    V, kernels = FAR[name]
    host, gram = (prepare(kernels, V, None, Settings("Test", (), gram=kind)).gram for kind in ("dense", CPU))
    assert gram.dtype == dtype
    np.testing.assert_allclose(
        gram.rows(np.arange(N)), host.rows(np.arange(N)), rtol=1e-5 if dtype == np.float32 else 1e-9, atol=1e-12
    )


def test_memory_for_a_tile_does_not_grow_with_the_number_of_kernels(monkeypatch):
    monkeypatch.setattr(on_device, "WORKING_SET", N)
    kernels = [RBF(gamma=10.0**k) for k in range(-3, 3)]
    gram = prepare(kernels, X, None, Settings("Test", (), gram=CPU, memory_limit="60kB")).gram
    assert gram.recomputed
    every = torch.arange(N)
    sizes = [(len(members), tile.numel()) for members, tile in gram.values.tiles(range(6), every, slice(0, N))]
    assert sizes == [(1, N * N)] * 6
    sizes = [(len(members), tile.numel()) for members, tile in gram.values.tiles(range(6), every[:10], slice(0, N))]
    assert sizes == [(4, 4 * 10 * N), (2, 2 * 10 * N)]
    np.testing.assert_allclose(
        gram.apply(np.ones(N)), prepare(kernels, X, None, Settings("Test", ())).gram.apply(np.ones(N))
    )


@pytest.mark.parametrize("scale", [2.0**80, 2.0**-80])
def test_large_problems_with_values_that_float32_cannot_hold(scale, monkeypatch):
    monkeypatch.setattr("multikernel.gram.storage.SINGLE_ABOVE", 0)
    one, other = (MKLClassifier([Linear(), RBF()], gram=CPU).fit(X * s, X[:, 0] > 0) for s in (1.0, scale))
    assert (one.gram_.dtype, other.gram_.dtype) == ("float32", "float64")
    assert other.status_ == "converged" and other.objective_ == pytest.approx(one.objective_, rel=2e-3)


@pytest.mark.parametrize("kind", ["dense", "lazy", "memmap"])
def test_tensors_are_not_kept_on_the_host(kind):
    with pytest.raises(ValueError, match=f"'gram' parameter of MKLClassifier must be 'auto', .* Got '{kind}' instead"):
        MKLClassifier("precomputed", gram=kind).fit(torch.from_numpy(X @ X.T)[None], X[:, 0] > 0.0)


def test_the_whole_combined_kernel_on_the_host_is_counted(monkeypatch):
    K = torch.from_numpy(X @ X.T)
    combined = TorchGram(StoredValues([K])).combined(np.ones(1))
    # the memory of the processor is that of the host: nothing is copied
    assert np.shares_memory(combined.host_rows().matrix, combined.matrix.numpy())
    monkeypatch.setattr("multikernel.gram.torch.default_limit", lambda: 8.0 * N * N - 1.0)
    other = TorchGram(StoredValues([K])).combined(np.ones(1))
    other._device = torch.device("meta")
    with pytest.raises(MemoryError, match=r"on 40 samples must come to the host, where it takes 12\.8 kB and half of"):
        other.host_rows()


def test_without_pinned_memory_ordinary_memory_is_taken(monkeypatch):
    empty = torch.empty

    def none_left(*shape, pin_memory=False, **options):
        if pin_memory:
            raise RuntimeError("CUDA error: out of memory")
        return empty(*shape, **options)

    class Far:
        """A tensor of another device."""

        shape, dtype, device = (3,), torch.float64, torch.device("meta")

    monkeypatch.setattr(torch, "empty", none_left)
    monkeypatch.setattr(torch.Tensor, "copy_", lambda self, other: self.fill_(2.0))
    assert to_host(Far()).tolist() == [2.0] * 3
