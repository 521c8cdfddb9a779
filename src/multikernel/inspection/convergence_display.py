"""The two bounds on the optimum, iteration by iteration: the certificate as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from multikernel.inspection.style import BLUE, GREEN, VERMILION, new_axes, tidy
from multikernel.inspection.writing import MOST_SEPARATE


class ConvergenceDisplay:
    """Upper and lower bound of the optimum, or the relative gap between them.

    Parameters
    ----------
    upper, lower : arrays of shape (n_steps,)
        Best bounds so far. Of several problems: the sums of the bounds, of which a finished problem keeps its last.
    gap : array of shape (n_steps,)
        Relative gap; of several problems the largest.
    time : array of shape (n_steps,)
        Seconds.
    tol : float or None
        The gap that was asked for.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        What was drawn on.
    lines_ : list of matplotlib Line2D
        The upper and the lower bound, or the gap.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import MKLClassifier
    >>> from multikernel.inspection import ConvergenceDisplay
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> model = MKLClassifier(C=10.0).fit(X, X[:, 0] + X[:, 1] ** 2 > 0.5)
    >>> display = ConvergenceDisplay.from_estimator(model)
    >>> bool(display.upper[-1] <= model.objective_), bool(display.lower[-1] >= model.dual_objective_)
    (True, True)
    """

    def __init__(self, upper: Any, lower: Any, gap: Any, time: Any, tol: float | None = None) -> None:
        self.upper, self.lower, self.gap, self.time = (np.asarray(each, float) for each in (upper, lower, gap, time))
        self.tol = tol

    @classmethod
    def from_estimator(cls, estimator: Any, **options: Any) -> ConvergenceDisplay:
        """Draw the history of a fitted estimator.

        Parameters
        ----------
        estimator : MKLClassifier, MKLRegressor, MKLClassifierCV, ...
            Fitted, with ``history_``.
        **options
            As of `plot`.

        Returns
        -------
        ConvergenceDisplay
            The display.
        """
        check_is_fitted(estimator)
        history = getattr(estimator, "history_", None)
        runs: Sequence[Mapping[str, Any]] = [history] if isinstance(history, Mapping) else list(history or ())
        if not runs or any(not {"upper", "lower", "gap", "time"} <= set(run) for run in runs):
            raise ValueError(
                f"{cls.__name__} needs an estimator with bounds in history_. Got {type(estimator).__name__}, which has "
                "none: MKLClassifier, MKLRegressor, MKLOneClass and their searches have."
            )
        steps = max(len(run["gap"]) for run in runs)
        parts = {
            name: np.array([np.append(run[name], np.repeat(run[name][-1:], steps - len(run[name]))) for run in runs])
            for name in ("upper", "lower", "gap", "time")
        }
        return cls(
            np.minimum.accumulate(parts["upper"].sum(axis=0)), np.maximum.accumulate(parts["lower"].sum(axis=0)),
            parts["gap"].max(axis=0), parts["time"].sum(axis=0), getattr(estimator, "tol", None),
        ).plot(**options)  # fmt: skip

    def plot(self, *, ax: Any = None, quantity: str = "bounds", against: str = "iteration") -> ConvergenceDisplay:
        """Draw the bounds or the gap.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default those of a new figure.
        quantity : {"bounds", "gap"}, default="bounds"
            Both bounds, or the relative gap on a logarithmic scale.
        against : {"iteration", "time"}, default="iteration"
            What the horizontal axis has.

        Returns
        -------
        ConvergenceDisplay
            This display. Sets: ``ax_``, ``figure_``, ``lines_``.
        """
        for name, value, known in (
            ("quantity", quantity, ("bounds", "gap")),
            ("against", against, ("iteration", "time")),
        ):
            if value not in known:
                raise ValueError(
                    f"The '{name}' parameter of {type(self).__name__} must be {known[0]!r} or {known[1]!r}. "
                    f"Got {value!r} instead."
                )
        ax = new_axes(ax, (6.4, 3.6))
        steps = np.arange(1, len(self.gap) + 1) if against == "iteration" else self.time
        style = {"marker": "o" if len(steps) <= MOST_SEPARATE else "", "markersize": 3.5, "linewidth": 1.6}
        if quantity == "bounds":
            self.lines_ = [
                *ax.plot(steps, self.upper, color=VERMILION, label="upper bound: value of the model", **style),
                *ax.plot(
                    steps, self.lower, color=BLUE, linestyle="--", label="lower bound: no model is below", **style
                ),
            ]
            ax.fill_between(steps, self.lower, self.upper, color=BLUE, alpha=0.12, linewidth=0)
            ax.set_ylabel("objective")
        else:
            shown = np.where(self.gap > 0, self.gap, np.nan)
            self.lines_ = ax.plot(steps, shown, color=BLUE, label="relative gap", **style)
            ax.set_yscale("log")
            if self.tol is not None:
                ax.axhline(self.tol, color=GREEN, linestyle="--", linewidth=1.2, label=f"tol = {self.tol:g}")
            ax.set_ylabel("relative duality gap")
        ax.set_xlabel("iteration" if against == "iteration" else "seconds")
        if against == "iteration":
            ax.xaxis.get_major_locator().set_params(integer=True)
        tidy(ax, "both")
        ax.legend(fontsize="small", framealpha=0.8)
        self.ax_, self.figure_ = ax, ax.figure
        return self
