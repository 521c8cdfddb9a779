"""UFO-MKL: sparse mixes of kernels by one pass of mirror descent after another.

    min over w   lambda/2 ||w||^2_{2,r} + a ||w||_{2,1} + 1/n sum_i c_i max_u ([u != y_i] + f_iu - f_{i,y_i})

with q = max(2, 2 ln p), r = q / (q - 1). After t visits theta is the sum of the negative subgradients, and

    v_j = max(0, ||theta_j|| - a t),      w_j = v_j / (lambda t ||theta_j||) (v_j / ||v||_q)^(q-2) theta_j

(F. Orabona, L. Jie, Ultra-fast optimization algorithm for sparse multi kernel learning, ICML 2011, algorithm 1).
Samples are visited in a new random order each epoch, not drawn with replacement: after whole epochs theta / t is a
point of the dual, so that the same numbers certify the predictor.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from multikernel.primal.blocks import Blocks
from multikernel.primal.online import Penalty, Result, Run, Sample
from multikernel.primal.online_loops import UFO


def ufo(
    blocks: Blocks,
    sample: Sample,
    penalty: Penalty,
    *,
    max_iter: int,
    tol: float,
    seed: np.random.RandomState,
    average: bool = True,
    patience: int | None = None,
    callback: Callable[[dict], None] | None = None,
) -> Result:
    """Run UFO-MKL from zero.

    Parameters
    ----------
    blocks : Blocks
        Kernels or features, fresh.
    sample : Sample
        Classes and costs.
    penalty : Penalty
        lambda, a and q.
    max_iter : int
        Largest number of epochs.
    tol : float
        Relative gap to reach.
    seed : numpy.random.RandomState
        Orders of the samples.
    average : bool
        Whether averaged predictors compete with the last one.
    patience : int, optional
        Epochs without a better score on the samples held out before it stops.
    callback : callable, optional
        Called after each epoch with its row of the history.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.primal.blocks import FeatureBlocks
    >>> x = np.array([[-1.0], [1.0], [-2.0], [2.0]])
    >>> sample = Sample(np.array([0, 1, 0, 1]), np.ones(4), np.arange(4), np.arange(0))
    >>> penalty = Penalty(lam=0.25, sparse=0.0, q=2.0)
    >>> found = ufo(FeatureBlocks([x], 2), sample, penalty, max_iter=500, tol=1e-2, seed=np.random.RandomState(0))
    >>> found.status, round(found.upper, 2), found.model.round(1).tolist()
    ('converged', 0.06, [[-0.5], [0.5]])
    """
    run = Run(blocks, sample, penalty, UFO, average=average, seed=seed)
    return run.run(max_iter, tol, patience, callback)
