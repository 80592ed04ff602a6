"""Calibration of pair probabilities: does "together with probability p" happen a share p of times?

For pairs i < j, with p_ij the stated probability of sharing a cluster and o_ij ∈ {0, 1} whether
they do in truth:

    ECE    = Σ_b n_b / n · |mean_b p − mean_b o|      over bins b of p
    Brier  = mean (p − o)²
    log score = mean [o log p + (1 − o) log(1 − p)]   at most 0, higher is better

Pairs are free of cluster names, so posteriors over partitions can be judged without matching.

Guo et al., "On calibration of modern neural networks", ICML 2017 (ECE);
Gneiting & Raftery, "Strictly proper scoring rules, prediction, and estimation", JASA 2007.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.random import sample_without_replacement

from asterism.exceptions import DataError
from asterism.metrics._checks import Floats, Ints, as_labels, encode

__all__ = ["PairCalibration", "pair_calibration"]

_TINY = 1e-12  # keeps the log score finite when a certain statement is wrong


@dataclass(frozen=True, eq=False)
class PairCalibration:
    """Reliability of pair probabilities.

    Attributes
    ----------
    bin_edges : ndarray of shape (n_bins + 1,)
        Edges of the bins of stated probability, from 0 to 1.
    mean_predicted, observed : ndarray of shape (n_bins,)
        Mean stated probability and observed frequency in each bin; NaN where a bin is empty.
    counts : ndarray of shape (n_bins,)
        Pairs in each bin.
    expected_calibration_error, brier_score, log_score : float
        As defined at the head of this module.
    """

    bin_edges: Floats
    mean_predicted: Floats
    observed: Floats
    counts: Ints
    expected_calibration_error: float
    brier_score: float
    log_score: float


def pair_calibration(
    y_true: ArrayLike,
    coassignment: ArrayLike,
    *,
    n_bins: int = 10,
    max_pairs: int = 1_000_000,
    random_state: int | np.random.RandomState | None = 0,
) -> PairCalibration:
    """Compare stated probabilities that two points share a cluster with the truth.

    Parameters
    ----------
    y_true : array-like of shape (N,)
        True classes; two points belong together when their labels are equal.
    coassignment : array-like of shape (N, N)
        Probability that points i and j share a cluster; only i < j is read. A memory map will do.
    n_bins : int, default=10
        Bins of equal width.
    max_pairs : int, default=1_000_000
        Beyond this number, pairs are drawn at random without replacement.
    random_state : int, RandomState or None, default=0
        Source of that draw.

    Returns
    -------
    PairCalibration

    Examples
    --------
    >>> together = [[1.0, 0.9, 0.1], [0.9, 1.0, 0.1], [0.1, 0.1, 1.0]]
    >>> result = pair_calibration([0, 0, 1], together, n_bins=2)
    >>> result.counts, result.observed
    (array([2, 1]), array([0., 1.]))
    >>> round(result.expected_calibration_error, 3)
    0.1
    """
    labels = encode(as_labels(y_true, "y_true"))[1]
    matrix = np.asarray(coassignment)
    if len(labels) < 2 or matrix.shape != (len(labels), len(labels)):
        raise DataError(
            "coassignment must be (N, N) with N at least 2, one row per label: "
            f"got shape {matrix.shape} for {len(labels)} labels."
        )
    if n_bins < 1 or max_pairs < 1:
        raise DataError(f"n_bins and max_pairs must be positive; got {n_bins} and {max_pairs}.")
    rows, columns = _pairs(len(labels), max_pairs, random_state)
    predicted = matrix[rows, columns].astype(np.float64)
    if not ((predicted >= 0) & (predicted <= 1)).all():
        raise DataError(
            "coassignment must hold probabilities: found NaN or a value outside [0, 1]."
        )
    return _summarise(predicted, labels[rows] == labels[columns], n_bins)


def _summarise(predicted: Floats, together: NDArray[np.bool_], n_bins: int) -> PairCalibration:
    bins = np.minimum((predicted * n_bins).astype(np.int64), n_bins - 1)  # p = 1 is in the last bin
    counts = np.bincount(bins, minlength=n_bins)
    with np.errstate(invalid="ignore"):  # empty bins are 0 / 0 = NaN
        mean_predicted = np.bincount(bins, weights=predicted, minlength=n_bins) / counts
        observed = np.bincount(bins, weights=together, minlength=n_bins) / counts
    clipped = np.clip(np.where(together, predicted, 1 - predicted), _TINY, 1)
    return PairCalibration(
        bin_edges=np.linspace(0, 1, n_bins + 1),
        mean_predicted=mean_predicted,
        observed=observed,
        counts=counts,
        expected_calibration_error=float(
            np.nansum(counts * np.abs(mean_predicted - observed)) / counts.sum()
        ),
        brier_score=float(np.mean((predicted - together) ** 2)),
        log_score=float(np.mean(np.log(clipped))),
    )


def _pairs(
    n_points: int, max_pairs: int, random_state: int | np.random.RandomState | None
) -> tuple[Ints, Ints]:
    """Return i < j for all pairs, or for ``max_pairs`` distinct random ones."""
    n_pairs = n_points * (n_points - 1) // 2
    if n_pairs <= max_pairs:
        return np.triu_indices(n_points, k=1)
    flat = sample_without_replacement(
        n_pairs, max_pairs, random_state=check_random_state(random_state)
    ).astype(np.int64)
    # Pair number j (j − 1) / 2 + i; the root may be off by one through rounding.
    columns = ((1 + np.sqrt(1 + 8 * flat.astype(np.float64))) / 2).astype(np.int64)
    columns -= columns * (columns - 1) // 2 > flat
    columns += columns * (columns + 1) // 2 <= flat
    return flat - columns * (columns - 1) // 2, columns
