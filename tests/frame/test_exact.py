"""Reported gaps hold in exact arithmetic; `tests/exact.py` checks as many problems as one likes."""

from __future__ import annotations

import json
from decimal import localcontext
from fractions import Fraction

import numpy as np
import pytest
from drill.page import write_page
from exact import DIGITS, _machine, check_one, draw, exact, main, true_gap

from multikernel import MKLClassifier, MKLOneClass, MKLRegressor
from multikernel.gram.dense import DenseGram
from multikernel.gram.stack import stack_kernels
from multikernel.mixing.norms import mixing_for
from multikernel.problem import Problem
from multikernel.solve import solve

# one problem of each loss on each storage that takes it, and those that have failed
SEEDS = [*range(0, 165, 3), 39, 144, 149, 152]


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: f"{seed}-{draw(seed)[1]}-{draw(seed)[2]}")
def test_the_true_gap_is_at_most_the_reported_one(seed):
    row = check_one(seed)
    assert row.get("skipped") or row["ratio"] <= 1.0, row


def stack(n=30, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    kernels = [np.exp(-0.5 * (x[:, None] - x) ** 2) for x in X.T]
    return np.array([*kernels, X @ X.T]), X


@pytest.mark.parametrize("scale", [1e-12, 1e12])
@pytest.mark.parametrize("C", [1.0, 1e3])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "squared", "logistic"])
def test_objectives_are_those_of_the_returned_model(loss, C, scale):
    """Large costs times kernels: what is reported is what the coefficients give."""
    K, X = stack()
    K = K * scale
    y = np.sign(X[:, 0])
    with np.errstate(all="raise", under="ignore"):
        model = MKLClassifier(kernels="precomputed", normalize=None, loss=loss, C=C, max_iter=50)
        try:
            model.fit(stack_kernels(K), y)
        except Warning:  # a run that stalls says so
            pass
    a = np.zeros(len(y))
    a[model.support_] = model.dual_coef_
    f = np.tensordot(model.weights_, K, 1) @ a
    margin = 1.0 - y * (f + model.intercept_)
    losses = {
        "hinge": np.maximum(0, margin), "squared_hinge": np.maximum(0, margin) ** 2, "squared": margin**2,
        "logistic": np.logaddexp(0, margin - 1.0),
    }  # fmt: skip
    primal = 0.5 * a @ f + C * losses[loss].sum()
    assert primal <= model.objective_ + 1.01 * model.duality_gap_ * abs(model.objective_) + 1e-12 * C * len(y)


@pytest.mark.parametrize("power", [-900, -300, 300, 900])
@pytest.mark.parametrize("loss", ["hinge", "squared", "logistic", "joint hinge", "joint multinomial", "huber", "one"])
def test_one_factor_of_all_kernels_changes_units_alone(loss, power):
    """(s K, C / s) has the weights, outputs and intercept of (K, C); coefficients and objective are divided by s."""
    K, X = stack()
    common = {"kernels": "precomputed", "normalize": None}

    def fitted(s):
        if loss == "one":
            return MKLOneClass(nu=0.4, **common).fit(stack_kernels(K * s))
        if loss == "huber":
            return MKLRegressor(C=4.0 / s, loss=loss, **common).fit(stack_kernels(K * s), X[:, 0])
        y = np.searchsorted([-0.5, 0.5], X[:, 0]) if loss.startswith("joint") else np.sign(X[:, 0])
        return MKLClassifier(C=4.0 / s, loss=loss.removeprefix("joint "), **common).fit(stack_kernels(K * s), y)

    # both far from one, so that both are brought to the same unit
    s, other = 2.0**power, 2.0 ** (50 if power > 0 else -50)
    model, reference = fitted(s), fitted(other)
    ratio = s / other
    np.testing.assert_allclose(model.weights_, reference.weights_, rtol=1e-12, atol=1e-12)
    assert model.status_ == reference.status_ == "converged"
    assert model.duality_gap_ == pytest.approx(reference.duality_gap_, rel=1e-6)
    up, down = (ratio, 1.0) if loss == "one" else (1.0 / ratio, 1.0 / ratio)
    np.testing.assert_allclose(model.objective_, reference.objective_ * up, rtol=1e-12)
    np.testing.assert_allclose(model.dual_coef_, reference.dual_coef_ * down, rtol=1e-9)
    np.testing.assert_allclose(model.intercept_, reference.intercept_ * (ratio if loss == "one" else 1.0), rtol=1e-9)
    np.testing.assert_allclose(model.history_["upper"], reference.history_["upper"] * up, rtol=1e-9)


