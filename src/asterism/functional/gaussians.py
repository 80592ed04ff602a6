"""Gaussians: log densities, rows against clusters, from factors of precisions; round ones fitted.

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
    X: np.ndarray, means: np.ndarray, *, floor: float, n_steps: int = 60, tol: float = 1e-4
) -> tuple[np.ndarray, float]:
    """Means (K, D) and deviation of round Gaussians of one size and weight, by EM from ``means``.

    Ends when the mean log density rises by less than ``tol``; the variance is at least ``floor``.

    >>> X = np.array([[0.0], [2.0], [10.0], [12.0]])
    >>> means, deviation = fit_round(X, np.array([[0.0], [12.0]]), floor=1e-3)
    >>> means.round(3).ravel().tolist(), round(deviation, 3)
    ([1.0, 11.0], 1.0)
    """
    rows = torch.from_numpy(np.ascontiguousarray(X - X.mean(axis=0), dtype=np.float64))
    centers = torch.from_numpy(means - X.mean(axis=0))
    squares, dim = rows.square().sum(dim=1), rows.shape[1]
    apart = _squared(rows, centers)
    variance = max(float(apart.amin(dim=1).mean()) / dim, floor)
    before = -math.inf
    for _ in range(n_steps):
        logits = apart / (-2 * variance)
        level = float(logits.logsumexp(dim=1).mean()) - 0.5 * dim * math.log(variance)
        if level - before < tol:
            break
        before = level
        shares = logits.softmax(dim=1)
        sizes = shares.sum(dim=0)
        centers = torch.where(sizes[:, None] > 0, shares.mT @ rows / sizes[:, None], centers)
        left = squares.sum() - (sizes * centers.square().sum(dim=1)).sum()
        variance = max(float(left) / rows.numel(), floor)
        apart = _squared(rows, centers)
    return centers.numpy() + X.mean(axis=0), math.sqrt(variance)


def _squared(rows: torch.Tensor, centers: torch.Tensor) -> torch.Tensor:
    squares = rows.square().sum(dim=1)[:, None] + centers.square().sum(dim=1)
    return (squares - 2 * rows @ centers.mT).clamp_min(0)


def _product(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Matrix product in double precision of rows just made (Q, D) and a small matrix."""
    rows = torch.from_numpy(np.ascontiguousarray(first, dtype=np.float64))
    return (rows @ torch.tensor(second, dtype=torch.float64)).numpy()
