"""Posterior over all partitions of a few points under the restaurant mixture, in closed form.

    p(c)     ∝ α^K Π_k (n_k − 1)!                          CRP(α) given K ≤ K_max
    p(x | c) = Π_k ∫ N(μ; 0, t² I) Π_{i ∈ k} N(x_i; μ, s² I) dμ

With n_k points and coordinate sums S_k, v_k = s² + n_k t², the log-density of one coordinate is

    −½ [N log 2π + Σ_k ((n_k − 1) log s² + log v_k) + Σ_i x_i² / s² − Σ_k t² S_k² / (s² v_k)]

Data whose median was moved to zero have lost their place m: their density is ∫ p(x + m | c) dm, for
x and m together are the data before the move. With w = Σ_k n_k / v_k and b = Σ_k S_k / v_k it is
larger by ½ [log 2π − log w + b² / w] a coordinate.
"""

import math

import numpy as np
from scipy.special import gammaln, logsumexp

from asterism.priors import RestaurantMixturePrior

__all__ = ["all_partitions", "exact_log_posterior", "largest_difference"]


def all_partitions(n_points: int) -> np.ndarray:
    """Every partition of the points, clusters numbered by first appearance, (Bell number, N)."""
    rows = [[0]]
    for _ in range(n_points - 1):
        rows = [[*row, k] for row in rows for k in range(max(row) + 2)]
    return np.array(rows)


def log_prior(labels: np.ndarray, prior: RestaurantMixturePrior) -> np.ndarray:
    """Log-probability of each partition (P, N) of the list of all of them."""
    counts = cluster_sums(labels, np.ones((labels.shape[1], 1)))[..., 0]  # (P, K)
    occupied = counts > 0
    log_p = np.where(occupied, gammaln(np.maximum(counts, 1)) + math.log(prior.alpha), 0).sum(1)
    log_p[occupied.sum(axis=1) > prior.max_clusters] = -np.inf
    return log_p - logsumexp(log_p)


def log_marginal(x: np.ndarray, labels: np.ndarray, prior: RestaurantMixturePrior) -> np.ndarray:
    """Log-density of points (N, D) given each partition (P, N), centres integrated out."""
    n_points, dim = x.shape
    s2, t2 = prior.scale**2, prior.center_scale**2
    counts = cluster_sums(labels, np.ones((n_points, 1)))  # (P, K, 1)
    sums = cluster_sums(labels, x)  # (P, K, D)
    v = s2 + counts * t2
    log_det = np.where(counts > 0, (counts - 1) * math.log(s2) + np.log(v), 0).sum(axis=(1, 2))
    quadratic = (x**2).sum() / s2 - (t2 * sums**2 / (s2 * v)).sum(axis=(1, 2))
    log_p = -0.5 * (dim * (n_points * math.log(2 * math.pi) + log_det) + quadratic)
    if prior.centred:
        w, b = (counts / v).sum(axis=(1, 2)), (sums / v).sum(axis=1)  # (P,), (P, D)
        log_p += 0.5 * (dim * (math.log(2 * math.pi) - np.log(w)) + (b**2).sum(axis=1) / w)
    return log_p


def exact_log_posterior(
    x: np.ndarray, labels: np.ndarray, prior: RestaurantMixturePrior
) -> np.ndarray:
    """Log-probability of each of all partitions (P, N) given points (N, D)."""
    log_p = log_prior(labels, prior) + log_marginal(x, labels, prior)
    return log_p - logsumexp(log_p)


def cluster_sums(labels: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Sums of values (N, D) over the clusters of each partition (P, N), (P, K, D)."""
    member = labels[:, :, None] == np.arange(labels.shape[1])  # (P, N, K)
    return np.einsum("pnk,nd->pkd", member, values)


# --- the same by brute force --------------------------------------------------------------------


def summed_log_marginal(
    x: np.ndarray, labels: np.ndarray, prior: RestaurantMixturePrior, step: float = 0.25
) -> float:
    """Log-density given one partition (N,), by sums over a grid of centres and of places."""
    reach = 8 * prior.center_scale + np.abs(x).max()
    grid = np.arange(-reach, reach, step)
    places = grid if prior.centred else np.zeros(1)
    total = 0.0
    for column in x.T:
        log_p = np.zeros(len(places))
        for k in np.unique(labels):
            own = column[labels == k]
            log_joint = normal(grid, prior.center_scale) + sum(
                normal(value + places[:, None] - grid, prior.scale) for value in own
            )  # (places, centres)
            log_p += logsumexp(log_joint, axis=1) + math.log(step)
        total += logsumexp(log_p) + (math.log(step) if prior.centred else 0)
    return total


def normal(x: np.ndarray, scale: float) -> np.ndarray:
    return -0.5 * (x / scale) ** 2 - math.log(scale) - 0.5 * math.log(2 * math.pi)


def largest_difference(x: np.ndarray, prior: RestaurantMixturePrior) -> float:
    """Between closed form and sums, over all partitions of points (N, D)."""
    labels = all_partitions(len(x))
    summed = [summed_log_marginal(x, row, prior) for row in labels]
    return float(np.abs(log_marginal(x, labels, prior) - summed).max())
