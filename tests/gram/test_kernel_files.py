"""Kernels in files: mapped where they are, or copied by blocks into a mapped file."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from multikernel import MKLClassifier, stack_kernels
from multikernel.gram.kernel_files import is_stored, open_kernel


class Chunked:
    """Stand in for a dataset of h5py or Zarr: rows are read by slices only."""

    def __init__(self, values, chunks=(2, 2)):
        self._values, self.shape, self.dtype, self.chunks = values, values.shape, values.dtype, chunks
        self.read = 0

    def __getitem__(self, rows):
        assert isinstance(rows, slice)
        self.read += 1
        return self._values[rows]


@pytest.fixture
def K():
    Z = np.random.default_rng(0).normal(size=(30, 3))
    return Z @ Z.T


def test_npy_files_are_mapped(K, tmp_path):
    np.save(tmp_path / "K.npy", K)
    np.save(tmp_path / "both.npy", np.array([K, K]))
    found = open_kernel(tmp_path / "K.npy")
    assert isinstance(found, np.memmap)
    stack = stack_kernels({"a": str(tmp_path / "K.npy"), "b": np.eye(30)})
    np.testing.assert_array_equal(np.asarray(stack)[..., 0], K)
    assert stack_kernels(tmp_path / "K.npy").n_kernels == 1 and stack_kernels(tmp_path / "both.npy").n_kernels == 2
    y = np.arange(30) % 2
    assert len(MKLClassifier("precomputed").fit(stack, y).predict(stack)) == 30


def test_chunks_are_copied_some_rows_at_a_time(K, monkeypatch):
    monkeypatch.setattr("multikernel.gram.kernel_files.BLOCK_BYTES", 8 * 30 * 7)
    dataset = Chunked(K)
    assert is_stored(dataset) and not is_stored(K)
    stack = stack_kernels([dataset])
    assert dataset.read == 5
    np.testing.assert_array_equal(np.asarray(stack)[..., 0], K)
    with pytest.raises(ValueError, match=r"must be numbers of shape \(n_rows, n_train\). Got <U1 of shape \(1,\)"):
        open_kernel(Chunked(np.array(["a"])))


def test_zarr_and_hdf5_by_their_names(K, tmp_path, monkeypatch):
    group = {"one": Chunked(K), "two": Chunked(2 * K)}
    monkeypatch.setitem(sys.modules, "zarr", SimpleNamespace(open=lambda file, mode: group))
    folder = tmp_path / "k.zarr"
    folder.mkdir()
    np.testing.assert_array_equal(open_kernel(f"{folder}::two"), 2 * K)
    with pytest.raises(ValueError, match=r"must be named, as 'k.zarr::one', 'k.zarr::two'. Got '' instead"):
        open_kernel(folder)
    del group["two"]
    np.testing.assert_array_equal(open_kernel(folder), K)
    monkeypatch.setitem(sys.modules, "zarr", SimpleNamespace(open=lambda file, mode: Chunked(K)))
    np.testing.assert_array_equal(open_kernel(folder), K)

    # a dataset in one piece is mapped in its file
    path = tmp_path / "k.h5"
    path.write_bytes(b"head" * 2 + K.tobytes())
    whole = Chunked(K, chunks=None)
    whole.id, whole.file = SimpleNamespace(get_offset=lambda: 8), SimpleNamespace(filename=str(path))

    class File(dict):
        def __init__(self, file, mode):
            super().__init__(K=whole)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

    monkeypatch.setitem(sys.modules, "h5py", SimpleNamespace(File=File))
    np.testing.assert_array_equal(open_kernel(path), K)
    assert whole.read == 0


def test_hdf5_as_h5py_writes_it(K, tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "k.h5", "w") as file:
        file["one"] = K
        file.create_dataset("two", data=K, chunks=(8, 8), compression="gzip")
    for name in ("one", "two"):
        np.testing.assert_array_equal(open_kernel(f"{tmp_path / 'k.h5'}::{name}"), K)


def test_files_that_are_no_kernels_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"must be a file. There is none"):
        open_kernel(tmp_path / "no.npy")
    for name in ("k.txt", "abc"):
        with pytest.raises(ValueError, match="must be 2-D arrays or an array"):
            stack_kernels(name)
