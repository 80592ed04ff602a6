"""What sampled partitions say together: pairs, number of clusters, rows, and one answer.

Partitions c_1 … c_S of N rows come as labels (S, N), with weights w (S,) that sum to one. These are
1/S by default, as is right for draws: a likelier partition has been drawn more often.

    co-assignment    P_ij = Σ_s w_s [c_s(i) = c_s(j)]
    belief over K    p(K) = Σ_s w_s [c_s has K clusters]
    confidence       Σ_s w_s · overlap of row i's clusters in c and in c_s, for an answer c: with
                     a_i, b_i their sizes and m_i the rows in both, i itself among them,
                       overlap  m_i / (a_i + b_i − m_i), the Jaccard index
                       mates    (m_i − 1) / (a_i − 1), the share of a cluster that stays with i

The central partition is the sample of the smallest expected loss. The credible ball of level α
about c holds the partitions within the smallest distance ε of it such that Σ_s w_s [VI ≤ ε] ≥ α;
its bounds are the farthest partitions inside, of the fewest, of the most, and of any number of
clusters. All but the co-assignment is linear in N.

Wade & Ghahramani, "Bayesian cluster analysis: point estimation and credible balls", Bayesian
Analysis 2018.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from asterism.exceptions import DataError
from asterism.functional.comparisons import (
    binder_loss,
    by_appearance,
    check_pair,
    check_partitions,
    cluster_counts,
    contingency_tables,
    variation_of_information,
)

__all__ = [
    "LOSSES",
    "CredibleBall",
    "central_partition",
    "coassignment",
    "count_posterior",
    "credible_ball",
    "distinct_partitions",
    "expected_losses",
    "row_confidence",
]

LOSSES = ("vi", "binder")

_BLOCK = 512  # rows of a matrix of pairs made at once
_COLUMNS = 1024  # of the one-hot codes multiplied at once
_SAME = 1e-9  # distances this close are equal, up to rounding


# --- pairs and counts -------------------------------------------------------------------------


def coassignment(partitions: Any, weights: Any = None) -> np.ndarray:
    """Probability (N, N) that two rows share a cluster, in single precision.

    With Z the one-hot codes of all partitions side by side, (N, Σ K), it is Z diag(w) Zᵀ.

    Parameters
    ----------
    partitions : array of shape (S, N)
        Labels from 0 to N − 1, a partition a row.
    weights : array of shape (S,), optional

    Returns
    -------
    ndarray of shape (N, N), float32

    Examples
    --------
    >>> coassignment([[0, 0, 1], [0, 1, 1]]).tolist()
    [[1.0, 0.5, 0.0], [0.5, 1.0, 0.5], [0.0, 0.5, 1.0]]
    """
    labels, w = check_partitions(partitions, weights)
    n_samples, n = labels.shape
    scale = w * n_samples  # ones for equal weights: the sums are then whole numbers, and exact
    counts = labels.max(axis=1).astype(np.int64) + 1
    # A product of all rows at once would double the memory; half of it is the other half's mirror.
    blocks = [slice(start, start + _BLOCK) for start in range(0, n, _BLOCK)]
    P = np.zeros((n, n), dtype=np.float32)
    for samples in _runs(counts, _COLUMNS):
        starts = np.cumsum(counts[samples]) - counts[samples]
        columns = labels[samples] + starts[:, None]
        codes = np.zeros((n, int(counts[samples].sum())), dtype=np.float32)
        codes[np.arange(n), columns] = 1
        weighted = (codes * np.repeat(scale[samples], counts[samples]).astype(np.float32)).T
        for rows in blocks:
            P[rows, rows.start :] += codes[rows] @ weighted[:, rows.start :]
    P /= n_samples
    for rows in blocks:
        P[rows.stop :, rows] = P[rows, rows.stop :].T
    np.fill_diagonal(P, 1)
    return np.minimum(P, 1, out=P)


def count_posterior(partitions: Any, weights: Any = None) -> np.ndarray:
    """Probability of each number of clusters; the index is K.

    Examples
    --------
    >>> count_posterior([[0, 0, 1], [0, 0, 0], [0, 1, 1], [0, 0, 1]]).tolist()
    [0.0, 0.25, 0.75]
    """
    labels, w = check_partitions(partitions, weights)
    return np.bincount(cluster_counts(labels), weights=w)


def distinct_partitions(partitions: Any, weights: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Partitions without repetition (M, N), the weightiest first, and their weights (M,).

    Of equal weights the one that comes first among the samples comes first.

    Examples
    --------
    >>> labels, weights = distinct_partitions([[0, 0, 1], [0, 1, 1], [1, 1, 0], [1, 1, 0]])
    >>> labels.tolist(), weights.tolist()
    ([[0, 0, 1], [0, 1, 1]], [0.75, 0.25])
    """
    labels, w = check_partitions(partitions, weights)
    labels = by_appearance(labels)
    found: dict[bytes, int] = {}  # hashed, since sorting long rows is slow
    which = np.array([found.setdefault(row.tobytes(), len(found)) for row in labels])
    first = np.unique(which, return_index=True)[1]
    total = np.bincount(which, weights=w)
    # Sums of equal weights may differ in the last digit.
    order = np.lexsort((first, -total.round(12)))
    return labels[first[order]], total[order]


