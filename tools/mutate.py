"""Mutation testing: change one operator, constant, condition or return value at a time, and see which tests notice.

    python tools/mutate.py src/multikernel/mixing/norms.py --tests tests/mixing [--jobs 2]

Prints the mutants that survive, with file, line, what stood and what stands, and the share that was killed. Compiled
loops run as Python (NUMBA_DISABLE_JIT=1).

A tool of our own because it takes seconds where others take minutes: cosmic-ray starts a new interpreter for each
mutant, which imports SciPy, Numba and scikit-learn anew, and mutmut does not mutate what stands outside of functions.
Here one process imports other people's modules once and is forked for each mutant, and a mutant runs only the tests
that reach its line, fastest first.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import signal
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import suppress
from copy import copy
from importlib.machinery import SourceFileLoader
from pathlib import Path

os.environ |= {"NUMBA_DISABLE_JIT": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
ROOT = Path(__file__).resolve().parent.parent
os.chdir(ROOT)
OPTIONS = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--no-header", "--no-summary"]

COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitAnd,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
NAMES = {a: b for pair in (("min", "max"), ("minimum", "maximum"), ("argmin", "argmax"), ("any", "all"))
         for a, b in (pair, pair[::-1])}  # fmt: skip


class Mutator(ast.NodeTransformer):
    """Make the mutation of number ``wanted``; count all of them where that is None."""

    def __init__(self, wanted: int | None = None) -> None:
        self.wanted, self.lines, self.change = wanted, [], ""

    def _mutants(self, node: ast.AST, *others: ast.AST) -> ast.AST:
        """Return the one of ``others`` that is wanted, else the node."""
        for other in others:
            self.lines.append(node.lineno)
            if len(self.lines) - 1 == self.wanted:
                self.change = "   ->   ".join(" ".join(ast.unparse(each).split()) for each in (node, other))
                return ast.copy_location(other, node)
        return node

    def _conditional(self, node):
        if not (isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not)):
            node.test = self._mutants(node.test, ast.UnaryOp(ast.Not(), node.test))
        return self.generic_visit(node)

    visit_If = visit_While = visit_IfExp = _conditional

    def visit_Compare(self, node):
        node = self.generic_visit(node)
        swapped = [[*node.ops[:i], COMPARISONS[type(op)](), *node.ops[i + 1 :]] for i, op in enumerate(node.ops)]
        return self._mutants(node, *[ast.Compare(node.left, ops, node.comparators) for ops in swapped])

    def _operator(self, node):
        node = self.generic_visit(node)
        if type(node.op) not in OPERATORS:
            return node
        other = copy(node)
        other.op = OPERATORS[type(node.op)]()
        return self._mutants(node, other)

    visit_BinOp = visit_AugAssign = visit_BoolOp = _operator

    def visit_UnaryOp(self, node):
        node = node if isinstance(node.operand, ast.Constant) else self.generic_visit(node)
        return self._mutants(node, node.operand)

    def visit_Constant(self, node):
        value = node.value
        if isinstance(value, int):
            return self._mutants(node, ast.Constant(not value if isinstance(value, bool) else value + 1))
        if isinstance(value, float):
            # a tolerance or a guard is switched off; another number grows by half
            guard = value and not 1e-6 < abs(value) < 1e6
            return self._mutants(node, ast.Constant(1.0 if guard else 1.5 * value or 1.0))
        return node

    def visit_Name(self, node):
        return self._mutants(node, ast.Name(NAMES[node.id], node.ctx)) if node.id in NAMES else node

    def visit_Attribute(self, node):
        node = self.generic_visit(node)
        return (
            self._mutants(node, ast.Attribute(node.value, NAMES[node.attr], node.ctx)) if node.attr in NAMES else node
        )

    def visit_Slice(self, node):
        node = self.generic_visit(node)
        for name in ("lower", "upper"):
            bound = getattr(node, name)
            if bound is not None and not isinstance(bound, ast.Constant):
                setattr(node, name, self._mutants(bound, ast.BinOp(bound, ast.Add(), ast.Constant(1))))
        return node

    def visit_Return(self, node):
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            if (dropped := self._mutants(node, ast.Return(ast.Constant(None)))) is not node:
                return dropped
        return self.generic_visit(node)

    # annotations, decorators, imports, errors, assertions and texts are left alone
    def _definition(self, node):
        if isinstance(node, ast.FunctionDef):
            node.args.defaults = [self.visit(each) for each in node.args.defaults]
        node.body = [self.visit(each) for each in node.body]
        return node

    visit_FunctionDef = visit_ClassDef = _definition

    def visit_AnnAssign(self, node):
        node.value = node.value and self.visit(node.value)
        return node

    visit_Raise = visit_Assert = visit_Import = visit_ImportFrom = visit_JoinedStr = lambda self, node: node


class Watch:
    """A pytest plugin: which lines of a file each test reaches, and how long it takes."""

    def __init__(self, target: str) -> None:
        self.target, self.seconds = target, defaultdict(float)
        self.lines: dict[int, set[str]] = defaultdict(set)

    def pytest_runtest_logreport(self, report) -> None:
        self.seconds[report.nodeid] += report.duration

    def pytest_runtest_setup(self, item) -> None:
        def within(frame, event, arg):
            self.lines[frame.f_lineno].add(item.nodeid)
            return within

        sys.settrace(lambda frame, event, arg: within if frame.f_code.co_filename == self.target else None)

    def pytest_runtest_teardown(self, item) -> None:
        sys.settrace(None)


def fork(work, timeout: float) -> int:
    """Run ``work`` in a child with its output thrown away; return the child's id."""
    child = os.fork()
    if child:
        return child
    signal.alarm(int(timeout))
    null, code = os.open(os.devnull, os.O_WRONLY), 1
    os.dup2(null, 1)
    os.dup2(null, 2)
    try:
        code = int(work())
    finally:
        os._exit(code)


