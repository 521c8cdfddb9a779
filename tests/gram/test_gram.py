"""Every storage answers as plain NumPy does, and none copies or writes what it was handed."""

import gc
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from problems import combined_rows

from multikernel import MKLClassifier
from multikernel.gram import storage
from multikernel.gram.dense import AffineForm, DenseGram
from multikernel.gram.lazy import LazyGram
from multikernel.gram.memmap import MemmapGram, memmap_stack
from multikernel.gram.slices import gather
from multikernel.gram.stack import stack_kernels
from multikernel.gram.storage import choose_storage, default_limit, parse_bytes, row_budget, storage_dtype
from multikernel.gram.subset import SubsetGram
from multikernel.kernels import Linear, Polynomial
from multikernel.threads import Team
from multikernel.training.stacked import gather_square

P, N = 3, 21


def make_stack(dtype=np.float64, seed=0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(P, N, 4))
    return (Z @ Z.transpose(0, 2, 1)).astype(dtype)


def make_form(kind: str) -> AffineForm:
    rng = np.random.default_rng(1)
    scale = rng.uniform(0.5, 2, P)
    u = rng.uniform(0.5, 2, (P, N)) if "u" in kind else None
    A, B = (rng.normal(size=(P, N, 2)) for _ in range(2)) if "AB" in kind else (None, None)
    return AffineForm(scale, u, A, B) if kind else AffineForm(np.ones(P))


def explicit(K: np.ndarray, form: AffineForm) -> np.ndarray:
    """K~_ij = s u_i u_j K_ij - sum_t (A_it B_jt + B_it A_jt), in float64."""
    out = form.scale[:, None, None] * K.astype(np.float64)
    if form.u is not None:
        out = out * form.u[:, :, None] * form.u[:, None, :]
    if form.A is not None:
        out = out - np.einsum("kit,kjt->kij", form.A, form.B) - np.einsum("kit,kjt->kij", form.B, form.A)
    return out


def as_lazy(K, form, **options) -> LazyGram:
    whole = explicit(K, form)
    diag = np.diagonal(whole, axis1=1, axis2=2)
    return LazyGram(lambda kernels, idx: ((k, whole[k, idx]) for k in kernels), diag, dtype=K.dtype, **options)


def as_mapped(K, form) -> MemmapGram:
    stack = memmap_stack(*K.shape[:2], K.dtype)
    stack[:] = K
    return MemmapGram(stack, form)


def spaced(K) -> np.ndarray:
    wide = np.zeros((P, 2 * N, 2 * N), K.dtype)
    wide[:, ::2, ::2] = K
    return wide[:, ::2, ::2]


def frozen(K) -> np.ndarray:
    K = K.copy()
    K.flags.writeable = False
    return K


STORAGES = {
    "array": lambda K, form: DenseGram(K, form),
    "array, two threads": lambda K, form: DenseGram(K, form, n_threads=2),
    "list": lambda K, form: DenseGram([K[0].copy(), K[1].copy(), K[2].copy()], form),
    "non-contiguous": lambda K, form: DenseGram(spaced(K), form),
    "read-only": lambda K, form: DenseGram(frozen(K), form),
    "Fortran order": lambda K, form: DenseGram(np.asfortranarray(K), form),
    "lazy": lambda K, form: as_lazy(K, form),
    "lazy, all kept": lambda K, form: as_lazy(K, form, budget=1e9),
    "lazy, few kept, two threads": lambda K, form: as_lazy(K, form, budget=7 * N * K.itemsize, n_threads=2),
    "memmap": as_mapped,
}


