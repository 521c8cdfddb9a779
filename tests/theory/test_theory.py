"""The bounds of Cortes et al. 2013: their terms by hand, their laws, and the inequalities they rest on."""

from __future__ import annotations

import numpy as np
import pytest
from problems_margin import views
from reference_margin import eta_of, margin_programme
from scipy.optimize import linprog

from multikernel import M3KClassifier, MKLClassifier, UFOMKLClassifier, stack_kernels
from multikernel.theory import (
    bound_report,
    confidence_term,
    h_star,
    kernel_margin,
    margin_bound,
    margin_loss,
    mixing_bound,
    moment_factor,
    proposition_bound,
    trace_term,
)


def test_the_terms_of_theorem_1():
    bound = margin_bound(0.2, 0.01, c=4, n=500, rho=0.5, delta=0.1)
    assert bound.margin_loss == 0.2
    assert bound.complexity == pytest.approx(2 * 16 / 0.5 * 0.01)
    assert bound.confidence == pytest.approx(3 * np.sqrt(np.log(20.0) / 1000))
    assert bound.total == pytest.approx(bound.margin_loss + bound.complexity + bound.confidence)
    for wrong in ({"rho": 0.0}, {"delta": 1.0}):
        with pytest.raises(ValueError, match="of a bound must be a"):
            margin_bound(0.2, 0.01, c=4, n=500, **wrong)


def test_the_margin_loss_counts_margins_of_at_most_rho():
    scores, codes = np.array([[3.0, 1.0, 2.0], [0.0, 0.0, 0.0], [0.0, 1.0, 5.0]]), np.array([0, 1, 1])
    # margins 1, 0, -4
    assert [margin_loss(scores, codes, rho) for rho in (0.0, 0.99, 1.0)] == pytest.approx([2 / 3, 2 / 3, 1.0])
    assert margin_loss(scores.astype(int), codes, 0.5) == pytest.approx(2 / 3)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 30, 1000])
def test_the_moment_factor_is_the_least_over_integers(count):
    assert moment_factor(count) == pytest.approx(min(s * count ** (1.0 / s) for s in range(1, 50)))
    # the paper's limit is reached from above
    assert moment_factor(count) >= np.e * np.log(count) - 1e-12


def sets_by_hand(gamma, traces, gamma0):
    """T, |I| and |J|, one kernel and one pair after the other."""
    inside = [t for g, t in zip(gamma, traces, strict=True) if g >= gamma0]
    pairs = []
    for g, t in zip(gamma, traces, strict=True):
        for h, u in zip(gamma, traces, strict=True):
            if g <= gamma0 <= h and g < h:
                a = (h - gamma0) / (h - g)
                pairs.append(a * t + (1 - a) * u)
    return max(inside + pairs), len(inside), len(pairs)


@pytest.mark.parametrize("seed", range(5))
def test_the_trace_term_and_lemma_4(seed):
    rng = np.random.default_rng(seed)
    gamma, traces = rng.normal(size=8), rng.uniform(50, 500, 8)
    gamma[3] = gamma[2]
    grid = np.unique(np.concatenate([[-np.inf, gamma.min() - 1.0], np.linspace(gamma.min(), gamma.max(), 40), gamma]))
    values = []
    for gamma0 in grid:
        T, inside, pairs = trace_term(gamma, traces, gamma0)
        if np.isfinite(gamma0):
            assert (T, inside, pairs) == pytest.approx(sets_by_hand(gamma, traces, gamma0))
            # T is the largest trace of any mix with mu . gamma >= gamma0: lemmas 2 and 3
            mix = linprog(-traces, -gamma[None], [-gamma0 + 1e-12], A_eq=np.ones((1, 8)), b_eq=[1.0])
            assert pytest.approx(-mix.fun, rel=1e-7) == T
        values.append(T)
    assert np.all(np.diff(values) <= 1e-9 * values[0])
    assert values[0] == traces.max()
    with pytest.raises(ValueError, match="the largest of the kernels"):
        trace_term(gamma, traces, gamma.max() + 0.1)


