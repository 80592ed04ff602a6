"""Scatter plots of a clustering.

    D = 2      the features themselves
    D > 2      a projection (principal components, or t-SNE)
    D = 1      a histogram stacked by cluster over a jittered strip of the points

Colour (and, past ten clusters, marker) is the cluster; opacity and size are the confidence.
Points are drawn in random order, so that no cluster hides another by being drawn last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from asterism.exceptions import DataError
from asterism.plotting.checks import check_labels, check_names, check_probability, check_rows
from asterism.plotting.projection import Projected, project, stratified_subsample
from asterism.plotting.style import cluster_color, cluster_marker, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_points", "plot_clusters", "plot_embedding", "point_size"]

_MAX_LEGEND = 12
_MAX_NUMBERED = 60
_RASTERISE_ABOVE = 500


def plot_clusters(
    X: Any,
    labels: Any,
    *,
    probability: Any = None,
    projection: str = "auto",
    feature_names: Sequence[Any] | None = None,
    centers: Any = None,
    max_points: int = 5000,
    random_state: int | None = 0,
    ax: Axes | None = None,
) -> Axes:
    """Draw the points of a clustering in two dimensions.

    Parameters
    ----------
    X : array of shape (N, D)
        Features; finite.
    labels : array of N integers
        Cluster of each row; −1 is noise and drawn grey.
    probability : array of shape (N,) or (N, K), optional
        Confidence of each assignment, or responsibilities. Less sure points are fainter and
        smaller.
    projection : {"auto", "pca", "tsne", "none"}
        "auto" is "none" for one or two features, else "pca". "none" shows the first two features.
        t-SNE sees only the points shown, and takes seconds for a few thousand.
    feature_names : sequence of D names, optional
        Axis labels when nothing is projected.
    centers : array of shape (K, D), optional
        Marked by crosses.
    max_points : int
        Draw a subsample when there are more rows, keeping every cluster; sizes in the legend
        are of all rows.
    random_state : int or None
        Seed of the subsample, drawing order, jitter and t-SNE.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import numpy as np
    >>> from asterism.plotting import plot_clusters
    >>> X = np.array([[0.0, 0.0], [0.1, 0.0], [5.0, 5.0]])
    >>> ax = plot_clusters(X, np.array([0, 0, 1]), feature_names=["width", "height"])
    >>> ax.get_xlabel(), [text.get_text() for text in ax.get_legend().get_texts()]
    ('width', ['0  (2)', '1  (1)'])
    """
    X = check_rows(X)
    labels = check_labels(labels, len(X))
    confidence = check_probability(probability, len(X))
    if max_points < 1:
        raise DataError(f"max_points must be at least 1; got {max_points}.")
    shown = stratified_subsample(labels, max_points, random_state)
    projected = project(
        X,
        shown,
        method=projection,
        names=check_names(feature_names, X.shape[1], "feature"),
        centers=None if centers is None else check_rows(centers, "centers"),
        random_state=random_state,
    )
    return _draw(projected, shown, labels, confidence, random_state, ax)


def plot_embedding(
    Z: Any,
    labels: Any,
    method: str = "pca",
    *,
    probability: Any = None,
    centers: Any = None,
    max_points: int = 5000,
    random_state: int | None = 0,
    ax: Axes | None = None,
) -> Axes:
    """Draw a learnt representation, coloured by cluster.

    As :func:`plot_clusters`, for ``Z`` of shape (N, latent dimensions). Two latent dimensions
    are shown as they are; more are projected by ``method``, "pca" or "tsne".

    Examples
    --------
    >>> import numpy as np
    >>> from asterism.plotting import plot_embedding
    >>> plot_embedding(np.eye(3)[:, :2], np.array([0, 0, 1])).get_xlabel()
    'latent 1'
    """
    if method not in ("pca", "tsne"):
        raise DataError(f"method must be 'pca' or 'tsne'; got {method!r}.")
    Z = check_rows(Z, "Z")
    return plot_clusters(
        Z,
        labels,
        probability=probability,
        projection=method if Z.shape[1] > 2 else "none",
        feature_names=check_names(None, Z.shape[1], "latent"),
        centers=centers,
        max_points=max_points,
        random_state=random_state,
        ax=ax,
    )


def _draw(
    projected: Projected,
    shown: np.ndarray,
    labels: np.ndarray,
    confidence: np.ndarray | None,
    random_state: int | None,
    ax: Axes | None,
) -> Axes:
    owns_figure = ax is None
    clusters, sizes = np.unique(labels, return_counts=True)
    has_legend = (clusters >= 0).sum() <= _MAX_LEGEND
    ax = new_axes(ax, figsize=(7.4, 4.8) if has_legend else (6.4, 5.2))
    rng = np.random.default_rng(random_state)
    points = projected.points
    if points.shape[1] == 1:
        points = _histogram_and_jitter(ax, points[:, 0], labels[shown], rng)
        ax.set_ylabel("rows shown")
    else:
        ax.set_ylabel(_cut(projected.axis_labels[1]), parse_math=False)
    ax.set_xlabel(_cut(projected.axis_labels[0]), parse_math=False)
    draw_points(ax, points, labels[shown], None if confidence is None else confidence[shown], rng)
    if projected.centers is not None:
        _mark_centers(ax, projected.centers)
    if has_legend:
        _legend(ax, clusters, sizes, outside=owns_figure)
    elif projected.points.shape[1] == 2 and len(clusters) <= _MAX_NUMBERED + 1:
        _number(ax, points, labels[shown])
    return ax


def _cut(name: str) -> str:
    return name if len(name) <= 60 else name[:59] + "…"


def point_size(n_points: int) -> float:
    """Area of a marker: few points are drawn large, thousands small."""
    return float(np.clip(4000 / n_points, 7, 42))


def draw_points(
    ax: Axes,
    points: np.ndarray,
    labels: np.ndarray,
    confidence: np.ndarray | None,
    rng: np.random.Generator,
    scale: float = 1.0,
) -> None:
    """Draw points (n, 2) in the colours of their clusters (n,), ``scale`` times the usual size."""
    from matplotlib.colors import to_rgb

    clusters, codes = np.unique(labels, return_inverse=True)
    colors = np.array([to_rgb(cluster_color(int(k))) for k in clusters])[codes]  # (n, 3)
    markers = np.array([cluster_marker(int(k)) for k in clusters])[codes]
    size = scale * point_size(len(points))
    sure = np.ones(len(points)) if confidence is None else confidence**2
    sure = np.where(labels < 0, 0.5, sure)  # noise has no cluster to be sure of
    alpha = 0.15 + 0.7 * sure
    order = rng.permutation(len(points))
    for marker in np.unique(markers):
        rows = order[markers[order] == marker]
        ax.scatter(
            points[rows, 0],
            points[rows, 1],
            s=size * (0.45 + 0.55 * sure[rows]),
            c=np.column_stack([colors[rows], alpha[rows]]),
            marker=str(marker),
            linewidths=0,
            rasterized=len(points) > _RASTERISE_ABOVE,
        )


def _histogram_and_jitter(
    ax: Axes, values: np.ndarray, labels: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Stack a histogram by cluster above zero; return the points (n, 2) of a strip below it."""
    clusters = np.unique(labels)
    n_bins = int(np.clip(2 * np.sqrt(len(values)), 5, 60))
    edges = np.histogram_bin_edges(values, bins=n_bins)
    bottom = np.zeros(n_bins)
    for k in clusters:
        counts, _ = np.histogram(values[labels == k], bins=edges)
        color = cluster_color(int(k))
        ax.bar(edges[:-1], counts, np.diff(edges), bottom, align="edge", color=color, alpha=0.75)
        bottom += counts
    top = bottom.max()
    ax.set_ylim(-0.3 * top, 1.05 * top)
    ax.axhline(0, color="0.5", linewidth=0.8)
    # The strip has no scale of its own: only counts get ticks.
    ax.set_yticks([tick for tick in ax.get_yticks() if 0 <= tick <= top])
    return np.column_stack([values, rng.uniform(-0.26 * top, -0.05 * top, len(values))])


