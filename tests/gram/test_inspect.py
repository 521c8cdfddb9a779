"""The inspection of kernel matrices and the search for negative eigenvalues, against plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from multikernel.gram.definite import probe_definiteness, repair, smallest_eigenvalue_ratio
from multikernel.gram.inspect import inspect_kernels, largest_asymmetry, largest_entry

REAL = pytest.mark.parametrize("dtype", [np.float32, np.float64])
THREADS = pytest.mark.parametrize("n_threads", [1, 3])


def points(n, d=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def gaussian(n, width=3.0, seed=0):
    X = points(n, seed=seed)
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / width)


def symmetric(n, seed=0):
    A = np.random.default_rng(seed).standard_normal((n, n))
    return A + A.T


def check_against_numpy(kernels, found):
    for k, K in enumerate(kernels):
        K64 = np.asarray(K, dtype=np.float64)
        eps = float(np.finfo(found.dtype).eps)
        d, top = np.diagonal(K64), np.abs(K64).max()
        assert found.finite[k]
        assert found.largest[k] == pytest.approx(top, rel=1e-3)
        assert found.asymmetry[k] == 0 and not found.asymmetric[k]
        assert found.smallest_diagonal[k] == d.min()
        np.testing.assert_array_equal(found.diagonal[k], d)
        np.testing.assert_allclose(found.row_sums[k], K64.sum(axis=1), rtol=1e-13, atol=1e-12 * top)
        np.testing.assert_allclose(found.probes[k], K64 @ found.weights, atol=2 * len(K) * eps * 3 * top)
        worst = np.max(K64**2 - np.outer(d, d)) / (top or 1.0) ** 2
        assert found.worst_minor[k] == pytest.approx(worst, abs=8 * eps)
        assert found.constant[k] == (np.ptp(K64) <= 1e-6 * top)


@pytest.mark.loops
@REAL
@THREADS
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 30])
def test_small_matrices(dtype, n_threads, n):
    kernels = np.array([gaussian(n), symmetric(n), np.full((n, n), 0.3), np.zeros((n, n))]).astype(dtype)
    kernels.flags.writeable = False
    check_against_numpy(kernels, inspect_kernels(kernels, n_threads=n_threads))


@REAL
@THREADS
@pytest.mark.parametrize("p", [1, 2, 7])
def test_kernels_or_rows_are_shared_among_threads(dtype, n_threads, p):
    kernels = np.array([gaussian(301, seed=k) for k in range(p)]).astype(dtype)
    check_against_numpy(kernels, inspect_kernels(kernels, n_threads=n_threads))


@REAL
def test_any_layout_is_read_where_it_lies(dtype):
    K = symmetric(40).astype(dtype)
    wide = np.zeros((40, 90), dtype=dtype)
    wide[:, 20:60] = K
    apart = np.zeros((80, 80), dtype=dtype)
    apart[::2, ::2] = K
    layouts = [K, np.asfortranarray(K), wide[:, 20:60], apart[::2, ::2], K[::-1, ::-1].copy()[::-1, ::-1]]
    check_against_numpy(layouts, inspect_kernels(layouts))
    truth = inspect_kernels([K])
    for name in ("row_sums", "diagonal", "largest", "worst_minor"):
        values = getattr(inspect_kernels(layouts), name)
        np.testing.assert_allclose(values, np.repeat(getattr(truth, name), 5, axis=0), rtol=1e-12, atol=1e-12)
    bounds = np.linalg.eigvalsh(K.astype(np.float64))[[0, -1]]
    found = probe_definiteness(layouts)
    assert found.indefinite.all() and np.all(found.smallest >= bounds[0] - 1e-4)


def test_other_dtypes_are_converted():
    kernels = [np.eye(5, dtype=int), np.ones((5, 5), dtype=np.float32), np.eye(5).astype(">f8")]
    found = inspect_kernels(kernels)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found.row_sums[0], np.ones(5))
    assert not probe_definiteness(kernels, found).indefinite.any()


@REAL
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [(0, 0), (0, 36), (36, 0), (36, 36), (17, 5), (35, 34)], ids=str)
def test_what_is_not_finite_is_laid_at_the_right_door(dtype, value, place):
    kernels = np.array([gaussian(37, seed=k) for k in range(4)]).astype(dtype)
    kernels[2][place] = value
    found = inspect_kernels(kernels, n_threads=2)
    np.testing.assert_array_equal(found.finite, [True, True, False, True])
    assert not found.asymmetric[2] and not found.indefinite.any() and not found.constant.any()
    verdict = probe_definiteness(kernels, found)
    assert np.isnan(verdict.smallest[2]) and not verdict.indefinite.any()
    assert np.isfinite(verdict.smallest[[0, 1, 3]]).all()


@REAL
@pytest.mark.parametrize("n", [2, 50, 333])
def test_asymmetry_is_found_and_measured(dtype, n):
    K = gaussian(n).astype(dtype)
    one = K.copy()
    one[n - 1, 0] += 0.01
    noisy = K + (1e-3 * np.random.default_rng(0).standard_normal((n, n))).astype(dtype)
    # equal sums of rows and columns
    cycle = np.roll(np.eye(n), 1, axis=1).astype(dtype)
    rounded = K * (1 + 0.4 * np.finfo(dtype).eps * np.random.default_rng(1).standard_normal((n, n))).astype(dtype)
    kernels = [K, one, noisy, cycle, rounded]
    found = inspect_kernels(kernels)
    np.testing.assert_array_equal(found.asymmetric, [False, True, True, n > 2, False])
    for k in (1, 2, 3)[: 3 if n > 2 else 2]:
        assert found.asymmetry[k] == pytest.approx(np.abs(kernels[k] - kernels[k].T).max(), rel=1e-6)
    assert largest_asymmetry(noisy) == np.abs(noisy - noisy.T).max()
    assert largest_entry(noisy) == np.abs(noisy).max()


@REAL
@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1e-6, 1.0, 1e6, 1e12, 1e30])
def test_scale_changes_nothing(dtype, scale):
    K = gaussian(60)
    bad = K - 0.05 * np.eye(60)
    hollow = K - np.diag(np.diagonal(K))
    kernels = [np.asarray(scale * M, dtype=dtype) for M in (K, bad, hollow, np.ones((60, 60)))]
    found = inspect_kernels(kernels)
    np.testing.assert_allclose(found.largest, scale * np.array([1, np.abs(bad).max(), hollow.max(), 1]), rtol=1e-3)
    np.testing.assert_allclose(found.row_sums[0], kernels[0].sum(axis=1, dtype=np.float64), rtol=1e-12)
    np.testing.assert_array_equal(found.constant, [False, False, False, True])
    assert not found.asymmetric.any()
    verdict = probe_definiteness(kernels, found)
    np.testing.assert_array_equal(found.indefinite | verdict.indefinite, [False, True, True, False])
    assert found.worst_minor[2] == pytest.approx(1.0, abs=1e-6)


def test_minors_and_diagonals_prove_indefiniteness():
    violated = np.eye(5)
    violated[1, 3] = violated[3, 1] = 1.5
    negative = np.diag([1.0, 2.0, -0.1])
    found = inspect_kernels([violated])
    assert found.indefinite[0]
    assert np.linalg.eigvalsh(violated)[0] <= -found.worst_minor[0] * found.largest[0] / 2
    found = inspect_kernels([negative])
    assert found.indefinite[0] and found.smallest_diagonal[0] == -0.1


# ---- negative eigenvalues


def indefinite_kernels(n=300):
    X = points(n)
    d = np.sqrt(((X[:, None] - X[None]) ** 2).sum(-1))
    noise = symmetric(n) / 2
    return {
        "sigmoid": np.tanh(0.1 * X @ X.T),
        "distance": 3 - np.sqrt(d**2 + 1),
        "power": np.exp(-(d**3) / 5),
        "truncated": np.maximum(1 - d / 3, 0),
        "difference": np.exp(-(d**2) / 10) - 0.02 * np.exp(-(d**2)),
        "noise": np.exp(-(d**2) / 5) + 1e-2 * noise,
        "narrow": np.exp(-(d**2) / 0.05) + 0.1 * noise,
        "outer": X @ X.T - 1e-2 * np.outer(noise[0], noise[0]),
    }


def definite_kernels(n=300, dtype=np.float64):
    X = points(n).astype(dtype)
    G = X @ X.T
    s = np.diagonal(G)
    d = np.maximum(s[:, None] + s - 2 * G, 0)
    centred = G - G.mean(axis=0) - G.mean(axis=1)[:, None] + G.mean()
    repeated = np.exp(-d / 2)[np.ix_(np.arange(n) // 4, np.arange(n) // 4)]
    kernels = [G, (1 + G) ** 3, np.exp(-d), np.exp(-d / 1e3), np.exp(-100 * d), centred, repeated]
    kernels += [np.ones((n, n)), np.zeros((n, n)), np.outer(X[:, 0], X[:, 0])]
    return [np.asarray((K + K.T) / 2, dtype=dtype) for K in kernels]


@REAL
@pytest.mark.parametrize("name", indefinite_kernels(4))
def test_indefinite_similarities_are_found(dtype, name):
    K = indefinite_kernels()[name].astype(dtype)
    found = inspect_kernels([K])
    assert not found.asymmetric[0]
    with_start, alone = probe_definiteness([K], found), probe_definiteness([K])
    low, high = np.linalg.eigvalsh(K.astype(np.float64))[[0, -1]]
    for verdict in (with_start, alone):
        assert verdict.indefinite[0]
        assert low - 1e-5 * high <= verdict.smallest[0] < 0
        assert verdict.largest[0] <= high * (1 + 1e-5)


@REAL
@pytest.mark.parametrize("n", [1, 2, 3, 12, 280])
@pytest.mark.parametrize("steps", [None, 3])
def test_semidefinite_kernels_are_not_accused(dtype, n, steps):
    kernels = definite_kernels(n, dtype)
    found = inspect_kernels(kernels, n_threads=2)
    assert not found.indefinite.any()
    assert not probe_definiteness(kernels, found, steps=steps, n_threads=2).indefinite.any()
    verdict = probe_definiteness(kernels, steps=steps)
    assert not verdict.indefinite.any()
    for K, low, high in zip(kernels, verdict.smallest, verdict.largest, strict=True):
        ends = np.linalg.eigvalsh(K.astype(np.float64))[[0, -1]]
        slack = 1e-4 * max(ends[1], 1e-300)
        assert ends[0] - slack <= low <= high <= ends[1] + slack


@pytest.mark.loops
@REAL
def test_ritz_values_of_a_full_space_are_eigenvalues(dtype):
    K = symmetric(9).astype(dtype)
    verdict = probe_definiteness([K])
    ends = np.linalg.eigvalsh(K.astype(np.float64))[[0, -1]]
    np.testing.assert_allclose([verdict.smallest[0], verdict.largest[0]], ends, rtol=1e-4)


def test_small_negative_eigenvalues_are_found_exactly_up_to_256_samples():
    U = np.linalg.qr(symmetric(250))[0]
    values = np.linspace(0.0, 1.0, 250)
    values[0] = -1e-6
    K = (U * values) @ U.T
    K = (K + K.T) / 2
    assert probe_definiteness([K]).smallest[0] == pytest.approx(-1e-6, rel=1e-3)
    assert not probe_definiteness([K.astype(np.float32)]).indefinite[0]


@THREADS
def test_products_of_a_callable(n_threads):
    kernels = [gaussian(300), indefinite_kernels(300)["sigmoid"]]
    diagonal = np.array([np.diagonal(K) for K in kernels])
    calls = []

    def apply(k, V):
        calls.append(V.shape)
        return kernels[k] @ V

    verdict = probe_definiteness(apply, diagonal=diagonal, steps=2, n_threads=n_threads)
    np.testing.assert_array_equal(verdict.indefinite, [False, True])
    assert max(shape[1] for shape in calls) == 16
    found = inspect_kernels(kernels)
    np.testing.assert_array_equal(probe_definiteness(apply, found, steps=2).indefinite, [False, True])
    with pytest.raises(ValueError, match="'diagonal' parameter of probe_definiteness must be given"):
        probe_definiteness(apply)


@REAL
def test_no_further_pass(dtype):
    kernels = [indefinite_kernels()["sigmoid"].astype(dtype), gaussian(300).astype(dtype)]
    found = inspect_kernels(kernels)
    np.testing.assert_array_equal(probe_definiteness(kernels, found, steps=0).indefinite, [True, False])
    alone = probe_definiteness(kernels, steps=0)
    np.testing.assert_array_equal(alone.indefinite, [True, False])
    assert alone.smallest[0] < 0 and np.isnan(alone.smallest[1])


def test_one_large_kernel_on_several_threads():
    K = gaussian(500)[None].astype(np.float32)
    one, three = (probe_definiteness(K, n_threads=t) for t in (1, 3))
    np.testing.assert_allclose(one.smallest, three.smallest, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(one.largest, three.largest, rtol=1e-5)


@pytest.mark.parametrize("n", [2, 40, 600])
def test_eigenvalue_ratio_for_messages(n):
    K = symmetric(n)
    ends = np.linalg.eigvalsh(K)[[0, -1]]
    assert smallest_eigenvalue_ratio(K) == pytest.approx(ends[0] / ends[1], rel=1e-2)
    # in units of the eigenvalue of largest size
    assert smallest_eigenvalue_ratio(-np.eye(n)) == -1.0
    assert smallest_eigenvalue_ratio(np.zeros((n, n))) == 0


@REAL
@pytest.mark.parametrize("how", ["clip", "flip", "shift"])
def test_repairs(dtype, how):
    K = symmetric(30).astype(dtype)
    K.flags.writeable = False
    values, U = np.linalg.eigh(K.astype(np.float64))
    wanted = {"clip": np.maximum(values, 0), "flip": np.abs(values), "shift": values - values[0]}[how]
    fixed = repair(K, how)
    assert fixed.matrix.dtype == dtype
    np.testing.assert_allclose(fixed.matrix, (U * wanted) @ U.T, atol=30 * np.finfo(dtype).eps * values[-1])
    np.testing.assert_array_equal(fixed.matrix, fixed.matrix.T)
    assert not probe_definiteness([fixed.matrix]).indefinite[0]
    if how == "shift":
        assert fixed.projector is None and fixed.shift == pytest.approx(-values[0], rel=1e-5)
        return
    # test rows that are training rows become the repaired rows
    assert fixed.projector.dtype == dtype and fixed.shift == 0
    np.testing.assert_allclose(K @ fixed.projector, fixed.matrix, atol=100 * np.finfo(dtype).eps * values[-1])


def test_repairs_leave_semidefinite_kernels_alone():
    K = gaussian(20) + np.eye(20)
    for how in ("clip", "flip", "shift"):
        np.testing.assert_allclose(repair(K, how).matrix, K, atol=1e-13)
    with pytest.raises(ValueError, match="'psd' parameter must be 'clip', 'shift' or 'flip'"):
        repair(K, "fold")
