"""Linear programmes by HiGHS, which stay loaded and are restarted by the dual simplex method as rows are added."""

from __future__ import annotations

import numpy as np

from multikernel.mixing.cones import ACCURACY


class HighsProgramme:
    """Minimise cost . x over lower <= A x <= upper and bounds on x; HiGHS is imported when a programme is made.

    Parameters
    ----------
    lowest : ndarray of shape (m,)
        Lower bounds of the variables, -inf for none; there are no upper bounds.

    Examples
    --------
    >>> import numpy as np
    >>> programme = HighsProgramme(np.zeros(2))
    >>> programme.add_rows(np.array([[1.0, 2.0]]), np.array([3.0]), np.array([np.inf]))
    >>> x, multipliers = programme.minimise(np.ones(2))
    >>> x, multipliers
    (array([0. , 1.5]), array([0.5]))
    """

    def __init__(self, lowest: np.ndarray) -> None:
        import highspy

        self._optimal = highspy.HighsModelStatus.kOptimal
        self._lp = highspy.Highs()
        options: dict[str, bool | int | float | str] = {
            "output_flag": False,
            "threads": 1,
            "solver": "simplex",
            "presolve": "off",
            "primal_feasibility_tolerance": ACCURACY,
            "dual_feasibility_tolerance": ACCURACY,
        }
        for name, value in options.items():
            self._lp.setOptionValue(name, value)
        self._lp.addVars(len(lowest), np.asarray(lowest, float), np.full(len(lowest), np.inf))

    def add_rows(self, A: np.ndarray, lower: np.ndarray, upper: np.ndarray, columns: np.ndarray | None = None) -> None:
        """Add rows lower <= A x <= upper; ``columns``, of the shape of A, says which variables they are about."""
        m, width = A.shape
        if m == 0:
            return
        if columns is None:
            columns = np.tile(np.arange(width), m)
        starts = np.arange(0, m * width, width, dtype=np.int32)
        self._lp.addRows(m, lower, upper, A.size, starts, columns.ravel().astype(np.int32), A.ravel())

    def set_lower(self, row: int, lower: float) -> None:
        """Change the lower bound of one row that has no upper bound."""
        self._lp.changeRowBounds(row, lower, np.inf)

    def minimise(self, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the minimiser and the multipliers of the rows; None where HiGHS finds none."""
        self._lp.changeColsCost(len(cost), np.arange(len(cost), dtype=np.int32), np.asarray(cost, float))
        self._lp.run()
        if self._lp.getModelStatus() != self._optimal:
            # numbers carried over from earlier programmes can spoil a factorisation: begin anew
            self._lp.clearSolver()
            self._lp.run()
        if self._lp.getModelStatus() != self._optimal:
            return None
        solution = self._lp.getSolution()
        return np.array(solution.col_value), np.array(solution.row_dual)
