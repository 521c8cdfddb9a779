"""Save a fitted model, and load it again."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from sklearn.metrics import check_scoring
from sklearn.utils.validation import check_is_fitted

import multikernel
from multikernel.saving.container import read_container, write_container
from multikernel.saving.decoder import decode
from multikernel.saving.encoder import encode
from multikernel.saving.known import classes

# its number is raised when older files could no longer be read as they are
FORMAT = "multikernel model 1"


def save(model: Any, path: str | os.PathLike, *, dtype: Any = "float64") -> None:
    """Save a fitted model to a file, which `load` reads without running any code of the file.

    The file holds the active kernels, the support vectors, the coefficients and every fitted attribute. The caller's
    functions (``callback``, a scorer of one's own) are left out, and a kernel that is a function is refused.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this package, or a `sklearn.pipeline.Pipeline` that ends in one, after scalers, encoders
        and imputers of scikit-learn.
    path : str or path
        The file, by habit with the ending ``.mk``; it is replaced as a whole where it exists.
    dtype : {"float64", "float32"}, default="float64"
        Precision of the arrays in the file. The same bits are predicted in float64; float32 takes half the space.

    See Also
    --------
    load : Read the file.

    Examples
    --------
    >>> import tempfile, numpy as np, multikernel
    >>> from pathlib import Path
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> model = make_pipeline(StandardScaler(), multikernel.MKLRegressor()).fit(X, X[:, 0])
    >>> path = Path(tempfile.mkdtemp()) / "model.mk"
    >>> multikernel.save(model, path)
    >>> bool(np.all(multikernel.load(path).predict(X) == model.predict(X)))
    True
    """
    owner = type(model).__name__
    if isinstance(model, type) or not hasattr(model, "predict") or not hasattr(model, "get_params"):
        raise ValueError(f"The 'model' parameter of save must be a fitted estimator. Got {model!r} instead.")
    try:
        single = np.dtype(dtype) == np.float32
        right = dtype is not None and (single or np.dtype(dtype) == np.float64)
    except TypeError:
        right = False
    if not right:
        raise ValueError(f"The 'dtype' parameter of save must be 'float64' or 'float32'. Got {dtype!r} instead.")
    target = _as_path(path, "save")
    if not target.parent.is_dir():
        raise ValueError(f"The 'path' parameter of save must be in an existing folder. Got '{target}' instead.")
    if target.is_dir():
        raise ValueError(f"The 'path' parameter of save must be a file. Got the folder '{target}' instead.")
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise NotFittedError(f"This {owner} is not fitted yet: call fit before save.") from None
    content, arrays, left_out = encode(model, single)
    if left_out:
        warnings.warn(
            f"The parameters {sorted(set(left_out))} of {owner} are not saved, as a model file holds no code: the "
            "loaded model predicts the same, and has their defaults.",
            UserWarning,
            stacklevel=2,
        )
    document = {
        "format": FORMAT,
        "multikernel": multikernel.__version__,
        "sklearn": sklearn.__version__,
        "left_out": sorted(set(left_out)),
        **content,
    }
    try:
        write_container(target, document, arrays)
    except OSError as error:
        raise ValueError(f"The model file '{target}' could not be written: {error.strerror}.") from None


def load(path: str | os.PathLike) -> Any:
    """Load a model that `save` wrote; no code of the file runs, and a damaged or foreign file is refused.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    estimator
        The fitted model, of the class that was saved.

    Examples
    --------
    >>> import tempfile, numpy as np, multikernel
    >>> from pathlib import Path
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> model = multikernel.MKLClassifier().fit(X, X[:, 0] > 0)
    >>> path = Path(tempfile.mkdtemp()) / "model.mk"
    >>> model.save(path)
    >>> again = multikernel.load(path)
    >>> bool(np.all(again.decision_function(X) == model.decision_function(X))), again.duality_gap_ == model.duality_gap_
    (True, True)
    """
    source = _as_path(path, "load")
    document, arrays = read_container(source)
    try:
        found = document["format"]
        if found != FORMAT:
            raise ValueError(f"its format is {found!r}, and this version reads {FORMAT!r}")
        model = decode(document, arrays)
        if type(model) not in classes().values() or not hasattr(model, "predict"):
            raise ValueError("it holds no estimator")
        _restore_scorer(model, document["left_out"])
        theirs, foreign = document["sklearn"], any(each["class"].startswith("sklearn.") for each in document["objects"])
    except Exception as error:
        # what is not as `save` writes it may fail in any of the classes
        why = " ".join(str(error).split()).rstrip(".") if isinstance(error, ValueError) else f"{type(error).__name__}"
        raise ValueError(
            f"The model file '{source}' cannot be read by multikernel {multikernel.__version__}: {why}."
        ) from None
    if foreign and theirs != sklearn.__version__:
        warnings.warn(
            InconsistentVersionWarning(
                estimator_name=type(model).__name__,
                current_sklearn_version=sklearn.__version__,
                original_sklearn_version=theirs,
            ),
            stacklevel=2,
        )
    return model


def _as_path(path: Any, function: str) -> Path:
    """Return a path, or raise where it is none."""
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path) or isinstance(os.fspath(path), bytes):
        raise ValueError(f"The 'path' parameter of {function} must be the name of a file. Got {path!r} instead.")
    if "\0" in os.fspath(path):
        raise ValueError(f"The 'path' parameter of {function} must not hold a null character. Got {path!r} instead.")
    return Path(path)


def _restore_scorer(model: Any, left_out: list[str]) -> None:
    """Make the scorer of a search again from its parameter, unless that was a function."""
    if hasattr(model, "best_estimator_") and "scoring" not in left_out:
        model.scorer_ = check_scoring(model.best_estimator_, scoring=model.scoring)
