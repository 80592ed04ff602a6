"""Partitions of one data set by a clusterwise network: drawn many at once, and their probability.

Growing: S threads side by side. At each step every thread draws an anchor among its unassigned
points, takes z from the prior and lets points join; threads that are finished drop out, points that
are assigned leave the computation. A step is one pass of the network for all threads, so S
partitions of K clusters take about K passes, whatever N. The anchor always joins: at most N steps.

Probability: of a partition whose clusters come in the order s_1 … s_K,

    log q(s_1 … s_K) = Σ_k log (1/n_k) Σ_{a ∈ s_k} E_z p(b_k | z, a)          n_k points unassigned

and of the partition itself, in whatever order, the sum of that over all K! orders. Since anchors
meet the clusters in an order with probability r = Π_k |s_k| / n_k, that sum is the mean over such
random orders of

    q(s_1 … s_K) / r = Π_k mean_{a ∈ s_k} E_z p(b_k | z, a)

A few orders, a few anchors and a few draws of z give an estimate that is unbiased for the
probability; its logarithm is too low on average, by Jensen's inequality, the more so the fewer the
draws. Steps shared by several orders or partitions are computed once.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from asterism.functional.clusterwise import (
    Steps,
    log_mean_exp,
    order_log_probability,
    partition_steps,
    random_times,
    sums_before,
)
from asterism.functional.partitions import by_appearance
from asterism.nn.clusterwise import ClusterwiseNetwork, Codes, Stage, take_rows

__all__ = [
    "GrownPartitions",
    "cluster_contexts",
    "grow_partitions",
    "ordered_log_probability",
    "partition_log_probability",
]

_ROWS = 1 << 17  # points of all steps read at once, so that memory stays flat


class GrownPartitions(NamedTuple):
    """S partitions: the step (S, N) at which each point was assigned, and what led to it.

    ``anchors`` (S, K) and ``latents`` (S, K, Z) are those of each step, -1 and zero after the last;
    ``n_passes`` counts passes of the network.
    """

    labels: Tensor
    anchors: Tensor
    latents: Tensor
    n_passes: int


@torch.inference_mode()
def grow_partitions(
    network: ClusterwiseNetwork,
    codes: Codes,
    n_partitions: int,
    generator: torch.Generator,
    *,
    draw: str = "mean",
) -> GrownPartitions:
    """Grow partitions of a data set with ``codes`` (1, N, C).

    Parameters
    ----------
    network : ClusterwiseNetwork
    codes : Codes
        Of ``network.encode``.
    n_partitions : int
        How many, S.
    generator : torch.Generator
        On the CPU.
    draw : {"mean", "sample"}, default="mean"
        "sample" draws z and who joins: partitions are then distributed as the model has them.
        "mean" takes the mean of z and lets those join who probably do, so that only the anchors are
        random: a search for likely partitions.

    Examples
    --------
    >>> network = ClusterwiseNetwork(width=8, latent_dim=4)
    >>> chance = torch.Generator().manual_seed(0)
    >>> codes = network.encode(torch.randn(1, 20, 2, generator=chance))
    >>> grown = grow_partitions(network, codes, 3, chance)
    >>> grown.labels.shape, bool((grown.labels >= 0).all())
    (torch.Size([3, 20]), True)
    """
    device, n_points = codes.points.device, codes.points.shape[1]
    labels = torch.full((n_partitions, n_points), -1, device=device)
    finished = codes.points.new_zeros(n_partitions, network.width)
    anchors: list[Tensor] = []
    latents: list[Tensor] = []
    n_passes = 0
    active = torch.arange(n_partitions, device=device)
    while len(active):
        anchors.append(torch.full((n_partitions,), -1, device=device))
        latents.append(codes.points.new_zeros(n_partitions, network.latent_dim))
        for threads in active.split(max(1, _ROWS // n_points)):
            is_open = labels[threads] < 0
            times = random_times(is_open.shape, generator).to(device)
            anchor = torch.where(is_open, times, n_points).argmin(dim=1)
            stage, index = _read(network, codes, is_open, anchor, finished[threads])
            z, joins = _take_step(network, stage, generator, draw)
            member = torch.zeros_like(is_open).scatter(1, index, joins)
            member = member.scatter(1, anchor[:, None], value=True)
            labels[threads] = torch.where(member, len(anchors) - 1, labels[threads])
            finished[threads] += _encode_clusters(network, codes, member)
            anchors[-1][threads], latents[-1][threads] = anchor, z
            n_passes += 1
        active = active[(labels[active] < 0).any(dim=1)]
    return GrownPartitions(labels, torch.stack(anchors, 1), torch.stack(latents, 1), n_passes)


def _take_step(
    network: ClusterwiseNetwork, stage: Stage, generator: torch.Generator, draw: str
) -> tuple[Tensor, Tensor]:
    """Latent (R, Z) and those who join (R, M)."""
    prior = network.prior(stage)
    z = prior.mean.unsqueeze(1)
    if draw == "sample":
        z = prior.draw(torch.randn(z.shape, generator=generator).to(z))
    logits = network.join_logits(stage, network.join_context(stage, z)).squeeze(1)
    level = torch.tensor(0.5)
    if draw == "sample":
        level = torch.rand(logits.shape, generator=generator)
    joins = torch.zeros_like(stage.candidate)
    joins[stage.candidate] = logits.sigmoid() > level.to(z.device)
    return z.squeeze(1), joins


@torch.inference_mode()
def cluster_contexts(
    network: ClusterwiseNetwork, codes: Codes, labels: Tensor, anchors: Tensor, latents: Tensor
) -> tuple[Tensor, Tensor]:
    """What ``network.new_point_logits`` needs to know of the K clusters of one grown partition.

    From its steps (N,), anchors (K,) and latents (K, Z): contexts (K, C) and inducing rows
    (K, I, C), I = 0 without attention.
    """
    number = torch.arange(len(anchors), device=labels.device)
    owner = torch.zeros_like(number)
    steps = Steps(owner, number, labels >= number[:, None], labels == number[:, None], anchors)
    finished = sums_before(_encode_clusters(network, codes, steps.member), steps)
    contexts, memories = [], []
    for rows in number.split(max(1, _ROWS // len(labels))):
        stage, _ = _read(network, codes, steps.open[rows], anchors[rows], finished[rows])
        contexts.append(network.join_context(stage, latents[rows].unsqueeze(1)).squeeze(1))
        none = stage.points.new_empty(len(rows), 0, network.width)
        memories.append(none if stage.memory is None else stage.memory)
    return torch.cat(contexts), torch.cat(memories)


def partition_log_probability(
    network: ClusterwiseNetwork,
    codes: Codes,
    labels: Tensor,
    generator: torch.Generator,
    *,
    n_orders: int = 2,
    n_anchors: int | None = 1,
    n_draws: int = 5,
) -> Tensor:
    """Estimated log-probability (P,) of partitions (P, N), over all orders of their clusters.

    ``n_orders`` random orders, in each at most ``n_anchors`` anchors a cluster, for each of these
    ``n_draws`` latents.

    >>> network = ClusterwiseNetwork(width=8, latent_dim=4)
    >>> chance = torch.Generator().manual_seed(0)
    >>> codes = network.encode(torch.randn(1, 3, 2, generator=chance))
    >>> labels = torch.tensor([[0, 0, 0], [0, 1, 1]])
    >>> bool((partition_log_probability(network, codes, labels, chance) < 0).all())
    True
    """
    times = random_times((len(labels) * n_orders, labels.shape[1]), generator).to(labels.device)
    order = by_appearance(labels.repeat_interleave(n_orders, dim=0), times)
    found = ordered_log_probability(
        network, codes, order, generator, n_anchors=n_anchors, n_draws=n_draws
    )
    found = found - order_log_probability(partition_steps(order, order.float()), len(order))
    return log_mean_exp(found.unflatten(0, (len(labels), n_orders)))


@torch.inference_mode()
def ordered_log_probability(
    network: ClusterwiseNetwork,
    codes: Codes,
    order: Tensor,
    generator: torch.Generator,
    *,
    n_anchors: int | None = None,
    n_draws: int = 10,
) -> Tensor:
    """Estimated log q(s_1 … s_K), (P,), of partitions (P, N) numbered by the order of the clusters.

    ``n_anchors`` anchors at most stand for all members of a cluster; None takes them all.
    """
    steps = partition_steps(order, order.float())
    if not len(steps.owner):  # single points: nothing is to be decided
        return codes.points.new_zeros(len(order))
    finished = sums_before(_encode_clusters(network, codes, steps.member), steps)
    # A step is told by who was finished, in which clusters, and who joins now.
    past = order[steps.owner]
    states, which = torch.where(past <= steps.number[:, None], past, -1).unique(
        dim=0, return_inverse=True
    )
    place = torch.arange(len(which), device=which.device)
    first = torch.full((len(states),), len(which), device=which.device)
    first = first.scatter_reduce(0, which, place, "amin")
    is_open, member, finished = steps.open[first], steps.member[first], finished[first]
    state, anchor = _choose_anchors(member, n_anchors, generator)
    joining = torch.cat(
        [
            _mean_joining(
                network,
                codes,
                (is_open[state[part]], anchor[part], finished[state[part]]),
                member[state[part]],
                n_draws,
                generator,
            )
            for part in _pieces(is_open[state].sum(dim=1) * n_draws)
        ]
    )
    per_state = _segment_log_mean(joining, state, len(states))
    per_step = per_state[which] + steps.log_share.to(per_state.dtype)
    return per_step.new_zeros(len(order)).index_add(0, steps.owner, per_step)


def _mean_joining(
    network: ClusterwiseNetwork,
    codes: Codes,
    step: tuple[Tensor, Tensor, Tensor],
    member: Tensor,
    n_draws: int,
    generator: torch.Generator,
) -> Tensor:
    """Log of the mean over draws of z of p(b | z), for steps (open, anchor, finished): (R,)."""
    stage, index = _read(network, codes, *step)
    shape = (len(member), n_draws, network.latent_dim)
    noise = torch.randn(shape, generator=generator).to(codes.points)
    z = network.prior(stage).draw(noise)
    return log_mean_exp(network.log_joining(stage, z, member.gather(1, index)))


# --- inside -----------------------------------------------------------------------------------


def _read(
    network: ClusterwiseNetwork, codes: Codes, is_open: Tensor, anchor: Tensor, finished: Tensor
) -> tuple[Stage, Tensor]:
    """Stage of steps on one data set, and the points (R, M) it reads: the unassigned, M at most."""
    counts = is_open.sum(dim=1)
    most = int(counts.max())
    index = is_open.byte().argsort(dim=1, descending=True, stable=True)[:, :most]
    keep = torch.arange(most, device=index.device) < counts[:, None]
    place = is_open.cumsum(dim=1).gather(1, anchor[:, None]).squeeze(1) - 1
    owner = torch.zeros_like(anchor)
    return network.stage(codes, owner, index, keep, place, finished), index


def _encode_clusters(network: ClusterwiseNetwork, codes: Codes, member: Tensor) -> Tensor:
    """G of pooled clusters (R, C), given as masks (R, N) over one data set."""
    found = []
    every = torch.arange(member.shape[1], device=member.device)
    for part in member.split(max(1, _ROWS // member.shape[1])):
        owner = torch.zeros(len(part), dtype=torch.long, device=member.device)
        rows = take_rows(codes.members, owner, every.expand(len(part), -1))
        found.append(network.encode_cluster(rows, part))
    return torch.cat(found)


def _choose_anchors(
    member: Tensor, n_anchors: int | None, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Pairs (row, point) of at most ``n_anchors`` random members of each row (R, N)."""
    times = random_times(member.shape, generator).to(member.device)
    rank = torch.where(member, times, member.shape[1]).argsort(dim=1).argsort(dim=1)
    few = member if n_anchors is None else member & (rank < n_anchors)
    row, point = few.nonzero(as_tuple=True)
    return row, point


def _segment_log_mean(values: Tensor, segment: Tensor, n_segments: int) -> Tensor:
    """Log of the mean of exponentials of the values (R,) of each segment."""
    largest = values.new_full((n_segments,), -torch.inf)
    largest = largest.scatter_reduce(0, segment, values, "amax")
    scaled = (values - largest[segment]).exp()
    mean = values.new_zeros(n_segments).scatter_reduce(
        0, segment, scaled, "mean", include_self=False
    )
    return largest + mean.log()


def _pieces(costs: Tensor) -> Iterator[Tensor]:
    """Row numbers in runs of at most ``_ROWS`` of cost, a dearer row by itself."""
    start, spent = 0, 0
    for row, cost in enumerate(costs.tolist()):
        if spent and spent + cost > _ROWS:
            yield torch.arange(start, row, device=costs.device)
            start, spent = row, 0
        spent += cost
    yield torch.arange(start, len(costs), device=costs.device)
