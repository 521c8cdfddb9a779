"""Bad input of every public callable: one sentence that names the parameter, never another exception or an answer."""

from __future__ import annotations

import importlib
import inspect
import tempfile
import warnings
from collections.abc import Callable
from contextlib import chdir
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

from drill import Kind
from drill.arguments import (
    ALIASES,
    ARGUMENTS,
    BAD,
    BAD_SAMPLES,
    LEFT_OUT,
    OWN_ARGUMENTS,
    ROOMS,
    TAKES,
    TEXTS,
    WORD,
    X,
    Y,
)
from drill.fits import ESTIMATORS, draw_samples, evaluate, fit, make, unclear
from multikernel import MKLClassifier, MKLRegressor, kernels, losses
from multikernel.cli.app import app
from multikernel.kernels import DegreeBlocks, Family, HashedDegree, Kernel, PositionBlocks
from multikernel.kernels.sequences.base import SequenceKernel


def parameters(call: Callable) -> list[inspect.Parameter]:
    """Return the parameters of a callable that a user can name."""
    return [p for p in inspect.signature(call).parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def bad_values(parameter: inspect.Parameter) -> list[Any]:
    """Return values that a parameter must not have."""
    if parameter.name in ("results", "path"):
        return [value for value in BAD if value is not WORD]  # a word may name a file
    # a number whose default is not negative must not be negative
    number = isinstance(parameter.default, int | float) and not isinstance(parameter.default, bool)
    return [*BAD, -1] if number and parameter.default >= 0 else list(BAD)


def with_arguments(call: Callable, name: str, value: Any) -> Any:
    """Call with one bad argument among good ones."""
    needed = [p.name for p in parameters(call) if p.default is p.empty]
    own = OWN_ARGUMENTS.get(call.__name__, {})
    if "model" in needed and "model" not in own:
        on_numbers = any(word in call.__name__ for word in ("report", "cautions"))
        own = {"model": fitted_on_numbers() if on_numbers else sequence_model()}
    found = call(**{**{each: ARGUMENTS.get(each) for each in needed}, **own, name: value})
    # kernels look at their parameters when they are fitted
    for kernel in found if isinstance(found, list) else [found]:
        if isinstance(kernel, Kernel | Family):
            fit_one(kernel)


def fit_estimator(name: str, parameter: str, value: Any) -> None:
    model = make(name)
    samples = draw_samples(model, np.random.default_rng(0), 16)
    fit(model.set_params(**{parameter: value}), *samples)


def fit_one(kernel) -> None:
    """Fit a kernel or a family of kernels, alone or in a model."""
    of_sequences = isinstance(kernel, SequenceKernel | DegreeBlocks | PositionBlocks | HashedDegree)
    samples = TEXTS if of_sequences else X
    if isinstance(kernel, Kernel):
        kernel.fit(samples)(samples)
    else:
        MKLClassifier([kernel]).fit(samples, Y)


@cache
def fitted_on_numbers():
    """Return a model of numbers, which can be reported."""
    return make("M3KClassifier").fit(X, Y)


@cache
def sequence_model():
    """Return a model of sequences, which can be inspected."""
    return MKLClassifier([kernels.WeightedDegree(3)]).fit(TEXTS, Y)


def fit_loss(cls: type, parameter: str, value: Any) -> None:
    loss = cls(**{parameter: value})
    (MKLClassifier if loss.task == "classification" else MKLRegressor)(loss=loss).fit(X, Y)


def fit_samples(name: str, argument: str, value: Any) -> None:
    model = make(name)
    good = {"X": X, "y": draw_samples(model, np.random.default_rng(0), 12)[1]}
    if argument == "y" and good["y"] is None:
        raise ValueError("y is not looked at")
    model.fit(**{**good, argument: value})


def predict_samples(name: str, argument: str, value: Any) -> None:
    evaluate(fitted(name), value)


@cache
def fitted(name: str):
    """Return a fitted model."""
    model = make(name)
    return fit(model, *draw_samples(model, np.random.default_rng(0), 16))


# arguments without a name, in their order
POSITIONAL = {"compare": ("data",), "fit": ("data",), "predict": ("model", "data"), "inspect": ("model",),
              "report": ("model", "data")}  # fmt: skip
# options of a path that any word may name
PATHS = ("output", "out", "checkpoint", "title")


@cache
def saved_model() -> bytes:
    """Return a saved model on the column of the table below."""
    import pandas as pd

    with tempfile.TemporaryDirectory() as folder:
        MKLClassifier().fit(pd.DataFrame({"a": X[:, 0]}), Y).save(Path(folder) / "model.mk")
        return (Path(folder) / "model.mk").read_bytes()


def run_command(command: str, declared: tuple, parameter: str, value: str) -> None:
    """Run a command with a bad option; what it prints takes the place of an error."""
    with tempfile.TemporaryDirectory() as folder:
        good = {"data": Path(folder) / "table.csv", "model": Path(folder) / "model.mk"}
        good["data"].write_text("a,y\n" + "".join(f"{x},{y}\n" for x, y in zip(X[:, 0], Y, strict=True)))
        if command in ("predict", "inspect", "report"):
            good["model"].write_bytes(saved_model())
        arguments = [value if name == parameter else str(good[name]) for name in POSITIONAL.get(command, ())]
        options = [] if parameter in good else [*declared, value]
        result = CliRunner().invoke(app, [command, *arguments, *options])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if result.exit_code:
        raise ValueError(" ".join(result.output.split()))


@cache
def subjects() -> list[tuple[str, Callable[[str, Any], Any], str, list[Any]]]:
    """Return every (name, call, parameter, bad values)."""
    found: list = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, cls in ESTIMATORS.items():
            found += [(name, partial(fit_estimator, name), p.name, bad_values(p)) for p in parameters(cls)]
            for argument, values in BAD_SAMPLES.items():
                if argument in inspect.signature(cls.fit).parameters:
                    found.append((f"{name}.fit", partial(fit_samples, name), argument, list(values)))
            found.append((f"{name}.predict", partial(predict_samples, name), "X", [*BAD_SAMPLES["X"], X[:, :2]]))
    for name in losses.__all__:
        cls = getattr(losses, name)
        if isinstance(cls, type) and issubclass(cls, losses.Loss) and parameters(cls):
            own = [p for p in parameters(cls) if p.name not in ("task", "curvature_bound")]
            found += [(name, partial(fit_loss, cls), p.name, bad_values(p)) for p in own]
    for room in ROOMS:
        module = importlib.import_module(f"multikernel.{room}")
        for name in getattr(module, "__all__", ["stack_kernels"]):
            call = getattr(module, name)
            if (
                name in LEFT_OUT
                or name in ESTIMATORS
                or not callable(call)
                or (isinstance(call, type) and room != "kernels")
            ):
                continue
            found += [(name, partial(with_arguments, call), p.name, bad_values(p)) for p in parameters(call)]
    for command in app.registered_commands:
        for p in parameters(command.callback):
            if p.name == "context":
                continue
            declared = p.default.param_decls or (f"--{p.name}",)
            numbers = ["nan", "-1"] if "int" in str(p.annotation) or "float" in str(p.annotation) else []
            if p.annotation != "bool" and p.name not in PATHS:
                run = partial(run_command, command.callback.__name__, declared)
                found.append((f"multikernel {command.callback.__name__}", run, p.name, [WORD, *numbers]))
    return found


def case(rng):
    """Draw a callable, one of its parameters and a bad value."""
    name, call, parameter, values = subjects()[rng.integers(len(subjects()))]
    value = values[rng.integers(len(values))]
    label, shown = name.split(" ")[0], repr(value)[:40].replace("\n", " ")
    tells = f"{name}({parameter}={shown})"
    # a value that is accepted may leave a file in the current folder
    with tempfile.TemporaryDirectory() as folder, chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call(parameter, value)
        except (ValueError, TypeError) as error:
            # sentences about samples are those of scikit-learn, of several lines and without the name
            lacks = (
                None
                if parameter in (*BAD_SAMPLES, "X_test", "X_train", "groups", "sequences")
                else unclear(error, parameter, *ALIASES.get(parameter, parameter).split("|"))
            )
            return label, lacks and f"{tells}: {lacks}"
        except FileNotFoundError as error:
            return label, None if str(value) in str(error) else f"{tells}: {error}"
        except Exception as error:
            return label, f"{tells}: {type(error).__name__}: {str(error)[:200]}"
    if any(parameter == taker and (value is taken or value == taken) for taker, taken in TAKES):
        return label, None
    return label, f"{tells}: no error"


KIND = Kind(
    "bad input",
    "A public estimator, kernel, loss, function or command with one argument that is nothing of its kind: an "
    "object, NaN, a complex number, an unknown word, a negative number; samples, targets and weights of wrong"
    " shapes and contents. A finding is an answer, any exception but ValueError and TypeError, or a sentence "
    "that does not name the parameter.",
    share=2,
    full=10_000,
    case=case,
)
