"""Run as ``python -m tests.drill`` from the root of the repository."""

import faulthandler
import os
import sys
from pathlib import Path

# the drill takes one core; these are read when NumPy and Numba are first imported
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("MPLBACKEND", "Agg")
# where the modules of tests/ are imported from, as pytest does
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from drill.run import main  # noqa: E402

faulthandler.enable()
sys.exit(main())
