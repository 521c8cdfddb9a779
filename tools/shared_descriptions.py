"""Extension of `mkdocstrings` for `make docs`: descriptions of parameters that estimators share.

The docstring of an estimator names them in lines such as ``<kernels, norm>``, which the import of its class fills in
(`multikernel.estimators.docstrings`). The reference is made from the source without importing it, so this extension
takes those docstrings from the imported classes and methods.
"""

from __future__ import annotations

import inspect
import pkgutil
import re

import griffe

PLACEHOLDER = re.compile(r"^ *<[a-zA-Z_, \n]+>$", re.MULTILINE)


class SharedDescriptions(griffe.Extension):
    """Replace the docstrings that name shared descriptions."""

    def on_instance(self, *, obj, **kwargs):
        """Take the docstring of one class or method from the imported object."""
        if obj.docstring and PLACEHOLDER.search(obj.docstring.value):
            obj.docstring.value = inspect.getdoc(pkgutil.resolve_name(obj.path))
