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
    "merge_components",
    "pool_components",
    "reduce_mixture",
]

SCALE_FLOOR = 1e-4
"""Smallest standard deviation an M-step may return; a component on one point stays proper."""

LOG_FLOOR = -1e4
"""Smallest log-weight: that of a component which owns nothing stays finite."""


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
    log_weights = torch.log(count / count.sum(dim=-1, keepdim=True)).clamp_min(LOG_FLOOR)
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
    kinds = [part.dtype for part in mixture]
    wide = Mixture(*(part.double() for part in mixture))
    reduced = pool_components(wide, merge_components(wide, n_components))
    return Mixture(*(part.to(kind) for part, kind in zip(reduced, kinds, strict=True)))


def merge_components(mixture: Mixture, n_groups: int) -> Tensor:
    """Group (K,) of each component after merging, the cheapest pair first, to ``n_groups``.

    Groups are numbered by their first components.

    >>> means = torch.tensor([[0.0], [9.0], [1.0]])
    >>> merge_components(Mixture(torch.ones(3).log(), means, torch.ones(3, 1)), 2)
    tensor([0, 1, 0])
    """
    groups = torch.arange(len(mixture.means), device=mixture.means.device)
    while (n := int(groups.max()) + 1) > n_groups:
        now = pool_components(mixture, groups)
        weights, variances = now.log_weights.exp(), now.scales.square()
        pair = weights[:, None] + weights
        share = torch.sigmoid(now.log_weights[:, None] - now.log_weights).unsqueeze(-1)  # (n, n, 1)
        offset = now.means[:, None] - now.means
        merged = (
            share * variances[:, None]
            + (1 - share) * variances
            + share * (1 - share) * offset.square()
        )
        own = weights * variances.log().sum(dim=-1)
        cost = pair * merged.log().sum(dim=-1) - own[:, None] - own
        i, j = sorted(divmod(int(cost.fill_diagonal_(torch.inf).argmin()), n))
        groups = torch.where(groups == j, i, groups)
        groups = torch.where(groups > j, groups - 1, groups)
    return groups


def pool_components(mixture: Mixture, groups: Tensor) -> Mixture:
    """One component for each group (K,) of components, of the same weight, mean and variance."""
    if torch.equal(groups, torch.arange(len(groups), device=groups.device)):  # each by itself
        return mixture._replace(log_weights=mixture.log_weights.clamp_min(LOG_FLOOR))
    member = torch.nn.functional.one_hot(groups).mT.bool()  # (G, K)
    log_share = torch.where(member, mixture.log_weights.clamp_min(LOG_FLOOR), -torch.inf)
    log_weights = log_share.logsumexp(dim=1)
    share = (log_share - log_weights.unsqueeze(1)).exp()
    means = share @ mixture.means
    offset = mixture.means.unsqueeze(0) - means.unsqueeze(1)  # (G, K, D)
    second = mixture.scales.square().unsqueeze(0) + offset.square()
    variances = (share.unsqueeze(-1) * second).sum(dim=1)
    return Mixture(log_weights, means, variances.sqrt())
