"""Error sentences in the user's words: which parameter is in the way, and what to do that works."""

import re

import numpy as np
import pytest
from sklearn.base import clone

from multikernel import (
    DiscriminantMKLClassifier,
    EasyMKLClassifier,
    LPBetaClassifier,
    M3KClassifier,
    M3KClassifierCV,
    MKLClassifier,
    MKLOneClass,
    MKLRegressor,
    TwoStageClassifier,
    TwoStageRegressor,
)
from multikernel.gram.dense import DenseGram
from multikernel.kernels import RBF, Linear
from multikernel.losses import Loss, SquaredHinge, loss_name
from multikernel.machines.svc import SVC
from multikernel.mixing.norms import Simplex
from multikernel.problem import Problem
from multikernel.solve import solve
from multikernel.solvers import REGISTRY
from multikernel.solvers.qcqp import QCQP
from multikernel.training.targets import CLASSIFICATION, REGRESSION

RNG = np.random.default_rng(0)
X = RNG.normal(size=(45, 3))
TWO, THREE, NUMBER = X[:, 0] > 0, np.arange(45) % 3, X[:, 0] + X[:, 1] ** 2
PAIR = [Linear(), RBF()]
COLUMNS = [("first", Linear(), [0]), ("other", Linear(), [1, 2])]
ON_CLASSES = [np.eye(3), np.diag([1.0, 1.0, 0.0])]

# estimator, targets, solver, what is in the way
REFUSED = [
    (MKLClassifier(PAIR, norm=2), TWO, "silp", "norm=2"),
    (MKLClassifier(PAIR, norm=1.5), TWO, "simplemkl", "norm=1.5"),
    (MKLClassifier(PAIR, loss="logistic"), TWO, "qcqp", "the loss 'logistic'"),
    (MKLClassifier(PAIR, loss="multinomial"), TWO, "qcqp", "the loss 'multinomial'"),
    (MKLClassifier(PAIR, loss="logistic"), THREE, "qcqp", "the joint loss 'logistic'"),
    (MKLClassifier(PAIR, norm=2), THREE, "active-set", "norm=2"),
    (MKLClassifier(PAIR), TWO, "qcqp-compact", "the loss 'hinge', only with the joint loss 'hinge' of more than two"),
    (MKLClassifier(PAIR), TWO, "interleaved", "gram='dense'"),
    (MKLClassifier(COLUMNS, gram="features"), TWO, "newton", "gram='features'"),
    (MKLRegressor(COLUMNS, gram="features", loss="squared", norm=2), NUMBER, "qcqp", "gram='features'"),
    (MKLRegressor(PAIR, loss="huber"), NUMBER, "qcqp", "the loss 'huber'"),
    (MKLOneClass(PAIR, norm=2), None, "active-set", "norm=2"),
    (M3KClassifier(PAIR, gamma0_fraction=0.5), THREE, "simplemkl", "norm=1 and a kernel margin gamma0="),
]


@pytest.mark.parametrize(("estimator", "y", "solver", "met"), REFUSED)
def test_a_solver_that_cannot_be_used_names_those_that_can(estimator, y, solver, met):
    estimator = clone(estimator).set_params(solver=solver)
    with pytest.raises(ValueError) as caught:
        estimator.fit(X, y)
    sentence = str(caught.value)
    assert sentence.startswith(f"The solver {solver!r} cannot be used with {met}")
    assert sentence.count(". ") == 0 and sentence.endswith(" instead.")
    named = re.findall(r"'([\w-]+)'", sentence.split(": use ")[1])
    for name in REGISTRY:
        estimator.set_params(solver=name)
        if name in named:
            assert estimator.fit(X, y).solver_ == name
        else:
            with pytest.raises(ValueError, match=f"The solver '{name}' cannot be used with"):
                estimator.fit(X, y)


class Steep(Loss):
    task = "classification"

    def value(self, f, y):
        return np.exp(-y * f)

    def gradient(self, f, y):
        return -y * np.exp(-y * f)


