"""Arcs of ellipses, turned and moved: clusters no Gaussian fits.

Each cluster has semi-axes a, b ~ 2 N(0, 1), an angle ρ ~ Unif(0, 2π), and a place on its ellipse
drawn as a cluster of the Gaussian prior in one dimension is. A point of it is

    r ~ N(m, s²),  m ~ N(0, 3²),  log s ~ N(log 0.25, 0.1²),      t = 2π · 0.4 · r
    p = (a cos t, b sin t) + e (b cos t, a sin t) / |(b cos t, a sin t)|,      e ~ N(0, 0.1²)
    x = R(ρ) p + min(K_max, 4) · N(0, I)                          one shift a cluster

The second term is the normal of the ellipse: arcs have a thickness of 0.1 at any place. Partitions
are thinned Dirichlet(5); N in 300 … 999. There is no likelihood in closed form, so no truth beyond
the labels.

Lee, Lee & Teh, "Deep amortized clustering", 2019.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from asterism.functional.sets import SetBatch
from asterism.priors.common import check_numbers, check_sizes, draw_points, draw_size
from asterism.priors.partitions import draw_labels, thinned_dirichlet, without_gaps

__all__ = ["WarpedMixturePrior"]


@dataclass(frozen=True)
class WarpedMixturePrior:
    """Arcs of ellipses in the plane, one to ``max_clusters`` of them.

    Parameters
    ----------
    max_clusters : int
        Largest number of clusters.
    n_points : (int, int)
        Fewest and most points a data set.
    thickness : float
        Standard deviation across an arc.
    concentration : float
        α of the Dirichlet distribution of the weights.

    Examples
    --------
    >>> import torch
    >>> from asterism.priors import WarpedMixturePrior
    >>> batch = WarpedMixturePrior().sample(5, torch.Generator().manual_seed(0))
    >>> len(batch), batch.x.shape[2], batch.truth is None
    (5, 2, True)
    """

    max_clusters: int = 4
    n_points: tuple[int, int] = (300, 999)
    thickness: float = 0.1
    concentration: float = 5.0

    dim: ClassVar[int] = 2

    def __post_init__(self) -> None:
        check_sizes(self.n_points)
        check_numbers(self, whole=("max_clusters",), real=("thickness", "concentration"))

    def sample(self, batch_size: int, generator: torch.Generator) -> SetBatch:
        """Draw ``batch_size`` data sets of one common size, with their labels."""
        n_points = draw_size(self.n_points, generator)
        weights = thinned_dirichlet(batch_size, self.max_clusters, self.concentration, generator)
        labels = draw_labels(weights, n_points, generator)

        def normal(*columns: int) -> Tensor:
            return torch.randn(batch_size, self.max_clusters, *columns, generator=generator)

        place = 3 * normal(1)
        spread = (math.log(0.25) + 0.1 * normal(1)).exp()
        axes = 2 * normal(2)
        turn = 2 * math.pi * torch.rand(axes.shape[:2], generator=generator)
        shift = min(self.max_clusters, 4) * normal(2)
        angle = 2 * math.pi * 0.4 * draw_points(labels, place, spread, generator)  # (B, N, 1)
        member = labels.unsqueeze(-1).expand(-1, -1, 2)
        across = self.thickness * torch.randn(angle.shape, generator=generator)
        arc = thick_ellipse(angle, axes.gather(1, member), across)
        x = rotate(arc, turn.gather(1, labels)) + shift.gather(1, member)
        labels, _ = without_gaps(labels, self.max_clusters)
        return SetBatch(x, torch.ones(labels.shape, dtype=torch.bool), labels)


def thick_ellipse(angle: Tensor, axes: Tensor, across: Tensor) -> Tensor:
    """Points (..., 2) at an angle (..., 1), and a distance (..., 1) off, of ellipses (..., 2)."""
    circle = torch.cat([angle.cos(), angle.sin()], dim=-1)
    normal = torch.nn.functional.normalize(axes.flip(-1) * circle, dim=-1)
    return axes * circle + across * normal


def rotate(x: Tensor, angle: Tensor) -> Tensor:
    """Points (..., 2) turned about the origin by angles (...)."""
    cos, sin = angle.cos(), angle.sin()
    first, second = x.unbind(dim=-1)
    return torch.stack([cos * first - sin * second, sin * first + cos * second], dim=-1)
