"""What pair probabilities say of a row, given the clusters of a context.

With P_ij the probability that row i shares a cluster with row j of a context of N rows, of which
cluster k holds C_k:

    affinity     a_ik = mean of P_ij over j in C_k
    overlap      expected Jaccard index of the row's cluster with its true one,
                 Σ_{j ∈ C} P_ij / (|C| + Σ_j P_ij − Σ_{j ∈ C} P_ij), to first order
    isolation    1 − min(1, e^(m − g_i)), g_i the log distance to the fifth neighbour and m its
                 median in the row's cluster: 0 for half the rows, towards 1 far from all others
    consensus    what several readings of the same rows agree on

A row of the context keeps the cluster it was given there, even where its affinities disagree.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

__all__ = [
    "Assessment",
    "assess",
    "cluster_affinity",
    "consensus",
    "expected_overlap",
    "isolation",
    "median_gaps",
]


class Assessment(NamedTuple):
    """What is known of rows (Q,)."""

    membership: np.ndarray  # (Q, K), rows sum to one
    confidence: np.ndarray  # (Q,) expected overlap
    outlier: np.ndarray  # (Q,) isolation

    @property
    def labels(self) -> np.ndarray:
        """Most likely cluster of each row."""
        return self.membership.argmax(axis=1)


def assess(
    P: np.ndarray,
    gaps: np.ndarray,
    twins: np.ndarray,
    labels: np.ndarray,
    usual: np.ndarray,
    advice: np.ndarray | None = None,
    share: float = 0.0,
) -> Assessment:
    """Assess rows by their probabilities (Q, N), log distances (Q,) and twins in the context (Q,).

    ``labels`` (N,) are the clusters of the context, ``usual`` (K,) its median log distances. What
    others say of the membership, ``advice`` (Q, K), counts for this ``share``.
    """
    affinity = cluster_affinity(P, labels)
    known = np.flatnonzero(twins >= 0)
    own = labels[twins[known]]
    largest = affinity[known].max(axis=1) * (1 + 1e-6)
    affinity[known, own] = np.maximum(affinity[known, own], largest)
    membership = affinity / np.maximum(affinity.sum(axis=1, keepdims=True), 1e-300)
    if advice is not None:
        membership = (1 - share) * membership + share * advice
    assigned = membership.argmax(axis=1)
    return Assessment(
        membership,
        expected_overlap(P, labels, assigned),
        isolation(gaps, usual[assigned]),
    )


def cluster_affinity(P: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Mean probability (Q, K) of rows (Q, N) with the clusters of the context (N,).

    >>> cluster_affinity(np.array([[1.0, 0.5, 0.25]]), np.array([0, 0, 1])).tolist()
    [[0.75, 0.25]]
    """
    member = np.eye(int(labels.max()) + 1, dtype=P.dtype)[labels]
    return P @ (member / member.sum(axis=0))


def expected_overlap(P: np.ndarray, labels: np.ndarray, assigned: np.ndarray) -> np.ndarray:
    """Expected Jaccard index (Q,) of the clusters ``assigned`` to rows (Q, N) with the true ones.

    >>> expected_overlap(np.array([[1.0, 0.5, 0.5]]), np.array([0, 0, 1]), np.array([0])).tolist()
    [0.6]
    """
    sizes = np.bincount(labels)
    inside = np.take_along_axis(cluster_affinity(P, labels), assigned[:, None], axis=1).squeeze(1)
    inside = inside * sizes[assigned]
    return inside / np.maximum(sizes[assigned] + P.sum(axis=1) - inside, 1e-12)


def median_gaps(gaps: np.ndarray, labels: np.ndarray, fewest: int = 6) -> np.ndarray:
    """Median (K,) of the log distances (N,) in each cluster.

    A cluster of fewer than ``fewest`` rows has neighbours elsewhere and is measured by all rows.
    """
    sizes = np.bincount(labels)
    return np.array(
        [np.median(gaps[labels == k] if size >= fewest else gaps) for k, size in enumerate(sizes)]
    )


def isolation(gaps: np.ndarray, usual: np.ndarray) -> np.ndarray:
    """How far rows (Q,) are from their neighbours, given what is ``usual`` in their cluster (Q,).

    >>> isolation(np.log([1.0, 2.0, 8.0]), np.log([2.0, 2.0, 2.0])).round(2).tolist()
    [0.0, 0.0, 0.75]
    """
    return -np.expm1(np.minimum(0.0, usual - gaps)) + 0.0  # no −0


def consensus(P: np.ndarray, memberships: Sequence[np.ndarray]) -> np.ndarray:
    """Mean of P (N, N) and of the chances Σ_k r_ik r_jk that other readings put rows together.

    A reading of another context has no opinion on pairs of these rows, but on the clusters (N, K)
    it found in its own.
    """
    total = P + sum(r @ r.T for r in memberships)
    mean = total / (1 + len(memberships))
    np.fill_diagonal(mean, 1.0)
    return mean
