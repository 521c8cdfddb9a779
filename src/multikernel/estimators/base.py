"""What every estimator that learns a mix of kernels shares.

parameters and samples are checked -> prepare -> train -> publish -> fitted attributes
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, fields
from functools import cache
from operator import attrgetter
from typing import Any

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.validation import check_is_fitted

from multikernel.estimators.estimate import Estimate, estimate_fit, show_estimate
from multikernel.estimators.reporting import FINISHED, warn_unfinished
from multikernel.estimators.validation import Samples, check_samples
from multikernel.estimators.weights_table import as_frame, named_weights, view_columns, weight_columns
from multikernel.saving import save
from multikernel.threads import resolve_threads
from multikernel.training.checkpoint import checkpointed, fingerprint
from multikernel.training.core import Fit, Settings, Targets
from multikernel.training.prepare import prepare
from multikernel.training.progress import telling_compiling
from multikernel.training.publish import Model, publish
from multikernel.training.train import train

# scikit-learn's checks that a sample of weight w and w copies of a sample give the same outputs
WEIGHT_CHECKS = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
_LOOSE = "compares outputs at 1e-7, and a relative duality gap of tol bounds their difference by about the root of tol"


@dataclass
class MKLTags(Tags):
    """The tags of scikit-learn, and its checks that the estimator is known to fail, each with the reason.

    ``check_estimator(model, expected_failed_checks=get_tags(model).expected_failed_checks)`` passes.
    """

    expected_failed_checks: dict[str, str] = field(default_factory=dict)


@cache
def _parameter_names(kind: Any) -> tuple[str, ...]:
    """Return the names of the parameters of an estimator: reading its signature shows in small fits."""
    return tuple(kind._get_param_names())


class BaseMKL(_BaseComposition):
    """Base class of the estimators; the parameters are those of its subclasses."""

    # parameters, of which each subclass has some
    kernels: Any
    norm: float
    C: float
    loss: Any
    epsilon: float
    multiclass: str
    output_kernels: Any
    fit_intercept: bool
    class_weight: Any
    normalize: Any
    psd: str
    solver: Any
    tol: float
    max_iter: int
    gram: str
    memory_limit: Any
    verbose: int
    n_jobs: int | None
    callback: Callable[[dict], None] | None = None
    checkpoint: Any = None
    # a Model; of a baseline whose kernels have coefficients of their own, another object with an expansion
    model_: Any
    classes_: np.ndarray
    # whether kernels may be on a device
    _on_device: bool = False
    # whether samples may be in partitions of Dask
    _in_partitions: bool = False
    # samples whose outputs a search has computed, and these outputs
    _known: tuple[Any, np.ndarray] | None = None

    def _store(self, own: dict[str, Any]) -> None:
        """Set the parameters from the local names of an initialiser."""
        for name, value in own.items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)

    # ---- parameters: name__gamma of the entries (name, kernel, columns)

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernels, str) and self.kernels == "precomputed"

    @property
    def _entries(self) -> list[tuple[str, Any, Any]]:
        entries = self.kernels if isinstance(self.kernels, list) else []
        return [entry for entry in entries if isinstance(entry, tuple) and len(entry) == 3]

    @property
    def _named_kernels(self) -> list[tuple[str, Any]]:
        return [(name, kernel) for name, kernel, _ in self._entries]

    @_named_kernels.setter
    def _named_kernels(self, pairs: Sequence[tuple[str, Any]]) -> None:
        new = dict(pairs)
        own = {id(entry) for entry in self._entries}
        self.kernels = [(entry[0], new[entry[0]], entry[2]) if id(entry) in own else entry for entry in self.kernels]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with ``deep`` also those of named kernels, as ``name__parameter``."""
        if deep:
            return self._get_params("_named_kernels", deep=True)
        kind: Any = type(self)
        names = _parameter_names(kind)
        return dict(zip(names, attrgetter(*names)(self), strict=True))

    def set_params(self, **params: Any) -> BaseMKL:
        """Set parameters, also those of named kernels, as ``name__parameter``."""
        if "kernels" in params:
            self.kernels = params.pop("kernels")
        for name, kernel in self._named_kernels:
            inner = [key for key in params if key.startswith(f"{name}__")]
            if inner and not hasattr(kernel, "set_params"):
                raise ValueError(
                    f"The parameter '{inner[0]}' of {type(self).__name__} cannot be set: '{name}' has several kernels. "
                    f"Set these instead, for example by the grid {{'{name}': [[RBF()], [RBF(factor=2.0)]]}}. "
                    f"Got {kernel!r}."
                )
        self._set_params("_named_kernels", **params)
        return self

    def _sk_visual_block_(self):
        try:
            from sklearn.utils._repr_html.estimator import _VisualBlock
        except ImportError:  # before scikit-learn 1.7
            from sklearn.utils._estimator_html_repr import _VisualBlock

        if not self._entries:
            active = {kernel: weight for kernel, weight in named_weights(self, "kernel").items() if weight > 0}
            if not active:
                return _VisualBlock("single", self, names=type(self).__name__, name_details=str(self))
            names = tuple(f"{kernel} (weight {weight:.2g})" for kernel, weight in active.items())
            return _VisualBlock("parallel", tuple(active), names=names, name_details=names)
        names, kernels, columns = zip(*self._entries, strict=True)
        weights = named_weights(self, "view")
        names = tuple(f"{name} (weight {weights[name]:.2g})" if name in weights else name for name in names)
        return _VisualBlock("parallel", kernels, names=names, name_details=[str(each) for each in columns])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags = MKLTags(**{each.name: getattr(tags, each.name) for each in fields(tags)})
        tags.input_tags.sparse = True
        tags.input_tags.three_d_array = self._precomputed
        tags.target_tags.required = True
        loss = getattr(self, "loss", None)
        # least squares are solved far below tol
        if not (isinstance(loss, str) and loss == "squared"):
            tags.expected_failed_checks = dict.fromkeys(WEIGHT_CHECKS, _LOOSE)
        return tags

    # ---- training

    def _settings(self, **own: Any) -> Settings:
        """Return how to train, from the parameters; ``own`` takes the place of some."""
        own.setdefault("n_threads", resolve_threads(self.n_jobs))
        own.setdefault("callback", None if self.callback is None else self._row_callback(self.callback))
        for name in ("normalize", "psd", "gram", "memory_limit", "verbose", "solver", "tol", "max_iter"):
            if hasattr(self, name):
                own.setdefault(name, getattr(self, name))
        return Settings(type(self).__name__, **own)

    def _row_callback(self, callback: Callable[[dict], None]) -> Callable[[dict], None]:
        """Return a callback to which "evaluate" comes as "decision_function", for samples of any kind."""

        def tell(row: dict) -> None:
            evaluate = row.pop("evaluate")

            def decision_function(X: Any) -> np.ndarray:
                values = evaluate(check_samples(self, X, reset=False), resolve_threads(self.n_jobs))
                return values[:, 0] if values.shape[1] == 1 else values

            callback({**row, "decision_function": decision_function})

        return tell

    def _learn(self, samples: Samples, targets: Targets, settings: Settings) -> Any:
        """Train on valid samples.

        Sets: every fitted attribute.
        """
        quick = self.checkpoint is None and not settings.verbose
        with nullcontext(settings) if quick else self._begin(settings, samples) as settings:
            prepared = prepare(self.kernels, samples.X, samples.weight, settings)
            fit = train(prepared, targets, settings)
            self._set(publish(fit), fit, samples)
        if not FINISHED.issuperset(self.model_.status):
            warn_unfinished(self, fit)
        return self

    @contextmanager
    def _begin(self, settings: Settings, samples: Samples, *more: Any) -> Iterator[Settings]:
        """Show what a long fit will take and what is compiled; yield its settings, with a checkpoint if one is kept."""
        with telling_compiling(settings.verbose):
            if settings.verbose:
                show_estimate(self, samples.X, samples.y if len(samples.y) else None, samples.weight)
            if self.checkpoint is None:
                yield settings
                return
            params = self.get_params(deep=False)
            key = fingerprint(settings.owner, params, samples.X, samples.y, samples.weight, *more)
            with checkpointed(settings, self.checkpoint, key) as kept:
                yield kept

    def estimate(self, X: Any, y: Any = None, sample_weight: Any = None, *, seconds: float = 2.0) -> Estimate:
        """Return the memory and the time that `fit` will take, by storage, from timed fits of parts of the samples.

        Parameters
        ----------
        X, y, sample_weight
            What `fit` will get.
        seconds : float, default=2.0
            Time for the timed fits of one storage: the longer, the better the estimate. Samples in partitions of Dask
            take three short fits at least.

        Returns
        -------
        Estimate
            ``storage``, what `fit` will choose, ``memory`` and ``seconds`` by storage.

        Examples
        --------
        >>> import numpy as np
        >>> from multikernel import MKLRegressor
        >>> X = np.random.default_rng(0).normal(size=(600, 2))
        >>> found = MKLRegressor().estimate(X, X[:, 0], seconds=0.1)
        >>> found.storage, sorted(found.memory), 15e6 < found.memory["dense"] < 40e6
        ('dense', ['dense', 'lazy', 'memmap'], True)
        """
        return estimate_fit(self, X, y, sample_weight, seconds)

    def _set(self, model: Model, fit: Fit, samples: Samples) -> None:
        """Set the fitted attributes of a model; subclasses add their own."""
        classes = {"classes_": samples.classes} if len(samples.classes) else {}
        # all at once: Ctrl-C leaves the attributes of one model
        self.__dict__.update(model.attributes, model_=model, support_=samples.kept[model.support], **classes)

    # ---- what was learned

    def weights_frame(self) -> Any:
        """Return the weights and contributions with their names, one row for each kernel.

        A weight says how much of a kernel the mix takes, not how much it matters: docs/interpreting.md.

        Returns
        -------
        pandas data frame, or a dict of lists without pandas
            Columns view, kernel, weight and contribution; first the problem where there are several.

        Examples
        --------
        >>> import numpy as np
        >>> from multikernel import MKLClassifier
        >>> from multikernel.kernels import Linear, rbf_family
        >>> X = np.random.default_rng(0).normal(size=(60, 3))
        >>> model = MKLClassifier([("rna", rbf_family(factors=[0.5, 2.0]), [0, 1]), ("age", Linear(), [2])])
        >>> list(model.fit(X, X[:, 0] > 0).weights_frame()["kernel"])
        ['rna: rbf(0.5)', 'rna: rbf(2)', 'age']
        >>> list(model.by_view()["view"]), list(model.by_view()["kernels"])
        (['rna', 'age'], [2, 1])
        """
        check_is_fitted(self)
        return as_frame(weight_columns(self))

    def by_view(self) -> Any:
        """Return the sums of weights and contributions, one row for each view.

        Returns
        -------
        pandas data frame, or a dict of lists without pandas
            Columns view, kernels (how many), weight and contribution; first the problem where there are several.
        """
        check_is_fitted(self)
        return as_frame(view_columns(self))

    # ---- evaluation

    def _outputs(self, X: Any) -> np.ndarray:
        """Return the outputs of all problems on other samples, shape (n_samples, columns)."""
        if self._known is not None and X is self._known[0]:
            return self._known[1]
        check_is_fitted(self)
        return self.model_.expansion.evaluate(check_samples(self, X, reset=False), resolve_threads(self.n_jobs))

    def save(self, path: Any, *, dtype: Any = "float64") -> None:
        """Save the fitted model to a file that `multikernel.load` reads, as `multikernel.save` does.

        Parameters
        ----------
        path : str or path
            The file, by habit with the ending ``.mk``; it is replaced as a whole where it exists.
        dtype : {"float64", "float32"}, default="float64"
            Precision of the arrays in the file: the same bits are predicted in float64; float32 takes half the space.
        """
        save(self, path, dtype=dtype)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` has made a model."""
        return hasattr(self, "model_")
