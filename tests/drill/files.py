"""Damaged files: FASTA, CSV, npz, results, options and checkpoints, with bytes changed, cut, repeated or mixed up."""

from __future__ import annotations

import gzip
import io
import json
import tempfile
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np

from drill import Kind
from drill.fits import unclear
from multikernel import MKLClassifier
from multikernel.cli.compare_command import load_table
from multikernel.cli.output import config_options
from multikernel.cli.table_encoder import TableEncoder
from multikernel.cli.tables import choose_columns, read_tables, take_task
from multikernel.datasets import load, read_fasta
from multikernel.inspection.records import Records
from multikernel.kernels import RBF, Linear

STATE_SAMPLES = np.random.default_rng(1).normal(size=(12, 2)), np.arange(12) % 2
PROTOCOL, METHODS = {"data": "a", "splits": "b"}, {"mkl": "k"}
# what a damaged text is likely to contain
TOKENS = (b"\0", b"\r", b"\n", b",", b'"', b">", b";", b"nan", b"inf", b"-1e999", b"1e-999", b"\xff\xfe",
         b"\xef\xbb\xbf", b"\x1f\x8b",
          b"'", b"}", b"[", b"9" * 30, b"(2000000000,)", b"<f8", b"|O", b"\x93NUMPY", b"PK\x05\x06",
          b"null")  # fmt: skip


