"""Other views of the same rows, for a second opinion.

What a reader of distances sees depends on how long the columns are, and no scaling is right for all
tables. Given rows X (N, D) whose columns are comparable, three more views:

    ranked      normal scores of the ranks of every column: tails and gaps count for nothing
    half        principal axes, each divided by the square root of its deviation
    white       principal axes, all of deviation one: what leading axes hide is seen

Axes shorter than a small share of the longest are left out, since they would be mere noise. Nothing
depends on the order of rows or columns.
"""

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

__all__ = ["other_views", "ranked", "whitened"]

_SHORTEST = {0.5: 0.02, 1.0: 0.1}  # axes left out, by how far they are evened out


def other_views(X: np.ndarray) -> list[np.ndarray]:
    """The views of the header that differ from X (N, D); a single column has one axis only."""
    views = [ranked(X)]
    if X.shape[1] > 1:
        views += [whitened(X, power) for power in _SHORTEST]
    return [view.astype(np.float32) for view in views]


def ranked(X: np.ndarray) -> np.ndarray:
    """Normal scores of the ranks, columns of unit deviation; equal cells have equal scores.

    >>> ranked(np.array([[1.0, 7.0], [9.0, 7.0], [2.0, 7.0]])).round(2).tolist()
    [[-1.22, 0.0], [1.22, 0.0], [0.0, 0.0]]
    """
    scores = ndtri((rankdata(X, axis=0) - 0.5) / len(X))
    deviation = scores.std(axis=0)
    return (scores - scores.mean(axis=0)) / np.where(deviation > 1e-9, deviation, 1.0)


def whitened(X: np.ndarray, power: float) -> np.ndarray:
    """Principal axes (N, m) whose deviation is that of X to the power of one minus ``power``.

    >>> X = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> np.abs(whitened(X, 1.0)).round(2).tolist()
    [[1.41, 0.0], [1.41, 0.0], [0.0, 1.41], [0.0, 1.41]]
    """
    centred = np.asarray(X, dtype=np.float64) - X.mean(axis=0, dtype=np.float64)
    rows, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    long = sizes > max(_SHORTEST[power] * float(sizes[0]), 1e-12)
    if not long.any():  # all rows alike
        return centred[:, :1]
    deviation = sizes[long] / np.sqrt(len(X))
    return rows[:, long] * np.sqrt(len(X)) * deviation ** (1 - power)
