"""Losses by themselves: values, derivatives, conjugates and their domains."""

from __future__ import annotations

import numpy as np
import pytest
from problems_losses import ALL, LOSSES, NAMED, Bump, draw
from reference_losses import LOSSES as FORMULAS

from multikernel.losses import (
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Loss,
    Multinomial,
    SmoothHinge,
    Squared,
    joint_form,
)

# those with kinks, and that of all classes, have machines and tests of their own
ELSEWHERE = {"hinge", "epsilon_insensitive", "multinomial"}
FORMULATED = [LOSSES[name] for name in LOSSES if name in NAMED]


def test_the_table_is_the_registry():
    assert set(LOSSES) | ELSEWHERE == {*NAMED, "quartic"}


@pytest.mark.parametrize("name", LOSSES)
def test_values_are_the_formulas(name):
    f, y = draw(LOSSES[name])
    assert LOSSES[name].value(f, y) == pytest.approx(FORMULAS[name][1](f, y), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_gradients_are_slopes(loss):
    f, y = draw(loss)
    h = 1e-6
    assert loss.gradient(f, y) == pytest.approx((loss.value(f + h, y) - loss.value(f - h, y)) / (2 * h), abs=1e-4)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=repr)
def test_second_derivatives(loss):
    f, y = draw(loss)
    h = 1e-6
    slopes = (loss.gradient(f + h, y) - loss.gradient(f - h, y)) / (2 * h)
    assert loss.hessian(f, y) == pytest.approx(slopes, rel=1e-5, abs=1e-5)
    assert np.all(loss.hessian(f, y) <= loss.curvature_bound + 1e-12)
    assert Loss.hessian(loss, f, y) == pytest.approx(loss.hessian(f, y), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_conjugates(loss):
    # a grid search for max over f of -a f - l(f), at slopes that occur
    f, y = draw(loss)
    a = -loss.gradient(f, y)
    grid = np.linspace(-30.0, 30.0, 60001)[:, None]
    best = np.max(-a * grid - loss.value(grid, y[None]), axis=0)
    conjugate = loss.conjugate(a, y)
    assert np.all(conjugate >= best - 1e-9)
    assert conjugate == pytest.approx(best, abs=2e-5)
    # Fenchel's inequality at other pairs
    other = 2.0 * np.random.default_rng(1).normal(size=len(y))
    assert np.all(conjugate >= -a * other - loss.value(other, y) - 1e-9)


@pytest.mark.parametrize("loss", FORMULATED, ids=repr)
def test_the_search_finds_the_conjugate_of_the_formula(loss):
    f, y = draw(loss)
    a = -loss.gradient(f, y)
    assert Loss.conjugate(loss, a, y) == pytest.approx(loss.conjugate(a, y), abs=1e-7)


@pytest.mark.parametrize("loss", [*FORMULATED, Hinge()], ids=repr)
def test_outside_its_domain_the_conjugate_is_infinite(loss):
    y = np.array([1.0, -1.0])
    outside = -1.5 * y if loss.task == "classification" else 1.5 * y
    if np.all(np.isinf(loss.domain(y))):
        # such as the squared loss
        assert np.all(np.isfinite(loss.conjugate(outside, y)))
        return
    assert np.all(np.isinf(loss.conjugate(outside, y)))
    if not isinstance(loss, Hinge):
        assert np.all(np.isinf(Loss.conjugate(loss, outside, y)))
        low, high = loss.domain(y)
        assert np.all(np.isfinite(loss.conjugate(np.clip(outside, low, high), y)))
        searched = Loss.domain(loss, y)
        assert np.clip(searched[0], -9, 9) == pytest.approx(np.clip(low, -9, 9), abs=1e-9)
        assert np.clip(searched[1], -9, 9) == pytest.approx(np.clip(high, -9, 9), abs=1e-9)


def test_the_smooth_hinge_becomes_the_hinge():
    f, y = draw(Hinge())
    for sigma in (1.0, 10.0, 1e3, 1e6):
        above = SmoothHinge(2.0, sigma).value(f, y) - Hinge(2.0).value(f, y)
        assert np.all(above >= -1e-15)
        assert np.all(above <= 2.0 * np.log(2) / sigma + 1e-15)
    a = 0.3 * y
    assert SmoothHinge(1.0, 1e9).conjugate(a, y) == pytest.approx(Hinge(1.0).conjugate(a, y), abs=1e-8)


def test_a_loss_without_formulas_says_so():
    with pytest.raises(NotImplementedError, match=r"A loss must define 'gradient'\. Loss does not\."):
        Loss().gradient(np.zeros(1), np.zeros(1))
    with pytest.raises(NotImplementedError, match=r"A loss must define 'value'\. Loss does not\."):
        Loss().value(np.zeros(1), np.zeros(1))


def test_concavity_is_found_where_it_is():
    assert all(loss.concavity() is None for loss in LOSSES.values())
    y, low, high = Bump().concavity()
    assert Bump().gradient(np.array([low]), y) > Bump().gradient(np.array([high]), y)


@pytest.mark.parametrize("kind", [Hinge, Squared, SmoothHinge, Logistic, Huber, EpsilonInsensitive, Multinomial])
@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf, 1j, "1", None, True, [1.0, -1.0]], ids=repr)
def test_numbers_of_a_loss_are_checked(kind, value):
    for name in {"C", "sigma", "delta", "epsilon"} & set(vars(kind())):
        with pytest.raises(ValueError, match=f"The '{name}' parameter of {kind.__name__} must be a .* number. Got"):
            kind(**{name: value})
    assert SmoothHinge(margin=-1.0).margin == -1.0 and Hinge(np.array([1.0, 2.0])).C.sum() == 3.0


@pytest.mark.filterwarnings("error")
def test_a_coefficient_that_rounding_put_outside_its_domain_has_the_gradient_of_the_border():
    a = np.array([[-1e-17, 1e-17], [1.0 + 1e-15, -1.0 - 1e-15]])
    outputs = joint_form(Logistic()).inverse_gradient(a, np.array([0, 0]))
    assert outputs[:, 0].tolist() == [np.inf, -np.inf]
