"""How classical methods find the number of clusters when it is not given.

silhouette  the K whose partition has the largest mean silhouette (b − a) / max(a, b), taken on
            at most ``SAMPLE`` rows; P. J. Rousseeuw, "Silhouettes: a graphical aid", 1987
eigengap    the K ≥ 2 with the largest gap (λ_{K+1} − λ_K) / max(λ_{K+1}, 0.002) between
            eigenvalues of the normalised graph Laplacian: λ_1 … λ_K small, λ_{K+1} relatively
            large; U. von Luxburg, "A tutorial on spectral clustering", 2007, section 8.3
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np
from sklearn.metrics import silhouette_score

__all__ = ["SAMPLE", "best_silhouette", "candidate_counts", "largest_gap"]

SAMPLE = 2000
"""Rows on which a silhouette is taken: the full one costs O(N²)."""

_ZERO = 1e-9
"""An eigenvalue below this is zero but for rounding."""

_SMALL = 0.002
"""Gaps below this are not taken for relatively large: pieces joined by a thread are pieces."""

Fitted = TypeVar("Fitted")


def candidate_counts(X: np.ndarray, max_clusters: int) -> range:
    """Numbers of clusters worth trying: 2 … max, fewer where there are few distinct rows."""
    distinct = len(np.unique(X, axis=0))
    return range(2, min(max_clusters, distinct, len(X) - 1) + 1)


def best_silhouette(
    X: np.ndarray,
    candidates: Iterable[Fitted],
    labels_of: Callable[[Fitted], np.ndarray],
    seed: int,
) -> tuple[Fitted | None, dict[int, float]]:
    """Candidate of the largest silhouette, and the silhouette by number of clusters.

    None when no candidate splits the rows at all.
    """
    rows = np.arange(len(X))
    if len(X) > SAMPLE:
        rows = np.random.RandomState(seed).choice(len(X), SAMPLE, replace=False)
    best, best_score = None, -np.inf
    scores: dict[int, float] = {}
    for candidate in candidates:
        labels = labels_of(candidate)
        sampled = labels[rows]
        if not 2 <= len(np.unique(sampled)) < len(rows):
            continue
        score = float(silhouette_score(X[rows], sampled))
        scores[len(np.unique(labels))] = score
        if score > best_score:
            best, best_score = candidate, score
    return best, scores


def largest_gap(eigenvalues: np.ndarray) -> int:
    """K at the largest relative gap of ascending eigenvalues λ_1 … λ_m, 2 ≤ K < m.

    When all are zero there are at least m pieces, and K is as large as it may be; so it is when
    there are too few to compare.

    >>> largest_gap(np.array([0.0, 0.01, 0.02, 0.5, 0.6]))
    3
    """
    values = np.maximum(eigenvalues, 0.0)
    if len(values) < 3 or values[-1] < _ZERO:
        return len(values) - 1
    gaps = np.diff(values) / np.maximum(values[1:], _SMALL)
    return int(gaps[1:].argmax()) + 2
