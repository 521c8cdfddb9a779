"""Sequences with planted places, and every answer of a Gram against matrices."""

import numpy as np
import pytest
from problems import combined_rows

from multikernel.gram.features import FeatureOutputs


def texts(n, length=12, letters="ACGT", seed=0):
    rng = np.random.default_rng(seed)
    return np.array(["".join(row) for row in rng.choice(list(letters), (n, length))], dtype=object)


def planted(n, seed=0):
    """Sequences whose class depends on two places and on a count."""
    S = texts(n, seed=seed)
    score = np.array([2.0 * (s[3:5] == "AC") + s.count("G") / 3 for s in S])
    score += 0.3 * np.random.default_rng(seed + 1).normal(size=n)
    return S, np.where(score > np.median(score), 1.0, -1.0)


def hold_against(gram, K, rng):
    """Hold every answer of a Gram against the matrices that it stands for."""
    p, n = K.shape[:2]
    a, beta = rng.normal(size=n), rng.random(p)
    assert gram.rows(np.arange(n)) == pytest.approx(K, abs=1e-9)
    assert gram.diag() == pytest.approx(np.einsum("kii->ki", K), abs=1e-9)
    assert gram.apply(a) == pytest.approx(K @ a, abs=1e-8)
    assert gram.apply(np.column_stack([a, a**2]))[:, :, 1] == pytest.approx(K @ a**2, abs=1e-8)
    assert combined_rows(gram, beta, np.arange(n)) == pytest.approx(np.tensordot(beta, K, 1), abs=1e-8)
    combined, rows = gram.combined(beta), rng.permutation(n)[: max(1, n // 2)]
    whole = np.tensordot(beta, K, 1)
    tables = gram.new_outputs((n,))
    assert isinstance(tables, FeatureOutputs)
    tables.update(a)
    assert tables.quadratic_forms() == pytest.approx(np.einsum("kij,i,j->k", K, a, a), abs=1e-7)
    assert combined.scores(tables, rows) == pytest.approx((whole @ a)[rows], abs=1e-8)
    assert combined.block(rows) == pytest.approx(whole[np.ix_(rows, rows)], abs=1e-8)
    assert combined.apply(a) == pytest.approx(whole @ a, abs=1e-8)
    assert not combined.apply(np.zeros(n)).any()
    # tables that moved twice are those of where they arrived
    again = 0.5 * a + 1.0
    tables.update(again)
    assert tables.q == pytest.approx(np.einsum("kij,i,j->k", K, again, again), abs=1e-7)
    assert tables.kernel_outputs() == pytest.approx(K @ again, abs=1e-8)
    assert tables.mix(beta) == pytest.approx(whole @ again, abs=1e-8)
    part = gram.take_samples(rows)
    assert part.rows(np.arange(len(rows))) == pytest.approx(K[:, rows][:, :, rows], abs=1e-9)
