"""The sections of the report that are about the model: what it learned, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from multikernel.estimators.weights_table import views_of, weight_columns
from multikernel.inspection.convergence_display import ConvergenceDisplay
from multikernel.inspection.kernel_comparison import KernelComparisonDisplay
from multikernel.inspection.page.cautions import TITLES, Caution, view_shares
from multikernel.inspection.page.html import Column, Html, join, number, section, table, tag
from multikernel.inspection.page.pictures import picture
from multikernel.inspection.page.score_section import Scores, names_of
from multikernel.inspection.view_display import ImportanceDisplay
from multikernel.inspection.weights_display import WeightsDisplay

_WEIGHT = Column(
    "weight", "How much of the kernel the mix takes. It is no importance: narrow kernels get large weights."
)
_PART = Column(
    "contribution",
    "Covariance of what the kernel adds with the decision, divided by the variance of the decision, on the training "
    "samples. It may be negative.",
)


def percent(share: float) -> str:
    """Return a share in per cent.

    Examples
    --------
    >>> percent(0.8137)
    '81.4 %'
    """
    return f"{100 * share:.1f} %"


def summary(last: Any, scores: Scores, importance: Any, gain: Any, cautions: Sequence[Caution]) -> list[str]:
    """Return what was learned in plain words, a sentence or two each."""
    weights = np.atleast_2d(last.weights_)
    used, views = int(np.count_nonzero(weights.any(axis=0))), list(dict.fromkeys(views_of(last)))
    seen = f"{len(views)} views ({names_of(views)})" if len(views) > 1 else "one set of columns"
    what = "a number" if scores.task == "regression" else f"{len(scores.labels)} classes ({names_of(scores.labels)})"
    mix = f"the kernel '{alone}' alone," if (alone := _alone(last)) else f"a mix of {used}"
    lines = [f"The model predicts {what} from {seen}, by {mix} out of {weights.shape[1]} kernels."]
    if scores.task == "classification":
        low, high = scores.interval or (0.0, 1.0)
        lines.append(
            f"On {scores.n_samples} new samples it is right for {percent(scores.values['accuracy'])} "
            f"({100 * scores.confidence:g} % interval: {percent(low)} to {percent(high)}). Always naming the most "
            f"frequent class would be right for {percent(scores.values['most frequent class'])}."
        )
    else:
        lines.append(
            f"On {scores.n_samples} new samples it explains {percent(scores.values['R²'])} of the variance of the "
            f"target; a prediction is off by {scores.values['mean absolute error']:.3g} on average."
        )
    if importance is not None:
        lines.append(_importance_words(importance))
    if gain is not None:
        error, best = f"(standard error {gain.standard_error:.3f})", gain.best_baseline
        chance = f"{'more' if abs(gain.gain) > 2.0 * gain.standard_error else 'no more'} than chance explains"
        lines.append(
            f"Learning the mix bought {gain.gain:+.3f} over {best} {error}: {chance}."
            if gain.gain >= 0
            else f"Learning the mix bought nothing: {best} scores {-gain.gain:.3f} more {error}, {chance}. "
            f"The search chose {gain.chosen}."
        )
    gap = float(np.max(last.duality_gap_)) if hasattr(last, "duality_gap_") else None
    if gap is not None:
        lines.append(
            f"The training is certified: no model of {'this kernel' if alone else 'a mix of these kernels'} has an "
            f"objective that is better by more than {100 * gap:.2g} %."
        )
    count = len(cautions)
    lines.append(
        "Nothing was found that speaks against the model."
        if not count
        else f"{count} thing{'s' if count > 1 else ''} to look at before it is trusted: see below."
    )
    return lines


def _alone(last: Any) -> str | None:
    """Return the name of the kernel that a search chose alone, None where it learned a mix."""
    return getattr(last, "best_params_", {}).get("kernel")


def _importance_words(found: Any) -> str:
    needed = [k for k in range(len(found.names)) if found.low[k] > 0]
    if not needed:
        return (
            f"No single {found.by} is needed: without any one of them the cross-validated {found.scorer} "
            f"({found.score:.3f}) drops by no more than chance explains. They may stand in for each other."
        )
    words = [f"{found.names[k]} ({found.drop[k]:.3f}, {found.low[k]:.3f} to {found.high[k]:.3f})" for k in needed]
    rest = len(found.names) - len(needed)
    others = f" For {rest} other{'s' if rest > 1 else ''} no drop can be told from chance." if rest else ""
    return (
        f"The cross-validated {found.scorer} is {found.score:.3f}. It drops without {names_of(words)} "
        f"[{100 * found.confidence:g} % intervals].{others}"
    )


def short_section(lines: Sequence[str]) -> Html:
    """Return the first section: the model in plain words."""
    return section("short", "In short", tag("div", *[tag("p", line) for line in lines], class_="short"))


def cautions_section(cautions: Sequence[Caution]) -> Html:
    """Return the section of warnings."""
    if not cautions:
        return section("cautions", "Warnings", tag("p", "None of the checks found anything."))
    items = [
        tag(
            "li",
            tag(
                "p",
                tag("strong", f"{TITLES[each.kind]}. "),
                each.text,
                " ",
                tag("span", each.advice, class_="soft"),
            ),
        )
        for each in cautions
    ]
    return section("cautions", "Warnings", tag("ul", *items, class_="cautions"))


def views_section(last: Any, importance: Any) -> Html:
    """Return the section about views and kernels: first the drop in score, then weights and contributions."""
    parts: list[Html] = []
    if importance is not None:
        share = f"{100 * importance.confidence:g} %"
        drop = Column(
            "drop", f"Mean drop of the cross-validated {importance.scorer} when the {importance.by} is left out."
        )
        columns = [
            Column(importance.by), drop, Column("from", f"Lower end of the {share} interval of the drop."),
            Column("to", f"Upper end of the {share} interval of the drop."),
            Column("selected", "Share of the bootstraps in which it has a weight that is not zero."), _WEIGHT, _PART,
        ]  # fmt: skip
        keys = ("drop", "low", "high", "selected", "weight", "contribution")
        rows = [
            [row[importance.by], *[number(row[key], key=f"view.{k}.{key}") for key in keys]]
            for k, row in enumerate(importance.rows())
        ]
        caption = f"Drop in {importance.scorer} without each {importance.by}, the largest first"
        tips = _importance_tips(importance)
        if _alone(last):
            parts.append(
                tag("p", "The search chose one kernel alone. The drops are those of the learned mix of all kernels.")
            )
        parts += [
            tag("p", "The first number to look at is the drop: the model was trained again without each view, on the "
                "same folds. An interval that holds zero means that the drop may be chance."),
            picture(lambda ax: ImportanceDisplay(importance).plot(ax=ax), _rows_size(len(rows)), "importance",
                    f"{caption}, with {share} intervals.", tips),
            table(caption, columns, rows),
        ]  # fmt: skip
    else:
        parts.append(
            tag("p", "How much each view matters was not computed: it needs the training samples (",
                tag("code", "X_train"), " and ", tag("code", "y_train"),
                " of the report). Weights and contributions below are no substitute.")
        )  # fmt: skip
        shares = dict(sorted(view_shares(last).items(), key=lambda each: -each[1][0]))
        rows = [
            [view, number(w, key=f"view.{k}.weight"), number(c, key=f"view.{k}.contribution")]
            for k, (view, (w, c)) in enumerate(shares.items())
        ]
        parts.append(table("Weights and contributions of the views", [Column("view"), _WEIGHT, _PART], rows))
    return section("views", "Views and kernels", *parts, _kernels(last))


def _rows_size(rows: int) -> tuple[float, float]:
    """Return the size of a picture of so many rows, of which a display draws the first 30."""
    return 4.7, 1.2 + 0.28 * min(max(rows, 2), 30)


def _importance_tips(found: Any) -> list[str]:
    return [
        f"{name}: drop {drop:.3f}, from {low:.3f} to {high:.3f}"
        for name, drop, low, high in zip(found.names, found.drop, found.low, found.high, strict=True)
    ]


def _kernels(last: Any) -> Html:
    columns = weight_columns(last)
    heads = [Column("kernel"), *([Column("problem")] if "problem" in columns else []), Column("view"), _WEIGHT, _PART]
    names = [each.heading for each in heads]
    rows = []
    for k, values in enumerate(zip(*[columns[name] for name in names], strict=True)):
        cells = [
            number(value, ".4f", f"kernel.{k}.{name}") if name in ("weight", "contribution") else value
            for name, value in zip(names, values, strict=True)
        ]
        rows.append((-values[names.index("weight")], k, cells))
    rows.sort(key=lambda row: row[:2])
    display = WeightsDisplay(*_mean_weights(last))
    drawn = picture(lambda ax: display.plot(ax=ax), _rows_size(len(display.names)), "weights",
                    "Weights and contributions of the kernels, the largest weights first.",
                    _weight_tips(display))  # fmt: skip
    label = f"All {len(last.kernel_names_)} kernels with weights and contributions"
    return tag(
        "details", tag("summary", label), drawn, table(f"Kernels ({len(rows)})", heads, [row[2] for row in rows])
    )


def _mean_weights(last: Any) -> tuple[list[str], np.ndarray, np.ndarray]:
    weights = np.atleast_2d(last.weights_).mean(axis=0)
    parts = np.atleast_2d(getattr(last, "kernel_contributions_", np.full(len(weights), np.nan))).mean(axis=0)
    return list(last.kernel_names_), weights, parts


def _weight_tips(display: WeightsDisplay) -> list[str]:
    return [
        f"{name}: weight {weight:.3f}, contribution {part:.3f}"
        for name, weight, part in zip(display.names, display.weights, display.contributions, strict=True)
    ]


def baselines_section(last: Any, gain: Any) -> Html | None:
    """Return the section that compares the mix with the plain sum and single kernels; None without a search of them."""
    found = KernelComparisonDisplay.scores_of(last)
    if found is None:
        return None
    names, scores, scoring = found
    mean = scores.mean(axis=1)
    error = scores.std(axis=1, ddof=1) / np.sqrt(scores.shape[1]) if scores.shape[1] > 1 else np.full(len(mean), np.nan)
    rows = [[name, number(mean[k], ".4f", f"baseline.{k}"), number(error[k], ".4f")] for k, name in enumerate(names)]
    display = KernelComparisonDisplay(names, scores, scoring)
    tips = [f"{name}: {mean[k]:.3f} ± {error[k]:.3f}" for k, name in enumerate(names)]
    columns = [
        Column("what is trained"),
        Column(scoring.replace("_", " "), "Mean over the folds of the search, each at its own best C."),
        Column("standard error", "Standard deviation over the folds, divided by the root of their number."),
    ]  # fmt: skip
    words = None
    if gain is not None:
        words = tag(
            "p", "On folds that had no part in choosing them the best mix scored ", number(gain.mix, key="gain.mix"),
            " and the best baseline ", number(gain.baseline, key="gain.baseline"), ": learning the mix bought ",
            number(gain.gain, "+.3f", "gain.gain"), " (standard error ",
            number(gain.standard_error, ".4f", "gain.error"),
            f"). Over all folds the best baseline is {gain.best_baseline}; the search chose {gain.chosen}.",
        )  # fmt: skip
    drawn = picture(lambda ax: display.plot(ax=ax), _rows_size(len(names)), "baselines",
                    "The learned mix, the plain sum and each kernel alone, on the same folds.", tips)  # fmt: skip
    return section("baselines", "Against simpler models", words, drawn, table("Baselines", columns, rows))


def certificate_section(last: Any) -> Html | None:
    """Return the section about the bounds; None for a model without them."""
    if not hasattr(last, "duality_gap_") or not hasattr(last, "dual_objective_"):
        return None
    upper, lower, gap = (
        np.atleast_1d(getattr(last, name)) for name in ("objective_", "dual_objective_", "duality_gap_")
    )
    status, steps = np.atleast_1d(last.status_), np.atleast_1d(last.n_iter_)
    labels = weight_columns(last).get("problem")
    names = list(dict.fromkeys(labels)) if labels else ["the model"]
    rows = [
        [name, number(upper[t], ".6g", f"certificate.{t}.upper"), number(lower[t], ".6g", f"certificate.{t}.lower"),
         number(gap[t], ".2g", f"certificate.{t}.gap"), number(steps[t], "d"), str(status[t])]
        for t, name in enumerate(names)
    ]  # fmt: skip
    columns = [
        Column("problem"), Column("objective", "Value of the model: an upper bound of the optimum."),
        Column("lower bound", "No mix of these kernels and no coefficients reach a smaller objective."),
        Column("relative gap", "Distance of the two bounds, relative to the objective."),
        Column("iterations"), Column("status", "converged or settled: the gap that was asked for is reached."),
    ]  # fmt: skip
    worst = float(gap.max())
    words = tag(
        "p", "Both bounds are computed from the kernels in double precision. The objective is within "
        f"{100 * worst:.2g} % of the best possible one; asked for were {100 * last.tol:.2g} %. "
        f"Solver: {getattr(last, 'solver_', type(last).__name__)}.",
    )  # fmt: skip
    parts: list[Any] = [words, table("Bounds on the optimum", columns, rows)]
    if getattr(last, "history_", None):
        parts.append(picture(lambda ax: ConvergenceDisplay.from_estimator(last, ax=ax), (4.7, 3.2), "bounds",
                             "Both bounds, iteration by iteration: they meet at the optimum."))  # fmt: skip
    return section("certificate", "Certificate", *parts)


def recipe_section(versions: dict[str, str], parameters: dict[str, str], code: str, date: str) -> Html:
    """Return the section that says how to make the model again."""
    rows = [[name, value] for name, value in versions.items()]
    chosen = [[name, tag("code", value)] for name, value in parameters.items()]
    return section(
        "recipe", "How to make it again", tag("p", f"Report of {date}."), tag("pre", tag("code", code), tabindex=0),
        table("Parameters", [Column("parameter"), Column("value")], chosen, sortable=False),
        table("Versions", [Column("package"), Column("version")], rows, sortable=False),
    )  # fmt: skip


def page(title: str, subtitle: str, sections: Sequence[Html | None], style: str, script: str, policy: str) -> str:
    """Return the whole page."""
    shown = [each for each in sections if each is not None]
    links = []
    for each in shown:
        anchor = each.split('id="', 1)[1].split('"', 1)[0]
        heading = each.split("</h2>", 1)[0].rsplit(">", 1)[1]
        links.append(tag("li", tag("a", Html(heading), href=f"#{anchor}")))
    head = join([
        Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        tag("title", title), tag("style", Html(style)),
    ])  # fmt: skip
    body = join([
        tag("a", "Skip to the content", href="#content", class_="skip"),
        tag("header", tag("h1", title), tag("p", subtitle, class_="soft"),
            tag("nav", tag("ul", *links), aria_label="Sections")),
        tag("main", *shown, id="content"),
        tag("footer", tag("p", "Made by multikernel. The page is complete in itself and loads nothing.")),
        tag("div", id="tip", role="tooltip", hidden=True),
        tag("script", Html(script)),
    ])  # fmt: skip
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>{body}</body></html>\n'