# --- rows -------------------------------------------------------------------------------------


def row_confidence(
    labels: Any, partitions: Any, weights: Any = None, *, measure: str = "overlap"
) -> np.ndarray:
    """How surely each row is where a partition (N,) has it, by the others (S, N).

    Parameters
    ----------
    labels : array of shape (N,)
        The partition in question.
    partitions : array of shape (S, N)
    weights : array of shape (S,), optional
    measure : {"overlap", "mates"}, default="overlap"
        The expected Jaccard index of the row's cluster with its sampled ones, or the expected share
        of the other rows of its cluster that stay with it. The latter does not mind when clusters
        are merged; a row by itself stays so or not.

    Returns
    -------
    ndarray of shape (N,)
        From 0 to 1.

    Examples
    --------
    >>> row_confidence([0, 0, 1], [[0, 0, 1], [0, 1, 1]]).tolist()
    [0.75, 0.6666666666666666, 0.75]
    """
    if measure not in ("overlap", "mates"):
        raise DataError(f"measure={measure!r} must be 'overlap' or 'mates'")
    own, others = check_pair(labels, partitions)
    _, w = check_partitions(others, weights)
    a = np.bincount(own)[own]
    confidence = np.zeros(len(own))
    for samples, joint, cells in contingency_tables(own, others):
        _, sizes, clusters = next(
            contingency_tables(None, others[samples])
        )  # smaller tables: all at once
        m = np.take_along_axis(joint, cells, axis=1)
        b = np.take_along_axis(sizes, clusters, axis=1)
        if measure == "overlap":
            share = m / (a + b - m)
        else:
            share = np.where(a == 1, b == 1, (m - 1) / np.maximum(a - 1, 1))
        confidence += w[samples] @ share
    return np.minimum(confidence, 1.0)


# --- one answer, and how far the others are from it -------------------------------------------


def expected_losses(
    candidates: Any, partitions: Any, weights: Any = None, *, loss: str = "vi"
) -> np.ndarray:
    """Expected loss (C,) of candidate partitions (C, N) under samples (S, N); time C · S · N.

    Examples
    --------
    >>> expected_losses([[0, 0, 0, 0], [0, 0, 1, 1]], [[0, 0, 1, 1], [0, 0, 0, 0]]).tolist()
    [0.5, 0.5]
    """
    if loss not in LOSSES:
        raise DataError(f"loss={loss!r} is not one of {LOSSES}")
    distances = variation_of_information if loss == "vi" else binder_loss
    options, _ = check_partitions(candidates)
    labels, w = distinct_partitions(partitions, weights)
    return np.array([distances(option, labels) @ w for option in options])


