"""A fitted model explained on one page: what it learned, how sure that is, and how to make it again."""

from __future__ import annotations

import base64
import datetime
import hashlib
import os
import platform
from dataclasses import dataclass
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector
from sklearn.model_selection import check_cv

import multikernel
from multikernel.inspection.page import sections
from multikernel.inspection.page.cautions import Caution, find_cautions
from multikernel.inspection.page.given import as_samples_of, check_importance, checked_model, checked_targets
from multikernel.inspection.page.score_section import Scores, score_classes, score_numbers, scores_section
from multikernel.inspection.trials import check_count, check_share, check_work, generator
from multikernel.inspection.view_importance import ViewImportance, view_importance
from multikernel.kernels.base import is_integer

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")


@dataclass(frozen=True, eq=False)
class Report:
    """What a report says.

    Attributes
    ----------
    html : str
        The page.
    summary : list of str
        What was learned, in plain words.
    scores : Scores
        Scores on the test samples; ``scores.values`` has them by name.
    importance : ViewImportance or None
        Importance of the views.
    cautions : list of Caution
        What to look at before the model is trusted.
    path : Path or None
        Where the page was written.
    """

    html: str
    summary: list[str]
    scores: Scores
    importance: ViewImportance | None
    cautions: list[Caution]
    path: Path | None = None

    def save(self, path: str | os.PathLike) -> Path:
        """Write the page to a file; return its path."""
        target = _checked_path(path)
        target.write_text(self.html, encoding="utf-8")
        return target

    def __str__(self) -> str:
        lines = [*self.summary, *[f"- {each.kind}: {each.text} {each.advice}" for each in self.cautions]]
        return "\n".join(lines)


def report(
    model: Any,
    X_test: Any,
    y_test: Any,
    path: str | os.PathLike | None = "report.html",
    *,
    X_train: Any = None,
    y_train: Any = None,
    importance: ViewImportance | None = None,
    title: str | None = None,
    recipe: str | None = None,
    confidence: float = 0.9,
    cv: Any = 5,
    n_bootstraps: int = 50,
    n_jobs: int | None = None,
    random_state: Any = 0,
    verbose: int = 0,
) -> Report:
    """Write one self-contained HTML page about a fitted model.

    It has what was learned in plain words, warnings, the views ranked by importance with intervals, scores on new
    samples by class with the confusion matrix (of a regressor R^2 and errors), simpler models on the same folds where
    the model is a search, the certificate, and the recipe. It loads nothing from anywhere.

    Parameters
    ----------
    model : MKLClassifier, MKLRegressor, ..., a search, or a Pipeline that ends in one of them
        Fitted.
    X_test, y_test
        Samples that the model has not seen, in any form that it predicts, and their targets.
    path : str, path or None, default="report.html"
        The file to write; None writes none.
    X_train, y_train : optional
        The samples that the model was trained on: the importance of the views is computed from them by
        cross-validation. Without them, and without ``importance``, the page has weights and contributions only.
    importance : ViewImportance, optional
        What `view_importance` found already.
    title : str, optional
        Title of the page.
    recipe : str, optional
        Code or commands that made the model; by default code written from its parameters.
    confidence : float, default=0.9
        Confidence of the intervals.
    cv : int, splitter or iterable, default=5
        Folds of the importance; a number is no more than the size of the smallest class.
    n_bootstraps, n_jobs, random_state, verbose
        As of `view_importance`.

    Returns
    -------
    Report
        The page and the numbers in it; it prints as the summary.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import MKLClassifier
    >>> from multikernel.inspection import report
    >>> from multikernel.kernels import RBF
    >>> X = np.random.default_rng(0).normal(size=(120, 4))
    >>> y = X[:, 0] > 0
    >>> model = MKLClassifier([("a", RBF(), [0, 1]), ("b", RBF(), [2, 3])]).fit(X[:80], y[:80])
    >>> found = report(model, X[80:], y[80:], path=None, X_train=X[:80], y_train=y[:80], n_bootstraps=5)
    >>> found.scores.values["accuracy"] == model.score(X[80:], y[80:]), found.importance.names[0]
    (True, np.str_('a'))
    """
    owner = "report"
    last, before = checked_model(owner, model)
    X_test, X_train = as_samples_of(last, X_test), as_samples_of(last, X_train)
    y_test = checked_targets(owner, "y_test", X_test, y_test)
    if (X_train is None) != (y_train is None):
        raise ValueError(f"{owner} needs both 'X_train' and 'y_train', or neither of them. Got one.")
    check_importance(owner, importance)
    check_share(owner, "confidence", confidence)
    check_count(owner, "n_bootstraps", n_bootstraps, 0)
    check_work(owner, n_jobs, verbose)
    generator(owner, random_state)
    if is_integer(cv):
        check_count(owner, "cv", cv, 2)
    else:
        check_cv(cv)
    for name, text in (("title", title), ("recipe", recipe)):
        if text is not None and not isinstance(text, str):
            raise ValueError(f"The '{name}' parameter of {owner} must be a text or None. Got {text!r} instead.")
    if path is not None:
        _checked_path(path)
    if X_train is not None:
        y_train = checked_targets(owner, "y_train", X_train, y_train)
        if is_classifier(last) and is_integer(cv):
            cv = min(cv, int(np.unique(y_train, return_counts=True)[1].min()))
    # of a baseline, and of a class of one sample, there are no folds
    trains = hasattr(getattr(last, "_base", last), "_spec") and not (is_integer(cv) and cv == 1)
    if importance is None and X_train is not None and trains:
        importance = view_importance(
            last, X_train if before is None else before.transform(X_train), y_train, cv=cv, confidence=confidence,
            n_bootstraps=n_bootstraps, n_jobs=n_jobs, random_state=random_state, verbose=verbose,
        )  # fmt: skip
    if is_classifier(last) or is_outlier_detector(last):
        scores = score_classes(model, X_test, y_test, confidence)
    else:
        scores = score_numbers(model, X_test, y_test)
    cautions = find_cautions(model, X_test, y_test, X_train=X_train, y_train=y_train, importance=importance)
    gain = getattr(last, "mix_gain_", None)
    lines = sections.summary(last, scores, importance, gain, cautions)
    name = type(last).__name__
    parts = [
        sections.short_section(lines),
        sections.cautions_section(cautions),
        sections.views_section(last, importance),
        scores_section(scores),
        sections.baselines_section(last, gain),
        sections.certificate_section(last),
        sections.recipe_section(
            _versions(), _parameters(model), recipe or _code(model), datetime.date.today().isoformat()
        ),
    ]
    html = _page(title or f"What {name} learned", f"{name}, multikernel {multikernel.__version__}", parts)
    found = Report(html, lines, scores, importance, cautions)
    if path is None:
        return found
    return Report(html, lines, scores, importance, cautions, found.save(path))


