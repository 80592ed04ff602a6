"""How good any partition is, by what a network believes of the rows: a learned validity index.

Given pair probabilities P (N, N) and the probability q that all rows are one cluster, the expected
adjusted Rand index of a partition c with the truth is

    q                                          if c is one cluster: right or worth nothing
    (1 − q) · expected ARI of c under P'       otherwise, P' = (P − q) / (1 − q)

where P' is what P says if there is more than one cluster. It is near zero for a partition made at
random, and one for a partition beyond doubt. Rows of noise, −1, are clusters of their own.
"""

from typing import Any

import numpy as np

from asterism.functional.decisions import expected_ari

__all__ = ["expected_agreement", "noise_apart"]


def expected_agreement(P: np.ndarray, labels: np.ndarray, single: float = 0.0) -> float:
    """Expected adjusted Rand index of ``labels`` (N,), 0 … K−1, with the truth.

    ``single`` is the probability that there is one cluster only.

    >>> P = np.kron(np.eye(2), np.ones((2, 2)))
    >>> expected_agreement(P, np.array([0, 0, 1, 1])), expected_agreement(P, np.zeros(4, int), 0.2)
    (1.0, 0.2)
    """
    if labels.max() == 0:
        return float(single)
    if single >= 1:
        return 0.0
    several = np.clip((P - single) / (1 - single), 0, 1)
    np.fill_diagonal(several, 1)
    return float((1 - single) * expected_ari(several, labels))


def noise_apart(labels: np.ndarray, noise: Any) -> np.ndarray:
    """Labels (N,) renumbered 0 … K−1, the rows of the mask ``noise`` (N,) each one by itself.

    >>> noise_apart(np.array([5, -1, 5, -1]), np.array([False, True, False, True])).tolist()
    [0, 1, 0, 2]
    """
    _, codes = np.unique(labels, return_inverse=True)
    codes = np.where(noise, codes.max() + 1 + np.arange(len(labels)), codes)
    return np.unique(codes, return_inverse=True)[1]
