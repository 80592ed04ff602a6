"""Clustering accuracy: the share of points whose cluster stands for their true class.

Clusters carry no names, so accuracy needs a rule that names them.

    optimal matching     ACC = max_m Σ_k n_{k, m(k)} / N     m one-to-one, n the contingency table
    representatives      m(k) = y_{i*(k)},  i*(k) = argmax_i q(k | x_i)     m many-to-one

The first is solved by the Hungarian algorithm on the rectangular table: when there are more
clusters than classes the clusters left over are wrong, and so is every point labelled −1 (noise).
The second rests on one point per cluster, hence varies more; never mix the two in one column.

Kuhn, "The Hungarian method for the assignment problem", Naval Research Logistics 1955.
Dilokthanakul et al., "Deep unsupervised clustering with Gaussian mixture variational
autoencoders", 2016 (the representatives).
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from asterism.exceptions import DataError
from asterism.metrics._checks import (
    Floats,
    Ints,
    as_labels,
    as_matrix,
    encode,
    is_noise,
    same_length,
)

__all__ = ["clustering_accuracy", "match_clusters", "representative_accuracy"]


def clustering_accuracy(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Accuracy under the best one-to-one matching of clusters and classes.

    Parameters
    ----------
    y_true : array-like of shape (N,)
        True classes, of any type.
    y_pred : array-like of shape (N,)
        Clusters. Points labelled −1 are noise and count as wrong.

    Returns
    -------
    float
        Share of points, from 0 to 1, whose cluster is matched with their class.

    See Also
    --------
    match_clusters : The matching itself.
    representative_accuracy : Accuracy when each cluster is named by one point.

    Examples
    --------
    >>> clustering_accuracy(["a", "a", "b", "b"], [1, 1, 0, -1])
    0.75
    """
    *_, table, rows, columns = _matching(y_true, y_pred)
    return float(table[rows, columns].sum() / len(np.asarray(y_pred)))


def match_clusters(y_true: ArrayLike, y_pred: ArrayLike) -> dict[Any, Any]:
    """Class matched with each cluster by the optimal one-to-one matching.

    A cluster left over, when there are more clusters than classes, is absent; so is noise (−1).
    A cluster may be matched with a class it shares no point with, when no better one remains.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (N,)
        True classes, and clusters.

    Returns
    -------
    dict
        From cluster to class.

    Examples
    --------
    >>> match_clusters(["a", "a", "b", "b", "b"], [1, 1, 0, 0, 7])
    {0: 'b', 1: 'a'}
    """
    clusters, classes, _, rows, columns = _matching(y_true, y_pred)
    return dict(zip(clusters[rows].tolist(), classes[columns].tolist(), strict=True))


def representative_accuracy(
    y_true: ArrayLike,
    responsibilities: ArrayLike,
    *,
    y_val: ArrayLike | None = None,
    responsibilities_val: ArrayLike | None = None,
) -> float:
    """Accuracy when every cluster takes the true label of its most certain example.

    Parameters
    ----------
    y_true : array-like of shape (N,)
        True classes.
    responsibilities : array-like of shape (N, K)
        Probability q(k | x_i) of each cluster for each point.
    y_val, responsibilities_val : array-like of shape (M,) and (M, K), optional
        Validation points from which the examples are taken; by default, the points themselves.

    Returns
    -------
    float
        Share of points, from 0 to 1, whose most probable cluster bears their class.

    Examples
    --------
    >>> representative_accuracy([5, 5, 3], [[0.9, 0.1], [0.3, 0.7], [0.2, 0.8]])
    0.6666666666666666
    """
    labels, q = _labelled(y_true, responsibilities, "y_true", "responsibilities")
    if y_val is None and responsibilities_val is None:
        labels_val, q_val = labels, q
    elif y_val is None or responsibilities_val is None:
        raise DataError("Give y_val and responsibilities_val together, or neither of them.")
    else:
        labels_val, q_val = _labelled(y_val, responsibilities_val, "y_val", "responsibilities_val")
    if q.shape[1] != q_val.shape[1]:
        raise DataError(
            f"responsibilities has {q.shape[1]} clusters but responsibilities_val has "
            f"{q_val.shape[1]}: both must come from the same model."
        )
    names = labels_val[q_val.argmax(axis=0)]  # (K,)
    return float(np.mean(names[q.argmax(axis=1)] == labels))


def _labelled(
    y: ArrayLike, responsibilities: ArrayLike, y_name: str, q_name: str
) -> tuple[NDArray[Any], Floats]:
    labels, q = as_labels(y, y_name), as_matrix(responsibilities, q_name)
    same_length(**{y_name: labels, q_name: q})
    return labels, q


def _matching(
    y_true: ArrayLike, y_pred: ArrayLike
) -> tuple[NDArray[Any], NDArray[Any], Ints, Ints, Ints]:
    """Clusters, classes, their contingency table, and the matched (row, column) pairs."""
    truth, prediction = as_labels(y_true, "y_true"), as_labels(y_pred, "y_pred")
    same_length(y_true=truth, y_pred=prediction)
    classes, columns = encode(truth)
    kept = ~is_noise(prediction)
    clusters, rows = encode(prediction[kept])
    table = np.zeros((len(clusters), len(classes)), dtype=np.int64)
    np.add.at(table, (rows, columns[kept]), 1)
    return clusters, classes, table, *linear_sum_assignment(table, maximize=True)
