"""Two-stage estimators, EasyMKL and LP-beta: against general solvers, scikit-learn, and laws."""

import pickle
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from reference_rivals import easy_mkl, lp_beta
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, SVR, NuSVC

from multikernel import (
    EasyMKLClassifier,
    LPBetaClassifier,
    TwoStageClassifier,
    TwoStageRegressor,
    stack_kernels,
    twostage,
)
from multikernel.estimators.mixture import linear_coefficients
from multikernel.kernels import RBF, Linear
from multikernel.twostage.lpbeta import solve_lp_beta

N, TEST = 60, 25
X, LABELS = make_classification(N + TEST, 6, n_informative=4, n_redundant=0, n_classes=3, random_state=2)
TWO = np.where(LABELS > 0, "yes", "no")
NUMBERS = X[:, 0] + np.sin(2 * X[:, 1])
KERNELS = [("wide", RBF(gamma=0.05), [0, 1, 2]), ("narrow", RBF(gamma=0.5), slice(None)), ("line", Linear(), [0, 3])]


def gram(A, B):
    return np.stack(
        [
            np.exp(-0.05 * np.square(A[:, None, :3] - B[None, :, :3]).sum(axis=2)),
            np.exp(-0.5 * np.square(A[:, None] - B).sum(axis=2)),
            A[:, [0, 3]] @ B[:, [0, 3]].T,
        ]
    )


FULL = gram(X, X)
STACK, ROWS = FULL[:, :N, :N].copy(), FULL[:, N:, :N].copy()
CLASSIFIERS = [
    TwoStageClassifier(KERNELS),
    TwoStageClassifier(KERNELS, weights=twostage.BinaryMKLWeights(), normalize=["center", "trace"]),
    EasyMKLClassifier(KERNELS),
    EasyMKLClassifier(KERNELS, normalize=["cosine", "center"]),
    LPBetaClassifier(KERNELS, cv=3),
    LPBetaClassifier(KERNELS, cv=3, per_class=True, C=[0.1, 1.0]),
]


def unit_trace(K):
    return K / np.diagonal(K, axis1=1, axis2=2).mean(axis=1)[:, None, None]


# ---- two stages


def test_two_stages_are_the_weights_then_the_machine():
    K = STACK / [[[v]] for v in (np.trace(k) / N - k.mean() for k in STACK)]
    model = TwoStageClassifier("precomputed").fit(stack_kernels(STACK), LABELS[:N])
    weights = twostage.AlignFWeights().fit(K, LABELS[:N]).weights_
    np.testing.assert_allclose(model.weights_, weights, atol=1e-9)
    scale = weights / [np.trace(k) / N - k.mean() for k in STACK]
    machine = SVC(kernel="precomputed").fit(np.tensordot(scale, STACK, 1), LABELS[:N])
    rows = np.tensordot(scale, ROWS, 1)
    np.testing.assert_array_equal(model.predict(stack_kernels(ROWS)), machine.predict(rows))
    np.testing.assert_allclose(model.decision_function(stack_kernels(ROWS)), machine.decision_function(rows), atol=1e-5)
    assert model.kernel_names_ == ["kernel_0", "kernel_1", "kernel_2"]


@pytest.mark.parametrize(
    "normalize", [None, "variance", "cosine", ["center", "cosine"], ["cosine", "center", "trace"]], ids=str
)
@pytest.mark.parametrize("storage", ["dense", "lazy", "mapped"])
def test_computed_and_precomputed_kernels_agree_whatever_the_storage(normalize, storage):
    model = TwoStageClassifier(KERNELS, normalize=normalize, gram=storage).fit(X[:N], TWO[:N])
    diag = np.stack([np.ones(TEST), np.ones(TEST), np.square(X[N:, [0, 3]]).sum(axis=1)])
    other = TwoStageClassifier("precomputed", normalize=normalize).fit(stack_kernels(STACK), TWO[:N])
    np.testing.assert_allclose(model.weights_, other.weights_, atol=1e-7)
    expected = other.decision_function(stack_kernels(ROWS, diag=diag))
    np.testing.assert_allclose(model.decision_function(X[N:]), expected, atol=2e-3)
    np.testing.assert_array_equal(model.predict(sparse.csr_array(X[N:])), np.where(expected > 0, "yes", "no"))
    assert model.gram_.kind == storage


