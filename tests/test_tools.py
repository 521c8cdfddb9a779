"""The developer tools count what they say they count."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parent.parent / "tools"


def load(name):
    spec = importlib.util.spec_from_file_location(f"tools_{name}", TOOLS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    # a dataclass looks its module up
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


alternate, knobs, lowest, walk = load("alternate"), load("knobs"), load("lowest"), load("walk")

TOY = {
    "__init__.py": "",
    "top.py": "def inner(x):\n    return x\n",
    "low/__init__.py": "",
    "low/add.py": """
from toy import top
def once(x): return top.inner(x)
def twice(x): return once(once(x))
def deep(call): return call()
""",
    "low/sub/__init__.py": "",
    "low/sub/steps.py": """
from toy.low import add
def step(x): return add.once(x)
def numbers(n): yield from range(n)
""",
    "high/__init__.py": "",
    "high/run.py": """
from toy.low import add
from toy.low.sub import steps
def fit(): return [add.twice(k) for k in (1, 2, 3)]
def one(): return add.once(1)
def other(): return steps.step(2)
def turns():
    one(); one(); other(); one()
def back(): return add.deep(one)
def lazily(): return list(steps.numbers(3))
def fails():
    try:
        add.deep(lambda: 1 / 0)
    except ZeroDivisionError:
        return one()
