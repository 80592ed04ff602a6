"""Pictures of a posterior over partitions: pairs, rows, and the partitions themselves.

co-assignment    the share of sampled partitions in which two rows are together, as a matrix
confidence       cluster by cluster, how surely its rows belong to it, the surest first
samples          distinct sampled partitions side by side, the most frequent first; clusters have
                 the colours of those of the reference they overlap most, and rows that are
                 elsewhere than there are ringed

Rousseeuw, "Silhouettes: a graphical aid to the interpretation and validation of cluster analysis",
Journal of Computational and Applied Mathematics 1987 (the layout of the confidences).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from asterism.exceptions import DataError
from asterism.functional.comparisons import by_appearance, cluster_counts, renumbered_like
from asterism.functional.posterior import coassignment, distinct_partitions
from asterism.functional.validity import noise_apart
from asterism.plotting.certainty import plot_similarity
from asterism.plotting.checks import check_labels, check_probability, check_rows
from asterism.plotting.panels import (
    PANEL_SCALE,
    check_shown,
    new_panels,
    place_rows,
    set_titles,
)
from asterism.plotting.projection import stratified_subsample
from asterism.plotting.scatter import draw_points, point_size
from asterism.plotting.style import cluster_color, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["plot_coassignment", "plot_confidence", "plot_posterior_samples", "similarity_shown"]

_PIXELS = 600  # bars of a picture of confidences: more than these could not be told apart


def plot_coassignment(
    estimator_or_partitions: Any,
    labels: Any = None,
    *,
    weights: Any = None,
    max_rows: int = 1000,
    random_state: int | None = 0,
    ax: Axes | None = None,
) -> Axes:
    """Draw how often two rows share a cluster in partitions drawn from a posterior.

    Parameters
    ----------
    estimator_or_partitions : fitted estimator or array of shape (S, N)
        An estimator with ``partitions_`` (or with the pair probabilities ``similarity_``), or
        sampled partitions.
    labels : array of N integers, optional
        Clusters by which to order the rows; of an estimator its own by default.
    weights : array of shape (S,), optional
        Of the partitions; equal by default.
    max_rows : int
        Of a larger table this many rows are drawn, some of every cluster.
    random_state : int or None
        Seed of that choice.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        As :func:`asterism.plotting.plot_similarity`.

    Examples
    --------
    >>> from asterism.plotting import plot_coassignment
    >>> ax = plot_coassignment([[0, 0, 1], [0, 1, 1]], labels=[0, 0, 1])
    >>> ax.images[0].get_array().tolist()
    [[1.0, 0.5, 0.0], [0.5, 1.0, 0.5], [0.0, 0.5, 1.0]]
    """
    given = estimator_or_partitions
    partitions = getattr(given, "partitions_", None)
    if partitions is None:
        if hasattr(given, "get_params"):  # pair probabilities, or an error that names the fix
            return plot_similarity(given, labels, ax=ax)
        partitions = np.asarray(given)
    elif labels is None:
        labels = given.labels_
    if labels is not None:
        labels = check_labels(labels, np.shape(partitions)[-1])
    P, rows = similarity_shown(partitions, labels, weights, max_rows, random_state)
    ax = plot_similarity(P, None if labels is None else labels[rows], ax=ax)
    if len(rows) < np.shape(partitions)[-1]:
        ax.set_xlabel(f"{len(rows):,} of {np.shape(partitions)[-1]:,} rows, by cluster")
    return ax


def similarity_shown(
    partitions: Any,
    labels: Any = None,
    weights: Any = None,
    max_rows: int = 1000,
    random_state: int | None = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Co-assignment (n, n) of at most ``max_rows`` rows, some of every cluster, and their numbers.

    What :func:`asterism.plotting.write_report` takes as ``similarity`` and ``similarity_rows``.

    Examples
    --------
    >>> similarity, rows = similarity_shown([[0, 0, 1, 1]], max_rows=2)
    >>> similarity.shape, len(rows)
    ((2, 2), 2)
    """
    sampled = np.asarray(partitions)
    if sampled.ndim != 2 or 0 in sampled.shape:
        raise DataError(f"partitions must have shape (samples, rows); got {sampled.shape}.")
    groups = np.zeros(sampled.shape[1], dtype=np.int64) if labels is None else np.asarray(labels)
    rows = stratified_subsample(groups, check_shown(max_rows, "max_rows"), random_state)
    chosen = sampled[:, rows]
    if len(rows) < sampled.shape[1]:
        chosen = np.stack([np.unique(partition, return_inverse=True)[1] for partition in chosen])
    return coassignment(chosen, weights), rows