def test_any_predictor_on_a_precomputed_kernel_will_do():
    stack, rows, y = stack_kernels(STACK), stack_kernels(ROWS), LABELS[:N]
    search = GridSearchCV(SVC(kernel="precomputed"), {"C": [0.1, 10.0]}, cv=3)
    model = TwoStageClassifier("precomputed", estimator=search).fit(stack, y)
    assert set(model.estimator_.best_params_) == {"C"}
    assert not hasattr(model, "kernel_contributions_")
    assert model.predict(rows).shape == (TEST,)
    nu = TwoStageClassifier("precomputed", estimator=NuSVC(kernel="precomputed")).fit(stack, y)
    assert nu.kernel_contributions_.sum() == pytest.approx(1.0)
    assert not hasattr(nu, "predict_proba")
    model.set_params(
        estimator=SVC(kernel="precomputed"), estimator__C=3.0, weights=twostage.PWMKWeights(), weights__cv=2
    )
    assert (model.get_params()["estimator__C"], clone(model).weights.cv) == (3.0, 2)
    assert model.fit(stack, y).weights_.sum() == pytest.approx(1.0)


def test_probabilities_are_there_where_the_predictor_has_them():
    class Guess(KNeighborsClassifier):
        """Takes similarities instead of distances, for the shape of things."""

    model = TwoStageClassifier("precomputed", estimator=Guess(metric="precomputed"), normalize=None)
    assert hasattr(model, "predict_proba")
    assert not hasattr(model, "decision_function")
    shares = model.fit(stack_kernels(STACK - STACK.min() + 0.1 * np.eye(N)), LABELS[:N], None).predict_proba(
        stack_kernels(ROWS - ROWS.min())
    )
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    with pytest.raises(ValueError, match=r"must take sample weights\. Got Guess"):
        model.fit(stack_kernels(STACK - STACK.min() + 0.1 * np.eye(N)), LABELS[:N], np.arange(N) + 1.0)


def test_regressors_of_one_and_several_targets():
    one = TwoStageRegressor(KERNELS).fit(X[:N], NUMBERS[:N])
    assert one.score(X[N:], NUMBERS[N:]) > 0.5
    assert isinstance(one.estimator_, SVR)
    # whole numbers are numbers here, not classes
    whole = TwoStageRegressor(KERNELS).fit(X[:N], np.round(3 * NUMBERS[:N]))
    expected = twostage.AlignFWeights().fit(_normalised(), np.round(3 * NUMBERS[:N]), task="regression").weights_
    np.testing.assert_allclose(whole.weights_, expected, atol=1e-8)
    ridge = TwoStageRegressor(KERNELS, estimator=KernelRidge(alpha=0.1, kernel="precomputed"))
    both = ridge.fit(X[:N], np.column_stack([NUMBERS, -2 * NUMBERS])[:N])
    np.testing.assert_allclose(both.predict(X[N:]) @ [2.0, 1.0], 0.0, atol=1e-9)
    assert both.kernel_contributions_.sum() == pytest.approx(1.0)


def _normalised():
    return STACK / [[[v]] for v in (np.trace(k) / N - k.mean() for k in STACK)]


def test_an_object_of_your_own_gives_the_weights():
    class Last(BaseEstimator):
        def fit(self, stack, y, sample_weight=None):
            self.weights_ = np.eye(stack.n_kernels)[-1]
            return self

    model = TwoStageClassifier("precomputed", weights=Last(), normalize=None).fit(stack_kernels(STACK), TWO[:N])
    alone = SVC(kernel="precomputed").fit(STACK[2], TWO[:N])
    np.testing.assert_allclose(
        model.decision_function(stack_kernels(ROWS)), alone.decision_function(ROWS[2]), atol=1e-9
    )
    np.testing.assert_allclose(model.kernel_contributions_, [0, 0, 1], atol=1e-12)


def test_contributions_are_shares_of_the_outputs_of_all_pairs():
    machine = SVC(kernel="precomputed", decision_function_shape="ovo").fit(STACK[1], LABELS[:N])
    A = linear_coefficients(machine, N)
    np.testing.assert_allclose(STACK[1] @ A + machine.intercept_, machine.decision_function(STACK[1]), atol=1e-10)
    model = TwoStageClassifier("precomputed", normalize=None).fit(stack_kernels(STACK), LABELS[:N])
    A = linear_coefficients(model.estimator_, N)
    parts = np.array([w * K @ A for w, K in zip(model.weights_, STACK, strict=True)])
    parts -= parts.mean(axis=1, keepdims=True)
    expected = np.einsum("knt,nt->k", parts, parts.sum(axis=0)) / np.sum(parts.sum(axis=0) ** 2)
    np.testing.assert_allclose(model.kernel_contributions_, expected, atol=1e-9)


