"""Accuracy as scikit-learn has it, for every kind of labels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score

from multikernel import MKLClassifier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
CODES = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)
LABELS = {
    "int": CODES,
    "float": CODES.astype(float),
    "bool": CODES > 0,
    "words": np.array(["low", "middle", "high"])[CODES],
    "objects": np.array(["low", "middle", "high"], object)[CODES],
}


@pytest.mark.parametrize("kind", LABELS)
def test_accuracy_is_that_of_scikit_learn(kind):
    y = LABELS[kind]
    model = MKLClassifier(C=0.01).fit(X[:40], y[:40])
    predicted, weight = model.predict(X), RNG.random(60)
    expected = accuracy_score(y, predicted)
    assert 0.4 < expected < 1.0
    for each in (y, y.tolist(), pd.Series(y)):
        assert model.score(X, each) == expected
    assert model.score(X, y, sample_weight=weight) == accuracy_score(y, predicted, sample_weight=weight)


def test_a_class_that_was_not_learned_counts_as_wrong():
    model = MKLClassifier(C=0.01).fit(X, LABELS["words"])
    wrong = LABELS["words"].copy()
    wrong[:30] = "other"
    assert model.score(X, wrong) == accuracy_score(wrong, model.predict(X)) < model.score(X, LABELS["words"])


@pytest.mark.parametrize(
    ("y", "match"),
    [(CODES[:-1], "inconsistent"), (CODES + 0.5, "mix"), (np.full(60, np.nan), "NaN"), (np.eye(60, 3), "mix")],
    ids=["too short", "continuous", "missing", "several columns"],
)
def test_labels_that_are_none_are_refused(y, match):
    model = MKLClassifier(C=0.01).fit(X, CODES.astype(float))
    with pytest.raises(ValueError, match=match):
        model.score(X, y)
