"""Kernel margins, and bounds on the error that use them, after Cortes, Mohri & Rostamizadeh 2013."""

from multikernel.theory.bounds import (
    Bound,
    confidence_term,
    margin_bound,
    margin_loss,
    mixing_bound,
    moment_factor,
    proposition_bound,
    trace_term,
)
from multikernel.theory.hstar import HStar, h_star
from multikernel.theory.margin import kernel_margin, margin_coefficients
from multikernel.theory.report import BoundReport, bound_report

__all__ = [
    "Bound",
    "BoundReport",
    "HStar",
    "bound_report",
    "confidence_term",
    "h_star",
    "kernel_margin",
    "margin_bound",
    "margin_coefficients",
    "margin_loss",
    "mixing_bound",
    "moment_factor",
    "proposition_bound",
    "trace_term",
]
