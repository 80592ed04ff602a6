"""Round clouds with tails: mixtures of Student's t, whose far rows count for little.

    t(x; μ, σ, ν) ∝ σ^−D (1 + |x − μ|² / (ν σ²))^−(ν + D)/2

A row's weight in the fit is r_ik u_ik, with r_ik its share of cloud k and

    u_ik = (ν + D) / (ν + |x_i − μ_k|² / σ²)

so that centres lie where rows are dense, not in the mean of all. In many columns that is what tells
peaked clouds apart: k-means is led by the rows far out, which are nearly as far from either centre.
All clouds share σ, ν and the weight 1/K; with every round ν goes up or down by an octave, or stays.

Peel & McLachlan, "Robust mixture modelling using the t distribution", Statistics and Computing
2000.
"""

import math

import numpy as np
import torch
from torch import Tensor

from asterism.functional.gaussians import RISE, about_origin, moved, squared_distances

__all__ = ["fit_tailed", "tailed_log_prob"]

_LEAST, _MOST = 1.0, 64.0  # degrees of freedom; beyond, a Gaussian serves as well


def tailed_log_prob(
    X: np.ndarray, means: np.ndarray, factors: np.ndarray, freedom: float
) -> np.ndarray:
    """Log densities (N, K) of rows (N, D) under clouds of scales σ_k = 1 / ``factors`` (K,).

    >>> from scipy.stats import t
    >>> one = np.ones((1, 1))
    >>> bool(np.isclose(tailed_log_prob(one, 0 * one, one[0], 3.0)[0, 0], t(3).logpdf(1.0)))
    True
    """
    rows, centers = (torch.tensor(part, dtype=torch.float64) for part in (X, means))
    origin = centers.mean(dim=0)  # near the rows, so that squares do not cancel
    scaled = squared_distances(rows - origin, centers - origin) * torch.tensor(factors**2)
    log_p = _log_density(scaled, X.shape[1], freedom) + X.shape[1] * torch.tensor(factors).log()
    return log_p.numpy()


def fit_tailed(
    X: np.ndarray, means: np.ndarray, *, floor: float, n_steps: int = 60
) -> tuple[np.ndarray, float, float]:
    """Means (K, D), scale and degrees of freedom of clouds, by EM from ``means`` on.

    Ends when the mean log density rises by less than 10⁻⁴, or after ``n_steps``. The squared scale
    is at least ``floor`` > 0.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_t(2, (400, 1)) + 9.0 * rng.integers(2, size=(400, 1))
    >>> means, scale, freedom = fit_tailed(X, np.array([[-1.0], [12.0]]), floor=1e-3)
    >>> bool(np.abs(means.ravel() - [0, 9]).max() < 0.3), freedom < 4
    (True, True)
    """
    origin, rows, centers = about_origin(X, means)
    dim = rows.shape[1]
    squared = squared_distances(rows, centers)
    variance = max(float(squared.amin(dim=1).median()) / dim, floor)
    freedom, before = 16.0, -math.inf
    for _ in range(n_steps):
        scaled = squared / variance
        logits, level, freedom = max(
            (_joint(scaled, dim, nu) for nu in _neighbours(freedom)), key=lambda found: found[1]
        )
        level -= 0.5 * dim * math.log(variance)
        if level - before < RISE:
            break
        before = level
        weights = logits.softmax(dim=1) * ((freedom + dim) / (freedom + scaled))
        centers = moved(rows, weights, centers)
        squared = squared_distances(rows, centers)
        variance = max(float((weights * squared).sum()) / rows.numel(), floor)
    return centers.numpy() + origin, math.sqrt(variance), freedom


def _neighbours(freedom: float) -> list[float]:
    return [min(max(freedom * turn, _LEAST), _MOST) for turn in (0.5, 1.0, 2.0)]


def _joint(scaled: Tensor, dim: int, freedom: float) -> tuple[Tensor, float, float]:
    """Log densities (N, K) at unit scale, the mean of their sums' logarithms, and the freedom."""
    logits = _log_density(scaled, dim, freedom)
    return logits, float(logits.logsumexp(dim=1).mean()), freedom


def _log_density(scaled: Tensor, dim: int, freedom: float) -> Tensor:
    level = math.lgamma((freedom + dim) / 2) - math.lgamma(freedom / 2)
    level -= 0.5 * dim * math.log(freedom * math.pi)
    return level - 0.5 * (freedom + dim) * torch.log1p(scaled / freedom)
