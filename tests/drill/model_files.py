"""Damaged model files: bits flipped, ends cut, arrays exchanged; each is refused or means the same."""

from __future__ import annotations

import hashlib
import io
import tempfile
import warnings
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

import multikernel
from drill import Kind
from drill.files import damage
from drill.fits import draw_samples, fit, make, unclear
from drill.jobs import invoke
from multikernel import MKLClassifier, Views, kernels


@cache
def bundle() -> dict[str, bytes]:
    """Small models of several kinds, saved."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = {}
        for label, name in [
            ("classifier", "MKLClassifier"),
            ("search", "MKLRegressorCV"),
            ("two", "TwoStageClassifier"),
        ]:
            model = make(name)
            models[label] = fit(model, *draw_samples(model, rng, 24, 3))
        texts = ["".join(rng.choice(list("ACGT"), 8)) for _ in range(20)]
        models["sequences"] = MKLClassifier([kernels.Spectrum(2), kernels.WeightedDegree(2)]).fit(
            texts, np.arange(20) % 2
        )
        X, y = draw_samples(models["classifier"], rng, 24)
        views = Views({"numbers": X[:, :2], "words": pd.DataFrame({"word": np.where(X[:, 2] > 0, "red", "blue")})})
        models["views"] = MKLClassifier("auto", probability=True).fit(views, y)
        path, table = Path(folder) / "model.mk", Path(folder) / "table.csv"
        found = {}
        for label, model in models.items():
            model.save(path)
            found[label] = path.read_bytes()
        # what the command saves: the columns of a table, and a search
        pd.DataFrame(X, columns=list("abcd")).assign(y=y).to_csv(table, index=False)
        invoke("fit", table, "--C", "1", "--norm", "1", "--cv", "2", "--out", path, "--quiet")
        found["command"] = path.read_bytes()
    return found


def unpack(data: bytes) -> dict[str, bytes]:
    """Return the members of a file by name."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def repack(members: dict[str, bytes], *, sums: bool) -> bytes:
    """Return a file of these members, with new checksums where they are asked for."""
    members = dict(members)
    if sums:
        del members["SHA256SUMS"]
        lines = [f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in members.items()]
        members["SHA256SUMS"] = "".join(lines).encode()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return stream.getvalue()


def flip(data: bytes, rng) -> bytes:
    """Flip a few bits."""
    changed = bytearray(data)
    for place in rng.integers(0, len(data), size=1 + rng.geometric(0.5)):
        changed[place] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def cut(data: bytes, rng) -> bytes:
    """Leave out the end, or the beginning."""
    place = int(rng.integers(1, len(data)))
    return data[:place] if rng.integers(4) else data[place:]


def exchange(data: bytes, rng) -> bytes:
    """Exchange two members."""
    members = unpack(data)
    one, two = rng.choice(list(members), size=2, replace=False)
    members[one], members[two] = members[two], members[one]
    return repack(members, sums=False)


def replace_member(data: bytes, rng) -> bytes:
    """Damage the content of one member, and pack it soundly."""
    members = unpack(data)
    name = str(rng.choice(list(members)))
    return repack({**members, name: damage(members[name], rng)}, sums=False)


MUTATIONS = {"flip": flip, "cut": cut, "exchange": exchange, "member": replace_member, "bytes": damage}


def case(rng):
    """Change one file and load it."""
    label, name = str(rng.choice(list(bundle()))), str(rng.choice(list(MUTATIONS)))
    original = bundle()[label]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "model.mk"
        path.write_bytes(MUTATIONS[name](original, rng))
        try:
            model = multikernel.load(path)
        except Exception as error:
            return f"{label}, {name}: refused", unclear(error)
        multikernel.save(model, path)
        return f"{label}, {name}: read", None if path.read_bytes() == original else "another model was read"


KIND = Kind(
    "model files",
    "A saved model with bits flipped, ends cut, members exchanged or their content damaged is loaded. A finding is any "
    "exception but a ValueError of one sentence, or a model that is not the one that was saved.",
    share=1,
    full=20_000,
    case=case,
)