def test_theorem_2_bounds_the_rademacher_complexity():
    # E_sigma sup over the margin set of sqrt(mu . u_sigma), times Lambda / n, by the linear programme of each draw
    stack, y = views(n=24, p=4)
    eta = eta_of(stack, y)
    top, _ = margin_programme(eta, y, None)
    gamma = eta.sum(axis=(0, 1)) / (24 * 2)
    traces = np.trace(stack, axis1=1, axis2=2)
    rng = np.random.default_rng(0)
    for gamma0 in (0.3 * top, 0.9 * top):
        T, inside, pairs = trace_term(gamma, traces, gamma0)
        bound = mixing_bound(0.0, 1.0, T, inside + pairs, c=3, n=24).complexity / (2 * 9)
        draws = []
        for _ in range(60):
            sigma = rng.choice([-1.0, 1.0], 24)
            u = np.array([sigma @ K @ sigma for K in stack])
            draws.append(np.sqrt(margin_programme(eta, y, u, gamma0)[0]))
        assert np.mean(draws) / 24 + 4 * np.std(draws) / (24 * np.sqrt(60)) <= bound


@pytest.mark.parametrize("seed", range(4))
def test_proposition_1_holds_on_the_sample(seed):
    stack, y = views(c=3 + seed % 2, seed=seed)
    rng = np.random.default_rng(seed)
    model = h_star(stack_kernels(stack), y, rng.dirichlet(np.ones(5)))
    assert model.train_error <= model.bound + 1e-12 <= model.simple_bound + 2e-12 < 1.0
    scores = model.decision_function(stack_kernels(stack))
    assert scores == pytest.approx(model.train_scores)
    by_class = np.array([np.tensordot(model.weights, stack, 1)[:, y == u].mean(axis=1) for u in np.unique(y)]).T
    assert scores == pytest.approx(by_class)
    assert np.array_equal(model.predict(stack), model.classes[by_class.argmax(axis=1)])
    assert np.mean(model.predict(stack) != y) <= model.train_error


def test_proposition_1_needs_a_bounded_diagonal():
    stack, y = views(n=20)
    model = h_star(3.0 * stack, y)
    with pytest.raises(ValueError, match=r"needs a kernel with K\(x, x\) <= 1. Got one with 3 instead"):
        _ = model.simple_bound
    assert model.bound == pytest.approx(h_star(stack, y).bound)
    assert proposition_bound(0.4) == pytest.approx(0.8)
    # other samples than those it was made of, by their rows
    part = stack_kernels(stack)[:15]
    fewer = h_star(part, y[:15])
    assert fewer.predict(stack_kernels(stack)[15:]).shape == (5,)


# ---- the report


@pytest.mark.parametrize("options", [{"gamma0_fraction": 0.9}, {"gamma0": -np.inf}, {"norm": 2.0}])
def test_the_report_adds_up(options, capsys):
    stack, y = views(n=48, c=3)
    stack = np.array([1.0, 2.0, 1.0, 3.0, 1.0])[:, None, None] * stack
    model = M3KClassifier("precomputed", normalize=None, **options).fit(stack_kernels(stack), np.array(list("xyz"))[y])
    report = bound_report(model, stack_kernels(stack), np.array(list("xyz"))[y], rho=0.5, delta=0.1)
    printed = capsys.readouterr().out
    assert printed.strip() == str(report) and "plug-in estimate, not a guarantee" in printed
    total = model.weights_.sum()
    gamma = eta_of(stack, y).sum(axis=(0, 1)) / (48 * 2)
    assert report.gamma == pytest.approx(gamma)
    T, inside, pairs = trace_term(gamma, np.trace(stack, axis1=1, axis2=2), report.gamma0)
    assert (report.T, report.n_inside, report.n_pairs) == pytest.approx((T, inside, pairs))
    assert report.gamma0 == pytest.approx(model.gamma0_ / total)
    A = np.zeros((48, 3))
    A[model.support_] = model.dual_coef_.T
    K = np.tensordot(model.weights_, stack, 1)
    assert report.Lambda == pytest.approx(np.sqrt(total * max(A[:, u] @ K @ A[:, u] for u in range(3))))
    loss = margin_loss(K @ A, y, 0.5)
    expected = mixing_bound(loss, report.Lambda, T, inside + pairs, 3, 48, 0.5, 0.1)
    assert report.bound.total == pytest.approx(expected.total)
    assert report.bound.confidence == confidence_term(48, 0.1)
    assert report.without.complexity == pytest.approx(
        mixing_bound(loss, report.Lambda, 144.0, 5, 3, 48, 0.5, 0.1).complexity
    )
    assert report.kernel_margin == pytest.approx(model.margin_ / total)
    assert ("(|I| + |J|)^(1/4)" in printed) == ("norm" in options)


