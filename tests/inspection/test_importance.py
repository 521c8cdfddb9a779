"""What models of sequences learned: scores of positions, motifs and profiles against their definitions."""

from __future__ import annotations

import argparse
import csv
import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from multikernel import MKLClassifier, MKLClassifierCV, MKLOneClass, MKLRegressor, TwoStageClassifier, stack_kernels
from multikernel.datasets import dna, load
from multikernel.inspection import (
    PositionImportance,
    SequenceImportanceDisplay,
    position_importance,
    score_positions,
    top_motifs,
)
from multikernel.inspection.places import run_sums
from multikernel.kernels import (
    RBF,
    DegreeBlocks,
    GappedKmer,
    GappedSpectrum,
    LocalAlignment,
    Mismatch,
    PositionBlocks,
    Spectrum,
    WeightedDegree,
    WeightedDegreeShift,
)

ROOT = Path(__file__).parents[2]
LENGTH, AT, MOTIF = 24, 10, "GATTACA"
S, Y = dna(120, LENGTH, motif=MOTIF, at=AT, mutation=0.1, seed=3)
# unknown letters match nothing
TEXTS = S.astype(str).tolist()
TEXTS[3] = TEXTS[3][:5] + "N" + TEXTS[3][6:]
TEXTS[80] = "NN" + TEXTS[80][2:]
TRAIN, TEST = slice(0, 70), slice(70, 120)
SHIFTS = [1, 0, 2] * 8

KERNELS = {
    "degree": [WeightedDegree(4)],
    "blocks": [PositionBlocks(DegreeBlocks(WeightedDegree(3)), 6)],
    "twice": [WeightedDegree(2), WeightedDegree(5, window=(4, 20)), WeightedDegree(3, weights=[0, 0, 1])],
    "shift": [WeightedDegreeShift(3, shift=2)],
    "shift by place": [WeightedDegreeShift(3, shift=SHIFTS), WeightedDegree(2)],
    "shift blocks": [PositionBlocks(WeightedDegreeShift(3, shift=2), 3)],
    "spectrum": [Spectrum(3), Spectrum(2, presence=True), Spectrum(3, all_orders=True)],
    "many patterns": [Spectrum(9)],
    "gaps": [GappedSpectrum("1011"), GappedSpectrum("11", region=(4, -3)), GappedSpectrum("101", region=-9)],
    "gapped k-mers": [GappedKmer(4, 2)],
    "mismatch": [Mismatch(3, 1)],
    "all": [WeightedDegree(4), WeightedDegreeShift(2, 1), Spectrum(3)],
}
WITH_FEATURES = ["degree", "blocks", "twice", "spectrum", "many patterns", "gaps", "gapped k-mers"]


def classifier(kernels, **options):
    return MKLClassifier(kernels, norm=2, tol=1e-4, psd="shift", **options).fit(TEXTS[TRAIN], Y[TRAIN])


def check_sum(model, X, scores):
    f = model.decision_function(X)
    size = np.abs(scores.values).sum(axis=1).max() + np.abs(f).max()
    np.testing.assert_allclose(scores.decision, f, atol=1e-12 * size)
    np.testing.assert_allclose(scores.offset + scores.values.sum(axis=1) + scores.rest, f, atol=1e-12 * size)


@pytest.mark.parametrize("normalize", [None, "variance", "cosine", ["trace", "cosine"], ["cosine", "center"]], ids=str)
@pytest.mark.parametrize("name", KERNELS)
def test_scores_add_up_to_the_decision_function(name, normalize):
    model = classifier(KERNELS[name], normalize=normalize)
    scores = score_positions(model, TEXTS[TEST])
    assert scores.values.shape == (50, LENGTH)
    assert not scores.rest.any()
    check_sum(model, TEXTS[TEST], scores)


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


