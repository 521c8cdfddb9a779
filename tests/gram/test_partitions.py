"""Samples in partitions of Dask, with two worker processes: optima and certificates are those of one process."""

import os
import signal
import threading

import numpy as np
import pytest

from multikernel import MKLClassifier, MKLClassifierCV, MKLOneClass, MKLRegressor
from multikernel.datasets import dna, fasta_partitions
from multikernel.kernels import RBF, HashedDegree, Linear, Nystroem, Polynomial, RandomFourier, Spectrum, WeightedDegree

distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
da = pytest.importorskip("dask.array", reason="dask is not installed")

from multikernel.estimators.estimate_partitions import PartitionProbes  # noqa: E402
from multikernel.gram.partitions import PartitionedSamples  # noqa: E402
from multikernel.machines import partition as work  # noqa: E402
from multikernel.machines.svr import SVR  # noqa: E402
from multikernel.training import partition_rounds  # noqa: E402
from multikernel.training.checkpoint import StateFile  # noqa: E402

KERNELS = [Linear(), Polynomial(2), RandomFourier(RBF(width=1.0), n_features=40)]
N = 600


def samples(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.where(np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n) > 0, "yes", "no")


def parts(X, size=170):
    return da.from_array(X, chunks=(size, *X.shape[1:]))


def agree(model, whole, tol):
    """Both are within the gap of the same optimum."""
    assert model.status_ == "converged" and model.duality_gap_ <= tol
    assert abs(model.objective_ - whole.objective_) <= tol * max(model.objective_, whole.objective_)
    assert model.gram_.kind == "features" and "workers" in model.gram_.device


@pytest.mark.parametrize(
    "own", [{}, {"fit_intercept": False}, {"loss": "squared"}, {"loss": "squared_hinge", "norm": 2.0}]
)
def test_the_optimum_is_that_of_one_process(client, own):
    X, y = samples()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, N) if own.get("norm") else None
    model = MKLClassifier(KERNELS, tol=1e-2, **own).fit(parts(X), da.from_array(y, chunks=100), weight)
    whole = MKLClassifier(KERNELS, gram="features", tol=1e-2, **own).fit(X, y, weight)
    agree(model, whole, 1e-2)
    far, near = model.kernel_contributions_, whole.kernel_contributions_
    assert far.sum() == pytest.approx(1.0) and np.abs(far - near).max() < 0.2
    # the certificate is that of the coefficients, recomputed in one process
    features = model.decision_function(X)
    assert np.mean((features > 0) == (whole.decision_function(X) > 0)) > 0.97
    if own.get("fit_intercept", True):
        assert abs(model.dual_coef_.sum()) <= 1e-12 * np.abs(model.dual_coef_).sum()


def test_the_primal_value_follows_from_the_model(client):
    X, y = samples()
    model = MKLClassifier(KERNELS, tol=1e-2, normalize=None).fit(parts(X), y)
    a = np.zeros(N)
    a[model.support_] = model.dual_coef_
    K = [kernel.fit(X)(X) for kernel in KERNELS]
    q = np.array([a @ each @ a for each in K])
    signs = np.where(y == model.classes_[1], 1.0, -1.0)
    f = sum(beta * each @ a for beta, each in zip(model.weights_, K, strict=True)) + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), f, atol=1e-9)
    upper = 0.5 * model.weights_ @ q + np.maximum(0.0, 1.0 - signs * f).sum()
    lower = signs @ a - 0.5 * q.max()
    assert model.objective_ == pytest.approx(upper, rel=1e-9) and model.dual_objective_ == pytest.approx(
        lower, rel=1e-9
    )
    assert (upper - lower) / upper <= model.duality_gap_ <= 1e-2


def test_regression_and_predictions_stay_in_partitions(client):
    X, _ = samples()
    y = X[:, 0] ** 2 + 0.1 * X[:, 1] + 7.0
    model = MKLRegressor(KERNELS, tol=1e-2).fit(parts(X), da.from_array(y, chunks=170))
    whole = MKLRegressor(KERNELS, gram="features", tol=1e-2).fit(X, y)
    agree(model, whole, 1e-2)
    predicted = model.predict(parts(X, 250))
    assert isinstance(predicted, da.Array) and predicted.chunks == ((250, 250, 100),)
    np.testing.assert_allclose(np.asarray(predicted), model.predict(X))
    assert model.score(parts(X), y) > 0.9


