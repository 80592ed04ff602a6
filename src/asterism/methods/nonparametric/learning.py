"""A network and a mixture that learn from each other, the number of clusters as it stands.

    epoch     the net learns the E-step of the mixture, and its small nets where to cut clusters;
              then the mixture takes the most probable parameters under the net's assignments
    follow    epochs in which the mixture waits, until the net hardly comes closer to it

Rows are gone through in chunks, M-steps see a sample of many; memory is linear in the rows.
"""

from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import torch
from torch import Tensor

from asterism.functional.niw import NormalWishart, Statistics, gather_statistics
from asterism.functional.splits import leading_axes
from asterism.nn.splitmerge import SplitMergeBatch, SplitMergeNet
from asterism.training import TrainingPlan, train
from asterism.training.sources import derive_seed

__all__ = ["Learning", "Schedule"]

_CHUNK, _ENTRIES = 1 << 14, 1 << 20
_ROWS = 1 << 16  # of an M-step, a new sample each time; moves look at all
_MOST_EPOCHS, _LEVEL, _CLOSE = 20, 0.9, 0.01  # of the net that follows the mixture
_MEMBERS, _FEWEST, _ALL = 64, 8, 2048  # rows of a cluster, and of all, that own nets see in a step


@dataclass(frozen=True)
class Schedule:
    """When and how moves are made; see :class:`~asterism.DeepDPM`."""

    lr: float = 2e-3
    batch_size: int = 1024
    epoch_steps: int = 50
    epochs: int = 3
    max_rounds: int = 60
    patience: int = 2
    search: str = "both"
    n_neighbors: int | None = None
    acceptance: str = "greedy"
    smallest: int = 5
    max_clusters: int | None = None
    zeta: float = 1.0
    parsimony: float = 0.0
    n_axes: int | None = None  # along which clusters may differ, if not all


