"""Kernels by rows with workers of Dask, two processes here: answers, optima and certificates are those of the host."""

import os
import signal
import threading
from contextlib import contextmanager

import joblib
import numpy as np
import pytest

from multikernel import MKLClassifier, MKLClassifierCV, MKLOneClass, MKLRegressor, stack_kernels
from multikernel.estimators.baselines import EasyMKLClassifier
from multikernel.inspection import compare
from multikernel.kernels import RBF, Linear, Spectrum
from multikernel.training.core import Settings
from multikernel.training.prepare import prepare

distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
da = pytest.importorskip("dask.array", reason="dask is not installed")

from multikernel.gram import dask as storage  # noqa: E402
from multikernel.gram import dask_blocks  # noqa: E402

KERNELS = [RBF(width=1.0), Linear(), RBF(width=4.0)]
N = 120


@pytest.fixture
def far(monkeypatch):
    """Small problems as if they were large."""
    monkeypatch.setattr(storage.DaskCombined, "host_limit", 32)
    monkeypatch.setattr(storage, "WORKING_SET", 16)
    monkeypatch.setattr(storage, "ROWS", 64)
    monkeypatch.setattr(dask_blocks, "BLOCK_BYTES", 500)


def samples(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.where(np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n) > 0, 1, -1)


def matrices(n=N):
    X, y = samples(n)
    return np.array([kernel.fit(X)(X) for kernel in KERNELS]), y


@pytest.mark.parametrize("steps", [None, ["center", "cosine"]])
def test_every_answer_is_that_of_the_host(client, far, steps):
    X, _ = samples()
    far, near = (prepare(KERNELS, X, None, Settings("test", normalize=steps, gram=g)).gram for g in ("dask", "dense"))
    assert far.kind == "dask" and far.nbytes == 3 * N * N * 8 and "workers" in far.device
    rng = np.random.default_rng(1)
    beta, idx, some = np.array([0.2, 0.0, 0.7]), np.array([5, 100, 60, 7]), np.sort(rng.permutation(N)[:70])
    views = [(far, near), (far.take_kernels(np.array([2, 0])), near.take_kernels(np.array([2, 0])))]
    views += [(far.take_samples(some), near.take_samples(some)), (far.rescaled(0.25), near.rescaled(0.25))]
    for mine, theirs in views:
        n, weights = mine.n_samples, beta[: mine.n_kernels]
        v, V = rng.normal(size=n), rng.normal(size=(n, 3))
        at = idx % n
        for got, expected in [
            (mine.diag(), theirs.diag()), (mine.apply(v), theirs.apply(v)), (mine.apply(V), theirs.apply(V)),
            (mine.apply(v, np.array([1])), theirs.apply(v, np.array([1]))), (mine.apply(0 * v), theirs.apply(0 * v)),
            (mine.rows(at), theirs.rows(at)), (mine.block(at), theirs.block(at)),
        ]:  # fmt: skip
            np.testing.assert_allclose(got, expected, atol=1e-12)
        one, other = mine.combined(weights), theirs.combined(weights)
        for got, expected in [
            (one.diag, other.diag), (one.means, other.means), (one.apply(v), other.apply(v)),
            (one.apply(V), other.apply(V)), (one.apply(0 * v), 0 * v), (one.block(at), other.block(at)),
            (one.host_rows().matrix, other.block(np.arange(n))), (one.host_rows(at).matrix, other.block(at)),
            (one.factor(at, 0.1).solve(V[:4]), other.factor(at, 0.1).solve(V[:4])),
        ]:  # fmt: skip
            np.testing.assert_allclose(got, expected, atol=1e-10)
        assert one.factor(at, -100.0) is None
        buffer = np.zeros((6, n))
        mine.combine(weights, at, buffer, np.array([5, 1, 2, 0]))
        np.testing.assert_allclose(buffer[[5, 1, 2, 0]], other.block(np.arange(n))[at], atol=1e-12)


@pytest.mark.parametrize(
    "params", [{}, {"norm": 2.0, "fit_intercept": False}, {"loss": "logistic"}, {"loss": "squared"}]
)
def test_two_classes(client, far, params):
    X, y = samples()
    near = MKLClassifier(KERNELS, gram="dense", tol=1e-5, **params).fit(X, y)
    model = MKLClassifier(KERNELS, gram="dask", tol=1e-5, **params).fit(X, y)
    assert model.gram_.kind == "dask" and model.duality_gap_ <= 1e-5
    assert model.objective_ == pytest.approx(near.objective_, rel=2e-5)
    np.testing.assert_allclose(model.decision_function(X), near.decision_function(X), atol=0.05)