def test_a_step_that_fails_in_lapack_leaves_the_best_model():
    from multikernel.machines.svc import SVC
    from multikernel.mixing.norms import Simplex
    from multikernel.solvers.newton import Newton

    K, X = stack()
    problem = Problem(DenseGram(K), SVC(np.sign(X[:, 0])), Simplex())

    class Failing(Newton):
        def step(self, point, state, certificate):
            if state.epochs:
                raise np.linalg.LinAlgError("singular")
            return super().step(point, state, certificate)

    solution = solve(problem, Failing(), tol=1e-9)
    assert solution.status == "stalled" and solution.gap < 1.0

    class Singular(SVC):
        def curvature(self, *args, **kwargs):
            raise np.linalg.LinAlgError("singular")

    solution = solve(Problem(DenseGram(K), Singular(np.sign(X[:, 0])), Simplex()), "newton", tol=1e-3)
    assert solution.status == "converged"


@pytest.mark.parametrize("loss", ["squared", "hinge", "squared_hinge", "logistic"])
@pytest.mark.filterwarnings("error")
def test_weights_of_almost_zero_are_no_warning(loss):
    K, X = stack()
    weight = np.ones(30)
    weight[3] = 1e-300
    model = MKLClassifier(kernels="precomputed", normalize=None, loss=loss)
    assert model.fit(stack_kernels(K), np.sign(X[:, 0]), sample_weight=weight).status_ == "converged"


@pytest.mark.parametrize("K", [-np.eye(6), -np.ones((6, 6)), -np.outer(np.arange(6.0), np.arange(6.0))])
def test_negative_definite_kernels_are_compared_with_themselves(K):
    with pytest.raises(ValueError, match="eigenvalue of -1 times the largest"):
        MKLClassifier(kernels="precomputed", normalize=None).fit(stack_kernels([K]), np.repeat([0, 1], 3))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("loss", ["hinge", "squared", "squared_hinge", "smooth_hinge", "logistic", "multinomial"])
def test_coefficients_of_tiny_costs_are_in_proportion_to_the_costs(loss, classes):
    K, X = stack()
    y = np.argsort(np.argsort(X[:, 0])) * classes // len(X)
    models = []
    for power in (-80, -300, -900, -1010):
        model = MKLClassifier("precomputed", C=2.0**power, loss=loss, normalize=None).fit(stack_kernels(K), y)
        assert model.status_ == "converged"
        models.append((power, model))
    first, one = models[0]
    for power, model in models[1:]:
        ratio = 2.0 ** (power - first)
        np.testing.assert_allclose(model.weights_, one.weights_, rtol=1e-12)
        np.testing.assert_allclose(model.objective_, one.objective_ * ratio, rtol=1e-12)
        np.testing.assert_allclose(model.dual_coef_, one.dual_coef_ * ratio, rtol=1e-12)
        np.testing.assert_allclose(model.intercept_, one.intercept_, atol=1e-12)
    smallest = MKLClassifier("precomputed", C=5e-324, loss=loss, normalize=None).fit(stack_kernels(K), y)
    np.testing.assert_allclose(smallest.weights_, one.weights_, rtol=1e-6)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("C, weight", [(1e100, 1.0), (1e300, 1.0), (1e300, 1e100), (1.0, 1e200)])
def test_costs_beyond_float64_are_refused(C, weight):
    K, X = stack()
    weight = np.full(len(X), weight)
    for model in (MKLClassifier, MKLRegressor):
        for y in (np.sign(X[:, 0]), np.searchsorted([-0.5, 0.5], X[:, 0])):
            with pytest.raises(ValueError, match=rf"costs of {model.__name__}, 'C' .* must be at most 3e\+61"):
                model("precomputed", C=C, normalize=None).fit(stack_kernels(K), y, sample_weight=weight)
    with pytest.raises(ValueError, match=r"must be at least 2e-308 on kernels of this size: .* Got 1e-310 instead"):
        MKLRegressor("precomputed", C=1e-310, normalize=None).fit(stack_kernels(K), X[:, 0])
    with pytest.raises(ValueError, match=r"must be at least 5e-324 on kernels of this size: .* Got 0e\+00 instead"):
        MKLRegressor("precomputed", C=1e-300, normalize=None).fit(
            stack_kernels(K * 2.0**200), X[:, 0], sample_weight=1e-100 / weight
        )
    with pytest.raises(ValueError, match=r"must be at least .* Got 0e\+00 instead"):
        MKLClassifier("precomputed", C=1e-300, normalize=None).fit(
            stack_kernels(K), np.sign(X[:, 0]), sample_weight=1e-100 / weight
        )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("C", [1e-100, 1e-300])
