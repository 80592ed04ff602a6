"""Random labels: how many clusters there are and how large.

π ~ Dirichlet(α 1_K),   y_i ~ Categorical(π)   independently for i = 1 … N
"""

import torch
from torch import Tensor

__all__ = ["dirichlet", "draw_labels"]


def dirichlet(shape: tuple[int, ...], alpha: float, generator: torch.Generator) -> Tensor:
    """Draw weights of this shape from the symmetric Dirichlet over the last axis.

    Gammas are normalised in double precision; ``torch.distributions`` offers no generator.
    """
    concentration = torch.full(shape, alpha, dtype=torch.float64)
    gamma = torch._standard_gamma(concentration, generator=generator).clamp_min(1e-300)
    return (gamma / gamma.sum(dim=-1, keepdim=True)).float()


def draw_labels(weights: Tensor, n_points: int, generator: torch.Generator) -> Tensor:
    """Labels (B, N) drawn independently from weights (B, K)."""
    return torch.multinomial(weights, n_points, replacement=True, generator=generator)
