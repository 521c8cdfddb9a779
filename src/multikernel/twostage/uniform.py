"""beta_k = 1/p: the unweighted mean of the kernels, which any learned mix has to beat."""

from __future__ import annotations

import numpy as np

from multikernel.twostage.base import KernelWeights


class UniformWeights(KernelWeights):
    """Equal weights, of sum one; nothing is learned.

    Attributes
    ----------
    weights_ : ndarray of shape (p,)
        1/p each.

    Examples
    --------
    >>> import numpy as np
    >>> from multikernel.twostage import UniformWeights
    >>> UniformWeights().fit([np.eye(3), np.ones((3, 3))], [0, 1, 1]).weights_
    array([0.5, 0.5])
    """

    def _learn(self, gram, targets, tell):
        return np.full(gram.n_kernels, 1.0 / gram.n_kernels)
