"""Densities of one cluster given a row that describes it: log p(x; θ(c)).

    ConditionalDensity.log_prob(x (B, N, D), context (B, C)) -> (B, N)

gaussian   (μ, raw) = W c,  σ = softplus(raw) + ε:     log N(x; μ, diag σ²)
maf        T steps u ← flip((u − shift) / scale) from u = x, then log N(u; 0, I) − Σ log scale, with
           (shift, scale)_d a masked network of (u_{<d}, c)

In the masked network the context is one more input that every output may depend on: it enters the
first hidden layer of every group of units, those of the first coordinate too. The form released
with DAC (``faithful``) adds the context to hidden units that all follow the first coordinate, so
that shift and scale of that coordinate are constants and only every second update is conditioned
when D = 2. As the context is one row a set, its share of the first layer is computed once a set and
broadcast to the points.

Papamakarios, Pavlakou & Murray, "Masked autoregressive flow for density estimation", NeurIPS 2017;
Lee, Lee & Teh, "Deep amortized clustering", 2019.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from zuko.nn import MaskedMLP

__all__ = ["ConditionalDensity", "GaussianDensity", "MaskedFlow", "standard_normal_log_prob"]

SCALE_FLOOR = 1e-5
"""Least standard deviation, so that a density stays finite."""


class ConditionalDensity(nn.Module):
    """What describes one cluster: a density of rows, given the row that stands for the cluster."""

    is_bound = False
    """Whether ``log_prob`` is a lower bound of the logarithm of a density."""

    nats: float = 1.0
    """Nats in a unit of ``log_prob``."""

    def log_prob(self, x: Tensor, context: Tensor) -> Tensor:
        """Points (B, N, D) under one context (B, C) a set: (B, N)."""
        raise TypeError(f"{type(self).__name__} must define log_prob")


def standard_normal_log_prob(u: Tensor) -> Tensor:
    """Log N(u; 0, I), the last axis summed.

    >>> standard_normal_log_prob(torch.zeros(2))
    tensor(-1.8379)
    """
    return -(u.square().sum(dim=-1) + u.shape[-1] * math.log(2 * math.pi)) / 2


class GaussianDensity(ConditionalDensity):
    """Axis-aligned Gaussian.

    >>> density = GaussianDensity(dim=2, context_dim=8)
    >>> density.log_prob(torch.zeros(3, 5, 2), torch.zeros(3, 8)).shape
    torch.Size([3, 5])
    """

    def __init__(self, dim: int, context_dim: int) -> None:
        super().__init__()
        self.head = nn.Linear(context_dim, 2 * dim)

    def parameters_of(self, context: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation (B, D)."""
        mean, raw = self.head(context).chunk(2, dim=-1)
        return mean, F.softplus(raw) + SCALE_FLOOR

    def log_prob(self, x: Tensor, context: Tensor) -> Tensor:
        """Log N(x; μ, diag σ²), (B, N)."""
        mean, scale = (part.unsqueeze(1) for part in self.parameters_of(context))
        return standard_normal_log_prob((x - mean) / scale) - scale.log().sum(dim=-1)


class _MaskedStep(nn.Module):
    """u = (x − shift) / scale with (shift, scale)_d of (x_{<d}, context)."""

    def __init__(self, dim: int, context_dim: int, hidden: Sequence[int], faithful: bool) -> None:
        super().__init__()
        self.dim = dim
        adjacency = torch.ones(dim, dim, dtype=torch.bool).tril(-1)
        if not faithful:
            seen = torch.ones(dim, context_dim, dtype=torch.bool)
            adjacency = torch.cat([adjacency, seen], dim=1)
        # Rows of the output: shift and raw scale of each coordinate in turn.
        self.masked = MaskedMLP(adjacency.repeat_interleave(2, dim=0), hidden, activation=nn.ELU)
        self.told = nn.Linear(context_dim, hidden[0], bias=False) if faithful else None

    def forward(self, x: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
        """(B, N, D) to u of the same shape and −Σ log scale, (B, N)."""
        first, *rest = self.masked
        weight = first.mask * first.weight  # (hidden, D [+ C])
        if self.told is None:
            told = F.linear(context, weight[:, self.dim :], first.bias)
        else:
            told = self.told(context) + first.bias
        out = F.linear(x, weight[:, : self.dim]) + told.unsqueeze(1)
        for layer in rest:
            out = layer(out)
        shift, raw = out.unflatten(-1, (self.dim, 2)).unbind(dim=-1)
        scale = F.softplus(raw) + SCALE_FLOOR
        return (x - shift) / scale, -scale.log().sum(dim=-1)


class _Mixing(nn.Module):
    """u = L U x with a unit lower triangle L and an upper triangle U of positive diagonal."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.factors = nn.Parameter(torch.zeros(dim, dim))
        self.log_diagonal = nn.Parameter(torch.zeros(dim))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(..., D) to the same shape, and log |det|, a scalar."""
        upper = self.factors.triu(1) + self.log_diagonal.exp().diag()
        lower = self.factors.tril(-1) + torch.eye(len(upper), device=x.device, dtype=x.dtype)
        return x @ (lower @ upper).mT, self.log_diagonal.sum()


class MaskedFlow(ConditionalDensity):
    """Conditional masked autoregressive flow.

    Parameters
    ----------
    dim, context_dim : int
        Sizes of a point and of the context.
    n_transforms : int
        Masked steps, the coordinates flipped after each.
    hidden : sequence of int
        Hidden widths of each step's network.
    faithful : bool
        The form released with DAC, where the first coordinate of a step ignores the context; needs
        two coordinates at least.
    mixing : bool
        An invertible linear map after each flip, for many coordinates.

    Examples
    --------
    >>> flow = MaskedFlow(dim=2, context_dim=8, hidden=(16, 16))
    >>> flow.log_prob(torch.zeros(3, 5, 2), torch.zeros(3, 8)).shape
    torch.Size([3, 5])
    """

    def __init__(
        self,
        dim: int,
        context_dim: int,
        *,
        n_transforms: int = 4,
        hidden: Sequence[int] = (128, 128),
        faithful: bool = False,
        mixing: bool = False,
    ) -> None:
        super().__init__()
        if faithful and dim < 2:
            raise ValueError(f"faithful=True with dim={dim}: nothing would depend on the context")
        self.steps = nn.ModuleList(
            _MaskedStep(dim, context_dim, hidden, faithful) for _ in range(n_transforms)
        )
        self.mixings = nn.ModuleList(_Mixing(dim) for _ in range(n_transforms if mixing else 0))

    def log_prob(self, x: Tensor, context: Tensor) -> Tensor:
        """Change of variables to the standard normal, (B, N)."""
        log_det = x.new_zeros(x.shape[:-1])
        for i, step in enumerate(self.steps):
            x, more = step(x, context)
            x, log_det = x.flip(-1), log_det + more
            if self.mixings:
                x, more = self.mixings[i](x)
                log_det = log_det + more
        return standard_normal_log_prob(x) + log_det
