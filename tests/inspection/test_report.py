"""The report: its numbers are the estimator's, names cannot break it, and it stands alone."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn import metrics
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from multikernel import (
    MKLClassifier,
    MKLClassifierCV,
    MKLOneClass,
    MKLRegressor,
    TwoStageClassifier,
    UFOMKLClassifier,
)
from multikernel.inspection import Report, report, view_importance
from multikernel.inspection.page.html import Html, join, number, table, tag
from multikernel.inspection.page.score_section import names_of
from multikernel.kernels import RBF, Linear

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 4))
SIGNAL = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * RNG.normal(size=150)
HOSTILE = "<script>alert('$x$')</script>&\"'"
CLASSES = np.array(["low", "</td><img src=x onerror=alert(1)>", "high"])[np.digitize(SIGNAL, (-0.2, 0.8))]
KERNELS = [(HOSTILE, [RBF(), RBF(factor=4.0)], [0, 1]), ("other", Linear(), [2, 3])]
TRAIN, TEST = slice(0, 100), slice(100, 150)
VOID = {"meta", "br", "img", "path", "use", "rect", "image", "input"}


class Page(HTMLParser):
    """Numbers by their keys, texts by tag, and whether every element is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.numbers: dict[str, float] = {}
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, name, attributes):
        own = dict(attributes)
        self.tags.append(name)
        self.ids += [own["id"]] if "id" in own else []
        self.links += [own[key] for key in ("src", "href", "xlink:href") if key in own]
        if own.get("data-key"):
            self.numbers[own["data-key"]] = float(own["value"])
        if name not in VOID:
            self.open.append(name)

    def handle_startendtag(self, name, attributes):
        self.handle_starttag(name, attributes)
        if name not in VOID:
            self.open.pop()

    def handle_endtag(self, name):
        if name not in VOID:
            assert self.open.pop() == name

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture(scope="module")
def search():
    return MKLClassifierCV(KERNELS, Cs=[1.0, 10.0], norms=[1.0], cv=3).fit(X[TRAIN], CLASSES[TRAIN])


