"""Several views of the same samples as one X: made from what people have, encoded and completed on training samples."""

from multikernel.kernels.views.groups import column_groups as column_groups
from multikernel.kernels.views.groups import read_gmt as read_gmt
from multikernel.kernels.views.proposal import make_views as make_views
from multikernel.kernels.views.views import Views as Views

__all__ = ["Views", "column_groups", "make_views", "read_gmt"]