def test_a_spectrum_shares_a_k_mer_among_its_letters():
    model = classifier([Spectrum(2)], normalize=None)
    counts = {}
    for i, a in zip(model.support_, model.dual_coef_, strict=True):
        for t in range(LENGTH - 1):
            u = TEXTS[i][t : t + 2]
            counts[u] = counts.get(u, 0.0) + a
    x = TEXTS[100]
    expected = np.zeros(LENGTH)
    for t in range(LENGTH - 1):
        expected[t : t + 2] += 0.5 * counts.get(x[t : t + 2], 0.0)
    np.testing.assert_allclose(score_positions(model, [x]).values[0], expected, atol=1e-12)
    best = top_motifs(model, 3)
    known = sorted((u for u in counts if "N" not in u), key=lambda u: -abs(counts[u]))[:3]
    assert [each.motif for each in best] == known
    assert [each.position for each in best] == [None] * 3
    np.testing.assert_allclose([each.weight for each in best], [counts[u] for u in known], atol=1e-12)


@pytest.mark.parametrize("name", ["degree", "twice", "shift", "shift by place", "shift blocks", "spectrum", "all"])
@pytest.mark.parametrize("normalize", [None, "variance"])
def test_the_weights_of_all_motifs_are_the_decision_function(name, normalize):
    model = classifier(KERNELS[name], normalize=normalize)
    motifs = top_motifs(model, 10**6)
    x = TEXTS[100]
    total = score_positions(model, [x]).offset
    presence = name == "spectrum"
    for each in motifs:
        if each.position is not None:
            total += each.weight * (x[each.position : each.position + each.length] == each.motif)
        elif not presence:
            region = x[slice(*(int(end) if end else None for end in each.region.split(":")))] if each.region else x
            total += each.weight * sum(
                all(u in (".", v) for u, v in zip(each.motif, region[t:], strict=False))
                for t in range(len(region) - each.length + 1)
            )
    if not presence:
        assert total == pytest.approx(float(model.decision_function([x])[0]), abs=1e-10)
    sizes = [abs(each.weight) for each in motifs]
    assert sizes == sorted(sizes, reverse=True)
    assert len({(each.motif, each.position, each.region) for each in motifs}) == len(motifs) or presence


def test_motifs_can_be_chosen_by_length_and_position():
    model = classifier([WeightedDegree(7), Spectrum(4)])
    assert {each.length for each in top_motifs(model, 30, length=3)} == {3}
    chosen = top_motifs(model, 30, positions=(AT, AT + 2))
    assert {each.position for each in chosen} == {AT, AT + 1}
    every = top_motifs(model, 10**6, length=7)
    assert top_motifs(model, 1, length=7)[0] == max(every, key=lambda each: abs(each.weight))
    assert top_motifs(model, 1, length=5)[0].motif in MOTIF


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


def test_tables_and_pictures_are_saved(tmp_path):
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    model = classifier(KERNELS["blocks"])
    importance = position_importance(model)
    paths = importance.save(tmp_path, origin=AT)
    with paths[0].open() as file:
        rows = list(csv.DictReader(file))
    assert sum(float(row["weight"]) for row in rows) == pytest.approx(model.weights_.sum())
    assert list(importance.to_frame().columns) == list(rows[0])
    scores = score_positions(model, TEXTS[TEST])
    paths += scores.save(tmp_path, row=3, window=(5, 20))
    with paths[2].open() as file:
        rows = list(csv.DictReader(file))
    assert sum(float(row["score"]) for row in rows if row["sequence"] == "3") == pytest.approx(scores.values[3].sum())
    motifs = top_motifs(model, 5)
    paths.append(motifs.save(tmp_path / "motifs.csv"))
    assert paths[-1].read_text().splitlines()[0] == ",".join(motifs.to_frame().columns)
    assert all(path.stat().st_size > 100 for path in paths)
    assert plt.get_fignums() == before


def test_the_display_draws_a_bar_for_each_position_and_degree():
    import matplotlib.pyplot as plt

    model = classifier(KERNELS["blocks"])
    figure, ax = plt.subplots()
    shown = {"origin": AT, "window": (4, 20), "quantity": "contributions"}
    display = SequenceImportanceDisplay.from_estimator(model, ax=ax, **shown)
    assert display.ax_ is ax and display.figure_ is figure
    heights = np.array([[bar.get_height() for bar in bars] for bars in display.bars_])
    expected = display.importance.profile("contributions")[4:20]
    np.testing.assert_allclose(heights.sum(axis=0), expected)
    centres = [bar.get_x() + bar.get_width() / 2 for bar in display.bars_[0]]
    np.testing.assert_allclose(centres, np.arange(4, 20) - AT)
    shifted = classifier(KERNELS["shift"])
    shift = SequenceImportanceDisplay.from_estimator(shifted, quantity="contributions", shared=True)
    assert shift.figure_ is not figure
    # more than 64 positions: one surface for each degree
    long = PositionImportance(np.full((80, 2), 0.25), np.full((80, 2), 0.5))
    surfaces = SequenceImportanceDisplay.from_importance(long).bars_
    tops = [surface.get_paths()[0].vertices[:, 1].max() for surface in surfaces]
    np.testing.assert_allclose(tops, [0.25, 0.5])
    plt.close("all")


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


