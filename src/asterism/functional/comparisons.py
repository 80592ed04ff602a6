"""One partition of rows compared with many others, in time and memory linear in the rows.

With a_i and b_i the sizes of the clusters of row i in two partitions of N rows, and m_i the number
of rows in both at once, i itself among them:

    variation of information    mean_i log₂ (a_i b_i / m_i²), in bits
    Binder's loss               Σ_i (a_i + b_i − 2 m_i) / N (N − 1): pairs together in only one
    adjusted Rand index         (M − A B / T) / (½ (A + B) − A B / T),  with the ordered pairs
                                M = Σ (m_i − 1), A = Σ (a_i − 1), B = Σ (b_i − 1), T = N (N − 1)

Partitions are labels from 0 to N − 1; numbers may be left out, and their order means nothing.

Meilă, "Comparing clusterings — an information based distance", Journal of Multivariate Analysis
2007. Binder, "Bayesian cluster analysis", Biometrika 1978. Hubert & Arabie, "Comparing
partitions", Journal of Classification 1985.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from asterism.exceptions import DataError

__all__ = [
    "adjusted_rand",
    "binder_loss",
    "by_appearance",
    "check_pair",
    "check_partitions",
    "cluster_counts",
    "contingency_tables",
    "renumbered_like",
    "variation_of_information",
]

_ENTRIES = 1 << 18  # of a temporary array: memory stays flat in the number of partitions
_FLAT = 1e-9


def by_appearance(partitions: Any) -> np.ndarray:
    """Renumber clusters by first appearance, so that equal partitions are equal rows.

    Examples
    --------
    >>> by_appearance([[2, 0, 2], [1, 2, 1]]).tolist()
    [[0, 1, 0], [0, 1, 0]]
    """
    labels, _ = check_partitions(partitions)
    n = labels.shape[1]
    backwards = np.arange(n)[::-1]
    renamed = np.empty(labels.shape, dtype=np.int32)
    for s, partition in enumerate(labels):
        first = np.full(int(partition.max()) + 1, n)
        first[partition[::-1]] = backwards  # the last to be written is the first of the rows
        renamed[s] = np.argsort(np.argsort(first))[partition]
    return renamed


def renumbered_like(labels: Any, reference: Any) -> np.ndarray:
    """Labels (N,) with the numbers of the clusters of another partition (N,) they match best.

    Clusters are matched one to one so that as many rows as can be keep their number; those left
    over follow with numbers the reference does not have.

    Examples
    --------
    >>> renumbered_like([0, 0, 1, 1, 2], [1, 1, 0, 0, 0]).tolist()
    [1, 1, 0, 0, 2]
    """
    other, (own,) = check_pair(reference, np.asarray(labels)[None])
    n_other, n_own = int(other.max()) + 1, int(own.max()) + 1
    counts = np.bincount(other * n_own + own, minlength=n_other * n_own).reshape(n_other, n_own)
    matched, clusters = linear_sum_assignment(counts, maximize=True)
    rest = np.setdiff1d(np.arange(n_own), clusters)
    number = np.empty(n_own, dtype=np.int64)
    number[clusters] = matched
    number[rest] = n_other + np.arange(len(rest))
    return number[own]


def variation_of_information(labels: Any, partitions: Any) -> np.ndarray:
    """Distance (S,) in bits of one partition (N,) to others (S, N): 0 when equal, at most log₂ N.

    Examples
    --------
    >>> variation_of_information([0, 0, 1, 1], [[1, 1, 0, 0], [0, 0, 0, 0], [0, 1, 0, 1]]).tolist()
    [0.0, 1.0, 2.0]
    """
    own, others = check_pair(labels, partitions)
    joint = np.concatenate([_entropies(m) for _, m, _ in contingency_tables(own, others)])
    alone = np.concatenate([_entropies(b) for _, b, _ in contingency_tables(None, others)])
    own_sizes = np.bincount(own)[None]
    return np.maximum(_entropies(own_sizes) + alone - 2 * joint, 0) / len(own)


def binder_loss(labels: Any, partitions: Any) -> np.ndarray:
    """Share (S,) of pairs that one partition (N,) and others (S, N) judge differently.

    It is one minus the Rand index.

    Examples
    --------
    >>> binder_loss([0, 0, 1], [[0, 0, 1], [0, 1, 1], [0, 1, 2]]).round(3).tolist()
    [0.0, 0.667, 0.333]
    """
    both, own, other, pairs = _pair_counts(*check_pair(labels, partitions))
    return (own + other - 2 * both) / max(pairs, 1)


def adjusted_rand(labels: Any, partitions: Any) -> np.ndarray:
    """Adjusted Rand index (S,) of one partition (N,) with others (S, N).

    Examples
    --------
    >>> adjusted_rand([0, 0, 1, 1], [[1, 1, 0, 0], [0, 0, 1, 2]]).round(3).tolist()
    [1.0, 0.571]
    """
    both, own, other, pairs = _pair_counts(*check_pair(labels, partitions))
    chance = own * other / max(pairs, 1)
    spread = (own + other) / 2 - chance
    flat = spread <= _FLAT * pairs  # both all apart or both all together: nothing to disagree on
    return np.where(flat, 1.0, (both - chance) / np.where(flat, 1.0, spread))


# --- tables and checks -------------------------------------------------------------------------


def check_partitions(partitions: Any, weights: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Labels (S, N) and weights (S,) that sum to one."""
    labels = np.asarray(partitions)
    if labels.ndim != 2 or 0 in labels.shape or labels.dtype.kind not in "iu":
        raise DataError(
            "partitions must be whole numbers of shape (samples, rows), at least one of each; got "
            f"shape {labels.shape} of {labels.dtype}"
        )
    n_samples, n = labels.shape
    if labels.min() < 0 or labels.max() >= n:
        raise DataError(
            f"partitions of {n} rows have labels from 0 to {n - 1}; got {labels.min()} to "
            f"{labels.max()}: number the clusters, noise too, from 0"
        )
    if weights is None:
        return labels, np.full(n_samples, 1 / n_samples)
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (n_samples,) or not (np.isfinite(w).all() and (w >= 0).all() and w.sum() > 0):
        raise DataError(
            f"weights must be {n_samples} nonnegative numbers, one a partition, not all zero; got "
            f"shape {w.shape}, values from {w.min(initial=0.0)} to {w.max(initial=0.0)}"
        )
    return labels, w / w.sum()


