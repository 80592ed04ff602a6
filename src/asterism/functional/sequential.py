"""The chain rule over partitions: one point after another joins a cluster or opens a new one.

    q(c | x) = Π_n q(c_n | c_<n, x),     q(c_n = k | …) = softmax_k f(G_k, U),   k = 1 … K+1
    H_k = Σ_{i<n, c_i=k} h(x_i),   U = Σ_{i>n} u(x_i),   G = Σ_k g(H_k)
    G_k = G − g(H_k) + g(H_k + h(x_n)),   g of an empty cluster being nothing

K is the number of clusters before step n, so the first point opens the first with certainty. When
the labels are given nothing is sequential: H_k before step n is the sum over the cluster of its
latest member, and g(H_k) is what was worked out as that member joined. All steps and hypotheses are
one call of g and one of f, on the pairs (n, k) that exist and no others.

The maps come in the form of a :class:`PartitionScorer`: since H, U and G are sums and f begins with
a linear map, sums are taken of what that map and its like make of single terms.

Pakman, Wang, Mitelut, Lee & Paninski, "Neural clustering processes", ICML 2020.
"""

from functools import partial
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from asterism.functional.partitions import by_appearance

__all__ = [
    "Codes",
    "PartitionScorer",
    "in_order",
    "order_log_probs",
    "random_orders",
    "step_log_probs",
    "sums_of_later",
]


class Codes(NamedTuple):
    """What points bring along, (..., N, C) each."""

    join: Tensor  # added to the sum of the cluster it joins
    wait: Tensor  # counted among the points still to come


class PartitionScorer(Protocol):
    """The maps of the chain rule, up to the linear ones that sums allow to be taken early."""

    def encode(self, x: Tensor) -> Codes:
        """Codes of points (..., D)."""
        ...

    def state(self, sums: Tensor) -> Tensor:
        """What clusters with these sums of ``join`` (..., C) add to the total, (..., C)."""
        ...

    def score(self, totals: Tensor) -> Tensor:
        """Logit (...) of a hypothesis by its total: states of all clusters, and points to come."""
        ...


def random_orders(keep: Tensor, n_orders: int, generator: torch.Generator | None = None) -> Tensor:
    """Orders (B, n_orders, N) in which to read the points; padding comes last.

    >>> keep = torch.tensor([[True, False, True]])
    >>> random_orders(keep, 2, torch.Generator().manual_seed(0))[..., 2].tolist()
    [[1, 1]]
    """
    shape = (len(keep), n_orders, keep.shape[1])
    # Drawn where the generator lives; two for padding is more than any draw.
    chance = torch.rand(shape, generator=generator).to(keep.device)
    return torch.where(keep[:, None], chance, 2.0).argsort(dim=-1)


def in_order(values: Tensor, orders: Tensor) -> Tensor:
    """Rows of ``values`` (B, N, ...) along orders (B, S, N): (B, S, N, ...)."""
    start = values.shape[1] * torch.arange(len(values), device=values.device)[:, None, None]
    rows = values.flatten(0, 1).index_select(0, (start + orders).flatten())
    return rows.view(*orders.shape, *values.shape[2:])


def sums_of_later(values: Tensor) -> Tensor:
    """Sum over the rows after each, (..., N, C); exactly zero for the last.

    >>> sums_of_later(torch.tensor([[1.0], [2.0], [3.0]])).flatten().tolist()
    [5.0, 3.0, 0.0]
    """
    sums = values.flip(-2).cumsum(dim=-2).flip(-2)
    return torch.nn.functional.pad(sums[..., 1:, :], (0, 0, 0, 1))


