"""Fits of the survey in a process that can be killed: a fit, its reference and one pass, in processor seconds.

The reference is scikit-learn's SVC, SVR or OneClassSVM on the plain sum of the kernels, at the same C or nu whatever
our loss. A pass is one reading of the stack.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import warnings
from multiprocessing.connection import Connection

import numpy as np
from clock import processor_seconds
from survey_draw import Fit, kernels, samples, stack
from survey_searches import measure_search

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMBA_NUM_THREADS",
              "VECLIB_MAXIMUM_THREADS")  # fmt: skip
# wall-clock seconds for each second of processor time that a fit may take, before its process is killed all the same
PATIENCE = 10


def model_of(fit: Fit, tol: float):
    """Return the estimator of a fit."""
    from multikernel import MKLClassifier, MKLOneClass, MKLRegressor

    given = {"norm": fit.norm, "solver": fit.solver, "n_jobs": 1, "tol": tol}
    if fit.bank == "features":
        X, _, views = samples(fit.dataset, fit.n)
        given |= {"kernels": kernels(fit.bank, X, views), "gram": "features"}
    else:
        given["kernels"] = "precomputed"
    if fit.task == "one class":
        return MKLOneClass(nu=fit.C, **given)
    if fit.task == "regression":
        return MKLRegressor(C=fit.C, loss=fit.loss, **given)
    return MKLClassifier(C=fit.C, loss=fit.loss, multiclass=fit.multi, **given)


def reference_of(fit: Fit):
    """Return scikit-learn's machine for the task of a fit."""
    from sklearn.svm import SVC, SVR, OneClassSVM

    if fit.task == "one class":
        return OneClassSVM(kernel="precomputed", nu=fit.C)
    return (SVR if fit.task == "regression" else SVC)(kernel="precomputed", C=fit.C)


def measure(fit: Fit, tol: float) -> dict:
    """Fit once or a few times, and say how it ended."""
    from multikernel import stack_kernels

    model = model_of(fit, tol)
    data: tuple = stack(fit.dataset, fit.bank, fit.n)
    if fit.bank == "features":
        data = samples(fit.dataset, fit.n)[:2]
    else:
        data = stack_kernels(data[0]), data[1]
    try:
        seconds = processor_seconds(lambda: model.fit(*data))
    except ValueError as error:
        return {"status": "refused", "message": str(error)}
    except Exception as error:
        return {"status": "error", "message": f"{type(error).__name__}: {error}"}
    found = [str(status) for status in np.ravel(model.status_)]
    status = next((status for status in found if status != "converged"), "converged")
    gap = float(np.max(model.duality_gap_))
    if status == "converged" and not gap <= tol:
        status = "gap above tol"
    return {
        "status": status, "seconds": seconds, "gap": gap, "iterations": int(np.sum(model.n_iter_)),
        "solver": str(np.ravel(model.solver_)[0]),
    }  # fmt: skip


def measure_reference(fit: Fit, tol: float) -> dict:
    """Return the seconds of the reference."""
    K, y = stack(fit.dataset, fit.bank, fit.n)
    total, machine = K.sum(axis=0, dtype=np.float64), reference_of(fit)
    return {"reference": processor_seconds(lambda: machine.fit(total, y))}


def measure_pass(fit: Fit, tol: float) -> dict:
    """Return the seconds of one pass, and the size of the stack."""
    K, _ = stack(fit.dataset, fit.bank, fit.n)
    beta = np.full(len(K), 1.0 / len(K), np.float32)
    return {"one_pass": processor_seconds(lambda: np.tensordot(beta, K, 1)), "samples": K.shape[1], "kernels": len(K)}


JOBS = {"fit": measure, "reference": measure_reference, "pass": measure_pass, "search": measure_search}


def serve(pipe: Connection) -> None:
    """Do jobs until the pipe closes. A job that takes more processor time than its limit ends the process."""
    warnings.simplefilter("ignore")
    while True:
        try:
            job, fit, tol, limit = pipe.recv()
        except EOFError:
            return
        stack(fit.dataset, fit.bank, fit.n)
        # the default action of this signal is to end the process, whatever compiled code it is in
        signal.setitimer(signal.ITIMER_PROF, limit)
        result = JOBS[job](fit, tol)
        signal.setitimer(signal.ITIMER_PROF, 0)
        pipe.send(result)


class Worker:
    """One process that does jobs, and is started again after it was killed."""

    def __init__(self) -> None:
        self._process: multiprocessing.process.BaseProcess | None = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_) -> None:
        self.stop()

    def do(self, job: str, fit: Fit, tol: float, limit: float) -> dict | None:
        """Return the result of a job, or None where it was killed at its limit.

        The kernels are computed outside the limit.
        """
        if self._process is None or not self._process.is_alive():
            # read by the libraries when the new process loads them
            os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=serve, args=(theirs,), daemon=True)
            self._process.start()
            theirs.close()
        try:
            self._pipe.send((job, fit, tol, limit))
            if self._pipe.poll(PATIENCE * (limit + 30)):
                return self._pipe.recv()
        except (EOFError, ConnectionError):
            self._process.join()
            if self._process.exitcode == 1:
                raise RuntimeError(f"The benchmark failed at {fit.key}; its traceback is above.") from None
            if self._process.exitcode != -signal.SIGPROF:
                return {"status": "error", "message": f"the process ended with exit code {self._process.exitcode}"}
        self.stop()
        return None

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._process = None
