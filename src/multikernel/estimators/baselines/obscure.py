"""OBSCURE as an estimator; see `multikernel.estimators.baselines.obscure` for the algorithm."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from multikernel.estimators.baselines.online import OnlineMKL
from multikernel.estimators.baselines.online_blocks import Blocks
from multikernel.estimators.baselines.online_loops import FIRST, SECOND
from multikernel.estimators.baselines.online_run import Penalty, Result, Run, Sample
from multikernel.estimators.docstrings import documented
from multikernel.training.checkpoint import Checkpoint


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
    state: Checkpoint | None = None,
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
    tol, seed, average, patience, callback, state
        As for `multikernel.estimators.baselines.ufo.ufo`.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.estimators.baselines.online_blocks import FeatureBlocks
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
    if state is not None and state.all():
        run = Run(blocks, sample, penalty, SECOND, average=average, seed=seed)
        return run.run(max_iter, tol, patience, callback, state, online_epochs)
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
    return run.run(max_iter, tol, patience, callback, state)


@documented
class OBSCUREClassifier(OnlineMKL):
    """p-norm mixes of kernels in two stages, online and batch, one sample at a time [1]_.

    For n samples of c classes and p kernels it minimises, over one block w_k of class vectors for each kernel,

        1/(2 C n) ||w||^2_{2,r} + 1/n sum_i max_u ([u != y_i] + f_iu - f_{i,y_i}),

    without intercepts: 1/(C n) times the joint problem of ``MKLClassifier(multiclass="joint", fit_intercept=False,
    norm=r / (2 - r))``. A few online epochs find a start and the ball that the optimum lies in, the batch epochs then
    descend within it. The relative duality gap of the answer comes with it.

    Parameters
    ----------
    <kernels>
    C : float, default=1.0
        Cost of the losses: lambda of the source is 1/(C n).
    block_norm : float or None, default=None
        r of the mixed norm ||w||_{2,r} (p of the source), above 1 and at most 2: 2 is the plain sum of the kernels,
        values near 1 leave few. None for q / (q - 1) with q = max(2, 2 ln p).
    online_epochs : int, default=5
        Epochs of the first stage.
    <stopping, normalize, psd>
    tol : float, default=1e-2
        Relative duality gap at which it stops.
    max_iter : int, default=100
        Largest number of epochs of the second stage.
    <class_weight>
    gram : {"auto", "dense", "lazy", "memmap", "features"}, default="auto"
        Where kernels are kept; "features", and "auto" where every kernel is `Linear`, takes the columns as they are
        and forms no kernel.
    <memory_limit, verbose, n_jobs, checkpoint, epochs>

    Attributes
    ----------
    <classes_, kernel_names_, kernel_contributions_, block_norms>
    n_iter_ : int
        Epochs of the second stage.
    radius_ : float
        Bound R on ||w||_{2,r} that the first stage proved.
    <epochs_, columns>

    References
    ----------
    .. [1] F. Orabona, L. Jie, B. Caputo, Online-batch strongly convex multi kernel learning, CVPR 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel import OBSCUREClassifier
    >>> from multikernel.kernels import Linear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 6))
    >>> y = np.where(X[:, 0] > X[:, 1], "yes", "no")
    >>> kernels = [("useful", Linear(), [0, 1]), ("noise", Linear(), [2, 3, 4, 5])]
    >>> model = OBSCUREClassifier(kernels, block_norm=1.1, tol=0.1, random_state=0).fit(X, y)
    >>> bool(model.weights_[0] > 0.85), model.gram_.kind
    (True, 'features')
    """

    _stream_rule = FIRST

    def __init__(
        self,
        kernels="rbf",
        *,
        C=1.0,
        block_norm=None,
        online_epochs=5,
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

    def _penalty(self, lam, q):
        return Penalty(lam, 0.0, q)

    def _run_epochs(self, blocks, sample, penalty, **options):
        return obscure(blocks, sample, penalty, online_epochs=self.online_epochs, **options)

    def _set_result(self, result, *others):
        super()._set_result(result, *others)
        self.radius_ = result.radius
