"""Profiles of importance against their definition, and models that have none."""

from __future__ import annotations

import numpy as np
import pytest
from problems_inspection import AT, KERNELS, LENGTH, MOTIF, TEST, TEXTS, TRAIN, WITH_FEATURES, Y, check_sum, classifier

from multikernel import MKLClassifier, TwoStageClassifier, stack_kernels
from multikernel.inspection import PositionImportance, position_importance, score_positions, top_motifs
from multikernel.kernels import PositionBlocks, Spectrum, WeightedDegree


@pytest.mark.parametrize("name", WITH_FEATURES)
def test_models_of_explicit_features_give_the_same_scores_motifs_and_profiles(name):
    exact, model = (classifier(KERNELS[name], gram=gram) for gram in ("dense", "features"))
    scores = score_positions(model, TEXTS[TEST])
    check_sum(model, TEXTS[TEST], scores)
    check_sum(model, TEXTS[TEST][:7], score_positions(model, TEXTS[TEST][:7]))
    np.testing.assert_allclose(scores.values, score_positions(exact, TEXTS[TEST]).values, atol=0.02)
    ours, theirs = top_motifs(model, 5), top_motifs(exact, 5)
    np.testing.assert_allclose([each.weight for each in ours], [each.weight for each in theirs], atol=0.02)
    if name in ("degree", "blocks", "twice"):
        ours, theirs = position_importance(model), position_importance(exact)
        np.testing.assert_allclose(ours.weights, theirs.weights, atol=0.02)
        np.testing.assert_allclose(ours.contributions, theirs.contributions, atol=0.02)


@pytest.mark.parametrize("normalize", [None, "variance", "cosine"])
@pytest.mark.parametrize("name", ["degree", "blocks", "twice", "shift", "shift by place", "shift blocks"])
def test_importance_is_that_of_its_definition(name, normalize):
    model = classifier(KERNELS[name], normalize=normalize)
    importance = position_importance(model)
    assert importance.weights.sum() == pytest.approx(model.weights_.sum())
    assert importance.contributions.sum() == pytest.approx(1.0)
    # a' K a by position: f of the support sequences, position by position, shared among the letters
    support = [TEXTS[TRAIN][i] for i in model.support_]
    values = score_positions(model, support).values
    energy = model.dual_coef_ @ values
    np.testing.assert_allclose(importance.profile("contributions", shared=True), energy / energy.sum(), atol=1e-10)


def test_weights_belong_to_the_sub_kernel_that_learned_them():
    model = classifier(KERNELS["blocks"])
    weights = position_importance(model).weights
    for name, beta in zip(model.kernel_names_, model.weights_, strict=True):
        d, window = name.split("[d=")[1].rstrip("]").split(", ")
        start, stop = map(int, window.split(":"))
        assert weights[start:stop, int(d) - 1].sum() == pytest.approx(beta, abs=1e-12)
    assert weights.min() >= 0


def test_letters_that_are_in_all_sequences_have_no_importance():
    texts = [x[:6] + "AG" + x[8:] for x in TEXTS]
    blocks = PositionBlocks(WeightedDegree(1), [(i, i + 1) for i in range(LENGTH)])
    for gram in ("dense", "features"):
        with pytest.warns(UserWarning, match="constant"):
            model = MKLClassifier(blocks, gram=gram).fit(texts, Y)
        importance = position_importance(model)
        for profile in (importance.profile(), importance.profile("contributions")):
            np.testing.assert_allclose(profile[6:8], 0.0, atol=1e-12)
            assert AT <= profile.argmax() < AT + len(MOTIF)
            assert profile[AT : AT + len(MOTIF)].sum() > 0.6


def test_a_shared_profile_keeps_the_sum():
    values = np.zeros((5, 3))
    values[1, 2], values[3, 0] = 0.6, 0.4
    importance = PositionImportance(values, values / 2)
    np.testing.assert_allclose(importance.profile(shared=True), [0, 0.2, 0.2, 0.6, 0])
    np.testing.assert_allclose(importance.profile(), [0, 0.6, 0, 0.4, 0])
    np.testing.assert_allclose(importance.profile("contributions"), [0, 0.3, 0, 0.2, 0])
    with pytest.raises(ValueError, match="The 'quantity' parameter"):
        importance.profile("gini")


def test_models_without_what_is_needed_are_refused():
    numbers = MKLClassifier().fit(np.eye(6), [0, 1] * 3)
    with pytest.raises(ValueError, match="score_positions needs a model that uses weighted degree kernels"):
        score_positions(numbers, np.eye(6))
    stack = MKLClassifier("precomputed").fit(stack_kernels([WeightedDegree(2)(TEXTS[TRAIN])]), Y[TRAIN])
    with pytest.raises(ValueError, match="top_motifs needs a model that computes its kernels from sequences"):
        top_motifs(stack)
    spectrum = classifier([Spectrum(3)])
    with pytest.raises(ValueError, match="position_importance needs a model that uses weighted degree kernels"):
        position_importance(spectrum)
    with pytest.raises(TypeError, match="needs a fitted model of multikernel"):
        position_importance("model")
    with pytest.raises(ValueError, match=r"top_motifs needs kernels in which a motif weighs the same .* Got 'cosine'"):
        top_motifs(classifier([WeightedDegree(3)], normalize="cosine"))
    for options, words in (
        ({"n": 0}, "The 'n' parameter"), ({"length": "3"}, "The 'length' parameter"),
        ({"positions": 3}, "The 'positions' parameter"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            top_motifs(spectrum, **options)
    two = TwoStageClassifier([WeightedDegree(3)]).fit(TEXTS[TRAIN], Y[TRAIN])
    with pytest.raises(ValueError, match=r"keeps its support sequences\. Got TwoStageClassifier"):
        score_positions(two, TEXTS)
    unbalanced = classifier([WeightedDegree(3)], normalize="center", fit_intercept=False)
    with pytest.raises(ValueError, match="whose centring is a constant"):
        score_positions(unbalanced, TEXTS)