@pytest.fixture(scope="module")
def made(search, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "page.html"
    return report(search, X[TEST], CLASSES[TEST], path, X_train=X[TRAIN], y_train=CLASSES[TRAIN], n_bootstraps=6,
                  title=f"Title {HOSTILE}")  # fmt: skip


@pytest.fixture(scope="module")
def page(made):
    return Page(made.path.read_text(encoding="utf-8"))


def test_the_page_is_whole_and_loads_nothing(made, page):
    assert made.path.read_text(encoding="utf-8") == made.html and len(made.html) < 1_000_000
    assert page.open == [] and len(page.ids) == len(set(page.ids))
    assert {"short", "cautions", "views", "scores", "baselines", "certificate", "recipe"} <= set(page.ids)
    assert all(link.startswith(("#", "data:")) for link in page.links)
    anchors = {link[1:] for link in page.links if link.startswith("#")}
    assert anchors <= set(page.ids) and "default-src 'none'" in made.html
    assert not re.search(r"<metadata|matplotlib\.org|/tmp/|20\d\d-\d\d-\d\dT", made.html)


def test_hostile_names_are_text(made, page):
    assert page.tags.count("script") == 1 and "img" not in page.tags
    text = "".join(page.words)
    assert HOSTILE in text and "</td><img src=x onerror=alert(1)>" in text and f"Title {HOSTILE}" in text


def test_the_numbers_are_the_estimators(search, made, page):
    y, predicted, numbers = CLASSES[TEST], search.predict(X[TEST]), page.numbers
    assert numbers["test.accuracy"] == search.score(X[TEST], y) == made.scores.values["accuracy"]
    assert numbers["test.balanced accuracy"] == pytest.approx(metrics.balanced_accuracy_score(y, predicted))
    assert numbers["test.macro F1"] == pytest.approx(metrics.f1_score(y, predicted, average="macro"))
    assert numbers["test.samples"] == 50 and numbers["test.most frequent class"] == max(
        np.mean(y == label) for label in search.classes_
    )
    confusion = metrics.confusion_matrix(y, predicted, labels=search.classes_)
    recall = metrics.recall_score(y, predicted, average=None, labels=search.classes_)
    for u in range(3):
        assert numbers[f"class.{u}.recall"] == recall[u] and numbers[f"class.{u}.samples"] == confusion[u].sum()
        for v in range(3):
            assert numbers[f"confusion.{u}.{v}"] == confusion[u, v]
    for k in range(3):
        assert numbers[f"kernel.{k}.weight"] == search.weights_[k]
        assert numbers[f"kernel.{k}.contribution"] == search.kernel_contributions_[k]
    assert numbers["certificate.0.upper"] == search.objective_ and numbers["certificate.0.gap"] == search.duality_gap_
    assert numbers["certificate.0.lower"] == search.dual_objective_
    assert numbers["gain.gain"] == search.mix_gain_.gain and numbers["gain.mix"] == search.mix_gain_.mix
    for k, row in enumerate(made.importance.rows()):
        for name in ("drop", "low", "high", "selected", "weight", "contribution"):
            assert numbers[f"view.{k}.{name}"] == row[name]


def test_a_search_that_chose_one_kernel_says_so():
    y = X[:, 2] > 0
    model = MKLClassifierCV(
        [("noise", RBF(factor=0.1), [0, 1]), ("signal", Linear(), [2])], Cs=[1.0], norms=[2.0], cv=3
    )
    model.fit(X[TRAIN], y[TRAIN])
    assert model.best_params_["kernel"] == "signal"
    found = report(model, X[TEST], y[TEST], None, X_train=X[TRAIN], y_train=y[TRAIN], n_bootstraps=2)
    assert "by the kernel 'signal' alone, out of 2 kernels" in found.summary[0]
    assert "Learning the mix bought nothing: the kernel 'signal' alone scores" in " ".join(found.summary)
    assert "certified: no model of this kernel has" in " ".join(found.summary)
    assert "The drops are those of the learned mix" in found.html


def test_importance_is_that_of_the_training_samples(search, made):
    expected = view_importance(search, X[TRAIN], CLASSES[TRAIN], n_bootstraps=6, random_state=0)
    np.testing.assert_array_equal(made.importance.drop, expected.drop)
    given = report(search, X[TEST], CLASSES[TEST], None, importance=expected)
    assert given.importance is expected and given.path is None
    assert str(made).splitlines()[0].startswith("The model predicts 3 classes")


def test_without_training_samples_weights_are_shown(search):
    found = report(search, X[TEST], CLASSES[TEST], None)
    page = Page(found.html)
    assert found.importance is None and "was not computed" in found.html
    views = search.by_view()
    assert page.numbers["view.0.weight"] == pytest.approx(max(views["weight"]))
    assert not found.cautions or all(each.text for each in found.cautions)


def test_regression_and_several_targets():
    model = MKLRegressor(KERNELS).fit(X[TRAIN], SIGNAL[TRAIN])
    found = report(model, X[TEST], SIGNAL[TEST], None, X_train=X[TRAIN], y_train=SIGNAL[TRAIN], n_bootstraps=3)
    page, predicted = Page(found.html), model.predict(X[TEST])
    assert page.numbers["test.R²"] == model.score(X[TEST], SIGNAL[TEST])
    assert page.numbers["test.mean absolute error"] == metrics.mean_absolute_error(SIGNAL[TEST], predicted)
    assert page.open == [] and "baselines" not in page.ids and 'id="residuals-' in found.html
    two = np.column_stack([SIGNAL, X[:, 2]])
    model = MKLRegressor(KERNELS, loss="squared").fit(X[TRAIN], two[TRAIN])
    found = report(model, X[TEST], two[TEST], None)
    each = metrics.r2_score(two[TEST], model.predict(X[TEST]), multioutput="raw_values")
    np.testing.assert_array_equal(found.scores.by_class["R²"], each)
    assert "target 1" in found.html


def test_probabilities_many_classes_and_one_against_the_rest():
    model = MKLClassifier(KERNELS, loss="logistic").fit(X[TRAIN], SIGNAL[TRAIN] > 0)
    y = SIGNAL[TEST] > 0
    scores = report(model, X[TEST], y, None).scores.values
    assert scores["ROC AUC"] == metrics.roc_auc_score(y, model.predict_proba(X[TEST])[:, 1])
    assert scores["log loss"] == metrics.log_loss(y, model.predict_proba(X[TEST]))
    hinge = MKLClassifier(KERNELS).fit(X[TRAIN], SIGNAL[TRAIN] > 0)
    assert report(hinge, X[TEST], y, None).scores.values["ROC AUC"] == metrics.roc_auc_score(
        y, hinge.decision_function(X[TEST])
    )
    many = np.argsort(np.argsort(SIGNAL)) // 12
    model = MKLClassifier(KERNELS, multiclass="ovr").fit(X, many)
    found = report(model, X, many, None)
    page = Page(found.html)
    assert "The most frequent confusions of 13 classes" in found.html and page.open == []
    assert page.numbers["certificate.12.gap"] == model.duality_gap_[12] and "class" not in found.scores.values


def test_pipelines_baselines_and_detectors():
    model = make_pipeline(StandardScaler(), MKLClassifier(KERNELS)).fit(X[TRAIN], CLASSES[TRAIN])
    found = report(model, X[TEST], CLASSES[TEST], None, X_train=X[TRAIN], y_train=CLASSES[TRAIN], n_bootstraps=3)
    assert found.scores.values["accuracy"] == model.score(X[TEST], CLASSES[TEST])
    assert "# before it: standardscaler" in found.html
    two = TwoStageClassifier(KERNELS).fit(X[TRAIN], CLASSES[TRAIN])
    found = report(two, X[TEST], CLASSES[TEST], None, X_train=X[TRAIN], y_train=CLASSES[TRAIN])
    assert found.importance is None and "certificate" not in Page(found.html).ids
    detector = MKLOneClass(KERNELS).fit(X[TRAIN])
    inside = np.where(np.abs(X[TEST]).max(axis=1) < 2, 1, -1)
    assert report(detector, X[TEST], inside, None).scores.values["accuracy"] == np.mean(
        detector.predict(X[TEST]) == inside
    )


@pytest.mark.filterwarnings("ignore")
def test_views_tiny_classes_and_models_of_other_kinds():
    tables = {"a": X[:, :2], "b": X[:, 2:]}
    train, test = ({name: each[rows] for name, each in tables.items()} for rows in (TRAIN, TEST))
    model = MKLClassifier("rbf").fit(train, CLASSES[TRAIN])
    found = report(model, test, CLASSES[TEST], None, X_train=train, y_train=CLASSES[TRAIN], n_bootstraps=2)
    assert set(found.importance.names) == {"a", "b"}
    assert found.scores.values["accuracy"] == model.score(test, CLASSES[TEST])
    few = np.array(["u"] * 3 + ["v"] * 9)
    model = MKLClassifier(KERNELS).fit(X[:12], few)
    found = report(model, X[12:24], few, None, X_train=X[:12], y_train=few, n_bootstraps=2)
    assert found.importance is not None and "small" in [each.kind for each in found.cautions]
    alone = np.array(["u"] + ["v"] * 11)
    model = MKLClassifier(KERNELS).fit(X[:12], alone)
    assert report(model, X[12:24], alone, None, X_train=X[:12], y_train=alone).importance is None
    online = UFOMKLClassifier(KERNELS).fit(X[TRAIN], CLASSES[TRAIN])
    assert "certificate" in Page(report(online, X[TEST], CLASSES[TEST], None).html).ids
    flat = MKLRegressor(KERNELS).fit(X[TRAIN], np.ones(100))
    assert "misleading" not in [each.kind for each in report(flat, X[TEST], np.ones(50), None).cautions]


def test_what_cannot_be_reported_is_said(search, tmp_path):
    y = CLASSES[TEST]
    with pytest.raises(ValueError, match=r"must be a fitted estimator of multikernel, or a Pipeline.* Got SVC instead"):
        report(SVC(), X[TEST], y)
    with pytest.raises(ValueError, match=r"The 'y_test' parameter of report must be a target for each of 50 samples"):
        report(search, X[TEST], y[:3])
    with pytest.raises(ValueError, match="The 'importance' parameter of report must be what view_importance returns"):
        report(search, X[TEST], y, importance=3)
    with pytest.raises(ValueError, match="The 'title' parameter of report must be a text or None"):
        report(search, X[TEST], y, title=3)
    with pytest.raises(ValueError, match="The 'path' parameter of report must be the name of a file or None"):
        report(search, X[TEST], y, path=3)
    with pytest.raises(ValueError, match="needs both 'X_train' and 'y_train'"):
        report(search, X[TEST], y, X_train=X)
    with pytest.raises(
        ValueError, match=r"The 'confidence' parameter of report must be a number between 0 and 1. Got 2"
    ):
        report(search, X[TEST], y, confidence=2)
    with pytest.raises(ValueError, match="The 'path' parameter of report must be a file in an existing folder"):
        Report("", [], None, None, []).save(tmp_path / "no" / "page.html")


def test_html_escapes_what_is_not_html():
    assert tag("p", "<", Html("<b>x</b>"), None, hidden=True, title=None) == "<p hidden>&lt;<b>x</b></p>"
    assert join(["a&b", Html("&amp;")]) == "a&amp;b&amp;" and number(np.nan) == "\N{EN DASH}"
    assert number(np.float64(-0.5), ".1f") == '<data value="-0.5">\N{MINUS SIGN}0.5</data>'
    assert 'class="text">&lt;i&gt;' in table("t", [], []) + tag("td", "<i>", class_="text")
    assert names_of(list("abc")) == "a, b, c"