def test_least_squares_of_tiny_costs_in_double_precision(C):
    K, X = stack()
    for dtype in (np.float32, np.float64):
        model = MKLRegressor("precomputed", C=C, loss="squared", normalize=None)
        model.fit(stack_kernels(K.astype(dtype)), X[:, 0])
        assert model.status_ == "converged" and model.duality_gap_ < 1e-6


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.filterwarnings("ignore:.*no further progress")
@pytest.mark.parametrize("loss", ["logistic", "smooth_hinge"])
def test_joint_coefficients_on_their_bounds_are_no_warning(loss):
    X = np.random.default_rng(1).normal(size=(30, 4))
    y = np.argsort(np.argsort(X[:, 0] + np.sin(2 * X[:, 2]))) // 10
    for C in (1e14, 1e20):
        assert MKLClassifier("rbf", C=C, loss=loss, tol=1e-2).fit(X, y).duality_gap_ < 1.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "loss, norm, C",
    [
        ("hinge", np.inf, 1e8), ("hinge", 2.0, 1e10), ("hinge", 1.0, 1e10), ("epsilon_insensitive", np.inf, 1e8),
        ("epsilon_insensitive", 2.0, 1e10), ("epsilon_insensitive", np.inf, 1e12), ("joint hinge", np.inf, 1e8),
        ("joint hinge", 2.0, 1e8), ("huber", np.inf, 1e8),
    ],
)  # fmt: skip
def test_many_kernels_at_large_costs_are_certified(loss, norm, C, dtype):
    """Rounding of one sum in float64 alone would be a larger gap than is asked for, up to a thousand times."""
    n, rng = 24, np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    K = np.array([np.exp(-rng.uniform(0.1, 1.0) * (X[:, k % 4, None] - X[:, k % 4]) ** 2) for k in range(40)], dtype)
    K, score = 0.5 * (K + K.transpose(0, 2, 1)), X[:, 0] + 0.5 * rng.normal(size=n)
    name, joint = loss.removeprefix("joint "), loss.startswith("joint")
    y = np.searchsorted([-0.5, 0.5], score) if joint else np.where(score > 0, 1.0, -1.0) if name == "hinge" else score
    par, cost = Fraction(0.1 if name == "epsilon_insensitive" else 0.3), np.full(n, C)
    machine = _machine(loss, name, y, cost, True, par, 1.0)
    solution = solve(Problem(DenseGram(K), machine, mixing_for(norm)))
    assert solution.status == "converged"
    with localcontext() as context:
        context.prec, context.Emax, context.Emin = DIGITS, 10**8, -(10**8)
        exactly = [np.array(exact(k), object).reshape(n, n) for k in K]
        true = true_gap(name, joint, y, cost, norm, True, par, exactly, None, solution.weights, solution.dual_coef,
                        solution.intercept, machine.floor)  # fmt: skip
    assert true <= solution.gap


def test_the_tables_go_into_their_section_of_the_page(tmp_path, capsys):
    rows = [
        {"seed": k, "loss": "hinge", "storage": s, "solver": "newton", "status": "converged", "ratio": 1.0 - 2.0**-k}
        for k, s in ((1, "dense"), (30, "lazy"), (3, "lazy"))
    ]
    file, page = tmp_path / "rows.jsonl", tmp_path / "page.md"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    page.write_text("# Page\n\nWords.\n")
    for _ in range(2):
        assert main(["0", "--file", str(file), "--page", str(page)]) == 0
    text = page.read_text()
    assert text.startswith("# Page\n\nWords.\n\n## The certificate in exact arithmetic\n") and text.count("## ") == 1
    assert "| dense | 1 | 0.5 | 0 |" in text and "| lazy | 2 | 1 - 9e-10 | 0 |" in text
    assert "3 problems, 0 whose true gap exceeds the reported one." in text
    assert "| hinge | 3 |" in capsys.readouterr().out
    # a run of the drill writes the rest of the page anew
    write_page(page, [], [], {})
    assert "Words" not in page.read_text() and page.read_text().endswith(text.partition("## The certificate")[2])
    rows[0]["ratio"] = 1.5
    file.write_text(json.dumps(rows[0]) + "\n")
    assert main(["0", "--file", str(file)]) == 1
