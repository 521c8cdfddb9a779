"""A joint loss on one kernel by a primal-dual interior-point method: a few dozen factorisations, whatever the costs.

    min_A  1/2 tr A'KA - g(A),     S = upper - A >= 0,     A1 = 0,     1'A = 0  (with biases)

Given: a machine with its concave g (linear for the hinge), the combined kernel K, coefficients A at which row steps
became slow. Returned: A to the accuracy asked for. Z >= 0 are the multipliers of S >= 0, t of the rows, b of the
columns. A step solves

    (K + D) dA + dt 1' + 1 db' = R,     D = Z / S - g''(A),     dA 1 and 1'dA given,

twice with one factorisation (Mehrotra 1992), with one step length for all variables. We differ from the paper in the
way the system is solved: conjugate gradients, preconditioned by the class blocks of `newton_systems` without the
kernel's part at entries that Z / S holds firmly at their bounds; on a kernel of low rank by its factor.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_solve

from multikernel.gram.combined import RIDGES, Combined
from multikernel.machines.base import FLOOR, MOST_FACTORISATIONS, TO_BOUNDARY, inner_gap
from multikernel.machines.joint.newton_systems import with_ridge

# entries that are held by more than this multiple of the mean diagonal are firm, and left out of class blocks: more of
# them make smaller blocks, more iterations here, and second-order steps that leave out entries that move
FIRM = 2.0
# relative error of a step: a larger one saves iterations of conjugate gradients and costs steps
_ERROR = 1e-4


def kept_factor(machine, combined: Combined) -> np.ndarray | None:
    """Return `low_rank_factor`, found once for a combined kernel; None where each class has a kernel of its own."""
    if machine.separable and "factor" not in combined.cache:
        combined.cache["factor"] = low_rank_factor(combined, machine.n_classes)
    return combined.cache.get("factor")


def low_rank_factor(combined: Combined, n_classes: int) -> np.ndarray | None:
    """Return G of shape (n, r) with K = GG' by a pivoted Cholesky factorisation; None where class blocks take less.

    Only the r rows of the pivots are formed.
    """
    left = combined.diag.astype(np.float64)
    n = len(left)
    # a matrix of r c unknowns against c matrices of n
    most = int(n / n_classes ** (2.0 / 3.0))
    # what a factor may leave over of the diagonal: conjugate gradients on K itself correct it
    enough = RIDGES[combined.dtype.char][0] * float(left.max())
    G = np.zeros((n, most))
    for r in range(most + 1):
        pivot = int(np.argmax(left))
        if left[pivot] <= enough and r:
            # not a view, which would keep the columns that were not needed
            return G[:, :r].copy()
        if r == most or left[pivot] <= enough:
            break
        row = combined.apply(np.eye(1, n, pivot)[0])
        G[:, r] = (row - G[:, :r] @ G[pivot, :r]) / np.sqrt(left[pivot])
        left -= G[:, r] ** 2
        left[pivot] = 0.0
    return None


class LowRankSystem:
    """The system for K = GG', factorised: r c unknowns G'dA and c for the biases, or n for the rows if these are fewer.

    With N_u = I + G'E_u G, E = 1 / D, of each class, and B_u = E_u G / sqrt(sum E), the unknowns V = G'dA solve
    (N - B'B) V = rhs. Where there are more of them than rows, the inverse is N^-1 + N^-1 B' (I - B N^-1 B')^-1 B N^-1.

    Parameters
    ----------
    G : ndarray of shape (n, r)
        Factor of the kernel.
    D : ndarray of shape (n, c)
        Diagonal, positive.
    balanced : bool
        Whether column sums are given.
    """

    def __init__(self, G: np.ndarray, D: np.ndarray, balanced: bool) -> None:
        n, c = D.shape
        # the biases are one more column, without a quadratic term
        self.G = G = np.column_stack([G, np.ones(n)]) if balanced else G
        self.balanced, self.e = balanced, 1.0 / D
        self.total = self.e.sum(axis=1, keepdims=True)
        self.share = self.e / self.total
        k = G.shape[1]
        root = np.sqrt(self.total)
        few = c * k <= n
        # entries that cancel in N - B'B cancel row by row, before the sums over rows
        N = ((self.e * (1.0 - self.share) if few else self.e).T[:, None] * G.T) @ G
        B = ((self.e / root).T[:, None] * G.T).reshape(c * k, n)
        ridge = np.ones((c, k))
        if balanced:
            # for the biases, which may move by any amount: small beside every class, one of which may have all its
            # entries at their bounds
            ridge[:, -1] = 1e-12 * np.minimum(N[:, -1, -1], np.trace(N, axis1=1, axis2=2).mean() / k)
        N[:, range(k), range(k)] += ridge
        self.B = None if few else B
        if self.B is None:
            M = -(B @ B.T)
            for u in range(c):
                M[u * k : (u + 1) * k, u * k : (u + 1) * k] = N[u]
        else:
            self.root = np.linalg.inv(np.linalg.cholesky(N))
            X = (self.root @ B.reshape(c, k, n)).reshape(c * k, n)
            M = -(X.T @ X)
            M.flat[:: n + 1] += 1.0
            if balanced:
                # a shift of all dt and all db changes nothing
                M += root @ root.T / float(self.total.sum())
        # rounding may leave M indefinite; conjugate gradients correct a ridge
        ridges = np.append(0.0, RIDGES[M.dtype.char])
        self.factor = with_ridge(lambda: M, float(M.diagonal().mean()), np.linalg.cholesky, ridges), True

    def saddle(self, R: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> tuple:
        """Return dA, dt and db for R and the sums of rows and columns."""
        rhs = (self.G.T @ (self._centred(R) + self.share * rows[:, None])).T
        if self.balanced:
            rhs[:, -1] -= columns
        if self.B is None:
            V = self._factor_solve(rhs.ravel()).reshape(rhs.shape)
        else:
            first = self._class_solve(rhs)
            V = first + self._class_solve((self.B @ self._factor_solve(first.ravel() @ self.B)).reshape(rhs.shape))
        left = R - self.G @ V.T
        dt = np.sum(self.share * left, axis=1) - rows / self.total[:, 0]
        return self._centred(left) + self.share * rows[:, None], dt, V[:, -1] if self.balanced else 0.0 * columns

    def _factor_solve(self, rhs: np.ndarray) -> np.ndarray:
        return cho_solve(self.factor, rhs, check_finite=False)

    def _class_solve(self, rhs: np.ndarray) -> np.ndarray:
        return (self.root.mT @ (self.root @ rhs[..., None]))[..., 0]

    def _centred(self, R: np.ndarray) -> np.ndarray:
        """M_i R_i for every row, M_i = diag(e_i) - e_i e_i' / sum e_i."""
        return self.e * (R - np.sum(self.share * R, axis=1, keepdims=True))


class InteriorPoint:
    """An interior point A with slacks S > 0 and multipliers Z > 0, begun from a point pulled inside.

    Parameters
    ----------
    machine : RowMachine
        Machine.
    combined : Combined
        Kernel.
    a, f : ndarrays of shape (n, c)
        Feasible coefficients and their outputs.
    b : ndarray of shape (c,)
        Biases to begin with.
    gap : float
        Gap of the coefficients.
    """

    def __init__(self, machine, combined: Combined, a: np.ndarray, f: np.ndarray, b: np.ndarray, gap: float) -> None:
        self.machine, self.b = machine, b
        # of kernels that are almost zero the size at which a slope of one moves coefficients by their cost
        self.mean = max(float(combined.diag.mean()), 1.0 / float(machine.C.max()))
        self.G = kept_factor(machine, combined)
        # the squared hinge has no bound at the sample's own class: a slack of one there, which does not change
        upper, self.held = machine.upper, np.isfinite(machine.upper)
        g = machine.derivatives(machine.off_bounds(a))[0] - f - b
        self.t = np.where(self.held, g, np.inf).min(axis=1)
        # slacks s and multipliers z = k (s - v), with s z = mu
        mu, v = gap / a.size, np.where(self.held, upper - a, 1.0) - (g - self.t[:, None]) / self.mean
        # the larger root of s (s - v) = mu / mean in size, without cancellation, and from it the positive one
        far = 0.5 * (np.abs(v) + np.sqrt(v * v + 4.0 * mu / self.mean))
        s = np.where(self.held, np.where(v > 0, far, mu / self.mean / far), 1.0)
        if self.held.all():
            s *= (upper.sum(axis=1) / s.sum(axis=1))[:, None]
        self.S, self.Z = s, self.held * mu / s
        self.A = np.where(self.held, upper - s, np.where(self.held, s, 0.0).sum(axis=1, keepdims=True))
        self.go_on(combined, a, f)

    def go_on(self, combined: Combined, a: np.ndarray, f: np.ndarray) -> None:
        """Take outputs f of coefficients a, summed over all kernels: rounding of K enters only through K (A - a)."""
        self.combined, self.origin = combined, (a, f)
        self.f = self.outputs()

    def outputs(self) -> np.ndarray:
        """Return the outputs of A, from those of the start."""
        a, f = self.origin
        return f + self.combined.apply(self.A - a)

    @property
    def products(self) -> float:
        """<S, Z>, the gap where the residuals are zero."""
        return float(np.vdot(self.S, self.Z))

    def step(self) -> float:
        """Predictor and corrector step; return its length."""
        machine, S, Z = self.machine, self.S, self.Z
        barrier = Z / S
        gradient, bend = machine.derivatives(self.A)
        if not np.isfinite(gradient).all():
            raise LinAlgError("Rounding has put a coefficient on its bound.")
        D = barrier + bend
        if self.G is not None:
            system = LowRankSystem(self.G, D, machine.balanced)
        else:
            firm = D > FIRM * self.mean
            held = np.where(firm, 1.0 / (self.combined.diag[:, None] + D), 0.0)
            system = machine.blocks(self.combined, ~firm, machine.balanced, D, held)
        left = gradient - self.f - self.b - self.t[:, None] - Z
        sums = -self.A.sum(axis=1), -self.A.sum(axis=0)
        before = self.products
        dA, dt, db = self._solve(system, D, left + Z, sums, _ERROR**0.5)
        dZ = barrier * dA - Z
        t = min(1.0, self._longest_step(dA, dZ))
        after = float(np.vdot(S - t * self.held * dA, Z + t * dZ))
        change = self.held * ((after / before) ** 3 * before / np.count_nonzero(self.held) + dA * dZ) / S - Z
        dA, dt, db = self._solve(system, D, left - change, sums, _ERROR)
        dZ = change + barrier * dA
        t = min(1.0, TO_BOUNDARY * self._longest_step(dA, dZ))
        self.A, self.S, self.Z = self.A + t * dA, S - t * self.held * dA, Z + t * dZ
        self.t, self.b = self.t + t * dt, self.b + t * db
        self.f = self.outputs()
        if t < 0.2:
            # a large dual residual keeps steps short. Larger multipliers remove the residual and make steps longer, at
            # the price of a larger gap, which is not worth paying beyond some growth
            g = machine.derivatives(self.A)[0] - self.f - self.b
            slack = g - np.where(self.held, g - self.Z, np.inf).min(axis=1)[:, None]
            Z = self.held * np.maximum(self.Z, slack)
            if (Z - self.Z).max() > self.Z.mean() and np.vdot(self.S, Z) <= 1e4 * self.products:
                self.t, self.Z = (g - slack)[:, 0], Z
        return t

    def _longest_step(self, dA: np.ndarray, dZ: np.ndarray) -> float:
        ratios = self.held * np.maximum(dA / self.S, -dZ / np.where(self.held, self.Z, 1.0))
        return 1.0 / max(float(ratios.max()), 1e-300)

    def _solve(self, system, D: np.ndarray, R: np.ndarray, sums: tuple, error: float) -> tuple:
        """Return dA, dt and db by conjugate gradients on what the system leaves over."""
        none = np.zeros(len(R)), np.zeros(R.shape[1])
        dA, dt, db = system.saddle(R, *sums)
        # once more for what rounding has left of the sums: making them zero afterwards would change the outputs
        more = system.saddle(np.zeros_like(R), sums[0] - dA.sum(axis=1), sums[1] - dA.sum(axis=0))
        dA, dt, db = dA + more[0], dt + more[1], db + more[2]
        image = self.combined.apply(dA) + D * dA
        enough, left, step, before = error**2 * float(np.vdot(dA, image)), R - image - dt[:, None] - db, 0.0, np.inf
        # as many iterations as a third of the steps: rounding may keep both from ending
        for _ in range(MOST_FACTORISATIONS // 3):
            G, more_t, more_b = system.saddle(left, *none)
            # without the multipliers, which do not count: less rounding
            left = left - more_t[:, None] - more_b
            dt, db = dt + more_t, db + more_b
            energy = float(np.vdot(G, left))
            if energy <= enough:
                break
            step = G + energy / before * step
            image = self.combined.apply(step) + D * step
            bend = float(np.vdot(step, image))
            if not bend > 0:
                break
            dA = dA + energy / bend * step
            left = left - energy / bend * image
            before = energy
        return dA, dt, db


def interior_point(machine, combined: Combined, a: np.ndarray, f: np.ndarray, accuracy: float) -> np.ndarray:
    """Return coefficients within ``accuracy`` of the optimum, or the best that rounding allows, from feasible ones.

    A later call with the same weights continues the path of the earlier one: a new start, pulled inside the bounds,
    would be further from the optimum.
    """
    gap, b = inner_gap(machine, a, f, accuracy)
    if gap <= max(accuracy, 0.0):
        return a
    best, least = a, gap
    path = combined.cache.pop("path", None)
    if path is None:
        path = InteriorPoint(machine, combined, a, f, b, gap)
    else:
        path.go_on(combined, a, f)
    for left in reversed(range(MOST_FACTORISATIONS)):
        try:
            t = path.step()
        except LinAlgError:
            t = 0.0
        last = t < 1e-8 or not left
        if path.products <= accuracy or last:
            new = machine.make_feasible(path.A)
            gap = inner_gap(machine, new, path.f + combined.apply(new - path.A), accuracy)[0]
            if gap < least:
                best, least = new, gap
            if least <= accuracy or last or path.products <= FLOOR * accuracy:
                break
    if not last:
        # without the kernel: a cycle would keep its memory until the collector comes
        del path.combined, path.origin
        combined.cache["path"] = path
    return best