@pytest.mark.loops
def test_sums_over_those_that_agree():
    lcp, reach = np.array([0, 2, 1, 0, 0], np.uint8), np.array([2, 2, 1, 0, 2], np.uint8)
    a = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    out = np.empty((2, 5))
    run_sums(lcp, reach, a, np.array([1, 2]), out)
    np.testing.assert_array_equal(out, [[7, 7, 7, 0, 16], [3, 3, 0, 0, 16]])


def test_the_experiment_on_splice_sites_finds_a_planted_tract(tmp_path, monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("celegans", ROOT / "papers" / "2005-sonnenburg" / "celegans.py")
    celegans = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(celegans)
    monkeypatch.setattr(celegans, "HERE", tmp_path)
    sites, labels = dna(500, 398, motif="TTTTTTTTTTTTTTTTTC", at=celegans.AG - 18, mutation=0.5)
    sites = np.array([x[: celegans.AG] + b"AG" + x[celegans.AG + 2 :] for x in sites])
    train, test = (sites[:300], labels[:300]), (sites[300:], labels[300:])
    args = argparse.Namespace(C=0.1, tol=1e-2, threads=1, norms=[1.0])
    celegans.figure4(args, train, test)
    printed = capsys.readouterr().out
    assert "54 kernels, converged" in printed and printed.count("AG itself 0.0000") == 2
    assert printed.split("letters from -20 on: ")[1][2:19].count("T") > 12
    profile = pd.read_csv(tmp_path / "celegans-figure4.csv").set_index("position").weight
    assert -18 <= profile.idxmax() < 0 and not profile[[0, 1]].any()
    celegans.by_windows(args, train, test)
    printed = capsys.readouterr().out
    assert "one weighted degree kernel" in printed and printed.count("AG itself 0.0000") == 2
    assert len(celegans.windows(398)) == len({*celegans.windows(398)})
    covered = np.concatenate([np.arange(*window) for window in celegans.windows(398)])
    assert np.array_equal(covered, np.delete(np.arange(398), [celegans.AG, celegans.AG + 1]))
    assert all((tmp_path / f"celegans-{name}.png").stat().st_size > 1000 for name in ("figure4", "windows"))


def test_the_profile_of_splice_sites_is_that_of_biology():
    try:
        data = load("celegans_acceptor")
    except FileNotFoundError:
        pytest.skip("MULTIKERNEL_DATA names no folder with the data sets")
    ag, part = 197, np.flatnonzero(data.part == 0)
    chosen = np.concatenate([part[data.y[part] == sign][:1500] for sign in (-1, 1)])
    blocks = PositionBlocks(WeightedDegree(1), [(ag + i, ag + i + 1) for i in range(-40, 14)])
    with pytest.warns(UserWarning, match="constant"):
        model = MKLClassifier(blocks, C=0.01, gram="features", tol=1e-2).fit(data.seq[chosen], data.y[chosen])
    importance = position_importance(model)
    for quantity in ("weights", "contributions"):
        profile = importance.profile(quantity)
        assert profile[ag : ag + 2] == pytest.approx(0.0, abs=1e-12)
        assert -10 <= profile.argmax() - ag < 0
        # the pyrimidine tract, and as many positions before it
        assert profile[ag - 20 : ag - 4].sum() > 2 * profile[ag - 40 : ag - 24].sum()
    for place in range(ag - 6, ag - 1):
        letters = top_motifs(model, 4, length=1, positions=(place, place + 1))
        assert max(letters, key=lambda each: each.weight).motif == "T"