def test_the_report_takes_computed_kernels_and_two_classes():
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = np.column_stack([y + 0.3 * rng.normal(size=40), rng.normal(size=40)])
    model = M3KClassifier(normalize=["center", "cosine"]).fit(X, y)
    report = bound_report(model, X, y, verbose=False)
    assert report.c == 2 and report.T == pytest.approx(40.0)
    assert report.train_error == pytest.approx(1.0 - model.score(X, y))


def test_the_report_refuses_other_models_and_other_samples():
    rng = np.random.default_rng(0)
    y = np.arange(45) % 3
    X = np.eye(3)[y] + 0.3 * rng.normal(size=(45, 3))
    joint = MKLClassifier(multiclass="joint", fit_intercept=False).fit(X, y)
    assert bound_report(joint, X, y, verbose=False).gamma0 == -np.inf
    for model in (MKLClassifier().fit(X, y), MKLClassifier(multiclass="joint").fit(X, y)):
        with pytest.raises(ValueError, match="all classes at once without intercepts"):
            bound_report(model, X, y)
    with pytest.raises(ValueError, match=r"all classes at once without intercepts.* Got UFOMKLClassifier instead"):
        bound_report(UFOMKLClassifier(tol=0.5).fit(X, y), X, y)
    for options, sentence in (({"rho": "a"}, "The 'rho' of a bound"), ({"delta": "a"}, "The 'delta' of a bound")):
        with pytest.raises(ValueError, match=sentence):
            bound_report(joint, X, y, **options)
    for other in ((X[::-1], y), (X[:20], y[:20])):
        with pytest.raises(ValueError, match="the samples that MKLClassifier was trained on"):
            bound_report(joint, *other)


def test_classes_and_weights_that_will_not_do_are_one_sentence():
    K = np.array([np.eye(6), np.ones((6, 6))])
    y = np.array(["a", "b"] * 3)
    gaps, mixed = np.array([0.0, 1.0, np.nan] * 2), np.array(["a", 1] * 3, object)
    for labels, sentence in ((gaps, "y contains NaN"), (mixed, "one kind. Got texts and 1"), (None, "one class for")):
        with pytest.raises(ValueError, match=sentence):
            kernel_margin(K, labels)
    for weights, got in ((["x", "y"], "list without"), ([1.0, -1.0], "-1"), ([1.0], r"shape \(1,\)"), ("x", "str")):
        with pytest.raises(ValueError, match=f"must be 2 non-negative numbers, one per kernel. Got {got}"):
            h_star(K, y, weights)
    with pytest.raises(ValueError, match=r"The sample weights must be 6 positive numbers\. Got 0 instead"):
        kernel_margin(K, y, sample_weight=[1, 1, 1, 1, 1, 0])


def test_h_star_takes_the_kernels_it_was_made_of():
    model = h_star(np.array([np.eye(6), np.ones((6, 6))]), ["a", "b"] * 3)
    for other in (np.ones((1, 2, 6)), np.ones((2, 2, 5))):
        with pytest.raises(ValueError, match="must be 2 matrices with a column for each of 6 training samples"):
            model.predict(other)
    with pytest.raises(ValueError, match="must hold finite numbers"):
        model.predict(np.full((2, 2, 6), np.nan))


@pytest.mark.parametrize("wrong", [np.nan, -1, 1j, "1", None])
def test_numbers_of_a_bound_are_checked(wrong):
    stack, y = np.eye(4)[None], [0, 0, 1, 1]
    for name, call in (
        ("rademacher", lambda: margin_bound(0.1, wrong, 2, 10)),
        ("c", lambda: margin_bound(0.1, 0.1, wrong, 10)),
        ("Lambda", lambda: mixing_bound(0.1, wrong, 1.0, 2, 2, 10)),
        ("count", lambda: moment_factor(wrong)),
        ("largest_diagonal", lambda: proposition_bound(0.1, wrong)),
        ("traces", lambda: trace_term([0.5], wrong, 0.1)),
        ("scores", lambda: margin_loss(wrong, [0, 1])),
        ("per_sample", lambda: kernel_margin(stack, y, per_sample=wrong)),
    ):
        with pytest.raises(ValueError, match=f"'{name}'"):
            call()
