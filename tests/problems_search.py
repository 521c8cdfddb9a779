"""Samples, kernels and settings of the tests of the searches, and their comparison with GridSearchCV."""

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from multikernel import stack_kernels
from multikernel.kernels import rbf_family

N = 66
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, 3))
Y = np.where(np.square(X[:, :2]).sum(1) + 0.5 * RNG.normal(size=N) > 1.4, "far", "near")
T = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * RNG.normal(size=N)
WEIGHT = RNG.integers(0, 4, N).astype(float)
KERNELS = np.exp(-np.square(X[:, None] - X).sum(2) / np.array([0.5, 2.0, 8.0])[:, None, None])
STACK = stack_kernels(KERNELS)
CV = StratifiedKFold(3, shuffle=True, random_state=0)
CS = [0.1, 1.0, 10.0]
FIXED = rbf_family([0.5, 2.0, 8.0])
EXACT = {"tol": 1e-9, "max_iter": 2000}
TIMES = {"mean_fit_time", "std_fit_time", "mean_score_time", "std_score_time"}


def cosine_of(A, B):
    """A kernel that nobody vouches for."""
    norms = np.linalg.norm(A, axis=1)[:, None] * np.linalg.norm(B, axis=1)
    return A @ B.T / norms


def compare(ours, samples, y, *, atol=1e-6, **fit):
    """Fit both searches with the same parameters; the tables, the choice and the refitted model must agree."""
    axes = {"Cs": "C", "norms": "norm", "losses": "loss", "epsilons": "epsilon"}
    ours = ours.set_params(baselines=False)
    own = ours.get_params(deep=False)
    grid = {axis: own[name] for name, axis in axes.items() if own.get(name) is not None}
    left_out = {name for name in axes.values() if own.get(name) is None}
    names = set(ours._base._get_param_names()) & set(own) - left_out
    base = ours._base(**{name: own[name] for name in names})
    groups = fit.get("groups")
    other = GridSearchCV(base, grid, cv=own["cv"], scoring=own["scoring"], error_score=own["error_score"])
    ours.fit(samples, y, **fit)
    other.fit(samples, y, groups=groups, **{k: v for k, v in fit.items() if k != "groups"})
    mine, theirs = ours.cv_results_, other.cv_results_
    assert list(mine) == list(theirs)
    assert mine["params"] == theirs["params"]
    # equal models may rank either way where scores are not counts
    ranks = {"rank_test_score"} if atol > 1e-6 else set()
    for key in set(mine) - TIMES - ranks - {"params"}:
        assert mine[key].dtype == theirs[key].dtype, key
        np.testing.assert_allclose(np.asarray(mine[key], float), np.asarray(theirs[key], float), atol=atol, err_msg=key)
    for key in TIMES:
        assert np.all(mine[key] >= 0) and mine[key].shape == theirs[key].shape
    assert ours.best_index_ == other.best_index_ and ours.best_params_ == other.best_params_
    np.testing.assert_allclose(ours.best_score_, other.best_score_, atol=atol)
    np.testing.assert_allclose(ours.weights_, other.best_estimator_.weights_, atol=1e-4)
    outputs = "decision_function" if hasattr(ours, "decision_function") else "predict"
    np.testing.assert_allclose(getattr(ours, outputs)(samples), getattr(other, outputs)(samples), atol=1e-3)
    return other
