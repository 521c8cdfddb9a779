"""Count the knobs of the package: numbers in the source that steer it and that no user can set.

    python tools/knobs.py [FOLDER] [--max N] [--all]       FOLDER is src by default; run by `make knobs`

A knob is

- a number assigned at module level: a numeric literal (`1e-3`), an expression of numeric literals (`64 << 20`, `-1.0`),
  such a number converted (`np.uint64(1)`), or a tuple, list or dict of such, of which each element counts one:
  `A, B = 0.5, 3` is two knobs;
- a numeric default of a parameter of a private function. A function is private if its name starts with an underscore,
  if it stands inside another function, or if it is a method of a private class; `__init__` is as private as its class;
- a numeric default of a private field: an assignment in the body of a class whose own name or whose field's name starts
  with an underscore, or whose field's name is a word in capitals. `field(default=...)` counts as its default.

Not knobs:

- truth values;
- codes: several names assigned the consecutive integers 0, 1, 2, ... in one statement, `A, B, C = 0, 1, 2`;
- numbers derived from other names (`MASK = (1 << BITS) - 1`): the names they derive from are counted;
- defaults of parameters and fields that are 0, 1, -1 or infinite: they say "nothing yet", "plain" or "no limit".
  `--all` counts these too.

Printed are a line `file:line name = value` for each knob, the number in each room (first folder below the package), and
the total. With `--max N` the exit status is 1 if there are more than N.
"""

from __future__ import annotations

import argparse
import ast
import math
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
CONVERSION = re.compile(r"(np\.|numpy\.)?(int|uint|float)(8|16|32|64)?$")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Knob(NamedTuple):
    """One number: where it is written, the name it is given, its source text, and where it stands."""

    file: str
    line: int
    name: str
    value: str
    kind: str


def number(node: ast.AST | None) -> float | None:
    """Return the value of an expression of numeric literals, None for any other expression."""
    if node is None:
        return None
    for part in ast.walk(node):
        if isinstance(part, ast.Constant):
            if type(part.value) not in (int, float):
                return None
        elif ast.unparse(part) in ("np.inf", "math.inf", "np", "math"):
            continue
        elif not isinstance(part, ast.UnaryOp | ast.BinOp | ast.operator | ast.unaryop | ast.expr_context):
            return None
    return eval(compile(ast.Expression(node), "knob", "eval"), {"np": math, "math": math})


def numbers(node: ast.AST | None) -> Iterator[ast.AST]:
    """Yield the numbers of an expression: itself, or the elements of a tuple, list or dict."""
    if isinstance(node, ast.Tuple | ast.List):
        for element in node.elts:
            yield from numbers(element)
    elif isinstance(node, ast.Dict):
        for element in node.values:
            yield from numbers(element)
    elif isinstance(node, ast.Call) and len(node.args) == 1 and CONVERSION.match(ast.unparse(node.func)):
        yield from numbers(node.args[0])
    elif number(node) is not None:
        yield node


def is_trivial(node: ast.AST) -> bool:
    """Tell whether a default is 0, 1, -1 or infinite."""
    return abs(number(node)) in (0, 1, math.inf)


def is_private(name: str) -> bool:
    """Tell whether a name starts with an underscore and is none of Python's own, such as `__init__`."""
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def assigned(statement: ast.stmt) -> Iterator[tuple[str, ast.AST]]:
    """Yield (name, value) for each name that a statement assigns, none for codes."""
    if isinstance(statement, ast.AnnAssign):
        yield ast.unparse(statement.target), statement.value
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            value = statement.value
            if not (isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)):
                yield ast.unparse(target), value
            elif [number(element) for element in value.elts] != list(range(len(value.elts))):
                yield from ((ast.unparse(name), element) for name, element in zip(target.elts, value.elts, strict=True))


def default_of(value: ast.AST | None) -> ast.AST | None:
    """Return the default of a class's field, which may be written `field(default=...)`."""
    if isinstance(value, ast.Call) and ast.unparse(value.func).split(".")[-1] == "field":
        return next((keyword.value for keyword in value.keywords if keyword.arg == "default"), None)
    return value


def parameters(function: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield (name, default) for each parameter of a function with a default."""
    spec = function.args
    positional = [*spec.posonlyargs, *spec.args]
    pairs = [*zip(positional[len(positional) - len(spec.defaults) :], spec.defaults, strict=True)]
    pairs += zip(spec.kwonlyargs, spec.kw_defaults, strict=True)
    yield from ((parameter.arg, default) for parameter, default in pairs if default is not None)


def found(source: str, file: str, count_trivial: bool = False) -> list[Knob]:
    """Return the knobs of one source."""
    knobs: list[Knob] = []

    def add(name: str, value: ast.AST | None, kind: str) -> None:
        for each in numbers(value):
            if kind == "module" or count_trivial or not is_trivial(each):
                knobs.append(Knob(file, each.lineno, name, ast.unparse(each), kind))

    def visit(node: ast.AST, owner: str, place: str, private: bool) -> None:
        """Go through what stands in `node`: `place` is "module", "class" or "function", `private` that of the owner."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Assign | ast.AnnAssign) and place != "function":
                for name, value in assigned(child):
                    if place == "module" or private or is_private(name) or (name.isupper() and len(name) > 1):
                        add(owner + name, default_of(value), "field" if place == "class" else place)
            if isinstance(child, ast.ClassDef):
                visit(child, f"{owner}{child.name}.", "class", private or is_private(child.name) or place == "function")
            elif isinstance(child, FUNCTIONS):
                name = getattr(child, "name", "lambda")
                hidden = private or is_private(name) or name == "lambda" or place == "function"
                if hidden:
                    for parameter, default in parameters(child):
                        add(f"{owner}{name}({parameter})", default, "parameter")
                visit(child, f"{owner}{name}.", "function", hidden)
            else:
                visit(child, owner, place, private)

    visit(ast.parse(source), "", "module", False)
    return knobs


def room_of(file: str) -> str:
    """Return the first folder below the package of a path such as src/package/room/module.py, else "frame"."""
    parts = Path(file).parts
    return parts[1] if len(parts) > 2 else "frame"


def main(arguments: list[str] | None = None) -> int:
    """Print the knobs and their numbers; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "src", help="folder that holds the package")
    parser.add_argument("--max", type=int, default=None, help="exit status 1 if there are more knobs than this")
    parser.add_argument("--all", action="store_true", help="count defaults of 0, 1, -1 and infinity too")
    options = parser.parse_args(arguments)
    knobs = []
    for path in sorted(options.folder.rglob("*.py")):
        knobs += found(path.read_text(encoding="utf-8"), str(path.relative_to(options.folder)), options.all)
    for knob in knobs:
        print(f"{knob.file}:{knob.line} {knob.name} = {knob.value}")
    for title, key in (("room", lambda knob: room_of(knob.file)), ("kind", lambda knob: knob.kind)):
        print()
        for name, count in sorted(Counter(map(key, knobs)).items()):
            print(f"{title} {name:<18} {count:4d}")
    print(f"\ntotal {len(knobs)}")
    if options.max is not None and len(knobs) > options.max:
        print(f"more than {options.max} knobs")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
