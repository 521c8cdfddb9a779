"""Where the weights live: the simplex, balls, the plain sum, and sets that hold a kernel margin."""

from multikernel.mixing.base import Mixing
from multikernel.mixing.cones import ConeRows
from multikernel.mixing.largest_margin import Largest, largest_margin
from multikernel.mixing.margin_sets import MarginBall, MarginSimplex, margin_mixing
from multikernel.mixing.margin_table import MarginTable, SmallestMargins, margin_table
from multikernel.mixing.norms import Ball, PlainSum, Simplex, mixing_for

__all__ = [
    "Ball", "ConeRows", "Largest", "MarginBall", "MarginSimplex", "MarginTable", "Mixing", "PlainSum", "Simplex",
    "SmallestMargins", "largest_margin", "margin_mixing", "margin_table", "mixing_for",
]  # fmt: skip
