"""KernelStack against plain NumPy indexing, and through the tools of scikit-learn that slice their input."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
    learning_curve,
    train_test_split,
)
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, indexable

from multikernel.gram.stack import KernelStack, stack_kernels

N, P = 30, 3


def points(n=N, seed=0):
    return np.random.default_rng(seed).standard_normal((n, 4))


def gaussians(A, B, dtype=np.float64):
    d = ((A[:, None] - B[None]) ** 2).sum(-1)
    return np.array([w * np.exp(-d / w) for w in (0.5, 2.0, 8.0)]).astype(dtype)


@pytest.fixture
def K():
    K = gaussians(points(), points())
    K.flags.writeable = False
    return K


def test_whole_stack_is_the_callers_memory(K):
    stack = stack_kernels(K)
    assert stack.shape == (N, N, P) and stack.ndim == 3 and len(stack) == N and stack.nbytes == K.nbytes
    assert repr(stack) == "KernelStack(n_kernels=3, n_rows=30, n_columns=30, dtype=float64)"
    assert stack.names == ["kernel_0", "kernel_1", "kernel_2"]
    train = stack.train_stack()
    assert np.shares_memory(train, K) and train.flags.c_contiguous and not train.flags.writeable
    assert train.shape == K.shape
    for k in range(P):
        assert np.shares_memory(stack.kernel_rows(k, np.arange(N)), K)
    assert np.shares_memory(np.asarray(stack), K)


def test_a_list_of_views_is_recognised_as_one_array(K):
    for matrices in (list(K), list(K)[::-1], [K[0], K[2]], [K[1]]):
        train = stack_kernels(matrices).train_stack()
        assert np.shares_memory(train, K)
        np.testing.assert_array_equal(train, np.array(matrices))


@pytest.mark.parametrize("order", [[0, 2, 1], [0, 0, 1]])
def test_uneven_lists_are_copied_only_to_be_joined(K, order):
    stack = stack_kernels([K[k] for k in order])
    np.testing.assert_array_equal(stack.train_stack(), K[order])
    assert all(np.shares_memory(M, K) for M in stack.train_kernels())


def test_separate_matrices_are_never_copied(K):
    matrices = [np.array(M) for M in K]
    stack = stack_kernels(matrices)
    for k, M in enumerate(stack.train_kernels()):
        assert np.shares_memory(M, matrices[k])
        assert np.shares_memory(stack[5:20].train_kernels()[k], matrices[k])
    np.testing.assert_array_equal(stack.train_stack(), K)


mask = np.random.default_rng(1).random(N) < 0.5
KEYS = [
    slice(None),
    slice(3, 17),
    slice(None, None, -2),
    [4, 1, 1, 29],
    np.array([-1, 3]),
    np.array([], dtype=int),
    [],
    mask,
    (mask, ...),
    (np.arange(7), ...),
    np.ix_([5, 2, 2], [1, 0, 9]),
    np.ix_(mask, ~mask),
    (slice(2, 9), slice(0, 5)),
    (slice(2, 9), [3, 3]),
    (slice(None), slice(None), [2, 0]),
    (..., slice(1, None)),
    (..., 1),
    np.ix_([5, 2], [1, 0, 9], [2]),
    4,
    (4, ...),
    (slice(None), 3),
    (2, 3, 1),
]


@pytest.mark.parametrize("key", KEYS, ids=[str(i) for i in range(len(KEYS))])
@pytest.mark.parametrize("as_list", [False, True])
def test_indexing_is_that_of_numpy(K, key, as_list):
    stack = stack_kernels([np.array(M) for M in K] if as_list else K)
    expected = np.moveaxis(K, 0, -1)[key]
    found = stack[key]
    assert found.shape == expected.shape
    np.testing.assert_array_equal(np.asarray(found), expected)
    np.testing.assert_array_equal(np.asarray(copy.deepcopy(found)), expected)


def test_slices_of_slices_keep_ids(K):
    stack = stack_kernels(K)[np.arange(N)[::-1]][np.ix_([3, 5, 5], np.arange(20))]
    np.testing.assert_array_equal(stack.row_ids, [26, 24, 24])
    np.testing.assert_array_equal(stack.col_ids, np.arange(20))
    np.testing.assert_array_equal(stack[1:].row_ids, [24, 24])
    assert stack.n_ids == N


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [[3, 1, 4, 1, 5, 9, 2, 6], np.arange(20)[::2], np.arange(5, 25)], ids=str)
@pytest.mark.parametrize("how", ["rows", "mesh"])
def test_a_row_slice_trains_on_its_own_columns(dtype, rows, how):
    K = gaussians(points(), points(), dtype)
    stack = stack_kernels(K)
    part = stack[rows] if how == "rows" else stack[np.ix_(rows, rows)]
    train = part.train_stack()
    assert train.dtype == dtype
    np.testing.assert_array_equal(train, K[:, rows][:, :, rows])
    for k in range(P):
        np.testing.assert_array_equal(part.train_kernels()[k], train[k])
    contiguous = rows[-1] - rows[0] == 19
    assert np.shares_memory(train, K) == contiguous
    assert part.train_stack(contiguous=True).flags.c_contiguous


def test_predict_takes_the_training_ids(K):
    stack = stack_kernels(K)
    train, test = np.array([7, 3, 3, 20]), np.array([1, 2])
    for part in (stack[test], stack[np.ix_(test, train)], stack[np.ix_(test, np.arange(25)[::-1])]):
        np.testing.assert_array_equal(part.kernel_rows(1, train, N), K[1][np.ix_(test, train)])


def test_predict_on_another_stack(K):
    fresh = gaussians(points(8, seed=5), points())
    train = np.arange(10, 30)
    # all columns of the stack that the model was fitted on: by id
    np.testing.assert_array_equal(stack_kernels(fresh).kernel_rows(0, train, N), fresh[0][:, train])
    # one column per training sample: by position
    few = stack_kernels(np.ascontiguousarray(fresh[:, :, train]))
    np.testing.assert_array_equal(few.kernel_rows(0, train, N), fresh[0][:, train])
    np.testing.assert_array_equal(few.kernel_rows(0, train), fresh[0][:, train])
    shuffled = np.random.default_rng(0).permutation(20)
    np.testing.assert_array_equal(few.kernel_rows(0, shuffled, N), few.kernel_rows(0, np.arange(20)))
    with pytest.raises(ValueError, match=r"X must have 30 columns, .* 20 training samples. Got 25 columns"):
        stack_kernels(fresh[:, :, :25]).kernel_rows(0, np.arange(20), N)
    with pytest.raises(ValueError, match=r"must contain the 20 training samples. Got a stack that lacks 5 of"):
        stack_kernels(fresh)[:, :25].kernel_rows(0, train, N)
    with pytest.raises(ValueError, match="Sample ids must be a 1-D array of integers"):
        stack_kernels(fresh).kernel_rows(0, [0.5])


def test_only_square_stacks_are_fitted_on(K):
    with pytest.raises(ValueError, match=r"must be square to fit. Got 5 rows and 30 columns instead"):
        stack_kernels(K[:, :5]).train_stack()
    with pytest.raises(ValueError, match=r"among its columns to fit. Got 20 of 30 rows without a column"):
        stack_kernels(K)[:, :10].train_kernels()


def test_diagonal(K):
    own = np.array([np.diagonal(M) for M in K])
    stack = stack_kernels(K)
    np.testing.assert_array_equal(stack.diag, own)
    np.testing.assert_array_equal(stack[[4, 4, 1]].diag, own[:, [4, 4, 1]])
    np.testing.assert_array_equal(stack[np.ix_([4, 1], [0, 2])].diag, own[:, [4, 1]])
    np.testing.assert_array_equal(stack.take_kernels([2]).diag, own[[2]])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(stack[np.ix_([4], [0])])).diag, own[:, [4]])
    # a square block of test rows is no training stack
    square = gaussians(points(seed=1), points())
    assert stack_kernels(square).diag is None and stack_kernels(K[:, :4]).diag is None
    known = stack_kernels(square, diag=own)
    np.testing.assert_array_equal(known[[3, 2]].diag, own[:, [3, 2]])
    np.testing.assert_array_equal(known.take_kernels([0, 2]).diag, own[[0, 2]])


@pytest.mark.parametrize("as_list", [False, True])
def test_a_pickled_slice_holds_only_its_slice(as_list):
    K = gaussians(points(200), points(200))
    stack = stack_kernels([np.array(M) for M in K] if as_list else K)
    for part in (
        stack[[5, 3, 3]],
        stack[5:8],
        stack[np.ix_([1, 2, 9], [4, 3, 4])],
        stack[np.ix_([1, 1], [2])],
    ):
        text = pickle.dumps(part)
        assert len(text) < 3 * 3 * 200 * 8 + 12_000
        again = pickle.loads(text)
        np.testing.assert_array_equal(np.asarray(again), np.asarray(part))
        np.testing.assert_array_equal(again.row_ids, part.row_ids)
        np.testing.assert_array_equal(again.col_ids, part.col_ids)
        assert again.n_ids == 200 and again.names == part.names
    again = pickle.loads(pickle.dumps(stack[50:100]))
    np.testing.assert_array_equal(again.train_stack(), K[:, 50:100, 50:100])
    np.testing.assert_array_equal(again[[7, 9]].kernel_rows(0, [60, 51]), K[0][np.ix_([57, 59], [60, 51])])


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        ([int, int], np.float64),
        ([np.float16, np.float32], np.float32),
        ([np.float32, np.float64], np.float64),
        ([bool, np.float32], np.float64),
        ([">f8", ">f8"], np.float64),
    ],
    ids=str,
)
def test_storage_precision(dtypes, expected):
    eye = np.eye(4)
    stack = stack_kernels([eye.astype(dtype) for dtype in dtypes])
    assert stack.dtype == stack.train_stack().dtype == stack.kernel_rows(0, [1, 2]).dtype == expected
    np.testing.assert_array_equal(stack.train_stack(), [eye, eye])


def test_names_and_mappings(K):
    assert stack_kernels({"a": K[0], "b": K[1]}).names == ["a", "b"]
    stack = stack_kernels(K, names=["a", "b", "c"])
    assert stack_kernels(stack) is stack
    assert stack[..., [2, 0]].names == stack.take_kernels([2, 0]).names == ["c", "a"]
    assert stack.take_kernels(slice(None)) is stack


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([np.eye(3), np.eye(4)],), r"same shape, \(3, 3\) as kernel 0. Got shape \(4, 4\) for kernel 1"),
        ((np.eye(3),), r"2-D arrays or an array \(p, n_rows, n_train\). Got an array of shape \(3, 3\)"),
        ((np.zeros((0, 3, 3)),), "Got an array of shape"),
        (([],), "Got an empty list"),
        (("abc",), "Got 'abc'"),
        ((5,), "Got 5"),
        (([np.ones(3)],), r"Kernel 0 must be a 2-D array. Got an array of shape \(3,\)"),
        (
            ([np.eye(3), np.eye(3, dtype=complex)],),
            "Kernel 1 must hold real numbers. Got an array of dtype complex",
        ),
        (([np.full((2, 2), "a")],), "must hold real numbers"),
        ((np.full((1, 2, 2), None),), "must hold real numbers"),
        (([sparse.eye(3)],), "Kernel 0 must be a dense 2-D array. Got a sparse matrix"),
    ],
)
def test_bad_kernels_are_refused_in_a_sentence(arguments, message):
    with pytest.raises(ValueError, match=message):
        stack_kernels(*arguments)


def test_bad_names_and_diagonals_are_refused(K):
    for names in (["a"], ["a", "a", "b"], "abc"):
        with pytest.raises(ValueError, match=r"'names' parameter of stack_kernels must be 3 different names"):
            stack_kernels(K, names=names)
    with pytest.raises(ValueError, match=r"'diag' parameter .* shape \(3, 30\).* Got shape \(3, 29\)"):
        stack_kernels(K, diag=np.ones((3, 29)))
    with pytest.raises(ValueError, match="Got a KernelStack instead"):
        stack_kernels(stack_kernels(K), names=["a", "b", "c"])
    with pytest.raises(ValueError, match="without a copy"):
        stack_kernels(K)[[0, 5]].__array__(copy=False)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ([N], "must be below 30. Got 30"),
        ([-N - 1], "must be below 30. Got -31"),
        (N, "Got 30"),
        ([0.5], "integers, slices or masks"),
        (mask[:-1], "must have 30 entries. Got 29"),
        (([1, 2], [3, 4]), "np.ix_"),
        ((0, 0, 0, 0), "at most three"),
    ],
)
def test_bad_indices_are_refused(K, key, message):
    with pytest.raises(IndexError, match=message):
        stack_kernels(K)[key]


# ---- the tools of scikit-learn


class StackRidge(ClassifierMixin, BaseEstimator):
    """Regularised least squares on the mean kernel: sees a stack as MKL estimators do."""

    def __init__(self, C=1.0, pairwise=False):
        self.C = C
        self.pairwise = pairwise

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.pairwise
        return tags

    def fit(self, X, y):
        assert isinstance(X, KernelStack)
        self.classes_ = np.unique(y)
        K = X.train_stack().mean(axis=0)
        self.ids_, self.n_ids_ = X.row_ids, X.n_ids
        self.coef_ = np.linalg.solve(K + np.eye(len(K)) / self.C, np.where(y == self.classes_[1], 1.0, -1.0))
        return self

    def decision_function(self, X):
        return sum(X.kernel_rows(k, self.ids_, self.n_ids_) @ self.coef_ for k in range(X.n_kernels)) / X.n_kernels

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


def reference_outputs(K, y, splits, C=1.0):
    """The same learner by hand on plain arrays: outputs on each test fold."""
    M, out = K.mean(axis=0), np.empty(len(y))
    for train, test in splits:
        signs = np.where(y[train] == 1, 1.0, -1.0)
        out[test] = M[np.ix_(test, train)] @ np.linalg.solve(M[np.ix_(train, train)] + np.eye(len(train)) / C, signs)
    return out


@pytest.fixture
def task():
    X = points(60, seed=3)
    y = (X[:, 0] * X[:, 1] + 0.3 * np.random.default_rng(0).standard_normal(60) > 0).astype(int)
    K = gaussians(X, X)
    return K, stack_kernels(K), y


both_ways = pytest.mark.parametrize("pairwise", [False, True], ids=["rows", "pairwise"])


def test_low_level_tools(task):
    _, stack, y = task
    assert _num_samples(stack) == 60
    assert indexable(stack, y)[0] is stack
    for idx in (np.arange(5), [1, 2], slice(0, 4), y == 1):
        assert isinstance(_safe_indexing(stack, idx), KernelStack)
    train, test, y_train, _ = train_test_split(stack, y, random_state=0, stratify=y)
    assert len(train) == len(y_train) == 45 and not set(train.row_ids) & set(test.row_ids)
    assert StackRidge().fit(train, y_train).predict(test).shape == (15,)


@both_ways
def test_cross_validation_is_that_of_plain_arrays(task, pairwise):
    K, stack, y = task
    cv = KFold(4, shuffle=True, random_state=0)
    expected = reference_outputs(K, y, cv.split(y))
    found = cross_val_predict(StackRidge(pairwise=pairwise), stack, y, cv=cv, method="decision_function")
    np.testing.assert_allclose(found, expected)
    scores = cross_val_score(StackRidge(pairwise=pairwise), stack, y, cv=cv)
    np.testing.assert_allclose(scores, [np.mean((expected > 0)[test] == y[test]) for _, test in cv.split(y)])


@both_ways
def test_nested_grid_search(task, pairwise):
    K, stack, y = task
    cv = StratifiedKFold(3)
    search = GridSearchCV(StackRidge(pairwise=pairwise), {"C": [0.01, 1.0, 100.0]}, cv=cv)
    search.fit(stack, y)
    for C, score in zip(search.param_grid["C"], search.cv_results_["mean_test_score"], strict=True):
        outputs = reference_outputs(K, y, cv.split(y, y), C)
        by_fold = [np.mean((outputs > 0)[test] == y[test]) for _, test in cv.split(y, y)]
        assert score == pytest.approx(np.mean(by_fold))
    assert search.predict(stack[:7]).shape == (7,)
    scores = cross_val_score(search, stack, y, cv=cv)
    expected = []
    for train, test in cv.split(y, y):
        inner = GridSearchCV(StackRidge(pairwise=pairwise), search.param_grid, cv=cv)
        part = stack_kernels(np.ascontiguousarray(K[:, train][:, :, train]))
        other = stack_kernels(np.ascontiguousarray(K[:, test][:, :, train]))
        expected.append(inner.fit(part, y[train]).score(other, y[test]))
    np.testing.assert_allclose(scores, expected)


def test_learning_curve_with_repeated_rows(task):
    K, stack, y = task
    sizes, _, test = learning_curve(StackRidge(), stack, y, cv=3, train_sizes=[10, 40], shuffle=True, random_state=0)
    assert list(sizes) == [10, 40] and np.all((test >= 0) & (test <= 1))
    rows = np.random.default_rng(0).integers(0, 60, 60)
    model = StackRidge().fit(stack[rows], y[rows])
    M = K.mean(axis=0)
    signs = np.where(y[rows] == 1, 1.0, -1.0)
    expected = M[:, rows] @ np.linalg.solve(M[np.ix_(rows, rows)] + np.eye(60), signs)
    np.testing.assert_allclose(model.decision_function(stack), expected)


def test_calibration_thresholds_and_pipelines(task):
    _, stack, y = task
    calibrated = CalibratedClassifierCV(StackRidge(), cv=3)
    assert calibrated.fit(stack, y).predict_proba(stack[:9]).shape == (9, 2)
    assert np.isfinite(cross_val_score(calibrated, stack, y, cv=3)).all()
    # a pairwise search inside a tool that slices rows only would be refused, hence rows in estimators
    inner = GridSearchCV(StackRidge(), {"C": [0.1, 1.0]}, cv=2)
    assert np.isfinite(cross_val_score(CalibratedClassifierCV(inner, cv=2), stack, y, cv=2)).all()
    assert CalibratedClassifierCV(StackRidge(), cv=3, ensemble=False).fit(stack, y).predict(stack).shape == (60,)
    tuned = TunedThresholdClassifierCV(StackRidge(), cv=3).fit(stack, y)
    assert tuned.predict(stack).shape == (60,)
    pipeline = Pipeline([("nothing", "passthrough"), ("ridge", StackRidge())])
    np.testing.assert_array_equal(pipeline.fit(stack, y).predict(stack), StackRidge().fit(stack, y).predict(stack))
    assert np.isfinite(cross_val_score(pipeline, stack, y, cv=3)).all()
