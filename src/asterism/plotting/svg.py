"""Axes as inline SVG that follows the light or dark scheme of the page around it.

Under ``picture_style`` axes are drawn in two stand-in colours, ink and paper. ``picture`` replaces
them in the SVG by ``currentColor`` and ``var(--paper)``, so the page's style sheet decides.
"""

from __future__ import annotations

import html
import re
import warnings
from contextlib import AbstractContextManager
from io import StringIO
from typing import TYPE_CHECKING, Any, cast

from asterism.exceptions import MissingExtraError
from asterism.plotting.page import Html, element

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["picture", "picture_style"]

_INK, _PAPER = "#1d2734", "#fcfdfe"

_STYLE: dict[Any, Any] = {
    **dict.fromkeys(("axes.edgecolor", "axes.labelcolor", "text.color"), _INK),
    **dict.fromkeys(("xtick.color", "ytick.color"), _INK),
    **dict.fromkeys(("axes.facecolor", "figure.facecolor"), _PAPER),
    "savefig.facecolor": "auto",
    "svg.fonttype": "none",  # real text: readable, selectable, in any script
    "svg.hashsalt": "asterism",  # the same data give the same file
}


def picture_style() -> AbstractContextManager[None]:
    """Context in which to draw axes meant for :func:`picture`."""
    try:
        from matplotlib import rc_context
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plot", "Writing a report") from error
    return rc_context(_STYLE)


def picture(ax: Axes, alt: str, name: str, caption: str = "") -> Html:
    """Return a figure element: the axes as SVG with a text alternative, and a caption.

    Call it within ``picture_style``. ``name`` keeps the identifiers of several pictures on one
    page apart.
    """
    stream = StringIO()
    # Without metadata the file carries neither a date nor a link.
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with warnings.catch_warnings():
        # Text is set in the reader's own fonts, so glyphs matplotlib's lack do not matter.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        root = cast("Figure", ax.figure)
        root.savefig(stream, format="svg", dpi=160, metadata=nothing)
    svg = stream.getvalue()
    svg = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.S)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    svg = svg.replace(_INK, "currentColor").replace(_PAPER, "var(--paper)")
    head, body = svg.split(">", 1)
    # The page decides how large the picture is; the view box keeps its shape.
    head = re.sub(r' (?:width|height)="[^"]*"', "", head)
    svg = f'{head} role="img" aria-label="{html.escape(alt)}">{body}'
    return element("figure", Html(svg), *([element("figcaption", caption)] if caption else []))