def _mark_centers(ax: Axes, centers: np.ndarray) -> None:
    from matplotlib import rcParams

    heights = np.zeros(len(centers)) if centers.shape[1] == 1 else centers[:, 1]
    ax.scatter(
        centers[:, 0],
        heights,
        s=90,
        marker="X",
        color=rcParams["text.color"],
        edgecolors=rcParams["axes.facecolor"],
        linewidths=1.2,
        zorder=4,
    )


def _legend(ax: Axes, clusters: np.ndarray, sizes: np.ndarray, *, outside: bool) -> None:
    from matplotlib.lines import Line2D

    # Noise comes last, after the clusters.
    order = np.argsort(np.where(clusters < 0, clusters.max() + 1, clusters), kind="stable")
    handles = [
        Line2D(
            [],
            [],
            linestyle="",
            markersize=7,
            marker=cluster_marker(int(clusters[i])),
            color=cluster_color(int(clusters[i])),
            label=f"{'noise' if clusters[i] < 0 else clusters[i]}  ({sizes[i]:,})",
        )
        for i in order
    ]
    # Beside the points in a figure of our own; a caller's axes may have neighbours there.
    place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)} if outside else {"loc": "best"}
    ax.legend(
        handles=handles,
        title="cluster (rows)",
        frameon=not outside,
        handletextpad=0.2,
        alignment="left",
        **place,
    )


def _number(ax: Axes, points: np.ndarray, labels: np.ndarray) -> None:
    """Write each cluster's number at its median, since a legend would be too long."""
    from matplotlib import rcParams
    from matplotlib.patheffects import withStroke

    halo = withStroke(linewidth=2.5, foreground=rcParams["axes.facecolor"])
    clusters = np.unique(labels[labels >= 0])
    size = 9 if len(clusters) <= 30 else 7
    for k in clusters:
        x, y = np.median(points[labels == k], axis=0)
        ax.text(
            x,
            y,
            str(k),
            ha="center",
            va="center",
            fontsize=size,
            fontweight="bold",
            path_effects=[halo],
            zorder=5,
        )
