"""All solvers of ours and the other packages on the same problems, in one run, one thread each.

    python benchmarks/peers/bench.py [--quick] [--resume] [--problem NAME] [--contestant PART] [--page FILE]

Each contestant is one small file of `contestants/`; it runs in a process of its own, in an environment that is made in
a cache folder (MULTIKERNEL_PEERS) where it needs other packages. Only its fit is timed. Gap, accuracy and memory are
computed by the objective. Results are kept as JSON lines with the machine; --page writes the page of the
documentation from them.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from environments import cache_folder, clean, interpreter
from objective import add_gaps, metrics
from problems import PROBLEMS, QUICK, write
from rich.console import Console
from threadpoolctl import threadpool_limits

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMBA_NUM_THREADS")
# processor seconds that the repetitions of a fit may take, and wall-clock seconds for each of them
LIMIT, QUICK_LIMIT, PATIENCE = 60.0, 10.0, 6


def contestants(part: str = "") -> list:
    """Return the modules of the contestants whose names contain some text."""
    modules = []
    for path in sorted((HERE / "contestants").glob("*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        if part in path.stem:
            modules.append(module)
    return modules


def runs(python: str, folder: Path, module, variant: str, limit: float) -> tuple[list[dict], str]:
    """Return what a contestant found, for each effort that came to its end, and why others did not."""
    environment = {**(os.environ if python == sys.executable else clean()), **dict.fromkeys(ONE_THREAD, "1")}
    efforts = json.dumps(module.EFFORTS)
    with tempfile.TemporaryDirectory() as place:
        command = [python, str(HERE / "one_run.py"), str(folder), module.__file__, variant, efforts, place, str(limit)]
        most, reason = len(module.EFFORTS) * (PATIENCE * limit + 60), ""
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=most, env=environment)
            if done.returncode == -signal.SIGPROF:
                reason = f"stopped after {limit:g} s"
            elif done.returncode:
                reason = f"fails: {(done.stderr.strip().splitlines() or ['no message'])[-1][:200]}"
        except subprocess.TimeoutExpired:
            reason = f"stopped after {most:g} s of waiting"
        found = []
        for number in range(len(module.EFFORTS)):
            if (path := Path(place) / f"{number}.npz").exists():
                with np.load(path) as arrays:
                    found.append({key: arrays[key] for key in arrays.files})
        return found, reason


def one_pass(K: np.ndarray) -> float:
    """Return the processor seconds of one reading of the stack, on one thread."""
    from clock import processor_seconds

    beta = np.full(len(K), 1.0 / len(K), np.float32)
    with threadpool_limits(1):
        return processor_seconds(lambda: np.tensordot(beta, K, 1))


def machine() -> dict:
    import sklearn

    import multikernel

    about = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next((line.split(":")[1].strip() for line in about if "model name" in line), "")
    return {
        "processor": model or platform.machine(), "cores": os.cpu_count(), "python": platform.python_version(),
        "multikernel": multikernel.__version__, "numpy": np.__version__, "scikit-learn": sklearn.__version__,
    }  # fmt: skip


def compare(name: str, problems: dict, modules: list, limit: float, folder: Path, console: Console, done: set):
    """Yield a record for every run on one problem, but for contestants that are done."""
    about = write(name, folder, problems)
    K, y, y_test = (np.load(folder / f"{key}.npy") for key in ("K", "y", "y_test"))
    unit = one_pass(K)
    for module in modules:
        python, reason = interpreter(module.REQUIREMENTS, cache_folder())
        for variant in module.VARIANTS:
            title = module.TITLE.format(variant)
            if (name, title) in done:
                continue
            why = reason or module.skip(about, variant)
            about_run = {"problem": name, "title": about["title"], "contestant": title, "pass": unit}
            found: list[dict] = []
            if not why:
                console.print(f"{name}: {title}", highlight=False)
                found, why = runs(python, folder, module, variant, limit)
            for effort, each in zip(module.EFFORTS, found, strict=False):
                measured = metrics(each, K, y, y_test, about["C"], about["norm"])
                yield about_run | {"effort": effort} | measured
            if why:
                yield about_run | {"effort": module.EFFORTS[len(found)], "skipped": why}


def read(path: Path) -> list[dict]:
    """Return the lines of a file of results: the machine, then the runs."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--problem", choices=[*PROBLEMS, *QUICK], help="one problem")
    parser.add_argument("--contestant", default="")
    parser.add_argument("--limit", type=float)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "peers.jsonl")
    parser.add_argument("--page", type=Path, help="page of the documentation that is written")
    parser.add_argument("--note", default="", help="what a reader of the page must know of this run")
    parser.add_argument("--resume", action="store_true", help="go on with a run that was stopped")
    parser.add_argument("--report", action="store_true", help="run nothing")
    options = parser.parse_args(arguments)
    problems = QUICK if options.quick else PROBLEMS
    limit = options.limit or (QUICK_LIMIT if options.quick else LIMIT)
    if not options.report:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        kept = read(options.out) if options.resume and options.out.exists() else [{"machine": machine()}]
        done = {(line["problem"], line["contestant"]) for line in kept[1:]}
        with options.out.open("w", encoding="utf-8") as file, tempfile.TemporaryDirectory() as place:
            file.writelines(json.dumps(line) + "\n" for line in kept)
            for name in (name for name in problems if options.problem in (None, name)):
                modules = contestants(options.contestant)
                for record in compare(name, problems, modules, limit, Path(place) / name, Console(stderr=True), done):
                    file.write(json.dumps(record) + "\n")
                    file.flush()
    from page import show, write_page

    lines = read(options.out)
    add_gaps(lines[1:])
    show(lines[1:], Console() if sys.stdout.isatty() else Console(width=130))
    if options.page:
        write_page(lines[0]["machine"], lines[1:], options.page, options.note)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
