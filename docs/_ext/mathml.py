"""Formulas as MathML, which browsers draw by themselves: no script, no font, no network.

docutils translates the LaTeX; Sphinx only has to be told to use it.
"""

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)


def _translate(node, *, as_block):
    try:
        return str(tex2mathml(node.astext(), as_block=as_block))
    except MathError as error:
        LOGGER.warning("formula %r: %s", node.astext(), error, location=node)
        return ""


def _inline(translator, node):
    translator.body.append(_translate(node, as_block=False))
    raise nodes.SkipNode


def _block(translator, node):
    formula = _translate(node, as_block=True)
    translator.body.append(f'<div class="math-block">{formula}</div>\n')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
