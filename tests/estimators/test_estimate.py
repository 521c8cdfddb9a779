"""What a fit will take: sizes, powers and storages, by a clock that the fits themselves move."""

import numpy as np
import pytest

from multikernel import (
    LPBetaClassifier,
    MKLClassifier,
    MKLClassifierCV,
    MKLOneClass,
    MKLRegressor,
    UFOMKLClassifier,
    stack_kernels,
)
from multikernel.estimators import estimate as module
from multikernel.estimators.estimate import Estimate, Probes, estimate_fit, extrapolated, time_text
from multikernel.kernels import RBF, Linear

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1200, 3))
NUMBERS = X[:, 0] + np.sin(2 * X[:, 1])
KERNELS = [("a", RBF(gamma=0.5), [0, 1]), ("b", Linear(), [2]), ("c", Linear(), [0, 1])]


@pytest.fixture
def clock(monkeypatch):
    """Let a fit of m samples take cost(m) seconds, and return the sizes of the fits; the law can be set."""

    class Clock:
        now, sizes = 0.0, []
        cost = staticmethod(lambda m, gram: 1e-6 * m**2)

        def perf_counter(self):
            return self.now

    clock, fit = Clock(), Probes.fit
    clock.sizes = []

    def timed(self, size, **options):
        model = fit(self, min(size, 100), **options)
        clock.sizes.append(size)
        clock.now += clock.cost(size, options.get("gram"))
        return model

    monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(Probes, "fit", timed)
    return clock


def test_the_law_of_the_times_is_found(clock):
    for cost, power in ((lambda m, gram: 1e-7 * m**2.5, 2.5), (lambda m, gram: 1e-6 * m**2, 2.0)):
        clock.cost = cost
        found = MKLClassifier(KERNELS, gram="dense").estimate(X, NUMBERS > 0)
        assert found.seconds["dense"] == pytest.approx(cost(1200, None), rel=1e-3), power
    # below the square only a constant is hidden, above the cube only other work on the machine
    assert (
        extrapolated([100, 200], [1.0, 1.5], 400, 2) == 6.0 and extrapolated([100, 200], [1.0, 99.0], 400, 1) == 792.0
    )
    assert extrapolated([100], [1.0], 300, 1) == 3.0


def test_there_is_no_time_for_every_size(clock):
    many = np.tile(X, (20, 1))
    clock.cost = lambda m, gram: 1e-6 * m**2
    found = MKLRegressor(KERNELS, gram="lazy").estimate(many, np.tile(NUMBERS, 20), seconds=2.0)
    assert found.seconds["lazy"] == pytest.approx(576.0, rel=1e-3) and max(clock.sizes) <= 1500


def test_storages_and_what_fit_takes(clock):
    linear = KERNELS[1:]
    found = MKLClassifier(linear).estimate(X, NUMBERS > 0)
    assert found.storage == "dense" and list(found.seconds) == ["dense", "lazy", "memmap", "features"]
    n, p = 1200, 2
    assert found.memory["dense"] >= (p + 1) * n * n * 8 > found.memory["memmap"] >= n * n * 8 > found.memory["features"]
    # an RBF has no features, and three kernels do not fit
    found = MKLClassifier(KERNELS, memory_limit="20MB").estimate(X, NUMBERS > 0)
    assert found.storage == "lazy" and list(found.seconds) == ["lazy", "memmap"]
    many = np.tile(X, (20, 1))
    found = MKLClassifier(linear).estimate(many, np.tile(NUMBERS, 20) > 0, seconds=0.1)
    assert found.storage == "features" and found.n_samples == 24000 and found.n_kernels == 2
    assert UFOMKLClassifier(linear).estimate(X, NUMBERS > 0, seconds=0.1).storage == "features"
    text = repr(found)
    assert "MKLClassifier on 24000 samples, 2 kernels:" in text and text.count("<- fit takes this") == 1
    with pytest.raises(MemoryError, match="The combined kernel on 1200 samples needs"):
        MKLClassifier(KERNELS, memory_limit="2MB").estimate(X, NUMBERS > 0)


def test_parts_have_every_class():
    y = np.zeros(1200, int)
    y[[3, 700, 5]] = 1
    y[[9, 10]] = 2
    probes = Probes(MKLClassifier(KERNELS), X, y, None)
    assert probes.sizes == [300, 600]
    for size in (5, 300):
        assert np.bincount(y[probes.order[:size]], minlength=3).min() >= 1
    assert sorted(probes.order) == list(range(1200))
    assert Probes(MKLOneClass(KERNELS), X[:90], None, None).sizes == [90]


@pytest.mark.parametrize(
    "model",
    [
        MKLOneClass(KERNELS, gram="dense"),
        LPBetaClassifier(KERNELS, cv=2, gram="dense"),
        MKLClassifierCV(KERNELS, Cs=[1.0], cv=[(np.arange(600), np.arange(600, 1200))] * 2, gram="dense", refit=False),
    ],
    ids=lambda model: type(model).__name__,
)
def test_other_estimators(model, clock):
    y = None if isinstance(model, MKLOneClass) else NUMBERS > 0
    found = estimate_fit(model, X, y, np.linspace(1, 2, 1200), 0.1)
    assert isinstance(found, Estimate) and list(found.seconds) == ["dense"]
    assert not hasattr(model, "model_")


def test_memory_is_what_a_fit_takes():
    few = X[:800]
    stack = np.stack([few @ few.T, np.exp(-np.square(few[:, None] - few).sum(2))])
    for model, samples in ((MKLClassifier(KERNELS, gram="dense"), few), (MKLClassifier("precomputed"), stack)):
        y = NUMBERS[:800] > 0
        found = estimate_fit(model, samples, y, None, 0.05, every=False)
        given = samples if samples is few else stack_kernels(samples)
        true, _ = Probes(model, given, y, None).peak(800, found.storage)
        assert 0.5 < found.memory["dense"] / true < 2.0


def test_verbose_shows_the_estimate_of_a_long_fit_on_a_terminal(monkeypatch, capsys):
    MKLClassifier(KERNELS, verbose=1).fit(X, NUMBERS > 0)
    out, err = capsys.readouterr()
    assert out == "" and "about" not in err
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    for model in (MKLClassifier(KERNELS, verbose=1), MKLClassifierCV(KERNELS, Cs=[1.0], cv=2, verbose=1)):
        model.fit(X[:600], NUMBERS[:600] > 0)
        assert f"{type(model).__name__}: about " in capsys.readouterr().err
        model.fit(X[:90], NUMBERS[:90] > 0)
        assert "about" not in capsys.readouterr().err


def test_times_in_words():
    assert [time_text(each) for each in (0.0123, 3.0, 200.0, 36000.0)] == ["12 ms", "3 s", "3.3 min", "10 h"]
