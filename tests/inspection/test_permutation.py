"""The test against permuted targets: the score, which permutations, the p-value, and what Ctrl-C leaves."""

import sys

import numpy as np
import pytest
from sklearn.model_selection import ShuffleSplit, cross_val_score

from multikernel import MKLClassifier, MKLRegressor, stack_kernels
from multikernel.inspection import permutation_test
from multikernel.inspection.permutation import _blocks, _permutation
from multikernel.kernels import RBF, Linear

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y, NOTHING = np.where(X[:, 0] > 0.3, "up", "down"), RNG.permutation(np.repeat([0, 1], 30))
VIEWS = [("a", RBF(), [0, 1]), ("b", RBF(), [2])]


def quick(model, X=X, y=Y, **options):
    return permutation_test(model, X, y, **{"n_permutations": 19, "cv": 3, "random_state": 0, **options})


def test_signal_is_found_and_the_score_is_that_of_cross_validation():
    model = MKLClassifier(VIEWS)
    found = quick(model)
    assert found.score == pytest.approx(cross_val_score(model, X, Y, cv=3).mean()) and found.scorer == "accuracy"
    assert found.p_value == 0.05 and found.permuted.shape == (19,) and found.permuted.max() < found.score
    assert "none of 19 at least as good (p = 0.05). There is something to learn." in str(found)
    again = quick(MKLRegressor(VIEWS).fit(X, X[:, 0]), y=X[:, 0], scoring="neg_mean_absolute_error")
    assert again.p_value == 0.05 and again.scorer == "neg_mean_absolute_error"
    stack = stack_kernels([X[:, :1] @ X[:, :1].T, X[:, 1:] @ X[:, 1:].T])
    assert quick(MKLClassifier("precomputed"), stack).p_value == 0.05


def test_without_signal_the_sentence_says_so():
    found = quick(MKLClassifier(VIEWS), y=NOTHING)
    assert found.p_value == pytest.approx((1 + np.sum(found.permuted >= found.score)) / 20)
    assert found.p_value > 0.05 and "may be chance" in str(found)


def test_permuted_scores_are_those_of_permuted_targets():
    model, seed = MKLClassifier(VIEWS, tol=1e-6), 3
    found = quick(model, random_state=seed, n_permutations=2)
    from sklearn.model_selection import StratifiedKFold

    splits = list(StratifiedKFold(3).split(X, Y))
    rng = np.random.default_rng(seed)
    for score in found.permuted:
        y = Y[_permutation([test for _, test in splits], rng)]
        for _, test in splits:
            assert np.sort(y[test]).tolist() == np.sort(Y[test]).tolist()
        assert score == pytest.approx(cross_val_score(model, X, y, cv=splits).mean())


def test_all_targets_are_permuted_where_test_parts_are_no_partition():
    splits = list(ShuffleSplit(3, test_size=0.3, random_state=0).split(X))
    assert [len(block) for block in _blocks(splits, 60)] == [60]
    assert np.sort(_permutation(_blocks(splits, 60), RNG)).tolist() == list(range(60))
    # a training part may then be of one class alone
    few = np.where(np.arange(60) < 2, "rare", "common")
    found = quick(MKLClassifier(Linear()), y=few, cv=[(np.arange(8), np.arange(40, 60))], n_permutations=30)
    assert np.isnan(found.permuted).any() and found.p_value >= np.isnan(found.permuted).mean()


def test_kernels_are_prepared_once_for_a_fold(monkeypatch):
    calls = []

    def counted(*arguments):
        calls.append(1)
        return original(*arguments)

    model = MKLClassifier(VIEWS).fit(X, Y)
    from multikernel.model_selection import folds

    original = folds.prepare
    monkeypatch.setattr(folds, "prepare", counted)
    quick(model)
    assert len(calls) == 3


def test_ctrl_c_keeps_the_finished_folds(monkeypatch):
    module, count = sys.modules["multikernel.inspection.permutation"], []
    original = module._run_fold

    def stopping(*arguments):
        count.append(1)
        if len(count) > 2:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(module, "_run_fold", stopping)
    with pytest.warns(UserWarning, match="interrupted after 2 of 3"), pytest.raises(KeyboardInterrupt) as stop:
        quick(MKLClassifier(VIEWS))
    assert 0 < stop.value.test.p_value <= 1


def test_progress_and_refusals(capsys):
    quick(MKLClassifier(VIEWS), verbose=1)
    assert "3 of 3 folds with 19 permutations" in capsys.readouterr().err
    with pytest.raises(
        ValueError, match="'n_permutations' parameter of permutation_test must be an integer of at least 1"
    ):
        quick(MKLClassifier(VIEWS), n_permutations=0)
    with pytest.raises(ValueError, match="could not score the model"):
        quick(MKLClassifier(VIEWS), scoring=lambda model, X, y: None)
