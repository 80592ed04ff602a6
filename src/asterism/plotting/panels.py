"""Small multiples: the same rows in the same place, panel after panel.

┌──────┐ ┌──────┐ ┌──────┐
│ ∘∘ • │ │ ∘• • │ │ •• • │      one projection, one pair of limits, ticks on none:
└──────┘ └──────┘ └──────┘      what differs between panels is the colour of the rows
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from asterism.exceptions import DataError
from asterism.plotting.checks import check_names
from asterism.plotting.projection import project
from asterism.plotting.style import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["PANEL_SCALE", "check_shown", "new_panels", "place_rows", "set_titles"]

PANEL_SCALE = 0.6
"""Size of a point relative to that in a picture of its own."""

_MOST_COLUMNS = 4


def new_panels(
    n_panels: int,
    points: np.ndarray,
    axis_labels: tuple[str, str],
    figure: Figure | SubFigure | None = None,
) -> np.ndarray:
    """Axes (n_panels,) of a figure, a new one by default, whose limits fit the points (n, 2)."""
    n_columns = min(n_panels, _MOST_COLUMNS)
    if n_panels > _MOST_COLUMNS:  # no row with a single panel where the count allows better
        n_columns = min(range(3, _MOST_COLUMNS + 1), key=lambda c: (-n_panels % c, -c))
    n_rows = math.ceil(n_panels / n_columns)
    if figure is None:
        figure = new_axes(figsize=(2.6 * n_columns + 0.3, 2.6 * n_rows + 0.3)).figure
        figure.clear()
    axes = figure.subplots(n_rows, n_columns, squeeze=False)
    low, high = points.min(axis=0), points.max(axis=0)
    margin = 0.06 * np.where(high > low, high - low, 1.0)
    for number, ax in enumerate(axes.ravel()):
        ax.set_visible(number < n_panels)
        ax.set(xlim=(low[0] - margin[0], high[0] + margin[0]), xticks=[], yticks=[])
        ax.set_ylim(low[1] - margin[1], high[1] + margin[1])
        ax.spines[:].set(color="0.8", linewidth=0.8)
    corner = axes[n_rows - 1, 0]  # the axes mean the same everywhere, and are named once
    corner.set_xlabel(axis_labels[0], fontsize="small", color="0.35", loc="left", parse_math=False)
    corner.set_ylabel(
        axis_labels[1], fontsize="small", color="0.35", loc="bottom", parse_math=False
    )
    return axes.ravel()[:n_panels]


def place_rows(
    X: np.ndarray,
    shown: np.ndarray,
    *,
    projection: str,
    feature_names: Sequence[Any] | None,
    random_state: int | None,
) -> tuple[np.ndarray, tuple[str, str]]:
    """Points (n, 2) of the rows shown, and what the axes mean; one feature is jittered."""
    names = check_names(feature_names, X.shape[1], "feature")
    placed = project(X, shown, method=projection, names=names, random_state=random_state)
    if placed.points.shape[1] == 2:
        return placed.points, (placed.axis_labels[0], placed.axis_labels[1])
    height = np.random.default_rng(random_state).uniform(size=len(shown))
    return np.column_stack([placed.points[:, 0], height]), (placed.axis_labels[0], "")


def set_titles(ax: Axes, left: str, right: str = "") -> None:
    """Write two short texts above a panel."""
    ax.set_title(left, loc="left", fontsize="small", pad=4)
    ax.set_title(right, loc="right", fontsize="small", color="0.35", pad=4)


def check_shown(number: Any, name: str) -> int:
    """A number of panels or points, one or more."""
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
        raise DataError(f"{name} must be a whole number, 1 or more; got {number!r}.")
    return int(number)
