"""Fitted models in files: arrays and JSON, checked, and no code run when they are read; see docs/saving.md.

container.py   the file: a zip archive of model.json, arrays and checksums
codec.py       objects to JSON and arrays, and back
known.py       the classes that a file may name
models.py      `save` and `load`
"""

from multikernel.saving.models import load, save

__all__ = ["load", "save"]