def hold_outputs_against(gram, v, applied, beta, close):
    """Hold outputs that reach v in two steps, or kernel by kernel, against products K_k v."""
    outputs = gram.new_outputs(v.shape)
    half = v.copy()
    half[::2] = 0.0
    outputs.update(half)
    outputs.update(v, np.array([2, 0]))
    outputs.put(np.array([1]), applied[[1]])
    np.testing.assert_allclose(outputs.kernel_outputs(), applied, **close)
    np.testing.assert_allclose(outputs.kernel_outputs(np.array([4, 2])), applied[:, [4, 2]], **close)
    np.testing.assert_allclose(outputs.quadratic_forms(), [np.sum(v * a) for a in applied], **close)
    np.testing.assert_allclose(outputs.mix(beta), np.tensordot(beta, applied, 1), **close)
    part = outputs.take(np.array([2, 1]))
    part.update(2.0 * v)
    np.testing.assert_allclose(part.kernel_outputs(), 2.0 * applied[[2, 1]], **close)
    # a copy: the whole has not moved
    np.testing.assert_allclose(outputs.kernel_outputs(), applied, **close)
    outputs.put(np.array([2, 1]), part)
    np.testing.assert_allclose(
        outputs.kernel_outputs(), applied * np.array([1, 2, 2]).reshape(3, *[1] * v.ndim), **close
    )


@pytest.mark.loops
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["", "scale", "u", "AB", "u AB"])
@pytest.mark.parametrize("storage", STORAGES)
def test_a_storage_answers_as_numpy_does(storage, kind, dtype):
    K, form = make_stack(dtype), make_form(kind)
    before = K.copy()
    gram, reference = STORAGES[storage](K, form), explicit(K, form)
    close = {"rtol": 1e-12, "atol": 1e-12} if dtype == np.float64 else {"rtol": 2e-5, "atol": 2e-4}
    rng = np.random.default_rng(2)
    rows, beta = np.array([5, 0, 17, 3, 20]), np.array([0.3, 0.0, 0.7])

    assert (gram.n_kernels, gram.n_samples, gram.dtype) == (P, N, dtype)
    for _ in range(2):  # a second time from what a cache kept
        combined = np.tensordot(beta, reference, 1)
        np.testing.assert_allclose(combined_rows(gram, beta, rows), combined[rows], **close)
        np.testing.assert_allclose(gram.rows(rows), reference[:, rows], **close)
        np.testing.assert_allclose(gram.rows(rows, np.array([2, 0])), reference[[2, 0]][:, rows], **close)
    out = np.full((N, N), np.nan, dtype)
    gram.combine(beta, rows, out, rows)
    np.testing.assert_allclose(out[rows], combined[rows], **close)
    assert np.isnan(np.delete(out, rows, axis=0)).all()
    assert not combined_rows(gram, np.zeros(P), rows).any()

    sparse = np.zeros(N)
    sparse[rows] = rng.normal(size=5)
    for v in (rng.normal(size=N), sparse, rng.normal(size=(N, 2))):
        applied = np.einsum("kij,j...->ki...", reference, v)
        np.testing.assert_allclose(gram.apply(v), applied, **close)
        np.testing.assert_allclose(gram.apply(v, np.array([1])), applied[[1]], **close)
        hold_outputs_against(gram, v, applied, beta, close)
    F = np.ones((P, N))
    outputs = gram.new_outputs((N,), (np.zeros(N), F))
    outputs.update(sparse)
    np.testing.assert_allclose(outputs.kernel_outputs(), 1 + reference @ sparse, **close)
    assert np.all(F == 1), "what was known belongs to the caller"
    np.testing.assert_allclose(gram.diag(), np.diagonal(reference, axis1=1, axis2=2), **close)
    np.testing.assert_array_equal(K, before)


@pytest.mark.parametrize("storage", ["array", "lazy", "memmap"])
def test_a_subset_is_the_kernels_restricted(storage):
    K, form = make_stack(), make_form("u AB")
    idx = np.array([4, 1, 9, 13, 2])
    gram = SubsetGram(STORAGES[storage](K, form), idx)
    reference = explicit(K, form)[:, idx][:, :, idx]
    rows, beta, v = np.array([3, 0]), np.array([0.5, 0.0, 0.5]), np.arange(5.0)
    np.testing.assert_allclose(combined_rows(gram, beta, rows), np.tensordot(beta, reference, 1)[rows])
    np.testing.assert_allclose(gram.rows(rows, np.array([1])), reference[[1]][:, rows])
    np.testing.assert_allclose(gram.apply(v), reference @ v)
    np.testing.assert_allclose(gram.diag(), np.diagonal(reference, axis1=1, axis2=2))
    outputs = gram.new_outputs((5,))
    outputs.update(np.array([-2.0, 0.0, 0.0, 1.0, 0.0]))
    np.testing.assert_allclose(outputs.kernel_outputs(), reference[:, 3] - 2 * reference[:, 0])
    out = np.zeros((5, 5))
    gram.combine(beta, rows, out, rows)
    np.testing.assert_allclose(out[rows], np.tensordot(beta, reference, 1)[rows])
    assert gram.nbytes == gram.parent.nbytes and gram.kind == gram.parent.kind


