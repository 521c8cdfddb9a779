"""Kernels by rows, and samples by partitions, with a Dask cluster of two processes: one JSON object a line.

    python benchmarks/cluster.py fit [--n 8000]                against the same fit in memory, kernels computed before
    python benchmarks/cluster.py kill [--n 1500] [--fits 20]   a worker killed at a random moment of each fit
    python benchmarks/cluster.py partitions [--n N ...]        sequences in partitions, against one process
    python benchmarks/cluster.py bars [--seconds S]            the bars of partitions, within so many seconds
    python benchmarks/cluster.py lost [--n N ...] [--fits F]   the same, a worker killed at a random moment of each fit
    python benchmarks/cluster.py estimates [--n N ...]         what `estimate` says, in parts of what a fit takes
    python benchmarks/cluster.py again [--n N] [--fits F]      the client killed at a random moment, and the same call
    python benchmarks/cluster.py paper FILE                    tables of the lines of ``partitions``, and 10^8 samples

fit, kill: samples and ten kernels of the workload `binary`, C = 1, gap 1e-3. ``peak`` is how much the memory of the
client, which holds the scheduler as well, grew during the fit, in parts of the bytes of all kernels.

partitions, bars, lost: sequences of `multikernel.datasets.dna` in 16 partitions, made by the workers (not in ``fit``
but for `lost`); eight kernels, the d-mers of each length hashed into 2^16 slots; gap 1e-2. ``peak`` is the largest
memory of the client in MiB, ``processor`` the processor time of the client, which is the scheduler as well, and of each
worker. One process fits the same sequences with gram="features" on one thread. --alone fits in one process only,
--no-alone on the cluster.

bars: partitions of all sizes, then one process at the largest size, given up at the end of the time (``ended`` is then
false, ``fit`` the time that it had, and ``ratio`` a bound from above); other sizes in one process while time is left.
Pin it to two cores, and start it with OMP_NUM_THREADS=1: taskset -c 0,1 python benchmarks/cluster.py bars

again: fits with a checkpoint in a client of their own, killed (SIGKILL) at a random moment while the workers live on.
The same call then goes on in another client: ``kept`` says whether there was a file, ``right`` that it could be read,
that none was left at the end, and that the objective is the one of an undisturbed fit within the gap.

Times are seconds. --quick takes small sizes.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from distributed import Client, LocalCluster, wait
from gpu import partial_targets, timed, two_classes

from multikernel import MKLClassifier
from multikernel.datasets import dna
from multikernel.kernels import HashedDegree, WeightedDegree
from multikernel.training.prepare import prepare
from multikernel.training.train import train


def peak() -> int:
    """Return the largest memory of this process since the last call of `forget_peak`, in bytes."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("VmHWM:")[1].split()[0])


def forget_peak() -> int:
    Path("/proc/self/clear_refs").write_text("5")
    return peak()


def measured(n: int, gram: str, repeats: int) -> dict:
    """Return what the training takes on prepared kernels, the best of some."""
    kernels, X, y = two_classes(n)
    estimator = MKLClassifier(kernels, gram=gram, tol=1e-3)
    settings = estimator._settings()
    before, prepared = timed(lambda: prepare(kernels, X, None, settings))
    targets = partial_targets(MKLClassifier(kernels, gram=gram, tol=1e-3), X, y)
    times, grown = [], []
    for _ in range(repeats):
        base = forget_peak()
        seconds, fit = timed(lambda: train(prepared, targets, settings))
        times.append(seconds)
        grown.append(peak() - base)
    size = len(kernels) * n * n * prepared.gram.dtype.itemsize
    solution = fit.solutions[0]
    return {
        "gram": gram, "n": n, "kernels": before, "fit": min(times), "all": times, "peak": max(grown) / size,
        "objective": solution.upper, "lower": solution.lower, "gap": solution.gap, "steps": solution.n_iter,
    }  # fmt: skip


def cluster() -> LocalCluster:
    return LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)


def fit(n: int, repeats: int) -> None:
    with cluster() as workers, Client(workers):
        far = measured(n, "dask", repeats)
        print(json.dumps(far), flush=True)
    near = measured(n, "dense", repeats)
    print(json.dumps(near))
    apart = abs(far["objective"] - near["objective"]) / near["objective"]
    print(json.dumps({"ratio": far["fit"] / near["fit"], "apart": apart}))