def check_pair(labels: Any, partitions: Any) -> tuple[np.ndarray, np.ndarray]:
    """One partition (N,) and others (S, N) of the same rows."""
    others, _ = check_partitions(partitions)
    own = np.asarray(labels)
    if own.shape != others.shape[1:]:
        raise DataError(
            f"labels have shape {own.shape} for partitions of {others.shape[1]} rows: give one "
            "label a row"
        )
    return check_partitions(own[None])[0][0], others


def cluster_counts(labels: np.ndarray) -> np.ndarray:
    """Number of clusters (S,) of partitions (S, N).

    >>> cluster_counts(np.array([[0, 2, 2], [1, 1, 1]])).tolist()
    [2, 1]
    """
    return np.array([np.count_nonzero(np.bincount(partition)) for partition in labels])


def contingency_tables(
    labels: np.ndarray | None, partitions: np.ndarray
) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Contingency tables of a partition with each of several, a few at a time.

    Yields which of the S they are, their counts (C, cells), and the cells (C, N) of the rows.
    Without ``labels`` the tables are the sizes of the clusters.
    """
    n_samples, n = partitions.shape
    width = int(partitions.max()) + 1
    size = width if labels is None else width * (int(labels.max()) + 1)
    compact = size > max(8 * n, 4096)  # nearly all cells would be empty
    step = 1 if compact else max(1, _ENTRIES // max(n, size))
    first = np.zeros(n, np.int64) if labels is None else labels.astype(np.int64) * width
    for start in range(0, n_samples, step):
        samples = slice(start, min(start + step, n_samples))
        cells = partitions[samples] + first
        if compact:
            cells = np.unique(cells, return_inverse=True)[1].reshape(1, n)
            yield samples, np.bincount(cells[0])[None], cells
        else:
            flat = cells + size * np.arange(len(cells))[:, None]
            counts = np.bincount(flat.ravel(), minlength=len(cells) * size)
            yield samples, counts.reshape(-1, size), cells


def _pair_counts(
    labels: np.ndarray, partitions: np.ndarray
) -> tuple[np.ndarray, float, np.ndarray, float]:
    """Ordered pairs together in both (S,), in the one, in the others (S,), and in all."""
    n = len(labels)
    both = np.concatenate([_squares(m) for _, m, _ in contingency_tables(labels, partitions)]) - n
    other = np.concatenate([_squares(b) for _, b, _ in contingency_tables(None, partitions)]) - n
    own = float(_squares(np.bincount(labels)[None])[0] - n)
    return both, own, other, float(n * (n - 1))


def _squares(counts: np.ndarray) -> np.ndarray:
    return (counts.astype(np.float64) ** 2).sum(axis=1)


def _entropies(counts: np.ndarray) -> np.ndarray:
    """Sum (C,) of n log₂ n over the cells of tables (C, cells)."""
    return (counts * np.log2(np.maximum(counts, 1))).sum(axis=1)
