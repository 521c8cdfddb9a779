"""The margin of a mix of kernels, its largest value, and the sets of weights that hold it to a level."""

from multikernel.margins.largest import Largest, largest_margin
from multikernel.margins.mixing import MarginBall, MarginSimplex, margin_mixing
from multikernel.margins.table import MarginTable, SmallestMargins, margin_table

__all__ = [
    "Largest",
    "MarginBall",
    "MarginSimplex",
    "MarginTable",
    "SmallestMargins",
    "largest_margin",
    "margin_mixing",
    "margin_table",
]