# ---- dense


@pytest.mark.parametrize("make", [lambda K: K, list, frozen], ids=["array", "list", "read-only"])
def test_a_dense_gram_copies_nothing(make):
    K = make_stack()
    kernels = make(K)
    gram = DenseGram(kernels)
    for k in range(P):
        assert np.shares_memory(gram.raw(k), kernels[k])
        assert not gram.raw(k).flags.writeable
    assert gram.nbytes == 0
    assert DenseGram(K, owned=True).nbytes == K.nbytes


# ---- lazy


def counting(K):
    calls = []

    def compute(kernels, idx):
        for k in kernels:
            calls.extend((int(k), int(i)) for i in idx)
            yield k, K[k, idx]

    return compute, calls


def test_a_lazy_gram_computes_only_what_is_asked_for():
    K = make_stack()
    compute, calls = counting(K)
    gram = LazyGram(compute, np.diagonal(K, axis1=1, axis2=2))
    combined_rows(gram, np.array([0.0, 1.0, 0.0]), np.array([4, 7]))
    assert sorted(calls) == [(1, 4), (1, 7)]
    assert gram.nbytes == 0


def test_a_lazy_gram_keeps_the_rows_used_last():
    K = make_stack()
    compute, calls = counting(K)
    budget = 2 * P * N * 8
    gram = LazyGram(compute, np.diagonal(K, axis1=1, axis2=2), budget=budget)
    for i in (0, 1, 0, 2):
        gram.rows(np.array([i]))
    assert gram.nbytes == budget
    calls.clear()
    gram.rows(np.array([0, 2]))
    assert calls == []  # row 1 was the least recently used
    gram.rows(np.array([1]))
    assert sorted(calls) == [(k, 1) for k in range(P)]
    assert gram.nbytes <= budget


def test_a_lazy_gram_computes_the_kernels_that_a_row_lacks():
    K = make_stack()
    compute, calls = counting(K)
    gram = LazyGram(compute, np.diagonal(K, axis1=1, axis2=2), budget=1e6)
    gram.rows(np.array([3]), np.array([1]))
    calls.clear()
    np.testing.assert_array_equal(gram.rows(np.array([3, 5])), K[:, [3, 5]])
    assert sorted(calls) == [(0, 3), (0, 5), (1, 5), (2, 3), (2, 5)]


# ---- memmap


def test_the_file_of_a_mapped_gram_has_no_name_and_goes_with_it(tmp_path):
    stack = memmap_stack(P, N, np.float32, str(tmp_path))
    stack[:] = make_stack(np.float32)
    gram = MemmapGram(stack)
    assert isinstance(gram, DenseGram) and gram.kind == "memmap"
    assert gram.nbytes == P * N * N * 4
    if sys.platform != "win32":
        assert list(tmp_path.iterdir()) == []
    del gram, stack
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_one_sentence(tmp_path):
    with pytest.raises(MemoryError, match=r"need .* GB on disk, and the folder .* GB free: .* gram='lazy'"):
        memmap_stack(1000, 10**7, np.float64, str(tmp_path))


# ---- the choice