def step_log_probs(scorer: PartitionScorer, codes: Codes, labels: Tensor, keep: Tensor) -> Tensor:
    """Log q(c_n | c_<n, x) of every step of B data sets, in the order the rows come in.

    Parameters
    ----------
    scorer : PartitionScorer
    codes : Codes
        Of the points, (B, N, C).
    labels : Tensor of shape (B, N)
        Numbered by first appearance, -1 for padding.
    keep : Tensor of shape (B, N)
        False for padding, wherever it stands.

    Returns
    -------
    Tensor of shape (B, N)
        Zero for padding.
    """
    B, N = labels.shape
    rows = partial(torch.index_select, dim=0)  # its gradient is quicker than that of x[index]
    join, sums = codes.join.flatten(0, 1), _sums_so_far(codes.join, labels, keep).flatten(0, 1)
    later = sums_of_later(codes.wait * keep.unsqueeze(-1)).flatten(0, 1)  # (BN, C)
    latest, possible = _hypotheses(labels, keep)
    b, n, k = possible.nonzero(as_tuple=True)  # M hypotheses in all
    point = b * N + n
    older = latest[b, n, k]
    exists = (older >= 0).unsqueeze(-1)
    member = b * N + older.clamp_min(0)  # of an existing cluster, its latest
    after = scorer.state(
        torch.where(exists, rows(sums, index=member), 0.0) + rows(join, index=point)
    )
    # The hypothesis that came true at a point is the state its cluster has from then on.
    true = (k == labels[b, n]).nonzero().squeeze(-1)
    hypothesis = torch.zeros(B * N, dtype=torch.long, device=labels.device)
    hypothesis[point[true]] = true
    before = torch.where(exists, rows(after, index=hypothesis[member]), 0.0)
    total = torch.zeros_like(join).index_add(0, point, before)  # G, (BN, C)
    logits = scorer.score(rows(total + later, index=point) - before + after)
    # Impossible hypotheses are ruled out before the softmax, or they would steal probability.
    floor = torch.where(keep, -torch.inf, 0.0).to(logits.dtype).unsqueeze(-1)
    table = floor.expand(possible.shape).index_put((b, n, k), logits)
    log_q = table.log_softmax(dim=-1).gather(-1, labels.clamp_min(0).unsqueeze(-1)).squeeze(-1)
    return torch.where(keep, log_q, 0.0)


def _sums_so_far(join: Tensor, labels: Tensor, keep: Tensor) -> Tensor:
    """Sum over the points of the own cluster up to and with each point, (B, N, C)."""
    same = (labels.unsqueeze(2) == labels.unsqueeze(1)) & keep.unsqueeze(1)
    return same.tril().to(join.dtype) @ join


def _hypotheses(labels: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
    """Latest member of each cluster before each point, -1 if none, and what it may join.

    Both are (B, N, K + 1).
    """
    clusters = torch.arange(int(labels.max()) + 2, device=labels.device)
    place = torch.arange(labels.shape[1], device=labels.device).unsqueeze(-1)
    member = (labels.unsqueeze(-1) == clusters) & keep.unsqueeze(-1)
    latest = torch.where(member, place, -1).cummax(dim=1).values
    latest = torch.nn.functional.pad(latest[:, :-1], (0, 0, 1, 0), value=-1)
    n_found = (latest >= 0).sum(dim=-1, keepdim=True)
    return latest, (clusters <= n_found) & keep.unsqueeze(-1)


def order_log_probs(scorer: PartitionScorer, x: Tensor, labels: Tensor, orders: Tensor) -> Tensor:
    """Log q of partitions of one data set under several orders of its points.

    The model does not promise that the order does not matter, it only learns so: the spread over
    orders tells how well. The mean of q over orders is a distribution over partitions too.

    Parameters
    ----------
    scorer : PartitionScorer
    x : Tensor of shape (N, D)
    labels : Tensor of shape (P, N)
        Any numbering.
    orders : Tensor of shape (S, N)

    Returns
    -------
    Tensor of shape (P, S), float64, on the CPU
    """
    codes = scorer.encode(x)
    keep = torch.ones_like(orders, dtype=torch.bool)
    ordered = Codes(codes.join[orders], codes.wait[orders])
    # A partition at a time, so that memory does not grow with their number.
    each = [step_log_probs(scorer, ordered, by_appearance(c[orders]), keep) for c in labels]
    return torch.stack(each).cpu().double().sum(dim=-1)
