"""Names of precomputed kernels: those of a test stack say which kernel of the training stack each one is."""

from __future__ import annotations

from collections.abc import Sequence


def numbered_names(p: int) -> list[str]:
    """Return the names of p kernels that were given without names."""
    return [f"kernel_{k}" for k in range(p)]


def listed(names: Sequence[str], most: int = 5) -> str:
    """Return names as a text that shows at most so many of them.

    Examples
    --------
    >>> listed(["a", "b", "c"]), listed(["a", "b", "c"], 2)
    ("'a', 'b', 'c'", "'a', 'b' and 1 more")
    """
    rest = len(names) - most
    return ", ".join(map(repr, names[:most])) + (f" and {rest} more" if rest > 0 else "")


def match_names(wanted: Sequence[str], given: Sequence[str]) -> list[int]:
    """Return the place of each wanted kernel among those given: by name, or by position where one side has no names.

    Parameters
    ----------
    wanted : sequence of str
        Names of the training stack.
    given : sequence of str
        Names of the test stack.

    Examples
    --------
    >>> match_names(["a", "b"], ["b", "a"]), match_names(["a", "b"], ["kernel_0", "kernel_1"])
    ([1, 0], [0, 1])
    >>> match_names(["a", "b"], ["b", "c"])
    Traceback (most recent call last):
        ...
    ValueError: X must hold the kernels 'a', 'b', as the stack that the model was fitted on. Got a stack that lacks \
'a' and adds 'c'.
    """
    place = {name: k for k, name in enumerate(given)}
    if place.keys() == set(wanted):
        return [place[name] for name in wanted]
    named = numbered_names(len(wanted)) != list(wanted) and numbered_names(len(given)) != list(given)
    if named:
        missing, unknown = [name for name in wanted if name not in place], sorted(place.keys() - set(wanted))
        parts = [f"{verb} {listed(names)}" for verb, names in (("lacks", missing), ("adds", unknown)) if names]
        raise ValueError(
            f"X must hold the kernels {listed(wanted)}, as the stack that the model was fitted on. "
            f"Got a stack that {' and '.join(parts)}."
        )
    if len(given) != len(wanted):
        raise ValueError(
            f"X must hold {len(wanted)} kernels, as the stack that the model was fitted on. Got {len(given)} instead."
        )
    return list(range(len(wanted)))