""",
}


@pytest.fixture
def toy(tmp_path, monkeypatch):
    for name, source in TOY.items():
        path = tmp_path / "toy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    from toy.high import run

    yield run, tmp_path / "toy"
    for name in [name for name in sys.modules if name.split(".")[0] == "toy"]:
        del sys.modules[name]


def counts(walked):
    return {room: len(callers) for room, callers in walked.entries.items()}


def test_walk_counts_files_and_functions_by_room(toy):
    run, package = toy
    walked = walk.Walk(package).trace(run.fit)
    names = {file: [code.co_name for code in codes] for file, codes in walked.functions.items()}
    comprehension = ["<listcomp>"] if sys.version_info < (3, 12) else []
    assert names == {"high/run.py": ["fit", *comprehension], "low/add.py": ["twice", "once"], "top.py": ["inner"]}
    assert walked.totals == (3, 4 + len(comprehension))
    # three calls of `twice` from one function are one entry, and `once` is called inside the room
    assert counts(walked) == {"high": 1, "low": 1, "frame": 1}


def test_walk_counts_entries_of_other_callers(toy):
    run, package = toy
    # one, one, other, one: the first two are one entry; other enters low through low/sub, which is the same room
    walked = walk.Walk(package).trace(run.turns)
    assert [code.co_name for code in walked.entries["low"]] == ["one", "other", "one"]
    assert list(walked.folders()) == ["high", "low", "low/sub", "frame"]


@pytest.mark.parametrize("name, low", [("back", 1), ("lazily", 1), ("fails", 2)])
def test_walk_follows_the_stack(toy, name, low):
    run, package = toy
    # back: high is on the stack when low calls it; fails: low is left by an exception, so the next call is an entry
    assert counts(walk.Walk(package).trace(getattr(run, name))) == {"high": 1, "low": low} | (
        {"frame": 1} if name != "lazily" else {}
    )


def test_walk_says_which_bar_is_missed(toy):
    run, package = toy
    walked = walk.Walk(package).trace(run.turns)
    assert walk.missed("a walk", walked, walked.totals, ("high",)) == []
    files, functions = walked.totals
    sentences = walk.missed("a walk", walked, (files - 1, functions - 1), ("high", "low", "attic"))
    assert [sentence.split(",")[0] for sentence in sentences] == [
        f"a walk crosses {files} files",
        f"a walk crosses {functions} functions",
        "a walk enters low 3 times",
        "a walk enters attic 0 times",
    ]
    (package / "long.py").write_text("x = 1\n" * 401)
    (package / "short.py").write_text("x = 1\n" * 400)
    assert walk.long_files(package) == ["long.py has 401 lines, at most 400 allowed"]


@pytest.mark.parametrize(
    "source, names",
    [
        ("A = 3\nB: float = -1.0\nC = 64 << 20\n_D = 1e-3", ["A", "B", "C", "_D"]),
        ("A, B = 0.5, 3", ["A", "B"]),
        ("A, B, C = 0, 1, 2", []),
        ("A, B = 1, 2", ["A", "B"]),
        ("A = (1.0, 2.0)\nB = {'f': 1e-6, 'd': 1e-11}", ["A", "A", "B", "B"]),
        ("A = np.uint64(2**64 - 1)", ["A"]),
        ("A = True\nB = 'x'\nC = None\nD = f(2)\nE = (1, 'x')", ["E"]),
        ("BITS = 6\nMASK = (1 << BITS) - 1", ["BITS"]),
        ("if True:\n    A = 3", ["A"]),
        ("def f(x=3): y = 4", []),
        ("def _f(x=3, *, y=0.5, z=None, u=True): w = 4", ["_f(x)", "_f(y)"]),
        ("def _f(x=0, y=1.0, z=-1, u=np.inf): pass", []),
        ("def f():\n    def g(x=3): pass", ["f.g(x)"]),
        ("f = lambda x=3: x", ["lambda(x)"]),
        ("class A:\n    x: int = 3\n    _y: int = 4\n    C = 0.5\n    ZEAL = 5", ["A._y", "A.ZEAL"]),
        ("class A:\n    def __init__(self, x=3): pass\n    def _m(self, y=3): pass", ["A._m(y)"]),
        (
            "class _A:\n    x: int = 3\n    y: float = field(default=0.5)\n    def m(self, z=2): pass\n"
            "    def __init__(self, u=3): pass",
            ["_A.x", "_A.y", "_A.m(z)", "_A.__init__(u)"],
        ),
        ("class _A:\n    gap: float = np.inf\n    waited: int = 0", []),
    ],
)
def test_knobs_are_found(source, names):
    assert [knob.name for knob in knobs.found(source, "toy.py")] == names


def test_knobs_counts_trivial_defaults_on_request():
    source = "class _A:\n    gap: float = -np.inf\n    waited: int = 0\n    seen: bool = False"
    assert [knob.value for knob in knobs.found(source, "toy.py", True)] == ["-np.inf", "0"]


def test_knobs_main_prints_rooms_and_holds_the_bar(tmp_path, capsys):
    sources = {"toy/top.py": "A = 3", "toy/low/add.py": "\nB, C = 0.5, 3", "toy/low/sub/steps.py": "D = 4"}
    for name, source in sources.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(source)
    assert knobs.main([str(tmp_path), "--max", "4"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "toy/low/add.py:2 B = 0.5" in lines and lines[-1] == "total 4"
    assert [line.split()[1:] for line in lines if line.startswith("room")] == [["frame", "1"], ["low", "3"]]
    assert knobs.main([str(tmp_path), "--max", "3"]) == 1


def seconds(cpu, wall=1.0):
    return {"cpu": cpu, "wall": wall}


def test_alternate_ratios_are_medians_of_pairs():
    # ratios of the pairs 2, 1, 0.5 and 4, 2, 1; the smallest processor times are 1 and 1.5
    pairs = [
        (seconds(1.0, 1.0), seconds(2.0, 4.0)),
        (seconds(4.0, 2.0), seconds(4.0, 4.0)),
        (seconds(3.0, 3.0), seconds(1.5, 3.0)),
    ]
    assert alternate.ratios(pairs) == (1.0, 1.5, 2.0)


def test_alternate_differences_are_relative_to_the_largest():
    assert alternate.difference([200.0], [200.1]) == pytest.approx(5e-4)
    assert alternate.difference([0.0, 2.0], [0.1, 2.0]) == pytest.approx(0.05)
    assert alternate.difference([1.0], [1.0, 2.0]) == float("inf")
    assert alternate.difference([], []) == 0.0


def test_alternate_verdict_holds_both_bars():
    assert alternate.verdict({"a": 1.1, "b": 1.0}) == []
    (worst,) = alternate.verdict({"a": 1.2, "b": 0.8})
    assert worst.startswith("a: 1.200")
    (mean,) = alternate.verdict({"a": 1.1, "b": 1.05})
    assert mean.startswith("geometric mean 1.075")


def test_alternate_refuses_a_folder_without_the_package(tmp_path):
    with pytest.raises(SystemExit, match="must be a folder that holds the package"):
        alternate.Version(tmp_path)


@pytest.fixture
def mutate(tmp_path):
    """A small project of its own, and the run of the tool in it on one file and its tests."""
    files = {
        "src/clip.py": "def clip(x):\n    return min(x, 3)\n\n\ndef spare(x):\n    return x + 1\n",
        "test_clip.py": "from clip import clip\n\n\ndef test():\n    assert clip(5) == 3 and clip(1) == 1\n",
    }
    for name, source in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(source)
    (tmp_path / "tools").mkdir()
    shutil.copy(TOOLS / "mutate.py", tmp_path / "tools")

    def run(tests="test_clip.py"):
        command = [sys.executable, "tools/mutate.py", "src/clip.py", "--tests", tests, "--jobs", "1"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    return run, tmp_path


def test_mutate_names_what_survives(mutate):
    run, folder = mutate
    result = run()
    assert result.returncode == 0, result.stderr
    *survivors, total = result.stdout.splitlines()
    # the mutants of the first line are None, max and 4, all of them noticed; those of the other no test runs
    changes = ["return x + 1 -> return None", "1 -> 2", "x + 1 -> x - 1"]
    assert [" ".join(line.split()) for line in survivors] == [f"survived src/clip.py:6 {each}" for each in changes]
    assert total.startswith("src/clip.py: 3 of 6 killed (50.0 %)")
    assert (folder / "src" / "clip.py").read_text().endswith("return x + 1\n")


def test_mutate_refuses_tests_that_fail_without_a_mutant(mutate):
    run, folder = mutate
    (folder / "test_wrong.py").write_text("from clip import clip\n\n\ndef test():\n    assert clip(5) == 4\n")
    result = run("test_wrong.py")
    assert result.returncode != 0 and "must pass" in result.stderr


def test_tools_are_short():
    assert walk.long_files(TOOLS, 250) == []


def test_lowest_versions_are_those_of_the_project():
    project = {
        "dependencies": ["numpy>=2.0", "psutil>=5.9; sys_platform != 'linux'", "mkdocs>=1.6,<2"],
        "optional-dependencies": {"test": ["coverage[toml]>=7.4", "numpy>=2.0"], "docs": ["rich>=13"]},
    }
    expected = {"numpy": "2.0", "psutil": "5.9", "mkdocs": "1.6", "coverage": "7.4"}
    assert lowest.lowest_versions(project, ["test"]) == expected


@pytest.mark.parametrize(
    ("dependencies", "sentence"),
    [
        (["numpy"], "'numpy' has no lower bound"),
        (["numpy<3"], "'numpy<3' has no lower bound"),
        (["numpy>=2.0", "numpy>=2.1"], "numpy has two lower bounds, 2.0 and 2.1"),
    ],
)
def test_lowest_versions_need_one_lower_bound(dependencies, sentence):
    with pytest.raises(ValueError, match=sentence):
        lowest.lowest_versions({"dependencies": dependencies}, [])


def test_lowest_main_prints_constraints(capsys):
    assert lowest.main(["test"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "typer==0.16" in lines and any(line.startswith("pytest==") for line in lines)
    assert lowest.main(["tset"]) == 2
    assert "no optional dependencies named 'tset'" in capsys.readouterr().err