def test_other_tasks(client, far):
    X, _ = samples()
    classes = np.digitize(X[:, 0], [-0.5, 0.5])
    for make, target in [
        (lambda gram: MKLClassifier(KERNELS, gram=gram, tol=1e-3), classes),
        (lambda gram: MKLClassifier(KERNELS, gram=gram, tol=1e-3, multiclass="ovo"), classes),
        (lambda gram: MKLRegressor(KERNELS, gram=gram, tol=1e-3), X[:, 0] ** 2),
        (lambda gram: MKLOneClass(KERNELS, gram=gram, tol=1e-3), None),
    ]:
        near, model = (make(gram).fit(X, target) for gram in ("dense", "dask"))
        assert np.sum(model.objective_) == pytest.approx(np.sum(near.objective_), rel=2e-3)


def test_sequences_in_text(client):
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("ACGT"), 12)) for _ in range(40)]
    y = np.array([word.count("A") > 2 for word in words])
    models = [MKLClassifier([Spectrum(1), Spectrum(2)], gram=gram).fit(words, y) for gram in ("dense", "dask")]
    assert models[1].objective_ == pytest.approx(models[0].objective_, rel=1e-3)


@contextmanager
def own_client():
    """Two workers one of which may be killed."""
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def kill_one(client):
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)


def test_a_worker_that_dies_between_two_questions(far):
    X, _ = samples()
    with own_client() as client:
        near, gram = (prepare(KERNELS, X, None, Settings("test", gram=g)).gram for g in ("dense", "dask"))
        beta, v, idx = np.array([0.2, 0.5, 0.7]), np.arange(float(N)), np.arange(0, N, 3)
        combined, other = gram.combined(beta), near.combined(beta)
        factor, expected = combined.factor(idx, 0.1), other.factor(idx, 0.1)
        kill_one(client)
        np.testing.assert_allclose(combined.block(idx), other.block(idx))
        np.testing.assert_allclose(factor.solve(v[:40]), expected.solve(v[:40]))
        np.testing.assert_allclose(combined.apply(v), other.apply(v))
        np.testing.assert_allclose(gram.apply(v), near.apply(v))


def test_a_worker_that_dies_in_a_fit():
    X, y = samples(300)
    near = MKLClassifier(KERNELS, gram="dense").fit(X, y)
    with own_client() as client:
        killer = threading.Timer(np.random.default_rng().uniform(0.0, 0.5), kill_one, (client,))
        killer.start()
        model = MKLClassifier(KERNELS, gram="dask").fit(X, y)
        killer.join()
    assert model.duality_gap_ <= 1e-3
    assert model.objective_ == pytest.approx(near.objective_, rel=1e-3)


@pytest.mark.parametrize("steps", [None, ["center"]])
@pytest.mark.parametrize("chunks", [(60, 120), (30, 50), 120])
def test_arrays_of_dask(client, steps, chunks):
    K, y = matrices()
    rest, train = np.arange(90, N), np.arange(90)
    mine = stack_kernels([da.from_array(each, chunks=chunks).persist() for each in K])
    theirs = stack_kernels(K)
    near = MKLClassifier("precomputed", normalize=steps, tol=1e-5).fit(theirs[train], y[train])
    model = MKLClassifier("precomputed", normalize=steps, tol=1e-5).fit(mine[train], y[train])
    assert model.gram_.kind == "dask"
    assert model.objective_ == pytest.approx(near.objective_, rel=2e-5)
    np.testing.assert_allclose(model.decision_function(mine[rest]), near.decision_function(theirs[rest]), atol=0.05)
    np.testing.assert_allclose(mine.diag, theirs.diag)
    with pytest.raises(TypeError, match="Arrays of Dask are not copied"):
        np.asarray(mine)


def test_arrays_in_files(client, tmp_path):
    K, y = matrices()
    near = MKLClassifier("precomputed").fit(stack_kernels(K), y)
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    with h5py.File(tmp_path / "kernels.h5", "w") as file:
        file["K"] = K.astype(np.float32)
    with h5py.File(tmp_path / "kernels.h5", "r") as file:
        stack = stack_kernels(da.from_array(file["K"], chunks=(1, 60, 120), lock=True))
        model = MKLClassifier("precomputed", gram="dask").fit(stack, y)
    assert model.gram_.dtype == "float32"
    assert model.objective_ == pytest.approx(near.objective_, rel=1e-3)


def test_searches(client):
    X, y = samples(60)
    near = MKLClassifierCV(KERNELS, Cs=[0.1, 1.0], cv=2).fit(X, y)
    scores, best = near.cv_results_["mean_test_score"], near.C_
    with joblib.parallel_config("dask"):
        far = MKLClassifierCV(KERNELS, Cs=[0.1, 1.0], cv=2).fit(X, y)
    np.testing.assert_allclose(far.cv_results_["mean_test_score"], scores)
    assert far.C_ == best
    # one fold after the other, each by all workers
    with joblib.parallel_config("dask"):
        rows = MKLClassifierCV(KERNELS, Cs=[0.1, 1.0], cv=2, gram="dask").fit(X, y)
    np.testing.assert_allclose(rows.cv_results_["mean_test_score"], scores)
    K, y = matrices(60)
    stack = stack_kernels([da.from_array(each, chunks=(30, 60)) for each in K])
    given = MKLClassifierCV("precomputed", Cs=[0.1, 1.0], cv=2, gram="dask").fit(stack, y)
    np.testing.assert_allclose(given.cv_results_["mean_test_score"], scores)


