"""FASTA files: the records that can be read, and the line, the number and the reason for each that cannot.

A record is a line ``>id description`` and the lines of letters up to the next such line. Blank lines, blanks among the
letters and lines that begin with ``;`` are skipped; line ends of any system are understood. Letters are kept as they
are: kernels read upper and lower case alike and treat ambiguity codes (N, R, Y, ... X, B, Z), gaps and stops as unknown
letters, which match nothing, not even themselves.
"""

from __future__ import annotations

import gzip
import io
import os
import warnings
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np

_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_IUPAC = {
    None: _LETTERS + b"*-.",
    "dna": b"ACGTURYSWKMBDHVN-.",
    "rna": b"ACGTURYSWKMBDHVN-.",
    "protein": _LETTERS + b"*-.",
}
# the first two bytes of compressed files
_GZIP = b"\x1f\x8b"


class FastaError(ValueError):
    """A record that cannot be read."""


@dataclass(frozen=True)
class FastaProblem:
    """Why a record was left out.

    Attributes
    ----------
    line : int
        The line of the file, from 1.
    record : int
        The number of the record, from 1; 0 before the first one.
    id : str
        The id of the record, empty where it has none.
    message : str
        What is wrong.
    """

    line: int
    record: int
    id: str
    message: str

    def __str__(self) -> str:
        name = f" ({self.id!r})" if self.id else ""
        return f"line {self.line}, record {self.record}{name}: {self.message}"


@dataclass(frozen=True, eq=False)
class FastaRecords:
    """The records of a file.

    Attributes
    ----------
    ids, descriptions, sequences : list of str
        What is before and after the first blank of the header, and the letters.
    lines : list of int
        The line of each header.
    problems : list of FastaProblem
        What was left out, in the order of the file.
    """

    ids: list[str] = field(default_factory=list)
    descriptions: list[str] = field(default_factory=list)
    sequences: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    problems: list[FastaProblem] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.sequences)

    def __repr__(self) -> str:
        return f"<{len(self)} FASTA records, {len(self.problems)} problems>"

    def to_frame(self):
        """Return the records as a data frame with the columns id, description and sequence."""
        import pandas as pd

        return pd.DataFrame({"id": self.ids, "description": self.descriptions, "sequence": self.sequences})


def read_fasta(source: str | os.PathLike | IO, *, alphabet: str | None = None, errors: str = "warn") -> FastaRecords:
    r"""Read a FASTA file, plain or compressed by gzip.

    Parameters
    ----------
    source : path, or stream of bytes or text
        Where to read from; compression is recognised by the first bytes.
    alphabet : {'dna', 'rna', 'protein'} or None
        Which IUPAC codes are letters; None takes any letter from A to Z. Gaps ('-', '.') and, but in nucleotides,
        stops ('*') may stand among them.
    errors : {'warn', 'collect', 'raise'}
        What to do about malformed records, which are left out: 'warn' lists them in `problems` and gives one warning
        with the first of them, 'collect' only lists them, 'raise' stops at the first one.

    Returns
    -------
    FastaRecords
        The records and the problems.

    Raises
    ------
    FastaError
        With ``errors='raise'``: the line, the number of the record, and the reason.

    Examples
    --------
    >>> import io
    >>> from multikernel.datasets import read_fasta
    >>> text = ">one a gene\nACGT\nNN\n>two\nAC1T\n>three\nTTTT\n"
    >>> records = read_fasta(io.StringIO(text), errors="collect")
    >>> records.ids, records.sequences
    (['one', 'three'], ['ACGTNN', 'TTTT'])
    >>> print(records.problems[0])
    line 5, record 2 ('two'): '1' is not a letter of a sequence
    """
    if errors not in ("warn", "collect", "raise"):
        raise ValueError(
            f"The 'errors' parameter of read_fasta must be 'warn', 'collect' or 'raise'. Got {errors!r} instead."
        )
    _check_alphabet("read_fasta", alphabet)
    if isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as stream:
            records = _read(stream, _IUPAC[alphabet], errors == "raise")
    elif hasattr(source, "read"):
        records = _read(source, _IUPAC[alphabet], errors == "raise")
    else:
        raise TypeError(f"The 'source' parameter of read_fasta must be a path or a stream. Got {source!r} instead.")
    if records.problems and errors == "warn":
        warnings.warn(_summary(records), UserWarning, stacklevel=2)
    return records


def fasta_partitions(paths: Iterable[str | os.PathLike], *, alphabet: str | None = None) -> Any:
    """Return the sequences of FASTA files as an array of Dask, one partition for each file.

    Nothing is read here: workers read the files, which they must reach by the same paths. A malformed record is an
    error, since a record that is left out would shift the targets.

    Parameters
    ----------
    paths : list of paths
        The files, plain or compressed by gzip.
    alphabet : {'dna', 'rna', 'protein'} or None
        As that of `read_fasta`.

    Returns
    -------
    dask.array.Array of shape (n_sequences,)
        The sequences, in the order of the files.
    """
    _check_alphabet("fasta_partitions", alphabet)
    try:
        paths = [] if isinstance(paths, (str, bytes)) else [os.fspath(path) for path in paths]
    except TypeError:
        paths = []
    if not paths:
        raise ValueError("The 'paths' parameter of fasta_partitions must be a list of at least one path. Got none.")
    try:
        import dask.array as da
        from dask import delayed
    except ImportError:
        raise ImportError(
            "fasta_partitions needs Dask. It is not installed: pip install 'multikernel[distributed]'."
        ) from None
    parts = [delayed(_sequences)(path, alphabet) for path in paths]
    return da.concatenate([da.from_delayed(part, (np.nan,), object) for part in parts], allow_unknown_chunksizes=True)