class Flat(SquaredHinge):
    """A subclass may have changed the formulas: it is not what its parent is called."""


def test_a_loss_of_ones_own_is_named_by_its_class():
    assert loss_name(Steep()) == "Steep" and loss_name(Flat()) == "Flat"
    with pytest.raises(ValueError, match="'qcqp' cannot be used with the loss 'Steep': use 'newton'"):
        MKLClassifier(PAIR, loss=Steep(), solver="qcqp").fit(X, TWO)


@pytest.mark.parametrize("name", [*CLASSIFICATION, *REGRESSION])
def test_losses_are_named_as_the_user_named_them(name):
    estimator, y = (MKLClassifier, TWO) if name in CLASSIFICATION else (MKLRegressor, NUMBER)
    with pytest.raises(ValueError, match=f"cannot be used with the loss '{name}', only"):
        estimator(PAIR, loss=name, solver="qcqp-compact").fit(X, y)


def test_a_programme_that_is_too_large_does_not_speak_of_the_parameter_of_the_estimator():
    problem = Problem(DenseGram(np.eye(4)[None]), SVC(np.array([-1.0, -1.0, 1.0, 1.0])), Simplex())
    with pytest.raises(ValueError, match=r"more than the 1e-06 GB that the solver may take") as caught:
        solve(problem, QCQP(memory_limit=1e3))
    assert "memory_limit" not in str(caught.value)


# ---- explicit features

NEVER = [
    (M3KClassifier, THREE),
    (M3KClassifier, TWO),
    (M3KClassifierCV, THREE),
    (MKLOneClass, None),
    (EasyMKLClassifier, TWO),
    (LPBetaClassifier, TWO),
    (TwoStageClassifier, TWO),
    (TwoStageRegressor, NUMBER),
    (DiscriminantMKLClassifier, TWO),
]


@pytest.mark.parametrize(("learner", "y"), NEVER, ids=lambda value: getattr(value, "__name__", ""))
def test_estimators_without_explicit_features_say_what_gram_may_be(learner, y):
    may = "'lazy', 'memmap', 'torch' or 'dask', or a TorchStorage" if learner is MKLOneClass else "'lazy' or 'memmap'"
    sentence = f"The 'gram' parameter of {learner.__name__} must be 'auto', 'dense', {may}. Got 'features'"
    with pytest.raises(ValueError, match=sentence):
        learner(COLUMNS, gram="features").fit(X, y)
    learner(PAIR, gram="lazy").fit(X, y)


@pytest.mark.parametrize(
    ("estimator", "y", "remedy"),
    [
        (MKLClassifier(COLUMNS), THREE, {"multiclass": "ovr"}),
        (MKLClassifier(COLUMNS, output_kernels=ON_CLASSES, multiclass="joint"), THREE, None),
        (MKLClassifier(COLUMNS, loss="logistic"), TWO, {"loss": "squared_hinge"}),
        (MKLRegressor(COLUMNS, loss="huber"), NUMBER, {"loss": "squared"}),
        (MKLRegressor(COLUMNS, loss="logcosh"), NUMBER, {"loss": "epsilon_insensitive"}),
    ],
)
def test_the_hint_about_explicit_features_names_parameters_that_the_estimator_has(estimator, y, remedy):
    with pytest.raises(ValueError, match=f"gram='features' of {type(estimator).__name__} needs") as caught:
        (estimator := clone(estimator).set_params(gram="features")).fit(X, y)
    sentence = str(caught.value)
    assert set(re.findall(r"(\w+)=", sentence)) <= set(estimator.get_params())
    remedy = {"output_kernels": None, "multiclass": "ovo"} if remedy is None else remedy
    assert all(str(value) in sentence for value in remedy.values())
    assert estimator.set_params(**remedy).fit(X, y).gram_.kind == "features"


def test_several_targets_have_no_explicit_features():
    with pytest.raises(
        ValueError, match="of MKLRegressor needs one target and loss='epsilon_insensitive' or 'squared'"
    ):
        MKLRegressor(COLUMNS, loss="squared", gram="features").fit(X, X[:, :2])