def test_comparisons(client):
    X, y = samples(60)
    options = {"methods": ["uniform", "mkl"], "kernels": KERNELS, "cv": 2, "inner_cv": 2, "verbose": 0}
    near = compare(X, y, **options)
    with joblib.parallel_config("dask"):
        far = compare(X, y, **options)
    assert [row["accuracy"] for row in far.table] == [row["accuracy"] for row in near.table]
    assert all(row["error"] is None for row in far.rows)


def test_sentences(client, monkeypatch):
    X, y = samples(40)

    class Locked(RBF):
        def __getstate__(self):
            raise TypeError("cannot pickle a lock")

    for params, error, sentence in [
        ({"kernels": [Locked()]}, ValueError, "must be one that can be pickled for gram='dask'"),
        ({"memory_limit": "1kB"}, MemoryError, r"kernels need .* on the worker tcp.*, where the limit is 1 kB"),
    ]:
        with pytest.raises(error, match=sentence):
            MKLClassifier(**{"kernels": KERNELS, "gram": "dask", **params}).fit(X, y)
    K, y = matrices(40)
    with pytest.raises(ValueError, match="must be arrays of Dask for gram='dask'"):
        MKLClassifier("precomputed", gram="dask").fit(stack_kernels(K), y)
    chunked = [da.from_array(each, chunks=20) for each in K]
    for bad, sentence in [
        ([chunked[0], K[1]], "Kernel 1 must be a 2-D array of Dask"),
        ([chunked[0], chunked[0][:, :10]], "must have the same shape"),
        ([chunked[0].astype(complex)], "real numbers"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            stack_kernels(bad)
    lopsided, broken = K[0].copy(), K[0].copy()
    lopsided[3, 30] += 0.5
    broken[2, 2] = np.nan
    for bad, sentence in [(lopsided, "must be symmetric"), (broken, "finite"), (-K[0], "positive semidefinite")]:
        with pytest.raises(ValueError, match=sentence):
            MKLClassifier("precomputed").fit(stack_kernels([chunked[1], da.from_array(bad, chunks=20)]), y)
    with pytest.raises(ValueError, match=r"EasyMKLClassifier, which works on the host only\. Got arrays of Dask"):
        EasyMKLClassifier("precomputed").fit(stack_kernels(chunked), y)
    with pytest.raises(ValueError, match="'gram' parameter of EasyMKLClassifier"):
        EasyMKLClassifier(gram="dask").fit(X, y)
    with pytest.raises(ValueError, match="must not be used in a task of Dask"):
        client.submit(dask_blocks.current_client).result()
    for error, sentence in [(MemoryError(), "run out of memory"), (killed(), "died again and again")]:
        with pytest.raises(MemoryError, match=sentence), dask_blocks.clear_errors("kernels"):
            raise error
    monkeypatch.setattr(client, "nthreads", dict)
    with pytest.raises(ValueError, match="has none: start at least one"):
        dask_blocks.current_client()


def killed():
    return distributed.scheduler.KilledWorker("task", None, 3)


def test_without_a_client_or_without_dask(monkeypatch):
    monkeypatch.setattr(distributed, "default_client", lambda: distributed.client._get_global_client() or fail())
    monkeypatch.setattr(distributed.client, "_get_global_client", lambda: None)
    with pytest.raises(ValueError, match=r"needs a current client of Dask\. There is none"):
        MKLClassifier(gram="dask").fit(*samples(20))
    monkeypatch.setattr(dask_blocks, "distributed", None)
    with pytest.raises(ImportError, match=r"pip install 'multikernel\[distributed\]'"):
        MKLClassifier(gram="dask").fit(*samples(20))


def fail():
    raise ValueError("No clients found")


def test_rows_are_dealt_to_threads():
    class Client:
        def nthreads(self):
            return {"a": 2, "b": 1}

    dealt = [(share.start, share.stop, share.worker) for share in dask_blocks.deal(Client(), 10)]
    assert dealt == [(0, 3, "a"), (3, 6, "a"), (6, 10, "b")]
    assert [share.worker for share in dask_blocks.deal(Client(), 4, [1, 1, 1, 1])] == ["a", "a", "a", "b"]
    assert len(dask_blocks.deal(Client(), 2)) == 2