@pytest.mark.parametrize("repair", ["clip", "shift", "flip"])
def test_repaired_kernels_predict_as_repaired(repair):
    K = STACK.copy()
    values, U = np.linalg.eigh(K[0])
    values[:5] = -0.1
    K[0] = (U * values) @ U.T
    K[0] = 0.5 * (K[0] + K[0].T)
    weight = np.ones(N)
    weight[::7] = 0
    for sample_weight in (None, weight):
        model = TwoStageClassifier("precomputed", psd=repair, normalize=None, weights=twostage.UniformWeights())
        model.fit(stack_kernels(K), TWO[:N], sample_weight)
        kept = np.arange(N) if sample_weight is None else np.flatnonzero(weight)
        A = linear_coefficients(model.estimator_, len(kept))[:, 0]
        values, U = np.linalg.eigh(K[0][np.ix_(kept, kept)])
        if repair == "shift":
            own = ROWS[0][:, kept]
        else:
            change = (values > 0) if repair == "clip" else np.sign(values)
            own = ROWS[0][:, kept] @ (U * change) @ U.T
        rows = (own + ROWS[1][:, kept] + ROWS[2][:, kept]) / 3
        expected = rows @ A + model.estimator_.intercept_[0]
        np.testing.assert_allclose(model.decision_function(stack_kernels(ROWS)), expected, atol=1e-6)


# ---- EasyMKL


@pytest.mark.parametrize("lam", [1e-3, 0.1, 0.7, 1.0])
def test_easymkl_agrees_with_a_quadratic_programme(lam):
    y = np.where(TWO[:N] == "yes", 1.0, -1.0)
    beta, a, intercept = easy_mkl(unit_trace(STACK), y, lam)
    model = EasyMKLClassifier("precomputed", lam=lam, tol=1e-11).fit(stack_kernels(STACK), TWO[:N])
    np.testing.assert_allclose(model.weights_, beta, atol=1e-6)
    rows = np.tensordot(beta, ROWS / np.diagonal(STACK, axis1=1, axis2=2).mean(axis=1)[:, None, None], 1)
    np.testing.assert_allclose(model.decision_function(stack_kernels(ROWS)), rows @ a + intercept, atol=1e-5)
    K = np.tensordot(beta, unit_trace(STACK), 1)
    assert model.objective_ == pytest.approx((1 - lam) * a @ K @ a + lam * a @ a, rel=1e-6)
    # the hulls are m / sqrt(h) apart: no gamma has a smaller value than m^2 / h
    own = np.zeros(N)
    own[model.support_] = model.dual_coef_
    assert own[y > 0].sum() == pytest.approx(1.0)
    assert own[y < 0].sum() == pytest.approx(-1.0)
    assert (y * own).min() >= 0
    f = (1 - lam) * np.tensordot(model.weights_, unit_trace(STACK), 1) @ own + lam * own
    h, m = own @ f, f[y > 0].min() - f[y < 0].max()
    assert model.objective_ == pytest.approx(h, rel=1e-12)
    assert model.duality_gap_ == pytest.approx(max(1 - m * m / h / h, 0), abs=1e-10)
    assert model.duality_gap_ <= 1e-11


@pytest.mark.parametrize("lam", [0.01, 0.5])
@pytest.mark.parametrize("tol", [1e-1, 1e-3])
def test_the_bounds_of_easymkl_hold_the_optimum_at_any_tol(lam, tol):
    y = np.where(TWO[:N] == "yes", 1.0, -1.0)
    loose = EasyMKLClassifier("precomputed", lam=lam, tol=tol).fit(stack_kernels(STACK.astype(np.float32)), TWO[:N])
    assert loose.duality_gap_ <= tol
    from reference_rivals import solve_hulls

    K = np.tensordot(loose.weights_, unit_trace(STACK), 1)
    gamma = solve_hulls(K, y, lam)
    optimum = (1 - lam) * (y * gamma) @ K @ (y * gamma) + lam * gamma @ gamma
    assert loose.dual_objective_ <= optimum * (1 + 1e-5)
    assert loose.objective_ >= optimum * (1 - 1e-5)


