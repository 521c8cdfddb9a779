"""OBSCURE: an online stage that finds the neighbourhood, a batch stage that finds the optimum.

    min over w   lambda/2 ||w||^2_{2,r} + 1/n sum_i c_i max_u ([u != y_i] + f_iu - f_{i,y_i}),      q = r / (r - 1)

Mirror map: w_j = 1/q (||theta_j|| / ||theta||_{2,q})^(q-2) theta_j. With z the difference of the feature maps of the
true and of the best wrong class, for every sample with a positive loss:

    first stage     theta <- theta + min(1, max(0, 1 - 2 w.z / ||z||^2_{2,q})) z         a few epochs
    between         R^2 = 2 P(w) / lambda, P the objective above: the optimum lies within ||w||_{2,r} <= R
    second stage    theta <- (1 - eta lambda/q) theta + eta z, then scaled into ||theta||_{2,q} <= q R
                    eta_t = q / (lambda t + sum tau),   tau_t = (sqrt(s^2 + q L^2 / R^2) - s) / 2,
                    s = lambda t + earlier taus,   L = [violation] ||z||_{2,q} + lambda/q ||theta||_{2,q}

(F. Orabona, L. Jie, B. Caputo, Online-batch strongly convex multi kernel learning, CVPR 2010; tau is that of C. Do,
Q. Le, C.-S. Foo, Proximal regularization for online and batch learning, ICML 2009.) w = 0 costs 1: R^2 <= 2/lambda.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from multikernel.primal.blocks import Blocks
from multikernel.primal.online import Penalty, Result, Run, Sample
from multikernel.primal.online_loops import FIRST, SECOND


def obscure(
    blocks: Blocks,
    sample: Sample,
    penalty: Penalty,
    *,
    online_epochs: int,
    max_iter: int,
    tol: float,
    seed: np.random.RandomState,
    average: bool = True,
    patience: int | None = None,
    callback: Callable[[dict], None] | None = None,
) -> Result:
    """Run both stages from zero.

    Parameters
    ----------
    blocks : Blocks
        Kernels or features, fresh.
    sample : Sample
        Classes and costs.
    penalty : Penalty
        lambda and q; its a must be zero.
    online_epochs : int
        Epochs of the first stage; with 0 the second begins at zero with R^2 = 2/lambda times the mean cost.
    max_iter : int
        Largest number of epochs of the second stage.
    tol, seed, average, patience, callback
        As for `multikernel.primal.ufo.ufo`.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.primal.blocks import FeatureBlocks
    >>> x = np.array([[-1.0], [1.0], [-2.0], [2.0]])
    >>> sample = Sample(np.array([0, 1, 0, 1]), np.ones(4), np.arange(4), np.arange(0))
    >>> penalty = Penalty(lam=0.25, sparse=0.0, q=2.0)
    >>> found = obscure(
    ...     FeatureBlocks([x], 2), sample, penalty, online_epochs=2, max_iter=500, tol=1e-2,
    ...     seed=np.random.RandomState(0),
    ... )
    >>> found.status, round(found.upper, 2), found.model.round(1).tolist()
    ('converged', 0.06, [[-0.5], [0.5]])
    """
    start = Run(blocks, sample, penalty, FIRST, average=False, seed=seed)
    for _ in range(online_epochs):
        start.visit()
    m, norms = start.last()
    value = penalty.value(norms) + sample.loss(blocks.outputs(m))
    blank = sample.loss(np.zeros((blocks.n_samples, blocks.n_classes)))
    radius = float(np.sqrt(2.0 * min(value, blank) / penalty.lam))
    # the first stage may end outside of its own radius
    reach = float(np.linalg.norm(norms, penalty.q / (penalty.q - 1.0)))
    blocks.state[1] = min(1.0, radius / reach) if reach > 0 else 1.0
    blocks.fold()
    blocks.restart_steps()
    blocks.restart()
    run = Run(blocks, sample, penalty, SECOND, radius=radius, average=average, seed=seed)
    return run.run(max_iter, tol, patience, callback)
