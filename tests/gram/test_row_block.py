"""Some rows of all kernels, as one worker holds them: together the blocks answer as the whole matrices do."""

import pickle
import sys
from itertools import pairwise

import numpy as np
import pytest

from multikernel.gram.dense import AffineForm, DenseGram
from multikernel.gram.row_block import RowBlock, assemble, factorise
from multikernel.kernels.normalize import learn_normalizer

P, N = 3, 50
EDGES = (0, 20, 21, 50)


@pytest.fixture
def kernels():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(P, N, 60))
    return X @ X.transpose(0, 2, 1) / 60


def cut(K, one_array, dtype=np.float64):
    """Cut kernels into blocks of rows: in one array, or one array for each kernel."""
    parts = [K[:, lo:hi].astype(dtype) for lo, hi in pairwise(EDGES)]
    return [RowBlock([part] if one_array else list(part[:, None]), lo) for lo, part in zip(EDGES, parts, strict=False)]


@pytest.mark.parametrize("one_array", [True, False])
@pytest.mark.parametrize("shape", [(N,), (N, 2)])
def test_outputs_are_the_sum_over_the_blocks(kernels, one_array, shape):
    v = np.random.default_rng(0).normal(size=shape)
    v[::3] = 0.0
    which, weights = np.array([2, 0]), np.array([0.5, 0.0, 2.0])
    blocks = cut(kernels, one_array)
    np.testing.assert_allclose(
        sum(block.outputs(v, which) for block in blocks), np.tensordot(kernels[which], v, 1), atol=1e-12
    )
    for w in (weights, np.array([0.0, 3.0, 0.0]), np.zeros(P), weights):
        expected = np.tensordot(np.tensordot(w, kernels, 1), v, 1)
        np.testing.assert_allclose(sum(block.mixed_outputs(v, w) for block in blocks)[0], expected, atol=1e-12)


@pytest.mark.parametrize("one_array", [True, False])
def test_rows_at_some_columns(kernels, one_array):
    blocks, rows, weights = cut(kernels, one_array), np.array([3, 47, 20, 1]), np.array([1.0, 2.0, 0.0])
    places = [np.flatnonzero((rows >= block.start) & (rows < block.stop)) for block in blocks]
    for columns in (None, np.array([4, 2])):
        taken = np.arange(N) if columns is None else columns
        expected = kernels[:, rows][:, :, taken]
        out = assemble([b.rows(rows, columns, np.arange(P)) for b in blocks], places, np.empty_like(expected))
        np.testing.assert_array_equal(out, expected)
        out = assemble([b.mixed_rows(rows, columns, weights) for b in blocks], places, np.empty_like(expected[:1]))
        np.testing.assert_allclose(out[0], np.tensordot(weights, expected, 1), atol=1e-13)


def test_answers_do_not_depend_on_what_was_asked_before_or_on_where_the_block_is(kernels):
    block = cut(kernels, True, np.float32)[2]
    v, weights = np.ones(N), np.full(P, 0.3)
    block.mixed_outputs(v, np.full(P, 5.0))
    copy = pickle.loads(pickle.dumps(block))
    np.testing.assert_array_equal(block.mixed_outputs(v, weights), copy.mixed_outputs(v, weights))
    # the scheduler of a cluster asks for the size
    assert sys.getsizeof(block) >= P * 29 * N * 4


@pytest.mark.parametrize("owned", [True, False])
def test_blocks_are_normalised_once_and_not_in_the_memory_of_the_caller(kernels, owned):
    normalizers = [learn_normalizer(("center", "variance"), np.diagonal(K), K.__matmul__, None, "k") for K in kernels]
    mine = kernels[:, 20:50].copy()
    block = RowBlock([mine], 20, owned=owned)
    done = block.normalise(normalizers)
    done = done.normalise(normalizers) if owned else block.normalise(normalizers)
    expected = np.array([each.train_block(K) for each, K in zip(normalizers, kernels, strict=True)])[:, 20:50]
    np.testing.assert_allclose(done.rows(np.arange(20, 50), None, np.arange(P)), expected, atol=1e-12)
    assert (done is block) == owned
    assert np.array_equal(mine, kernels[:, 20:50]) != owned


def test_inspection(kernels):
    signs = np.where(np.arange(N) % 2, 1.0, -1.0)
    parts = [block.inspect(signs) for block in cut(kernels, True)]
    diagonal, sums, products = (np.concatenate([part[i] for part in parts], axis=1) for i in range(3))
    np.testing.assert_array_equal(diagonal, np.diagonal(kernels, axis1=1, axis2=2))
    np.testing.assert_allclose(sums, kernels.sum(axis=2), atol=1e-12)
    np.testing.assert_allclose(products, kernels @ signs, atol=1e-12)
    assert min(part[3][0, 0] for part in parts) == kernels[0].min()
    assert max(part[3][0, 1] for part in parts) == kernels[0].max()


def test_factorisation_of_rows_from_several_blocks(kernels):
    idx, weights = np.array([0, 10, 20, 30]), np.full(P, 1.0)
    blocks = cut(kernels, True)
    places = [np.flatnonzero((idx >= block.start) & (idx < block.stop)) for block in blocks]
    parts = [block.mixed_rows(idx, idx, weights) for block in blocks]
    factor = factorise(parts, places, 0.5, np.dtype(np.float64))
    expected = DenseGram(kernels, AffineForm(np.ones(P))).combined(weights).factor(idx, 0.5)
    np.testing.assert_allclose(factor.solve(np.arange(4.0)), expected.solve(np.arange(4.0)))
    assert factorise(parts, places, -100.0, np.dtype(np.float64)) is None
