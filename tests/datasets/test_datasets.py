"""The toy problems have the geometry they promise; the loaders read what is there and say what is not."""

from __future__ import annotations

import os

import numpy as np
import pytest
from sklearn.svm import SVC

from multikernel import datasets
from multikernel.datasets import (
    available,
    load,
    make_linear_two_sines,
    make_redundant_kernels,
    make_related_classes,
    make_simplex,
    make_sine,
    make_stars,
)

PAIRS = (make_stars, make_sine, make_linear_two_sines, make_simplex, make_related_classes)

needs_data = pytest.mark.skipif(
    not os.environ.get("MULTIKERNEL_DATA"), reason="MULTIKERNEL_DATA names no folder with the data sets"
)


@pytest.mark.parametrize("make", PAIRS, ids=lambda make: make.__name__)
def test_draws_repeat_with_the_seed(make):
    X, y = make(60, random_state=3)
    again, y_again = make(60, random_state=np.random.RandomState(3))
    assert np.array_equal(X, again) and np.array_equal(y, y_again)
    assert not np.array_equal(X, make(60, random_state=4)[0])
    assert X.shape[0] == y.shape[0] == 60 and X.ndim == 2
    assert X.dtype == np.float64 and np.all(np.isfinite(X))


@pytest.mark.parametrize("make", PAIRS, ids=lambda make: make.__name__)
def test_defaults_work(make):
    X, y = make(random_state=0)
    assert len(X) == len(y) >= 200


def test_stars_separate_with_distance():
    errors = []
    for distance in (0.0, 0.25, 1.0):
        X, y = make_stars(600, distance=distance, random_state=0)
        assert set(y) == {-1, 1} and abs(y.sum()) == 0
        model = SVC(gamma=10.0, C=10.0).fit(X[:300], y[:300])
        errors.append(1 - model.score(X[300:], y[300:]))
    # the same star, a partly separate one, a separable one
    assert errors[0] > 0.4 and errors[2] < 0.01 and errors[2] < errors[1] < errors[0]


def test_stars_have_their_rays():
    X, y = make_stars(4000, n_rays=5, ray_length=0.3, distance=0.7, noise=0.0, random_state=0)
    radius, theta = np.hypot(*X.T), np.arctan2(X[:, 1], X[:, 0])
    assert np.allclose(radius, 1 + 0.3 * np.cos(5 * theta) + 0.7 * (y > 0))


def test_waves_are_their_formulas():
    X, y = make_sine(100, frequency=7.0, span=3.0, random_state=0)
    assert np.allclose(y, np.sin(7.0 * X[:, 0])) and X.min() >= 0 and X.max() <= 3 and np.all(np.diff(X[:, 0]) >= 0)
    X, y = make_linear_two_sines(100, slope=-2.0, low_frequency=0.5, high_frequency=30.0, random_state=0)
    assert np.allclose(y, -2.0 * X[:, 0] + np.sin(0.5 * X[:, 0]) + np.sin(30.0 * X[:, 0]))
    clean, noisy = make_sine(5000, random_state=1)[1], make_sine(5000, noise=0.2, random_state=1)[1]
    assert np.std(noisy - clean) == pytest.approx(0.2, rel=0.05)


@pytest.mark.parametrize("c", [2, 3, 4, 10])
def test_simplex_is_regular(c):
    X, y = make_simplex(3 * c, n_classes=c, noise=0.0, random_state=0)
    assert X.shape == (3 * c, c - 1) and np.all(np.bincount(y) == 3)
    centres = np.array([X[y == u][0] for u in range(c)])
    apart = np.linalg.norm(centres[:, None] - centres[None], axis=2)
    assert np.allclose(apart[~np.eye(c, dtype=bool)], np.sqrt(2.0))
    assert np.allclose(centres.mean(axis=0), 0.0)


def test_simplex_noise_is_the_papers():
    X, y = make_simplex(3000, random_state=0)
    spread = [X[y == u].std(axis=0) for u in range(3)]
    assert np.allclose(spread, 0.3, rtol=0.1)