@cache
def originals() -> dict[str, bytes]:
    """The files before they are damaged, small ones."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 3)).round(3), np.arange(12) % 2
    fasta = "".join(f">id{i} text\n{''.join(rng.choice(list('ACGTN'), 20))}\nACGT\n" for i in range(5)).encode()
    table = "a,b,c,y\n" + "".join(",".join(map(str, [*row, t])) + "\n" for row, t in zip(X, y, strict=True))
    words = "a;b;y\n" + "".join(
        f"{row[0]};{'red' if row[1] > 0 else 'blue'};{t}\n" for row, t in zip(X, y, strict=True)
    )
    rows = [{"method": "mkl", "fold": i, "key": "k", "error": None, "score": 0.5} for i in range(3)]
    lines = "".join(json.dumps(line) + "\n" for line in [{"protocol": PROTOCOL}, *rows]).encode()
    return {
        "plain.fasta": fasta, "packed.fasta": gzip.compress(fasta, mtime=0), "table.csv": table.encode(),
        "words.csv": words.encode(), "samples.npz": archive(np.savez, X=X, y=y),
        "packed.npz": archive(np.savez_compressed, X=X, y=y.astype("U3")), "stack.npz": archive(np.savez, K=[X @ X.T],
        y=y),
        "named.npz": archive(np.savez, seq=np.array([b"ACGT", b"TTTT"]), y=y, class_names=np.array([b"a", b"b"])),
        "results.jsonl": lines, "options.toml": b"target = 'y'\ncv = 3\nview = ['rna=g*', 'all=a,b']\nquiet = true\n",
        "options.json": json.dumps({"target": "y", "cv": 3, "view": ["rna=g*"]}).encode(), "state.npz": state()[1],
    }  # fmt: skip


def of_state(folder: Path, **options) -> MKLClassifier:
    """Return a small model that is trained with a checkpoint."""
    return MKLClassifier([RBF(), Linear()], checkpoint=folder, **options)


@cache
def state() -> tuple[str, bytes]:
    """Return the name and the content of the checkpoint of a fit that was interrupted."""

    def stop(row):
        raise KeyboardInterrupt

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with suppress(KeyboardInterrupt):
            of_state(folder, callback=stop).fit(*STATE_SAMPLES)
        (path,) = Path(folder).iterdir()
        return path.name, path.read_bytes()


def go_on(path: Path) -> str | None:
    """Train from a damaged checkpoint: it is ignored, or leads to the same optimum, and is gone at the end."""
    path.rename(path.with_name(state()[0]))
    found = of_state(path.parent).fit(*STATE_SAMPLES)
    if left := [each.name for each in path.parent.iterdir()]:
        return f"files left: {left}"
    whole = MKLClassifier([RBF(), Linear()]).fit(*STATE_SAMPLES)
    apart = abs(found.objective_ - whole.objective_) > 2e-3 * whole.objective_
    return f"{found.status_}, objective {found.objective_}" if apart or found.status_ != "converged" else None


def archive(save, **arrays) -> bytes:
    """Return an npz archive as bytes."""
    stream = io.BytesIO()
    save(stream, **arrays)
    return stream.getvalue()


def damage(data: bytes, rng) -> bytes:
    """Change a few places of some bytes."""
    for _ in range(1 + rng.geometric(0.5)):
        i, j = sorted(rng.integers(0, len(data) + 1, size=2).tolist())
        match rng.integers(8):
            case 0:
                data = data[:i] + bytes([rng.integers(256)]) + data[i + 1 :]
            case 1:
                data = data[:i]
            case 2:
                data = data[:i] + data[j:]
            case 3:
                data = data[:j] + data[i:j] + data[j:]
            case 4:
                data = data[:i] + TOKENS[rng.integers(len(TOKENS))] + data[i:]
            case 5:
                token = TOKENS[rng.integers(len(TOKENS))]
                data = data[:i] + token + data[i + len(token) :]
            case 6:
                data = data[i:] + data[:i]
            case 7:
                data = data[:i] + data[i : i + 8][::-1] + data[i + 8 :]
    return data


def read(path: Path, rng) -> str | None:
    """Read a damaged file with the reader of its kind; return what is wrong with what came back, or None."""
    if path.suffix == ".fasta":
        records = read_fasta(path, errors=str(rng.choice(["warn", "collect", "raise"])))
        sizes = {len(records.ids), len(records.descriptions), len(records.sequences), len(records.lines)}
        letters = all(sequence.isascii() and sequence for sequence in records.sequences)
        return None if len(sizes) == 1 and letters else f"records of different numbers or empty ones: {records}"
    if path.suffix == ".jsonl":
        found = Records(path, PROTOCOL, METHODS)
        good = all(row["method"] == "mkl" and "fold" in row for row in found.rows)
        left = [each.name for each in path.parent.iterdir() if each != path]
        return f"files left: {left}" if left else None if good else f"rows of another kind: {found.rows}"
    if path.suffix == ".npz" and rng.integers(2):
        data = load(path.stem, data_dir=path.parent.parent)
        return None if all(np.ndim(value) >= 0 for value in data.values()) else "no arrays"
    if path.name == "state.npz":
        return go_on(path)
    if path.suffix in (".toml", ".json"):
        known = {name: name for name in ("target", "cv", "view", "quiet")}
        return None if set(config_options(path, known)) <= set(known) else "options that there are not"
    X, y = load_table(path, "y")
    if len(X) != len(y) or (isinstance(X, np.ndarray) and not np.isfinite(X).all()):
        return f"{len(X)} samples and {len(y)} targets, or numbers that are not finite"
    return None


def read_as_table(path: Path) -> str | None:
    """Read a damaged file as `multikernel fit` does; return what is wrong with what came back, or None."""
    if path.suffix in (".jsonl", ".toml", ".json") or not path.exists():
        return None
    tables = read_tables([path])
    target = "y" if "y" in tables.frame.columns else None
    if target is not None and not tables.frame["y"].isna().any():
        take_task(tables.frame["y"])
    columns = choose_columns(tables, target, {})
    made = TableEncoder(columns.kinds).fit(tables.frame).transform(tables.frame)
    numbers = made.select_dtypes("number").to_numpy(dtype=float)
    return None if len(made) == len(tables.frame) and np.isfinite(numbers).all() else "numbers that are not finite"


def case(rng):
    """Damage one file and read it."""
    name = str(rng.choice(list(originals())))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "set" / name
        path.parent.mkdir()
        path.write_bytes(damage(originals()[name], rng))
        try:
            finding = read(path, rng)
        except Exception as error:
            finding = unclear(error)
        try:
            return name, finding or read_as_table(path)
        except Exception as error:
            return name, unclear(error)


KIND = Kind(
    "files",
    "A small FASTA, CSV, npz or results file, a file of options or a checkpoint with bytes changed, cut, moved, "
    "repeated or replaced by telling ones is read by `read_fasta`, `load`, the readers of `multikernel compare` and "
    "`multikernel fit`, as a file of results or options, or by the fit that goes on from it. A finding is any "
    "exception but a ValueError of one sentence, data that are not whole, or another optimum.",
    share=2,
    full=100_000,
    case=case,
)
