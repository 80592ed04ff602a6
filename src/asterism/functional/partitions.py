"""Partitions as tensors of labels, whose numbers are names and no more.

    by_appearance       clusters numbered by their earliest members: equal partitions, equal labels
    unique_partitions   every partition once
    likeliest_first     the same, in order of probability

Labels are (..., N); −1 is padding, or a point of no cluster, and stays. For arrays there is
:func:`asterism.functional.comparisons.by_appearance`, which does without torch.
"""

import torch
from torch import Tensor

__all__ = ["by_appearance", "likeliest_first", "unique_partitions"]


def by_appearance(labels: Tensor, times: Tensor | None = None) -> Tensor:
    """Renumber the clusters of each partition (..., N) by their earliest members.

    Points come in the order they stand in, or in that of their ``times`` (..., N).

    >>> by_appearance(torch.tensor([2, 0, 2, -1, 1])).tolist()
    [0, 1, 0, -1, 2]
    >>> by_appearance(torch.tensor([[2, 0, 0, -1]]), torch.tensor([[3.0, 1.0, 9.0, 0.0]])).tolist()
    [[1, 0, 0, -1]]
    """
    spare = int(labels.max()) + 1  # a number for the points of no cluster, which is dropped
    if times is None:
        times = torch.arange(labels.shape[-1], device=labels.device).expand_as(labels)
    named = torch.where(labels < 0, spare, labels)
    never = int(times.max()) + 1
    first = times.new_full((*labels.shape[:-1], spare + 1), never)
    first = first.scatter_reduce(-1, named, times, "amin")[..., :spare]
    rank = first.argsort(dim=-1, stable=True).argsort(dim=-1)
    return torch.nn.functional.pad(rank, (0, 1), value=-1).gather(-1, named)


def unique_partitions(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Partitions (P, N) that differ, and for each of the (S, N) given the number of its equal.

    Clusters come back numbered by first appearance.

    >>> unique_partitions(torch.tensor([[1, 0, 0], [0, 1, 1], [0, 0, 0]]))
    (tensor([[0, 0, 0],
            [0, 1, 1]]), tensor([1, 1, 0]))
    """
    found, which = by_appearance(labels).unique(dim=0, return_inverse=True)
    return found, which


def likeliest_first(labels: Tensor, log_probs: Tensor) -> tuple[Tensor, Tensor]:
    """Partitions (S, N) without repetition, likeliest first, and their log-probabilities.

    A partition found more than once keeps the largest of its probabilities; impossible ones, of
    probability zero, are left out.

    >>> labels, log_probs = torch.tensor([[0, 1], [0, 0], [1, 0]]), torch.tensor([-3.0, -1, -2])
    >>> likeliest_first(labels, log_probs)
    (tensor([[0, 0],
            [0, 1]]), tensor([-1., -2.]))
    """
    possible = log_probs > -torch.inf
    found, which = unique_partitions(labels[possible])
    best = log_probs.new_full((len(found),), -torch.inf)
    best = best.scatter_reduce(0, which, log_probs[possible], "amax")
    order = best.argsort(descending=True)
    return found[order], best[order]
