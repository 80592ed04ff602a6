"""Partitions grown one whole cluster at a time: their steps, their bound, their probability.

    anchor   d_k uniform over the unassigned points; cluster k is the anchor and all that join it
    joining  p(b | z) = Π_i p_i^{b_i} (1 − p_i)^{1 − b_i} over the other unassigned points

Give every point of a known partition a random time. Anchors drawn uniformly at random are then the
earliest member of each cluster, and clusters come in the order of their earliest members: so are
teacher-forced steps drawn that agree with those of sampling.

The latent z is integrated by importance weights of draws z_s = μ + σ ε_s from a posterior q,

    w_s = p(z_s) p(b | z_s) / q(z_s),   bound = log (1/S) Σ_s w_s ≤ log p(b),   r_s = w_s / Σ_t w_t

whose doubly reparameterised gradient is Σ_s r_s ∇ log w_s for the parameters of p and of the
joining, and Σ_s r_s² (∂ log w_s / ∂z_s) ∇z_s for those of q, which are held fixed inside log q.

Pakman, Wang, Mitelut, Lee & Paninski, "Neural clustering processes", ICML 2020. Wang, Lee, Basu,
Lee, Teh, Paninski & Pakman, "Amortized probabilistic detection of communities in graphs", 2020.
Tucker, Lawson, Gu & Maddison, "Doubly reparameterized gradient estimators for Monte Carlo
objectives", ICLR 2019.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from asterism.functional.partitions import by_appearance

__all__ = [
    "Steps",
    "importance_bound",
    "log_mean_exp",
    "normal_log_prob",
    "order_log_probability",
    "partition_steps",
    "random_times",
    "sums_before",
]


class Steps(NamedTuple):
    """R steps of growing known partitions, in order within a data set.

    ``owner`` (R,) data set of each step, ``number`` (R,) its place there, ``open`` (R, N) points
    yet unassigned, ``member`` (R, N) those of the step's cluster, ``anchor`` (R,) one of these.
    """

    owner: Tensor
    number: Tensor
    open: Tensor
    member: Tensor
    anchor: Tensor

    @property
    def log_share(self) -> Tensor:
        """Log |s_k| / n_k, (R,): that a random anchor meets the step's cluster."""
        return self.member.sum(dim=1).log() - self.open.sum(dim=1).log()


def random_times(shape: Sequence[int], generator: torch.Generator | None = None) -> Tensor:
    """A random order of the points of each data set (B, N), as times 0 … N − 1, no two alike."""
    return torch.rand(*shape, generator=generator).argsort(dim=1).float()


def partition_steps(labels: Tensor, times: Tensor) -> Steps:
    """Steps that grow partitions (B, N), -1 for padding, in the order that ``times`` (B, N) give.

    A step at which only the anchor is left decides nothing, and is left out.

    >>> steps = partition_steps(torch.tensor([[0, 1, 0]]), torch.tensor([[3.0, 1.0, 2.0]]))
    >>> steps.anchor, steps.open.tolist()
    (tensor([1, 2]), [[True, True, True], [True, False, True]])
    """
    order = by_appearance(labels, times)
    counts = order.amax(dim=1) + 1
    exists = torch.arange(int(counts.max()), device=labels.device) < counts[:, None]
    owner, number = exists.nonzero(as_tuple=True)
    open_ = order[owner] >= number[:, None]
    member = order[owner] == number[:, None]
    anchor = torch.where(member, times[owner], math.inf).argmin(dim=1)
    steps = Steps(owner, number, open_, member, anchor)
    decides = open_.sum(dim=1) > 1
    return Steps(*(part[decides] for part in steps))


def sums_before(values: Tensor, steps: Steps) -> Tensor:
    """For each step the sum of ``values`` (R, C) over the earlier steps of its data set, (R, C).

    >>> steps = partition_steps(torch.tensor([[0, 1, 1]]), torch.tensor([[0.0, 1.0, 2.0]]))
    >>> sums_before(torch.tensor([[5.0], [7.0]]), steps).flatten()
    tensor([0., 5.])
    """
    if not len(values):
        return values
    sizes = (int(steps.owner.max()) + 1, int(steps.number.max()) + 2, values.shape[1])
    # One place later, so that nothing need be subtracted and the first sum is exactly zero.
    table = values.new_zeros(sizes).index_put((steps.owner, steps.number + 1), values)
    return table.cumsum(dim=1)[steps.owner, steps.number]


def order_log_probability(steps: Steps, n_partitions: int) -> Tensor:
    """Log-probability (B,) that uniform anchors meet the clusters in this order: Σ_k log |s_k|/n_k.

    >>> steps = partition_steps(torch.tensor([[0, 1, 1, 1]]), torch.arange(4.0)[None])
    >>> order_log_probability(steps, 1).exp()
    tensor([0.2500])
    """
    log_share = steps.log_share
    return log_share.new_zeros(n_partitions).index_add(0, steps.owner, log_share)


def normal_log_prob(z: Tensor, mean: Tensor, log_scale: Tensor) -> Tensor:
    """Log density of axis-aligned Gaussians, summed over the last axis."""
    standard = (z - mean) * torch.exp(-log_scale)
    return (-0.5 * standard.square() - log_scale - 0.5 * math.log(2 * math.pi)).sum(dim=-1)


def log_mean_exp(log_weights: Tensor, dim: int = -1) -> Tensor:
    """Log of the mean of exponentials along an axis."""
    return log_weights.logsumexp(dim=dim) - math.log(log_weights.shape[dim])


def importance_bound(log_weights: Tensor, z: Tensor) -> Tensor:
    """Importance-weighted bound (R,) of ``log_weights`` (R, S), doubly reparameterised in ``z``.

    ``log_weights`` must have been computed from ``z`` (R, S, Z) with the parameters of q detached
    inside log q. The value is the bound; its gradient is that of the header.
    """
    share = log_weights.detach().softmax(dim=-1)  # r
    if z.requires_grad:
        # What reaches z carries r once already, from the sum below.
        z.register_hook(lambda gradient: share.unsqueeze(-1) * gradient)
    surrogate = (share * log_weights).sum(dim=-1)
    return surrogate + (log_mean_exp(log_weights) - surrogate).detach()
