"""From distances and densities to cluster memberships, and a linear-time look at their quality.

spherical    log r_ik = −|x_i − μ_k|² / 2σ²  normalised over k: the mixture of equal, spherical
             Gaussians whose hard limit is k-means
silhouette   mean of (b_i − a_i) / max(a_i, b_i), a_i the distance of a row to the centre of its
             own cluster and b_i to the nearest other centre: O(NK) instead of O(N²).
             Hruschka, de Castro & Campello, "Evolutionary algorithms for clustering gene
             expression data", ICDM 2004.
"""

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import log_softmax

__all__ = [
    "by_decreasing_size",
    "first_equal",
    "one_hot_log",
    "simplified_silhouette",
    "spherical_log_responsibilities",
]


_FAR = 1e30
"""Largest −log r: certain enough, and finite in single precision."""


def by_decreasing_size(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels renumbered 0 … K−1, the largest cluster first, and the old number of each new one.

    Noise, −1, stays; numbers that own no row vanish; of equal clusters the one that appears first
    in the rows comes first, so that the answer does not depend on a method's own numbering.

    >>> by_decreasing_size(np.array([0, 3, 3, -1]))
    (array([ 1,  0,  0, -1]), array([3, 0]))
    """
    names, first, counts = np.unique(labels, return_index=True, return_counts=True)
    real = names >= 0
    order = names[real][np.lexsort((first[real], -counts[real]))]
    position = np.full(int(names[-1]) + 2, -1, dtype=np.int64)  # the last entry serves -1
    position[order] = np.arange(len(order))
    return position[labels], order


def first_equal(rows: np.ndarray) -> np.ndarray:
    """For each row (N, D) the number of the first one equal to it, (N,).

    >>> first_equal(np.array([[1.0], [2.0], [1.0]])).tolist()
    [0, 1, 0]
    """
    _, first, same = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first[same.ravel()]


def spherical_log_responsibilities(
    X: np.ndarray, centers: np.ndarray, variance: float
) -> np.ndarray:
    """Log r (N, K) of rows (N, D) under equal Gaussians at ``centers`` (K, D)."""
    squared = cdist(X, centers, "sqeuclidean")
    # Counted from the nearest centre, so that a variance of zero leaves a certain answer.
    squared -= squared.min(axis=1, keepdims=True)
    with np.errstate(over="ignore"):
        scaled = squared / (2 * max(variance, np.finfo(np.float64).tiny))
    return log_softmax(-np.minimum(scaled, _FAR), axis=1)


def one_hot_log(labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Log of certain memberships (N, K): 0 for the label, −inf elsewhere; −1 gives −inf throughout.

    >>> one_hot_log(np.array([1, -1]), 2)
    array([[-inf,   0.],
           [-inf, -inf]])
    """
    log_r = np.full((len(labels), n_clusters), -np.inf)
    rows = np.flatnonzero(labels >= 0)
    log_r[rows, labels[rows]] = 0.0
    return log_r


def simplified_silhouette(X: np.ndarray, labels: np.ndarray) -> float:
    """Mean over the clustered rows; 0 with fewer than two clusters.

    >>> simplified_silhouette(np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([0, 0, 1, 1]))
    1.0
    """
    inside = labels >= 0
    X, (names, labels) = X[inside], np.unique(labels[inside], return_inverse=True)
    if len(names) < 2:
        return 0.0
    centers = np.stack([X[labels == k].mean(axis=0) for k in range(len(names))])
    distance = cdist(X, centers)
    own = np.take_along_axis(distance, labels[:, None], axis=1).squeeze(1)
    np.put_along_axis(distance, labels[:, None], np.inf, axis=1)
    other = distance.min(axis=1)
    larger = np.maximum(own, other)
    return float(np.mean(np.divide(other - own, larger, out=np.zeros_like(own), where=larger > 0)))
