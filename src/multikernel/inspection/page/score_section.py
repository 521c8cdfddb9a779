"""How well a model predicts samples it has not seen: numbers, and the part of the page that shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import norm as normal
from sklearn import metrics

from multikernel.inspection.page.html import Column, Html, framed, join, number, section, table, tag
from multikernel.inspection.page.pictures import picture
from multikernel.inspection.style import BLUE, short_name, text_colour, tidy
from multikernel.inspection.writing import MOST_SEPARATE

_MEANING = {
    "accuracy": "Share of the samples whose class is predicted right.",
    "balanced accuracy": "Mean over the classes of the share predicted right: small classes count as much.",
    "macro F1": "Mean over the classes of F1, the harmonic mean of precision and recall.",
    "ROC AUC": "Chance that the model ranks a sample of a class above one of another class; 0.5 is guessing.",
    "log loss": "Mean negative logarithm of the probability given to the true class; smaller is better.",
    "most frequent class": "Accuracy of always naming the class that is most frequent among these samples.",
    "R²": "Share of the variance of the targets that the predictions explain; 0 for always predicting their mean.",
    "mean absolute error": "Mean distance of prediction and target, in the units of the target.",
    "root mean squared error": "Root of the mean squared distance, in units of the target: large errors count more.",
    "median absolute error": "Half of the predictions are nearer to the target than this.",
    "deviation of the targets": "Root mean squared error of always predicting the mean of these targets.",
}


@dataclass(frozen=True)
class Scores:
    """Scores on test samples.

    Attributes
    ----------
    task : {"classification", "regression"}
        What was predicted.
    n_samples : int
        Number of test samples.
    values : dict
        The scores by name.
    interval : (float, float) or None
        Wilson interval of the accuracy.
    confidence : float
        Its confidence.
    labels : list
        The classes, of the model and of the test samples.
    confusion : ndarray of int, shape (c, c), or None
        How many samples of each class (rows) were taken for each class (columns).
    by_class : dict of arrays
        precision, recall, F1 and samples by class; R² by target where there are several.
    observed, predicted : ndarrays
        Targets and predictions.
    """

    task: str
    n_samples: int
    values: dict[str, float]
    interval: tuple[float, float] | None = None
    confidence: float = 0.9
    labels: list[Any] = field(default_factory=list)
    confusion: np.ndarray | None = None
    by_class: dict[str, np.ndarray] = field(default_factory=dict)
    observed: np.ndarray | None = None
    predicted: np.ndarray | None = None


def wilson(right: int, n: int, confidence: float) -> tuple[float, float]:
    """Return the interval of Wilson for a share of ``right`` among n.

    Examples
    --------
    >>> [round(each, 3) for each in wilson(8, 10, 0.9)]
    [0.541, 0.931]
    """
    z = float(normal.ppf(0.5 + 0.5 * confidence))
    share, width = right / n, z * z / n
    centre = (share + 0.5 * width) / (1.0 + width)
    reach = z * np.sqrt(share * (1.0 - share) / n + 0.25 * width / n) / (1.0 + width)
    return float(centre - reach), float(centre + reach)


def score_classes(model: Any, X: Any, y: Any, confidence: float) -> Scores:
    """Return the scores of a classifier, or of a detector of outliers with targets 1 and -1."""
    y, predicted = np.asarray(y), np.asarray(model.predict(X))
    known = list(getattr(model, "classes_", np.unique(predicted)))
    labels = known + [each for each in np.unique(y) if each not in known]
    confusion = metrics.confusion_matrix(y, predicted, labels=labels)
    precision, recall, F1, support = metrics.precision_recall_fscore_support(
        y, predicted, labels=labels, zero_division=0.0
    )
    right, n, there = int(np.trace(confusion)), len(y), support > 0
    values = {
        "accuracy": float(metrics.accuracy_score(y, predicted)),
        "balanced accuracy": float(recall[there].mean()),
        "macro F1": float(F1[there].mean()),
    }
    # ranks need every class of the model among the samples, and no other
    if there[: len(known)].all() and len(labels) == len(known) > 1:
        values |= _ranked(model, X, y, known)
    values["most frequent class"] = float(support.max() / n)
    # a class without samples has no recall, and one that is never named no precision
    recall, F1 = (np.where(there, each, np.nan) for each in (recall, F1))
    precision = np.where(confusion.any(axis=0), precision, np.nan)
    by_class = {"precision": precision, "recall": recall, "F1": F1, "samples": support}
    return Scores("classification", n, values, wilson(right, n, confidence), confidence, labels, confusion, by_class)


def _ranked(model: Any, X: Any, y: np.ndarray, known: list) -> dict[str, float]:
    """Return scores of probabilities or decision values, where the model has them."""
    if hasattr(model, "predict_proba"):
        shares = np.asarray(model.predict_proba(X))
        area = metrics.roc_auc_score(y, shares[:, 1] if len(known) == 2 else shares, multi_class="ovr")
        return {"ROC AUC": float(area), "log loss": float(metrics.log_loss(y, shares, labels=known))}
    if hasattr(model, "decision_function") and len(known) == 2:
        return {"ROC AUC": float(metrics.roc_auc_score(y == known[1], np.asarray(model.decision_function(X))))}
    return {}


def score_numbers(model: Any, X: Any, y: Any) -> Scores:
    """Return the scores of a regressor; with several targets means over them, and R² of each."""
    y, predicted = np.asarray(y, float), np.asarray(model.predict(X), float)
    by_target = {}
    if y.ndim == 2 and y.shape[1] > 1:
        by_target = {"R²": np.asarray(metrics.r2_score(y, predicted, multioutput="raw_values"))}
    values = {
        "R²": float(metrics.r2_score(y, predicted)),
        "mean absolute error": float(metrics.mean_absolute_error(y, predicted)),
        "root mean squared error": float(np.mean(metrics.root_mean_squared_error(y, predicted))),
        "median absolute error": float(metrics.median_absolute_error(y, predicted)),
        "deviation of the targets": float(np.mean(np.std(y, axis=0))),
    }
    return Scores("regression", len(y), values, by_class=by_target, observed=y, predicted=predicted)


# ---- the page


def scores_section(found: Scores) -> Html:
    """Return the part of the page."""
    rows = []
    for name, value in found.values.items():
        interval = None
        if name == "accuracy" and found.interval is not None:
            interval = join([number(found.interval[0]), " to ", number(found.interval[1])])
        rows.append(
            [
                tag("span", name, data_tip=_MEANING[name], tabindex=0),
                number(value, ".4g", f"test.{name}"),
                interval or "",
            ]
        )
    columns = [Column("score"), Column("value")]
    if found.interval is not None:
        columns.append(
            Column(
                f"{100 * found.confidence:g} % interval",
                "Wilson's interval: about this share of such intervals hold the accuracy on all samples of the kind.",
            )
        )
    else:
        rows = [row[:2] for row in rows]
    intro = tag(
        "p",
        "Scores on ",
        number(found.n_samples, "d", "test.samples"),
        " samples that the report was given for testing.",
    )
    parts = [table("Scores on the test samples", columns, rows, sortable=False)]
    if found.confusion is not None:
        parts += [_by_class(found), _confusion(found)]
    else:
        if found.by_class:
            rows = [[f"target {t}", number(value, ".4g")] for t, value in enumerate(found.by_class["R²"])]
            parts.append(table("Targets", [Column("target"), Column("R²", _MEANING["R²"])], rows))
        parts.append(_residuals(found))
    return section("scores", "Scores on new samples", intro, *parts)


def _by_class(found: Scores) -> Html:
    tips = {
        "precision": "Of the samples that were taken for this class, the share that belong to it.",
        "recall": "Of the samples of this class, the share that were taken for it.",
        "F1": "Harmonic mean of precision and recall.",
        "samples": "Number of test samples of this class.",
    }
    columns = [Column("class"), *[Column(name, tip) for name, tip in tips.items()]]
    rows = [
        [
            str(label),
            *[
                number(found.by_class[name][c], "d" if name == "samples" else ".3f", f"class.{c}.{name}")
                for name in tips
            ],
        ]
        for c, label in enumerate(found.labels)
    ]
    return table("Scores by class", columns, rows)


def _confusion(found: Scores) -> Html:
    """Return the confusion matrix; of many classes the pairs that are confused most often."""
    counts, labels = found.confusion, [str(label) for label in found.labels]
    assert counts is not None
    if counts.size > MOST_SEPARATE:
        wrong = counts * (1 - np.eye(len(labels), dtype=int))
        worst = np.argsort(-wrong, axis=None, kind="stable")[:MOST_SEPARATE]
        pairs = [divmod(int(at), len(labels)) for at in worst if wrong.flat[at] > 0]
        rows = [[labels[u], labels[v], number(wrong[u, v], "d")] for u, v in pairs]
        columns = [Column("class"), Column("taken for"), Column("samples")]
        return table(f"The most frequent confusions of {len(labels)} classes", columns, rows)
    totals = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    head = [tag("th", "class", scope="col"), *[tag("th", f"taken for {each}", scope="col") for each in labels]]
    body = []
    for u, label in enumerate(labels):
        cells = []
        for v in range(len(labels)):
            share = counts[u, v] / totals[u, 0]
            part = f"{counts[u, v]} of {counts[u].sum()} samples of {label} ({100 * share:.0f} %)"
            tip = f"{part} were taken for {labels[v]}."
            shown = number(counts[u, v], "d", f"confusion.{u}.{v}")
            cells.append(
                tag("td", shown, class_="right" if u == v else None, data_tip=tip,
                    style=f"background: rgba(var(--shade), {0.55 * share:.3f})")
            )  # fmt: skip
        body.append(tag("tr", tag("th", label, scope="row"), *cells))
    caption = "Confusion matrix: samples of each class (rows) and the class they were taken for (columns)"
    return framed(caption, tag("thead", tag("tr", *head)), tag("tbody", *body), class_="matrix")


def _residuals(found: Scores) -> Html:
    def draw(ax: Any) -> None:
        y, f = (np.ravel(np.asarray(each, float)) for each in (found.observed, found.predicted))
        ends = [min(y.min(), f.min()), max(y.max(), f.max())]
        ax.plot(ends, ends, color=text_colour(), linewidth=1.0, linestyle="--")
        ax.scatter(y, f, s=14, color=BLUE, alpha=0.6, linewidths=0, rasterized=True)
        ax.set(xlabel="observed", ylabel="predicted")
        tidy(ax, "both")

    return picture(
        draw, (4.4, 4.0), "residuals", "Predictions against the targets: points on the dashed line are right."
    )


def names_of(labels: Sequence[Any], most: int = 6) -> str:
    """Return the first labels in words.

    Examples
    --------
    >>> names_of(["a", "b"]), names_of(range(9))
    ('a, b', '0, 1, 2, 3, 4, 5 and 3 more')
    """
    shown = ", ".join(short_name(label) for label in labels[:most])
    return f"{shown} and {len(labels) - most} more" if len(labels) > most else shown
