"""Arrays on a device of PyTorch that NumPy's functions work on.

Coefficients of thousands of targets are as large as a kernel: each pass over them on the host, and each transfer, takes
longer than the products on the device. Machines and points are written in NumPy; given a ``DeviceArray``, their
functions work where it is, by the protocols ``__array_ufunc__`` and ``__array_function__``. Numbers and vectors that a
function returns come to the host, arrays of two and more axes stay. A function that is not listed here works on a copy
on the host.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from multikernel.gram.device import Tensor, room_for, to_device, to_host, torch, torch_dtype


def unwrap(value: Any, device: Any) -> Tensor:
    """Return an argument as a tensor: an array on the device, a number as a tensor without axes."""
    if isinstance(value, DeviceArray):
        return value.tensor
    array = np.asarray(value)
    if array.size and not any(array.strides):
        # a number, or one that is repeated: PyTorch reads it from the host
        return torch.from_numpy(np.array(array.flat[0]))
    return to_device(array, device)


def wrap(result: Any) -> Any:
    """Return a result of PyTorch as NumPy's caller expects it."""
    if not isinstance(result, torch.Tensor):
        return result
    if result.ndim > 1:
        return DeviceArray(result)
    return to_host(result) if result.ndim else result.item()


def like(given: Any, tensor: Tensor) -> Any:
    """Return a result where the argument is that it was computed from: on the device, or on the host."""
    return DeviceArray(tensor) if isinstance(given, DeviceArray) else to_host(tensor)


class DeviceArray(NDArrayOperatorsMixin):
    """An array on a device.

    Parameters
    ----------
    tensor : tensor
        What it holds.

    Examples
    --------
    >>> import numpy as np, pytest
    >>> torch = pytest.importorskip("torch")
    >>> A = DeviceArray(torch.ones((2, 3), dtype=torch.float64))
    >>> np.sum(2.0 * A + np.arange(3.0), axis=0)
    array([4., 6., 8.])
    """

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return tuple(self.tensor.shape)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.tensor.ndim

    @property
    def size(self) -> int:
        """Number of entries."""
        return self.tensor.numel()

    @property
    def T(self) -> DeviceArray:
        """The transpose."""
        return DeviceArray(self.tensor.permute(*reversed(range(self.ndim))))

    def __len__(self) -> int:
        return len(self.tensor)

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return np.asarray(to_host(self.tensor), dtype)

    def __getitem__(self, key: Any) -> Any:
        return wrap(self.tensor[self._key(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.tensor[self._key(key)] = unwrap(value, self.tensor.device).to(self.tensor.dtype)

    def _key(self, key: Any) -> Any:
        parts = tuple(
            to_device(each, self.tensor.device) if isinstance(each, np.ndarray) else each
            for each in (key if isinstance(key, tuple) else (key,))
        )
        return parts if isinstance(key, tuple) else parts[0]

    def _room(self) -> Any:
        return room_for("arrays of the targets", float(self.tensor.nbytes), self.tensor.device)

    def reshape(self, *shape: Any) -> DeviceArray:
        """Return the entries in another shape."""
        return DeviceArray(self.tensor.reshape(*shape))

    def astype(self, dtype: Any, copy: bool = True) -> DeviceArray:
        """Return the entries in another precision."""
        return DeviceArray(self.tensor.to(getattr(torch, np.dtype(dtype).name), copy=copy))

    def copy(self) -> DeviceArray:
        """Return a copy."""
        return DeviceArray(self.tensor.clone())

    def sum(self, axis: Any = None, keepdims: bool = False) -> Any:
        """Return sums along an axis."""
        t = self.tensor
        return wrap(t.sum() if axis is None else t.sum(dim=axis, keepdim=keepdims))

    def max(self, axis: Any = None, initial: Any = None) -> Any:
        """Return the largest entries, at least ``initial``."""
        largest = self.tensor.max() if axis is None else self.tensor.amax(dim=axis)
        return wrap(largest if initial is None else largest.clamp(min=initial))

    def any(self, axis: Any = None) -> Any:
        """Whether entries are not zero."""
        return wrap(self.tensor.any() if axis is None else self.tensor.any(dim=axis))

    def argmax(self, axis: int) -> Any:
        """Return where the largest entries are."""
        return wrap(self.tensor.argmax(dim=axis))

    def argmin(self, axis: int) -> Any:
        """Return where the smallest entries are."""
        return wrap(self.tensor.argmin(dim=axis))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        name = _UFUNCS.get(ufunc.__name__)
        if name is None or method != "__call__" or options:
            plain = [np.asarray(each) if isinstance(each, DeviceArray) else each for each in inputs]
            result = getattr(ufunc, method)(*plain, **options)
        else:
            with self._room():
                result = wrap(getattr(torch, name)(*(unwrap(each, self.tensor.device) for each in inputs)))
        if out is None:
            return result
        out[0][...] = result
        return out[0]

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        given = _FUNCTIONS.get(func.__name__)
        if given is not None:
            with self._room():
                return given(self.tensor.device, *args, **kwargs)
        return func(*_on_host(args), **{key: _on_host([value])[0] for key, value in kwargs.items()})


def _on_host(values: Any) -> list:
    """Return arguments with arrays of the device copied to the host."""
    return [
        np.asarray(each) if isinstance(each, DeviceArray) else _on_host(each) if isinstance(each, list) else each
        for each in values
    ]


def _where(device: Any, condition: Any, x: Any, y: Any) -> Any:
    return wrap(torch.where(unwrap(condition, device) != 0, unwrap(x, device), unwrap(y, device)))


def _zeros_like(device: Any, a: Any, dtype: Any = None) -> Any:
    return DeviceArray(torch.zeros_like(a.tensor, dtype=None if dtype is None else torch_dtype(dtype)))


def _tensordot(device: Any, a: Any, b: Any, axes: int) -> Any:
    return wrap(torch.tensordot(unwrap(a, device), unwrap(b, device), dims=axes))


def _average(device: Any, a: Any, axis: int, weights: Any = None) -> Any:
    if weights is None:
        return wrap(a.tensor.mean(dim=axis))
    return wrap(torch.tensordot(a.tensor, to_device(weights / weights.sum(), device), dims=([axis], [0])))


# functions of NumPy, by name, and those of PyTorch that do the same entry by entry
_UFUNCS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "true_divide", "negative": "neg", "absolute": "abs",
    "power": "pow", "square": "square", "rint": "round", "less": "lt", "greater": "gt", "matmul": "matmul",
}  # fmt: skip
# those that are more than that
_FUNCTIONS: dict[str, Any] = {
    "sum": lambda device, a, axis=None, **options: a.sum(axis, **options),
    "vdot": lambda device, a, b: float((unwrap(a, device) * unwrap(b, device)).sum()),
    "where": _where,
    "zeros_like": _zeros_like,
    "concatenate": lambda device, arrays: DeviceArray(torch.cat([unwrap(each, device) for each in arrays])),
    "moveaxis": lambda device, a, source, to: DeviceArray(a.tensor.movedim(source, to)),
    "tensordot": _tensordot,
    "average": _average,
}