def kill(n: int, fits: int, seed: int) -> None:
    kernels, X, y = two_classes(n)
    rng = np.random.default_rng(seed)
    dense = MKLClassifier(kernels, gram="dense", tol=1e-3).fit(X, y)
    with cluster() as workers, Client(workers):
        # the first fit waits for workers that compile or load
        usual = min(timed(lambda: MKLClassifier(kernels, gram="dask", tol=1e-3).fit(X, y))[0] for _ in range(2))
    for number in range(fits):
        with cluster() as workers, Client(workers) as client:
            victims = list(client.run(os.getpid).values())
            wait = rng.uniform(0, usual)
            killer = threading.Timer(wait, os.kill, (int(rng.choice(victims)), signal.SIGKILL))
            killer.start()
            seconds, model = timed(lambda: MKLClassifier(kernels, gram="dask", tol=1e-3).fit(X, y))
            during = not killer.is_alive()
            killer.join()
        apart = abs(model.objective_ - dense.objective_) / dense.objective_
        right = bool(apart <= 1e-3 and model.duality_gap_ <= 1e-3)
        row = {"fit": number, "killed": wait, "during": during, "seconds": seconds, "usual": usual}
        print(json.dumps({**row, "apart": apart, "right": right}), flush=True)


PARTITIONS, LENGTH, DEGREES, SLOTS = 16, 20, 8, 1 << 16
# seconds that no fit takes
FOREVER = 10**6


