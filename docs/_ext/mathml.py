"""Formulas as MathML, which browsers draw by themselves: no script, no font, no network.

docutils translates the LaTeX; Sphinx only has to be told to use it.
"""

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def _inline(translator, node):
    translator.body.append(str(tex2mathml(node.astext(), as_block=False)))
    raise nodes.SkipNode


def _block(translator, node):
    label = f' id="{node["ids"][0]}"' if node.get("ids") else ""
    formula = tex2mathml(node.astext(), as_block=True)
    translator.body.append(f'<div class="math-block"{label}>{formula}</div>\n')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
