"""Pictures of what a method believes: pairs of rows, and whether beliefs come true.

Similarity: entry (i, j) is the probability that rows i and j share a cluster. Rows are ordered by
cluster, noise last, and within a cluster as the leaves of the average-linkage tree of 1 − P, turned
so that neighbours are alike: parts of a cluster, and rows between two, become visible.

Reliability: for bins b of the predicted probability, mean_b happened against mean_b predicted. On
the diagonal what was said with probability p happens a share p of times. The distance to it,
weighted by counts, is the expected calibration error, Σ_b n_b / n · |mean_b happened − mean_b
predicted|.

Bar-Joseph, Gifford & Jaakkola, "Fast optimal leaf ordering for hierarchical clustering",
Bioinformatics 2001; DeGroot & Fienberg, "The comparison and evaluation of forecasters",
The Statistician 1983.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
from scipy.spatial.distance import squareform

from asterism.exceptions import DataError
from asterism.plotting.checks import check_labels
from asterism.plotting.style import cluster_color, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Reliability", "plot_reliability", "plot_similarity", "reliability", "similarity_order"]

_OPTIMAL = 600  # rows of a cluster whose leaves are turned: cubic time
_LINE = 0.02  # height of a cluster's number at the side, as a share of the picture


def plot_similarity(
    estimator_or_matrix: Any, labels: Any = None, *, ax: Axes | None = None
) -> Axes:
    """Draw which rows belong together, and how surely.

    Parameters
    ----------
    estimator_or_matrix : fitted estimator or array of shape (N, N)
        Probabilities that two rows share a cluster; of an estimator its ``similarity_``.
    labels : array of N integers, optional
        Clusters by which to order the rows; −1 is noise. For an estimator its own by default, and
        labels of all rows of its table will do.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Clusters are framed in their colours and numbered at the side.

    Examples
    --------
    >>> import numpy as np
    >>> from asterism.plotting import plot_similarity
    >>> ax = plot_similarity([[1, 0, 0.9], [0, 1, 0.1], [0.9, 0.1, 1]], [0, 1, 0])
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['0', '1']
    """
    P, labels = _similarity_of(estimator_or_matrix, labels)
    order = similarity_order(P, labels)
    n = len(P)
    ax = new_axes(ax, figsize=(6.2, 5.2))
    image = ax.imshow(
        P[np.ix_(order, order)],
        cmap="Blues",
        vmin=0,
        vmax=1,
        extent=(0, n, n, 0),
        interpolation="nearest" if n < 200 else "antialiased",
    )
    bar = ax.figure.colorbar(image, ax=ax, label="probability of sharing a cluster", shrink=0.85)
    bar.outline.set_visible(False)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    ax.set_xticks([])
    if labels is None:
        ax.set_yticks([])
        ax.set_xlabel(f"{n:,} rows")
    else:
        _mark_clusters(ax, labels[order])
        ax.set_xlabel(f"{n:,} rows, by cluster")
    return ax


def similarity_order(P: np.ndarray, labels: np.ndarray | None = None) -> np.ndarray:
    """Order (N,) of rows in which similar ones are neighbours, cluster by cluster, noise last.

    Examples
    --------
    >>> P = np.array([[1, 0, 0.9], [0, 1, 0.1], [0.9, 0.1, 1]])
    >>> similarity_order(P, np.array([1, 0, 1])).tolist()
    [1, 0, 2]
    """
    if labels is None:
        return _leaves(P)
    groups = np.unique(labels)
    groups = np.concatenate([groups[groups >= 0], groups[groups < 0]])
    members = [np.flatnonzero(labels == k) for k in groups]
    return np.concatenate([rows[_leaves(P[np.ix_(rows, rows)])] for rows in members])


class Reliability(NamedTuple):
    """Bins of predicted probability that are not empty."""

    counts: np.ndarray  # (B,)
    predicted: np.ndarray  # (B,) means
    happened: np.ndarray  # (B,)
    centers: np.ndarray  # (B,) of the bins

    @property
    def error(self) -> float:
        """Expected calibration error."""
        return float(np.average(np.abs(self.happened - self.predicted), weights=self.counts))


def reliability(predicted: Any, happened: Any, n_bins: int = 10) -> Reliability:
    """Compare predictions (N,) with what happened (N,), in bins of equal width.

    Examples
    --------
    >>> found = reliability([0.1, 0.2, 0.9, 0.7], [0, 1, 1, 1], n_bins=2)
    >>> found.counts.tolist(), found.happened.tolist(), round(found.error, 3)
    ([2, 2], [0.5, 1.0], 0.275)
    """
    p, y = (np.asarray(array, dtype=np.float64).ravel() for array in (predicted, happened))
    if len(p) == 0 or len(p) != len(y):
        raise DataError(
            f"predicted has {len(p)} entries and happened {len(y)}: give one of each a case."
        )
    if not ((p >= 0) & (p <= 1)).all():
        raise DataError("predicted must be probabilities: found NaN or a value outside [0, 1].")
    if not np.isfinite(y).all():
        raise DataError("happened must be numbers, 0 or 1 or a score: found NaN or infinity.")
    if n_bins < 1:
        raise DataError(f"n_bins must be positive; got {n_bins}.")
    bins = np.minimum((p * n_bins).astype(np.int64), n_bins - 1)  # p = 1 is in the last bin
    counts = np.bincount(bins, minlength=n_bins)
    full = np.flatnonzero(counts)
    mean_predicted, mean_happened = (
        np.bincount(bins, values, n_bins)[full] / counts[full] for values in (p, y)
    )
    return Reliability(counts[full], mean_predicted, mean_happened, (full + 0.5) / n_bins)


def plot_reliability(
    predicted: Any, happened: Any, *, n_bins: int = 10, ax: Axes | None = None
) -> Axes:
    """Draw whether what was predicted with probability p happened a share p of times.

    Parameters
    ----------
    predicted : array of shape (N,)
        Probabilities.
    happened : array of shape (N,)
        Whether it happened, 0 or 1; or the value whose expectation was predicted.
    n_bins : int
        Bins of equal width.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        A point a bin, against the diagonal; the bars below count the cases of each bin.

    Examples
    --------
    >>> from asterism.plotting import plot_reliability
    >>> ax = plot_reliability([0.0, 0.5, 0.5, 1.0], [0, 0, 1, 1])
    >>> ax.get_title(loc="left")
    'expected calibration error 0.000'
    """
    found = reliability(predicted, happened, n_bins)
    ax = new_axes(ax, figsize=(4.8, 5.4))
    color = cluster_color(0)
    ax.plot([0, 1], [0, 1], color="0.6", linestyle="--", linewidth=1, zorder=1)
    ax.vlines(found.predicted, found.predicted, found.happened, color=color, alpha=0.35, zorder=2)
    ax.plot(found.predicted, found.happened, "o-", color=color, markersize=6, zorder=3)
    floor = min(0.0, float(found.happened.min()))
    _count_bars(ax, found, n_bins, floor - 0.06, color)
    ax.set(xlim=(-0.03, 1.03), xlabel="predicted", ylabel="happened")
    ax.set_xticks(np.linspace(0, 1, 6))
    ax.set_yticks([tick for tick in np.linspace(-1, 1, 11) if tick >= floor - 1e-9])
    ax.yaxis.set_label_coords(-0.13, 0.62)  # beside the diagonal, not the bars
    ax.set_title(f"expected calibration error {found.error:.3f}", loc="left", fontsize="medium")
    return ax


def _count_bars(ax: Axes, found: Reliability, n_bins: int, top: float, color: str) -> None:
    """Draw counts as bars in a strip of the axes below ``top``, each with its number."""
    height = 0.2
    ax.axhline(top, color="0.85", linewidth=0.8, zorder=0)
    heights = height * found.counts / found.counts.max()
    base = top - height - 0.08
    ax.bar(found.centers, heights, 0.85 / n_bins, base, color=color, alpha=0.35)
    for center, tall, count in zip(found.centers, heights, found.counts, strict=True):
        text = f"{count:,}" if count < 1e4 else f"{count:.0e}".replace("e+0", "e")
        size = "x-small" if n_bins <= 12 else 5
        ax.text(center, base + tall + 0.01, text, ha="center", va="bottom", fontsize=size)
    ax.set_ylim(base, max(1.0, float(found.happened.max())) + 0.03)


def _similarity_of(given: Any, labels: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Matrix and labels of its rows, from an estimator or as they are."""
    matrix = getattr(given, "similarity_", given)
    if hasattr(given, "get_params"):
        if matrix is given:
            raise DataError(
                f"{type(given).__name__} has no similarity_: fit it first, choose a method with a "
                "posterior, or give a matrix."
            )
        if labels is None:
            labels = given.context_labels_
        elif len(labels) == len(given.labels_):
            labels = np.asarray(labels)[given.context_indices_]
    P = np.asarray(matrix, dtype=np.float64)
    if P.ndim != 2 or P.shape[0] != P.shape[1] or P.size == 0:
        raise DataError(f"the similarity must have shape (rows, rows); got {P.shape}.")
    if not ((P >= -1e-6) & (P <= 1 + 1e-6)).all():
        raise DataError("the similarity must lie in [0, 1]: found NaN or a value outside.")
    return P.clip(0, 1), None if labels is None else check_labels(labels, len(P))


