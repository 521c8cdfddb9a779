"""Single-kernel learners, one file each, with their compiled inner loops beside them."""

from __future__ import annotations

from multikernel.machines.base import ConicMachine, Curvature, Machine
from multikernel.machines.svc import SVC, SVCFit

__all__ = ["SVC", "ConicMachine", "Curvature", "Machine", "SVCFit"]
