"""Random labels: how many clusters there are and how large.

    Dirichlet   π ~ Dirichlet(α 1_K)
    uniform     K ~ Unif{lowest … highest}, the same on the first K components
    thinned     the same on all K, then component 0 is kept, every other with probability ½, and
                what is left sums to one again: K − 1 ~ Binomial(K_max − 1, ½) before empty clusters
    labels      y_i ~ Categorical(π)   independently for i = 1 … N

    restaurant  point i (from 0) opens a cluster with probability α / (α + i), else joins that of a
                point drawn evenly from those before it: so a cluster of n is joined with
                probability n / (α + i), as in the Chinese restaurant process CRP(α). Partitions of
                more clusters than allowed are drawn again.

Functions draw B data sets at once, and all randomness comes from the generator.

Lee, Lee & Teh, "Deep amortized clustering", 2019 (thinned). Pitman, "Combinatorial stochastic
processes", 2006, section 3.1 (restaurant).
"""

import math

import torch
from torch import Tensor

__all__ = [
    "count_law",
    "dirichlet",
    "draw_labels",
    "restaurant_labels",
    "thinned_dirichlet",
    "uniform_dirichlet",
    "without_gaps",
]


def dirichlet(shape: tuple[int, ...], alpha: float, generator: torch.Generator) -> Tensor:
    """Draw weights of this shape from the symmetric Dirichlet over the last axis.

    >>> weights = dirichlet((2, 3), 1.0, torch.Generator().manual_seed(0))
    >>> weights.sum(dim=-1).allclose(torch.ones(2))
    True
    """
    return _normalised(_gammas(shape, alpha, generator))


def uniform_dirichlet(
    batch_size: int, n_clusters: tuple[int, int], alpha: float, generator: torch.Generator
) -> Tensor:
    """Weights (B, highest) of which K, uniform on lowest … highest, are not zero: the first K.

    >>> weights = uniform_dirichlet(4, (2, 2), 1.0, torch.Generator().manual_seed(0))
    >>> (weights > 0).sum(dim=1)
    tensor([2, 2, 2, 2])
    """
    low, high = n_clusters
    count = torch.randint(low, high + 1, (batch_size, 1), generator=generator)
    gammas = _gammas((batch_size, high), alpha, generator)
    return _normalised(torch.where(torch.arange(high) < count, gammas, 0.0))


def thinned_dirichlet(
    batch_size: int, max_clusters: int, alpha: float, generator: torch.Generator
) -> Tensor:
    """Weights (B, max_clusters): component 0 is kept, every other is zero with probability ½.

    >>> weights = thinned_dirichlet(4, 1, 1.0, torch.Generator().manual_seed(0))
    >>> weights.flatten()
    tensor([1., 1., 1., 1.])
    """
    gammas = _gammas((batch_size, max_clusters), alpha, generator)
    kept = torch.rand(gammas.shape, generator=generator) < 0.5
    kept[:, 0] = True
    return _normalised(torch.where(kept, gammas, 0.0))


def draw_labels(weights: Tensor, n_points: int, generator: torch.Generator) -> Tensor:
    """Labels (B, N) drawn independently from weights (B, K)."""
    return torch.multinomial(weights, n_points, replacement=True, generator=generator)


def restaurant_labels(
    batch_size: int, n_points: int, alpha: float, max_clusters: int, generator: torch.Generator
) -> Tensor:
    """Labels (B, N) of CRP(α) given at most ``max_clusters`` clusters, by order of appearance.

    >>> labels = restaurant_labels(3, 50, 0.7, 4, torch.Generator().manual_seed(0))
    >>> bool((labels[:, 0] == 0).all()), int(labels.max()) <= 3
    (True, True)
    """
    opens = _openings(batch_size, n_points, alpha, max_clusters, generator)  # (B, N)
    # A point that opens no cluster follows an earlier one. Jumping twice as far each round finds
    # the founder of everybody's cluster in log₂ N rounds; founders follow themselves.
    place = torch.arange(n_points)
    earlier = (torch.rand(opens.shape, generator=generator) * place).long()
    followed = torch.where(opens, place, torch.minimum(earlier, (place - 1).clamp_min(0)))
    for _ in range(math.ceil(math.log2(max(n_points, 2)))):
        followed = followed.gather(1, followed)
    return (opens.cumsum(dim=1) - 1).gather(1, followed)


def count_law(n_points: int, alpha: float, max_clusters: int) -> Tensor:
    """P(K = k) for k = 0 … max_clusters clusters of N points under CRP(α), without rejection.

    The generating function is Π_i (i + α s) / (i + α), multiplied out one point at a time.

    >>> count_law(2, 1.0, 3)
    tensor([0.0000, 0.5000, 0.5000, 0.0000], dtype=torch.float64)
    """
    law = torch.zeros(max_clusters + 1, dtype=torch.float64)
    law[0] = 1.0
    for i in range(n_points):
        opens = alpha / (alpha + i)
        law[1:] = (1 - opens) * law[1:] + opens * law[:-1]
        law[0] *= 1 - opens
    return law


def without_gaps(labels: Tensor, n_clusters: int) -> tuple[Tensor, Tensor]:
    """Labels (B, N) renumbered 0 … K−1 in the same order, and the old number of each new one.

    Numbers below ``n_clusters`` that own no point come last in the second answer, (B, n_clusters):
    gather what describes the clusters by it.

    >>> without_gaps(torch.tensor([[3, 1, 3]]), 4)
    (tensor([[1, 0, 1]]), tensor([[1, 3, 0, 2]]))
    """
    absent = torch.ones(len(labels), n_clusters, dtype=torch.int64)
    absent.scatter_(1, labels, 0)
    order = absent.argsort(dim=1, stable=True)
    return order.argsort(dim=1).gather(1, labels), order


def _openings(
    batch_size: int, n_points: int, alpha: float, max_clusters: int, generator: torch.Generator
) -> Tensor:
    """Which points (B, N) open a cluster, given that at most ``max_clusters`` do."""
    chance = alpha / (alpha + torch.arange(n_points, dtype=torch.float64))
    opens = torch.zeros(batch_size, n_points, dtype=torch.bool)
    waiting = torch.arange(batch_size)
    while len(waiting):
        drawn = torch.rand(len(waiting), n_points, generator=generator) < chance
        opens[waiting] = drawn
        waiting = waiting[drawn.sum(dim=1) > max_clusters]
    return opens


def _gammas(shape: tuple[int, ...], alpha: float, generator: torch.Generator) -> Tensor:
    """Gamma(α) in double precision, never zero; ``torch.distributions`` offers no generator."""
    concentration = torch.full(shape, alpha, dtype=torch.float64)
    return torch._standard_gamma(concentration, generator=generator).clamp_min(1e-300)


def _normalised(gammas: Tensor) -> Tensor:
    return (gammas / gammas.sum(dim=-1, keepdim=True)).float()
