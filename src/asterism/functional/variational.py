"""The variational bound of a Dirichlet process mixture of Gaussians, from its statistics alone.

    q(v_k) = Beta(1 + n_k, α + n_>k),   q(μ_k, Σ_k) the conjugate posterior,   q(z_i = k) = r_ik
    bound = Σ_k [ log f(S_k) + log B(1 + n_k, α + n_>k) − log B(1, α) + H_k ]
    n_k = Σ_i r_ik,   n_>k = Σ_{j>k} n_j,   H_k = − Σ_i r_ik log r_ik,   S_k statistics under r

f is the evidence of :mod:`asterism.functional.niw`, of weighted rows. Statistics and entropies are
sums over rows, so those of batches may be kept and added up, and what a merge does to the bound is
known without the rows but for the entropy of the pair, which it can only lower:

    − Σ_i (r_ij + r_ik) log(r_ij + r_ik)  ≤  H_j + H_k

Hughes & Sudderth, "Memoized online variational inference for Dirichlet process mixture models",
NeurIPS 2013.
"""

import torch
from torch import Tensor

from asterism.functional.niw import NormalWishart, Statistics

__all__ = ["entropies", "expected_log_weights", "log_sticks", "pair_entropies", "variational_bound"]


def expected_log_weights(n: Tensor, alpha: float) -> Tensor:
    """E log π_k (K,) under the sticks broken in this order.

    >>> expected_log_weights(torch.tensor([1e6, 1e6], dtype=torch.float64), 1.0).exp().sum().round()
    tensor(1., dtype=torch.float64)
    """
    taken, left = 1 + n, alpha + _after(n)
    whole = torch.digamma(taken + left)
    passed = (torch.digamma(left) - whole).cumsum(0)
    return torch.digamma(taken) - whole + torch.cat([passed.new_zeros(1), passed[:-1]])


def log_sticks(n: Tensor, alpha: float) -> Tensor:
    """Σ_k log B(1 + n_k, α + n_>k) − log B(1, α), for counts (..., K)."""
    taken, left = 1 + n, alpha + _after(n)
    broken = torch.lgamma(taken) + torch.lgamma(left) - torch.lgamma(taken + left)
    return (broken + torch.log(torch.tensor(alpha, dtype=n.dtype))).sum(dim=-1)


def variational_bound(
    stats: Statistics, entropy: Tensor, prior: NormalWishart, alpha: float
) -> Tensor:
    """The bound of K clusters, given their statistics and H (K,)."""
    return prior.log_evidence(stats).sum() + log_sticks(stats.n, alpha) + entropy.sum()


def entropies(r: Tensor) -> Tensor:
    """H (K,) of responsibilities (N, K)."""
    return -torch.xlogy(r, r).sum(dim=0)


def pair_entropies(r: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Entropies (P,) of the unions of clusters under responsibilities (N, K)."""
    return entropies(r[:, first] + r[:, second])


def _after(n: Tensor) -> Tensor:
    """What comes after each: Σ_{j>k} n_j."""
    return n.flip(-1).cumsum(-1).flip(-1) - n
