"""UFO-MKL as an estimator; see `multikernel.estimators.baselines.ufo` for the algorithm."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from multikernel.estimators.baselines.online import OnlineMKL
from multikernel.estimators.baselines.online_blocks import Blocks
from multikernel.estimators.baselines.online_loops import STREAM, UFO
from multikernel.estimators.baselines.online_run import Penalty, Result, Run, Sample
from multikernel.estimators.docstrings import documented
from multikernel.training.checkpoint import Checkpoint


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
    state: Checkpoint | None = None,
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
    state : Checkpoint, optional
        Where the state of the run is kept, and from which it goes on.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.estimators.baselines.online_blocks import FeatureBlocks
    >>> x = np.array([[-1.0], [1.0], [-2.0], [2.0]])
    >>> sample = Sample(np.array([0, 1, 0, 1]), np.ones(4), np.arange(4), np.arange(0))
    >>> penalty = Penalty(lam=0.25, sparse=0.0, q=2.0)
    >>> found = ufo(FeatureBlocks([x], 2), sample, penalty, max_iter=500, tol=1e-2, seed=np.random.RandomState(0))
    >>> found.status, round(found.upper, 2), found.model.round(1).tolist()
    ('converged', 0.06, [[-0.5], [0.5]])
    """
    run = Run(blocks, sample, penalty, UFO, average=average, seed=seed)
    return run.run(max_iter, tol, patience, callback, state)


@documented
class UFOMKLClassifier(OnlineMKL):
    """Sparse mixes of kernels by stochastic mirror descent, one sample at a time [1]_.

    For n samples of c classes and p kernels it minimises, over one block w_k of class vectors for each kernel,

        1/(2 C n) ||w||^2_{2,r} + alpha ||w||_{2,1} + 1/n sum_i max_u ([u != y_i] + f_iu - f_{i,y_i}),

    without intercepts, with r = q / (q - 1) and q = max(2, 2 ln p). It is quick to a rough answer; the relative duality
    gap of the answer comes with it. `MKLClassifier` is quick to an exact one.

    Parameters
    ----------
    <kernels>
    C : float, default=1.0
        Cost of the losses: lambda of the source is 1/(C n).
    alpha : float, default=0.0
        Factor of the mixed norm ||w||_{2,1} = sum_k ||w_k||; larger values leave fewer kernels.
    block_norm : float or None, default=None
        r of the mixed norm ||w||_{2,r}, above 1 and at most 2; None for that of the source.
    <stopping, normalize, psd>
    tol : float, default=1e-2
        Relative duality gap at which it stops.
    max_iter : int, default=100
        Largest number of epochs.
    <class_weight>
    gram : {"auto", "dense", "lazy", "memmap", "features"}, default="auto"
        Where kernels are kept; "features", and "auto" where every kernel is `Linear`, takes the columns as they are
        and forms no kernel.
    <memory_limit, verbose, n_jobs, checkpoint, epochs>

    Attributes
    ----------
    <classes_, kernel_names_, kernel_contributions_, block_norms>
    n_iter_ : int
        Epochs.
    <epochs_, columns>

    References
    ----------
    .. [1] F. Orabona, L. Jie, Ultra-fast optimization algorithm for sparse multi kernel learning, ICML 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import UFOMKLClassifier
    >>> from multikernel.kernels import Linear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 6))
    >>> y = np.where(X[:, 0] > X[:, 1], "yes", "no")
    >>> kernels = [("useful", Linear(), [0, 1]), ("noise", Linear(), [2, 3, 4, 5])]
    >>> model = UFOMKLClassifier(kernels, alpha=0.1, random_state=0).fit(X, y)
    >>> model.weights_.round(2), model.gram_.kind
    (array([1., 0.]), 'features')
    """

    _stream_rule = STREAM

    def __init__(
        self,
        kernels="rbf",
        *,
        C=1.0,
        alpha=0.0,
        block_norm=None,
        average=True,
        early_stopping=False,
        validation_fraction=0.1,
        n_iter_no_change=5,
        normalize="variance",
        psd="error",
        tol=1e-2,
        max_iter=100,
        class_weight=None,
        gram="auto",
        memory_limit=None,
        verbose=0,
        n_jobs=None,
        callback=None,
        checkpoint=None,
        random_state=None,
    ):
        self._store(locals())

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        if not isinstance(self.kernels, str):
            reason = "has no intercept: with linear kernels it cannot prefer one class everywhere"
            tags.expected_failed_checks["check_class_weight_classifiers"] = reason
        return tags

    def _penalty(self, lam, q):
        return Penalty(lam, float(self.alpha), q)

    def _run_epochs(self, blocks, sample, penalty, **options):
        return ufo(blocks, sample, penalty, **options)