def test_easymkl_takes_more_classes_one_against_the_rest():
    model = EasyMKLClassifier("precomputed", tol=1e-8).fit(stack_kernels(STACK), LABELS[:N])
    assert model.weights_.shape == (3, 3)
    outputs = model.decision_function(stack_kernels(ROWS))
    for u in range(3):
        alone = EasyMKLClassifier("precomputed", tol=1e-8).fit(stack_kernels(STACK), LABELS[:N] == u)
        np.testing.assert_allclose(alone.weights_, model.weights_[u], atol=1e-7)
        np.testing.assert_allclose(alone.decision_function(stack_kernels(ROWS)), outputs[:, u], atol=1e-6)
    assert model.score(stack_kernels(ROWS), LABELS[N:]) > 0.55


def test_easymkl_says_where_it_stopped():
    with pytest.warns(ConvergenceWarning, match=r"relative duality gap of .* above tol=1e-30"):
        model = EasyMKLClassifier("precomputed", tol=1e-30).fit(stack_kernels(STACK), TWO[:N])
    assert model.duality_gap_ < 1e-10
    assert model.status_ == "stalled"


# ---- LP-beta


@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize(("y", "nu"), [(LABELS, 0.1), (LABELS, 0.6), ((LABELS > 0).astype(int), 0.2)])
def test_lp_beta_agrees_with_linprog_on_the_stated_programme(y, nu, per_class):
    y, c = y[:N], y.max() + 1
    scores = np.random.default_rng(0).normal(size=(5, N, c)) + 0.5 * (y[:, None] == np.arange(c))
    _, found = solve_lp_beta(scores, y, [0.9, nu], np.ones(N), per_class)
    assert found.objective == pytest.approx(lp_beta(scores, y, nu, per_class), abs=1e-8)
    assert found.weights.shape == ((c, 5) if per_class else (5,))
    np.testing.assert_allclose(found.weights.sum(axis=-1), 1.0)
    # the weights themselves attain it
    mixed = np.einsum("uk,knu->nu", np.broadcast_to(found.weights, (c, 5)), scores)
    margins = mixed[np.arange(N), y] - np.where(np.arange(c) == y[:, None], -np.inf, mixed).max(axis=1)
    slack = np.maximum(0, found.rho - margins).sum() / (nu * N)
    assert -found.rho + slack == pytest.approx(found.objective, abs=1e-7)


@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("y", [TWO, LABELS], ids=["two", "three"])
def test_lp_beta_is_made_of_validated_scores_and_of_machines_on_all_samples(y, per_class):
    folds = StratifiedKFold(4)
    options = {"cv": folds, "normalize": None, "tol": 1e-7, "nu": 0.3, "per_class": per_class}
    # of full rank, on which libsvm too is quick at a tight tol
    K = STACK + 0.1 * np.eye(N)
    model = LPBetaClassifier("precomputed", **options).fit(stack_kernels(K), y[:N])
    classes, codes = np.unique(y[:N], return_inverse=True)
    machine = SVC(kernel="precomputed", tol=1e-7)
    scores, outputs = np.zeros((3, N, len(classes))), np.zeros((3, TEST, len(classes)))
    for k in range(3):
        for u in range(len(classes)):
            for train, test in folds.split(K[k], codes):
                machine.fit(K[k][np.ix_(train, train)], codes[train] == u)
                scores[k, test, u] = machine.decision_function(K[k][np.ix_(test, train)])
            outputs[k, :, u] = machine.fit(K[k], codes == u).decision_function(ROWS[k])
    assert model.objective_ == pytest.approx(lp_beta(scores, codes, 0.3, per_class), abs=1e-4)
    mixed = np.einsum("uk,knu->nu", np.broadcast_to(model.weights_, (len(classes), 3)), outputs)
    expected = mixed if len(classes) > 2 else 0.5 * (mixed[:, 1] - mixed[:, 0])
    np.testing.assert_allclose(model.decision_function(stack_kernels(ROWS)), expected, atol=1e-4)
    right = (scores.argmax(axis=2) == codes).mean(axis=1)
    np.testing.assert_allclose(model.kernel_scores_, right)
    assert model.kernel_contributions_.sum() == pytest.approx(1.0)


def test_every_kernel_chooses_its_own_cost():
    model = LPBetaClassifier("precomputed", C=[0.01, 1.0, 100.0], cv=3).fit(stack_kernels(STACK), TWO[:N])
    alone = [LPBetaClassifier("precomputed", C=C, cv=3).fit(stack_kernels(STACK), TWO[:N]) for C in (0.01, 1.0, 100.0)]
    table = np.array([each.kernel_scores_ for each in alone])
    np.testing.assert_allclose(model.kernel_scores_, table.max(axis=0))
    np.testing.assert_allclose(model.C_, np.array([0.01, 1.0, 100.0])[table.argmax(axis=0)])


