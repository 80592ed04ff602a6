"""Axes without global state, and the colour and marker of each cluster.

    colour(k) = hue[k mod 10] at lightness level (k div 10) mod 3
    marker(k) = shape[(k div 10) mod 6]

so 60 clusters have 60 looks. Six of the ten hues are Okabe and Ito's; the other four were chosen
so that, under simulated protanopia, deuteranopia and tritanopia, no two of the ten are nearer
(in OKLab) than the nearest two of Okabe and Ito's own. Noise (−1) is grey.

M. Okabe & K. Ito, "Color universal design", 2008; G. M. Machado, M. M. Oliveira & L. A. F.
Fernandes, "A physiologically-based model for simulation of color vision deficiency", IEEE
TVCG 2009.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asterism.exceptions import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["NOISE_COLOR", "cluster_color", "cluster_marker", "new_axes"]

NOISE_COLOR = "#9a9a9a"

_HUES = (
    "#0072b2",  # blue
    "#e69f00",  # orange
    "#009e73",  # green
    "#cc79a7",  # pink
    "#d55e00",  # vermilion
    "#56b4e9",  # sky
    "#882255",  # wine
    "#ddcc77",  # sand
    "#bd1f01",  # red
    "#92dadd",  # pale cyan
)
_LEVELS = ((0.0, 0.0), (0.36, 0.0), (0.38, 1.0))  # mix with black, then white
_MARKERS = ("o", "s", "^", "D", "v", "P")


def new_axes(ax: Axes | None = None, figsize: tuple[float, float] = (6.4, 4.8)) -> Axes:
    """Return ``ax`` itself, or the axes of a new figure that pyplot does not know.

    Parameters
    ----------
    ax : matplotlib.axes.Axes, optional
        Axes to draw on.
    figsize : (float, float)
        Width and height in inches of the new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Its ``figure`` can be saved with ``ax.figure.savefig("picture.png")``.

    Examples
    --------
    >>> from asterism.plotting import new_axes
    >>> ax = new_axes(figsize=(3, 2))
    >>> new_axes(ax) is ax
    True
    """
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plot", "Drawing a picture") from error
    axes = Figure(figsize=figsize, layout="constrained").subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def cluster_color(label: int) -> str:
    """Colour of a cluster as ``#rrggbb``; noise (any negative label) is grey.

    Examples
    --------
    >>> from asterism.plotting import cluster_color
    >>> [cluster_color(k) for k in (-1, 0, 1, 10)]
    ['#9a9a9a', '#0072b2', '#e69f00', '#004972']
    """
    if label < 0:
        return NOISE_COLOR
    hue = _HUES[label % len(_HUES)]
    weight, grey = _LEVELS[label // len(_HUES) % len(_LEVELS)]
    channels = (int(hue[i : i + 2], 16) for i in (1, 3, 5))
    mixed = (round((1 - weight) * channel + weight * 255 * grey) for channel in channels)
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def cluster_marker(label: int) -> str:
    """Marker of a cluster; changes every ten labels. Noise (negative) is a circle."""
    return _MARKERS[max(label, 0) // len(_HUES) % len(_MARKERS)]
