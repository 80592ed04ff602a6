"""Pictures that compare a clustering with known classes, and that show belief over K.

    confusion_ck = #{i : class c, cluster k},  columns ordered by the matching m of classes to
    clusters that maximises Σ_c confusion_c,m(c) (noise is never matched)

H. W. Kuhn, "The Hungarian method for the assignment problem", 1955.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from asterism.exceptions import DataError
from asterism.plotting.checks import check_labels, check_names
from asterism.plotting.style import cluster_color, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["matched_confusion", "plot_confusion", "plot_k_posterior"]

_MAX_ANNOTATED = 25


def matched_confusion(y_true: Any, y_pred: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Table of counts with matched clusters on the diagonal.

    Returns
    -------
    counts : int array of shape (C, K)
        Columns are the matched clusters in order of their classes, then the other clusters by
        decreasing size, then noise. When C > K some classes have no cluster and the diagonal
        breaks off there.
    classes : array (C,)
        Sorted distinct values of ``y_true``.
    clusters : int array (K,)
        Label of each column.
    accuracy : float
        Share of all rows that lie in the cluster matched to their class.

    Examples
    --------
    >>> counts, classes, clusters, accuracy = matched_confusion(list("aabb"), [1, 1, 0, -1])
    >>> counts
    array([[2, 0, 0],
           [0, 1, 1]])
    >>> clusters, accuracy
    (array([ 1,  0, -1]), 0.75)
    """
    truth = np.asarray(y_true)
    if truth.ndim != 1:
        raise DataError(f"y_true must be a vector with one class per row; got {truth.shape}.")
    classes, rows = np.unique(truth, return_inverse=True)
    clusters, columns = np.unique(check_labels(y_pred, len(truth), "y_pred"), return_inverse=True)
    shape = (len(classes), len(clusters))
    counts = np.bincount(rows * shape[1] + columns, minlength=shape[0] * shape[1]).reshape(shape)
    real = np.flatnonzero(clusters >= 0)
    of_class, of_real = linear_sum_assignment(counts[:, real], maximize=True)
    matched = real[of_real]  # of_class comes sorted, so columns follow the order of the rows
    accuracy = counts[of_class, matched].sum() / len(truth)
    others = np.setdiff1d(np.arange(len(clusters)), matched)
    others = others[np.lexsort((-counts[:, others].sum(axis=0), clusters[others] < 0))]
    order = np.concatenate([matched, others]).astype(np.int64)
    return counts[:, order], classes, clusters[order], float(accuracy)


def plot_confusion(
    y_true: Any,
    y_pred: Any,
    *,
    class_names: Sequence[Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how known classes fall into clusters, with matched clusters on the diagonal.

    Parameters
    ----------
    y_true : array of shape (N,)
        Classes: integers or strings.
    y_pred : array of N integers
        Clusters; −1 is noise and never matched.
    class_names : sequence of str, optional
        Names of the distinct classes in sorted order.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Shading is the share of the class; the number is the count of rows.

    Examples
    --------
    >>> from asterism.plotting import plot_confusion
    >>> plot_confusion(["cat", "cat", "dog"], [5, 5, 2]).get_title(loc="left")
    'matched accuracy 100.0%'
    """
    counts, classes, clusters, accuracy = matched_confusion(y_true, y_pred)
    names = check_names(
        list(classes) if class_names is None else class_names, len(classes), "class"
    )
    n_rows, n_columns = counts.shape
    width, height = np.clip(1.8 + 0.55 * n_columns, 3.6, 9), np.clip(1.2 + 0.5 * n_rows, 2.8, 8)
    ax = new_axes(ax, figsize=(float(width), float(height)))
    share = counts / counts.sum(axis=1, keepdims=True)
    image = ax.imshow(share, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    ax.figure.colorbar(image, ax=ax, label="share of class", shrink=0.9)
    if max(counts.shape) <= _MAX_ANNOTATED:
        _annotate(ax, counts, share)
    step_x, step_y = 1 + n_columns // 30, 1 + n_rows // 30  # thin out labels that would touch
    columns = ["noise" if k < 0 else str(k) for k in clusters]
    ax.set_xticks(range(0, n_columns, step_x), columns[::step_x])
    ax.set_yticks(range(0, n_rows, step_y), names[::step_y], parse_math=False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set(xlabel="cluster", ylabel="class")
    ax.set_title(f"matched accuracy {accuracy:.1%}", loc="left", fontsize="medium")
    return ax


def plot_k_posterior(
    probabilities: Mapping[int, float] | Sequence[float] | np.ndarray,
    *,
    truth: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the belief over the number of clusters.

    Parameters
    ----------
    probabilities : mapping of K to probability, or array whose index is K
        Nonnegative, summing to at most one. Values of K beyond either end of the support
        (probability at least 0.001) are left out.
    truth : int, optional
        True number of clusters, marked by a dashed line.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> from asterism.plotting import plot_k_posterior
    >>> ax = plot_k_posterior([0, 0, 0.25, 0.75])
    >>> [(round(bar.get_center()[0]), float(bar.get_height())) for bar in ax.patches]
    [(2, 0.25), (3, 0.75)]
    """
    if isinstance(probabilities, Mapping):
        belief = {int(k): float(p) for k, p in probabilities.items()}
    else:
        belief = {k: float(p) for k, p in enumerate(np.asarray(probabilities).ravel())}
    values = np.array(list(belief.values()))
    if len(values) == 0 or not (values >= 0).all() or not 0 < values.sum() <= 1 + 1e-3:
        raise DataError(
            "probabilities must be nonnegative and sum to at most one (and to more than zero); "
            f"got {values.tolist()}."
        )
    support = [k for k, p in belief.items() if p >= min(1e-3, values.max())]
    ks = np.arange(min(support), max(support) + 1)
    heights = np.array([belief.get(int(k), 0.0) for k in ks])
    ax = new_axes(ax, figsize=(7.4, 3.0))
    from matplotlib import rcParams
    from matplotlib.patheffects import withStroke

    bars = ax.bar(ks, heights, width=0.8, color=cluster_color(0))
    if len(ks) <= 15:
        # The halo keeps a number legible where the line of the truth runs behind it.
        halo = withStroke(linewidth=3, foreground=rcParams["axes.facecolor"])
        texts = [f"{p:.0%}" if p >= 0.005 else "" for p in heights]
        ax.bar_label(bars, texts, padding=2, path_effects=[halo])
    if truth is not None:
        ax.axvline(truth, color=cluster_color(4), linestyle="--", zorder=0, label=f"truth: {truth}")
        ax.legend(frameon=False)
    ax.set_ylim(0, heights.max() * 1.15)
    ax.locator_params(axis="x", integer=True, min_n_ticks=1)
    ax.set_xlim(
        min(ks[0], ks[0] if truth is None else truth) - 0.9,
        max(ks[-1], ks[-1] if truth is None else truth) + 0.9,
    )
    ax.set(xlabel="number of clusters", ylabel="probability")
    return ax


def _annotate(ax: Axes, counts: np.ndarray, share: np.ndarray) -> None:
    size = float(np.clip(90 / max(counts.shape), 5, 10))
    for (row, column), count in np.ndenumerate(counts):
        if count:  # zeros would only hide the pattern
            color = "white" if share[row, column] > 0.55 else "#1f2933"
            ax.text(column, row, f"{count:,}", ha="center", va="center", color=color, fontsize=size)
