"""Log densities of Gaussians, rows against clusters, from factors of their precisions.

    log N(x_i; μ_k, Σ_k) = log|F_k| − ½ |(x_i − μ_k) F_k|² − D/2 log 2π,   Σ_k⁻¹ = F_k F_kᵀ

Products are torch's: numpy's threads would wait for those of torch, beside whose work they stand.
"""

import math

import numpy as np
import torch

__all__ = ["gaussian_log_prob", "round_log_prob"]


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


def _product(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Matrix product in double precision of rows just made (Q, D) and a small matrix."""
    rows = torch.from_numpy(np.ascontiguousarray(first, dtype=np.float64))
    return (rows @ torch.tensor(second, dtype=torch.float64)).numpy()
