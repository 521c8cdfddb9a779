"""Arrays on a device answer NumPy's functions as arrays of the host do."""

import numpy as np
import pytest

from multikernel import MKLRegressor
from multikernel.gram import TorchStorage
from multikernel.gram.dense import DenseGram
from multikernel.kernels import RBF
from multikernel.machines.ridge import Ridge
from multikernel.mixing.norms import mixing_for
from multikernel.problem import Problem
from multikernel.solve import solve

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from multikernel.gram.device import StoredValues  # noqa: E402
from multikernel.gram.device_array import DeviceArray  # noqa: E402
from multikernel.gram.torch import TorchGram  # noqa: E402

RNG = np.random.default_rng(0)
A, B, ROW = RNG.normal(size=(6, 4)), RNG.normal(size=(6, 4)), RNG.normal(size=4)
CUBE = RNG.normal(size=(3, 6, 4))
AT = np.array([4, 0, 4])

CALLS = {
    "arithmetic": lambda a, c: 2.0 * a - B / 0.1 + a**2 * ROW - (-a),
    "one repeated number": lambda a, c: a - np.broadcast_to(0.1, a.shape),
    "numbers of NumPy": lambda a, c: np.float64(0.1) * a + np.int64(3),
    "compared": lambda a, c: np.where(a < B, a, 0.0),
    "condition": lambda a, c: np.where(a * (a > 0.0), np.abs(a), -1.0),
    "sum": lambda a, c: np.sum(a, axis=0) + a.sum(axis=0, keepdims=True)[0],
    "whole sum": lambda a, c: a.sum() + np.sum(a),
    "vdot": lambda a, c: np.vdot(a, B),
    "matrix": lambda a, c: a.T @ B + ROW,
    "vector": lambda a, c: a @ ROW,
    "three axes": lambda a, c: np.moveaxis(np.concatenate([c, a[None]]), 0, -1) @ ROW,
    "tensordot": lambda a, c: np.tensordot(np.arange(3.0), c, 1) + a * np.tensordot(c, a, 2)[0],
    "mean": lambda a, c: np.average(c, axis=1),
    "weighted mean": lambda a, c: np.average(c, axis=1, weights=np.arange(6.0)),
    "largest": lambda a, c: np.abs(a).max(axis=0) + np.abs(a).max() + (-np.abs(a)).max(initial=0.5),
    "places": lambda a, c: a.argmax(axis=0) + a.argmin(axis=0),
    "any": lambda a, c: (a > 1.0).any(axis=1) | bool(a.any()),
    "whole numbers": lambda a, c: np.rint(100.0 * a).astype(np.int64).sum(axis=0),
    "rows": lambda a, c: a[AT],
    "entries": lambda a, c: a[AT, np.arange(3)],
    "transposed": lambda a, c: c.T[2],
    "shape": lambda a, c: np.array([*c.shape, c.ndim, c.size, len(c)]),
    "zeros": lambda a, c: np.zeros_like(a) + 1.0,
    "zeros of another precision": lambda a, c: np.zeros_like(a.astype(np.float32), float) + 0.1,
    "on the host": lambda a, c: np.hypot(a, B) + np.diff(np.concatenate([a, a]), axis=0)[:6],
    "lists on the host": lambda a, c: np.hstack([a, a]),
    "reduced on the host": lambda a, c: np.add.reduce(a, axis=1),
}


def device_array(array):
    return DeviceArray(torch.from_numpy(array.copy()))


@pytest.mark.parametrize("name", CALLS)
def test_functions_of_numpy_give_what_they_give_on_the_host(name):
    found, expected = CALLS[name](device_array(A), device_array(CUBE)), CALLS[name](A, CUBE)
    # vectors and numbers come to the host
    assert isinstance(found, DeviceArray) == (np.ndim(expected) > 1 and "host" not in name)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-14)


def test_entries_are_set_and_copies_are_independent():
    a, plain = device_array(A), A.copy()
    b = a.copy()
    for each in (a, plain):
        each[AT[:2]] -= 2.0 * each[AT[:2]]
        each[AT, np.arange(3)] = 7.0
        each += B
        each -= 1.0
    np.testing.assert_array_equal(np.asarray(a), plain)
    np.testing.assert_array_equal(np.asarray(b), A)
    host = A.copy()
    host += b
    np.testing.assert_array_equal(host, 2.0 * A)


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_least_squares_of_many_targets_stay_on_the_device(norm, balanced):
    x = RNG.normal(size=(60, 3))
    K = np.array([np.exp(-((each[:, None] - each) ** 2)) for each in x.T])
    Y = np.sin(x @ RNG.normal(size=(3, 7))) + 0.1 * RNG.normal(size=(60, 7)) + 5.0
    gram = TorchGram(StoredValues([torch.from_numpy(each) for each in K]))
    found = solve(Problem(gram, Ridge(gram.hold(Y), 2.0, balanced), mixing_for(norm)), tol=1e-8)
    plain = solve(Problem(DenseGram(K), Ridge(Y, 2.0, balanced), mixing_for(norm)), tol=1e-8)
    assert isinstance(found.dual_coef, DeviceArray) and isinstance(found.outputs, DeviceArray)
    assert found.status == plain.status == "converged" and found.upper == pytest.approx(plain.upper, rel=1e-8)
    np.testing.assert_allclose(np.asarray(found.dual_coef), plain.dual_coef, atol=1e-3)
    if balanced:
        # exact sums
        coef = np.asarray(found.dual_coef)
        unit = 2.0 ** (np.frexp(np.abs(coef).max(axis=0))[1] - 53.0)
        whole = coef / unit
        assert np.all(whole == np.rint(whole)) and not whole.astype(np.int64).sum(axis=0).any()


def test_a_model_of_many_targets_is_on_the_host():
    x = RNG.normal(size=(50, 2))
    Y = np.c_[x[:, 0], x[:, 1] ** 2, np.sin(x)]
    model = MKLRegressor([RBF(width=1.0), RBF(width=3.0)], loss="squared", gram=TorchStorage("cpu")).fit(x, Y)
    assert type(model.dual_coef_) is np.ndarray and model.dual_coef_.shape == (4, 50)
    assert type(model.intercept_) is np.ndarray and model.kernel_contributions_.sum() == pytest.approx(1.0)
    rows = []

    def watch(row):
        rows.append(row["decision_function"](x[:3]).shape)

    MKLRegressor([RBF(width=1.0), RBF(width=3.0)], loss="squared", gram="torch", callback=watch).fit(x, Y)
    assert set(rows) == {(3, 4)}


def test_a_device_without_room_for_many_targets_is_one_sentence(monkeypatch):
    def full(*args, **kwargs):
        raise torch.OutOfMemoryError("CUDA out of memory")

    a = device_array(A)
    for name, call in (("mul", lambda: 2.0 * a), ("cat", lambda: np.concatenate([a, a]))):
        monkeypatch.setattr(torch, name, full)
        with pytest.raises(MemoryError, match=r"cpu has .* free, and arrays of the targets must take"):
            call()
