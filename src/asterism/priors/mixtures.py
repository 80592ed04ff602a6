"""Data sets drawn from mixtures of Gaussians with known parameters.

    N ~ Unif{lowest … highest}, one a batch
    π ~ Dirichlet(α 1_K),  μ_kd ~ Unif(−c, c),  σ_kd = s
    y_i ~ Categorical(π),  x_i ~ N(μ_{y_i}, diag σ_{y_i}²)

The defaults, with K = 4 in two dimensions, are the published training prior of the Set
Transformer (Lee et al., ICML 2019, supplement): N in 100 … 500, c = 4, s = 0.3, α = 1.
"""

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
from asterism.priors.partitions import dirichlet, draw_labels

__all__ = ["GaussianMixturePrior"]


@dataclass(frozen=True)
class GaussianMixturePrior:
    """Spherical Gaussians with centres uniform in a box.

    Examples
    --------
    >>> import torch
    >>> from asterism.priors import GaussianMixturePrior
    >>> batch = GaussianMixturePrior(n_clusters=3).sample(5, torch.Generator().manual_seed(0))
    >>> len(batch), batch.x.shape[2], int(batch.labels.max()) < 3
    (5, 2, True)
    """

    n_clusters: int = 4
    dim: int = 2
    n_points: tuple[int, int] = (100, 500)
    box: float = 4.0
    scale: float = 0.3
    concentration: float = 1.0

    def __post_init__(self) -> None:
        check_sizes(self.n_points)
        check_numbers(self, whole=("n_clusters", "dim"), real=("box", "scale", "concentration"))

    def sample(self, batch_size: int, generator: torch.Generator) -> SetBatch:
        """Draw ``batch_size`` data sets of one common size, with their labels and true mixture."""
        shape = (batch_size, self.n_clusters, self.dim)
        n_points = draw_size(self.n_points, generator)
        weights = dirichlet(shape[:2], self.concentration, generator)
        means = (2 * torch.rand(shape, generator=generator) - 1) * self.box
        scales = torch.full(shape, self.scale)
        labels = draw_labels(weights, n_points, generator)
        x = draw_points(labels, means, scales, generator)
        return mixture_batch(x, labels, weights, means, scales)
