"""Many fits on many data sets: where is a fit slow, and where does it not converge?

    python benchmarks/survey.py [--quick] [--fits N] [--check]     draw, fit what is not yet done, report
    python benchmarks/survey.py --jobs 8                           several families at once, each in a process
    python benchmarks/survey.py --searches                         searches against GridSearchCV over the same fits
    python benchmarks/survey.py --only KEY                         one fit again, with its history
    python benchmarks/survey.py --report                           report what is done
    python benchmarks/survey.py --solvers auto,newton,level        solvers against each other, on fits of norm 1 to 2

The fits are those of `survey_draw.py`: 3,000 on at most 500 samples and 200 on 2,000, about an hour on one thread; two
minutes with --quick. Each runs in a process of its own that is killed at a limit of processor time, which is then its
time (`survey_fit.py`). Results are kept as JSON lines, one a fit, and a run that was stopped goes on where it was;
fits of another state of the source are done again. Times are those of one thread, as multiples of scikit-learn's
machine on the plain sum of the kernels in the same run, and of one pass over the stack. --check ends with exit code 1
where a bar is missed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from survey_draw import Fit, draw, parse
from survey_fit import Worker, measure, model_of
from survey_report import MOST_PASSES, REFERENCES, report
from survey_searches import report_searches, searched, searches
from survey_solvers import picture, show_solvers

from multikernel.cli.warm_up import run_warm_up

ROOT = Path(__file__).resolve().parents[1]
TOL = 1e-3
# processor seconds that a fit may take, if these are not fewer than its bar: at most 500 samples, 2,000, with --quick
LIMIT, LONG_LIMIT, QUICK_LIMIT = 15.0, 90.0, 3.0


def source_digest() -> str:
    """Return a few letters that change with the source of the library."""
    import multikernel

    digest = hashlib.sha256()
    for path in sorted(Path(multikernel.__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def machine() -> dict:
    import numpy
    import sklearn

    import multikernel

    return {
        "machine": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version(),
        "multikernel": multikernel.__version__, "numpy": numpy.__version__, "sklearn": sklearn.__version__,
    }  # fmt: skip


def read(path: Path, source: str | None) -> dict[str, dict]:
    """Return the records of a file by their keys, the last of each; of one state of the source, or of any."""
    records = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            # a run that was stopped may leave half a line
            continue
        if "key" in record and source in (None, record["source"]):
            records[record["key"]] = record
    return records


def fitted(fits: list[Fit], source: str, limits: tuple[float, float], worker: Worker) -> Iterator[dict]:
    """Yield a record of each fit of one family. The pass is measured once, the reference once for each C."""
    unit = worker.do("pass", fits[0], TOL, 60)
    references: dict[float, dict] = {}
    for fit in fits:
        limit = max(limits[fit.n > 500], MOST_PASSES * unit["one_pass"])
        if fit.C not in references:
            # no fit takes more than its limit: of a longer reference only that it is longer matters
            most = limit / REFERENCES
            references[fit.C] = worker.do("reference", fit, TOL, most) or {"reference": most}
        result = worker.do("fit", fit, TOL, limit) or {"status": "killed", "seconds": limit}
        about = {"key": fit.key, "family": fit.family, "task": fit.task, "C": fit.C, "source": source}
        yield about | unit | references[fit.C] | result


def by_family(fits: list[Fit], jobs: int, call: Callable[[list[Fit], Worker], Iterator[dict]]) -> Iterator[dict]:
    """Yield the records of all fits, several families at once; each thread waits for a process of its own."""
    families: queue.SimpleQueue = queue.SimpleQueue()
    for _, group in groupby(fits, key=lambda fit: fit.family):
        families.put(list(group))
    found: queue.SimpleQueue = queue.SimpleQueue()

    def work() -> None:
        try:
            with Worker() as worker:
                while True:
                    for record in call(families.get_nowait(), worker):
                        found.put(record)
        except queue.Empty:
            found.put(None)
        except BaseException as error:
            found.put(error)

    for _ in range(jobs):
        threading.Thread(target=work, daemon=True).start()
    while jobs:
        record = found.get()
        if isinstance(record, BaseException):
            raise record
        if record is None:
            jobs -= 1
        else:
            yield record


def again(key: str) -> None:
    """Do one fit in this process, without a limit, and print its history."""
    import numpy as np
    from survey_draw import samples, stack
    from threadpoolctl import threadpool_limits

    from multikernel import stack_kernels

    threadpool_limits(1)
    fit = parse(key)
    K, y = stack(fit.dataset, fit.bank, fit.n)
    print(f"{len(K)} kernels, {K.shape[1]} samples, {len(np.unique(y))} different targets", flush=True)
    data = samples(fit.dataset, fit.n)[:2] if fit.bank == "features" else (stack_kernels(K), y)
    model = model_of(fit, TOL).set_params(verbose=1).fit(*data)
    print(f"{model.solver_}: {model.status_}, gap {np.max(model.duality_gap_):.3g}, {model.n_iter_} iterations")
    print({name: round(value, 5) if isinstance(value, float) else value for name, value in measure(fit, TOL).items()})


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="every seventh family, at most 500 samples")
    parser.add_argument("--fits", type=int, help="about so many fits, over all families")
    parser.add_argument("--samples", type=int, default=500, help="most samples of the fits that are not on 2,000")
    parser.add_argument("--only", metavar="KEY", help="one fit")
    parser.add_argument("--match", default="", help="only keys that contain this text")
    parser.add_argument("--solvers", help="names of solvers, with commas between them")
    parser.add_argument("--picture", type=Path, help="with --solvers: the file of their profiles")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="file of results")
    parser.add_argument("--limit", type=float, help="processor seconds that a fit may take")
    parser.add_argument("--report", action="store_true", help="fit nothing")
    parser.add_argument("--jobs", type=int, default=1, help="families at once; more than cores makes times worthless")
    parser.add_argument("--searches", action="store_true", help="searches instead of fits")
    parser.add_argument("--check", action="store_true", help="exit code 1 where a bar is missed")
    options = parser.parse_args(arguments)
    source = source_digest()
    if options.only:
        again(options.only)
        return 0
    fits, limits = chosen(options)
    call = partial(searched, source=source) if options.searches else partial(fitted, source=source, limits=limits)
    options.out = options.out or ROOT / "build" / ("searches.jsonl" if options.searches else "survey.jsonl")
    done = read(options.out, None if options.report else source)
    todo = [] if options.report else [fit for fit in fits if fit.key not in done]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    if todo:
        # compiled once, so that no fit of a process is timed with it
        run_warm_up()
    with options.out.open("a", encoding="utf-8") as file, Progress(*columns, console=Console(stderr=True)) as progress:
        if todo:
            file.write(json.dumps({"run": machine(), "source": source, "seed": options.seed}) + "\n")
        task = progress.add_task("fits", total=len(todo))
        for record in by_family(todo, options.jobs, lambda group, worker: call(group, worker=worker)):
            done[record["key"]] = record
            file.write(json.dumps(record) + "\n")
            file.flush()
            progress.update(task, advance=1, description=record["family"])
    keys = [fit.key for fit in fits]
    console = Console() if sys.stdout.isatty() else Console(width=120)
    records = [done[key] for key in keys if key in done]
    if options.solvers:
        show_solvers(records, console)
        if options.picture:
            picture(records, options.picture)
        return 0
    met = (report_searches if options.searches else report)(records, console)
    return 1 if options.check and not met else 0


def chosen(options) -> tuple[list[Fit], tuple[float, float]]:
    """Return the fits that the options ask for, and their limits of processor time."""
    limits = LIMIT, LONG_LIMIT
    if options.quick:
        fits, limits = draw(options.seed, 2, 0, every=7, n=options.samples), (QUICK_LIMIT, QUICK_LIMIT)
    elif options.fits:
        whole = len(draw(options.seed, 1, 1))
        settings = max(1, round(options.fits / whole))
        every = max(1, round(whole * settings / options.fits))
        fits = draw(options.seed, settings, settings, every=every, n=options.samples)
    else:
        fits = draw(options.seed, n=options.samples)
    if options.limit:
        limits = options.limit, options.limit
    if options.solvers:
        # with norm=inf there is nothing to learn, and explicit features have a solver of their own
        some = [fit for fit in fits if fit.norm <= 2 and fit.bank != "features"]
        fits = [replace(fit, solver=solver) for fit in some for solver in options.solvers.split(",")]
    if options.searches:
        fits = searches(fits)
    return [fit for fit in fits if options.match in fit.key], limits


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
