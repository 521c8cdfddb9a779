"""UFO-MKL and OBSCURE: against a conic solver, against the algorithms written out, and as estimators."""

import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from problems import gaussian
from reference_online import conic_online, online_value
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from multikernel import MKLClassifier, OBSCUREClassifier, UFOMKLClassifier, stack_kernels
from multikernel.estimators.linear import LinearFeatures
from multikernel.gram.dense import AffineForm, DenseGram
from multikernel.gram.subset import SubsetGram
from multikernel.kernels import RBF, KernelBank, Linear
from multikernel.primal.blocks import FeatureBlocks, KernelBlocks
from multikernel.primal.obscure import obscure
from multikernel.primal.online import Penalty, Sample, power_for
from multikernel.primal.online_loops import FIRST, SECOND, STREAM, UFO
from multikernel.primal.ufo import ufo

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning",
    "ignore:pnorm with:UserWarning",
    "ignore:Solution may be:UserWarning",
)
BOTH = (UFOMKLClassifier, OBSCUREClassifier)


def draw(n=60, classes=3, seed=0):
    """Two columns that tell the classes, two that do not; one label in ten is wrong."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    X = np.hstack([np.eye(classes)[y][:, :2] * 2 + 0.6 * rng.normal(size=(n, 2)), rng.normal(size=(n, 2))])
    wrong = rng.random(n) < 0.1
    return X, np.where(wrong, rng.integers(0, classes, n), y)


def stack_of(X):
    kernels = [gaussian(X[:, :2], 1.0), gaussian(X[:, :2], 4.0), gaussian(X[:, 2:], 1.0), gaussian(X[:, 2:], 4.0)]
    return np.array([K / (1.0 - K.mean()) for K in kernels])


X, Y = draw()
K = stack_of(X)
N = len(Y)
ALL = Sample(Y, np.ones(N), np.arange(N), np.zeros(0, int))
NO_SEED = np.random.RandomState(0)


def exponent(p=len(K), r=None):
    q = power_for(p, r)
    return q / (q - 1.0)


# ---- the optimum

CASES = [
    (UFOMKLClassifier, {"C": 0.1}, 0.0),
    (UFOMKLClassifier, {"C": 1.0}, 0.0),
    (UFOMKLClassifier, {"C": 1.0, "alpha": 0.05}, 0.05),
    (UFOMKLClassifier, {"C": 0.1, "alpha": 0.05, "block_norm": 2.0}, 0.05),
    (OBSCUREClassifier, {"C": 0.1}, 0.0),
    (OBSCUREClassifier, {"C": 1.0}, 0.0),
    (OBSCUREClassifier, {"C": 1.0, "block_norm": 1.2}, 0.0),
    (OBSCUREClassifier, {"C": 0.1, "block_norm": 2.0}, 0.0),
]
# epochs to 1e-2 and to 1e-4: the error falls as C / epochs
EPOCHS = {0.1: (50, 3000), 1.0: (200, 12_000)}


@pytest.mark.parametrize(("learner", "options", "alpha"), CASES, ids=lambda value: str(value)[:60])
def test_the_optimum_of_the_objective_is_reached(learner, options, alpha):
    # values are in units of the objective of w = 0, which is 1
    r = exponent(r=options.get("block_norm"))
    best, norms = conic_online(K, Y, 1.0 / (options["C"] * N), alpha, r)
    model = learner("precomputed", normalize=None, tol=1e-9, random_state=0, **options)
    stack = stack_kernels(K)
    few, enough = EPOCHS[options["C"]]
    model.set_params(max_iter=few).fit(stack, Y)
    assert model.n_iter_ == few and model.objective_ <= best + 1e-2
    model.set_params(max_iter=enough).fit(stack, Y)
    assert -1e-6 <= model.objective_ - best <= 1e-4
    assert best - 1e-4 <= model.dual_objective_ <= best + 1e-6
    np.testing.assert_allclose(model.weights_, norms / norms.sum(), atol=2e-2)


@pytest.mark.parametrize(("learner", "options", "alpha"), CASES[1::2], ids=lambda value: str(value)[:60])
def test_the_objective_is_that_of_the_predictions(learner, options, alpha):
    model = learner("precomputed", normalize=None, max_iter=30, random_state=0, **options).fit(stack_kernels(K), Y)
    value = online_value(
        model.block_norms_, model.decision_function(stack_kernels(K)), Y, 1.0 / (options["C"] * N), alpha,
        exponent(r=options.get("block_norm")),
    )  # fmt: skip
    assert model.objective_ == pytest.approx(value, rel=1e-10)
    assert model.duality_gap_ == pytest.approx(1.0 - model.dual_objective_ / model.objective_)


@pytest.mark.parametrize("learner", BOTH)
def test_without_sparsity_it_is_the_joint_problem(learner):
    r = exponent()
    joint = MKLClassifier(
        "precomputed", multiclass="joint", fit_intercept=False, normalize=None, C=0.2, norm=r / (2.0 - r), tol=1e-6
    ).fit(stack_kernels(K), Y)
    model = learner("precomputed", normalize=None, C=0.2, tol=1e-9, max_iter=2000, random_state=0)
    assert model.fit(stack_kernels(K), Y).objective_ == pytest.approx(joint.objective_ / (0.2 * N), rel=1e-3)


@pytest.mark.parametrize("learner", BOTH)
def test_costs_are_those_of_repetition_and_of_classes(learner):
    weight = np.where(np.arange(N) % 5 == 0, 0.0, 1.0 + np.arange(N) % 3)
    options = {"class_weight": {0: 2.0}, "tol": 1e-9, "max_iter": 3000, "random_state": 0}
    model = learner("precomputed", normalize=None, C=0.1, **options)
    model.fit(stack_kernels(K), Y, weight)
    kept = np.flatnonzero(weight)
    total = weight.sum()
    cost = weight[kept] * np.where(Y[kept] == 0, 2.0, 1.0) * len(kept) / total
    best, _ = conic_online(K[:, kept][:, :, kept], Y[kept], 1.0 / (0.1 * total), 0.0, exponent(), cost)
    assert model.objective_ == pytest.approx(best, rel=2e-3)
    assert model.dual_objective_ <= best * (1 + 1e-6)
    assert not np.isin(model.support_, np.flatnonzero(weight == 0)).any()


@pytest.mark.parametrize("learner", BOTH)
def test_bounds_enclose_the_optimum_after_every_epoch(learner):
    best, _ = conic_online(K, Y, 1.0 / N, 0.0, exponent())
    history = learner("precomputed", normalize=None, tol=1e-9, random_state=3).fit(stack_kernels(K), Y).history_
    assert np.all(history["lower"] <= best + 1e-6) and np.all(history["upper"] >= best - 1e-6)
    assert np.all(np.diff(history["upper"]) <= 0) and np.all(np.diff(history["lower"]) >= 0)
    assert np.all(history["upper"] <= history["primal"])


@pytest.mark.parametrize("kernels", ["rbf", [Linear()]])
@pytest.mark.parametrize("seed", range(4))
def test_epochs_without_violations_prove_nothing(kernels, seed):
    # pairs of equal samples, easily told apart: the first stage ends before the second begins
    Z = np.repeat([[1.0, 3.0], [2.0, 1.0], [3.0, 3.0], [4.0, 1.0]], 4, axis=0)
    y = np.repeat([0, 1, 0, 1], 4)
    model = OBSCUREClassifier(kernels, normalize=["center", "variance"], max_iter=40, tol=1e-9, random_state=seed)
    model.fit(Z, y)
    bank = KernelBank.fit(kernels, Z, None, ["center", "variance"])
    stack = [bank.normalizer(k, Z).train_block(bank.raw(k, Z)) for k in range(bank.n_kernels)]
    best, _ = conic_online(stack, y, 1.0 / 16, 0.0, exponent(len(stack)))
    assert np.all(model.history_["lower"] <= best * (1 + 1e-5)) and model.objective_ >= best * (1 - 1e-5)


def test_sparsity_leaves_few_kernels():
    model = UFOMKLClassifier("precomputed", normalize=None, alpha=0.2, max_iter=300, random_state=0)
    model.fit(stack_kernels(K), Y)
    _, norms = conic_online(K, Y, 1.0 / N, 0.2, exponent())
    assert np.array_equal(model.weights_ > 1e-3, norms > 1e-3 * norms.max())
    assert np.count_nonzero(model.weights_) == model.history_["active"][-1] < len(K)


# ---- the algorithms written out


class Written:
    """theta_j (d_j, c) as arrays, every formula as it is printed."""

    def __init__(self, features, c, q):
        self.Z, self.c, self.q = features, c, q
        self.theta = [np.zeros((Z.shape[1], c)) for Z in features]
        self.t, self.taus = 0, 0.0

    def norms(self):
        return np.array([np.linalg.norm(theta) for theta in self.theta])

    def ufo_map(self, lam, a, t):
        size, out = self.norms(), []
        v = np.maximum(size - a * t, 0.0)
        for j, theta in enumerate(self.theta):
            factor = 0.0
            if v[j] > 0:
                factor = v[j] / (lam * t * size[j]) * (v[j] / np.linalg.norm(v, self.q)) ** (self.q - 2)
            out.append(factor * theta)
        return out

    def power_map(self):
        size = self.norms()
        total = np.linalg.norm(size, self.q)
        return [
            (s / total) ** (self.q - 2) * theta / self.q if s > 0 else theta
            for s, theta in zip(size, self.theta, strict=True)
        ]

    def violation(self, w, i, y):
        f = sum(Z[i] @ each for Z, each in zip(self.Z, w, strict=True))
        rivals = np.where(np.arange(self.c) == y, -np.inf, f)
        u = int(np.argmax(rivals))
        e = np.eye(self.c)[y] - np.eye(self.c)[u]
        z = [np.outer(Z[i], e) for Z in self.Z]
        return 1.0 + f[u] - f[y], z, f[y] - f[u]

    def ufo(self, i, y, lam, a):
        loss, z, _ = self.violation(self.ufo_map(lam, a, max(self.t, 1)), i, y)
        self.t += 1
        if loss > 0:
            self.theta = [theta + each for theta, each in zip(self.theta, z, strict=True)]

    def first(self, i, y):
        loss, z, product = self.violation(self.power_map(), i, y)
        length = np.linalg.norm([np.linalg.norm(each) for each in z], self.q)
        eta = max(min(1.0, 1.0 - 2.0 * product / length**2), 0.0) if loss > 0 else 0.0
        self.theta = [theta + eta * each for theta, each in zip(self.theta, z, strict=True)]

    def second(self, i, y, lam, R):
        loss, z, _ = self.violation(self.power_map(), i, y)
        self.t += 1
        total = np.linalg.norm(self.norms(), self.q)
        L = (loss > 0) * np.linalg.norm([np.linalg.norm(each) for each in z], self.q) + lam / self.q * total
        a = lam * self.t + self.taus
        self.taus += (-a + np.sqrt(a**2 + self.q * L**2 / R**2)) / 2.0
        eta = self.q / (lam * self.t + self.taus)
        moved = [(1.0 - eta * lam / self.q) * theta for theta in self.theta]
        self.theta = [theta + (loss > 0) * eta * each for theta, each in zip(moved, z, strict=True)]
        total = np.linalg.norm(self.norms(), self.q)
        self.theta = [min(1.0, self.q * R / max(total, 1e-300)) * theta for theta in self.theta]


FEATURES = [X[:20, :2], X[:20, 1:], X[:20] ** 2]
ORDER = np.random.default_rng(1).integers(0, 20, 30)


@pytest.mark.loops
@pytest.mark.parametrize("rule", [UFO, STREAM, FIRST, SECOND])
@pytest.mark.parametrize("q", [2.0, 3.5])
def test_the_visits_are_the_printed_ones(rule, q):
    lam, a, radius = 0.05, 0.02, 1.5
    features = FEATURES
    written = Written(features, 3, q)
    for i in ORDER:
        if rule == UFO:
            written.ufo(i, Y[i], lam, a)
        elif rule == STREAM:
            # lambda t = 1/C
            written.ufo(i, Y[i], lam / max(written.t, 1), a)
        elif rule == FIRST:
            written.first(i, Y[i])
        else:
            written.second(i, Y[i], lam, radius)
    limits = np.array([lam, a if rule in (UFO, STREAM) else 0.0, q, radius])
    grams = np.array([Z @ Z.T / 2.0 for Z in features])
    rng = np.random.default_rng(4)
    unit, L, R = 0.5 + rng.random((3, 20)), rng.normal(size=(3, 20, 2)), rng.normal(size=(3, 20, 2))
    form = AffineForm(np.array([1.0, 2.0, 0.5]), unit, L, R)
    seen = form.scale[:, None, None] * unit[:, :, None] * unit[:, None, :]
    kinds = [
        FeatureBlocks(features, 3),
        KernelBlocks(DenseGram(grams, AffineForm(np.full(3, 2.0))), 3),
        KernelBlocks(DenseGram([2.0 * G for G in grams]), 3, average=False),
        # K~ = s u u' K - L R' - R L'
        KernelBlocks(DenseGram((2.0 * grams + L @ R.transpose(0, 2, 1) + R @ L.transpose(0, 2, 1)) / seen, form), 3),
        # of two kinds: read by rows
        KernelBlocks(DenseGram([2.0 * grams[0], *(np.asfortranarray(2.0 * G)[:, ::1] for G in grams[1:])]), 3),
        KernelBlocks(SubsetGram(DenseGram(2.0 * grams), np.arange(20)), 3),
    ]
    for blocks in kinds:
        blocks.visit(rule, ORDER, Y, np.ones(20), limits)
        blocks.fold()
        np.testing.assert_allclose(np.sqrt(blocks.squares), written.norms(), rtol=1e-7)
        np.testing.assert_allclose(np.sqrt(blocks.gathered()[1]), written.norms(), rtol=1e-7)
        outputs = sum(Z @ theta for Z, theta in zip(features, written.theta, strict=True))
        np.testing.assert_allclose(blocks.outputs(np.ones(3)), outputs, atol=1e-7)
    np.testing.assert_allclose(kinds[0].theta.T, np.vstack(written.theta), atol=1e-9)


@pytest.mark.loops
@pytest.mark.parametrize("rule", [UFO, SECOND])
def test_the_average_is_that_of_the_predictors(rule):
    limits, visits = np.array([0.05, 0.0, 3.0, 1.5]), ORDER[:12]
    G = np.array([Z @ Z.T for Z in FEATURES])
    for make in (lambda: FeatureBlocks(FEATURES, 3), lambda: KernelBlocks(DenseGram(G), 3)):
        blocks, steps = make(), make()
        blocks.visit(rule, visits, Y, np.ones(20), limits)
        total = 0.0
        for i in visits:
            m, _ = steps.current(rule, limits)
            total = total + steps.outputs(m)
            steps.visit(rule, np.array([i]), Y, np.ones(20), limits)
        norms, f, model, _ = blocks.averaged(len(visits))
        np.testing.assert_allclose(f, total / len(visits), atol=1e-10)
        np.testing.assert_allclose(blocks.block_outputs(model).sum(axis=0), f, atol=1e-10)
        assert np.all(norms > 0)


def test_the_radius_holds_the_optimum():
    penalty = Penalty(1.0 / N, 0.0, 3.0)
    blocks = KernelBlocks(DenseGram(K), 3)
    found = obscure(blocks, ALL, penalty, online_epochs=3, max_iter=20, tol=1e-9, seed=np.random.RandomState(0))
    _, norms = conic_online(K, Y, penalty.lam, 0.0, 1.5)
    assert np.linalg.norm(norms, 1.5) <= found.radius <= np.sqrt(2.0 / penalty.lam)
    assert np.linalg.norm(blocks.current(SECOND, penalty.limits())[1], 1.5) <= found.radius * (1 + 1e-9)


def test_with_no_online_epochs_it_starts_at_zero():
    model = OBSCUREClassifier("precomputed", normalize=None, online_epochs=0, max_iter=300, C=0.1, random_state=0)
    model.fit(stack_kernels(K), Y)
    assert model.radius_ == pytest.approx(np.sqrt(2.0 * 0.1 * N))
    assert model.duality_gap_ <= 1e-2


# ---- kernels, stacks, features

NAMED = [("first", Linear(), [0, 1]), ("second", Linear(), slice(1, 4)), ("all", Linear(), slice(None))]


@pytest.mark.parametrize("learner", BOTH)
@pytest.mark.parametrize("normalize", [None, "variance", "cosine", ["center", "cosine"], ["cosine", "center", "trace"]])
def test_features_and_kernels_agree(learner, normalize):
    options = {"normalize": normalize, "max_iter": 12, "random_state": 5}
    features = learner(NAMED, **options).fit(X, Y)
    kernels = learner(NAMED, gram="dense", **options).fit(X, Y)
    lazy = learner(NAMED, gram="lazy", **options).fit(X, Y)
    assert (features.gram_.kind, kernels.gram_.kind, lazy.gram_.kind) == ("features", "dense", "lazy")
    new = draw(15, seed=9)[0]
    for other in (kernels, lazy):
        assert features.objective_ == pytest.approx(other.objective_, rel=1e-6)
        assert features.duality_gap_ == pytest.approx(other.duality_gap_, rel=1e-4)
        np.testing.assert_allclose(features.weights_, other.weights_, rtol=1e-5)
        np.testing.assert_allclose(features.decision_function(new), other.decision_function(new), atol=1e-5)
        np.testing.assert_allclose(features.kernel_contributions_, other.kernel_contributions_, atol=1e-6)


@pytest.mark.parametrize("steps", [None, "variance", "trace", "cosine", "center", ["center", "cosine", "variance"]])
@pytest.mark.parametrize("weight", [None, 1.0 + np.arange(N) % 4])
def test_normalised_features_have_the_normalised_kernel(steps, weight):
    bank = KernelBank.fit(NAMED, X, weight, steps)
    source = LinearFeatures.fit(NAMED, X, weight, steps)
    new = draw(7, seed=2)[0]
    for k, (Z, T) in enumerate(zip(source.maps(X), source.maps(new), strict=True)):
        known = bank.normalizer(k, X, weight)
        np.testing.assert_allclose(Z @ Z.T, known.train_block(bank.raw(k, X)), atol=1e-12)
        diag = bank.raw_diag(k, new)
        np.testing.assert_allclose(T @ Z.T, known.cross(bank.raw(k, new, X), diag), atol=1e-12)


@pytest.mark.parametrize("learner", BOTH)
@pytest.mark.parametrize("average", [True, False])
def test_stacks_of_any_kind_give_the_model_of_the_kernels(learner, average):
    kernels = [RBF(width=1.0), RBF(width=3.0), ("linear", Linear(), [0, 1])]
    options = {"average": average, "max_iter": 10, "random_state": 1}
    computed = learner(kernels, **options).fit(X, Y)
    raw = np.array([KernelBank.fit(kernels, X).raw(k, X) for k in range(3)])
    raw.flags.writeable = False
    for stack in (stack_kernels(raw), stack_kernels(list(raw))):
        model = learner("precomputed", **options).fit(stack, Y)
        assert model.objective_ == pytest.approx(computed.objective_, rel=1e-5)
        np.testing.assert_allclose(model.decision_function(stack), computed.decision_function(X), atol=1e-3)
    small = learner("precomputed", **options).fit(stack_kernels(raw.astype(np.float32)), Y)
    assert small.gram_.dtype == "float32"
    assert small.objective_ == pytest.approx(computed.objective_, rel=1e-3)
    half = np.arange(0, N, 2)
    part = learner("precomputed", **options).fit(stack_kernels(raw)[half], Y[half])
    own = stack_kernels(np.ascontiguousarray(raw[:, half][:, :, half]))
    alone = learner("precomputed", **options).fit(own, Y[half])
    np.testing.assert_allclose(part.weights_, alone.weights_)
    assert part.predict(stack_kernels(raw)).shape == (N,)


@pytest.mark.parametrize("learner", BOTH)
def test_a_model_survives_pickling_and_frames(learner):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcd"))
    labels = np.array(["red", "green", "blue"])[Y]
    model = learner([("ab", Linear(), ["a", "b"]), ("cd", Linear(), ["c", "d"])], max_iter=20, random_state=0)
    model.fit(frame, labels)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(frame), model.predict(frame))
    assert set(model.predict(frame)) <= set(labels) and model.score(frame, labels) > 0.7
    assert list(model.feature_names_in_) == list("abcd") and model.kernel_names_ == ["ab", "cd"]
    assert model.coef_.shape == (3, 4) and not hasattr(model, "support_")


@pytest.mark.parametrize("learner", BOTH)
def test_two_classes_have_one_column(learner):
    y = np.where(Y == 0, "no", "yes")
    model = learner(max_iter=30, random_state=0).fit(X, y)
    scores = model.decision_function(X)
    assert scores.shape == (N,) and np.array_equal(model.predict(X), np.where(scores > 0, "yes", "no"))


@pytest.mark.parametrize("learner", BOTH)
def test_seeds_decide_the_path(learner):
    fits = [learner(max_iter=3, random_state=seed).fit(X, Y).history_["primal"] for seed in (0, 0, 1)]
    assert np.array_equal(fits[0], fits[1]) and not np.array_equal(fits[0], fits[2])


# ---- when to stop


@pytest.mark.parametrize("learner", BOTH)
@pytest.mark.parametrize("kernels", ["rbf", [Linear()]])
def test_samples_held_out_stop_it(learner, kernels):
    big, labels = draw(150, seed=4)
    model = learner(kernels, early_stopping=True, validation_fraction=0.2, n_iter_no_change=4, tol=1e-9, random_state=0)
    model.fit(big, labels)
    assert model.status_ == "settled" and model.n_iter_ < model.max_iter
    score = model.history_["score"]
    assert np.all(np.diff(score) >= 0) and score[-1] == score[-5] and score[-1] > 0.6
    if kernels == "rbf":
        assert len(model.support_) <= 120


@pytest.mark.parametrize("learner", BOTH)
def test_the_gap_stops_it(learner):
    model = learner("precomputed", normalize=None, C=0.1, tol=0.1, random_state=0).fit(stack_kernels(K), Y)
    assert model.status_ == "converged" and model.duality_gap_ <= 0.1
    assert len(model.history_["gap"]) == model.n_iter_ < 100


@pytest.mark.parametrize("learner", BOTH)
def test_too_few_epochs_are_told(learner):
    with pytest.warns(ConvergenceWarning, match=r"max_iter: after 1 epoch the relative duality gap is .* raise"):
        learner(max_iter=1).fit(X, Y)


@pytest.mark.parametrize("learner", BOTH)
def test_an_interruption_leaves_the_best_model(learner, monkeypatch):
    visit, count = KernelBlocks.visit, []

    def stop(self, *args):
        count.append(1)
        if len(count) > 8:
            raise KeyboardInterrupt
        visit(self, *args)

    monkeypatch.setattr(KernelBlocks, "visit", stop)
    with pytest.warns(ConvergenceWarning, match="was interrupted after"):
        model = learner(tol=1e-9, random_state=0).fit(X, Y)
    assert model.status_ == "interrupted" and model.score(X, Y) > 0.5 and model.duality_gap_ < np.inf


def test_an_interruption_in_the_first_epoch_leaves_a_model(monkeypatch):
    def stop(self, *args):
        raise KeyboardInterrupt

    monkeypatch.setattr(KernelBlocks, "visit", stop)
    with pytest.warns(ConvergenceWarning, match="interrupted after 0 epochs"):
        model = UFOMKLClassifier().fit(X, Y)
    assert model.predict(X).shape == (N,) and not model.block_norms_.any()


# ---- streams


@pytest.mark.parametrize("learner", BOTH)
def test_a_stream_does_not_depend_on_its_parts(learner):
    big, labels = draw(300, seed=6)
    source = {"normalize": None}
    one = learner(NAMED, **source).partial_fit(big, labels, classes=[0, 1, 2])
    many = learner(NAMED, **source)
    for first in range(0, 300, 37):
        part = slice(first, first + 37)
        many.partial_fit(big[part], labels[part], classes=[0, 1, 2] if first == 0 else None)
    np.testing.assert_allclose(many.coef_, one.coef_, atol=1e-9)
    np.testing.assert_allclose(many.weights_, one.weights_, atol=1e-9)
    assert one.t_ == many.t_ == 300 and one.score(big, labels) > 0.6
    assert len(pickle.dumps(many)) < 20_000


def test_a_stream_goes_on_from_a_fit():
    model = UFOMKLClassifier(NAMED, average=False, max_iter=50, random_state=0).fit(X, Y)
    m, norms = model._stream.current(STREAM, np.array([1.0, 0.0, power_for(3), np.inf]))
    outputs = np.hstack(model._expansion.features.maps(X)) @ model._stream.predictor(m).T
    value = online_value(norms, outputs, Y, 1.0 / N, 0.0, exponent(3))
    assert value == pytest.approx(model.history_["primal"][-1], rel=1e-9)
    model.partial_fit(X[:5], Y[:5])
    assert model.t_ == N + 5
    assert not hasattr(model.fit(X, Y), "t_")


@pytest.mark.parametrize("learner", BOTH)
def test_streams_need_explicit_features(learner):
    for kernels in ("rbf", "precomputed", [RBF()], [Linear(), RBF()], []):
        assert not hasattr(learner(kernels), "partial_fit")
    with pytest.raises(AttributeError, match="has no attribute 'partial_fit'") as error:
        _ = learner("precomputed").partial_fit
    assert re.search(r"every kernel must be Linear\(\).*Got kernels='precomputed'.*use fit", str(error.value.__cause__))


def test_what_a_stream_refuses():
    def model():
        return UFOMKLClassifier([Linear()])

    with pytest.raises(ValueError, match=r"'classes' parameter of UFOMKLClassifier.partial_fit must hold all classes"):
        model().partial_fit(X, Y)
    with pytest.raises(ValueError, match=r"must be among \[0, 1\]. Got 2 as well"):
        model().partial_fit(X, Y, classes=[0, 1])
    with pytest.raises(ValueError, match="at least 2 classes"):
        model().partial_fit(X, np.zeros(N), classes=[0])
    started = model().partial_fit(X, Y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match=r"must be \[0, 1, 2\], as in the first call. Got \[0, 1\] instead"):
        started.partial_fit(X, Y, classes=[0, 1])
    with pytest.raises(ValueError, match="features"):
        started.partial_fit(X[:, :2], Y)


# ---- bad input

SENTENCES = [
    ("C", 0, "a positive number. Got 0 instead."),
    ("alpha", -0.1, "a non-negative number. Got -0.1 instead."),
    ("block_norm", 1.0, "None or a number above 1 and at most 2. Got 1.0 instead."),
    ("block_norm", 3, "None or a number above 1 and at most 2. Got 3 instead."),
    ("average", "yes", "True or False. Got 'yes' instead."),
    ("early_stopping", 1, "True or False. Got 1 instead."),
    ("validation_fraction", 1.0, "a number between 0 and 1. Got 1.0 instead."),
    ("n_iter_no_change", 0, "a positive integer. Got 0 instead."),
    ("online_epochs", -1, "a non-negative integer. Got -1 instead."),
    ("max_iter", 0, "a positive integer. Got 0 instead."),
    ("tol", 0, "a positive number. Got 0 instead."),
]


OWNED = [(learner, *each) for learner in BOTH for each in SENTENCES if each[0] in learner().get_params()]


@pytest.mark.parametrize(("learner", "name", "value", "rest"), OWNED, ids=lambda value: str(value)[:12])
def test_a_wrong_parameter_is_named(learner, name, value, rest):
    with pytest.raises(ValueError) as error:
        learner(**{name: value}).fit(X, Y)
    assert str(error.value) == f"The '{name}' parameter of {learner.__name__} must be {rest}"


def test_one_class_and_a_class_of_one_are_refused():
    with pytest.raises(ValueError, match="UFOMKLClassifier needs samples of at least 2 classes"):
        UFOMKLClassifier().fit(X, np.zeros(N))
    lonely = np.array([7, *Y[1:]])
    with pytest.raises(ValueError, match=r"'validation_fraction' parameter .* must leave samples of every class"):
        UFOMKLClassifier(early_stopping=True).fit(X, lonely)
    with pytest.raises(NotFittedError):
        OBSCUREClassifier().predict(X)


def test_indefinite_kernels_are_refused_or_repaired():
    bad = K[0] - 0.5 * np.eye(N)
    with pytest.raises(ValueError, match="must be positive semidefinite"):
        UFOMKLClassifier("precomputed").fit(stack_kernels([K[1], bad]), Y)
    model = UFOMKLClassifier("precomputed", psd="clip", random_state=0).fit(stack_kernels([K[1], bad]), Y)
    assert model.score(stack_kernels([K[1], bad]), Y) > 0.6


def test_a_kernel_that_proves_indefinite_in_training_is_repaired(monkeypatch):
    met = []

    def suspect(self, solution):
        met.append(solution.curvature)
        return np.array([0]) if len(met) == 1 else np.zeros(0, int)

    monkeypatch.setattr("multikernel.estimators.training.TrainingKernels.negative_curvature", suspect)
    UFOMKLClassifier("precomputed", psd="clip", max_iter=3).fit(stack_kernels(K), Y)
    assert len(met) == 2 and np.all(met[0] > 0)


def test_features_need_linear_kernels():
    assert UFOMKLClassifier(NAMED, gram="features", max_iter=2).fit(X, Y).gram_.kind == "features"
    with pytest.raises(ValueError, match=r"gram='features' of UFOMKLClassifier needs .* Got kernels='rbf' instead"):
        UFOMKLClassifier(gram="features").fit(X, Y)


def test_a_constant_kernel_is_named():
    with pytest.warns(UserWarning, match="'flat'"):
        UFOMKLClassifier([("x", Linear(), [0]), ("flat", Linear(), [1])]).fit(np.c_[X[:, 0], np.ones(N)], Y)


def test_progress_is_told_on_a_terminal_only(capsys):
    UFOMKLClassifier(verbose=2, max_iter=2).fit(X, Y)
    assert capsys.readouterr() == ("", "")


def test_power_and_penalty():
    assert power_for(1) == power_for(2) == 2.0 and power_for(100) == pytest.approx(2 * np.log(100))
    penalty = Penalty(0.5, 0.1, 3.0)
    w = np.array([0.3, 0.0, 1.2])
    theta = np.array([0.4, 0.05, 0.9])
    # Fenchel: h(w) + h*(theta) >= <w, theta>, with equality at the mirror image
    assert penalty.value(w) + penalty.conjugate(theta) >= w @ theta
    v = np.maximum(theta - 0.1, 0)
    image = v**2 / np.linalg.norm(v, 3) / 0.5
    assert penalty.value(image) + penalty.conjugate(theta) == pytest.approx(image @ theta)


def test_ufo_alone():
    found = ufo(KernelBlocks(DenseGram(K), 3), ALL, Penalty(1.0 / N, 0.0, 2.0), max_iter=5, tol=1e-9, seed=NO_SEED)
    assert found.n_iter == 5 and found.gap == pytest.approx(1 - found.lower / found.upper) and found.radius == np.inf


# ---- benchmarks


def test_the_benchmarks_run_on_small_draws(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent / "benchmarks"))
    import online

    online.epochs(60, 4, repeats=1)
    online.fits(60, 4, repeats=1)
    online.m3k(60, 4, repeats=1)
    online.memory_of(60, 4)
    assert capsys.readouterr().out.count("passes") == 6


@pytest.mark.parametrize("learner", BOTH)
def test_a_stream_keeps_no_certificate_of_another_predictor(learner):
    model = learner([Linear()], tol=0.5, random_state=0).fit(X, Y)
    proved = ("objective_", "dual_objective_", "duality_gap_", "status_", "history_", "kernel_contributions_")
    assert all(hasattr(model, name) for name in proved)
    model.partial_fit(X[:5], Y[:5])
    assert not any(hasattr(model, name) for name in proved)
    with pytest.raises(ValueError, match="1d array"):
        learner([Linear()]).partial_fit(X, Y, classes=[[0, 1, 2]])
