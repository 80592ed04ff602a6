"""Log-likelihood per point of a mixture of Gaussians with diagonal covariance.

    ℓ = 1/N Σ_i log Σ_k π_k Π_d N(x_id; μ_kd, σ²_kd)

The oracle is ℓ at the parameters that generated the data, the yardstick for networks that infer
mixtures: Lee et al., "Set Transformer: a framework for attention-based permutation-invariant
neural networks", ICML 2019, table of the amortised clustering experiment.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from asterism.exceptions import DataError
from asterism.metrics._checks import Floats, as_labels, as_matrix, same_length

__all__ = ["mean_log_likelihood", "oracle_log_likelihood"]


def mean_log_likelihood(
    x: ArrayLike, weights: ArrayLike, means: ArrayLike, scales: ArrayLike
) -> float:
    """Mean over points of the log-density of a diagonal Gaussian mixture.

    Parameters
    ----------
    x : array-like of shape (N, D)
        Points.
    weights : array-like of shape (K,)
        Mixture weights, not negative, summing to one.
    means : array-like of shape (K, D)
        Component means.
    scales : array-like of shape (K, D) or (K,)
        Standard deviations, positive; one per component means a spherical mixture.

    Returns
    -------
    float

    Examples
    --------
    >>> round(mean_log_likelihood([[0.0]], weights=[1.0], means=[[0.0]], scales=[[1.0]]), 4)
    -0.9189
    """
    points, centres = as_matrix(x, "x"), as_matrix(means, "means")
    if points.shape[1] != centres.shape[1]:
        raise DataError(
            f"x has {points.shape[1]} features but means has {centres.shape[1]}: "
            "describe the mixture in the space of the points."
        )
    log_weights = _log_weights(weights, len(centres))
    deviations = _standard_deviations(scales, centres)
    # One component at a time: (N, D) at once, never (N, K, D).
    log_joint = [
        log_weight - np.sum(0.5 * ((points - mean) / scale) ** 2 + np.log(scale), axis=1)
        for log_weight, mean, scale in zip(log_weights, centres, deviations, strict=True)
    ]
    constant = 0.5 * points.shape[1] * np.log(2 * np.pi)
    return float(logsumexp(log_joint, axis=0).mean() - constant)


def oracle_log_likelihood(
    x: ArrayLike,
    labels: ArrayLike,
    means: ArrayLike,
    scales: ArrayLike,
    weights: ArrayLike | None = None,
) -> float:
    """Mean log-likelihood under the true mixture.

    Parameters
    ----------
    x : array-like of shape (N, D)
        Points.
    labels : array-like of shape (N,)
        True component of each point, 0 to K−1.
    means, scales : array-like of shape (K, D)
        True parameters, as in :func:`mean_log_likelihood`.
    weights : array-like of shape (K,), optional
        True weights; by default, the frequencies of the labels.

    Returns
    -------
    float

    Examples
    --------
    >>> x, labels = [[-5.0], [5.0]], [0, 1]
    >>> round(oracle_log_likelihood(x, labels, means=[[-5.0], [5.0]], scales=[1.0, 1.0]), 4)
    -1.6121
    """
    components, n_components = as_labels(labels, "labels"), len(as_matrix(means, "means"))
    same_length(x=as_matrix(x, "x"), labels=components)
    if components.dtype.kind not in "iu":
        raise DataError(f"labels must be integers; got {components.dtype}.")
    if components.min() < 0 or components.max() >= n_components:
        raise DataError(
            f"labels must lie in 0..{n_components - 1}, one value per row of means; "
            f"got {components.min()}..{components.max()}."
        )
    if weights is None:
        weights = np.bincount(components, minlength=n_components) / len(components)
    return mean_log_likelihood(x, weights, means, scales)


def _log_weights(weights: ArrayLike, n_components: int) -> Floats:
    array = np.asarray(weights, dtype=np.float64)
    if array.shape != (n_components,):
        raise DataError(f"weights must have shape ({n_components},); got {array.shape}.")
    if not (array >= 0).all() or not np.isclose(array.sum(), 1.0, atol=1e-4):
        raise DataError(f"weights must be probabilities summing to one; got {array.tolist()}.")
    with np.errstate(divide="ignore"):  # an empty component has weight 0, log-weight −∞
        return np.log(array)


def _standard_deviations(scales: ArrayLike, means: Floats) -> Floats:
    array = np.asarray(scales, dtype=np.float64)
    if array.shape == means.shape[:1]:
        array = np.repeat(array[:, None], means.shape[1], axis=1)
    if array.shape != means.shape:
        raise DataError(
            f"scales must have shape {means.shape} or {means.shape[:1]}; got {array.shape}."
        )
    if not (np.isfinite(array) & (array > 0)).all():
        raise DataError("scales are standard deviations: they must be positive and finite.")
    return array