@dataclass
class Learning:
    """The rows, the net and the mixture."""

    x: Tensor  # (N, D) on the CPU
    module: SplitMergeNet
    prior: NormalWishart
    alpha: float
    schedule: Schedule
    seed: int
    losses: list[dict[str, float]] = field(default_factory=list, init=False)

    labels: Tensor = field(init=False)  # (N,)
    stats: Statistics = field(init=False)

    def __post_init__(self) -> None:
        self.steps = 0
        self.chance = torch.Generator().manual_seed(derive_seed(2, self.seed))

    # --- epochs -------------------------------------------------------------------------------

    def _follow(self) -> None:
        """Let the net learn a mixture that has changed at once, until it hardly learns more."""
        before = np.inf
        for _ in range(_MOST_EPOCHS):
            self._epoch(adapt=False)
            divergence = self._divergence()
            if divergence < _CLOSE or divergence > _LEVEL * before:
                break
            before = divergence

    def _divergence(self) -> float:
        """How far the net is from the E-step, on a sample of the rows."""
        rows = torch.randint(len(self.x), (min(len(self.x), 4096),), generator=self.chance)
        with torch.inference_mode():
            return float(self.module.divergence(self.x[rows].to(self.module.bias.device)))

    def _epoch(self, adapt: bool = True) -> None:
        """Let the net follow the mixture and, where asked, the mixture the net."""
        plan = self.schedule
        parts = plan.search != "em"
        if self.module.n_clusters > 1 or parts:
            steps = plan.epoch_steps
            source = _Rows(self, plan.batch_size, steps, self._draw())
            records = train(
                self.module,
                source,
                TrainingPlan(steps=steps, lr=plan.lr, log_every=steps),
                seed=source.seed,
            )
            self.steps += steps
            self.losses.append({"step": self.steps, "loss": records[-1]["loss"]})
        if adapt:
            self._m_step()
        if parts:
            self._learn_halves()

    @property
    def n_members(self) -> int:
        """Rows of each cluster in a batch."""
        if self.schedule.search == "em":
            return 0
        return min(_MEMBERS, max(_FEWEST, _ALL // self.module.n_clusters))

    def _m_step(self) -> None:
        x = self.x
        if len(x) > _ROWS:
            x = x[torch.randint(len(x), (_ROWS,), generator=self.chance)]
        parts = (
            gather_statistics(part, self._net(part).exp(), self.prior.covariance)
            for part in x.split(_CHUNK)
        )
        self._take(reduce(Statistics.plus, parts).times(len(self.x) / len(x)))

    def _take(self, stats: Statistics) -> None:
        """Let the most probable parameters under these statistics be the mixture's."""
        self.stats = stats
        k = len(stats.n)
        weights = (stats.n + self.alpha / k) / (stats.n.sum() + self.alpha)
        self.densities, self.log_weights = self.prior.mode(stats), weights.log()
        halves = None
        if len(self.module.halves) != k:
            halves = self.densities.mean.unsqueeze(1).repeat(1, 2, 1)
        self.module.tell(self.densities, self.log_weights, halves)

    def _learn_halves(self) -> None:
        """Means of the halves that every cluster's own net makes; of a cut where it makes none."""
        members, keep = self._members(512)
        with torch.inference_mode():
            r = self.module.parts(members.to(self.module.bias.device)).exp().cpu()
        r = r * keep.unsqueeze(-1)
        share = r.sum(dim=1)
        means = (r.mT @ members) / share.clamp_min(1e-9).unsqueeze(-1)
        lost = share.min(dim=1).values < 0.01 * share.sum(dim=1)
        near = (means[:, 0] - means[:, 1]).norm(dim=-1) < 1e-6 * members.abs().amax(dim=(1, 2))
        if (useless := lost | near).any():
            centre, deviation = _moments(members[useless], keep[useless])
            means[useless] = torch.stack([centre + deviation, centre - deviation], dim=1)
        self.module.halves = means.to(self.module.bias)

    # --- looking at all rows ------------------------------------------------------------------

    @torch.inference_mode()
    def _net(self, x: Tensor) -> Tensor:
        return self.module(x.to(self.module.bias.device)).cpu()

    def targets(self) -> Tensor:
        """What the net should say of all rows (N, K)."""
        device = self.module.bias.device
        size = max(1, _ENTRIES // self.module.means.numel())  # rows whose distances are held
        return torch.cat([self.module.targets(x.to(device)).cpu() for x in self.x.split(size)])

    def _look(self) -> None:
        """Assign all rows by the net."""
        parts = [self._net(part).argmax(dim=1) for part in self.x.split(_CHUNK)]
        self.labels = torch.cat(parts)

    def _members(self, most: int, which: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """At most so many random rows of each cluster, (K, M, D), padded, and which are rows."""
        k = self.module.n_clusters
        which = torch.arange(k) if which is None else which
        shuffled = torch.randperm(len(self.x), generator=self.chance)
        order = shuffled[self.labels[shuffled].argsort(stable=True)]
        counts = torch.bincount(self.labels, minlength=k)
        first = counts.cumsum(0) - counts
        size = int(counts[which].clamp_max(most).max().clamp_min(1))
        place = torch.arange(size)
        keep = place < counts[which, None]
        rows = order[torch.where(keep, first[which, None] + place, 0)]
        return self.x[rows] * keep.unsqueeze(-1), keep

    def _draw(self) -> int:
        return int(torch.randint(2**62, (), generator=self.chance))


class _Rows:
    """Batches of rows, and of every cluster the same number of its own.

    Where an epoch draws as many rows as there are, what the net should say of them is found first.
    """

    def __init__(self, learning: Learning, batch_size: int, n_batches: int, seed: int) -> None:
        self.x, self.seed, self.n_members = learning.x, seed % 2**31, learning.n_members
        self.batch_size = min(batch_size, len(self.x))
        self.targets = None
        if len(self.x) <= self.batch_size * n_batches:
            self.targets = learning.targets()
        if self.n_members:
            self.order = learning.labels.argsort()
            self.counts = torch.bincount(learning.labels, minlength=learning.module.n_clusters)
            self.first = self.counts.cumsum(0) - self.counts

    def __call__(self, index: int) -> SplitMergeBatch:
        chance = torch.Generator().manual_seed(derive_seed(0, self.seed, index))
        which = torch.randint(len(self.x), (self.batch_size,), generator=chance)
        rows, targets = self.x[which], None if self.targets is None else self.targets[which]
        if not self.n_members:
            return SplitMergeBatch(rows, targets=targets)
        u = torch.rand(len(self.counts), self.n_members, generator=chance)
        place = self.first[:, None] + (u * self.counts[:, None]).long()
        members = self.x[self.order[place.clamp_max(len(self.x) - 1)]]
        return SplitMergeBatch(rows, members, targets)


def _moments(x: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
    """Mean (K, D), and the leading axis of length one deviation, of padded rows (K, M, D)."""
    weight = keep.unsqueeze(-1).to(x.dtype)
    n = weight.sum(dim=1).clamp_min(1)
    mean = (x * weight).sum(dim=1) / n
    centred = (x - mean.unsqueeze(1)) * weight
    axis = leading_axes(centred, 1).to(x.dtype)  # (K, D, 1)
    deviation = ((centred @ axis).square().sum(dim=1) / n).sqrt()
    return mean, axis.squeeze(-1) * deviation