def test_the_storage_follows_from_the_memory():
    stack = 10 * 1000 * 1000 * 8
    assert choose_storage(10, 1000, 8, 1.2 * stack) == "dense"
    assert choose_storage(10, 1000, 8, 0.9 * stack) == "lazy"
    assert choose_storage(10, 1000, 8, 0.9 * stack, "memmap") == "memmap"
    assert choose_storage(10, 1000, 8, 0.9 * stack, "lazy") == "lazy"
    assert choose_storage(10, 1000, 8, 0.2 * stack, stored=True) == "dense"
    assert choose_storage(10, 100, 8) == "dense"
    assert row_budget(1000, 8, stack) == 0.9 * stack
    assert row_budget(1000, 8, 1) == 0
    assert row_budget(10, 8) > 0


def test_float64_up_to_256_mb_and_float32_above():
    n = 1000
    most = storage.SINGLE_ABOVE // (8 * n * n)
    assert (storage_dtype(most, n), storage_dtype(most + 1, n)) == (np.float64, np.float32)
    # values that float32 cannot hold
    for size, kept in ((1e50, np.float64), (1e-50, np.float64), (0.0, np.float32)):
        assert storage_dtype(most + 1, n, np.array([1.0, size])) == kept


@pytest.mark.parametrize("kind", ["dense", "lazy", "memmap"])
@pytest.mark.parametrize("scale", [2.0**80, 2.0**-80])
def test_large_problems_with_values_that_float32_cannot_hold(kind, scale, monkeypatch):
    monkeypatch.setattr(storage, "SINGLE_ABOVE", 0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    one, other = (
        MKLClassifier([Linear(), Polynomial(degree=2, coef0=0.0)], gram=kind).fit(X * s, X[:, 0] > 0)
        for s in (1.0, scale)
    )
    assert (one.gram_.dtype, other.gram_.dtype) == ("float32", "float64")
    assert other.status_ == "converged" and other.objective_ == pytest.approx(one.objective_, rel=2e-3)


def test_too_little_memory_is_one_sentence():
    dense = (
        "10 kernels on 1000 samples need 88 MB with gram='dense', and the memory limit is 80 MB: "
        "use gram='lazy' or gram='memmap', or a larger 'memory_limit'."
    )
    with pytest.raises(MemoryError, match=re.escape(dense)):
        choose_storage(10, 1000, 8, "80MB", "dense")
    combined = (
        "combined kernel on 1000 samples needs up to 8 MB, and the memory limit is 1 MB: use fewer samples, "
        "or a larger 'memory_limit'"
    )
    with pytest.raises(MemoryError, match=re.escape(combined)):
        choose_storage(10, 1000, 8, "1MB")
    with pytest.raises(MemoryError, match=r"needs up to 800 TB, and .* \(half of the free memory\)"):
        choose_storage(2, 10**7, 8, None, "lazy")


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2GB", 2e9),
        ("1.5 gb", 1.5e9),
        ("10MiB", 10 * 2**20),
        ("3 k", 3e3),
        ("1e3", 1e3),
        ("5 TB", 5e12),
        (7, 7.0),
    ],
)
def test_sizes_are_numbers_or_texts(text, size):
    assert parse_bytes(text) == size


@pytest.mark.parametrize("wrong", ["much", "", "GB", "1.2.3GB", ".", "0", -1, 0, True, float("nan"), None, "2 XB"])
def test_other_sizes_are_refused(wrong):
    with pytest.raises(ValueError, match=r"'memory_limit' parameter must be None, a positive number .* Got .* instead"):
        parse_bytes(wrong)


def test_the_default_limit_is_half_of_what_the_system_or_the_container_has(tmp_path, monkeypatch):
    assert 0 < default_limit() < 1e15
    (tmp_path / "meminfo").write_text("MemTotal: 10 kB\nMemAvailable:    7 kB\n")
    assert default_limit(str(tmp_path), str(tmp_path / "meminfo")) == 3.5 * 1024
    other = SimpleNamespace(virtual_memory=lambda: SimpleNamespace(available=700))
    monkeypatch.setitem(sys.modules, "psutil", other)
    monkeypatch.setattr(storage.os.path, "exists", lambda path: False)
    assert default_limit(str(tmp_path)) == 350
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("400\n")
    assert default_limit(str(tmp_path)) == 300
    (tmp_path / "memory.current").write_text("200\n")
    assert default_limit(str(tmp_path)) == 350
    (tmp_path / "memory.current").write_text("2000\n")
    assert default_limit(str(tmp_path)) == 0
    (tmp_path / "memory.max").write_text("max\n")
    assert default_limit(str(tmp_path)) == 350
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("100\n")
    (tmp_path / "memory" / "memory.usage_in_bytes").write_text("40\n")
    assert default_limit(str(tmp_path)) == 30


