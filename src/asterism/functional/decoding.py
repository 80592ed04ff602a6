"""Partitions from a sequential model: drawn at random, or the likeliest to be found.

    sample   c_n ~ q(c_n | c_<n, x), many partitions side by side
    beam     of the continuations of the ``width`` likeliest prefixes keep the ``width`` likeliest,
             and always the one that takes the likeliest step each time; width 1 is greedy

A thread is one partition in the making. All threads take their n-th step together, each in its own
order of the points: the state of a thread are the sums of its clusters and what g makes of them,
and a step asks for its K + 1 hypotheses. Sums over clusters and over points to come are taken anew,
never by running subtraction, which would drift. Probabilities are those under the thread's order,
normalised and accumulated in double precision on the CPU.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from asterism.functional.partitions import by_appearance
from asterism.functional.sequential import Codes, PartitionScorer, in_order, sums_of_later

__all__ = ["Partitions", "sample_partitions", "search_partitions"]


class Partitions(NamedTuple):
    """Partitions of data sets, on the CPU."""

    labels: Tensor  # (..., S, N) numbered by first appearance in the rows, -1 for padding
    log_probs: Tensor  # (..., S) float64, under the order each was made in


@torch.no_grad()
def sample_partitions(
    scorer: PartitionScorer,
    x: Tensor,
    keep: Tensor,
    orders: Tensor,
    generator: torch.Generator,
) -> Partitions:
    """Draw one partition for each order of each data set.

    Parameters
    ----------
    scorer : PartitionScorer
    x : Tensor of shape (B, N, D)
    keep : Tensor of shape (B, N)
    orders : Tensor of shape (B, S, N)
        Padding last, see :func:`asterism.functional.sequential.random_orders`.
    generator : torch.Generator
        On the CPU.

    Returns
    -------
    Partitions
        S of each data set.
    """
    threads = _Threads(scorer, scorer.encode(x), keep, orders)
    chance = torch.rand((x.shape[1], len(threads)), generator=generator, dtype=torch.float64)
    for n, uniform in enumerate(chance):
        log_q = threads.propose(n)  # (T, K + 1)
        choice = (log_q.exp().cumsum(dim=1) <= uniform.unsqueeze(1)).sum(dim=1, keepdim=True)
        # Rounding may leave the last hypothesis a hair short of one.
        choice = torch.minimum(choice, threads.newest.unsqueeze(1))
        threads.log_probs += log_q.gather(1, choice).squeeze(1)
        threads.assign(n, choice.squeeze(1))
    return threads.partitions()


@torch.no_grad()
def search_partitions(
    scorer: PartitionScorer, x: Tensor, keep: Tensor, orders: Tensor, width: int = 1
) -> Partitions:
    """Likely partitions of each data set: a beam search in every order.

    Parameters
    ----------
    scorer, x, keep, orders
        As for :func:`sample_partitions`, with orders (B, O, N).
    width : int
        Prefixes kept in every order; 1 is greedy.

    Returns
    -------
    Partitions
        O · ``width`` of each data set, those of an order together, likeliest first; where a data
        set has fewer partitions than ``width``, the others have log-probability −inf.
    """
    B, O, N = orders.shape
    threads = _Threads(scorer, scorer.encode(x), keep, orders.repeat_interleave(width, dim=1))
    # At the start all prefixes of a beam are the same, empty one: it counts once.
    threads.log_probs.view(B * O, width)[:, 1:] = -torch.inf
    offset = width * torch.arange(B * O).unsqueeze(1)
    for n in range(N):
        log_q = threads.propose(n)
        total = (threads.log_probs.unsqueeze(1) + log_q).view(B * O, -1)  # (BO, width · (K + 1))
        rank = total.clone()
        # The first of a beam is the greedy one. Its likeliest step comes first whatever the others.
        greedy = log_q.view(B * O, width, -1)[:, 0].argmax(dim=1, keepdim=True)
        rank.scatter_(1, greedy, torch.inf)
        best = rank.topk(width, dim=1).indices
        threads.follow((best // log_q.shape[1] + offset).flatten())
        threads.log_probs = total.gather(1, best).flatten()
        # What fills the beam while there are fewer prefixes may be impossible: it goes on as dead.
        threads.assign(n, torch.minimum((best % log_q.shape[1]).flatten(), threads.newest))
    found = threads.partitions()
    log_probs, best = found.log_probs.view(B * O, width).sort(dim=1, descending=True)
    labels = found.labels.view(B * O, width, N).take_along_dim(best.unsqueeze(-1), dim=1)
    return Partitions(labels.view(B, O * width, N), log_probs.view(B, O * width))


class _Threads:
    """T partitions in the making, S for each of B data sets."""

    def __init__(self, scorer: PartitionScorer, codes: Codes, keep: Tensor, orders: Tensor) -> None:
        B, S, N = orders.shape
        device, width = codes.join.device, codes.join.shape[-1]
        self._scorer, self._join = scorer, codes.join.flatten(0, 1)  # (BN, C)
        wait = in_order(codes.wait * keep.unsqueeze(-1), orders)
        self._later = sums_of_later(wait).flatten(0, 1)  # (T, N, C)
        start = N * torch.arange(B, device=device)[:, None, None]
        self._place = (orders + start).flatten(0, 1)  # (T, N) rows of _join
        self._size = keep.sum(dim=1).repeat_interleave(S)  # (T,)
        self._sums = torch.zeros(B * S, 1, width, device=device, dtype=codes.join.dtype)
        self._states = torch.zeros_like(self._sums)  # of empty clusters nothing
        self._count = torch.zeros(B * S, dtype=torch.long, device=device)
        self._labels = torch.full((B * S, N), -1, device=device)  # in the threads' orders
        self._orders, self._shape = orders, (B, S, N)
        self.log_probs = torch.zeros(B * S, dtype=torch.float64)

    def __len__(self) -> int:
        return len(self._count)

    @property
    def newest(self) -> Tensor:
        """The hypothesis of a new cluster of each thread, (T,); 0 for a thread that is done."""
        return torch.where(self._active, self._count, 0).cpu()

    def propose(self, n: int) -> Tensor:
        """Log-probabilities (T, K + 1) of the hypotheses for the n-th point, −inf for others.

        A thread that is done proposes the first with certainty, to no effect.
        """
        self._active = self._size > n
        n_clusters = int(self._count.max()) + 1
        spare = n_clusters - self._sums.shape[1]
        self._sums = torch.nn.functional.pad(self._sums, (0, 0, 0, spare))
        self._states = torch.nn.functional.pad(self._states, (0, 0, 0, spare))
        clusters = torch.arange(n_clusters, device=self._count.device)
        possible = (clusters <= self._count.unsqueeze(1)) & self._active.unsqueeze(1)
        t, k = possible.nonzero(as_tuple=True)
        self._after = self._sums + self._join[self._place[:, n]].unsqueeze(1)
        states = self._scorer.state(self._after[t, k])
        total = self._states.sum(dim=1) + self._later[:, n]
        logits = self._scorer.score(total[t] - self._states[t, k] + states)
        self._proposed = self._states.index_put((t, k), states)
        table = torch.full(possible.shape, -torch.inf, dtype=torch.float64)
        table[~self._active.cpu(), 0] = 0.0
        table[t.cpu(), k.cpu()] = logits.cpu().double()
        return table.log_softmax(dim=1)

    def follow(self, parents: Tensor) -> None:
        """Let every thread go on from the prefix of another of its data set and order."""
        parents = parents.to(self._count.device)
        for name in ("_sums", "_states", "_after", "_proposed", "_count", "_labels"):
            setattr(self, name, getattr(self, name)[parents])

    def assign(self, n: int, choice: Tensor) -> None:
        """Put the n-th point of every thread in the cluster of its choice, (T,)."""
        t = self._active.nonzero().squeeze(1)
        k = choice.to(t.device)[t]
        self._sums[t, k], self._states[t, k] = self._after[t, k], self._proposed[t, k]
        self._count[t] = torch.maximum(self._count[t], k + 1)
        self._labels[t, n] = k

    def partitions(self) -> Partitions:
        """What has been made."""
        labels = self._labels.view(self._shape)
        labels = torch.empty_like(labels).scatter_(2, self._orders, labels)
        return Partitions(by_appearance(labels).cpu(), self.log_probs.view(self._shape[:2]))
