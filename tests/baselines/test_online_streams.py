"""UFO-MKL and OBSCURE on streams: samples part by part, and what is refused."""

import pickle
import re

import numpy as np
import pytest
from interrupted import interrupted
from problems_online import BOTH, NAMED, N, X, Y, draw, exponent, quiet
from reference_online import online_value

from multikernel import UFOMKLClassifier
from multikernel.estimators.baselines.online_loops import STREAM, visit_features
from multikernel.estimators.baselines.online_run import power_for
from multikernel.kernels import RBF, Linear

pytestmark = quiet


@pytest.mark.parametrize("learner", BOTH)
def test_a_stream_does_not_depend_on_its_parts(learner):
    big, labels = draw(300, seed=6)
    source = {"normalize": None}
    one = learner(NAMED, **source).partial_fit(big, labels, classes=[0, 1, 2])
    many = learner(NAMED, **source)
    for first in range(0, 300, 37):
        part = slice(first, first + 37)
        many.partial_fit(big[part], labels[part], classes=[0, 1, 2] if first == 0 else None)
    np.testing.assert_allclose(many.coef_, one.coef_, atol=1e-9)
    np.testing.assert_allclose(many.weights_, one.weights_, atol=1e-9)
    assert one.t_ == many.t_ == 300 and one.score(big, labels) > 0.6
    assert len(pickle.dumps(many)) < 20_000


def test_a_stream_goes_on_from_a_fit():
    model = UFOMKLClassifier(NAMED, average=False, max_iter=50, random_state=0).fit(X, Y)
    m, norms = model._stream.current(STREAM, np.array([1.0, 0.0, power_for(3), np.inf]))
    outputs = np.hstack(model.model_.expansion.features.maps(X)) @ model._stream.predictor(m).T
    value = online_value(norms, outputs, Y, 1.0 / N, 0.0, exponent(3))
    assert value == pytest.approx(model.history_["primal"][-1], rel=1e-9)
    model.partial_fit(X[:5], Y[:5])
    assert model.t_ == N + 5
    assert not hasattr(model.fit(X, Y), "t_")


def interrupt_in(epoch, model, monkeypatch):
    """Fit until Ctrl-C comes after the last sample of an epoch, before it counts, or before the first sample for 0."""
    calls = []

    def interrupt(*args):
        calls.append(args)
        if epoch:
            visit_features(*args)
        if len(calls) >= epoch:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, interrupted("was interrupted after"):
        patch.setattr("multikernel.estimators.baselines.online_blocks.visit_features", interrupt)
        model.fit(X, Y)
    return model


def go_on_alike(one, other):
    for model in (one, other):
        model.partial_fit(X, Y, classes=[0, 1, 2])
    np.testing.assert_allclose(one._stream.theta, other._stream.theta, rtol=1e-9)
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-9)
    assert one.t_ == other.t_


def test_a_stream_goes_on_from_a_fit_that_was_interrupted_at_once(monkeypatch):
    go_on_alike(interrupt_in(0, UFOMKLClassifier(NAMED), monkeypatch), UFOMKLClassifier(NAMED))


@pytest.mark.parametrize("epoch", [1, 2, 5])
def test_a_stream_goes_on_from_a_fit_that_was_interrupted(epoch, monkeypatch):
    model = interrupt_in(epoch, UFOMKLClassifier(NAMED, random_state=0), monkeypatch)
    go_on_alike(model, UFOMKLClassifier(NAMED, random_state=0, max_iter=epoch).fit(X, Y))


def test_a_stream_goes_on_from_a_resumed_fit_that_was_interrupted_again(tmp_path, monkeypatch):
    # a state after every epoch
    monkeypatch.setattr("multikernel.training.checkpoint.SHARE", np.inf)
    model = UFOMKLClassifier(NAMED, random_state=0, checkpoint=tmp_path)
    for _ in range(2):
        # in the third epoch, which is not kept, and in the third after the second
        interrupt_in(3, model, monkeypatch)
    assert model.n_iter_ == 4
    go_on_alike(model, UFOMKLClassifier(NAMED, random_state=0, max_iter=5).fit(X, Y))


@pytest.mark.parametrize("learner", BOTH)
def test_streams_need_explicit_features(learner):
    for kernels in ("rbf", "precomputed", [RBF()], [Linear(), RBF()], []):
        assert not hasattr(learner(kernels), "partial_fit")
    with pytest.raises(AttributeError, match="has no attribute 'partial_fit'") as error:
        _ = learner("precomputed").partial_fit
    assert re.search(r"every kernel must be Linear\(\).*Got kernels='precomputed'.*use fit", str(error.value.__cause__))


@pytest.mark.parametrize("learner", BOTH)
def test_a_stream_keeps_no_certificate_of_another_predictor(learner):
    model = learner([Linear()], tol=0.5, random_state=0).fit(X, Y)
    proved = ("objective_", "dual_objective_", "duality_gap_", "status_", "history_", "kernel_contributions_")
    assert all(hasattr(model, name) for name in proved)
    model.partial_fit(X[:5], Y[:5])
    assert not any(hasattr(model, name) for name in proved)
    with pytest.raises(ValueError, match="1d array"):
        learner([Linear()]).partial_fit(X, Y, classes=[[0, 1, 2]])


def test_what_a_stream_refuses():
    def model():
        return UFOMKLClassifier([Linear()])

    with pytest.raises(ValueError, match=r"'classes' parameter of UFOMKLClassifier.partial_fit must hold all classes"):
        model().partial_fit(X, Y)
    with pytest.raises(ValueError, match=r"must be among \[0, 1\]. Got 2 as well"):
        model().partial_fit(X, Y, classes=[0, 1])
    with pytest.raises(ValueError, match="at least 2 classes"):
        model().partial_fit(X, np.zeros(N), classes=[0])
    started = model().partial_fit(X, Y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match=r"must be \[0, 1, 2\], as in the first call. Got \[0, 1\] instead"):
        started.partial_fit(X, Y, classes=[0, 1])
    with pytest.raises(ValueError, match="features"):
        started.partial_fit(X[:, :2], Y)
