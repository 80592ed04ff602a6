"""Images as rows: a convolutional code of each, and a conditional VAE that describes a cluster.

A row of D = channels · side² numbers in [0, 1] is one image. With a cluster's context c:

    encoder   conv k3 s2, conv k3 s2, conv k3 s1  →  h, one flat code an image
    q(z|x,c)  N(m, s²),  (m, log s) = W [h; c]
    p(z|c)    masked autoregressive flow with linear mixings
    p(x|z,c)  Bernoulli, logits by W [z; c], then transposed convolutions that mirror the encoder

    log p(x; c) ≥ ( log p(x|z,c) + log p(z|c) − log q(z|x,c) ) / side²,   z ~ q

a bound from one draw of z, in units a pixel so that it does not drown the memberships' loss. In
training the noise comes from torch's global generator. In evaluation one fixed draw serves every
row: the value of a row is then a function of that row and its context alone. Normalisation is by
groups of channels of one image for the same reason; the published batch normalisation would let the
company of a row, padding included, change its value.

Lee, Lee & Teh, "Deep amortized clustering", 2019, the experiment on images.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from asterism.nn.densities import ConditionalDensity, MaskedFlow, standard_normal_log_prob

__all__ = ["ConvolutionalEncoder", "VariationalDensity"]

_STRIDES = (2, 2, 1)


def _sides(side: int) -> list[int]:
    """Side of an image before and after each convolution."""
    sides = [side]
    for stride in _STRIDES:
        sides.append((sides[-1] - 3) // stride + 1)
    if sides[-1] < 1:
        raise ValueError(f"side={side}: three convolutions leave nothing; the least side is 15")
    return sides


def _group_norm(channels: int) -> nn.GroupNorm:
    return nn.GroupNorm(math.gcd(8, channels), channels)


class ConvolutionalEncoder(nn.Module):
    """Rows (..., channels · side²) to flat codes (..., ``out_dim``).

    >>> encoder = ConvolutionalEncoder(side=28, widths=(8, 8, 16))
    >>> encoder(torch.zeros(2, 3, 784)).shape, encoder.out_dim
    (torch.Size([2, 3, 256]), 256)
    """

    def __init__(
        self, side: int = 28, channels: int = 1, widths: Sequence[int] = (32, 64, 128)
    ) -> None:
        super().__init__()
        self.shape = (channels, side, side)
        self.sides = _sides(side)
        first, second, third = widths
        self.layers = nn.Sequential(
            nn.Conv2d(channels, first, 3, stride=2),
            _group_norm(first),
            nn.ReLU(),
            nn.Conv2d(first, second, 3, stride=2),
            _group_norm(second),
            nn.ReLU(),
            nn.Conv2d(second, third, 3),
        )
        self.out_dim = third * self.sides[-1] ** 2

    def forward(self, x: Tensor) -> Tensor:
        """One code an image, each by itself."""
        images = x.reshape(-1, *self.shape)
        return self.layers(images).reshape(*x.shape[:-1], self.out_dim)


class _Decoder(nn.Module):
    """Codes [z; c] to Bernoulli logits of the pixels, the mirror of the encoder."""

    def __init__(self, in_dim: int, side: int, channels: int, widths: Sequence[int]) -> None:
        super().__init__()
        sides = _sides(side)
        first, second, third = widths
        self.start = (third, sides[3], sides[3])
        self.linear = nn.Linear(in_dim, third * sides[3] ** 2)
        # A convolution of stride 2 forgets whether the last row was there; the padding says so.
        padding = [sides[i] - (sides[i + 1] - 1) * _STRIDES[i] - 3 for i in range(3)]
        self.layers = nn.Sequential(
            nn.ConvTranspose2d(third, second, 3, output_padding=padding[2]),
            _group_norm(second),
            nn.ReLU(),
            nn.ConvTranspose2d(second, first, 3, stride=2, output_padding=padding[1]),
            _group_norm(first),
            nn.ReLU(),
            nn.ConvTranspose2d(first, channels, 3, stride=2, output_padding=padding[0]),
        )

    def forward(self, code: Tensor) -> Tensor:
        """(B, N, in_dim) to (B, N, channels · side²)."""
        rows = F.relu(self.linear(code)).reshape(-1, *self.start)
        return self.layers(rows).reshape(*code.shape[:-1], -1)


class VariationalDensity(ConditionalDensity):
    """Conditional VAE over images, a lower bound a pixel.

    Parameters
    ----------
    context_dim : int
        Size of the context.
    side, channels : int
        Shape of an image; a row has ``channels * side**2`` entries in [0, 1].
    latent_dim : int
        Size of z.
    widths : sequence of three ints
        Channels of the convolutions.
    n_transforms, hidden : int, int
        Steps of the prior's flow and width of their networks.

    Examples
    --------
    >>> density = VariationalDensity(8, latent_dim=4, widths=(8, 8, 8), n_transforms=1, hidden=8)
    >>> density.log_prob(torch.zeros(2, 3, 784), torch.zeros(2, 8)).shape
    torch.Size([2, 3])
    """

    is_bound = True

    def __init__(
        self,
        context_dim: int,
        *,
        side: int = 28,
        channels: int = 1,
        latent_dim: int = 128,
        widths: Sequence[int] = (32, 64, 128),
        n_transforms: int = 6,
        hidden: int = 256,
    ) -> None:
        super().__init__()
        self.latent_dim, self.nats = latent_dim, float(side**2)
        self.encoder = ConvolutionalEncoder(side, channels, widths)
        self.posterior = nn.Linear(self.encoder.out_dim + context_dim, 2 * latent_dim)
        self.prior = MaskedFlow(
            latent_dim, context_dim, n_transforms=n_transforms, hidden=(hidden, hidden), mixing=True
        )
        self.decoder = _Decoder(latent_dim + context_dim, side, channels, widths)

    def log_prob(self, x: Tensor, context: Tensor) -> Tensor:
        """The bound, divided by the number of pixels, (B, N)."""
        told = context.unsqueeze(1).expand(-1, x.shape[1], -1)
        code = torch.cat([self.encoder(x), told], dim=-1)
        mean, log_scale = self.posterior(code).chunk(2, dim=-1)
        noise = self._noise(mean)
        z = mean + log_scale.exp() * noise
        log_q = standard_normal_log_prob(noise) - log_scale.sum(dim=-1)
        logits = self.decoder(torch.cat([z, told], dim=-1))
        log_x = -F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(dim=-1)
        return (log_x + self.prior.log_prob(z, context) - log_q) / self.nats

    def _noise(self, like: Tensor) -> Tensor:
        """A draw a row in training; one draw for all rows, always the same, in evaluation."""
        if self.training:
            return torch.randn_like(like)
        fixed = torch.randn(self.latent_dim, generator=torch.Generator().manual_seed(0))
        return fixed.to(like).expand_as(like)
