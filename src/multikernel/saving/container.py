"""The file of a model: a zip archive with model.json, arrays/0.npy, arrays/1.npy, ... and SHA256SUMS.

SHA256SUMS holds a line "digest  name" for every other member, as the command sha256sum writes it. A file whose members
are not exactly these, or differ from their digests, is refused as a whole. Arrays are in NumPy's format, without
pickled objects. The same content makes the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

DOCUMENT, SUMS = "model.json", "SHA256SUMS"


def array_bytes(array: np.ndarray) -> bytes:
    """Return an array in NumPy's format."""
    stream = io.BytesIO()
    npy.write_array(stream, array, allow_pickle=False)
    return stream.getvalue()


def write_container(path: Path, document: Mapping[str, Any], arrays: Sequence[bytes]) -> None:
    """Write a file beside its place, then put it there: a reader sees the old file or the new one.

    Parameters
    ----------
    path : Path
        The file.
    document : mapping
        What goes into model.json.
    arrays : sequence of bytes
        What `array_bytes` returned.
    """
    text = json.dumps(document, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    members = {DOCUMENT: text.encode("utf-8", "surrogatepass")}
    members |= {f"arrays/{k}.npy": data for k, data in enumerate(arrays)}
    members[SUMS] = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in members.items()).encode()
    handle, temporary = tempfile.mkstemp(".tmp", f"{path.name}.", path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, data in members.items():
                    # without a time of its own: equal models make equal files
                    entry = zipfile.ZipInfo(name)
                    entry.compress_type = zipfile.ZIP_DEFLATED
                    archive.writestr(entry, data)
            stream.flush()
            os.fsync(stream.fileno())
        # as any other new file, not as a private one
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def read_container(path: Path) -> tuple[dict[str, Any], list[np.ndarray]]:
    """Return the document and the arrays of a file, or raise a ValueError of one sentence.

    Parameters
    ----------
    path : Path
        The file.
    """
    if not path.is_file():
        raise ValueError(f"The model file '{path}' does not exist.")
    with path.open("rb") as stream:
        if stream.read(2) != b"PK":
            raise ValueError(f"The file '{path}' is not a model that multikernel saved: it is not a zip archive.")
        try:
            members = _read_members(stream)
            document = json.loads(members[DOCUMENT].decode("utf-8", "surrogatepass"))
            arrays = [_read_array(members[f"arrays/{k}.npy"]) for k in range(len(members) - 2)]
        except _Foreign as error:
            raise ValueError(f"The file '{path}' is not a model that multikernel saved: {error}.") from None
        except Exception as error:
            # zipfile, zlib, json and NumPy raise a dozen kinds of errors on damaged bytes, some with all these bytes
            why = error if isinstance(error, _Damaged) else type(error).__name__
            raise ValueError(f"The model file '{path}' is damaged ({why}): take another copy of it.") from None
    return document, arrays


class _Foreign(Exception):
    """An archive of something else."""


class _Damaged(Exception):
    """An archive that was changed."""


def _read_members(stream: Any) -> dict[str, bytes]:
    """Return the members of an archive by name, after their digests were compared."""
    with zipfile.ZipFile(stream) as archive:
        names = archive.namelist()
        if DOCUMENT not in names or SUMS not in names:
            raise _Foreign(f"{DOCUMENT} and {SUMS} are not in it")
        if len(set(names)) != len(names):
            raise _Damaged("a member occurs twice")
        members = {name: archive.read(name) for name in names}
    lines = [line.partition("  ") for line in members[SUMS].decode("ascii").splitlines()]
    listed = {name: digest for digest, _, name in lines}
    if len(listed) != len(lines) or set(listed) != set(names) - {SUMS}:
        raise _Damaged(f"its members are not those that {SUMS} lists")
    for name, digest in listed.items():
        if hashlib.sha256(members[name]).hexdigest() != digest:
            raise _Damaged(f"the checksum of {name} is wrong")
    return members


def _read_array(data: bytes) -> np.ndarray:
    """Return one array; what its header declares must be all that is there."""
    stream = io.BytesIO(data)
    array = npy.read_array(stream, allow_pickle=False)
    if stream.read(1):
        raise _Damaged("an array is followed by something else")
    return array