def test_related_classes_have_three_different_distances():
    X, y = make_related_classes(3000, random_state=0)
    means = np.array([X[y == u].mean(axis=0) for u in range(3)])
    d01, d02, d12 = (np.linalg.norm(means[a] - means[b]) for a, b in ((0, 1), (0, 2), (1, 2)))
    assert d01 < d12 - 0.5 < d02 - 0.5
    X, y = make_related_classes(40, centers=np.eye(4), noise=0.0, random_state=0)
    assert np.array_equal(X, np.eye(4)[y])


@pytest.mark.parametrize("n_sets", [1, 2, 3, 4, 6, 8, 12, 15, 20, 30])
def test_redundant_kernels_have_the_papers_shape(n_sets):
    data = make_redundant_kernels(40, n_sets=n_sets, random_state=n_sets)
    assert data.kernels.shape == (30, 40, 40) and data.X.shape == (40, 60)
    assert np.array_equal(np.unique(data.source), np.arange(n_sets))
    sizes = {Z.shape[1] for Z in data.features}
    assert sizes <= {4 * (60 // n_sets), 4 * (60 // n_sets + (60 % n_sets > 0))}
    for K, Z, which in zip(data.kernels, data.features, data.source, strict=True):
        assert np.allclose(K, Z @ Z.T) and np.mean(np.diag(K)) - np.mean(K) == pytest.approx(1.0)
        # the transformed set spans the same samples-space as the original features
        original = data.X[:, np.array_split(np.arange(60), n_sets)[which]]
        residual = Z - original @ np.linalg.lstsq(original, Z, rcond=None)[0]
        assert np.abs(residual).max() < 1e-8


def test_redundant_kernels_separation_and_storage():
    data = make_redundant_kernels(
        2000,
        n_sets=1,
        n_kernels=1,
        n_features=4,
        separation=2.0,
        dtype=np.float32,
        normalize=False,
        random_state=0,
    )
    assert data.kernels.dtype == np.float32 and set(data.y) == {-1, 1}
    apart = data.X[data.y > 0].mean(axis=0) - data.X[data.y < 0].mean(axis=0)
    assert np.linalg.norm(apart) == pytest.approx(2.0, rel=0.1) and np.allclose(apart, 1.0, atol=0.15)
    again = make_redundant_kernels(20, n_sets=2, n_kernels=3, n_features=4, random_state=5)
    same = make_redundant_kernels(20, n_sets=2, n_kernels=3, n_features=4, random_state=5)
    assert np.array_equal(again.kernels, same.kernels) and np.array_equal(again.y, same.y)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: make_stars(1),
            "'n_samples' parameter of make_stars must be an integer at least 2. Got 1 instead",
        ),
        (lambda: make_stars(10.0), "must be an integer at least 2. Got 10.0 instead"),
        (lambda: make_stars(distance=-1), "'distance' parameter of make_stars must be a non-negative number"),
        (lambda: make_stars(ray_length=1.5), "must be a non-negative number below 1. Got 1.5 instead"),
        (lambda: make_sine(noise=np.nan), "'noise' parameter of make_sine must be a non-negative number"),
        (lambda: make_sine(frequency="1"), "'frequency' parameter of make_sine"),
        (lambda: make_linear_two_sines(slope=-np.inf), "must be a finite number. Got -inf instead"),
        (
            lambda: make_simplex(n_classes=1),
            "'n_classes' parameter of make_simplex must be an integer at least 2",
        ),
        (lambda: make_simplex(2), "must be an integer at least 3. Got 2 instead"),
        (lambda: make_related_classes(centers=[1.0, 2.0]), r"at least two rows. Got shape \(2,\) instead"),
        (lambda: make_redundant_kernels(n_sets=31), "must be an integer from 1 to 30. Got 31 instead"),
        (lambda: make_redundant_kernels(expansion=True), "must be an integer at least 1. Got True instead"),
    ],
)
def test_bad_parameters_get_one_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "points").mkdir()
    np.savez(tmp_path / "points" / "points.npz", X=np.eye(3), y=[0, 1, 0], class_names=np.array([b"no", b"yes"]))
    (tmp_path / "points" / "points.md").write_text("# points\nThree of them.\n")
    (tmp_path / "views").mkdir()
    many = {f"X_{i}": np.full((2, i + 1), i) for i in range(11)}
    np.savez(tmp_path / "views" / "views.npz", y=[0, 1], seq=np.array([b"AC", b"GT"]), view_names=[b"a"], **many)
    (tmp_path / "sites").mkdir()
    np.savez(tmp_path / "sites" / "sites_acc.npz", seq=np.array([b"AG", b"GT"]), y=[1, -1])
    np.savez(tmp_path / "sites" / "sites_don.npz", seq_one=np.array([b"AG"]), y_one=[1])
    (tmp_path / "sites" / "sites.md").write_text("two files")
    return tmp_path