def plot_confidence(confidence: Any, labels: Any, *, ax: Axes | None = None) -> Axes:
    """Draw how surely the rows of each cluster belong to it.

    Parameters
    ----------
    confidence : array of shape (N,) or (N, K)
        From 0 to 1: ``confidence_`` or ``probability_`` of an estimator, or responsibilities.
    labels : array of N integers
        Clusters; −1 is noise.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        A block a cluster, as high as it has rows, noise last; within it the rows by decreasing
        confidence, and their mean at the side. The dashed line is the mean of all.

    Examples
    --------
    >>> from asterism.plotting import plot_confidence
    >>> ax = plot_confidence([0.9, 0.5, 0.7], [0, 1, 0])
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['0  (2)', '1  (1)']
    """
    labels = check_labels(labels)
    sure = check_probability(confidence, len(labels), "confidence")
    if sure is None:
        raise DataError("confidence is None: give a number from 0 to 1 for each row.")
    groups = np.unique(labels)
    groups = np.concatenate([groups[groups >= 0], groups[groups < 0]])
    n = len(labels)
    gap = 0.02 * n if len(groups) <= 30 else 0.0
    ax = new_axes(ax, figsize=(6.4, float(np.clip(1.6 + 0.5 * len(groups), 3.0, 7.0))))
    top, places = 0.0, []
    for k in groups.tolist():
        ranked = np.sort(sure[labels == k])[::-1]
        _block(ax, ranked, top, cluster_color(k))
        places.append(top + len(ranked) / 2)
        if len(ranked) > 0.03 * n or len(groups) <= 12:
            mean = f"{ranked.mean():.2f}"
            ax.text(1.02, places[-1], mean, va="center", fontsize="small", color="0.35")
        top += len(ranked) + gap
    ax.axvline(sure.mean(), color="0.3", linestyle="--", linewidth=1)
    ax.text(1.02, -gap, "mean", va="bottom", fontsize="small", color="0.35")
    ax.set_title(f"mean of all rows {sure.mean():.2f}", loc="left", fontsize="medium")
    names = [f"{'noise' if k < 0 else k}  ({int((labels == k).sum()):,})" for k in groups.tolist()]
    step = 1 + len(groups) // 30
    ax.set_yticks(places[::step], names[::step])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set(xlim=(0, 1), ylim=(top - gap, -gap), xlabel="confidence", ylabel="cluster (rows)")
    return ax


