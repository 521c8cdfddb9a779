"""Kernels on a device of PyTorch, here the processor: answers, optima and certificates are those of the host."""

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

from multikernel import MKLClassifier, MKLClassifierCV, MKLOneClass, MKLRegressor, stack_kernels
from multikernel.estimators.baselines import EasyMKLClassifier, TwoStageClassifier
from multikernel.gram import TorchStorage
from multikernel.gram.dense import AffineForm, DenseGram
from multikernel.kernels import (
    RBF,
    ChiSquared,
    Constant,
    Cosine,
    HistogramIntersection,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Spectrum,
    Tanimoto,
    pairwise_output_kernels,
)
from multikernel.machines.svc import SVC
from multikernel.mixing.norms import mixing_for
from multikernel.problem import Point, Problem
from multikernel.training.core import Settings
from multikernel.training.prepare import prepare

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from multikernel.gram import device, tensors  # noqa: E402
from multikernel.gram import torch as storage  # noqa: E402
from multikernel.gram.device import StoredValues  # noqa: E402
from multikernel.gram.torch import ConjugateGradients, TorchGram  # noqa: E402

CPU = TorchStorage("cpu")
P, N = 3, 90


def samples(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, P))
    t = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=n)
    return X, t, np.where(t > np.median(t), "a", "b"), np.digitize(t, np.quantile(t, [1 / 3, 2 / 3]))


X, TARGETS, LABELS, CLASSES = samples()
STACK = np.array([np.exp(-((x[:, None] - x) ** 2)) for x in X.T])
KERNELS = [(f"column {k}", RBF(width=1.0), [k]) for k in range(P)]


def make_form(kind):
    rng = np.random.default_rng(1)
    u = rng.uniform(0.5, 2, (P, N)) if "u" in kind else None
    A, B = (0.1 * rng.normal(size=(P, N, 2)) for _ in range(2)) if "AB" in kind else (None, None)
    return AffineForm(rng.uniform(0.5, 2, P), u, A, B)


