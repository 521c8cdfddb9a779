"""Settings of Sphinx for `make docs`. Neither the build nor a reader of the pages needs a network."""

import importlib
import re
import sys
from pathlib import Path

import multikernel

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "multikernel"
author = "multikernel developers"
copyright = "multikernel developers, BSD 3-Clause"
version = release = multikernel.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "plain_docstrings",
    "mathml",
]
exclude_patterns = ["site", "_templates", "gallery/*.ipynb", "gallery/*.py.md5"]
templates_path = ["_templates"]
# `name` in a docstring is a link where such a name is documented, else code
default_role = "py:obj"
highlight_language = "text"
smartquotes = False

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_attributes_as_param_list = True


def shown(modules: list[str]) -> dict[str, list[str]]:
    """Return for each module the names that its page lists, every object in one of them only.

    They are the names of ``__all__``; of a module without it, the public classes and functions that it defines.
    """
    pages, seen = {}, set()
    for module_name in modules:
        module = importlib.import_module(module_name)
        defined = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module_name]
        names = [name for name in getattr(module, "__all__", defined) if not name.startswith("_")]
        pages[module_name] = sorted((n for n in names if id(getattr(module, n)) not in seen), key=str.lower)
        seen |= {id(getattr(module, name)) for name in names}
    return pages


reference = (Path(__file__).parent / "api.md").read_text(encoding="utf-8")
autosummary_context = {"shown": shown(re.findall(r"^   (multikernel[\w.]*)$", reference, re.MULTILINE))}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "subsection_order": [
        f"../examples/{name}" for name in ("start", "sources", "explain", "choose", "tasks", "sequences")
    ],
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "write_computation_times": False,
    "min_reported_time": 1e9,
    "image_scrapers": ("matplotlib",),
    "thumbnail_size": (400, 280),
    "abort_on_example_error": True,
}

html_theme = "furo"
html_title = "multikernel"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_copy_source = False
html_show_sphinx = False
html_math_renderer = "mathml"
