"""Agreement of a clustering with reference labels: information, pairs, and number of clusters.

    NMI  = I(T; C) / mean(H(T), H(C))            arithmetic or geometric mean
    ARI  = (RI − E[RI]) / (max RI − E[RI])       pairs, corrected for chance
    k error = |K_pred − K_true|

Noise (−1) in a prediction is one more cluster for NMI and ARI, as in scikit-learn, is wrong for
the accuracy, and is no cluster for the k error.

Where a data set has several reference labellings, the protocol of Gagolewski ("A framework for
benchmarking clustering algorithms", SoftwareX 2022) leaves out the noise points of each reference
and keeps the best score over the references.

Strehl & Ghosh, "Cluster ensembles: a knowledge reuse framework", JMLR 2002 (geometric NMI);
Hubert & Arabie, "Comparing partitions", Journal of Classification 1985 (ARI).
"""

from collections.abc import Iterable
from typing import Any, Literal, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from asterism.exceptions import DataError
from asterism.metrics._checks import Ints, as_labels, encode, is_noise, same_length
from asterism.metrics.accuracy import clustering_accuracy

__all__ = [
    "ClusteringScores",
    "adjusted_rand_index",
    "best_over_references",
    "cluster_count_error",
    "clustering_scores",
    "normalized_mutual_information",
]


class ClusteringScores(TypedDict):
    """The standard scores of one clustering, by name."""

    acc: float
    nmi: float
    nmi_geometric: float
    ari: float
    k_true: int
    k_pred: int
    k_error: int


def normalized_mutual_information(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    average: Literal["arithmetic", "geometric"] = "arithmetic",
) -> float:
    """Mutual information over the mean of the two entropies, from 0 to 1.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (N,)
        True classes, and clusters; −1 in ``y_pred`` is a cluster like any other.
    average : {"arithmetic", "geometric"}, default="arithmetic"
        Mean of the entropies. Older papers often use the geometric one: state which.

    Returns
    -------
    float

    Examples
    --------
    >>> round(normalized_mutual_information([0, 0, 1, 1], [0, 0, 1, 2]), 3)
    0.8
    >>> round(normalized_mutual_information([0, 0, 1, 1], [0, 0, 1, 2], average="geometric"), 3)
    0.816
    """
    if average not in ("arithmetic", "geometric"):
        raise DataError(f"average must be 'arithmetic' or 'geometric'; got {average!r}.")
    truth, prediction = _encoded(y_true, y_pred)
    return float(normalized_mutual_info_score(truth, prediction, average_method=average))


def adjusted_rand_index(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Share of pairs on which two partitions agree, corrected for chance; 1 is identity.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (N,)
        True classes, and clusters; −1 in ``y_pred`` is a cluster like any other.

    Returns
    -------
    float
        At most 1; about 0 for independent partitions, possibly negative.

    Examples
    --------
    >>> adjusted_rand_index([0, 0, 1, 1], ["x", "x", "y", "y"])
    1.0
    """
    return float(adjusted_rand_score(*_encoded(y_true, y_pred)))


def cluster_count_error(y_true: ArrayLike, y_pred: ArrayLike) -> int:
    """Distance between the number of clusters found and the number of classes.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (N,)
        True classes, and clusters; noise (−1) in ``y_pred`` is not a cluster.

    Returns
    -------
    int

    Examples
    --------
    >>> cluster_count_error([0, 0, 1, 1], [0, 1, 2, -1])
    1
    """
    truth, prediction = _pair(y_true, y_pred)
    return abs(_count(prediction[~is_noise(prediction)]) - _count(truth))


def clustering_scores(
    y_true: ArrayLike, y_pred: ArrayLike, *, ignore: Any = None
) -> ClusteringScores:
    """All standard scores of a clustering in one dictionary.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (N,)
        True classes, and clusters.
    ignore : label or list of labels, optional
        Classes of ``y_true`` whose points are left out, such as −1 for the noise points of a
        reference labelling. By default every point counts.

    Returns
    -------
    dict
        ``acc``, ``nmi``, ``nmi_geometric``, ``ari``, ``k_true``, ``k_pred`` and ``k_error``.

    Examples
    --------
    >>> scores = clustering_scores([0, 0, 1, 1, -1], [5, 5, 3, 3, 3], ignore=-1)
    >>> scores["acc"], scores["ari"], scores["k_error"]
    (1.0, 1.0, 0)
    """
    truth, prediction = _pair(y_true, y_pred)
    if ignore is not None:
        kept = ~np.isin(truth, np.atleast_1d(ignore))
        if not kept.any():
            raise DataError(f"Leaving out the labels {ignore!r} of y_true leaves no point.")
        truth, prediction = truth[kept], prediction[kept]
    k_true, k_pred = _count(truth), _count(prediction[~is_noise(prediction)])
    return ClusteringScores(
        acc=clustering_accuracy(truth, prediction),
        nmi=normalized_mutual_information(truth, prediction),
        nmi_geometric=normalized_mutual_information(truth, prediction, average="geometric"),
        ari=adjusted_rand_index(truth, prediction),
        k_true=k_true,
        k_pred=k_pred,
        k_error=abs(k_pred - k_true),
    )


def best_over_references(
    references: Iterable[ArrayLike], y_pred: ArrayLike, *, ignore: Any = None
) -> ClusteringScores:
    """Scores against several reference labellings, each score at its best over them.

    Parameters
    ----------
    references : iterable of array-like of shape (N,)
        Labellings, all of them right in their own way.
    y_pred : array-like of shape (N,)
        Clusters.
    ignore : label or list of labels, optional
        Classes left out of each reference, as in :func:`clustering_scores`.

    Returns
    -------
    dict
        As :func:`clustering_scores`. The best of different scores may come from different
        references; ``k_true``, ``k_pred`` and ``k_error`` come from the one nearest in number.

    Examples
    --------
    >>> best_over_references([[0, 0, 0, 0], [0, 0, 1, 1]], [1, 1, 0, 0])["acc"]
    1.0
    """
    scores = [clustering_scores(reference, y_pred, ignore=ignore) for reference in references]
    if not scores:
        raise DataError("references is empty: give at least one labelling.")
    nearest = min(scores, key=lambda score: score["k_error"])
    return ClusteringScores(
        acc=max(score["acc"] for score in scores),
        nmi=max(score["nmi"] for score in scores),
        nmi_geometric=max(score["nmi_geometric"] for score in scores),
        ari=max(score["ari"] for score in scores),
        k_true=nearest["k_true"],
        k_pred=nearest["k_pred"],
        k_error=nearest["k_error"],
    )


def _pair(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    truth, prediction = as_labels(y_true, "y_true"), as_labels(y_pred, "y_pred")
    same_length(y_true=truth, y_pred=prediction)
    return truth, prediction


def _encoded(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[Ints, Ints]:
    truth, prediction = _pair(y_true, y_pred)
    return encode(truth)[1], encode(prediction)[1]


def _count(labels: NDArray[Any]) -> int:
    return len(encode(labels)[0])
