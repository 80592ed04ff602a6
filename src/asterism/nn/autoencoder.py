"""Fully connected networks: the perceptron and the autoencoder every embedded method shares.

    f: D → 500 → 500 → 2000 → m      g: m → 2000 → 500 → 500 → D

ReLU between layers; code and output are linear; weights are untied.

Xie, Girshick & Farhadi, "Unsupervised deep embedding for clustering analysis", ICML 2016.
"""

import itertools
from collections.abc import Sequence

from torch import Tensor, nn

__all__ = ["Autoencoder", "perceptron"]


def perceptron(sizes: Sequence[int]) -> nn.Sequential:
    """Linear layers of these sizes with ReLU between them and nothing after the last."""
    layers: list[nn.Module] = []
    for fan_in, fan_out in itertools.pairwise(sizes):
        layers += [nn.Linear(fan_in, fan_out), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Autoencoder(nn.Module):
    """Encoder of the given hidden sizes to ``latent_dim``, and its mirror image."""

    def __init__(self, dim: int, hidden_dims: Sequence[int], latent_dim: int) -> None:
        super().__init__()
        sizes = [dim, *hidden_dims, latent_dim]
        self.encoder = perceptron(sizes)
        self.decoder = perceptron(sizes[::-1])

    def forward(self, x: Tensor) -> Tensor:
        """Reconstruction of ``x`` (..., D)."""
        return self.decoder(self.encoder(x))

    def loss(self, x: Tensor) -> Tensor:
        """Mean squared error over rows and columns."""
        return (self(x) - x).square().mean()