def test_available_lists_every_file(folder, monkeypatch):
    assert available(folder) == ["points", "sites_acc", "sites_don", "views"]
    monkeypatch.setenv("MULTIKERNEL_DATA", str(folder))
    assert available() == available(str(folder))


def test_load_reads_arrays_names_and_description(folder, monkeypatch):
    monkeypatch.setenv("MULTIKERNEL_DATA", str(folder))
    points = load("points")
    assert np.array_equal(points.data, np.eye(3)) and points.target.tolist() == [0, 1, 0]
    assert points.target_names.tolist() == ["no", "yes"] and points.DESCR.startswith("# points")
    assert points.filename.endswith("points.npz") and points.X is points.data
    assert datasets.load_dataset is load


def test_load_views_in_order_and_sequences_as_bytes(folder):
    views = load("views", data_dir=folder)
    assert [V.shape[1] for V in views.data] == list(range(1, 12)) and views.view_names.tolist() == ["a"]
    assert views.seq.dtype.kind == "S" and views.DESCR == ""
    acceptors = load("sites_acc", folder)
    assert acceptors.data.tolist() == [b"AG", b"GT"] and acceptors.DESCR == "two files"
    donors = load("sites_don", folder)
    assert "data" not in donors and "target" not in donors and donors.y_one.tolist() == [1]


def test_missing_things_get_one_sentence(folder, monkeypatch):
    monkeypatch.delenv("MULTIKERNEL_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="MULTIKERNEL_DATA is not set: set it to the folder"):
        load("points")
    with pytest.raises(FileNotFoundError, match="given as 'data_dir' does not exist"):
        load("points", folder / "nowhere")
    monkeypatch.setenv("MULTIKERNEL_DATA", str(folder / "nowhere"))
    with pytest.raises(FileNotFoundError, match="named by MULTIKERNEL_DATA does not exist"):
        available()
    with pytest.raises(FileNotFoundError, match=r"did you mean 'points'\?\). It holds: points, sites_acc"):
        load("pionts", folder)
    with pytest.raises(FileNotFoundError, match="in several parts; load one of 'sites_acc', 'sites_don'"):
        load("sites", folder)
    (folder / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="It holds: nothing"):
        load("points", folder / "empty")


@needs_data
def test_real_sets_are_complete():
    names = available()
    assert names
    for name in {"wine", "banana", "nutrimouse", "uci_promoters"} & set(names):
        data = load(name)
        samples = data.data[0] if isinstance(data.data, list) else data.data
        assert len(samples) == len(data.target) > 0 and data.DESCR


@needs_data
def test_real_views_share_their_samples():
    if "breast_tcga" not in available():
        pytest.skip("breast_tcga is not in the folder named by MULTIKERNEL_DATA")
    data = load("breast_tcga")
    assert [V.shape for V in data.data] == [(220, 184), (220, 200), (220, 142)]
    assert data.view_names.tolist() == ["mirna", "mrna", "protein"]
    assert np.all(np.isfinite(data.data[2][data.train])) and np.all(np.isnan(data.data[2][data.test]))


def test_a_damaged_archive_is_one_sentence(tmp_path):
    path = tmp_path / "set" / "points.npz"
    path.parent.mkdir()
    np.savez_compressed(path, X=np.eye(20), y=np.arange(20))
    whole = path.read_bytes()
    for damaged in (b"", whole[:100], whole[:60] + b"9" * 20 + whole[80:], whole[::-1], b"\x93NUMPY" + whole):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"points.npz' must be an npz archive of numbers and words. Got: .*\.$"):
            datasets.load("points", data_dir=tmp_path)