def test_predictions_of_classes_and_probabilities(client):
    X, y = samples(300)
    model = MKLClassifier(KERNELS, gram="dense", loss="logistic").fit(X, y)
    for name in ("predict", "decision_function", "predict_proba", "predict_log_proba"):
        far, near = getattr(model, name)(parts(X, 100)), getattr(model, name)(X)
        assert isinstance(far, da.Array) and far.shape == near.shape and far.dtype == near.dtype
        if name == "predict":
            np.testing.assert_array_equal(np.asarray(far), near)
        else:
            np.testing.assert_allclose(np.asarray(far), near, rtol=1e-12)


@pytest.mark.parametrize(
    "kernels",
    [
        [HashedDegree(WeightedDegree(d, weights=np.eye(3)[d - 1, :d]), 1 << 10) for d in (1, 2, 3)],
        [Spectrum(3), Spectrum(10)],
        [Nystroem(WeightedDegree(3), n_landmarks=50)],
    ],
)
def test_sequences(client, kernels):
    X, y = dna(400, 20, seed=3)
    model = MKLClassifier(kernels, tol=1e-2).fit(parts(X, 90), y)
    agree(model, MKLClassifier(kernels, gram="features", tol=1e-2).fit(X, y), 1e-2)
    assert model.score(X, y) > 0.8


def test_three_classes_against_the_rest(client):
    X, _ = samples()
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = MKLClassifier(KERNELS, multiclass="ovr", tol=0.05).fit(parts(X), y)
    assert np.all(model.duality_gap_ <= 0.05) and model.weights_.shape == (3, 3) and model.score(X, y) > 0.85
    assert np.asarray(model.decision_function(parts(X))).shape == (N, 3)


def test_a_killed_worker_is_survived(client, monkeypatch):
    X, y = samples()
    whole = MKLClassifier(KERNELS, gram="features", tol=1e-2).fit(X, y)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as other,
    ):
        victim = next(iter(other.run(os.getpid).values()))
        rounds = []

        def run(self, *args, take=partition_rounds.Rounds._run):
            rounds.append(1)
            if len(rounds) == 6:
                threading.Timer(0.01, os.kill, (victim, signal.SIGKILL)).start()
            take(self, *args)

        monkeypatch.setattr(partition_rounds.Rounds, "_run", run)
        model = MKLClassifier(KERNELS, tol=1e-2).fit(parts(X), y)
        assert len(rounds) > 6
        agree(model, whole, 1e-2)


def test_what_does_not_work_is_said(client):
    X, y = samples(200)
    far = parts(X, 50)
    for own, message in [
        ({"gram": "dense"}, "'gram' parameter .* 'auto' or 'features'"),
        ({"solver": "level"}, "'solver' parameter .* 'auto' or 'interleaved'"),
        ({"loss": "logistic"}, "needs two classes"),
        ({"normalize": "cosine"}, "needs normalize=None"),
    ]:
        with pytest.raises(ValueError, match=message):
            MKLClassifier(KERNELS, **own).fit(far, y)
    with pytest.raises(ValueError, match="explicit features"):
        MKLClassifier([RBF()]).fit(far, y)
    with pytest.raises(ValueError, match="fixed number of features"):
        MKLClassifier([WeightedDegree(3)]).fit(parts(dna(100, 12)[0], 50), dna(100, 12)[1])
    with pytest.raises(ValueError, match="multiclass='ovr'"):
        MKLClassifier(KERNELS, multiclass="ovo").fit(far, np.arange(200) % 3)
    with pytest.raises(ValueError, match="trained on as a whole"):
        MKLClassifier(KERNELS).fit(far, y, np.arange(200.0))
    for estimator in (MKLClassifierCV(KERNELS), MKLOneClass(KERNELS)):
        with pytest.raises(ValueError, match="must be samples in memory"):
            estimator.fit(far, y)


def test_partitions_of_unknown_and_of_no_size(client):
    X, _ = samples(200)
    far = parts(X, 50)
    found = PartitionedSamples(far[far[:, 0] > -10.0])
    assert len(found) == 200 and found.cuts()[1] == slice(50, 100)
    assert len(PartitionedSamples(da.concatenate([far[:0], far]))) == 200
    assert PartitionedSamples(far.rechunk((50, 2))).sizes == [50] * 4