def _checked_path(path: Any) -> Path:
    """Return the path of a page, or raise one sentence before anything is computed."""
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise ValueError(f"The 'path' parameter of report must be the name of a file or None. Got {path!r} instead.")
    if not Path(path).parent.is_dir() or Path(path).is_dir():
        raise ValueError(f"The 'path' parameter of report must be a file in an existing folder. Got '{path}' instead.")
    return Path(path)


def _page(title: str, subtitle: str, parts: list) -> str:
    folder = resources.files("multikernel.inspection.page")
    style, script = (folder.joinpath(name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    # a browser runs this script alone, and loads nothing
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    return sections.page(title, subtitle, parts, style, script, policy)


def _versions() -> dict[str, str]:
    found = {"Python": platform.python_version(), "multikernel": multikernel.__version__}
    return found | {name: version(name) for name in _PACKAGES}


def _parameters(model: Any) -> dict[str, str]:
    """Return the parameters that matter: of a search what it chose, then all that are not at their defaults."""
    last = model[-1] if hasattr(model, "steps") else model
    defaults = type(last)().get_params(deep=False)
    found = {f"chosen {name}": repr(value) for name, value in getattr(last, "best_params_", {}).items()}
    for name, value in last.get_params(deep=False).items():
        # the code has the kernels
        if name != "kernels" and repr(value) != repr(defaults.get(name)):
            found[name] = repr(value)
    return found


def _code(model: Any) -> str:
    """Return code that trains the model again, from its parameters."""
    last = model[-1] if hasattr(model, "steps") else model
    text = last.__repr__(N_CHAR_MAX=np.iinfo(np.int32).max)
    lines = ["import multikernel", f"from {type(last).__module__.rsplit('.', 1)[0]} import {type(last).__name__}"]
    if not last._precomputed and not isinstance(last.kernels, str):
        lines.append("from multikernel.kernels import *")
    if last is not model:
        lines.append(f"# before it: {', '.join(name for name, _ in model.steps[:-1])}")
    call = "multikernel.inspection.report(model, X_test, y_test, X_train=X_train, y_train=y_train)"
    return "\n".join([*lines, f"model = {text}", "model.fit(X_train, y_train)", call])