def test_nu_is_chosen_by_the_accuracy_of_held_out_mixes():
    # below the error rate kernels that say nothing win
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 30)
    noisy = np.where(rng.random(N) < 0.25, 1 - y, y)
    good, silent = np.outer(2 * noisy - 1, 2 * noisy - 1) + np.eye(N), 1e-3 * np.eye(N)
    model = LPBetaClassifier("precomputed", normalize=None, nu=[0.1, 0.6]).fit(stack_kernels([good, silent]), y)
    assert model.nu_ == 0.6
    assert model.weights_[0] > 0.9
    low = LPBetaClassifier("precomputed", normalize=None, nu=0.1).fit(stack_kernels([good, silent]), y)
    assert low.nu_ == 0.1
    assert low.weights_[0] < 0.1


def test_samples_without_a_held_out_score_are_left_out_of_the_programme():
    splits = [(np.arange(20, N), np.arange(20)), (np.arange(N), np.zeros(0, int))]
    model = LPBetaClassifier("precomputed", cv=splits).fit(stack_kernels(STACK), TWO[:N])
    assert model.weights_.sum() == pytest.approx(1.0)
    weight = np.ones(N)
    weight[50:] = 0
    part = LPBetaClassifier("precomputed", cv=[(np.arange(20, 50), np.arange(20))]).fit(
        stack_kernels(STACK[:, :50, :50]), TWO[:50]
    )
    same = LPBetaClassifier("precomputed", cv=splits).fit(stack_kernels(STACK), TWO[:N], weight)
    np.testing.assert_allclose(same.weights_, part.weights_, atol=1e-6)


# ---- all of them


@pytest.mark.parametrize("model", CLASSIFIERS, ids=str)
def test_models_survive_pickling_and_know_their_kernels(model):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    fitted = clone(model).fit(frame[:N], TWO[:N])
    assert fitted.kernel_names_ == ["wide", "narrow", "line"]
    assert list(fitted.feature_names_in_) == list("abcdef")
    assert np.atleast_2d(fitted.weights_).shape[1] == 3
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(frame[N:]), fitted.predict(frame[N:]))
    assert set(fitted.predict(frame[N:])) <= {"no", "yes"}
    assert fitted.score(frame[N:], TWO[N:]) > 0.6
    with pytest.raises(NotFittedError):
        clone(model).predict(X)


@pytest.mark.parametrize("model", CLASSIFIERS, ids=str)
def test_stacks_go_through_model_selection(model):
    model = clone(model).set_params(kernels="precomputed", normalize="variance")
    stack = stack_kernels(FULL)
    predicted = cross_val_predict(model, stack, LABELS, cv=3)
    assert np.mean(predicted == LABELS) > 0.45
    assert cross_val_score(model, stack, LABELS, cv=3).mean() == pytest.approx(np.mean(predicted == LABELS), abs=0.02)


