"""Single-kernel learners, one file each, with their compiled inner loops beside them."""

from __future__ import annotations

from multikernel.machines.base import ConicMachine, Curvature, Machine
from multikernel.machines.joint.crammer_singer import CrammerSinger
from multikernel.machines.joint.joint_loss import JointLoss
from multikernel.machines.oneclass import OneClass
from multikernel.machines.svc import SVC, SVCFit
from multikernel.machines.svr import SVR

__all__ = ["SVC", "SVR", "ConicMachine", "CrammerSinger", "Curvature", "JointLoss", "Machine", "OneClass", "SVCFit"]