def test_data_frames(client):
    frames = pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed")
    import pandas as pd

    X, y = samples(300)
    frame = pd.DataFrame(X, columns=list("abcd"))
    kernels = [("ab", Linear(), ["a", "b"]), ("cd", Polynomial(2), ["c", "d"])]
    model = MKLClassifier(kernels, tol=1e-2).fit(frames.from_pandas(frame, npartitions=3), pd.Series(y))
    assert model.n_features_in_ == 4 and list(model.feature_names_in_) == list("abcd")
    agree(model, MKLClassifier(kernels, gram="features", tol=1e-2).fit(frame, y), 1e-2)
    far = model.predict(frames.from_pandas(frame, npartitions=2))
    np.testing.assert_array_equal(np.asarray(far), model.predict(frame))


def test_fasta_files_by_path(client, tmp_path):
    X, y = dna(300, 20, seed=4)
    paths = []
    for number in range(3):
        paths.append(tmp_path / f"{number}.fa")
        rows = X[100 * number : 100 * number + 100].astype(str)
        paths[-1].write_text("".join(f">{i}\n{row}\n" for i, row in enumerate(rows)))
    far, kernels = fasta_partitions(paths, alphabet="dna"), [Spectrum(3), HashedDegree(WeightedDegree(4), 1 << 12)]
    model = MKLClassifier(kernels, tol=1e-2).fit(far, y)
    agree(model, MKLClassifier(kernels, gram="features", tol=1e-2).fit(X, y), 1e-2)
    np.testing.assert_array_equal(np.asarray(model.predict(far)), model.predict(X))
    with pytest.raises(ValueError, match="at least one path"):
        fasta_partitions([])


def test_the_machine_of_some_rows_keeps_what_belongs_to_all():
    y = np.linspace(0.0, 9.0, 10)
    machine = SVR(y, np.arange(1.0, 11.0))
    part = work.rows_of(machine, slice(2, 5))
    assert part.n_samples == 3 and part.shift == machine.shift and part.scale == machine.scale
    np.testing.assert_array_equal(part.y, y[2:5])
    np.testing.assert_array_equal(part.loss.C, [3.0, 4.0, 5.0])


class Stop(Exception):
    """What a callback raises in the middle of a fit."""


@pytest.mark.parametrize("own", [{}, {"fit_intercept": False, "loss": "squared_hinge"}])
def test_a_fit_that_was_broken_off_goes_on(client, tmp_path, monkeypatch, own):
    X, y = samples(300)
    monkeypatch.setattr(StateFile, "due", True)
    whole = MKLClassifier(KERNELS, tol=1e-2, **own).fit(parts(X), y)
    rows = []

    def callback(row):
        rows.append(row)
        if row["upper"] - row["lower"] <= 0.05 * row["upper"]:
            raise Stop

    model = MKLClassifier(KERNELS, tol=1e-2, checkpoint=tmp_path, callback=callback, **own)
    with pytest.raises(Stop):
        model.fit(parts(X), y)
    assert len(list(tmp_path.iterdir())) == 1
    # other samples have a file of their own
    assert PartitionedSamples(parts(X)).hashes() == PartitionedSamples(parts(X)).hashes()
    other = MKLClassifier(KERNELS, tol=0.1, checkpoint=tmp_path, **own).fit(parts(X + 1.0), y)
    assert other.n_iter_ >= 1 and len(list(tmp_path.iterdir())) == 1
    before, later = rows[-1]["upper"], []
    again = model.set_params(callback=later.append).fit(parts(X), y)
    agree(again, whole, 1e-2)
    # it begins where the other one ended
    assert all(row["upper"] <= before * (1.0 + 1e-9) for row in later) and list(tmp_path.iterdir()) == []
    assert all(row["gap"] < rows[-1]["gap"] for row in later) and len(later) <= whole.n_iter_


def test_what_a_fit_will_take(client):
    X, y = samples(1600)
    model = MKLClassifier(KERNELS, tol=0.3)
    found = model.estimate(parts(X, 800), da.from_array(y, chunks=800), seconds=0.1)
    assert (found.n_samples, found.n_kernels, found.storage) == (1600, 3, "features")
    # the features are 59 numbers a sample
    assert 1600 * 59 * 8 < found.memory["features"] < 1e9 and 0.0 < found.seconds["features"] < 600.0
    # parts have rows of every partition, and as many targets
    probes = PartitionProbes(model, parts(X, 800), y, None)
    assert probes.sizes == [400, 800]
    part = probes.part(np.array([3, 5, 1000, 1599]))
    assert part.sizes == [2, 2] and len(part) == 4
    np.testing.assert_array_equal(np.concatenate(client.gather(client.compute(part.delayed))), X[[3, 5, 1000, 1599]])
