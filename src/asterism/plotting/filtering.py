"""Clusters peeled off a data set one by one.

Step t of a filtering method looks at the rows that are left, gives each a probability of belonging
to the next cluster, and takes some away:

    left (n_t,)  ⊃  left (n_{t+1},) = left without the rows taken

A panel a step: the depth of the step's colour is the probability, and rows taken have a dark
outline; rows that went before are faint in the colours of their clusters. The last panel shows what
came of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from asterism.exceptions import DataError
from asterism.plotting.checks import check_probability, check_rows
from asterism.plotting.panels import (
    PANEL_SCALE,
    check_shown,
    new_panels,
    place_rows,
    set_titles,
)
from asterism.plotting.projection import stratified_subsample
from asterism.plotting.scatter import draw_points, point_size
from asterism.plotting.style import cluster_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["plot_filtering"]

_FAINT = 0.18
_DARK = 0.55  # of the colour is left in the outline of a row taken
_PALE = 0.85  # how much white is mixed into the colour of a probability of zero


class _Step(NamedTuple):
    """One step: which rows were left, how likely each joins, and which were taken."""

    indices: np.ndarray  # (n,) row numbers
    probabilities: np.ndarray  # (n,)
    taken: np.ndarray  # (n,) bool
    forced: bool  # whether a row was taken only so that the work goes on


def plot_filtering(
    X: Any,
    steps: Sequence[Any],
    *,
    max_steps: int = 11,
    projection: str = "auto",
    feature_names: Sequence[Any] | None = None,
    max_points: int = 1000,
    random_state: int | None = 0,
    figure: Figure | SubFigure | None = None,
) -> np.ndarray:
    """Draw how clusters were taken out of a data set, step by step.

    Parameters
    ----------
    X : array of shape (N, D)
        Features; finite.
    steps : sequence
        A mapping or named tuple a step, ``filtering_path_`` of an estimator, with ``indices`` (n,)
        of the rows left, their ``probabilities`` (n,) of joining this cluster, the rows ``taken``
        (n,), true or false, and perhaps whether the step was ``forced``.
    max_steps : int
        Most steps to draw, the first ones; the last panel counts them all.
    projection : {"auto", "pca", "tsne", "none"}
        As in :func:`asterism.plotting.plot_clusters`.
    feature_names : sequence of D names, optional
        Axis labels when nothing is projected.
    max_points : int
        Draw a subsample when there are more rows, some of every cluster.
    random_state : int or None
        Seed of the subsample, the drawing order and t-SNE.
    figure : matplotlib.figure.Figure, optional
        Figure to draw on, for instance ``plt.figure()``; by default a new one.

    Returns
    -------
    ndarray of matplotlib.axes.Axes
        One a step and one for the result:
        ``axes[0].figure.savefig("filtering.png")``.

    Examples
    --------
    >>> import numpy as np
    >>> from asterism.plotting import plot_filtering
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [5.0, 5.0]])
    >>> steps = [
    ...     {"indices": [0, 1, 2], "probabilities": [0.9, 0.8, 0.1], "taken": [True, True, False]},
    ...     {"indices": [2], "probabilities": [0.4], "taken": [True], "forced": True},
    ... ]
    >>> axes = plot_filtering(X, steps)
    >>> [ax.get_title(loc="left") for ax in axes]
    ['step 1', 'step 2 (forced)', 'all steps']
    >>> [ax.get_title(loc="right") for ax in axes]
    ['2 of 3 rows', '1 of 1 row', '2 clusters']
    """
    X = check_rows(X)
    path = [_read_step(step, len(X), number) for number, step in enumerate(steps, start=1)]
    if not path:
        raise DataError("steps is empty: there is nothing to show. Fit a method that filters.")
    check_shown(max_steps, "max_steps")
    labels = _step_labels(path, len(X))
    shown = stratified_subsample(labels, check_shown(max_points, "max_points"), random_state)
    points, axis_labels = place_rows(
        X, shown, projection=projection, feature_names=feature_names, random_state=random_state
    )
    drawn = path[:max_steps]
    axes = new_panels(len(drawn) + 1, points, axis_labels, figure)
    for number, (ax, step) in enumerate(zip(axes[:-1], drawn, strict=True)):
        _draw_step(ax, points, shown, step, labels, number, np.random.default_rng(random_state))
        n_left = len(step.indices)
        rows = f"{int(step.taken.sum()):,} of {n_left:,} row{'' if n_left == 1 else 's'}"
        set_titles(ax, f"step {number + 1}{' (forced)' if step.forced else ''}", rows)
    rng = np.random.default_rng(random_state)
    draw_points(axes[-1], points, labels[shown], None, rng, scale=PANEL_SCALE)
    n_clusters, read = len(np.unique(labels[labels >= 0])), path[0].indices
    n_rest, n_unread = int((labels[read] < 0).sum()), len(X) - len(read)
    found = f"{n_clusters:,} cluster{'' if n_clusters == 1 else 's'}"
    found += f", {n_rest:,} left" if n_rest else ""
    found += f", {n_unread:,} not read" if n_unread else ""
    more = len(path) - len(drawn)
    set_titles(axes[-1], f"… {more:,} more" if more else "all steps", found)
    return axes


def _step_labels(steps: Sequence[_Step], n_rows: int) -> np.ndarray:
    """Number of the step (N,) that took each row, −1 where none did."""
    labels = np.full(n_rows, -1, dtype=np.int64)
    for number, step in enumerate(steps):
        labels[step.indices[step.taken]] = number
    return labels


def _draw_step(
    ax: Axes,
    points: np.ndarray,
    shown: np.ndarray,
    step: _Step,
    labels: np.ndarray,
    number: int,
    rng: np.random.Generator,
) -> None:
    from matplotlib.colors import to_rgb, to_rgba

    n_rows = len(labels)
    probability, taken = np.full(n_rows, np.nan), np.zeros(n_rows, dtype=bool)
    probability[step.indices], taken[step.indices] = step.probabilities, step.taken
    probability, taken, labels = probability[shown], taken[shown], labels[shown]
    size = PANEL_SCALE * point_size(len(points))
    gone = np.isnan(probability)
    colors = {k: to_rgba(cluster_color(k), _FAINT) for k in np.unique(labels[gone]).tolist()}
    faint = [colors[k] for k in labels[gone].tolist()]
    ax.scatter(points[gone, 0], points[gone, 1], s=size, color=faint, linewidths=0, zorder=1)
    hue = np.array(to_rgb(cluster_color(number)))
    # Pale rows on white need an outline; those taken a darker one, of their own colour.
    for chosen, edge, width in ((~taken, "0.72", 0.4), (taken, tuple(_DARK * hue), 0.7)):
        rows = rng.permutation(np.flatnonzero(~gone & chosen))
        pale = _PALE * (1 - probability[rows, None])
        ax.scatter(
            points[rows, 0],
            points[rows, 1],
            s=size,
            c=hue + pale * (1 - hue),
            edgecolors=edge,
            linewidths=width,
            zorder=2,
        )


def _read_step(step: Any, n_rows: int, number: int) -> _Step:
    """One step as arrays, or a ``DataError`` that names it."""
    names = _Step._fields
    given = {
        name: step.get(name) if isinstance(step, Mapping) else getattr(step, name, None)
        for name in names
    }
    lacking = [name for name in names if given[name] is None and name != "forced"]
    if lacking:
        raise DataError(f"step {number} lacks {', '.join(lacking)}: a step has {', '.join(names)}.")
    indices, taken = np.asarray(given["indices"]), np.asarray(given["taken"])
    if indices.ndim != 1 or indices.dtype.kind not in "iu" or len(indices) == 0:
        raise DataError(f"indices of step {number} must be row numbers; got shape {indices.shape}.")
    if indices.min() < 0 or indices.max() >= n_rows:
        raise DataError(
            f"indices of step {number} run from {indices.min()} to {indices.max()}, but X has "
            f"{n_rows} rows: give the rows that were fitted."
        )
    if taken.shape != indices.shape:
        raise DataError(
            f"taken of step {number} has shape {taken.shape} for {len(indices)} rows left."
        )
    what = f"probabilities of step {number}"
    sure = check_probability(given["probabilities"], len(indices), what)
    return _Step(indices, np.asarray(sure), taken.astype(bool), bool(given["forced"]))
