"""Codes drawn to the centres of their clusters.

    kmeans(z) = mean_i min_k |z_i − μ_k|²           centres are held constant

Yang, Fu, Sidiropoulos & Hong, "Towards k-means-friendly spaces: simultaneous deep learning and
clustering", ICML 2017.
"""

import torch
from torch import Tensor

__all__ = ["kmeans_loss"]


def kmeans_loss(z: Tensor, centers: Tensor) -> Tensor:
    """Mean over points of the squared distance to the nearest centre: (N, D), (K, D) give a scalar.

    The nearest is looked up first, so that no gradient passes through the other distances.
    """
    with torch.no_grad():
        nearest = torch.cdist(z, centers).argmin(dim=-1)
    return (z - centers[nearest]).square().sum(dim=-1).mean()
