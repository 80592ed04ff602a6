"""Gaussians seated by a Chinese restaurant: the prior of neural clustering processes.

    N ~ Unif{lowest … highest}, one a batch
    y ~ CRP(α) given K ≤ K_max,  μ_k ~ N(0, c² I),  x_i ~ N(μ_{y_i}, s² I)

and, as published, the median of every coordinate is moved to zero. The defaults, α = 0.7,
K_max = 12, N in 50 … 199, c = 10, s = 1, are those of clusterwise processes; the pointwise one was
trained with N in 5 … 99. The weights of the true mixture are the shares of the labels, since a
restaurant has none of its own.

Pakman, Wang, Mitelut, Lee & Paninski, "Neural clustering processes", ICML 2020.
Wang, Lee, Basu, Lee, Teh, Paninski & Pakman, "Amortized probabilistic detection of communities in
graphs", 2020.
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
from asterism.priors.partitions import count_law, restaurant_labels

__all__ = ["RestaurantMixturePrior"]


@dataclass(frozen=True)
class RestaurantMixturePrior:
    """Spherical Gaussians of equal size with a CRP(``alpha``) partition.

    Parameters
    ----------
    alpha : float
        Concentration of the restaurant process.
    max_clusters : int
        Partitions of more clusters are drawn again.
    dim : int
        Number of columns.
    n_points : (int, int)
        Fewest and most points a data set.
    center_scale, scale : float
        Standard deviations of the centres, and of the points around them.
    centred : bool
        Move the median of every coordinate to zero; of two middle points the lower one counts.

    Examples
    --------
    >>> import torch
    >>> from asterism.priors import RestaurantMixturePrior
    >>> batch = RestaurantMixturePrior().sample(5, torch.Generator().manual_seed(0))
    >>> len(batch), batch.x.shape[2], bool((batch.labels[:, 0] == 0).all())
    (5, 2, True)
    """

    alpha: float = 0.7
    max_clusters: int = 12
    dim: int = 2
    n_points: tuple[int, int] = (50, 199)
    center_scale: float = 10.0
    scale: float = 1.0
    centred: bool = True

    def __post_init__(self) -> None:
        check_sizes(self.n_points)
        check_numbers(self, whole=("max_clusters", "dim"), real=("alpha", "center_scale", "scale"))
        accepted = float(count_law(self.n_points[1], self.alpha, self.max_clusters).sum())
        if accepted < 1e-3:
            raise ValueError(
                f"alpha={self.alpha} gives {self.n_points[1]} points at most max_clusters="
                f"{self.max_clusters} clusters with probability {accepted:.1e}, too seldom to wait "
                "for: lower alpha or raise max_clusters"
            )

    def sample(self, batch_size: int, generator: torch.Generator) -> SetBatch:
        """Draw ``batch_size`` data sets of one common size, with their labels and true mixture."""
        shape = (batch_size, self.max_clusters, self.dim)
        n_points = draw_size(self.n_points, generator)
        labels = restaurant_labels(batch_size, n_points, self.alpha, self.max_clusters, generator)
        means = self.center_scale * torch.randn(shape, generator=generator)
        scales = torch.full(shape, float(self.scale))
        x = draw_points(labels, means, scales, generator)
        if self.centred:
            middle = x.median(dim=1, keepdim=True).values
            x, means = x - middle, means - middle
        shares = torch.nn.functional.one_hot(labels, self.max_clusters).float().mean(dim=1)
        return mixture_batch(x, labels, shares, means, scales)
