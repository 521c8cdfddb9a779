"""An environment for each contestant that needs other packages, made once in a cache folder."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

# seconds that an installation may take
LIMIT = 900


def cache_folder() -> Path:
    """Return the folder of the environments: that of MULTIKERNEL_PEERS, or one in the user's cache."""
    given = os.environ.get("MULTIKERNEL_PEERS")
    return (
        Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "multikernel-peers"
    )


def interpreter(requirements: list[str], cache: Path) -> tuple[str | None, str]:
    """Return the interpreter that has the requirements, or None and the reason why there is none."""
    if not requirements:
        return sys.executable, ""
    folder = cache / requirements[0].split("==")[0]
    python, stamp = folder / "bin" / "python", folder / ".installed"
    wanted = "\n".join(requirements)
    if stamp.exists() and stamp.read_text() == wanted:
        return str(python), ""
    try:
        if not python.exists():
            venv.create(folder, with_pip=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements]
        done = subprocess.run(install, capture_output=True, text=True, timeout=LIMIT, env=clean())
    except (OSError, subprocess.SubprocessError) as error:
        return None, f"no environment: {type(error).__name__}"
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["pip failed"]
        return None, f"does not install: {lines[-1][:200]}"
    stamp.write_text(wanted)
    return str(python), ""


def clean() -> dict[str, str]:
    """Return the environment variables without a path of modules, which belongs to this interpreter."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
