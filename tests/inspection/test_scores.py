"""Scores of positions against their definition, and their sums against the decision function."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn
from problems_inspection import AT, KERNELS, LENGTH, SHIFTS, TEST, TEXTS, TRAIN, Y, check_sum, classifier

from multikernel import MKLClassifier, MKLClassifierCV, MKLOneClass, MKLRegressor
from multikernel.inspection import position_importance, score_positions, top_motifs
from multikernel.inspection.positions import run_sums
from multikernel.kernels import RBF, GappedSpectrum, LocalAlignment, Spectrum, WeightedDegree, WeightedDegreeShift


@pytest.mark.parametrize("normalize", [None, "variance", "cosine", ["trace", "cosine"], ["cosine", "center"]], ids=str)
@pytest.mark.parametrize("name", KERNELS)
def test_scores_add_up_to_the_decision_function(name, normalize):
    model = classifier(KERNELS[name], normalize=normalize)
    scores = score_positions(model, TEXTS[TEST])
    assert scores.values.shape == (50, LENGTH)
    assert not scores.rest.any()
    check_sum(model, TEXTS[TEST], scores)


def test_scores_in_blocks_are_those_of_all_sequences_at_once():
    model = classifier(KERNELS["all"], normalize="cosine")
    whole = score_positions(model, TEXTS[TEST])
    with sklearn.config_context(working_memory=0.01):
        np.testing.assert_allclose(score_positions(model, TEXTS[TEST]).values, whole.values, rtol=1e-12, atol=1e-14)
        assert score_positions(model, TEXTS[:1]).values.shape == (1, LENGTH)


def brute_scores(support, coef, kernel, x):
    """Share every d-mer of x that a support sequence has, up to shifts, among its d positions."""
    out, L = np.zeros(len(x)), len(x)
    shifts = kernel._reach() if isinstance(kernel, WeightedDegreeShift) else np.zeros(L, int)
    for z, a in zip(support, coef, strict=True):
        for d, beta in enumerate(kernel._beta(), 1):
            for p in range(L - d + 1):
                for q in range(L - d + 1):
                    s = abs(p - q)
                    if s <= shifts[min(p, q)] and x[p : p + d] == z[q : q + d] and "N" not in x[p : p + d]:
                        out[p : p + d] += a * beta * (1.0 if s == 0 else 0.5 / (s + 1)) / d
    return out


@pytest.mark.parametrize(
    "kernel",
    [WeightedDegree(3), WeightedDegreeShift(3, 2), WeightedDegreeShift(2, SHIFTS)],
    ids=["plain", "shift", "shifts"],
)
def test_scores_are_those_of_the_definition(kernel):
    model = classifier([kernel], normalize=None)
    support = [TEXTS[TRAIN][i] for i in model.support_]
    fitted = kernel.fit(TEXTS)
    scores = score_positions(model, TEXTS[78:82])
    for values, x in zip(scores.values, TEXTS[78:82], strict=True):
        np.testing.assert_allclose(values, brute_scores(support, model.dual_coef_, fitted, x), atol=1e-10)


def test_sequences_of_different_lengths():
    texts = [x[: 10 + i % 12] for i, x in enumerate(TEXTS)]
    model = MKLClassifier([Spectrum(2), GappedSpectrum("101", region=-6)]).fit(texts[TRAIN], Y[TRAIN])
    scores = score_positions(model, texts[TEST])
    check_sum(model, texts[TEST], scores)
    for values, x in zip(scores.values, texts[TEST], strict=True):
        assert not values[len(x) :].any()
    table = scores.to_frame()
    assert len(table) == sum(map(len, texts[TEST]))
    assert "".join(table.letter[table.sequence == 2]) == texts[TEST][2]


def test_strings_beside_numbers_and_other_strings():
    frame = pd.DataFrame({"site": TEXTS, "age": Y + np.arange(120) / 60, "other": [x[::-1] for x in TEXTS]})
    kernels = [
        ("site", WeightedDegree(4), "site"), ("age", RBF(), ["age"]), ("align", LocalAlignment(), "site"),
        ("other", Spectrum(2), "other"),
    ]  # fmt: skip
    model = MKLClassifier(kernels, norm=2, psd="shift").fit(frame[TRAIN], Y[TRAIN])
    for column in ("site", "other"):
        scores = score_positions(model, frame[TEST], column=column)
        assert scores.rest.any()
        np.testing.assert_allclose(scores.decision, model.decision_function(frame[TEST]), atol=1e-9)
        assert scores.sequences == frame[column][TEST].tolist()
    importance = position_importance(model, column="site")
    assert importance.weights.sum() == pytest.approx(model.weights_[0])
    with pytest.raises(ValueError, match=r"The 'column' parameter of top_motifs must be .* 'other', 'site'\. Got None"):
        top_motifs(model)
    plain = MKLClassifier([kernels[0], kernels[3]], norm=2, gram="features").fit(frame[TRAIN], Y[TRAIN])
    for column in ("site", "other"):
        scores = score_positions(plain, frame[TEST], column=column)
        np.testing.assert_allclose(scores.decision, plain.decision_function(frame[TEST]), atol=1e-9)


def test_other_estimators_and_several_outputs():
    target = np.array([x[AT : AT + 4].count("A") for x in TEXTS], float)
    regressor = MKLRegressor(KERNELS["all"]).fit(TEXTS[TRAIN], target[TRAIN])
    scores = score_positions(regressor, TEXTS[TEST])
    np.testing.assert_allclose(scores.decision, regressor.predict(TEXTS[TEST]), atol=1e-9)
    single = MKLOneClass([WeightedDegree(3)], nu=0.3).fit(TEXTS[TRAIN])
    check_sum(single, TEXTS[TEST], score_positions(single, TEXTS[TEST]))
    assert position_importance(single).weights.sum() == pytest.approx(1.0)
    three = np.array(["a", "b", "c"])[np.arange(70) % 3]
    for multiclass in ("joint", "ovr"):
        model = MKLClassifier([WeightedDegree(3), Spectrum(2)], multiclass=multiclass).fit(TEXTS[TRAIN], three)
        f = model.decision_function(TEXTS[TEST])
        for t in range(3):
            np.testing.assert_allclose(score_positions(model, TEXTS[TEST], output=t).decision, f[:, t], atol=1e-9)
            assert position_importance(model, output=t).contributions.sum() == pytest.approx(1.0)
        with pytest.raises(ValueError, match="The 'output' parameter of top_motifs must be the number of one of the 3"):
            top_motifs(model)
    search = MKLClassifierCV([WeightedDegree(3)], Cs=[0.1, 1.0], cv=2).fit(TEXTS[TRAIN], Y[TRAIN])
    check_sum(search, TEXTS[TEST], score_positions(search, TEXTS[TEST]))


@pytest.mark.loops
def test_sums_over_those_that_agree():
    lcp, reach = np.array([0, 2, 1, 0, 0], np.uint8), np.array([2, 2, 1, 0, 2], np.uint8)
    a = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    out = np.empty((2, 5))
    run_sums(lcp, reach, a, np.array([1, 2]), out)
    np.testing.assert_array_equal(out, [[7, 7, 7, 0, 16], [3, 3, 0, 0, 16]])
