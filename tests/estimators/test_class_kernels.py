"""Kernels on the classes through the estimator: what it learns, predicts and refuses, the picture, the scripts."""

from __future__ import annotations

import importlib.util
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from reference_joint import all_pairs, conic_products
from scipy.spatial.distance import pdist, squareform
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from multikernel import MKLClassifier, MKLClassifierCV, stack_kernels
from multikernel.inspection import ClassEmbeddingDisplay
from multikernel.kernels import RBF, Linear, OutputKernels, pairwise_output_kernels
from multikernel.losses import Hinge

ROOT = Path(__file__).parents[2]
NAMES = np.array(["cat", "dog", "horse", "elm", "fir", "oak"])
LIVING = np.array([0, 0, 0, 1, 1, 1])


def planted(n=120, seed=0):
    """Two columns that tell animals from trees, and six that tell all classes apart."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 6
    first = (1.0 - 2.0 * LIVING[y])[:, None] * [1.0, 0.5] + rng.normal(size=(n, 2))
    second = 1.5 * rng.normal(size=(6, 6))[y] + rng.normal(size=(n, 6))
    return np.hstack([first, second]), NAMES[y]


def groups(labels) -> np.ndarray:
    labels = np.asarray(labels)
    return (labels[:, None] == labels).astype(float)


KERNELS = [("coarse", Linear(), [0, 1]), ("fine", Linear(), slice(2, 8))]
PLANTED = OutputKernels(
    [np.eye(6), ("living", groups(LIVING)), ("odd", groups([0, 1, 0, 1, 0, 1])), ("other", groups([0, 0, 1, 1, 0, 1]))],
    classes=NAMES,
)


@pytest.mark.parametrize("seed", range(3))
def test_the_embedding_shows_planted_superclasses(seed):
    X, y = planted(seed=seed)
    model = MKLClassifier(KERNELS, multiclass="joint", output_kernels=PLANTED, C=0.1, tol=1e-4).fit(X, y)
    weights = dict(zip(model.kernel_names_, model.weights_, strict=True))
    assert weights["coarse x living"] > 0.05 and weights["fine x identity"] > 0.5
    assert max(weight for name, weight in weights.items() if "odd" in name or "other" in name) < 0.01
    animal = np.isin(model.classes_, NAMES[:3])
    axis = model.class_embedding_[:, 0]
    assert axis[animal].max() < axis[~animal].min() or axis[~animal].max() < axis[animal].min()
    np.testing.assert_allclose(model.kernel_contributions_.sum(), 1.0)


def test_fitted_attributes_state_what_they_say():
    X, y = planted(60)
    outputs = pairwise_output_kernels(6)
    model = MKLClassifier(KERNELS, multiclass="joint", output_kernels=list(outputs), norm=2.0, tol=1e-3).fit(X, y)
    assert model.weights_.shape == (60,) and len(model.kernel_names_) == 60
    assert model.kernel_names_[31] == "fine x classes1"
    learned = np.tensordot(model.weights_.reshape(2, 30).sum(axis=0), outputs, 1)
    np.testing.assert_allclose(model.output_kernel_, learned, atol=1e-12)
    K = model.output_kernel_
    distances = np.sqrt(np.maximum(np.diag(K)[:, None] + np.diag(K) - 2 * K, 0.0))
    np.testing.assert_allclose(squareform(pdist(model.class_embedding_)), distances, atol=1e-7)
    assert model.class_embedding_.shape == (6, 5)
    model.set_params(output_kernels=None).fit(X, y)
    assert not hasattr(model, "output_kernel_") and model.weights_.shape == (2,)


@pytest.mark.parametrize("normalize", [None, ["center", "cosine"]])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_computed_kernels_and_stacks_agree_and_pickle(fit_intercept, normalize):
    X, y = planted(48)
    options = {
        "multiclass": "joint", "output_kernels": PLANTED, "tol": 1e-7,
        "fit_intercept": fit_intercept, "normalize": normalize,
    }  # fmt: skip
    K = np.array([X[:, :2] @ X[:, :2].T, X[:, 2:] @ X[:, 2:].T])
    K.flags.writeable = False
    stack = stack_kernels(K, diag=np.array([np.diag(each) for each in K]))
    one = MKLClassifier(KERNELS, **options).fit(X, y)
    other = MKLClassifier("precomputed", **options).fit(stack, y)
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-6)
    f = one.decision_function(X)
    np.testing.assert_allclose(f, other.decision_function(stack), atol=1e-3 * np.abs(f).max())
    again = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(again.decision_function(X), f)
    if normalize is None:
        A = np.zeros((48, 6))
        A[other.support_] = other.dual_coef_.T
        order = np.argsort(NAMES)
        outputs = np.array([np.eye(6), *(np.array(entry[1])[np.ix_(order, order)] for entry in PLANTED.kernels[1:])])
        pairs = all_pairs(K, outputs)
        expected = sum(w * (K[k] @ A @ outputs[m]) for w, (k, m) in zip(other.weights_, pairs, strict=True))
        np.testing.assert_allclose(other.decision_function(stack), expected + other.intercept_, atol=1e-9)
        codes = np.searchsorted(other.classes_, y)
        optimum = conic_products(K, outputs, pairs, codes, 1.0, 1.0, fit_intercept)
        assert other.objective_ == pytest.approx(optimum, rel=1e-5)


def test_a_model_keeps_its_support_vectors_alone():
    X, y = planted(240)
    model = MKLClassifier(KERNELS, multiclass="joint", output_kernels=PLANTED, C=10.0).fit(X, y)
    plain = MKLClassifier(KERNELS, multiclass="joint", C=10.0).fit(X, y)
    assert len(model.support_) < 240
    share = len(model.support_) / len(plain.support_)
    assert len(pickle.dumps(model)) < share * len(pickle.dumps(plain)) + 4000


def test_the_identity_alone_is_the_plain_path():
    X, y = planted(60)
    one = MKLClassifier(KERNELS, multiclass="joint", output_kernels=[np.eye(6)]).fit(X, y)
    plain = MKLClassifier(KERNELS, multiclass="joint").fit(X, y)
    assert one.objective_ == plain.objective_ and one.n_iter_ == plain.n_iter_
    np.testing.assert_array_equal(one.decision_function(X), plain.decision_function(X))
    assert one.kernel_names_ == ["coarse x identity", "fine x identity"]
    np.testing.assert_allclose(one.output_kernel_, np.eye(6), atol=1e-12)


def test_two_classes_are_a_joint_problem_too():
    X, y = planted(60)
    X, y = X[np.isin(y, ["cat", "oak"])], y[np.isin(y, ["cat", "oak"])]
    options = {"multiclass": "joint", "normalize": None, "tol": 1e-8}
    model = MKLClassifier(KERNELS, output_kernels=[np.eye(2)], **options).fit(X, y)
    # joint(K, C) = binary(2 K, C), whose outputs are f_1 - f_0
    doubled = [(name, 2.0 * kernel, columns) for name, kernel, columns in KERNELS]
    binary = MKLClassifier(doubled, **options).fit(X, y)
    assert model.objective_ == pytest.approx(binary.objective_, rel=1e-6)
    f = binary.decision_function(X)
    np.testing.assert_allclose(model.decision_function(X), f, atol=1e-3 * np.abs(f).max())
    np.testing.assert_array_equal(model.predict(X), binary.predict(X))
    other = MKLClassifier(KERNELS, output_kernels=[np.diag([2.0, 0.0])], **options).fit(X, y)
    # of both kernels on the classes the contrast e_1 - e_0, all that counts, has the form two
    assert other.objective_ == pytest.approx(model.objective_, rel=1e-6)


def test_kernels_over_labels_and_attributes():
    X, y = planted(60)
    height = {"cat": [0.3], "dog": [0.6], "horse": [1.7], "elm": [20.0], "fir": [40.0], "oak": [25.0], "birch": [15.0]}

    def same_letter(left, right):
        return np.array([[float(a[0] == b[0]) for b in right] for a in left])

    spec = [(RBF(gamma=0.01), height), ("letter", same_letter), (Linear(), np.arange(6.0))]
    model = MKLClassifier(KERNELS, multiclass="joint", output_kernels=spec, norm=2.0).fit(X, y)
    assert model.kernel_names_[:3] == ["coarse x rbf(gamma=0.01)", "coarse x letter", "coarse x linear"]
    h = np.array([height[label][0] for label in model.classes_])
    v = np.arange(6.0)
    expected = [np.exp(-0.01 * (h[:, None] - h) ** 2), same_letter(model.classes_, model.classes_), np.outer(v, v)]
    learned = np.tensordot(model.weights_.reshape(2, 3).sum(axis=0), np.array(expected), 1)
    np.testing.assert_allclose(model.output_kernel_, learned, atol=1e-10)
    # numbers as labels are points on a line
    codes = np.searchsorted(model.classes_, y)
    model = MKLClassifier(KERNELS, multiclass="joint", output_kernels=[Linear(), Linear()]).fit(X, codes)
    assert model.kernel_names_[:2] == ["coarse x linear", "coarse x linear (2)"]


def test_pairs_by_number_and_by_name():
    X, y = planted(60)
    outputs = OutputKernels(PLANTED.kernels, pairs=[("coarse", "living"), (1, 0)], classes=NAMES)
    model = MKLClassifier(KERNELS, multiclass="joint", output_kernels=outputs).fit(X, y)
    assert model.kernel_names_ == ["coarse x living", "fine x identity"] and model.weights_.shape == (2,)


def test_weights_count_as_repetitions():
    X, y = planted(48)
    weight = np.random.default_rng(0).integers(0, 3, 48)
    model = MKLClassifier(KERNELS, multiclass="joint", output_kernels=PLANTED, tol=1e-7)
    one = model.fit(X, y, sample_weight=weight).objective_
    assert model.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight)).objective_ == pytest.approx(one, rel=1e-6)


def test_a_hinge_object_multiplies_the_cost():
    X, y = planted(48)
    one = MKLClassifier(KERNELS, multiclass="joint", output_kernels=PLANTED, loss=Hinge(2.0), tol=1e-6).fit(X, y)
    two = MKLClassifier(KERNELS, multiclass="joint", output_kernels=PLANTED, C=2.0, tol=1e-6).fit(X, y)
    assert one.objective_ == pytest.approx(two.objective_, rel=1e-5)


def test_classes_absent_from_a_fold_are_left_out():
    X, y = planted(48)
    order = np.argsort(y, kind="stable")
    model = MKLClassifier(KERNELS, multiclass="joint", output_kernels=PLANTED)
    # the first fold holds all cats and nothing else
    scores = cross_val_score(model, X[order], y[order], cv=KFold(6), error_score="raise")
    assert scores[0] == 0.0
    with pytest.raises(ValueError, match=r"shape \(5, 5\).*Got shape \(6, 6\)"):
        MKLClassifier(KERNELS, multiclass="joint", output_kernels=[np.eye(6)]).fit(X[y != "cat"], y[y != "cat"])


def test_a_search_chooses_as_grid_search_does():
    X, y = planted(60)
    options = {"multiclass": "joint", "output_kernels": PLANTED, "tol": 1e-6}
    ours = MKLClassifierCV(KERNELS, Cs=[0.01, 1.0], cv=3, baselines=False, **options).fit(X, y)
    theirs = GridSearchCV(MKLClassifier(KERNELS, **options), {"C": [0.01, 1.0]}, cv=3).fit(X, y)
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"])
    assert ours.weights_path_.shape == (3, 2, 8)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)


def test_a_class_of_one_sample_and_single_precision():
    X, y = planted(42)
    X, y = np.vstack([X, np.full(8, 3.0)]), np.append(y, "alone")
    K = np.array([X @ X.T, np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(axis=2))])
    outputs = [np.eye(7), groups([0, 1, 1, 2, 2, 1, 2])]
    values = []
    for each in (K, K.astype(np.float32)):
        model = MKLClassifier("precomputed", multiclass="joint", output_kernels=outputs, tol=1e-5)
        values.append(model.fit(stack_kernels(each), y).objective_)
        assert model.duality_gap_ <= 1e-5
    assert values[0] == pytest.approx(values[1], rel=1e-4)


def test_an_indefinite_kernel_on_the_samples_is_repaired():
    X, y = planted(48)
    K = np.array([X @ X.T, X[:, :2] @ X[:, :2].T - 0.01 * X[:, 2:] @ X[:, 2:].T])
    model = MKLClassifier("precomputed", multiclass="joint", output_kernels=PLANTED)
    with pytest.raises(ValueError, match="positive semidefinite"):
        model.fit(stack_kernels(K), y)
    assert model.set_params(psd="clip").fit(stack_kernels(K), y).status_ == "converged"


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:The number of unique classes")
def test_a_thousand_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 8))
    outputs = [np.eye(1000), groups(np.arange(1000) % 10)]
    model = MKLClassifier(
        [RBF(gamma=1.0)], multiclass="joint", output_kernels=outputs, fit_intercept=False, tol=0.3, max_iter=1
    ).fit(X, np.arange(1000))
    assert model.class_embedding_.shape == (1000, 999) and np.isfinite(model.duality_gap_)
    assert (model.predict(X[:50]) == np.arange(50)).mean() > 0.9


# ---- bad input

BAD = {
    "wrong size": ([np.eye(5)], r"shape \(6, 6\).*Got shape \(5, 5\)"),
    "not square": ([np.ones((6, 5))], r"Got shape \(6, 5\)"),
    "indefinite": ([np.eye(6) - np.ones((6, 6))], "positive semidefinite matrices. Got the eigenvalue -5"),
    "nan": ([np.full((6, 6), np.nan)], "finite numbers"),
    "not symmetric": ([np.triu(np.ones((6, 6)))], "symmetric"),
    "none": ([], "at least one"),
    "text": (["identity"], "matrices, kernels or"),
    "complex": ([1j * np.eye(6)], "Got complex numbers as number 0"),
    "complex attributes": ([(Linear(), 1j * np.ones((6, 2)))], "vectors of real numbers"),
    "equal rows": ([np.zeros((6, 6)), np.ones((6, 6))], "tells two classes apart"),
    "a number": (3, "None, a list of matrices or kernels"),
    "vectors over names": ([RBF()], "evaluated on class labels"),
    "missing attributes": ([(Linear(), {"cat": [1.0]})], "Got none for 'dog'"),
    "short attributes": ([(Linear(), np.ones((5, 2)))], "each of 6 classes"),
    "nan attributes": ([(Linear(), np.full((6, 1), np.nan))], "NaN"),
    "ragged attributes": ([(Linear(), {name: np.ones(1 + (name == "dog")) for name in NAMES})], "one length"),
    "unknown pair": (OutputKernels([np.eye(6)], pairs=[("linear", 0)]), "Got 'linear' instead"),
    "pair twice": (OutputKernels([np.eye(6)], pairs=[(0, 0), (0, 0)]), "one twice"),
    "no pairs": (OutputKernels([np.eye(6)], pairs=[]), "Got none"),
    "pair of three": (OutputKernels([np.eye(6)], pairs=[(0, 0, 0)]), "an input and an output"),
    "missing class": (OutputKernels([np.eye(2)], classes=["cat", "dog"]), "every class once"),
    "class twice": (OutputKernels([np.eye(7)], classes=[*NAMES, "cat"]), "one label twice"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_output_kernels_are_one_sentence(name):
    X, y = planted(12)
    spec, words = BAD[name]
    with pytest.raises(ValueError, match=words) as caught:
        MKLClassifier(KERNELS, multiclass="joint", output_kernels=spec).fit(X, y)
    assert "'output_kernels' parameter of MKLClassifier must" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"multiclass": "ovr"}, "'multiclass' .* must be 'joint'"), ({"loss": "squared"}, "'loss' .* must be 'hinge'")],
)
def test_other_schemes_and_losses_are_refused(options, words):
    X, y = planted(12)
    with pytest.raises(ValueError, match=words):
        MKLClassifier(KERNELS, **{"multiclass": "joint", "output_kernels": [np.eye(6)], **options}).fit(X, y)


def test_the_pairwise_family():
    family = pairwise_output_kernels(4)
    assert family.shape == (12, 4, 4)
    np.testing.assert_array_equal(family[0][:2, :2], np.ones((2, 2)))
    np.testing.assert_array_equal(family[1][:2, :2], [[1, -1], [-1, 1]])
    assert all(np.count_nonzero(each) == 4 and np.linalg.eigvalsh(each)[0] > -1e-12 for each in family)
    assert len({each.tobytes() for each in family}) == 12
    with pytest.raises(ValueError, match="at least 2"):
        pairwise_output_kernels(1)


# ---- the picture


def test_the_display_draws_the_classes():
    X, y = planted(60)
    model = MKLClassifier(KERNELS, multiclass="joint", output_kernels=PLANTED, C=0.1).fit(X, y)
    display = ClassEmbeddingDisplay.from_estimator(model, groups=np.isin(model.classes_, NAMES[:3]), marker="s")
    assert display.figure_ is display.ax_.figure and display.ax_.get_xlabel().startswith("axis 1")
    np.testing.assert_allclose(display.points_.get_offsets(), model.class_embedding_[:, :2])
    assert sorted("\n".join(text.get_text() for text in display.text_).split()) == sorted(NAMES)
    assert display.plot(ax=display.ax_).ax_ is display.ax_
    # two classes have one axis, points that lie together one label
    assert len(ClassEmbeddingDisplay(np.zeros((2, 1)), ["a", "b"]).plot().text_) == 1


def test_the_display_needs_output_kernels():
    X, y = planted(60)
    with pytest.raises(ValueError, match="fitted with output_kernels"):
        ClassEmbeddingDisplay.from_estimator(MKLClassifier(KERNELS, multiclass="joint").fit(X, y))


# ---- the scripts


def test_the_experiment_of_the_paper_runs_small(monkeypatch, capsys):
    # under a name of its own: the benchmarks have a module `run` too
    spec = importlib.util.spec_from_file_location("zien_ong", ROOT / "papers" / "2007-zien-ong" / "run.py")
    experiment = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "zien_ong", experiment)
    spec.loader.exec_module(experiment)
    ours = experiment.main(small=True)
    assert set(ours) == {"examples", "classes", "kernels", "qcqp", "qcqp-compact", "silp", "silp-compact", "auto"}
    assert all(np.isfinite(growth.slope) and len(growth.seconds) == 2 for growth in ours.values())
    lines = capsys.readouterr().out.splitlines()
    assert sum("bar" in line for line in lines) == 3 and lines[-1].startswith("in the plane")
    # widths 1, 2^-0.5, 2^0.5 times the 1/c quantile of the distances, each kernel of variance one
    K, y = experiment.toy(40, 4, 3)
    assert np.bincount(y).tolist() == [10] * 4
    np.testing.assert_allclose(K.trace(axis1=1, axis2=2) / 40 - K.mean(axis=(1, 2)), 1.0, rtol=1e-4)
    shape = [np.log(each / each[0, 0])[0, 1] for each in K.astype(float)]
    np.testing.assert_allclose(np.array(shape) / shape[0], [1.0, 2.0, 0.5], rtol=1e-3)
    assert experiment.Growth([1, 2, 4], [1.0, 4.0, 16.0]).slope == pytest.approx(2.0)


def test_the_benchmark_runs_small(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    for name in ("run", "workloads", "tasks", "joint"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    joint = importlib.import_module("joint")
    joint.many_classes(6, 4, 8)
    joint.outputs(40, 4)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5 and lines[0].endswith("ok") and "GiB" in lines[2]
    for name in ("run", "workloads", "tasks", "joint"):
        monkeypatch.delitem(sys.modules, name)


def test_a_group_for_each_class_or_one_sentence():
    with pytest.raises(ValueError, match=r"must hold one group for each of 2 classes. Got shape \(3,\)"):
        ClassEmbeddingDisplay(np.zeros((2, 1)), ["a", "b"]).plot(groups=[0, 1, 1])