def observe(target: str, tests: list[str]) -> tuple[dict[str, float], dict[int, set[str]]]:
    """Run the tests on the file as it is; import here what they import from elsewhere."""
    import pytest

    with tempfile.NamedTemporaryFile() as file:

        def work():
            watch = Watch(target)
            result = pytest.main([*OPTIONS, *tests], plugins=[watch])
            modules = [name for name, each in sys.modules.items() if "site-packages" in str(vars(each).get("__file__"))]
            lines = {line: sorted(nodes) for line, nodes in watch.lines.items()}
            Path(file.name).write_text(json.dumps([modules, watch.seconds, lines]))
            # the same tests by their names, as mutants will run them
            return result or pytest.main([*OPTIONS, *watch.seconds])

        if os.waitpid(fork(work, 3600), 0)[1]:
            sys.exit("The tests must pass on the file as it is.")
        modules, seconds, lines = json.loads(Path(file.name).read_text())
    for name in modules:
        # what cannot be imported by itself is imported by the tests
        with suppress(Exception):
            importlib.import_module(name)
    return seconds, {int(line): set(nodes) for line, nodes in lines.items()}


def main() -> None:
    """Mutate the files that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--tests", nargs="+", required=True)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT / "src"))
    for name in options.files:
        run_file(ROOT / name, options.tests, options.jobs)


def run_file(path: Path, tests: list[str], jobs: int) -> None:
    """Print the survivors of one file."""
    import pytest

    plain = SourceFileLoader.get_code
    began, source, target = time.perf_counter(), path.read_text(), str(path)
    seconds, reached = observe(target, tests)
    count = Mutator()
    count.visit(ast.parse(source))
    total, running, survived = len(count.lines), {}, 0
    waiting = list(range(total))
    while waiting or running:
        if waiting and len(running) < jobs:
            mutator = Mutator(waiting.pop(0))
            tree = ast.fix_missing_locations(mutator.visit(ast.parse(source)))
            line = mutator.lines[mutator.wanted]
            # lines that run at import, and continued ones, are everybody's
            nodes = sorted(reached.get(line) or seconds, key=seconds.__getitem__)
            code, limit = compile(tree, target, "exec"), 20 + 3 * sum(seconds[node] for node in nodes)

            def work(code=code, nodes=nodes):
                # imports of the file run the mutant's code
                SourceFileLoader.get_code = lambda self, name: code if self.path == target else plain(self, name)
                return pytest.main([*OPTIONS, *nodes])

            running[fork(work, limit)] = line, mutator.change
            continue
        child, status = os.wait()
        line, change = running.pop(child)
        if status == 0:
            survived += 1
            print(f"survived  {path.relative_to(ROOT)}:{line}   {change}", flush=True)
    killed, took = total - survived, time.perf_counter() - began
    print(f"{path.relative_to(ROOT)}: {killed} of {total} killed ({100 * killed / max(total, 1):.1f} %), {took:.0f} s")


if __name__ == "__main__":
    main()
