"""The classes as points whose distances are those of the learned kernel on the classes: Zien & Ong 2007, Figure 4.

    d(u, v)^2 = Y_uu + Y_vv - 2 Y_uv,      Y = sum over pairs (k, m) of beta_km Y_m

The plot shows the first two principal axes of these points; `MKLClassifier` keeps all of them as ``class_embedding_``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from multikernel.inspection.style import OKABE_ITO, new_axes, text_colour

# Points nearer to each other than this share of the plotted width get one label: below, labels overlap; above, distinct
# classes look like one.
_SHARED_LABEL = 0.04


class ClassEmbeddingDisplay:
    """The plane of the two longest axes of a class embedding.

    Parameters
    ----------
    embedding : ndarray of shape (c, d)
        The points, longest axes first.
    classes : sequence of length c
        Their labels.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes drawn on.
    figure_ : matplotlib Figure
        The figure of the axes.
    points_ : matplotlib PathCollection
        The points.
    text_ : list of matplotlib Annotation
        The labels; points that nearly coincide share one.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import MKLClassifier
    >>> from multikernel.inspection import ClassEmbeddingDisplay
    >>> from multikernel.kernels import Linear, pairwise_output_kernels
    >>> X, y = np.repeat(np.eye(3), 4, axis=0), np.repeat(["a", "b", "c"], 4)
    >>> model = MKLClassifier([Linear()], multiclass="joint", output_kernels=pairwise_output_kernels(3)).fit(X, y)
    >>> display = ClassEmbeddingDisplay.from_estimator(model)
    >>> [label.get_text() for label in display.text_]
    ['a', 'b', 'c']
    """

    def __init__(self, embedding: np.ndarray, classes: Any) -> None:
        self.embedding = embedding
        self.classes = classes

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Any = None, groups: Any = None, **kwargs: Any
    ) -> ClassEmbeddingDisplay:
        """Draw the classes of a fitted `MKLClassifier` with output kernels.

        Parameters
        ----------
        estimator : MKLClassifier
            Fitted with ``output_kernels``.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        groups : sequence of length c, optional
            A group of each class, shown by colour.
        **kwargs
            For ``Axes.scatter``.

        Returns
        -------
        ClassEmbeddingDisplay
            The display.
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "class_embedding_"):
            raise ValueError(
                f"{type(estimator).__name__} must have been fitted with output_kernels. Got a model without them."
            )
        display = cls(estimator.class_embedding_, estimator.classes_)
        return display.plot(ax=ax, groups=groups, **kwargs)

    def plot(self, *, ax: Any = None, groups: Any = None, **kwargs: Any) -> ClassEmbeddingDisplay:
        """Draw the points and their labels; parameters as of `from_estimator`.

        Sets: ``ax_``, ``figure_``, ``points_``, ``text_``.
        """
        if groups is not None and np.shape(groups) != (len(self.embedding),):
            raise ValueError(
                f"The 'groups' parameter of {type(self).__name__} must hold one group for each of "
                f"{len(self.embedding)} classes. Got shape {np.shape(groups)} instead."
            )
        ax = new_axes(ax, (4.8, 4.4))
        points = np.zeros((len(self.embedding), 2))
        width = min(2, self.embedding.shape[1])
        points[:, :width] = self.embedding[:, :width]
        style: dict[str, Any] = {"s": 45, "zorder": 3, **kwargs}
        if groups is not None:
            # more groups than colours differ by no more than their order
            codes = np.unique(np.asarray(groups), return_inverse=True)[1]
            style.update(c=[OKABE_ITO[code % len(OKABE_ITO)] for code in codes])
        else:
            style.setdefault("color", OKABE_ITO[0])
        self.points_ = ax.scatter(*points.T, **style)
        centre, near = points.mean(axis=0), _SHARED_LABEL * float(np.ptp(points, axis=0).max())
        self.text_ = []
        left = list(range(len(points)))
        while left:
            point = points[left[0]]
            here = [u for u in left if np.linalg.norm(points[u] - point) <= near]
            left = [u for u in left if u not in here]
            # the label is on the side of its point away from the centre
            right, up = np.where(point >= centre, 1, -1)
            place = {"ha": "left" if right > 0 else "right", "va": "bottom" if up > 0 else "top"}
            text = "\n".join(str(self.classes[u]) for u in here)
            self.text_.append(ax.annotate(text, point, (5 * right, 4 * up), textcoords="offset points", **place))
        shares = np.sum(self.embedding**2, axis=0)
        total = max(float(shares.sum()), np.finfo(float).tiny)
        names = [f"axis {k + 1} ({100 * share / total:.0f} %)" for k, share in enumerate(shares[:2])]
        ax.set_xlabel(names[0])
        ax.set_ylabel(names[1] if len(names) > 1 else "")
        ax.set_aspect("equal", adjustable="datalim")
        ax.margins(0.2)
        ax.axhline(0.0, color=text_colour(), alpha=0.2, linewidth=0.8)
        ax.axvline(0.0, color=text_colour(), alpha=0.2, linewidth=0.8)
        self.ax_, self.figure_ = ax, ax.figure
        return self