@pytest.fixture(params=["host blocks", "products"])
def way(request, monkeypatch):
    """Small problems as they are, and as if they were large."""
    if request.param == "products":
        monkeypatch.setattr(storage, "WORKING_SET", 32)
        # conjugate gradients for a while before a factorisation
        monkeypatch.setattr(storage, "ROWS", 4)
    return request.param


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["", "u", "AB", "uAB"])
def test_a_gram_on_a_device_answers_as_one_on_the_host(kind, dtype, way):
    stack, rng = STACK.astype(dtype), np.random.default_rng(2)
    host = DenseGram(stack, make_form(kind))
    gram = TorchGram(StoredValues([torch.from_numpy(K) for K in stack]), make_form(kind))
    close = dict(rtol=1e-5, atol=1e-5) if dtype == np.float32 else dict(rtol=1e-12, atol=1e-12)
    # sums of products are in float64, from entries that are the same
    exact = dict(rtol=1e-12, atol=1e-12)
    some, idx = np.array([2, 0]), np.array([5, 80, 3, 41])
    np.testing.assert_allclose(gram.diag(), host.diag(), **exact)
    np.testing.assert_array_equal(gram.apply(np.zeros(N)), 0.0)
    for v in (rng.normal(size=N), rng.normal(size=(N, 2))):
        v[::2] = 0.0
        np.testing.assert_allclose(gram.apply(v), host.apply(v), **exact)
        np.testing.assert_allclose(gram.apply(v, some), host.apply(v, some), **exact)
    np.testing.assert_allclose(gram.rows(idx, some), host.rows(idx, some), **close)
    np.testing.assert_allclose(gram.block(idx), host.block(idx), **close)
    np.testing.assert_allclose(
        gram.take_samples(idx).apply(np.ones(4)), host.take_samples(idx).apply(np.ones(4)), **close
    )
    np.testing.assert_allclose(gram.take_kernels(some).diag(), host.diag()[some], **exact)
    np.testing.assert_allclose(gram.loose, host.loose, **exact)
    np.testing.assert_allclose(gram.rescaled(3.0).apply(np.ones(N)), 3.0 * host.apply(np.ones(N)), **exact)
    beta = np.array([0.5, 0.0, 0.25])
    here, there = gram.combined(beta), host.combined(beta)
    np.testing.assert_allclose(here.means, there.means, **close)
    for v in (rng.normal(size=N), rng.normal(size=(N, 2))):
        for how in (True, False):
            np.testing.assert_allclose(here.apply(v, exact=how), there.apply(v), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(here.block(idx, np.float64), there.block(idx), **close)
    rows = here.host_rows()
    rows.ensure(idx)
    np.testing.assert_allclose(rows.scale * rows.matrix[idx], there.block(np.arange(N))[idx], **close)
    np.testing.assert_allclose(here.host_rows(idx[:3]).matrix, here.block(idx[:3]), **close)
    ridge, rhs = np.full(N, 20.0), rng.normal(size=(N, 2))
    np.testing.assert_allclose(
        here.factor(np.arange(N), ridge).solve(rhs), there.factor(np.arange(N), ridge).solve(rhs), rtol=1e-3, atol=1e-3
    )
    assert here.factor(np.arange(N), -100.0) is None


def test_outputs_follow_coefficients():
    gram, host = TorchGram(StoredValues(list(torch.from_numpy(STACK)))), DenseGram(STACK)
    rng, some = np.random.default_rng(0), np.array([2, 0])
    for shape in ((N,), (N, 2)):
        a, F = rng.normal(size=shape), gram.new_outputs(shape)
        F.update(a)
        np.testing.assert_allclose(F.kernel_outputs(), host.apply(a))
        np.testing.assert_allclose(F.kernel_outputs(np.array([4, 2])), host.apply(a)[:, [4, 2]])
        np.testing.assert_allclose(F.quadratic_forms(), [np.vdot(f, a) for f in host.apply(a)])
        np.testing.assert_allclose(F.mix(np.arange(3.0)), np.tensordot(np.arange(3.0), host.apply(a), 1))
        other, b = gram.new_outputs(shape, F.known()), 2 * a
        other.update(b, some)
        other.put(np.array([1]), 2 * F.kernel_outputs()[1])
        np.testing.assert_allclose(other.kernel_outputs(), host.apply(b))
        part = other.take(some)
        np.testing.assert_allclose(part.kernel_outputs(), host.apply(b)[some])
        F.put(some, part)
        np.testing.assert_allclose(F.kernel_outputs()[some], host.apply(b)[some])


ALL = {
    "rbf": RBF(gamma=0.3), "laplacian": Laplacian(), "chi squared": ChiSquared(), "matern 0.5": Matern(nu=0.5),
    "matern 1.5": Matern(nu=1.5), "matern 2.5": Matern(nu=2.5), "matern 1": Matern(nu=1.0),
    "matern inf": Matern(nu=np.inf), "linear": Linear(), "polynomial": Polynomial(degree=3), "cosine": Cosine(),
    "tanimoto": Tanimoto(), "intersection": HistogramIntersection(), "constant": Constant(2.0),
    "sum": RBF() + Linear(), "product": RBF() * Polynomial(), "scaled": 2.0 * RBF(), "power": RBF() ** 2,
}  # fmt: skip


@pytest.mark.parametrize("limit", [None, "300kB"])
@pytest.mark.parametrize("name", ALL)
def test_kernels_of_vectors_are_those_of_the_host(name, limit):
    rng = np.random.default_rng(0)
    V = rng.uniform(0.0, 1.0, (N, 4))
    V[1] = V[0]
    kernels, steps = [ALL[name], RBF(width=1.0), RBF(width=3.0), ("two", RBF(width=2.0), [1, 2])], ()
    host = prepare(kernels, V, None, Settings("Test", steps, gram="dense")).gram
    gram = prepare(kernels, V, None, Settings("Test", steps, gram=CPU, memory_limit=limit)).gram
    assert gram.recomputed == (limit is not None) and gram.kind == "torch"
    # the host computes its differences one by one where the root of a distance would show its rounding
    close = dict(rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(gram.diag(), host.diag(), **close)
    np.testing.assert_allclose(gram.rows(np.arange(N)), host.rows(np.arange(N)), **close)
    np.testing.assert_allclose(gram.apply(np.ones(N)), host.apply(np.ones(N)), **close)
    beta, idx = np.array([0.4, 0.3, 0.2, 0.1]), np.array([3, 1, 7])
    np.testing.assert_allclose(gram.combined(beta).block(idx), host.combined(beta).block(idx), **close)
    part = gram.take_samples(idx).take_kernels(np.array([2, 0]))
    np.testing.assert_allclose(part.apply(np.ones(3)), host.block(idx)[[2, 0]].sum(axis=1), **close)


def test_kernels_without_a_formula_are_computed_on_the_host():
    words = ["ACGT", "ACGG", "TTGT", "CACA", "GGGT", "ACCA"] * 5
    y = np.arange(30) % 2
    model = MKLClassifier([Spectrum(2), Spectrum(1)], gram=CPU).fit(words, y)
    plain = MKLClassifier([Spectrum(2), Spectrum(1)]).fit(words, y)
    assert model.objective_ == pytest.approx(plain.objective_, rel=2e-3)
    np.testing.assert_allclose(model.decision_function(words), plain.decision_function(words), atol=0.05)


MODELS = {
    "hinge": lambda **p: MKLClassifier(KERNELS, tol=1e-5, **p).fit(X, LABELS),
    "norm 2": lambda **p: MKLClassifier(KERNELS, norm=2, tol=1e-5, normalize="center", **p).fit(X, LABELS),
    "weighted": lambda **p: MKLClassifier(KERNELS, tol=1e-5, **p).fit(X, LABELS, sample_weight=1.0 + (X[:, 0] > 0)),
    "one against the rest": lambda **p: MKLClassifier(KERNELS, tol=1e-5, multiclass="ovr", **p).fit(X, CLASSES),
    "pairs": lambda **p: MKLClassifier(KERNELS, tol=1e-5, multiclass="ovo", **p).fit(X, CLASSES),
    "joint": lambda **p: MKLClassifier(KERNELS, tol=1e-5, multiclass="joint", **p).fit(X, CLASSES),
    "logistic": lambda **p: MKLClassifier(KERNELS, loss="logistic", tol=1e-5, **p).fit(X, LABELS),
    "tube": lambda **p: MKLRegressor(KERNELS, tol=1e-5, **p).fit(X, TARGETS),
    "squares": lambda **p: MKLRegressor(KERNELS, loss="squared", tol=1e-5, **p).fit(X, np.c_[TARGETS, X[:, 0]]),
    "one class": lambda **p: MKLOneClass(KERNELS, nu=0.3, tol=1e-5, **p).fit(X),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_are_those_of_the_host(name, way):
    found, expected = MODELS[name](gram=CPU), MODELS[name]()
    assert found.gram_.kind == "torch" and found.gram_.device == "cpu" and not found.gram_.recomputed
    np.testing.assert_allclose(found.objective_, expected.objective_, rtol=3e-5)
    assert np.all(np.asarray(found.duality_gap_) <= 1e-5)
    predict = "predict" if "tube" in name or "squares" in name else "decision_function"
    here, there = getattr(found, predict)(X[:20] + 0.1), getattr(expected, predict)(X[:20] + 0.1)
    np.testing.assert_allclose(here, there, atol=0.03 * np.abs(there).max())
    # the same coefficients on the host give the same outputs
    plain = super(type(found.model_.expansion), found.model_.expansion).evaluate(X[:20])
    np.testing.assert_allclose(found.model_.expansion.evaluate(X[:20]), plain, atol=1e-9)


def test_prediction_without_the_device_is_on_the_host(monkeypatch):
    model = MODELS["hinge"](gram=CPU)
    expected = model.decision_function(X)
    monkeypatch.setattr(device, "torch", None)
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-9)


def test_a_search_and_folds_take_kernels_on_a_device():
    kernels = [RBF(width=1.0), RBF(width=5.0)]
    found = MKLClassifierCV(kernels, Cs=[0.1, 1.0], cv=3, gram=CPU).fit(X, LABELS)
    plain = MKLClassifierCV(kernels, Cs=[0.1, 1.0], cv=3).fit(X, LABELS)
    assert found.C_ == plain.C_ and found.objective_ == pytest.approx(plain.objective_, rel=2e-3)
    stack = stack_kernels(torch.from_numpy(STACK))
    scores = cross_val_score(MKLClassifier("precomputed"), stack, LABELS, cv=3)
    np.testing.assert_allclose(
        scores, cross_val_score(MKLClassifier("precomputed"), stack_kernels(STACK), LABELS, cv=3)
    )


@pytest.mark.parametrize("seed", range(8))
def test_certificates_are_those_of_the_host(seed, way):
    """Both bounds from the returned coefficients, recomputed in float64, although kernels are float32."""
    rng = np.random.default_rng(seed)
    K = STACK.astype(np.float32)
    y, C, norm = np.where(LABELS == "a", 1.0, -1.0), 10.0 ** rng.uniform(-1, 2), float(rng.choice([1.0, 1.5, 2.0]))
    model = MKLClassifier("precomputed", C=C, norm=norm, normalize=None, tol=10.0 ** rng.uniform(-5, -2))
    model.fit(torch.from_numpy(K), y)
    assert model.gram_.kind == "torch" and model.gram_.nbytes == 0
    a = np.zeros(N)
    a[model.support_] = model.dual_coef_
    machine = SVC(y, C)
    here = Point(
        Problem(TorchGram(StoredValues(list(torch.from_numpy(K)))), machine, mixing_for(norm)), model.weights_, a
    )
    there = Point(Problem(DenseGram(K.astype(float)), machine, mixing_for(norm)), model.weights_, a)
    for bound in ("upper", "lower"):
        got, known = getattr(here.certificate, bound), getattr(there.certificate, bound)
        assert abs(got - known) <= 1e-9 * there.certificate.upper
    assert model.objective_ == pytest.approx(there.certificate.upper, rel=1e-9)


class OtherLibrary:
    """An array that only knows ``__dlpack__``, as those of CuPy and JAX do."""

    def __init__(self, array):
        self.array, self.ndim, self.shape = array, array.ndim, array.shape

    def __len__(self):
        return len(self.array)

    def __iter__(self):
        return map(OtherLibrary, self.array)

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("wrap", [torch.from_numpy, OtherLibrary, lambda K: [torch.from_numpy(each) for each in K]])
@pytest.mark.parametrize("normalize", [None, "center", "cosine"])
def test_tensors_are_kernels(wrap, normalize):
    given = STACK.copy()
    stack = stack_kernels(wrap(given), names=["a", "b", "c"])
    model = MKLClassifier("precomputed", tol=1e-5, normalize=normalize).fit(stack, LABELS)
    plain = MKLClassifier("precomputed", tol=1e-5, normalize=normalize).fit(stack_kernels(STACK), LABELS)
    assert model.objective_ == pytest.approx(plain.objective_, rel=3e-5)
    assert model.gram_.kind == "torch" and model.gram_.nbytes == 0 and model.kernel_names_ == ["a", "b", "c"]
    np.testing.assert_array_equal(given, STACK)
    np.testing.assert_allclose(model.decision_function(stack), plain.decision_function(stack_kernels(STACK)), atol=0.01)
    # some of the rows
    idx = np.random.default_rng(0).permutation(N)[:60]
    part = MKLClassifier("precomputed", tol=1e-5, normalize=normalize).fit(stack[idx], LABELS[idx])
    again = MKLClassifier("precomputed", tol=1e-5, normalize=normalize).fit(stack_kernels(STACK)[idx], LABELS[idx])
    assert part.objective_ == pytest.approx(again.objective_, rel=3e-5)
    with pytest.raises(TypeError, match="not copied to the host"):
        np.asarray(stack)


def test_arrays_go_to_the_device():
    model = MKLClassifier("precomputed", tol=1e-5, gram=CPU).fit(stack_kernels(STACK), LABELS)
    assert model.gram_.kind == "torch"
    with pytest.raises(MemoryError, match="3 precomputed kernels on 90 samples do not fit on cpu"):
        MKLClassifier("precomputed", gram=CPU, memory_limit="200kB").fit(stack_kernels(STACK), LABELS)


def bad_tensors():
    K = torch.from_numpy(STACK.copy())
    nan = K.clone()
    nan[0, 0, 1] = nan[0, 1, 0] = float("nan")
    skew = K.clone()
    skew[1, 0, 1] += 1.0
    negative = K.clone()
    negative[2, 3, 3] = -1.0
    big = K.clone()
    big[0, 0, 5] = big[0, 5, 0] = 3.0
    indefinite = "must be positive semidefinite. Got a smallest eigenvalue of -"
    yield from ((nan, "finite numbers"), (skew, "symmetric"), (negative, indefinite), (big, indefinite))


@pytest.mark.parametrize(("K", "words"), list(bad_tensors()))
def test_unsound_tensors_are_refused(K, words):
    with pytest.raises(ValueError, match=words) as here:
        MKLClassifier("precomputed").fit(K, LABELS)
    with pytest.raises(ValueError, match=words) as there:
        MKLClassifier("precomputed").fit(K.numpy(), LABELS)
    indefinite = "semidefinite" in words
    # the device does not repair kernels: its advice says what does
    where = " with gram='dense' or 'memmap', kernels that are given being arrays of NumPy." if indefinite else "."
    assert str(here.value) == str(there.value)[:-1] + where
    with pytest.raises(ValueError, match="psd='clip' repairs a kernel as a whole" if indefinite else words):
        MKLClassifier("precomputed", psd="clip").fit(K, LABELS)


@pytest.mark.parametrize(
    ("kernels", "words"),
    [
        ([torch.ones(2, 2, 2)], "2-D tensor"),
        ([torch.ones(2, 2, dtype=torch.complex64)], "real numbers"),
        ([torch.ones(2, 2), torch.ones(3, 3)], "same shape and device"),
    ],
)
def test_tensors_that_are_no_kernels(kernels, words):
    with pytest.raises(ValueError, match=words):
        stack_kernels(kernels)


def test_what_cannot_be_done_is_one_sentence(monkeypatch):
    with pytest.raises(ValueError, match=r"TorchStorage must be .* Got 'nonsense', which cannot be used here"):
        MKLClassifier(KERNELS, gram=TorchStorage("nonsense")).fit(X, LABELS)
    with pytest.raises(ValueError, match=r"must be that of the kernels, 'cpu'. Got 'meta'"):
        MKLClassifier("precomputed", gram=TorchStorage("meta")).fit(torch.from_numpy(STACK), LABELS)
    with pytest.raises(MemoryError, match="combined kernel on 90 samples and its factor need up to 130 kB on cpu"):
        MKLClassifier(KERNELS, gram=CPU, memory_limit="100kB").fit(X, LABELS)
    with pytest.raises(ValueError, match="'output_kernels' parameter of MKLClassifier must be None"):
        MKLClassifier(KERNELS, gram=CPU, multiclass="joint", output_kernels=pairwise_output_kernels(3)).fit(X, CLASSES)
    for make in (EasyMKLClassifier, TwoStageClassifier):
        with pytest.raises(ValueError, match=f"'gram' parameter of {make.__name__} must be 'auto', 'dense', 'lazy' or"):
            make(KERNELS, gram="torch").fit(X, LABELS)
        with pytest.raises(ValueError, match=f"X must be arrays in memory for {make.__name__}.*Got tensors on cpu"):
            make("precomputed").fit(torch.from_numpy(STACK), LABELS)

    # whether or not this build of PyTorch knows it
    with pytest.raises(ValueError, match="Got 'mps', which has no float64: use device='cpu'"):
        MKLClassifier(KERNELS, gram=TorchStorage("mps")).fit(X, LABELS)

    def no_float64(*args, **options):
        raise TypeError("this device has no float64")

    monkeypatch.setattr(torch, "zeros", no_float64)
    with pytest.raises(ValueError, match="Got 'xpu', which has no float64: use device='cpu'"):
        MKLClassifier(KERNELS, gram=TorchStorage("xpu")).fit(X, LABELS)
    monkeypatch.setattr(device, "torch", None)
    with pytest.raises(ImportError, match=r"needs PyTorch.*pip install 'multikernel\[gpu\]'"):
        MKLClassifier(KERNELS, gram="torch").fit(X, LABELS)


def test_a_device_out_of_memory_is_one_sentence(monkeypatch):
    with pytest.raises(MemoryError, match=r"cpu has .* free, and the kernels must take 2 GB: use fewer"):
        with device.room_for("the kernels", 2e9, torch.device("cpu")):
            raise torch.OutOfMemoryError("too much")
    with pytest.raises(MemoryError, match="a matrix must take"):
        with device.room_for("a matrix", 2e9, torch.device("cpu")):
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
    with pytest.raises(RuntimeError, match="something else"):
        with device.room_for("a matrix", 2e9, torch.device("cpu")):
            raise RuntimeError("something else")


def test_conjugate_gradients_have_two_digits_or_are_a_factorisation():
    rng = np.random.default_rng(0)
    n = 1024
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    rhs = rng.normal(size=(n, 3))
    rhs[:, 2] = 0.0
    for values in (np.r_[100.0 * np.ones(2), np.ones(n - 2)], np.logspace(-6, 0, n)):
        A = Q @ (values[:, None] * Q.T)
        found = ConjugateGradients(torch.from_numpy(0.5 * (A + A.T))).solve(rhs)
        np.testing.assert_allclose(A @ found, rhs, atol=0.02 * np.linalg.norm(rhs))
    single = ConjugateGradients(torch.eye(n)).solve(rhs[:, 0])
    np.testing.assert_allclose(single, rhs[:, 0], rtol=1e-5)
    # not definite: what there is
    assert np.isfinite(ConjugateGradients(torch.diag(torch.linspace(-1.0, 1.0, n))).solve(rhs[:, 0])).all()


def test_diagonals_of_tensors_are_found_only_where_they_are():
    stack = stack_kernels(torch.from_numpy(STACK))
    assert isinstance(stack, tensors.TensorStack)
    np.testing.assert_allclose(stack.diag, 1.0)
    assert stack_kernels(torch.from_numpy(STACK[:, :10])).diag is None


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch has no GPU here")
@pytest.mark.parametrize("name", MODELS)
def test_models_on_a_gpu_are_those_of_the_host(name, way):
    found, expected = MODELS[name](gram=TorchStorage("cuda")), MODELS[name]()
    np.testing.assert_allclose(found.objective_, expected.objective_, rtol=3e-5)
    assert found.gram_.device.startswith("cuda")
