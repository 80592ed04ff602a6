"""How clusters of a mixture grow in number and shrink: a network and the evidence by turns.

    epoch    the net learns the E-step of the present mixture; then the mixture the M-step of the
             net's assignments
    round    a few epochs, then a move: splits, merges, splits, merges …
    split    of every cluster the best two halves are searched; those of log H > 0 stay parted
    merge    pairs of log H < 0, best first, each cluster once
    end      after ``patience`` split rounds and merge rounds without a move, always on merges

What is moved is told to the net at once, and the mixture then waits until it has followed. Halves
that are merged again were split in vain: their cluster is not tried in the next round, and after
the second time never again. Rows are gone through in chunks; memory is linear in them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from asterism.functional.niw import NormalWishart, Statistics, gather_statistics
from asterism.functional.splits import (
    halves_ratio,
    log_odds,
    log_split_ratio,
    merge_ratios,
    row_weights,
    search_splits,
)
from asterism.nn.splitmerge import SplitMergeBatch, SplitMergeNet
from asterism.training import TrainingPlan, train
from asterism.training.sources import derive_seed

__all__ = ["Growth", "Schedule"]

_CHUNK = 1 << 14
_ROWS = 1 << 16  # of an M-step, a new sample each time; moves look at all
_SAMPLE = 1024  # rows of a cluster through which its halves are searched
_MOST_EPOCHS, _LEVEL, _CLOSE = 20, 0.9, 0.01  # of the net that follows the mixture
_MEMBERS = 64  # rows of a cluster that its own net sees in a step


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
    coarsening: float | None = None


@dataclass
class Growth:
    """One fit: the rows, the net and the mixture, and what has been moved."""

    x: Tensor  # (N, D) on the CPU
    module: SplitMergeNet
    prior: NormalWishart
    alpha: float
    schedule: Schedule
    seed: int
    report: Callable[[dict[str, Any]], None] = lambda _: None
    moves: list[dict[str, Any]] = field(default_factory=list)
    losses: list[dict[str, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.steps = 0
        self.chance = torch.Generator().manual_seed(derive_seed(2, self.seed))
        limit = self.schedule.coarsening
        self.zeta = 1.0 if limit is None else 1 / (1 + len(self.x) / limit)

    # --- the whole ----------------------------------------------------------------------------

    def start(self, labels: np.ndarray) -> None:
        """Begin with a partition of the rows."""
        self.labels = torch.from_numpy(labels.astype(np.int64))
        self.strikes = torch.zeros(self.module.n_clusters, dtype=torch.int64)
        self.barred = torch.zeros(self.module.n_clusters, dtype=torch.bool)
        self.born = torch.full((self.module.n_clusters,), -1)  # the split a cluster came of
        self._take(self._hard_statistics())
        self._follow()

    def run(self) -> bool:
        """Alternate until nothing moves any more; whether that came about."""
        quiet = 0
        plan = self.schedule
        for number in range(plan.max_rounds):
            for _ in range(plan.epochs):
                self._epoch()
            self._look()
            waiting = bool(self.barred.any())
            moved = self._split(number) if number % 2 == 0 else self._merge(number)
            quiet = 0 if moved or waiting else quiet + 1
            if moved:
                self._follow()
            if quiet >= 2 * plan.patience and number % 2:
                break
        settled = quiet >= 2 * plan.patience
        if not settled and plan.max_rounds % 2:  # never end on splits
            self._look()
            if self._merge(plan.max_rounds):
                self._follow()
        for _ in range(2 * plan.epochs):
            self._epoch()
        self._look()
        self._drop_empty()
        return settled

    def best_splits(self, priors: Sequence[NormalWishart]) -> tuple[np.ndarray, np.ndarray]:
        """Log-ratio (K,) of the best split of each cluster, and which prior would let it happen.

        That is the number (K,) of the first of ``priors`` under which it pays, -1 if none.
        """
        which = torch.arange(self.module.n_clusters)
        _, stats = self._halves(which)
        pays = torch.stack([self._split_ratios(stats, prior) for prior in priors]) > 0  # (P, K)
        first = torch.where(pays.any(dim=0), pays.int().argmax(dim=0), -1)
        return self._split_ratios(stats, self.prior).numpy(), first.numpy()

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
            source = _Rows(self, plan.batch_size, self._draw())
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
        return 0 if self.schedule.search == "em" else _MEMBERS

    def _m_step(self) -> None:
        x = self.x
        if len(x) > _ROWS:
            x = x[torch.randint(len(x), (_ROWS,), generator=self.chance)]
        stats = self._accumulate(x, lambda part: self._net(part).exp())
        factor = len(self.x) / len(x)
        self._take(stats.times(factor))

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

    def _look(self) -> None:
        """Assign all rows by the net."""
        parts = [self._net(part).argmax(dim=1) for part in self.x.split(_CHUNK)]
        self.labels = torch.cat(parts)

    def _hard_statistics(self) -> Statistics:
        k = self.module.n_clusters
        start = 0

        def one_hot(part: Tensor) -> Tensor:
            nonlocal start
            labels = self.labels[start : start + len(part)]
            start += len(part)
            return F.one_hot(labels, k).double()

        return self._accumulate(self.x, one_hot)

    def _accumulate(self, x: Tensor, weigh: Callable[[Tensor], Tensor]) -> Statistics:
        total: Statistics | None = None
        for part in x.split(_CHUNK):
            stats = gather_statistics(part, weigh(part), self.prior.covariance)
            total = stats if total is None else total.plus(stats)
        assert total is not None
        return total

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

    # --- moves --------------------------------------------------------------------------------

    def _split(self, number: int) -> bool:
        plan, before = self.schedule, self.module.n_clusters
        counts = torch.bincount(self.labels, minlength=before)
        able = (counts >= 2 * plan.smallest) & ~self.barred & (self.strikes < 2)
        self.barred = torch.zeros_like(self.barred)
        which = able.nonzero().squeeze(1)
        ratios = torch.zeros(0)
        accepted = torch.zeros(0, dtype=torch.bool)
        if len(which):
            directions, stats = self._halves(which)
            ratios = self._split_ratios(stats, self.prior)
            accepted = self._accept(ratios)
            if plan.max_clusters is not None:  # the best of them
                rank = torch.where(accepted, -ratios, torch.inf).argsort().argsort()
                accepted &= rank < plan.max_clusters - before
        if accepted.any():
            chosen = which[accepted]
            stay = self.module.others(chosen)
            self.module.split(chosen, directions[accepted])
            halves = Statistics(*(part[accepted].flatten(0, 1) for part in stats))
            born = (number << 20) + chosen.repeat_interleave(2)
            self._carry(stay, halves, self.strikes[chosen].repeat_interleave(2), born=born)
            self._look()
        taken = int(accepted.sum())
        self._note(number, "split", before, len(which), ratios, taken)
        return taken > 0

    def _split_ratios(self, stats: Statistics, prior: NormalWishart) -> Tensor:
        """Tempered log-ratios (B,) of halves (B, 2)."""
        light = stats.times(self.zeta)
        return log_split_ratio(light.of(0), light.of(1), prior, self.alpha, self.least)

    @property
    def least(self) -> float:
        """What a half must count for: the smallest allowed, and one row after tempering."""
        return max(1.0, self.schedule.smallest * self.zeta)

    def _halves(self, which: Tensor) -> tuple[Tensor, Statistics]:
        """Directions (B, H + 1) that part clusters best, and the statistics (B, 2) of the parts."""
        counts = torch.bincount(self.labels, minlength=self.module.n_clusters)
        members, keep = self._members(_SAMPLE, which)
        odds = self._search(which, members, keep, counts[which].double() * self.zeta)
        directions = self.module.plan_split(members, keep, odds)
        return directions, self._part(which, directions)

    def _search(self, which: Tensor, members: Tensor, keep: Tensor, size: Tensor) -> Tensor:
        """Log-odds (B, M) of two halves of every cluster: by its own net, by Gaussians, or best."""
        found = []
        if self.schedule.search != "em":
            padded = torch.zeros(self.module.n_clusters, *members.shape[1:])
            padded[which] = members
            with torch.inference_mode():
                parts = self.module.parts(padded.to(self.module.bias.device)).cpu()[which]
            found.append(parts[..., 0] - parts[..., 1])
        if self.schedule.search != "nets":
            halves = search_splits(members, keep, size, self.prior, self.alpha, self.least)
            found.append(log_odds(members, *halves))
        if len(found) == 1:
            return found[0]
        odds = torch.stack([part.double() for part in found])  # (2, B, M)
        rows = members.double().expand(2, *members.shape)
        weight = row_weights(keep, size)
        ratios = halves_ratio(rows, odds > 0, weight, self.prior, self.alpha, self.least)
        best = ratios.argmax(dim=0)
        return odds[best, torch.arange(len(best))]

    def _part(self, which: Tensor, directions: Tensor) -> Statistics:
        """Statistics (B, 2) of the halves into which the net would part all rows of clusters."""
        place = torch.full((self.module.n_clusters,), -1)
        place[which] = torch.arange(len(which))
        total: Statistics | None = None
        for part, labels in zip(self.x.split(_CHUNK), self.labels.split(_CHUNK), strict=True):
            own = place[labels]
            rows, own = part[own >= 0], own[own >= 0]
            odds = self.module.halve(rows, directions[own]).cpu()
            half = F.one_hot(2 * own + (odds <= 0), 2 * len(which)).double()
            stats = gather_statistics(rows, half, self.prior.covariance)
            total = stats if total is None else total.plus(stats)
        assert total is not None
        return Statistics(*(part.unflatten(0, (-1, 2)) for part in total))

    def _merge(self, number: int) -> bool:
        before = self.module.n_clusters
        self._drop_empty()
        stats = self._hard_statistics()
        ratios = merge_ratios(
            stats.times(self.zeta), self.prior, self.alpha, self.schedule.n_neighbors
        )
        pairs: list[tuple[int, int]] = []
        found: list[float] = []
        open_ = torch.ones(len(ratios), dtype=torch.bool)
        while open_.sum() > 1:
            left = torch.where(open_[:, None] & open_, ratios, -torch.inf)
            best = int(left.argmax())
            i, j = divmod(best, len(ratios))
            value = left[i, j]
            found.append(float(value))
            if not bool(self._accept(value)):
                break
            pairs.append((i, j))
            open_[[i, j]] = False
        if pairs:
            both = torch.tensor(pairs)
            larger = both.gather(1, stats.n[both].argmax(dim=1, keepdim=True)).squeeze(1)
            stay = self.module.others(both.flatten())
            self.module.merge(both, larger)
            merged = stats.at(both[:, 0]).plus(stats.at(both[:, 1]))
            born = self.born[both]
            vain = (born[:, 0] == born[:, 1]) & (born[:, 0] >= 0)
            strikes = self.strikes[both].max(dim=1).values + vain
            self._carry(stay, merged, strikes, barred=vain)
            self._look()
        tried = int(ratios.isfinite().sum()) // 2
        self._note(number, "merge", before, tried, torch.tensor(found), len(pairs))
        return self.module.n_clusters < before

    def _drop_empty(self) -> None:
        counts = torch.bincount(self.labels, minlength=self.module.n_clusters)
        if bool((counts > 0).all()):
            return
        empty = (counts == 0).nonzero().squeeze(1)
        stay = self.module.others(empty)
        self.module.drop(empty)
        self._carry(stay, self.stats.at(slice(0, 0)), self.strikes[:0])
        self._look()

    def _carry(
        self,
        stay: Tensor,
        new: Statistics,
        strikes: Tensor,
        *,
        barred: Tensor | None = None,
        born: Tensor | None = None,
    ) -> None:
        """Statistics and marks after a move: of the clusters that stay, then of the new ones."""
        barred = torch.zeros(len(strikes), dtype=torch.bool) if barred is None else barred
        born = torch.full((len(strikes),), -1) if born is None else born
        self.strikes = torch.cat([self.strikes[stay], strikes])
        self.barred = torch.cat([self.barred[stay], barred])
        self.born = torch.cat([self.born[stay], born])
        kept = self.stats.at(stay)
        self._take(Statistics(*(torch.cat(p) for p in zip(kept, new, strict=True))))

    def _accept(self, ratio: Tensor) -> Tensor:
        if self.schedule.acceptance == "greedy":
            return ratio > 0
        draw = torch.rand(ratio.shape, generator=self.chance, dtype=torch.float64)
        return draw.log() < ratio

    def _note(
        self, number: int, move: str, before: int, tried: int, ratios: Tensor, accepted: int
    ) -> None:
        """Tell what a round has done."""
        finite = ratios[ratios.isfinite()]
        record = {
            "round": number,
            "step": self.steps,
            "move": move,
            "tried": tried,
            "accepted": accepted,
            "best_log_ratio": float(finite.max()) if len(finite) else None,
            "n_before": before,
            "n_after": self.module.n_clusters,
        }
        self.moves.append(record)
        self.report(record)


class _Rows:
    """Batches of rows, and of every cluster the same number of its own."""

    def __init__(self, growth: Growth, batch_size: int, seed: int) -> None:
        self.x, self.seed, self.n_members = growth.x, seed % 2**31, growth.n_members
        self.batch_size = min(batch_size, len(self.x))
        if self.n_members:
            self.order = growth.labels.argsort()
            self.counts = torch.bincount(growth.labels, minlength=growth.module.n_clusters)
            self.first = self.counts.cumsum(0) - self.counts

    def __call__(self, index: int) -> SplitMergeBatch:
        chance = torch.Generator().manual_seed(derive_seed(0, self.seed, index))
        rows = self.x[torch.randint(len(self.x), (self.batch_size,), generator=chance)]
        if not self.n_members:
            return SplitMergeBatch(rows)
        u = torch.rand(len(self.counts), self.n_members, generator=chance)
        place = self.first[:, None] + (u * self.counts[:, None]).long()
        return SplitMergeBatch(rows, self.x[self.order[place.clamp_max(len(self.x) - 1)]])


def _moments(x: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
    """Mean (K, D), and the leading axis of length one deviation, of padded rows (K, M, D)."""
    weight = keep.unsqueeze(-1).to(x.dtype)
    n = weight.sum(dim=1).clamp_min(1)
    mean = (x * weight).sum(dim=1) / n
    centred = (x - mean.unsqueeze(1)) * weight
    values, axes = torch.linalg.eigh(centred.mT @ centred / n.unsqueeze(-1))
    return mean, axes[..., -1] * values[..., -1:].clamp_min(0).sqrt()
