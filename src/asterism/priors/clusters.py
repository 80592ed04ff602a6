"""Mixtures of an unknown number of Gaussians: the training prior of deep amortised clustering.

    N ~ Unif{lowest … highest}, one a batch
    π ~ thinned Dirichlet(α 1_K) or, if asked, K ~ Unif{1 … K_max}; see ``partitions``
    μ_kd ~ N(0, c²),  log σ_kd ~ N(log s, w²)
    y_i ~ Categorical(π),  x_i ~ N(μ_{y_i}, diag σ_{y_i}²)

The defaults are the published ones: N in 300 … 999, K_max = 4, α = 1, c = 3, s = 0.25, w = 0.1.

Few clusters in a wide plane seldom overlap, many do, and a network that has seen few cannot tell
two that do from one. So a share of the data sets may be crowded: centres lie about a common point,

    μ_kd = √(1 − t²) c m_d + t c ε_kd,   m, ε ~ N(0, 1),  log t ~ Unif[log 0.05, 0]

so that each by itself is N(0, c²) still. And a share may have lost clusters to earlier passes of a
filtering; see ``leftovers``.

Lee, Lee & Teh, "Deep amortized clustering", 2019.
"""

import math
from dataclasses import dataclass, replace

import torch

from asterism.functional.sets import SetBatch
from asterism.priors.common import (
    check_numbers,
    check_sizes,
    draw_points,
    draw_size,
    mixture_batch,
)
from asterism.priors.leftovers import take_clusters
from asterism.priors.partitions import draw_labels, thinned_dirichlet, uniform_dirichlet

__all__ = ["ClusterMixturePrior"]

_CLOSEST = 0.05
"""Least t, the part of the centres' deviation that a crowded data set keeps."""


@dataclass(frozen=True)
class ClusterMixturePrior:
    """Axis-aligned Gaussians, one to ``max_clusters`` of them, with normal centres.

    Parameters
    ----------
    max_clusters, dim : int
        Largest number of clusters, and number of columns.
    n_points : (int, int)
        Fewest and most points a data set.
    center_scale : float
        Standard deviation of the centres.
    scale, scale_spread : float
        Median of the clusters' standard deviations, and the deviation of their logarithms.
    concentration : float
        α of the Dirichlet distribution of the weights.
    crowding, filtered : float
        Share of the data sets that are crowded, and of those that have lost clusters.
    partition : {"thinned", "uniform"}
        Law of the number of clusters.

    Examples
    --------
    >>> import torch
    >>> from asterism.priors import ClusterMixturePrior
    >>> batch = ClusterMixturePrior(max_clusters=6).sample(5, torch.Generator().manual_seed(0))
    >>> len(batch), batch.x.shape[2], int(batch.labels.max()) < 6
    (5, 2, True)
    """

    max_clusters: int = 4
    dim: int = 2
    n_points: tuple[int, int] = (300, 999)
    center_scale: float = 3.0
    scale: float = 0.25
    scale_spread: float = 0.1
    concentration: float = 1.0
    partition: str = "thinned"
    crowding: float = 0.0
    filtered: float = 0.0

    def __post_init__(self) -> None:
        check_sizes(self.n_points)
        check_numbers(
            self,
            whole=("max_clusters", "dim"),
            real=("center_scale", "scale", "scale_spread", "concentration"),
        )
        if self.partition not in ("thinned", "uniform"):
            raise ValueError(f"partition={self.partition!r} must be 'thinned' or 'uniform'")
        for name in ("crowding", "filtered"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name}={getattr(self, name)} must be a share, from 0 to 1")

    @property
    def plain(self) -> "ClusterMixturePrior":
        """The same but for crowds and losses: what the data of users are likened to."""
        return replace(self, crowding=0.0, filtered=0.0)

    def sample(self, batch_size: int, generator: torch.Generator) -> SetBatch:
        """Draw ``batch_size`` data sets of one common size, with their labels and true mixture."""
        shape = (batch_size, self.max_clusters, self.dim)
        n_points = draw_size(self.n_points, generator)
        if self.partition == "thinned":
            weights = thinned_dirichlet(*shape[:2], self.concentration, generator)
        else:
            counts = (1, self.max_clusters)
            weights = uniform_dirichlet(batch_size, counts, self.concentration, generator)
        means = self.center_scale * self._centers(shape, generator)
        spread = self.scale_spread * torch.randn(shape, generator=generator)
        scales = (math.log(self.scale) + spread).exp()
        labels = draw_labels(weights, n_points, generator)
        x = draw_points(labels, means, scales, generator)
        batch = mixture_batch(x, labels, weights, means, scales)
        if self.filtered == 0:
            return batch
        chosen = torch.rand(batch_size, generator=generator) < self.filtered
        return take_clusters(batch, chosen, generator)

    def _centers(self, shape: tuple[int, int, int], generator: torch.Generator) -> torch.Tensor:
        """Centres (B, K, D), standard normal each, those of crowded data sets together."""
        own = torch.randn(shape, generator=generator)
        if self.crowding == 0:  # the draws of a seed stay as they were
            return own
        common = torch.randn(shape[0], 1, shape[2], generator=generator)
        crowded, depth = torch.rand(2, shape[0], 1, 1, generator=generator)
        t = torch.where(crowded < self.crowding, _CLOSEST**depth, 1.0)
        return (1 - t.square()).sqrt() * common + t * own