def plot_posterior_samples(
    X: Any,
    partitions: Any,
    log_probabilities: Any = None,
    *,
    labels: Any = None,
    n_shown: int = 6,
    projection: str = "auto",
    feature_names: Sequence[Any] | None = None,
    max_points: int = 1000,
    random_state: int | None = 0,
    figure: Figure | SubFigure | None = None,
) -> np.ndarray:
    """Draw sampled partitions side by side.

    Parameters
    ----------
    X : array of shape (N, D)
        Features; finite.
    partitions : array of shape (S, N)
        Partitions drawn from a posterior, ``partitions_`` of an estimator.
    log_probabilities : array of shape (S,), optional
        Shown above each; the likelier of equally frequent partitions come first.
    labels : array of N integers, optional
        Reference for the colours and rings; by default the first partition shown.
    n_shown : int
        Most partitions to show.
    projection : {"auto", "pca", "tsne", "none"}
        As in :func:`asterism.plotting.plot_clusters`.
    feature_names : sequence of D names, optional
        Axis labels when nothing is projected.
    max_points : int
        Draw a subsample when there are more rows.
    random_state : int or None
        Seed of the subsample, the drawing order and t-SNE.
    figure : matplotlib.figure.Figure, optional
        Figure to draw on, for instance ``plt.figure()``; by default a new one.

    Returns
    -------
    ndarray of matplotlib.axes.Axes
        One a partition: ``axes[0].figure.savefig("samples.png")``.

    Examples
    --------
    >>> import numpy as np
    >>> from asterism.plotting import plot_posterior_samples
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [5.0, 5.0]])
    >>> axes = plot_posterior_samples(X, [[0, 0, 1], [1, 1, 0], [0, 0, 0]], [-1.0, -1.0, -2.0])
    >>> [ax.get_title(loc="left") for ax in axes], axes[1].get_title(loc="right")
    (['K = 2, 67%', 'K = 1, 33%'], 'log p = −2.0')
    """
    X = check_rows(X)
    sampled = by_appearance(partitions)
    if sampled.shape[1] != len(X):
        raise DataError(f"partitions are of {sampled.shape[1]} rows, but X has {len(X)}.")
    log_p = _check_scores(log_probabilities, len(sampled))
    order = np.arange(len(sampled)) if log_p is None else np.argsort(-log_p, kind="stable")
    found, shares = distinct_partitions(sampled[order])
    found, shares = found[: check_shown(n_shown, "n_shown")], shares[:n_shown]
    reference = found[0] if labels is None else check_labels(labels, len(X))
    shown = stratified_subsample(reference, check_shown(max_points, "max_points"), random_state)
    points, axis_labels = place_rows(
        X, shown, projection=projection, feature_names=feature_names, random_state=random_state
    )
    # Negative labels of the reference are rows by themselves, here as everywhere.
    reference = noise_apart(reference, reference < 0)
    axes = new_panels(len(found), points, axis_labels, figure)
    counts = cluster_counts(found)
    for ax, partition, share, k in zip(axes, found, shares, counts.tolist(), strict=True):
        renamed = renumbered_like(partition, reference)[shown]
        rng = np.random.default_rng(random_state)
        draw_points(ax, points, renamed, None, rng, scale=PANEL_SCALE)
        _ring(ax, points[renamed != reference[shown]], len(points))
        score = ""
        if log_p is not None:
            score = f"log p = {log_p[(sampled == partition).all(axis=1)].mean():.1f}"
        set_titles(ax, f"K = {k}, {share:.0%}", score.replace("-", "−"))
    return axes


def _block(ax: Axes, ranked: np.ndarray, top: float, color: str) -> None:
    """Fill the area under confidences (n,) from zero, a step a row, from ``top`` downwards."""
    edges = np.linspace(0, len(ranked), min(len(ranked), _PIXELS) + 1)
    values = ranked[((edges[:-1] + edges[1:]) / 2).astype(np.int64)]
    ax.stairs(values, top + edges, orientation="horizontal", fill=True, color=color, alpha=0.85)


def _ring(ax: Axes, points: np.ndarray, n_shown: int) -> None:
    """Ring the rows that a partition has elsewhere than the reference."""
    from matplotlib import rcParams

    ax.scatter(
        points[:, 0],
        points[:, 1],
        s=2.2 * PANEL_SCALE * point_size(n_shown),
        facecolors="none",
        edgecolors=rcParams["text.color"],
        linewidths=0.5,
        zorder=3,
    )


def _check_scores(log_probabilities: Any, n_samples: int) -> np.ndarray | None:
    if log_probabilities is None:
        return None
    scores = np.asarray(log_probabilities, dtype=np.float64)
    if scores.shape != (n_samples,) or np.isnan(scores).any():
        raise DataError(
            f"log_probabilities must be {n_samples} numbers, one a partition; got shape "
            f"{scores.shape}{' with NaN' if np.isnan(scores).any() else ''}."
        )
    return scores
