"""kill -9 of checkpointed fits at random moments: the same call goes on, to the same answer, and no file is damaged."""

from __future__ import annotations

import os
import signal
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from drill import Kind
from drill.child import PATIENCE, in_child
from drill.fits import ESTIMATORS, draw_samples, fit, make, parts_of, unsound
from drill.jobs import VARIANTS
from multikernel.training import checkpoint

# kills of one fit before it may end
KILLS = 2


def kill_after(begun: Path, delay: float) -> Callable[[int], None]:
    """Return a disturbance that ends the process some seconds after a file appears: nothing of it can react."""

    def kill(pid: int) -> None:
        ends = time.monotonic() + PATIENCE
        while not begun.exists() and time.monotonic() < ends:
            time.sleep(0.0005)
        time.sleep(delay)
        os.kill(pid, signal.SIGKILL)

    return kill


def summary(model) -> dict:
    """Return what two fits of the same problem must agree on, as plain data."""
    names = [name for name in ("objective_", "duality_gap_", "weights_") if hasattr(model, name)]
    found = {name: np.concatenate([each.ravel() for each in parts_of(getattr(model, name))]).tolist() for name in names}
    return {**found, "best": str(getattr(model, "best_params_", ""))}


def differ(whole: dict, again: dict) -> str | None:
    """Return how two fits of the same problem contradict each other."""
    if "objective_" not in whole:
        return None if np.allclose(whole["weights_"], again["weights_"], atol=1e-6) else "the weights differ"
    if whole["best"] != again["best"]:
        # scores of neighbouring points may tie up to the gap
        return None
    one, two = np.array(whole["objective_"]), np.array(again["objective_"])
    # two primal values of models whose optimum is within their gaps; others have no gap, and the same steps
    gaps = np.array(whole.get("duality_gap_", 0.0)) + np.array(again.get("duality_gap_", 0.0))
    wrong = np.abs(one - two) > (2 * gaps + 1e-9) * np.maximum(np.abs(one), np.abs(two))
    return f"objectives {one} and {two} at gaps {gaps}" if wrong.any() else None


def damaged(folder: Path) -> str | None:
    """Return the name of a checkpoint that cannot be read; files that were not yet put into place do not count."""
    for path in folder.glob("*.npz"):
        try:
            with np.load(path, allow_pickle=False) as stored:
                for name in stored.files:
                    stored[name]
        except Exception as error:
            return f"{path.name}: {type(error).__name__}: {error}"
    return None


def case(rng):
    """Kill one fit several times, then let it end."""
    name = str(rng.choice(list(ESTIMATORS)))
    variant, classes = VARIANTS[rng.integers(len(VARIANTS))], int(rng.integers(2, 4))
    own = {key: value for key, value in variant.items() if key != "loss" or name.startswith("MKLClassifier")}
    own.setdefault("tol", 1e-6)
    seed, n, always = int(rng.integers(1 << 30)), int(rng.integers(60, 240)), bool(rng.integers(2))

    def job(folder: Path | None) -> dict:
        model = make(name, checkpoint=folder, random_state=0, max_iter=50, **own)
        X, y = draw_samples(model, np.random.default_rng(seed), n, classes)
        if folder is not None:
            (folder.parent / "begun").touch()
        share, checkpoint.SHARE = checkpoint.SHARE, np.inf if always else checkpoint.SHARE
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                fit(model, X, y)
        except ValueError as error:
            return {"refused": str(error)}
        finally:
            checkpoint.SHARE = share
        said = [str(each.message) for each in caught if "checkpoint" in str(each.message)]
        return {"wrong": unsound(model, X), "said": said, **summary(model)}

    whole = job(None)
    if "refused" in whole:
        return f"{name}, refused", None
    with tempfile.TemporaryDirectory() as place:
        folder, label, died = Path(place) / "states", f"{name}{', every step' if always else ''}", 0
        begun = folder.parent / "begun"
        folder.mkdir()
        began = time.perf_counter()
        job(folder)
        spent = time.perf_counter() - began
        for _ in range(KILLS):
            begun.unlink()
            result = in_child(lambda _: job(folder), kill_after(begun, float(rng.uniform(0, spent))))
            died += result.get("died") == -signal.SIGKILL
            if wrong := damaged(folder):
                return label, f"{name} {own}: a damaged file: {wrong}"
        taken_up = any(folder.glob("*.npz"))
        result = in_child(lambda _: job(folder))
        left = sorted(path.name for path in folder.iterdir())
    label = f"{label}, {died} kills{', taken up' if taken_up else ''}"
    if "died" in result or "hung" in result or "refused" in result:
        return label, f"{name} {own}: {result}"
    wrong = result["wrong"] or differ(whole, result)
    if not wrong and (result["said"] or left):
        wrong = f"{result['said']}, files left: {left}"
    return label, wrong and f"{name} {own}, n={n}, {classes} classes: {wrong}"


KIND = Kind(
    "kills",
    "A fit of any estimator or search with a checkpoint, in a process of its own, is killed (SIGKILL) after a random "
    "time, twice, and then goes on to its end. A finding is a checkpoint that cannot be read, a file left, or another "
    "answer than that of a fit that was left alone, beyond the certified gaps.",
    share=2,
    full=300,
    case=case,
    absent=lambda: None if hasattr(os, "fork") else "processes cannot be forked here.",
)