def _leaves(P: np.ndarray) -> np.ndarray:
    """Leaves of the average-linkage tree of 1 − P, the tighter end first."""
    if len(P) < 3:
        return np.arange(len(P))
    apart = 1 - (P + P.T) / 2
    np.fill_diagonal(apart, 0)
    distances = squareform(apart, checks=False)
    tree = linkage(distances, method="average")
    if len(P) <= _OPTIMAL:
        tree = optimal_leaf_ordering(tree, distances)
    leaves = leaves_list(tree)
    tightness = P.mean(axis=1)[leaves]
    half = len(leaves) // 2
    return leaves if tightness[:half].mean() >= tightness[-half:].mean() else leaves[::-1]


def _mark_clusters(ax: Axes, ordered: np.ndarray) -> None:
    """Frame the clusters of rows in order, with a strip of their colours at the side."""
    from matplotlib.patches import Rectangle

    n = len(ordered)
    starts = np.flatnonzero(np.r_[True, np.diff(ordered) != 0])
    sizes = np.diff(np.r_[starts, n])
    strip = 0.025 * n
    if len(starts) * _LINE < 1:  # more lines would hide what they part
        ax.hlines(starts[1:], 0, n, color="0.75", linewidth=0.5)
        ax.vlines(starts[1:], 0, n, color="0.75", linewidth=0.5)
    for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
        color = cluster_color(int(ordered[start]))
        ax.add_patch(
            Rectangle((-1.6 * strip, start), strip, size, color=color, linewidth=0, clip_on=False)
        )
        if len(starts) > 1:
            ax.add_patch(
                Rectangle((start, start), size, size, fill=False, edgecolor=color, linewidth=1.2)
            )
    ax.set_xlim(-1.6 * strip, n)
    names = ["noise" if k < 0 else str(k) for k in ordered[starts]]
    named = _apart((starts + sizes / 2).tolist(), _LINE * n)
    ax.set_yticks(list(named), [names[place] for place in named.values()])


def _apart(heights: list[float], least: float) -> dict[float, int]:
    """Heights, with their places, that leave each other ``least`` room; the first ones win."""
    kept: dict[float, int] = {}
    last = -np.inf
    for place, height in enumerate(heights):
        if height - last >= least:
            kept[height], last = place, height
    return kept
