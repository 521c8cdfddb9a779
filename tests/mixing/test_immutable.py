"""Sets of weights never change: the same bits whatever was called before, and rows that hold on the set."""

from __future__ import annotations

import copy
import inspect
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from problems_margin import inexact, table_of, views

from multikernel.mixing import Mixing, highs, largest_margin, margin_mixing, mixing_for
from multikernel.mixing.base import KeptRows

pytestmark = inexact

P = 5


def make(kind):
    norm, fraction = kind
    if fraction is None:
        return mixing_for(norm)
    table = table_of(*views())
    largest = largest_margin(table, norm)
    return margin_mixing(norm, table, fraction * largest.value, largest)


KINDS = [(1, None), (2.0, None), (np.inf, None)] + [(norm, f) for norm in (1, 2.0) for f in (0.5, 0.9, 1.0)]
EVERY_KIND = pytest.mark.parametrize("kind", KINDS, ids=str)


def calls(mixing, seed):
    """One call of every method, as (name, arguments)."""
    rng = np.random.default_rng(seed)
    beta, q, A = rng.dirichlet(np.ones(P)), rng.random(P), rng.normal(size=(P, P))
    return [
        ("start", (P,)),
        ("support", (q,)),
        ("make_feasible", (beta,)),
        ("violated_row", (beta,)),
        ("scale_to_boundary", (beta,)),
        ("closed_form", (beta, q)),
        ("closed_form", (beta, q, 1.6)),
        ("reactivate", (beta, q, 0.1)),
        ("newton_step", (beta, q, A @ A.T)),
    ]


def bits(answer):
    """What an answer is, to the last bit."""
    if isinstance(answer, tuple):
        return tuple(bits(each) for each in answer)
    return answer.tobytes() if isinstance(answer, np.ndarray) else answer


@EVERY_KIND
def test_answers_do_not_depend_on_earlier_calls(kind):
    everything = [(name, args) for seed in range(3) for name, args in calls(None, seed)]
    alone = [bits(getattr(make(kind), name)(*args)) for name, args in everything]
    shared = make(kind)
    for seed in range(2):
        for i in np.random.default_rng(seed).permutation(len(everything)):
            name, args = everything[i]
            given = copy.deepcopy(args)
            assert bits(getattr(shared, name)(*args)) == alone[i], name
            assert bits(args) == bits(given)


@EVERY_KIND
def test_nothing_can_be_assigned(kind):
    with pytest.raises(FrozenInstanceError):
        make(kind).norm = 3.0


def test_the_contract_is_short():
    methods = [name for name, _ in inspect.getmembers(Mixing, inspect.isfunction) if not name.startswith("_")]
    assert len(methods) == 7


@pytest.mark.parametrize("norm", [1, 2.0])
def test_a_violated_row_holds_on_the_set_and_not_at_the_weights(norm):
    mixing = make((norm, 0.9))
    rng = np.random.default_rng(0)
    members = [mixing.scale_to_boundary(rng.dirichlet(np.ones(P))) for _ in range(20)]
    outside = 0
    for beta in rng.dirichlet(np.full(P, 0.3), 20):
        row = mixing.violated_row(beta)
        if mixing.table.value(beta) >= mixing.gamma0:
            assert row is None
            continue
        outside += 1
        v, least = row
        assert v @ beta < least
        assert v @ beta == pytest.approx(mixing.table.value(beta) / mixing.table.size)
        assert all(v @ member >= least - 1e-12 for member in members)
    assert outside > 5
    assert all(mixing.violated_row(member) is None for member in members)


def test_kept_rows_end_where_a_solver_missed_one_by_rounding():
    mixing = make((1, 0.9))
    kept = KeptRows(mixing)
    beta = np.eye(P)[0]
    assert kept.add_violated(beta) and len(kept.rows) == 1
    assert not kept.add_violated(beta) and len(kept.rows) == 1
    rows = kept.as_cones(P)
    assert rows.A @ beta > rows.b and rows.cones == (("nonnegative", 1),)
    assert not kept.add_violated(mixing.start(P))
    # entries that are negative by rounding do not matter
    assert KeptRows(mixing_for(1)).add_violated(np.full(P, -1.0)) is False


@pytest.mark.parametrize("answers", [0, 1])
def test_bounds_hold_where_a_linear_programme_fails(monkeypatch, answers):
    mixing, q = make((1, 0.9)), np.linspace(1.0, 0.1, P)
    exact, _ = mixing.support(q)
    table, top = mixing.table, mixing.largest.value
    real, count = highs.HighsProgramme.minimise, [0]

    def fails(self, cost):
        count[0] += 1
        return real(self, cost) if count[0] <= answers else None

    monkeypatch.setattr(highs.HighsProgramme, "minimise", fails)
    value, beta = mixing.support(q)
    assert exact <= value <= q.max() + 1e-12
    assert beta @ q <= exact + 1e-9 and table.value(beta) >= mixing.gamma0 - 2e-10 * table.size
    count[0] = 0
    found = largest_margin(table)
    assert found.value <= top <= found.bound
    assert found.value == pytest.approx(table.value(found.weights))
    assert np.max(found.cut) == pytest.approx(found.bound)
