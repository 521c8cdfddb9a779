"""Displays of weights, importance, convergence, single kernels and paths: what they draw is what was learned."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

from multikernel import MKLClassifier, MKLClassifierCV, MKLRegressor, stack_kernels
from multikernel.estimators.baselines import TwoStageClassifier
from multikernel.inspection import (
    ClassEmbeddingDisplay,
    ConvergenceDisplay,
    ImportanceDisplay,
    KernelComparisonDisplay,
    PathDisplay,
    WeightsDisplay,
)
from multikernel.kernels import RBF, Linear
from multikernel.model_selection import mkl_path

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 4))
Y = np.where(X[:, 0] + 0.5 * X[:, 1] ** 2 > 0.3, "ill", "well")
KERNELS = [("a", [RBF(factor=0.5), RBF(factor=2.0)], [0, 1]), ("$x_1$ <b>", Linear(), [2, 3])]


@pytest.fixture(autouse=True)
def closed():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


@pytest.fixture(scope="module")
def model():
    return MKLClassifier(KERNELS, C=10.0).fit(X, Y)


def names_of(display):
    return [label.get_text() for label in display.ax_.get_yticklabels()]


def made(p):
    """Importance of p views, as `view_importance` returns it."""
    drop = np.linspace(0.2, -0.05, p)
    return SimpleNamespace(names=np.array([f"view {j}" for j in range(p)]), drop=drop, low=drop - 0.04,
                           high=drop + 0.03, scorer="accuracy", confidence=0.9, by="view")  # fmt: skip


def test_weights_are_the_estimators(model):
    display = WeightsDisplay.from_estimator(model)
    widths = [bar.get_width() for bar in display.bars_]
    np.testing.assert_array_equal(widths, model.weights_[display.rows_])
    np.testing.assert_array_equal(display.points_.get_xdata(), model.kernel_contributions_[display.rows_])
    assert widths == sorted(widths, reverse=True) and "$x_1$ <b>" in names_of(display)
    views = WeightsDisplay.from_estimator(model, by="view")
    assert dict(zip(views.names, views.weights, strict=True)) == pytest.approx(
        dict(zip(model.by_view()["view"], model.by_view()["weight"], strict=True))
    )
    with pytest.raises(
        ValueError, match=r"The 'by' parameter of WeightsDisplay must be 'kernel' or 'view'. Got 'column'"
    ):
        WeightsDisplay.from_estimator(model, by="column")


def test_weights_of_a_search_have_their_range_over_the_folds():
    search = MKLClassifierCV(KERNELS, Cs=[1.0], norms=[1.0], cv=3, baselines=False).fit(X, Y)
    display = WeightsDisplay.from_estimator(search)
    np.testing.assert_array_equal(display.low, search.weights_path_[:, 0].min(axis=0))
    np.testing.assert_array_equal(display.high, search.weights_path_[:, 0].max(axis=0))
    assert "weight, range over folds" in [text.get_text() for text in display.ax_.get_legend().get_texts()]
    three = MKLClassifier(KERNELS, multiclass="ovr").fit(X, np.digitize(X[:, 0], (-0.5, 0.5)))
    np.testing.assert_allclose(WeightsDisplay.from_estimator(three).weights, three.weights_.mean(axis=0))


@pytest.mark.parametrize("p", [3, 30, 300])
def test_many_rows_are_cut_and_told(p):
    weights = np.linspace(1.0, 0.0, p)
    shown = min(p, 30)
    displays = {
        "others": WeightsDisplay([f"k{j}" for j in range(p)], weights, weights).plot(),
        "others:": ImportanceDisplay.from_importance(made(p)),
        "other kernels": KernelComparisonDisplay(
            ["learned mix", "plain sum", *[f"k{j}" for j in range(p - 2)]], RNG.uniform(size=(p, 4)), "accuracy"
        ).plot(),
    }
    for words, display in displays.items():
        assert len(display.rows_) == shown == len(names_of(display))
        assert (words in display.ax_.get_xlabel()) == (p > 30)
        assert display.figure_ is display.ax_.figure
        # letters of a row do not reach into the next one
        height = display.figure_.get_size_inches()[1] / shown
        assert height > 10.0 / 72.0


@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_text_and_axes_take_the_colours_of_the_style(style, model):
    import matplotlib.pyplot as plt

    with plt.style.context(style):
        display = ImportanceDisplay.from_importance(made(3))
        zero = display.ax_.lines[0]
        assert zero.get_color() == plt.rcParams["text.color"]
        assert ConvergenceDisplay.from_estimator(model).ax_.get_facecolor()[:3] == (
            (0.0, 0.0, 0.0) if style == "dark_background" else (1.0, 1.0, 1.0)
        )


def test_importance_says_which_views_are_sure():
    display = ImportanceDisplay.from_importance(made(6))
    points = display.ax_.collections[-1]
    blue, empty = points.get_facecolors()[0], points.get_facecolors()[-1]
    assert not np.array_equal(blue, empty) and "drop in accuracy without the view, 90 %" in display.ax_.get_xlabel()
    np.testing.assert_allclose(points.get_offsets()[:, 0], made(6).drop)


def test_importance_from_an_estimator():
    model = MKLClassifier([("a", Linear(), [0]), ("b", Linear(), [2])])
    display = ImportanceDisplay.from_estimator(model, X, X[:, 0] > 0, cv=3, n_bootstraps=4, random_state=0, max_rows=1)
    assert names_of(display) == ["a"] and len(display.importance.names) == 2


def test_the_bounds_end_at_those_of_the_model(model):
    display = ConvergenceDisplay.from_estimator(model)
    assert display.upper[-1] <= model.objective_ and display.lower[-1] >= model.dual_objective_
    assert np.all(np.diff(display.upper) <= 0) and np.all(np.diff(display.lower) >= 0)
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), display.upper)
    gap = ConvergenceDisplay.from_estimator(model, quantity="gap", against="time")
    assert gap.ax_.get_yscale() == "log" and gap.ax_.get_xlabel() == "seconds" and display.gap[-1] <= model.tol
    several = MKLClassifier(KERNELS, multiclass="ovr").fit(X, np.digitize(X[:, 0], (-0.5, 0.5)))
    both = ConvergenceDisplay.from_estimator(several)
    assert both.upper[-1] == pytest.approx(several.objective_.sum()) and both.gap[-1] == several.duality_gap_.max()


def test_what_has_no_bounds_is_refused(model):
    other = TwoStageClassifier(KERNELS).fit(X, Y)
    with pytest.raises(ValueError, match=r"needs an estimator with bounds in history_. Got TwoStageClassifier"):
        ConvergenceDisplay.from_estimator(other)
    with pytest.raises(ValueError, match="The 'quantity' parameter of ConvergenceDisplay must be 'bounds' or 'gap'"):
        ConvergenceDisplay.from_estimator(model, quantity="loss")


def test_single_kernels_are_scored_as_by_scikit_learn():
    base = MKLClassifier(KERNELS)
    display = KernelComparisonDisplay.from_estimator(base, X, Y, cv=3, scoring="balanced_accuracy")
    assert display.names == ["learned mix", "plain sum", "a: rbf(0.5)", "a: rbf(2)", "$x_1$ <b>"]
    for row, other in ((0, base), (4, MKLClassifier([KERNELS[1]])), (1, MKLClassifier(KERNELS, norm=np.inf))):
        expected = cross_val_score(other, X, Y, cv=3, scoring="balanced_accuracy")
        np.testing.assert_array_equal(display.scores[row], expected)
    stack = stack_kernels({"u": X @ X.T, "v": np.exp(-np.square(X[:, None] - X).sum(2))})
    given = KernelComparisonDisplay.from_estimator(MKLRegressor("precomputed"), stack, X[:, 0], cv=2)
    assert given.names[2:] == ["u", "v"] and given.scoring == "r2" and given.scores[0].mean() > 0.8
    callable_ = KernelComparisonDisplay.from_estimator(base, X, Y, cv=2, scoring=lambda model, X, y: 0.5)
    assert np.all(callable_.scores == 0.5)
    with pytest.raises(ValueError, match="must learn weights of kernels under a norm"):
        KernelComparisonDisplay.from_estimator(TwoStageClassifier(), X, Y)


def test_a_search_knows_its_baselines():
    search = MKLClassifierCV(KERNELS, Cs=[0.1, 1.0], norms=[1.0], cv=3).fit(X, Y)
    display = KernelComparisonDisplay.from_search(search)
    assert display.names[:2] == ["learned mix", "plain sum"] and len(display.names) == 5
    results = search.cv_results_
    alone = [i for i, point in enumerate(results["params"]) if point.get("kernel") == "$x_1$ <b>"]
    assert display.scores[4].mean() == pytest.approx(results["mean_test_score"][alone].max())
    without = MKLClassifierCV(KERNELS, Cs=[1.0], norms=[1.0], cv=2, baselines=False).fit(X, Y)
    with pytest.raises(ValueError, match="from_search needs a fitted search with baselines=True"):
        KernelComparisonDisplay.from_search(without)


def test_paths_over_C_and_norm():
    base = MKLClassifier(KERNELS)
    path = mkl_path(base, X, Y, Cs=[10.0, 0.1, 1.0])
    display = PathDisplay.from_path(path)
    assert display.ax_.get_xlabel() == "C" and display.ax_.get_xscale() == "log" and len(display.lines_) == 3
    np.testing.assert_array_equal(display.lines_[0].get_xdata(), [0.1, 1.0, 10.0])
    largest = path.weights.max(axis=0).argmax()
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), path.weights[[1, 2, 0], largest])
    norms = PathDisplay.from_estimator(base, X, Y, norms=[1.0, 2.0], max_lines=1)
    assert norms.ax_.get_xlabel() == "norm" and norms.ax_.get_legend().get_texts()[0].get_text() == "2 others"


def test_classes_of_one_group_share_a_colour():
    display = ClassEmbeddingDisplay(np.eye(3), ["u", "v", "w"]).plot(groups=[0, 1, 0])
    colours = display.points_.get_facecolors()
    assert np.array_equal(colours[0], colours[2]) and not np.array_equal(colours[0], colours[1])
