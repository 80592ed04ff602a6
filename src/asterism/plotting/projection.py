"""From D features to the two of a picture, and from many points to few.

    pca:   y = (x − mean) V₂,  V₂ the two leading eigenvectors of the covariance
    tsne:  y minimises KL(neighbours in x ‖ neighbours in y), on the points shown only

The subsample gives each of K clusters an equal floor out of half the points and shares the rest
out in proportion to size, so that rare clusters stay visible and large ones stay larger.

L. van der Maaten & G. Hinton, "Visualizing data using t-SNE", JMLR 2008.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE

from asterism.exceptions import DataError

__all__ = ["Projected", "project", "stratified_subsample"]


@dataclass(frozen=True)
class Projected:
    """The rows shown, their coordinates, and what the axes mean."""

    points: np.ndarray  # (n, 2), or (n, 1) for a single feature
    centers: np.ndarray | None  # (K, 2) or (K, 1)
    axis_labels: tuple[str, ...]


def stratified_subsample(
    labels: np.ndarray, max_points: int, random_state: int | None = 0
) -> np.ndarray:
    """Sorted indices of at most ``max_points`` rows, with every cluster represented.

    When there are more clusters than ``max_points``, one row of each is kept.

    Examples
    --------
    >>> labels = np.array([0] * 1000 + [1] * 3)
    >>> rows = stratified_subsample(labels, 100)
    >>> np.bincount(labels[rows])
    array([97,  3])
    """
    n_rows = len(labels)
    if n_rows <= max_points:
        return np.arange(n_rows)
    _, codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    floor = np.minimum(sizes, max(max_points // (2 * len(sizes)), 1))
    spare = sizes - floor
    # Integer shares: rounding down keeps the total within max_points.
    budget = max(max_points - int(floor.sum()), 0)
    quota = floor + spare * budget // max(int(spare.sum()), 1)
    order = np.random.default_rng(random_state).permutation(n_rows)
    order = order[np.argsort(codes[order], kind="stable")]
    starts = np.cumsum(sizes) - sizes
    rank = np.arange(n_rows) - np.repeat(starts, sizes)  # place within the row's own cluster
    return np.sort(order[rank < np.repeat(quota, sizes)])


def project(
    X: np.ndarray,
    rows: np.ndarray,
    *,
    method: str,
    names: list[str],
    centers: np.ndarray | None = None,
    random_state: int | None = 0,
) -> Projected:
    """Coordinates of ``X[rows]`` for a picture, with ``method`` as in ``plot_clusters``."""
    n_features = X.shape[1]
    if method not in ("auto", "pca", "tsne", "none"):
        raise DataError(f"projection must be 'auto', 'pca', 'tsne' or 'none'; got {method!r}.")
    if centers is not None and (centers.ndim != 2 or centers.shape[1] != n_features):
        raise DataError(
            f"centers must have shape (clusters, {n_features}), as X has {n_features} "
            f"features; got {centers.shape}."
        )
    if n_features == 1 or method == "none" or (method == "auto" and n_features == 2):
        shown = None if centers is None else centers[:, :2]
        return Projected(X[rows, :2], shown, tuple(names[:2]))
    if method == "tsne":
        if centers is not None:
            raise DataError("t-SNE cannot place centers; use projection='pca' or centers=None.")
        # With fewer than four points there are no neighbourhoods to keep: PCA is exact.
        if len(rows) >= 4:
            return Projected(_tsne(X[rows], random_state), None, ("t-SNE 1", "t-SNE 2"))
    return _pca(X, rows, centers, random_state)


def _pca(
    X: np.ndarray, rows: np.ndarray, centers: np.ndarray | None, random_state: int | None
) -> Projected:
    spread = X.var(axis=0).sum()
    if len(X) == 1 or spread == 0.0:
        flat = None if centers is None else np.zeros((len(centers), 2))
        return Projected(np.zeros((len(rows), 2)), flat, ("PC 1", "PC 2"))
    pca = PCA(n_components=2, random_state=random_state).fit(X)
    shares = pca.explained_variance_ratio_
    return Projected(
        pca.transform(X[rows]),
        None if centers is None else pca.transform(centers),
        tuple(f"PC {i + 1} ({share:.0%} of variance)" for i, share in enumerate(shares)),
    )


def _tsne(points: np.ndarray, random_state: int | None) -> np.ndarray:
    if points.shape[1] > 50:
        n_components = min(50, len(points))
        points = PCA(n_components, random_state=random_state).fit_transform(points)
    perplexity = min(30.0, (len(points) - 1) / 3)
    # A constant cloud has no principal axes to start from.
    start = "pca" if points.std(axis=0).max() > 0 else "random"
    return TSNE(perplexity=perplexity, init=start, random_state=random_state).fit_transform(points)