def test_names_of_the_package_load_at_first_use():
    import multikernel.gram as room

    for name in room.__all__:
        assert getattr(room, name) is not None
        assert name in dir(room)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = room.Nothing


@pytest.mark.parametrize("order", ["runs", "scattered", "one run", "reversed"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_rows_and_columns_of_a_stack_are_gathered_with_their_sums(order, dtype):
    K = (10.0 * make_stack()).astype(dtype)
    rows = {
        "runs": np.r_[0:4, 6:13, 15, 17:21],
        "scattered": np.random.default_rng(0).permutation(N)[:13],
        "one run": np.arange(3, 17),
        "reversed": np.arange(N)[::-2],
    }[order]
    part = stack_kernels(K)[rows]
    wanted = K[:, rows][:, :, rows]
    for team in (Team(1), Team(2)):
        found = np.empty((P, len(rows), len(rows)), part.dtype)
        sums = gather_square(part, team, found)
        np.testing.assert_array_equal(found, wanted.astype(part.dtype))
        np.testing.assert_allclose(sums.row_sums, wanted.sum(axis=2, dtype=float), rtol=1e-12, atol=1e-5)
        np.testing.assert_allclose(sums.diagonal, np.diagonal(wanted, axis1=1, axis2=2), rtol=1e-6)
    for k in range(P):
        np.testing.assert_array_equal(gather(K[k], rows, rows[:5]), K[k][rows][:, rows[:5]])


def test_a_file_that_cannot_be_mapped_is_a_memory_error(tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("multikernel.gram.memmap.np.memmap", full)
    with pytest.raises(MemoryError, match=r"No space left on device\): use gram='lazy'"):
        memmap_stack(2, 3, np.float64, str(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("normalize", ["none", "unit", "centred"])
@pytest.mark.parametrize("apart", [False, True])
def test_few_samples_are_a_copy_with_the_same_values(normalize, apart):
    """A quarter of the entries is copied, more are a view; either way the values are those of the rows asked for."""
    rng = np.random.default_rng(0)
    n, p = 12, 3
    X = rng.normal(size=(p, n, 4))
    K = X @ X.transpose(0, 2, 1)
    u = rng.random((p, n)) + 0.5 if normalize == "unit" else None
    A, B = rng.normal(size=(2, p, n, 2)) if normalize == "centred" else (None, None)
    gram = DenseGram(list(K) if apart else K, AffineForm(np.array([1.0, 2.0, 0.5]), u, A, B))
    whole, beta = gram.block(np.arange(n)), rng.random(p)
    for size, copied in ((6, True), (7, False)):
        idx = rng.permutation(n)[:size]
        part, expected = gram.take_samples(idx), whole[:, idx[:, None], idx]
        assert isinstance(part, DenseGram) is copied
        if copied:
            # the entries of a kernel lie together, as in the stack
            assert all(part.raw(k).flags.c_contiguous for k in range(p))
        assert part.n_samples == size and part.n_kernels == p
        v = rng.normal(size=size)
        np.testing.assert_allclose(part.apply(v), expected @ v, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(part.diag(), np.diagonal(expected, axis1=1, axis2=2), rtol=1e-12)
        np.testing.assert_allclose(part.block(np.arange(size)), expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(part.combined(beta).apply(v), np.tensordot(beta, expected, 1) @ v, rtol=1e-10)
        np.testing.assert_array_equal(
            np.broadcast_to(part.loose, (p, size)), np.broadcast_to(gram.loose, (p, n))[:, idx]
        )