@pytest.mark.parametrize(
    ("model", "y", "sentence"),
    [
        (
            TwoStageClassifier(weights=3),
            TWO,
            "'weights' parameter of TwoStageClassifier must be None or a weights object",
        ),
        (
            TwoStageClassifier(estimator=SVC()),
            TWO,
            "must be None or a classifier that takes a precomputed kernel, such as SVC(",
        ),
        (
            TwoStageClassifier(estimator=SVR(kernel="precomputed")),
            TWO,
            "must be None or a classifier that takes a precomputed",
        ),
        (TwoStageRegressor(estimator=SVC(kernel="precomputed")), NUMBERS, "must be None or a regressor that takes"),
        (TwoStageRegressor(weights=twostage.BinaryMKLWeights()), NUMBERS, "BinaryMKLWeights needs classes"),
        (TwoStageClassifier(), np.zeros(N), "TwoStageClassifier needs samples of at least 2 classes"),
        (
            EasyMKLClassifier(lam=0),
            TWO,
            "'lam' parameter of EasyMKLClassifier must be a number above 0 and at most 1. Got 0",
        ),
        (EasyMKLClassifier(lam=1.1), TWO, "must be a number above 0 and at most 1. Got 1.1 instead"),
        (EasyMKLClassifier(), np.zeros(N), "EasyMKLClassifier needs samples of at least 2 classes"),
        (
            LPBetaClassifier(nu=0),
            TWO,
            "'nu' parameter of LPBetaClassifier must be a number above 0 and at most 1, or a list of them. Got 0",
        ),
        (LPBetaClassifier(C=[]), TWO, "'C' parameter of LPBetaClassifier must be a positive number or a list of them"),
        (LPBetaClassifier(C=-1), TWO, "must be a positive number or a list of them. Got -1 instead"),
        (
            LPBetaClassifier(per_class="B"),
            TWO,
            "'per_class' parameter of LPBetaClassifier must be True or False. Got 'B'",
        ),
        (LPBetaClassifier(), np.zeros(N), "LPBetaClassifier needs samples of at least 2 classes"),
    ],
    ids=lambda value: str(value)[:40] if not isinstance(value, np.ndarray) else "",
)
def test_a_sentence_says_what_is_wrong(model, y, sentence):
    with pytest.raises(ValueError) as error:
        model.fit(X[:N], y[:N])
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    "model",
    [
        TwoStageClassifier(),
        TwoStageClassifier(normalize=["center", "cosine"]),
        TwoStageClassifier(weights=twostage.BinaryMKLWeights()),
        TwoStageClassifier(weights=twostage.BestSingleKernel(cv=3)),
        EasyMKLClassifier(),
        LPBetaClassifier(cv=3),
    ],
    ids=str,
)
def test_memory_stays_below_the_stack_and_a_quarter(model):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(400, 3))
    distance = np.square(Z[:, None] - Z).sum(axis=2)
    stack = stack_kernels(np.stack([np.exp(-distance / width) for width in np.logspace(-2, 2, 24)]).astype(np.float32))
    y = Z[:, 0] > 0
    model = clone(model).set_params(kernels="precomputed", n_jobs=1)
    model.fit(stack, y)
    tracemalloc.start()
    model.fit(stack, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.25 * stack.nbytes


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_benchmarks_run_on_small_draws(monkeypatch, capsys):
    folder = Path(__file__).parent.parent / "benchmarks"
    monkeypatch.syspath_prepend(str(folder))
    for name in ("run", "workloads"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import importlib

    rivals = importlib.import_module("rivals")
    rivals.weights([(100, name, 1e9) for _, name, _ in rivals.WEIGHTS], repeats=1)
    rivals.fits([(100, name, 1e9) for _, name, _ in rivals.FITS[1:]], repeats=1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(rivals.WEIGHTS) + len(rivals.FITS) - 1
    assert all(line.endswith("ok") for line in lines)


class _Rule(BaseEstimator):
    """Weights that are given."""

    def __init__(self, given=None):
        self.given = given

    def fit(self, stack, y, sample_weight=None):
        if self.given is not None:
            self.weights_ = self.given
        return self


@pytest.mark.parametrize(
    ("given", "got"), [(None, "None"), ([1.0] * 5, r"shape \(5,\)"), ([1.0, -1.0, 0.0], "-1"), ([np.nan] * 3, "nan")]
)
def test_weights_of_ones_own_must_be_one_number_for_each_kernel(given, got):
    sentence = f"'weights' parameter of TwoStageClassifier must set weights_ to 3 non-negative numbers.* Got ({got})"
    with pytest.raises(ValueError, match=sentence):
        TwoStageClassifier(KERNELS, weights=_Rule(given)).fit(X, TWO)


@pytest.mark.parametrize("options", [{"weights": _Rule}, {"estimator": SVC}], ids=str)
def test_a_class_is_no_object(options):
    with pytest.raises(ValueError, match=f"'{next(iter(options))}' parameter of TwoStageClassifier must be None or a"):
        TwoStageClassifier(KERNELS, **options).fit(X, TWO)


@pytest.mark.parametrize("cv", [[], [1.0], 1], ids=str)
def test_folds_that_are_none_are_one_sentence(cv):
    with pytest.raises(ValueError, match="'cv' parameter of LPBetaClassifier must be None, an integer of at least 2"):
        LPBetaClassifier(KERNELS, cv=cv).fit(X, TWO)


@pytest.mark.parametrize("model", CLASSIFIERS, ids=str)
def test_texts_and_numbers_together_are_no_classes(model):
    mixed = TWO.astype(object)
    mixed[TWO == "no"] = 1
    with pytest.raises(ValueError, match=f"y of {type(model).__name__} must hold targets of one kind. Got texts and 1"):
        clone(model).fit(X, mixed)
