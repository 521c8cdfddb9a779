"""The certificate against exact arithmetic, by the checks of tests/exact.py where it is there."""

from __future__ import annotations

import importlib.util

from drill import Kind


def absent() -> str | None:
    """Return why there is nothing to run."""
    return None if importlib.util.find_spec("exact") else "the checks in exact arithmetic are not there."


def case(rng):
    """Check one random problem: a row with a true gap above the reported one is a finding."""
    from exact import check_one

    try:
        row = check_one(int(rng.integers(1 << 31)))
    except ValueError as error:
        # kernels drawn for other tasks may be centred, which one class refuses
        if "must not be centred" not in str(error):
            raise
        return "refused", None
    if "ratio" not in row:
        return "left out", None
    label = f"{row['loss']}, {row['storage']}"
    told = f"a true gap of {row['true']:.3g}, reported {row['reported']:.3g}: {row}"
    return label, told if row["ratio"] > 1 else None


KIND = Kind(
    "exactness",
    "The primal and dual values of a fitted model are computed exactly from the published numbers. A finding "
    "is a true gap above the reported one.",
    share=3,
    full=2000,
    case=case,
    absent=absent,
)
