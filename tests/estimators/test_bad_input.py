"""Bad input: one clear sentence that names what is wrong, and nothing lost."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from multikernel import (
    MKLClassifier,
    MKLRegressor,
    MKLRegressorCV,
    OBSCUREClassifier,
    UFOMKLClassifier,
    stack_kernels,
)
from multikernel.kernels import RBF, Constant, FunctionKernel, Linear, Polynomial, rbf_family

N = 30
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
Y = np.where(X[:, 0] + 0.5 * RNG.normal(size=N) > 0, 1, 0)
K = np.exp(-np.square(X[:, None] - X).sum(2) / 5.0)
NAMES = ["good", "bad"]


def fit_stack(*matrices, **options):
    names = NAMES[: len(matrices)]
    return MKLClassifier("precomputed", **options).fit(stack_kernels(list(matrices), names=names), Y)


def changed(i, j, value):
    M = K.copy()
    M[i, j] = value
    return M


# ---- parameters

SENTENCES = [
    ("C", -1, "a positive number. Got -1 instead."),
    ("C", 0, "a positive number. Got 0 instead."),
    ("C", np.inf, "a positive number. Got inf instead."),
    ("C", "1", "a positive number. Got '1' instead."),
    ("C", True, "a positive number. Got True instead."),
    ("norm", 0.5, "a number of at least 1, or infinity. Got 0.5 instead."),
    ("norm", float("nan"), "a number of at least 1, or infinity. Got nan instead."),
    ("loss", "log", "or a Loss for classification. Got 'log' instead."),
    ("multiclass", "crammer", "'joint', 'ovr' or 'ovo'. Got 'crammer' instead."),
    ("fit_intercept", "yes", "True or False. Got 'yes' instead."),
    ("normalize", "varance", "'trace' or a list of these. Got 'varance' instead. Did you mean 'variance'?"),
    ("psd", "ignore", "'error', 'clip', 'shift' or 'flip'. Got 'ignore' instead."),
    ("solver", "silpp", "Got 'silpp' instead. Did you mean 'silp'?"),
    ("solver", "neutron", "Got 'neutron' instead. Did you mean 'newton'?"),
    ("solver", 3, "Got 3 instead."),
    ("tol", 0.0, "a positive number. Got 0.0 instead."),
    ("max_iter", 0, "a positive integer. Got 0 instead."),
    ("max_iter", 1.5, "a positive integer. Got 1.5 instead."),
    ("class_weight", "equal", "None, 'balanced' or a dict from classes to weights. Got 'equal' instead."),
    (
        "gram",
        "disk",
        "'auto', 'dense', 'lazy', 'memmap', 'torch', 'dask' or 'features', or a TorchStorage. Got 'disk' instead.",
    ),
    ("memory_limit", "much", "None, a positive number of bytes or a text such as '2GB'. Got 'much' instead."),
    ("verbose", -1, "a non-negative integer. Got -1 instead."),
    ("n_jobs", 0, "None or a non-zero integer. Got 0 instead."),
]


@pytest.mark.parametrize(("name", "value", "rest"), SENTENCES, ids=lambda value: str(value)[:12])
def test_a_wrong_parameter_is_named(name, value, rest):
    with pytest.raises(ValueError) as error:
        MKLClassifier(**{name: value}).fit(X, Y)
    assert str(error.value).startswith(f"The '{name}' parameter of MKLClassifier must be ")
    assert str(error.value).endswith(rest)


def test_the_names_of_the_solvers_are_listed():
    from multikernel.solvers import solver_names

    with pytest.raises(ValueError, match="must be one of " + ", ".join(f"'{name}'" for name in solver_names())):
        MKLClassifier(solver="fastest").fit(X, Y)


def test_a_solver_that_does_not_apply_says_with_what():
    with pytest.raises(ValueError, match="The solver 'silp' cannot be used with norm=2: use 'newton'"):
        MKLClassifier(solver="silp", norm=2.0).fit(X, Y)


def test_class_weights_must_be_positive():
    with pytest.raises(ValueError, match="'class_weight' parameter of MKLClassifier must hold positive numbers"):
        MKLClassifier(class_weight={0: -1.0}).fit(X, Y)
    with pytest.raises(ValueError, match="class"):
        MKLClassifier(class_weight={7: 1.0}).fit(X, Y)


def test_a_kernel_may_not_be_named_as_a_parameter():
    with pytest.raises(
        ValueError, match=r"names of the kernels must differ from the parameters of MKLClassifier\. Got 'C'"
    ):
        MKLClassifier([("C", RBF(), [0])]).fit(X, Y)


@pytest.mark.parametrize(
    ("kernels", "sentence"),
    [
        ("gauss", "The 'kernels' parameter must be 'rbf', a kernel, or a list"),
        ([], "must hold at least one kernel"),
        ([("a", RBF(), [0]), ("a", RBF(), [1])], "names of the kernels must be unique. Got 'a' 2 times"),
        ([("a", RBF(), [7])], "The columns of 'a' must be between -3 and 2. Got 7 instead"),
        ([("a", RBF(), ["height"])], "may be named only in a data frame. Got 'height' and no data frame"),
        (
            [RBF(gamma=-1.0)],
            "The 'gamma' parameter of RBF must be a positive number or None. Got -1.0 instead",
        ),
    ],
)
def test_wrong_kernels_are_named(kernels, sentence):
    with pytest.raises(ValueError) as error:
        MKLClassifier(kernels).fit(X, Y)
    assert sentence in str(error.value)


# ---- stacks


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_found_and_the_kernel_named(value):
    M = changed(3, 4, value)
    M[4, 3] = value
    with pytest.raises(ValueError, match=r"The kernel 'bad' must hold finite numbers\. Got NaN or infinity"):
        fit_stack(K, M)
    good = fit_stack(K, K)
    rows = K[None, :5].repeat(2, axis=0)
    rows[:, 2] = value
    with pytest.raises(
        ValueError,
        match=r"The kernel 'kernel_0' must hold finite numbers\. Got NaN or infinity among its test rows",
    ):
        good.predict(stack_kernels(rows))


def test_an_asymmetric_kernel_is_named():
    with pytest.raises(
        ValueError,
        match=r"The kernel 'bad' must be symmetric\. Got entries .* by up to 0\.\d+, where the largest is 1",
    ):
        fit_stack(K, changed(3, 4, K[3, 4] + 0.2))


@pytest.mark.parametrize("gram", ["dense", "lazy"])
def test_an_indefinite_kernel_is_named_with_its_eigenvalue_ratio(gram):
    values, U = np.linalg.eigh(K)
    values[0] = -0.25 * values[-1]
    M = (U * values) @ U.T
    sentence = (
        "The kernel 'bad' must be positive semidefinite. Got a smallest eigenvalue of -0.25 times the "
        "largest instead: psd='clip', 'shift' or 'flip' repairs it"
    )
    sentence += "." if gram == "dense" else " with gram='dense' or 'memmap', kernels"
    with pytest.raises(ValueError, match=re.escape(sentence)):
        fit_stack(K, (M + M.T) / 2, gram=gram)


def test_an_indefinite_kernel_met_in_training_is_refused_or_repaired(monkeypatch):
    # the search before training is made blind, so that only the curvature met in training can tell
    from multikernel.gram import soundness as checks
    from multikernel.gram.definite import Definiteness
    from multikernel.gram.inspect import Inspection
    from multikernel.training import train as trained

    blind = Definiteness(np.zeros(1), np.ones(1), np.zeros(1, bool))
    monkeypatch.setattr(checks, "probe_definiteness", lambda *args, **options: blind)
    monkeypatch.setattr(Inspection, "indefinite", property(lambda self: np.zeros(len(self.finite), bool)))
    y = np.where(Y > 0, 1.0, -1.0)
    M = 0.1 * np.eye(N) - np.outer(y, y) / N

    def solve(problem, *args, **options):
        solution = base_solve(problem, *args, **options)
        outputs = problem.gram.apply(y)
        return replace(solution, dual_coef=y, outputs=outputs) if outputs @ y < 0 else solution

    base_solve = trained.solve
    monkeypatch.setattr(trained, "solve", solve)
    sentence = "The kernel 'good' must be positive semidefinite. Got a smallest eigenvalue of -9 times the largest"
    with pytest.raises(ValueError, match=re.escape(sentence)):
        fit_stack(M, normalize=None)
    model = fit_stack(M, normalize=None, psd="clip")
    values, U = np.linalg.eigh(M)
    explicit = fit_stack((U * np.maximum(values, 0)) @ U.T, normalize=None)
    assert model.objective_ == pytest.approx(explicit.objective_, rel=2e-3)


def test_a_stack_must_be_square_and_of_the_size_of_the_labels():
    with pytest.raises(ValueError, match=r"must be square to fit\. Got 30 rows and 20 columns instead"):
        MKLClassifier("precomputed").fit(stack_kernels([K[:, :20]]), Y)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[20, 30\]"):
        MKLClassifier("precomputed").fit(stack_kernels([K[:20, :20]]), Y)
    with pytest.raises(ValueError, match=r"same shape, \(30, 30\) as kernel 0\. Got shape \(20, 20\) for kernel 1"):
        stack_kernels([K, K[:20, :20]])


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        (K, r"an array of shape \(30, 30\)"),
        (K[None, :20], r"an array of shape \(1, 20, 30\)"),
        ([K, K], "list"),
        ("K", "str"),
    ],
    ids=["matrix", "not square", "list", "text"],
)
def test_precomputed_kernels_come_in_a_stack(wrong, found):
    with pytest.raises(
        ValueError,
        match=rf"With kernels='precomputed' X must be stack_kernels\(\.\.\.\) .* Got {found} instead\.",
    ):
        MKLClassifier("precomputed").fit(wrong, Y)


def test_a_kernel_major_array_is_taken_for_a_stack():
    model = MKLClassifier("precomputed").fit(K[None], Y)
    np.testing.assert_array_equal(model.predict(K[None, :5]), fit_stack(K).predict(stack_kernels([K[:5]])))


def test_a_stack_needs_kernels_precomputed():
    with pytest.raises(
        ValueError,
        match=r"'kernels' parameter of MKLClassifier must be 'precomputed' for a KernelStack\. Got 'rbf'",
    ):
        MKLClassifier().fit(stack_kernels([K]), Y)


def test_test_rows_of_another_size_are_refused():
    model = fit_stack(K, K)
    with pytest.raises(
        ValueError, match=r"X must hold 2 kernels, as the stack that the model was fitted on\. Got 1 instead"
    ):
        model.predict(stack_kernels([K]))
    with pytest.raises(ValueError, match=r"X must have 30 columns.* Got 20 columns instead"):
        model.predict(stack_kernels([K[:, :20], K[:, :20]]))
    with pytest.raises(ValueError, match="X has 2 features, but MKLClassifier is expecting 3 features"):
        MKLClassifier().fit(X, Y).predict(X[:, :2])


# ---- kernels without information, extreme scales


@pytest.mark.parametrize("normalize", ["variance", "trace", None, "center"])
@pytest.mark.parametrize("precomputed", [False, True])
def test_constant_kernels_are_named_in_a_warning(precomputed, normalize):
    with pytest.warns(UserWarning, match=r"The kernels? .*'flat'.* constant on the training samples") as caught:
        if precomputed:
            stack = stack_kernels([K, np.full((N, N), 3.0), np.zeros((N, N))], names=["good", "flat", "zero"])
            model = MKLClassifier("precomputed", normalize=normalize).fit(stack, Y)
            assert "'zero'" in str(caught[0].message)
            assert model.score(stack, Y) > 0.7
        else:
            kernels = [("good", RBF(), None), ("flat", Constant(3.0), None)]
            model = MKLClassifier(kernels, normalize=normalize).fit(X, Y)
            assert model.score(X, Y) > 0.7
    np.testing.assert_allclose(model.weights_[1:], 0.0, atol=1e-6)
    np.testing.assert_allclose(model.kernel_contributions_[1:], 0.0, atol=1e-9)


def test_only_constant_kernels_still_make_a_model():
    with pytest.warns(UserWarning, match="constant on the training samples"):
        model = MKLClassifier("precomputed").fit(stack_kernels([np.zeros((N, N)), np.ones((N, N))]), Y)
    assert len(set(model.predict(stack_kernels([K[:5], K[:5]])))) == 1
    np.testing.assert_array_equal(model.kernel_contributions_, 0.0)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernels_may_have_any_scale(scale, dtype):
    plain = fit_stack(K, np.eye(N), tol=1e-4)
    scaled = fit_stack((scale * K).astype(dtype), (np.eye(N) / scale).astype(dtype), tol=1e-4)
    assert scaled.objective_ == pytest.approx(plain.objective_, rel=2e-4)
    np.testing.assert_allclose(scaled.weights_, plain.weights_, atol=2e-2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        raw = fit_stack((scale * K).astype(dtype), normalize=None)
    assert np.isfinite(raw.objective_)


def test_duplicated_samples_and_kernels_are_no_trouble():
    twice = np.r_[np.arange(N), np.arange(N)]
    labels = np.r_[Y, 1 - Y]
    labels[5:10] = Y[5:10]
    model = MKLClassifier("precomputed", tol=1e-6).fit(stack_kernels([K[np.ix_(twice, twice)]] * 3), labels)
    assert model.duality_gap_ <= 1e-6


# ---- labels and samples


@pytest.mark.parametrize(
    "labels",
    [
        Y.astype(bool),
        Y.astype(float),
        np.where(Y, "b", "a"),
        np.where(Y, "b", "a").astype(object),
        Y * 7 - 3,
        list(Y),
        Y[:, None],
    ],
    ids=["bool", "float", "str", "object", "int", "list", "column"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_labels_may_have_any_type(labels):
    model = MKLClassifier().fit(X, labels)
    reference = MKLClassifier().fit(X, Y)
    flat = np.ravel(labels)
    np.testing.assert_array_equal(model.classes_, np.unique(flat))
    np.testing.assert_array_equal(model.predict(X) == model.classes_[1], reference.predict(X) == 1)


def test_one_class_is_not_enough():
    with pytest.raises(
        ValueError, match=r"MKLClassifier needs samples of at least 2 classes\. Got one class only: 'a'\."
    ):
        MKLClassifier().fit(X, ["a"] * N)
    with pytest.raises(ValueError, match=r"at least 2 classes\. Got one class only"):
        MKLClassifier().fit(X, Y, sample_weight=Y)
    with pytest.raises(ValueError, match="Unknown label type"):
        MKLClassifier().fit(X, X[:, 0])
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        MKLClassifier().fit(X, None)


@pytest.mark.parametrize("kernels", ["rbf", "precomputed"])
def test_two_samples_are_enough(kernels):
    samples = stack_kernels([np.eye(2)]) if kernels == "precomputed" else X[:2]
    for options in ({}, {"norm": 2.0}, {"fit_intercept": False}, {"normalize": ["center", "cosine"]}):
        model = MKLClassifier(kernels, **options).fit(samples, ["a", "b"])
        assert model.predict(samples).tolist() == ["a", "b"]


def test_samples_must_be_finite_numbers():
    for value, word in ((np.nan, "NaN"), (np.inf, "infinity")):
        Z = X.copy()
        Z[3, 1] = value
        with pytest.raises(ValueError, match=f"Input X contains {word}"):
            MKLClassifier().fit(Z, Y)
        with pytest.raises(ValueError, match=f"Input X contains {word}"):
            MKLClassifier().fit(X, Y).predict(Z)


def test_a_data_frame_with_a_gap_is_refused():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X.copy(), columns=list("abc"))
    frame.loc[3, "b"] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        MKLClassifier().fit(frame, Y)
    frame["colour"] = "red"
    with pytest.raises(ValueError, match=r"Kernel 'position': .*NaN or infinity"):
        MKLClassifier([("position", RBF(), ["a", "b"])]).fit(frame, Y)
    with pytest.raises(ValueError, match="needs at least one sample"):
        MKLClassifier([("position", RBF(), ["a", "b"])]).fit(frame[:0], Y[:0])


def test_a_callable_that_is_no_kernel_is_named():
    def lopsided(A, B):
        return A[:, :1] * np.ones(len(B))

    def empty(A, B):
        return np.zeros((1, 1))

    def broken(A, B):
        return np.full((len(A), len(B)), np.nan)

    for function, sentence in ((lopsided, "symmetric"), (empty, "shape"), (broken, "NaN or infinity")):
        for gram in ("dense", "lazy"):
            with pytest.raises(ValueError, match=f"{function.__name__}.*{sentence}"):
                MKLClassifier([Linear(), function], gram=gram).fit(X, Y)
    known_psd = FunctionKernel(lambda A, B: A @ B.T, psd=True)
    assert MKLClassifier([known_psd]).fit(X, Y).duality_gap_ <= 1e-3


@pytest.mark.parametrize(
    ("weight", "sentence"),
    [
        (np.zeros(N), "zero"),
        (-np.ones(N), "Negative values in data passed to `sample_weight`"),
        (np.ones(N - 1), "sample_weight.shape"),
        (np.full(N, np.nan), "Input sample_weight contains NaN"),
    ],
)
def test_wrong_sample_weights_are_refused(weight, sentence):
    with pytest.raises(ValueError) as error:
        MKLClassifier().fit(X, Y, weight)
    assert sentence in str(error.value)


def test_a_model_must_be_fitted_first():
    with pytest.raises(NotFittedError, match="not fitted"):
        MKLClassifier().predict(X)


# ---- memory and iterations


def test_more_memory_than_there_is_says_who_needs_how_much():
    sentence = (
        "5 kernels on 30 samples need 43.2 kB with gram='dense', and the memory limit is 20 kB: "
        "use gram='lazy' or gram='memmap', or a larger 'memory_limit'."
    )
    with pytest.raises(MemoryError, match=re.escape(sentence)):
        MKLClassifier(gram="dense", memory_limit="20kB").fit(X, Y)
    with pytest.raises(
        MemoryError, match=r"combined kernel on 30 samples needs up to 7\.2 kB, and the memory limit is 1 kB"
    ):
        MKLClassifier(memory_limit=1000).fit(X, Y)
    with pytest.raises(MemoryError, match=r"2 kernels on 15 samples need 5\.4 kB with gram='dense'"):
        rows = np.arange(0, N, 2)
        MKLClassifier("precomputed", gram="dense", memory_limit=3000).fit(stack_kernels([K, K])[rows], Y[rows])
    assert MKLClassifier(memory_limit="20kB").fit(X, Y).gram_.kind == "lazy"


def test_too_few_iterations_are_warned_of_with_the_gap_the_causes_and_what_to_try():
    with pytest.warns(ConvergenceWarning) as caught:
        model = MKLClassifier(max_iter=1, tol=1e-9).fit(X, Y)
    sentence = str(caught[0].message)
    assert sentence.startswith("MKLClassifier reached max_iter: after 1 iteration the relative duality gap is ")
    for part in (
        f"{model.duality_gap_:.2g}",
        "tol=1e-09",
        "certified",
        "(a) max_iter=1",
        "(b)",
        "(c)",
        "solver='auto'",
    ):
        assert part in sentence
    assert model.status_ == "max_iter" and model.n_iter_ == 1
    assert model.predict(X).shape == (N,)


def test_a_solver_without_progress_is_warned_of(monkeypatch):
    monkeypatch.setattr("multikernel.solve.STALL", 1)
    with pytest.warns(ConvergenceWarning, match="made no further progress"):
        model = MKLClassifier(solver="silp", tol=1e-15, max_iter=5000).fit(X, Y)
    assert model.status_ == "stalled" and 0 < model.duality_gap_ < 1


def test_values_that_overflow_are_one_sentence_without_numpy_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kernel in (Linear(), Polynomial(30)):
            with pytest.raises(ValueError, match=r"Kernel 'big': .*NaN or infinity"):
                MKLClassifier([("big", kernel, None)]).fit(1e160 * X, Y)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    "model", [MKLClassifier([Linear()], gram="features"), UFOMKLClassifier([Linear()]), OBSCUREClassifier([Linear()])]
)
def test_columns_whose_squares_overflow_are_refused(model):
    with pytest.raises(ValueError, match="Kernel 'linear': the values have NaN or infinity among them"):
        model.fit(1e160 * X, Y)


NAMED = {"wide": K, "narrow": np.exp(-np.square(X[:, :1] - X[:, :1].T)), "odd": np.outer(X[:, 1], X[:, 1])}


def test_named_kernels_are_found_by_name_at_predict():
    model = MKLClassifier("precomputed", C=10.0, norm=2.0).fit(stack_kernels(NAMED), Y)
    expected = model.decision_function(stack_kernels(NAMED)[:20])
    for order in (["odd", "wide", "narrow"], ["narrow", "odd", "wide"]):
        turned = stack_kernels({name: NAMED[name][:20] for name in order})
        np.testing.assert_allclose(model.decision_function(turned), expected)
    # without names, by position
    np.testing.assert_allclose(model.decision_function(np.stack([*NAMED.values()])[:, :20]), expected)
    # kernels of one stack keep their names
    stack = stack_kernels([*NAMED.values()])
    swapped = MKLClassifier("precomputed", C=10.0, norm=2.0).fit(stack[:, :, [2, 0, 1]], Y)
    np.testing.assert_allclose(swapped.decision_function(stack[:20]), expected, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("normalize", ["cosine", ["center", "cosine"]])
def test_named_kernels_bring_their_diagonals_in_order(normalize):
    model = MKLClassifier("precomputed", normalize=normalize).fit(stack_kernels(NAMED), Y)
    order, diag = ["odd", "narrow", "wide"], [np.diagonal(NAMED[name])[:9] for name in ("odd", "narrow", "wide")]
    turned = stack_kernels([NAMED[name][:9] for name in order], names=order, diag=diag)
    np.testing.assert_allclose(model.decision_function(turned), model.decision_function(stack_kernels(NAMED)[:9]))


@pytest.mark.parametrize(
    ("names", "got"),
    [
        (["wide", "odd"], r"lacks 'narrow'\."),
        (["wide", "narrow", "other"], r"lacks 'odd' and adds 'other'\."),
        (["wide", "narrow", "odd", "other"], r"adds 'other'\."),
    ],
)
def test_named_kernels_that_lack_or_add_one_are_refused(names, got):
    model = MKLClassifier("precomputed").fit(stack_kernels(NAMED), Y)
    what = r"X must hold the kernels 'wide', 'narrow', 'odd', as the stack .*fitted on\. Got a stack that "
    with pytest.raises(ValueError, match=what + got):
        model.predict(stack_kernels([K] * len(names), names=names))


# ---- sentences that say what to do


def test_a_gap_is_named_by_view_column_and_row():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["age", "dose", "time"])
    views = [("clinic", RBF(), ["age", "time"]), ("drug", Linear(), ["dose"]), ("all", Linear(), None)]
    whole = MKLClassifier(views).fit(frame, Y)
    gap = frame.copy()
    gap.iloc[[4, 9], 2] = np.nan
    what = r"Got NaN in row 4, column 'time', and 1 more\. The column belongs to the views 'clinic', 'all'\."
    for call in (lambda: MKLClassifier(views).fit(gap, Y), lambda: whole.predict(gap)):
        with pytest.raises(ValueError, match=what) as caught:
            call()
        assert "SimpleImputer" in str(caught.value) and "HistGradientBoosting" not in str(caught.value)
    Z = X.copy()
    Z[7, 1] = np.inf
    for samples in (Z, sparse.csr_array(Z)):
        with pytest.raises(ValueError, match=r"infinity.* Got infinity in row 7, column 1\. MKLClassifier needs"):
            MKLClassifier().fit(samples, Y)
    # beside words each kernel reads its own columns
    mixed = gap.assign(word="x")
    with pytest.raises(ValueError, match=r"Kernel 'clinic': RBF got NaN or infinity in its columns: NaN in row 4, "):
        MKLClassifier(views[:2]).fit(mixed, Y)


def test_a_parameter_of_several_kernels_says_what_to_set():
    model = MKLClassifier([("view", rbf_family(), [0, 1])])
    with pytest.raises(ValueError, match="'view__factor' of MKLClassifier cannot be set: 'view' has several kernels"):
        GridSearchCV(model, {"view__factor": [1.0, 2.0]}, cv=2).fit(X, Y)
    # what the sentence says works
    search = GridSearchCV(model, {"view": [[RBF()], [RBF(factor=2.0)]]}, cv=2).fit(X, Y)
    assert "view" in search.best_params_


def test_names_lost_in_a_transformer_are_hinted_at():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["age", "dose", "time"])
    pipeline = make_pipeline(StandardScaler(), MKLClassifier([("clinic", RBF(), ["age"])]))
    with pytest.raises(ValueError, match=r"Got 'age' and no data frame\..* set_output\(transform='pandas'\)"):
        pipeline.fit(frame, Y)
    assert pipeline.set_output(transform="pandas").fit(frame, Y).score(frame, Y) > 0.5


@pytest.mark.parametrize("kernels", [RBF, [RBF], [("a", RBF, [0])]])
def test_a_class_in_place_of_a_kernel_is_hinted_at(kernels):
    with pytest.raises(TypeError, match=r"Got <class .*RBF'> instead: write RBF\(\), with brackets"):
        MKLClassifier(kernels).fit(X, Y)


def test_probabilities_that_a_loss_has_not_are_explained():
    model = MKLClassifier().fit(X, Y)
    what = r"'loss' parameter of MKLClassifier must be 'logistic' or .* 'hinge' instead: probability=True learns"
    for method in ("predict_proba", "predict_log_proba"):
        with pytest.raises(AttributeError, match=what):
            getattr(model, method)(X)
        assert not hasattr(model, method)
    assert MKLClassifier.predict_proba.__doc__.startswith("Return the probability")


@pytest.mark.parametrize("psd", ["error", "clip", "shift", "flip"])
def test_distances_in_place_of_a_kernel_are_told_from_one(psd):
    D = np.sqrt(np.square(X[:, None] - X).sum(2))
    for gram in ("auto", "lazy"):
        with pytest.raises(ValueError, match=r"'bad' must hold similarities\. Got a diagonal of zeros.* distances"):
            fit_stack(K, D, psd=psd, gram=gram)
    assert fit_stack(K, np.exp(-((D / np.median(D)) ** 2)), psd=psd).status_ == "converged"


@pytest.mark.parametrize("kind", [str, object])
def test_texts_are_no_targets_of_a_regression(kind):
    words = np.where(Y, "high", "low").astype(kind)
    for model in (MKLRegressor(), MKLRegressorCV()):
        owner = type(model).__name__
        other = owner.replace("Regressor", "Classifier")
        sentence = f"y of {owner} must hold numbers. Got the text '(high|low)' instead: for classes take {other}"
        with pytest.raises(ValueError, match=sentence):
            model.fit(X, words)
    assert MKLRegressor().fit(X, X[:, 0].astype(str)).predict(X).shape == (N,)