def central_partition(partitions: Any, weights: Any = None, *, loss: str = "vi") -> np.ndarray:
    """The sample (N,) of the smallest expected loss, the weightiest of equal ones.

    Parameters
    ----------
    partitions : array of shape (S, N)
    weights : array of shape (S,), optional
    loss : {"vi", "binder"}, default="vi"
        Variation of information, or Binder's, which likes small clusters better.

    Returns
    -------
    ndarray of shape (N,), int32
        Clusters numbered by first appearance.

    Examples
    --------
    >>> central_partition([[0, 0, 1, 1], [0, 0, 1, 2], [0, 1, 2, 3]]).tolist()
    [0, 0, 1, 2]
    """
    labels, w = distinct_partitions(partitions, weights)
    losses = expected_losses(labels, labels, w, loss=loss)
    return labels[int(np.flatnonzero(losses <= losses.min() + _SAME)[0])]


class CredibleBall(NamedTuple):
    """Distinct partitions about a centre that hold most of the posterior, nearest first."""

    center: np.ndarray  # (N,)
    partitions: np.ndarray  # (M, N)
    weights: np.ndarray  # (M,) posterior probabilities
    distances: np.ndarray  # (M,) variation of information to the centre, in bits
    radius: float  # the largest of them
    mass: float  # sum of the weights, the level asked for or more

    @property
    def n_clusters(self) -> np.ndarray:
        """Number of clusters (M,) of each partition."""
        return cluster_counts(self.partitions)

    @property
    def horizontal(self) -> np.ndarray:
        """Partitions (m, N) inside that are farthest from the centre."""
        return self._farthest(np.ones(len(self.partitions), dtype=bool))

    @property
    def upper(self) -> np.ndarray:
        """Of those inside with the fewest clusters, the partitions (m, N) farthest away."""
        return self._farthest(self.n_clusters == self.n_clusters.min())

    @property
    def lower(self) -> np.ndarray:
        """Of those inside with the most clusters, the partitions (m, N) farthest away."""
        return self._farthest(self.n_clusters == self.n_clusters.max())

    def _farthest(self, chosen: np.ndarray) -> np.ndarray:
        edge = self.distances[chosen].max() - _SAME
        return self.partitions[chosen & (self.distances >= edge)]


def credible_ball(
    center: Any, partitions: Any, weights: Any = None, *, level: float = 0.9
) -> CredibleBall:
    """Smallest ball about a partition (N,) that holds ``level`` of the posterior.

    Parameters
    ----------
    center : array of shape (N,)
        The partition reported; it need not be among the samples.
    partitions : array of shape (S, N)
    weights : array of shape (S,), optional
    level : float, default=0.9
        Above 0, at most 1.

    Returns
    -------
    CredibleBall

    Examples
    --------
    >>> samples = [[0, 0, 1, 1]] * 6 + [[0, 0, 0, 0]] * 3 + [[0, 1, 2, 3]]
    >>> ball = credible_ball([0, 0, 1, 1], samples, level=0.8)
    >>> ball.partitions.tolist(), round(ball.mass, 2), ball.radius
    ([[0, 0, 1, 1], [0, 0, 0, 0], [0, 1, 2, 3]], 1.0, 1.0)
    """
    if not 0 < level <= 1:
        raise DataError(f"level={level} must be a probability above 0, at most 1")
    labels, w = distinct_partitions(partitions, weights)
    distances = variation_of_information(center, labels)
    order = np.argsort(distances.round(9), kind="stable")
    held = np.cumsum(w[order])
    radius = distances[order][int(np.argmax(held >= min(level, held[-1]) - 1e-12))]
    inside = order[distances[order] <= radius + _SAME]
    return CredibleBall(
        by_appearance(np.asarray(center)[None])[0],
        labels[inside],
        w[inside],
        distances[inside],
        float(distances[inside].max()),
        float(w[inside].sum()),
    )


def _runs(costs: np.ndarray, most: int) -> Iterator[slice]:
    """Consecutive runs whose costs add up to ``most`` at most, or single entries."""
    start, total = 0, 0
    for stop, cost in enumerate(costs.tolist()):
        if stop > start and total + cost > most:
            yield slice(start, stop)
            start, total = stop, 0
        total += cost
    yield slice(start, len(costs))