def sequences(number: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return one partition of n sequences."""
    return dna(n // PARTITIONS, LENGTH, mutation=0.5, seed=number)


def by_degree() -> list:
    """Return the kernels of the d-mers of each length."""
    weights = np.eye(DEGREES)
    return [HashedDegree(WeightedDegree(d + 1, weights=weights[d, : d + 1]), SLOTS) for d in range(DEGREES)]


def partitioned(n: int):
    """Return the sequences as an array of Dask that the workers make, and the labels."""
    import dask.array as da
    from dask import delayed

    parts = [delayed(sequences)(number, n) for number in range(PARTITIONS)]
    X = [da.from_delayed(part[0], (n // PARTITIONS,), f"S{LENGTH}") for part in parts]
    return da.concatenate(X), np.tile(np.where(np.arange(n // PARTITIONS) % 2, 1, -1), PARTITIONS)


def told(model, kind: str, n: int, seconds: float, processor: list[float]) -> dict:
    """Return what is known of a fit; ``step`` is the time of one of its steps, four epochs and a certificate."""
    steps = np.diff(model.history_["time"])
    return {
        "kind": kind, "n": n, "fit": seconds, "processor": processor, "ended": True, "steps": model.n_iter_,
        "step": float(np.median(steps)) if len(steps) else 0.0,
        "peak": peak() / 2**20, "objective": model.objective_, "gap": model.duality_gap_, "bytes": model.gram_.nbytes,
        "weights": model.weights_.round(3).tolist(),
    }  # fmt: skip


def fit_partitions(n: int) -> dict:
    with cluster() as workers, Client(workers) as client:
        warm_up()
        X, y = partitioned(n)
        X = X.persist()
        wait(X)
        before = [time.process_time(), *client.run(time.process_time).values()]
        seconds, model = timed(lambda: MKLClassifier(by_degree(), gram="features", tol=1e-2).fit(X, y))
        after = [time.process_time(), *client.run(time.process_time).values()]
        return told(model, "partitions", n, seconds, np.subtract(after, before).round(2).tolist())


def warm_up() -> None:
    """Compile on the workers."""
    X, y = partitioned(64 * PARTITIONS)
    MKLClassifier(by_degree(), gram="features", tol=0.1).fit(X, y)


def fit_alone(n: int, limit: int) -> dict:
    began = time.perf_counter()
    model = MKLClassifier(by_degree(), gram="features", tol=1e-2, n_jobs=1)
    parts = [sequences(number, 64 * PARTITIONS) for number in range(PARTITIONS)]
    model.fit(np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts]))
    parts = [sequences(number, n) for number in range(PARTITIONS)]
    X, y = np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])
    del parts

    def stop(*_):
        raise TimeoutError

    signal.signal(signal.SIGALRM, stop)
    start, processor = time.perf_counter(), time.process_time()
    signal.alarm(max(1, int(limit - (start - began))))
    try:
        seconds, model = timed(lambda: model.fit(X, y))
    except TimeoutError:
        return {"kind": "alone", "n": n, "fit": time.perf_counter() - start, "ended": False}
    signal.alarm(0)
    return told(model, "alone", n, seconds, [round(time.process_time() - processor, 2)])


def in_process(n: int, which: str, limit: float = FOREVER) -> dict:
    """Return, and print, what a fit takes in a process of its own: the peak of one is not that of another."""
    call = [sys.executable, __file__, "partitions", "--n", str(n), which, "--seconds", str(int(limit))]
    row = json.loads(subprocess.run(call, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
    print(json.dumps(row), flush=True)
    return row


def partitions(sizes: list[int], alone: bool | None, limit: int) -> None:
    for n in sizes:
        if alone is not None:
            print(json.dumps(fit_alone(n, limit) if alone else fit_partitions(n)), flush=True)
            continue
        far, near = in_process(n, "--no-alone"), in_process(n, "--alone")
        apart = abs(far["objective"] - near["objective"]) / near["objective"]
        print(json.dumps({"n": n, "ratio": far["fit"] / near["fit"], "apart": apart}), flush=True)


def bars(sizes: list[int], limit: float) -> None:
    began = time.perf_counter()
    far = {n: in_process(n, "--no-alone") for n in sizes}
    first, last = far[sizes[0]], far[sizes[-1]]
    growth = np.log(last["step"] / first["step"]) / np.log(sizes[-1] / sizes[0]) if len(sizes) > 1 else 0.0
    print(json.dumps({"growth of a step": growth, "bar": 1.1, "client": last["peak"], "bar of the client": 600}))
    for n in reversed(sizes):
        left = limit - (time.perf_counter() - began)
        # a fit that was not given the time of the one in partitions would say nothing
        if left < far[n]["fit"]:
            continue
        near = in_process(n, "--alone", left)
        row = {"n": n, "ratio": far[n]["fit"] / near["fit"], "bar": 0.8, "ended": near["ended"]}
        if near["ended"]:
            row["apart"] = abs(far[n]["objective"] - near["objective"]) / near["objective"]
        print(json.dumps(row), flush=True)


def paper(lines: list[dict], speed: float = 1e9) -> None:
    """Print what was measured, and what follows for 10^8 sequences: a network moves ``speed`` bytes a second.

    A step is four epochs of four rounds, and a certificate. In a round the tables go to all workers and come back, by
    a tree; features, and four numbers for each sample and kernel, are in the memory of a worker.
    """
    print("| sequences | one process | two workers | client's peak | a step |\n| --- | --- | --- | --- | --- |")
    alone = {line["n"]: line["fit"] for line in lines if line.get("kind") == "alone"}
    found = [line for line in lines if line.get("kind") == "partitions"]
    for line in found:
        one = f"{alone[line['n']]:.0f} s" if line["n"] in alone else "-"
        print(f"| {line['n']:,} | {one} | {line['fit']:.0f} s | {line['peak']:.0f} MiB | {line['step']:.1f} s |")
    first, last = found[0], found[-1]
    work = 2.0 * last["step"] / last["n"]
    client = (last["peak"] - first["peak"]) * 2**20 / (last["n"] - first["n"])
    tables, kept = 8.0 * DEGREES * SLOTS, last["bytes"] / last["n"] + 4 * 8 * DEGREES
    print(
        "\n| workers | memory of each | work in a step | tables in a step | client |\n| --- | --- | --- | --- | --- |"
    )
    for workers in (16, 64, 256):
        own, moved = 1e8 / workers, 16 * 2 * np.log2(workers) * tables / speed
        row = f"| {workers} | {kept * own / 2**30:.1f} GiB | {work * own:.0f} s | {moved:.1f} s |"
        print(f"{row} {first['peak'] / 1024 + client * 1e8 / 2**30:.1f} GiB |")


def lost(sizes: list[int], fits: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for n in sizes:
        with cluster() as workers, Client(workers):
            warm_up()
            X, y = partitioned(n)
            usual, model = timed(lambda: MKLClassifier(by_degree(), gram="features", tol=1e-2).fit(X, y))
            whole = model.objective_
        for number in range(fits):
            with cluster() as workers, Client(workers) as client:
                warm_up()
                victims = list(client.run(os.getpid).values())
                wait = rng.uniform(0, usual)
                killer = threading.Timer(wait, os.kill, (int(rng.choice(victims)), signal.SIGKILL))
                killer.start()
                began = time.perf_counter()
                model = MKLClassifier(by_degree(), gram="features", tol=1e-2).fit(X, y)
                seconds, during = time.perf_counter() - began, not killer.is_alive()
                killer.join()
            apart = abs(model.objective_ - whole) / whole
            right = bool(apart <= 1e-2 and model.duality_gap_ <= 1e-2)
            row = {"fit": number, "n": n, "killed": wait, "during": during, "seconds": seconds, "usual": usual}
            print(json.dumps({**row, "apart": apart, "right": right}), flush=True)


def estimates(sizes: list[int]) -> None:
    """Memory is what all processes grew by at most, the sequences with the workers before."""
    with cluster() as workers, Client(workers) as client:
        warm_up()
        for n in sizes:
            X, y = partitioned(n)
            X = X.persist()
            wait(X)
            model = MKLClassifier(by_degree(), gram="features", tol=1e-2)
            took, found = timed(lambda: model.estimate(X, y))
            base = sum(client.run(forget_peak).values()) + forget_peak()
            seconds, _ = timed(lambda: model.fit(X, y))
            grown = sum(client.run(peak).values()) + peak() - base
            row = {"n": n, "estimate took": took, "seconds": seconds, "memory": grown / 2**20}
            ratios = {"of seconds": found.seconds["features"] / seconds, "of memory": found.memory["features"] / grown}
            print(json.dumps({**row, **ratios, "bar": 2.0}), flush=True)


def fit_kept(address: str, n: int, folder: Path) -> MKLClassifier:
    """Fit sequences in partitions with a checkpoint, as a client of a running cluster."""
    with Client(address):
        X, y = partitioned(n)
        (folder.parent / "begun").touch()
        return MKLClassifier(by_degree(), gram="features", tol=1e-2, checkpoint=folder).fit(X, y)


def readable(path: Path) -> bool:
    try:
        with np.load(path, allow_pickle=False) as stored:
            return all(stored[name] is not None for name in stored.files)
    except Exception:
        return False


def again(n: int, fits: int, seed: int) -> None:
    rng, start = np.random.default_rng(seed), get_context("spawn")
    with cluster() as workers, TemporaryDirectory() as place:
        folder, address = Path(place) / "states", workers.scheduler_address
        folder.mkdir()
        fit_kept(address, 64 * PARTITIONS, folder)
        usual, whole = timed(lambda: fit_kept(address, n, folder))
        for number in range(fits):
            (folder.parent / "begun").unlink()
            child, pause = start.Process(target=fit_kept, args=(address, n, folder)), rng.uniform(0, usual)
            child.start()
            while not (folder.parent / "begun").exists():
                time.sleep(0.01)
            time.sleep(pause)
            during = child.is_alive()
            child.kill()
            child.join()
            kept = list(folder.glob("*.npz"))
            sound = all(map(readable, kept))
            model = fit_kept(address, n, folder)
            apart = abs(model.objective_ - whole.objective_) / whole.objective_
            right = bool(sound and apart <= 1e-2 and model.duality_gap_ <= 1e-2 and not list(folder.iterdir()))
            row = {"fit": number, "n": n, "killed": pause, "during": during, "kept": len(kept), "steps": model.n_iter_}
            print(json.dumps({**row, "usual": whole.n_iter_, "apart": apart, "right": right}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("item", choices=["fit", "kill", "partitions", "bars", "lost", "estimates", "again", "paper"])
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--n", type=int, nargs="+")
    parser.add_argument("--alone", action=argparse.BooleanOptionalAction)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--fits", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=int)
    args = parser.parse_args()
    if args.item == "fit":
        fit(args.n[0] if args.n else 1000 if args.quick else 8000, args.repeats)
    elif args.item == "kill":
        kill(args.n[0] if args.n else 1500, args.fits, args.seed)
    elif args.item == "estimates":
        estimates(args.n or [16_000, 64_000, 250_000])
    elif args.item == "again":
        again(args.n[0] if args.n else 16_000, args.fits, args.seed)
    elif args.item == "paper":
        paper([json.loads(line) for line in args.file.read_text().splitlines()])
    elif args.item in ("partitions", "bars"):
        sizes = args.n or ([16_000] if args.quick else [125_000, 500_000, 2_000_000])
        if args.item == "bars":
            bars(sizes, args.seconds or 570)
        else:
            partitions(sizes, args.alone, args.seconds or FOREVER)
    else:
        lost(args.n or [16_000 if args.quick else 125_000], args.fits, args.seed)


if __name__ == "__main__":
    main()
