"""Quality of a learned representation: error of nearest neighbours in it.

    error_k = share of test points whose k nearest training points vote for a wrong class

Euclidean distance, majority vote, ties to the smallest class: Salakhutdinov & Hinton, "Learning a
nonlinear embedding by preserving class neighbourhood structure", AISTATS 2007. Use deterministic
features (the mean of a posterior, never a sample).
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike
from sklearn.neighbors import NearestNeighbors

from asterism.exceptions import DataError
from asterism.metrics._checks import Ints, as_labels, as_matrix, encode, same_length

__all__ = ["knn_error"]


def knn_error(
    z_train: ArrayLike,
    y_train: ArrayLike,
    z_test: ArrayLike,
    y_test: ArrayLike,
    *,
    n_neighbors: int | Iterable[int] = (3, 5, 10),
) -> dict[int, float]:
    """Test error of k-nearest-neighbour classification in an embedding.

    Parameters
    ----------
    z_train, z_test : array-like of shape (N, D) and (M, D)
        Embedded training and test points.
    y_train, y_test : array-like of shape (N,) and (M,)
        Their classes.
    n_neighbors : int or iterable of int, default=(3, 5, 10)
        Numbers of neighbours; the neighbours are searched once for all of them.

    Returns
    -------
    dict of int to float
        Error rate, from 0 to 1, for each number of neighbours.

    Examples
    --------
    >>> knn_error([[0.0], [1.0], [9.0]], [0, 0, 1], [[0.4], [8.0]], [0, 1], n_neighbors=(1, 3))
    {1: 0.0, 3: 0.5}
    """
    train, test = as_matrix(z_train, "z_train"), as_matrix(z_test, "z_test")
    known, wanted = as_labels(y_train, "y_train"), as_labels(y_test, "y_test")
    same_length(z_train=train, y_train=known)
    same_length(z_test=test, y_test=wanted)
    if train.shape[1] != test.shape[1]:
        raise DataError(
            f"z_train has {train.shape[1]} features but z_test has {test.shape[1]}: "
            "embed both with the same model."
        )
    counts = (
        (int(n_neighbors),) if isinstance(n_neighbors, int | np.integer) else tuple(n_neighbors)
    )
    if not counts or min(counts) < 1 or max(counts) > len(train):
        raise DataError(
            f"n_neighbors must lie in 1..{len(train)}, the number of training points; got {counts}."
        )
    classes, codes = encode(known)
    nearest = NearestNeighbors(n_neighbors=max(counts)).fit(train)
    votes = codes[nearest.kneighbors(test, return_distance=False)]  # (M, max k), nearest first
    return {
        k: float(np.mean(classes[_majority(votes[:, :k], len(classes))] != wanted)) for k in counts
    }


def _majority(votes: Ints, n_classes: int) -> Ints:
    """Most frequent class of each row of (M, k) votes; the smallest one when tied."""
    counts = np.zeros((len(votes), n_classes), dtype=np.int64)
    np.add.at(counts, (np.arange(len(votes))[:, None], votes), 1)
    return counts.argmax(axis=1)
