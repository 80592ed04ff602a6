"""Mixtures of axis-aligned Gaussians: likelihood, assignment, EM, reduction.

    p(x) = Σ_k π_k N(x; μ_k, diag σ_k²)

    E-step   r_ik ∝ π_k N(x_i; μ_k, σ_k)
    M-step   n_k = Σ_i r_ik,  π_k = n_k / N,  μ_k = Σ_i r_ik x_i / n_k,
             σ_k² = Σ_i r_ik (x_i − μ_k)² / n_k

Reduction to fewer components merges, one pair at a time, the two whose moment-matched merger costs
least by the upper bound on the Kullback-Leibler divergence of A. R. Runnalls, "Kullback-Leibler
approach to Gaussian mixture reduction", IEEE Transactions on Aerospace and Electronic Systems,
2007:

    cost(i, j) = ½ [(π_i + π_j) log|Σ_ij| − π_i log|Σ_i| − π_j log|Σ_j|]

All functions take any leading batch shape and stay in the log domain.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = [
    "Mixture",
    "em_step",
    "joint_log_prob",
    "log_likelihood",
    "log_responsibilities",
    "reduce_mixture",
]

SCALE_FLOOR = 1e-4
"""Smallest standard deviation an M-step may return; a component on one point stays proper."""


class Mixture(NamedTuple):
    """Weights (..., K) as logs, means (..., K, D) and standard deviations (..., K, D)."""

    log_weights: Tensor
    means: Tensor
    scales: Tensor


def joint_log_prob(x: Tensor, mixture: Mixture) -> Tensor:
    """Log π_k + log N(x_i; μ_k, σ_k): points (..., N, D) give (..., N, K).

    Expanded as Σ x²/σ² − 2 Σ xμ/σ² + Σ μ²/σ², two matrix products, after moving the origin to the
    mean of the centres so that the squares do not cancel.
    """
    origin = mixture.means.mean(dim=-2, keepdim=True)
    x, means = x - origin, mixture.means - origin
    precision = mixture.scales.reciprocal().square()  # (..., K, D)
    mahalanobis = (
        x.square() @ precision.mT
        - 2 * x @ (means * precision).mT
        + (means.square() * precision).sum(dim=-1).unsqueeze(-2)
    ).clamp_min(0)
    log_volume = mixture.scales.log().sum(dim=-1) + x.shape[-1] / 2 * math.log(2 * math.pi)
    return (mixture.log_weights - log_volume).unsqueeze(-2) - mahalanobis / 2


def log_likelihood(x: Tensor, mixture: Mixture) -> Tensor:
    """Log p(x_i) of every point, (..., N)."""
    return joint_log_prob(x, mixture).logsumexp(dim=-1)


def log_responsibilities(x: Tensor, mixture: Mixture) -> Tensor:
    """Log r_ik, (..., N, K); rows of exp sum to one."""
    return torch.log_softmax(joint_log_prob(x, mixture), dim=-1)


def em_step(x: Tensor, mixture: Mixture, keep: Tensor | None = None) -> Mixture:
    """One round of expectation maximisation; ``keep`` (..., N) marks the rows that are points.

    A component that owns less than a millionth of the points keeps its mean and scale.
    """
    r = log_responsibilities(x, mixture).exp()
    if keep is not None:
        r = r * keep.unsqueeze(-1)
    count = r.sum(dim=-2)  # (..., K)
    log_weights = torch.log(count / count.sum(dim=-1, keepdim=True)).clamp_min(-1e4)
    owned = (count > 1e-6 * count.sum(dim=-1, keepdim=True)).unsqueeze(-1)
    share = (r / count.unsqueeze(-2).clamp_min(1e-12)).mT  # (..., K, N)
    means = torch.where(owned, share @ x, mixture.means)
    # Deviations from a nearby origin: E[x²] − E[x]² loses all digits far from zero.
    origin = means.mean(dim=-2, keepdim=True)
    centred, shift = x - origin, means - origin
    variance = (share @ centred.square() - shift.square()).clamp_min(SCALE_FLOOR**2)
    return Mixture(log_weights, means, torch.where(owned, variance.sqrt(), mixture.scales))


def reduce_mixture(mixture: Mixture, n_components: int) -> Mixture:
    """Merge the components of one mixture, cheapest pair first, down to ``n_components``."""
    weights, means, variances = (
        mixture.log_weights.double().exp(),
        mixture.means.double(),
        mixture.scales.double().square(),
    )
    while len(weights) > n_components:
        pair = weights[:, None] + weights[None, :]
        share = (weights[:, None] / pair.clamp_min(1e-300)).unsqueeze(-1)  # (K, K, 1)
        offset = means[:, None] - means[None, :]
        merged = (
            share * variances[:, None]
            + (1 - share) * variances[None, :]
            + share * (1 - share) * offset.square()
        )
        log_det = weights * variances.log().sum(dim=-1)
        cost = pair * merged.log().sum(dim=-1) - log_det[:, None] - log_det[None, :]
        cost.fill_diagonal_(torch.inf)
        i, j = sorted(divmod(int(cost.argmin()), len(weights)))
        means[i] = share[i, j] * means[i] + (1 - share[i, j]) * means[j]
        variances[i] = merged[i, j]
        weights[i] = pair[i, j]
        rest = torch.arange(len(weights), device=weights.device) != j
        weights, means, variances = weights[rest], means[rest], variances[rest]
    return Mixture(
        weights.log().to(mixture.log_weights.dtype),
        means.to(mixture.means.dtype),
        variances.sqrt().to(mixture.scales.dtype),
    )
