"""Gaussians: log densities, rows against clusters, from factors of precisions; round ones fitted.

    log N(x_i; μ_k, Σ_k) = log|F_k| − ½ |(x_i − μ_k) F_k|² − D/2 log 2π,   Σ_k⁻¹ = F_k F_kᵀ

Products are torch's: numpy's threads would wait for those of torch, beside whose work they stand.
"""

import math

import numpy as np
import torch
from torch import Tensor

__all__ = [
    "RISE",
    "about_origin",
    "fit_round",
    "gaussian_log_prob",
    "moved",
    "round_log_prob",
    "squared_distances",
]

RISE = 1e-4
"""Rise of the mean log density a row at which a fit ends."""


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
    X: np.ndarray, means: np.ndarray, *, soft: bool, floor: float, n_steps: int = 60
) -> tuple[np.ndarray, float]:
    """Means (K, D) and deviation of round Gaussians of one size and weight, from ``means`` on.

    Soft, by expectation maximisation, which finds where clouds overlap; or hard, by k-means, which
    stays with clusters that few of many columns tell, where soft shares drift to any long axis.
    Ends when the mean log density rises by less than 10⁻⁴, or after ``n_steps``. The variance is at
    least ``floor`` > 0.

    >>> X = np.array([[0.0], [2.0], [10.0], [12.0]])
    >>> means, deviation = fit_round(X, np.array([[0.0], [3.0]]), soft=False, floor=1e-3)
    >>> means.ravel().tolist(), deviation
    ([1.0, 11.0], 1.0)
    """
    origin, rows, centers = about_origin(X, means)
    total, dim = float(rows.square().sum()), rows.shape[1]
    apart = squared_distances(rows, centers)
    variance = max(float(apart.amin(dim=1).mean()) / dim, floor)
    before = -math.inf
    for _ in range(n_steps):
        logits = apart / (-2 * variance)
        best = logits.logsumexp(dim=1) if soft else logits.amax(dim=1)
        level = float(best.mean()) - 0.5 * dim * math.log(variance)
        if level - before < RISE:
            break
        before = level
        nearest = apart.argmin(dim=1)
        shares = logits.softmax(dim=1) if soft else torch.eye(len(centers)).to(rows)[nearest]
        centers = moved(rows, shares, centers)
        left = total - float((shares.sum(dim=0) * centers.square().sum(dim=1)).sum())
        variance = max(left / rows.numel(), floor)
        apart = squared_distances(rows, centers)
    return centers.numpy() + origin, math.sqrt(variance)


def about_origin(X: np.ndarray, means: np.ndarray) -> tuple[np.ndarray, Tensor, Tensor]:
    """Mean of the rows, and rows and means less that mean, in double precision."""
    origin = X.mean(axis=0)
    rows, centers = (
        torch.from_numpy(np.ascontiguousarray(part - origin, dtype=np.float64))
        for part in (X, means)
    )
    return origin, rows, centers


def moved(rows: Tensor, weights: Tensor, centers: Tensor) -> Tensor:
    """Weighted means (K, D) of rows (N, D) by weights (N, K); without any a centre stays."""
    sizes = weights.sum(dim=0)
    means = weights.mT @ rows / sizes.clamp_min(1e-300)[:, None]
    return torch.where(sizes[:, None] > 0, means, centers)


def squared_distances(rows: Tensor, centers: Tensor) -> Tensor:
    """|x_i − μ_k|² (N, K); both should lie about the origin, so that squares do not cancel."""
    squares = rows.square().sum(dim=1)[:, None] + centers.square().sum(dim=1)
    return (squares - 2 * rows @ centers.mT).clamp_min(0)


def _product(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Matrix product in double precision of rows just made (Q, D) and a small matrix."""
    rows = torch.from_numpy(np.ascontiguousarray(first, dtype=np.float64))
    return (rows @ torch.tensor(second, dtype=torch.float64)).numpy()
