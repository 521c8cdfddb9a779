"""The updates of UFO-MKL and OBSCURE against the algorithms written out."""

import numpy as np
import pytest
from problems_online import X, Y, quiet

from multikernel.estimators.baselines.online_blocks import FeatureBlocks, KernelBlocks
from multikernel.estimators.baselines.online_loops import FIRST, SECOND, STREAM, UFO
from multikernel.gram.dense import AffineForm, DenseGram
from multikernel.gram.subset import SubsetGram

pytestmark = quiet


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
        baselines = np.where(np.arange(self.c) == y, -np.inf, f)
        u = int(np.argmax(baselines))
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
