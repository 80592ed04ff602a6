"""What sets a cluster apart from the other rows, column by column.

Of n rows, n_k in cluster k, with mean m and deviation s of a column over all rows and mean m_k
within the cluster, the mean outside is m_out = m − n_k (m_k − m) / (n − n_k), and

    effect_k = (m_k − m_out) / s = n / (n − n_k) · (m_k − m) / s

0.2 is small, 0.8 is large. The deviation is over all rows, not within groups, so that the effect
stays finite when a cluster is constant. Where a cluster holds no row or every row, and in a
constant column, there is nothing to compare: the effect is zero.

The moments are summed in one pass over chunks of rows, counted from the mean of the first chunk.
That chunk is part of the data, so it cannot lie far from them in units of their deviation: sums of
squares lose few digits.

J. Cohen, "Statistical power analysis for the behavioral sciences", 1988 (d).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

__all__ = ["Contrast", "Moments", "cluster_moments", "numeric_contrasts"]

_CONSTANT = 1e-9  # a deviation smaller than that, in units of the mean, is rounding
_CELLS = 1 << 20  # numbers summed at once: bounds the memory


@dataclass(frozen=True)
class Contrast:
    """One column in which a cluster differs from the other rows."""

    feature: str
    effect: float  # signed; positive when higher, or commoner, inside
    inside: float  # mean, or share of ``value``, within the cluster
    outside: float  # the same over all other rows
    value: str | None = None  # the over-represented category; None for a numeric column


class Moments(NamedTuple):
    """Means and deviations of D columns, over all rows and within each of K clusters.

    Counts are of the numbers that are present; one count may serve all columns.
    """

    total: np.ndarray  # (D,) or (1,) rows
    mean: np.ndarray  # (D,)
    deviation: np.ndarray  # (D,)
    cluster_count: np.ndarray  # (K, D) or (K, 1)
    cluster_mean: np.ndarray  # (K, D); anything where the count is zero


def cluster_moments(X: np.ndarray, labels: np.ndarray, n_clusters: int) -> Moments:
    """Moments of rows (N, D) by their cluster (N,); negative labels belong to none.

    >>> moments = cluster_moments(np.array([[1.0], [3.0], [8.0]]), np.array([0, 0, 1]), 2)
    >>> moments.mean.tolist(), moments.cluster_mean.tolist()
    ([4.0], [[2.0], [8.0]])
    """
    n, d = X.shape
    step = max(1, _CELLS // d)
    shift = X[:step].mean(axis=0, dtype=np.float64)
    total, squares = np.zeros((2, d))
    sums = np.zeros((n_clusters, d))
    for start in range(0, n, step):
        part = X[start : start + step].astype(np.float64) - shift
        total += part.sum(axis=0)
        squares += np.einsum("nd,nd->d", part, part)
        order = np.argsort(labels[start : start + step], kind="stable")
        present, first = np.unique(labels[start : start + step][order], return_index=True)
        of_cluster = np.add.reduceat(part[order], first, axis=0)
        sums[present[present >= 0]] += of_cluster[present >= 0]
    sizes = np.bincount(labels[labels >= 0], minlength=n_clusters)[:, None]
    mean = total / n
    return Moments(
        total=np.array([n]),
        mean=shift + mean,
        deviation=np.sqrt(np.maximum(squares / n - mean**2, 0)),
        cluster_count=sizes,
        cluster_mean=shift + sums / np.maximum(sizes, 1),
    )


def numeric_contrasts(
    names: Sequence[str], moments: Moments, *, top: int = 5, min_effect: float = 0.2
) -> list[tuple[Contrast, ...]]:
    """For each cluster at most ``top`` columns of the largest effects, the largest first.

    >>> moments = cluster_moments(np.array([[1.0], [1.0], [3.0], [3.0]]), np.array([0, 0, 1, 1]), 2)
    >>> numeric_contrasts(["height"], moments)[1]
    (Contrast(feature='height', effect=2.0, inside=3.0, outside=1.0, value=None),)
    """
    inside, n_inside = moments.cluster_mean, moments.cluster_count
    n_outside = moments.total - n_inside
    varies = moments.deviation > _CONSTANT * np.abs(moments.mean)
    comparable = (n_inside > 0) & (n_outside > 0) & varies  # (K, D)
    apart = np.where(comparable, inside - moments.mean, 0.0)
    others = np.maximum(n_outside, 1)
    effect = moments.total / others * apart / np.where(varies, moments.deviation, 1.0)
    outside = moments.mean - n_inside / others * apart
    strongest = np.argsort(-np.abs(effect), axis=1, kind="stable")[:, :top]
    return [
        tuple(
            Contrast(names[j], float(effect[k, j]), float(inside[k, j]), float(outside[k, j]))
            for j in columns
            if abs(effect[k, j]) >= min_effect
        )
        for k, columns in enumerate(strongest)
    ]
