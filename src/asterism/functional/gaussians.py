"""Gaussians: log densities, rows against clusters, from factors of precisions; k-means.

    log N(x_i; μ_k, Σ_k) = log|F_k| − ½ |(x_i − μ_k) F_k|² − D/2 log 2π,   Σ_k⁻¹ = F_k F_kᵀ

Products are torch's: numpy's threads would wait for those of torch, beside whose work they stand.
"""

import math

import numpy as np
import torch

__all__ = ["fit_round", "gaussian_log_prob", "round_log_prob"]


def gaussian_log_prob(X: np.ndarray, means: np.ndarray, cholesky: np.ndarray) -> np.ndarray:
    """Log N(x_i; μ_k, Σ_k), (N, K), from the Cholesky factors of the precisions (K, D, D)."""
    log_p = np.empty((len(X), len(means)))
    for k, (mean, factor) in enumerate(zip(means, cholesky, strict=True)):
        whitened = _product(X - mean, factor)
        log_p[:, k] = np.log(np.diag(factor)).sum() - 0.5 * np.square(whitened).sum(axis=1)
    return log_p - 0.5 * X.shape[1] * math.log(2 * math.pi)


def round_log_prob(X: np.ndarray, means: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """The same for round Gaussians, whose factors (K,) are one over the standard deviation.

    >>> one = np.ones((1, 3))
    >>> bool(np.isclose(round_log_prob(one, 0 * one, np.ones(1)),
    ...                 gaussian_log_prob(one, 0 * one, np.eye(3)[None])))
    True
    """
    origin = means.mean(axis=0)  # near the rows, so that squares do not cancel
    X, means = X - origin, means - origin
    squared = (X**2).sum(axis=1)[:, None] + (means**2).sum(axis=1) - 2 * _product(X, means.T)
    dim = X.shape[1]
    return dim * np.log(factors) - 0.5 * (squared * factors**2 + dim * math.log(2 * math.pi))


def fit_round(
    X: np.ndarray, means: np.ndarray, *, floor: float, n_steps: int = 60
) -> tuple[np.ndarray, float]:
    """Means (K, D) and deviation of round clouds of one size, by k-means from ``means``.

    Rows belong wholly to their nearest mean: where clusters are told by few of many columns, soft
    shares would drift to any long axis. Ends when no row moves, or after ``n_steps``. The variance
    is at least ``floor``.

    >>> X = np.array([[0.0], [2.0], [10.0], [12.0]])
    >>> means, deviation = fit_round(X, np.array([[0.0], [3.0]]), floor=1e-3)
    >>> means.ravel().tolist(), deviation
    ([1.0, 11.0], 1.0)
    """
    origin = X.mean(axis=0)
    rows, centers = (
        torch.from_numpy(np.ascontiguousarray(part - origin, dtype=np.float64))
        for part in (X, means)
    )
    nearest = torch.full((len(rows),), -1)
    for _ in range(n_steps):
        before, (apart, nearest) = nearest, _squared(rows, centers).min(dim=1)
        if torch.equal(before, nearest):
            break
        sizes = torch.bincount(nearest, minlength=len(centers))[:, None]
        sums = torch.zeros_like(centers).index_add_(0, nearest, rows)
        centers = torch.where(sizes > 0, sums / sizes.clamp_min(1), centers)
    return centers.numpy() + origin, math.sqrt(max(float(apart.mean()) / rows.shape[1], floor))


def _squared(rows: torch.Tensor, centers: torch.Tensor) -> torch.Tensor:
    squares = rows.square().sum(dim=1)[:, None] + centers.square().sum(dim=1)
    return (squares - 2 * rows @ centers.mT).clamp_min(0)


def _product(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Matrix product in double precision of rows just made (Q, D) and a small matrix."""
    rows = torch.from_numpy(np.ascontiguousarray(first, dtype=np.float64))
    return (rows @ torch.tensor(second, dtype=torch.float64)).numpy()