def _check_alphabet(owner: str, alphabet: Any) -> None:
    if not (alphabet is None or isinstance(alphabet, str)) or alphabet not in _IUPAC:
        raise ValueError(
            f"The 'alphabet' parameter of {owner} must be 'dna', 'rna', 'protein' or None. Got {alphabet!r} instead."
        )


def _sequences(path: str, alphabet: str | None) -> np.ndarray:
    return np.array(read_fasta(path, alphabet=alphabet, errors="raise").sequences, object)


class _Reader:
    """Reads the lines of a file and keeps one record after the other."""

    def __init__(self, letters: bytes, strict: bool) -> None:
        self.records = FastaRecords()
        self.strict = strict
        self.delete = letters + letters.lower() + b" \t"
        self.number = self.line = 0
        self.header: bytes | None = None
        self.header_line = 0
        self.parts: list[bytes] = []
        self.part_lines: list[int] = []

    def problem(self, line: int, name: str, message: str) -> None:
        found = FastaProblem(line, self.number, name, message)
        if self.strict:
            raise FastaError(f"{str(found)[0].upper()}{str(found)[1:]}.")
        self.records.problems.append(found)

    def finish(self) -> None:
        """Keep the record that has just ended, or say why not."""
        if self.header is None:
            return
        header, self.header = self.header, None
        text = header.decode("utf-8", "replace").strip()
        name, _, description = text.replace("\t", " ").partition(" ")
        letters = b"".join(self.parts)
        if not name:
            self.problem(self.header_line, "", "the header has no id")
        elif letters.translate(None, self.delete):
            for line, part in zip(self.part_lines, self.parts, strict=True):
                if wrong := part.translate(None, self.delete):
                    self.problem(line, name, f"{_shown(wrong)} is not a letter of a sequence")
                    break
        else:
            if b" " in letters or b"\t" in letters:
                letters = letters.translate(None, b" \t")
            if not letters:
                self.problem(self.header_line, name, "there is no sequence after the header")
                return
            self.records.ids.append(name)
            self.records.descriptions.append(description.strip())
            self.records.sequences.append(letters.decode("ascii"))
            self.records.lines.append(self.header_line)

    def read(self, lines: Iterator[bytes]) -> None:
        """Read all lines."""
        reported = False
        for line in lines:
            self.line += 1
            if line.startswith(b">"):
                self.finish()
                self.number += 1
                self.header, self.header_line = line[1:], self.line
                self.parts, self.part_lines = [], []
            elif not line.startswith(b";") and not line.isspace() and line:
                if self.header is not None:
                    self.parts.append(line)
                    self.part_lines.append(self.line)
                elif not reported:
                    reported = True
                    self.problem(self.line, "", "there are letters before the first header")


def _read(stream: Any, letters: bytes, strict: bool) -> FastaRecords:
    reader = _Reader(letters, strict)
    try:
        reader.read(_lines(stream))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        reader.header = None
        reader.problem(reader.line + 1, "", f"the compressed data are damaged or end too early ({error})")
    reader.finish()
    if not reader.number and not reader.records.problems:
        reader.problem(1, "", "there are no records")
    return reader.records


def _lines(stream: Any) -> Iterator[bytes]:
    """Yield lines without their ends."""
    first = stream.read(2)
    if isinstance(first, str):
        yield from _text_lines(first, stream)
        return
    # some streams hand out fewer bytes than asked for
    while len(first) < 2 and (more := stream.read(1)):
        first += more
    joined = io.BufferedReader(_Joined(first, stream), 1 << 16)
    source: Any = gzip.GzipFile(fileobj=joined) if first == _GZIP else joined
    for line in source:
        yield from _split(line)


def _text_lines(first: str, stream: Any) -> Iterator[bytes]:
    for line in io.StringIO(first + stream.read()):
        yield from _split(line.encode("utf-8", "replace"))


def _split(line: bytes) -> list[bytes]:
    """Return a line without its end; a carriage return inside is an end too."""
    line = line[:-1] if line.endswith(b"\n") else line
    line = line[:-1] if line.endswith(b"\r") else line
    return line.split(b"\r") if b"\r" in line else [line]


class _Joined(io.RawIOBase):
    """Bytes that were read ahead, and then the stream they came from."""

    def __init__(self, ahead: bytes, stream: Any) -> None:
        self.ahead, self.stream = ahead, stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        data = self.ahead or self.stream.read(len(buffer))
        self.ahead = b""
        buffer[: len(data)] = data
        return len(data)


def _shown(wrong: bytes) -> str:
    character = wrong.decode("utf-8", "replace")[0]
    return repr(character) if character != "\ufffd" else f"the byte 0x{wrong[0]:02x}"


def _summary(records: FastaRecords) -> str:
    """Return a sentence with the first problem and the number of the others."""
    n = len(records.problems)
    more = f"; and {n - 1} more, all in 'problems'" if n > 1 else ""
    return f"{n} FASTA {'record was' if n == 1 else 'records were'} left out: {records.problems[0]}{more}."
