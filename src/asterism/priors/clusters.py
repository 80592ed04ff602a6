"""Mixtures of an unknown number of Gaussians: the training prior of deep amortised clustering.

    N ~ Unif{lowest … highest}, one a batch
    π ~ thinned Dirichlet(α 1_K) or, if asked, K ~ Unif{1 … K_max}; see ``partitions``
    μ_kd ~ N(0, c²),  log σ_kd ~ N(log s, w²)
    y_i ~ Categorical(π),  x_i ~ N(μ_{y_i}, diag σ_{y_i}²)

The defaults are the published ones: N in 300 … 999, K_max = 4, α = 1, c = 3, s = 0.25, w = 0.1.

Lee, Lee & Teh, "Deep amortized clustering", 2019.
"""

import math
from dataclasses import dataclass

import torch

from asterism.functional.sets import SetBatch
from asterism.priors.common import (
    check_numbers,
    check_sizes,
    draw_points,
    draw_size,
    mixture_batch,
)
from asterism.priors.partitions import draw_labels, thinned_dirichlet, uniform_dirichlet

__all__ = ["ClusterMixturePrior"]


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

    def __post_init__(self) -> None:
        check_sizes(self.n_points)
        check_numbers(
            self,
            whole=("max_clusters", "dim"),
            real=("center_scale", "scale", "scale_spread", "concentration"),
        )
        if self.partition not in ("thinned", "uniform"):
            raise ValueError(f"partition={self.partition!r} must be 'thinned' or 'uniform'")

    def sample(self, batch_size: int, generator: torch.Generator) -> SetBatch:
        """Draw ``batch_size`` data sets of one common size, with their labels and true mixture."""
        shape = (batch_size, self.max_clusters, self.dim)
        n_points = draw_size(self.n_points, generator)
        if self.partition == "thinned":
            weights = thinned_dirichlet(*shape[:2], self.concentration, generator)
        else:
            counts = (1, self.max_clusters)
            weights = uniform_dirichlet(batch_size, counts, self.concentration, generator)
        means = self.center_scale * torch.randn(shape, generator=generator)
        spread = self.scale_spread * torch.randn(shape, generator=generator)
        scales = (math.log(self.scale) + spread).exp()
        labels = draw_labels(weights, n_points, generator)
        x = draw_points(labels, means, scales, generator)
        return mixture_batch(x, labels, weights, means, scales)
