"""The problem of M3K: all classes at once, the weights held to a kernel margin (Cortes et al. 2013, (6) and (7))."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from multikernel.gram.base import Gram
from multikernel.mixing.base import Mixing
from multikernel.mixing.largest_margin import Largest, largest_margin
from multikernel.mixing.margin_sets import margin_mixing
from multikernel.mixing.margin_table import MarginTable, margin_table
from multikernel.mixing.norms import mixing_for
from multikernel.training.core import Prepared, Target
from multikernel.training.targets import Classification


@dataclass(frozen=True)
class Margins:
    """The margins of the kernels of a Gram, and the largest margin of a mix for each norm asked for."""

    gram: Gram
    table: MarginTable
    largest: Mapping[float, Largest]


@dataclass(frozen=True)
class MarginClassification(Classification):
    """The joint problem with a kernel margin.

    Attributes
    ----------
    gamma0, gamma0_fraction
        As the parameters of `M3KClassifier`.
    margins : Margins or None
        Margins of the kernels, where they are known.
    """

    gamma0: Any = "max"
    gamma0_fraction: float | None = None
    margins: Margins | None = None

    def with_margins(self, prepared: Prepared, norms: Iterable[float]) -> MarginClassification:
        """Return the specification with the margins of the kernels, for problems of several norms."""
        table = margin_table(prepared.gram, self.codes, self.weight, len(self.classes))
        largest = {norm: largest_margin(table, norm) for norm in set(norms)}
        return replace(self, margins=Margins(prepared.gram, table, largest))

    def on_kernels(self, prepared: Prepared, points: Sequence[Mapping[str, Any]]) -> MarginClassification:
        return self.with_margins(prepared, [point.get("norm", self.norm) for point in points])

    def __call__(self, prepared: Prepared) -> Sequence[Target]:
        """Return the one problem."""
        # a kernel that was repaired on the way makes another Gram
        if self.margins is None or self.margins.gram is not prepared.gram or self.norm not in self.margins.largest:
            return self.with_margins(prepared, [self.norm])(prepared)
        largest = self.margins.largest[self.norm]
        gamma0, unit = self._level(largest, prepared.unit), prepared.unit
        mixing: Mixing = mixing_for(self.norm)
        if gamma0 > -np.inf:
            mixing = margin_mixing(self.norm, self.margins.table, gamma0, largest)
        notes = {"gamma0": gamma0 * unit, "gamma0_max": largest.value * unit, "margins": self.margins.table}
        return [replace(target, mixing=mixing, notes=notes) for target in super().__call__(prepared)]

    def _level(self, largest: Largest, unit: float) -> float:
        """Return gamma0 in units of the kernels, or raise where no weights have it."""
        top = largest.value
        if self.gamma0_fraction is not None:
            gamma0 = top - (1.0 - float(self.gamma0_fraction)) * abs(top)
        else:
            gamma0 = top if isinstance(self.gamma0, str) else float(self.gamma0) / unit
        if gamma0 > largest.bound + 1e-9 * abs(largest.bound):
            raise ValueError(
                f"The 'gamma0' parameter of {self.owner} must be at most {top * unit:.9g}, the largest kernel margin "
                f"of weights of norm {self.norm:g}. Got {float(self.gamma0):g} instead."
            )
        if self.norm > 1 and gamma0 > -np.inf and (gamma0 < 0 or not largest.positive):
            what = (
                f"gamma0={gamma0 * unit:.4g}" if largest.positive else "kernels of which no mix has a positive margin"
            )
            raise ValueError(
                f"The 'norm' parameter of {self.owner} must be 1 where the margin is negative: the set ||weights|| <= "
                f"1 would hold weights of zero. Got norm={self.norm:g} with {what} instead."
            )
        return min(gamma0, top)
