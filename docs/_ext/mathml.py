"""Equations as MathML, which browsers draw themselves: no script, no font and no network."""

from docutils.nodes import SkipNode
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging


def _convert(node, **options):
    try:
        return tex2mathml(node.astext(), **options)
    except MathError as error:
        logging.getLogger(__name__).warning("%s", error, location=node)
        return ""


def _inline(self, node):
    self.body.append(_convert(node))
    raise SkipNode


def _block(self, node):
    self.body.append(f'<div class="math">{_convert(node, as_block=True)}</div>\n')
    raise SkipNode


def setup(app):
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True}
