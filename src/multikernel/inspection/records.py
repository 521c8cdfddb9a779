"""The file of results of a comparison: one line of JSON per fit.

The first line holds fingerprints of the data, the splits, the scorer and the kernels; every other line is one fit. A
line is written and flushed as soon as its fit ends, so that a killed run loses only the fit it was working on.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from multikernel.gram.stack import KernelStack

# first characters of a file of results
_HEAD = '{"protocol"'

# what every result has
_RESULT = {"method", "fold", "key", "error"}

_WORDS = {"data": "the data", "splits": "the splits of cv", "scoring": "the scorer", "kernels": "the kernels"}


def fingerprint(*parts: Any) -> str:
    """Return a short text that differs when arrays, stacks, frames, or the texts of anything else differ.

    Examples
    --------
    >>> import numpy as np
    >>> fingerprint(np.arange(3)) == fingerprint(np.arange(3)), fingerprint([1]) == fingerprint([2])
    (True, False)
    """
    digest = hashlib.sha256()
    for part in parts:
        for piece in _pieces(part):
            digest.update(piece)
    return digest.hexdigest()[:16]


def _pieces(part: Any):
    if isinstance(part, KernelStack):
        yield repr((part.shape, part.names)).encode()
        for k in range(part.shape[2]):
            K = part.kernel_rows(k, part.col_ids)
            # about 32 rows spread over each matrix: hashing a whole stack could take longer than the fits
            yield np.ascontiguousarray(K[:: max(1, len(K) // 32)]).tobytes()
    elif sparse.issparse(part):
        yield from (np.ascontiguousarray(each).tobytes() for each in (part.data, part.indices, part.indptr))
    elif hasattr(part, "columns") and hasattr(part, "to_numpy"):
        yield repr(list(part.columns)).encode()
        yield from _pieces(part.to_numpy())
    elif isinstance(part, np.ndarray):
        yield repr((part.shape, str(part.dtype))).encode()
        plain = part.dtype.kind != "O"
        yield np.ascontiguousarray(part).tobytes() if plain else repr(part.tolist()).encode()
    elif isinstance(part, (list, tuple)):
        yield f"{len(part)}[".encode()
        for each in part:
            yield from _pieces(each)
    else:
        # the address in a default repr changes from run to run
        yield re.sub(r" at 0x[0-9a-f]+", "", repr(part)).encode()


class Records:
    """A file of results, or none.

    Parameters
    ----------
    path : path or None
        The file; None writes nothing.
    protocol : dict of str
        Fingerprints of the data, the splits, the scorer and the kernels.
    methods : dict of str
        A fingerprint for each method.
    resume : bool
        Whether results already in the file are kept; otherwise the file is overwritten.

    Attributes
    ----------
    rows : list of dict
        The results of these methods known so far.
    """

    def __init__(
        self,
        path: str | os.PathLike | None,
        protocol: Mapping[str, str],
        methods: Mapping[str, str],
        resume: bool = True,
    ) -> None:
        self.path = None if path is None else Path(path)
        self.methods = methods
        self.rows: list[dict[str, Any]] = []
        if self.path is None:
            return
        if self.path.is_dir() or any(up.exists() and not up.is_dir() for up in self.path.parents):
            raise ValueError(
                f"The 'results' parameter of compare must be a file that can be written. Got '{self.path}' instead."
            )
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = self._read(self.path) if resume and self.path.exists() else []
        if lines:
            self._check(lines[0], protocol)
            self._load(lines[1:])
        # whole lines only: a line that a killed run left half-written is dropped
        text = "".join(json.dumps(line) + "\n" for line in lines or [{"protocol": dict(protocol)}])
        # replaced in one step: a run killed now leaves either the old file or the new one
        fresh = self.path.with_name(self.path.name + ".new")
        try:
            fresh.write_text(text, encoding="utf-8")
            fresh.replace(self.path)
        finally:
            fresh.unlink(missing_ok=True)

    def _read(self, path: Path) -> list[dict]:
        lines: list[dict] = []
        whole = path.read_text(encoding="utf-8", errors="replace")
        for text in whole.splitlines():
            try:
                line = json.loads(text)
            except (ValueError, RecursionError):
                break
            # a line without what every result has ends the file as half a line does
            if not isinstance(line, dict) or (lines and not _RESULT <= line.keys()):
                break
            lines.append(line)
        # the first line may be cut short as well
        head = lines[0] if lines else {"protocol": {}} if _HEAD.startswith(whole[: len(_HEAD)]) else None
        if not isinstance(head, dict) or not isinstance(head.get("protocol"), dict):
            raise ValueError(f"The file '{path}' must hold results of compare. Got something else instead.")
        return lines

    def _check(self, head: dict, protocol: Mapping[str, str]) -> None:
        other = [_WORDS.get(key, key) for key, value in protocol.items() if head["protocol"].get(key) != value]
        if other:
            raise ValueError(
                f"The results in '{self.path}' belong to another comparison: {', '.join(other)} "
                f"{'is' if other == ['the scorer'] else 'are'} not the same. Give another file, or "
                "begin anew with resume=False (--no-resume)."
            )

    def _load(self, lines: list[dict]) -> None:
        for row in lines:
            name = row["method"]
            if name in self.methods and row["key"] != self.methods[name]:
                raise ValueError(
                    f"The results of {name!r} in '{self.path}' are those of other parameters. Give the method another "
                    "name, give another file, or begin anew with resume=False (--no-resume)."
                )
            if name in self.methods and row["error"] is None:
                self.rows.append(row)

    def known(self, method: str, fold: int) -> bool:
        """Whether the result of this fit is known; a fit that failed is tried again."""
        return any(row["method"] == method and row["fold"] == fold and row["error"] is None for row in self.rows)

    def add(self, row: dict[str, Any]) -> None:
        """Keep a result and append it to the file."""
        row = {**row, "key": self.methods[row["method"]]}
        self.rows.append(row)
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
                file.flush()
                os.fsync(file.fileno())
