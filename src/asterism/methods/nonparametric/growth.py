"""How clusters of a mixture grow in number and shrink: a network and the evidence by turns.

    round    a few epochs of ``nonparametric.learning``, then splits or merges, by turns
    split    of every cluster the best two halves are searched; those of log H > Δ stay parted
    merge    pairs of log H < Δ', best first, each cluster once
    end      after ``patience`` split rounds and merge rounds without a move, never on splits

Δ is what ``functional.returns`` asks of one cluster more, and Δ' what it allows to lose with one.
Before merges and at the end, clusters that count for too few rows are dropped, their rows given to
the others. What is moved is told to the net at once, and the mixture then waits until it has
followed. Halves that are merged again, or of which one is dropped, were split in vain: their
cluster is not tried in the next round, and after the second time never again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from asterism.functional.niw import NormalWishart, Statistics, label_statistics
from asterism.functional.pooling import Shape, log_partition, shaped_evidence
from asterism.functional.returns import equal_gain
from asterism.functional.splits import (
    halves_ratio,
    log_odds,
    log_split_ratio,
    merge_ratios,
    row_weights,
    search_splits,
)
from asterism.methods.nonparametric.learning import Learning

__all__ = ["Growth"]

_CHUNK = 1 << 14
_SAMPLE = 1024  # rows of a cluster through which its halves are searched


@dataclass
class Growth(Learning):
    """One fit: what learns, and what has been moved."""

    single: Shape | None = None  # what a single cluster is expected to be like, if not as others
    report: Callable[[dict[str, Any]], None] = lambda _: None
    moves: list[dict[str, Any]] = field(default_factory=list, init=False)
    alone: float = field(init=False)  # tempered log evidence of a single cluster

    # --- the whole ----------------------------------------------------------------------------

    def start(self, labels: np.ndarray) -> None:
        """Begin with a partition of the rows."""
        self.labels = torch.from_numpy(labels.astype(np.int64))
        self.strikes = torch.zeros(self.module.n_clusters, dtype=torch.int64)
        self.barred = torch.zeros(self.module.n_clusters, dtype=torch.bool)
        self.born = torch.full((self.module.n_clusters,), -1)  # the split a cluster came of
        self._take(self._own_statistics())
        self.alone = self._evidence_alone()
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
        self._drop_small(self.moves[-1]["round"] + 1 if self.moves else 0)
        return settled

    def best_splits(self, priors: Sequence[NormalWishart]) -> tuple[np.ndarray, np.ndarray]:
        """Log-ratio (K,) of the best split of each cluster, less what it must bring.

        And the number (K,) of the first of ``priors`` under which it would bring it, -1 if none.
        """
        which = torch.arange(self.module.n_clusters)
        _, stats = self._halves(which)
        gain, k = self._gain(self._own_statistics())
        price = self._equal_gain(gain, k, k + 1) - gain
        found = torch.stack([self._split_ratios(stats, prior) for prior in priors])  # (P, K)
        pays = found > price
        first = torch.where(pays.any(dim=0), pays.int().argmax(dim=0), -1)
        return (self._split_ratios(stats, self.prior) - price).numpy(), first.numpy()

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
            found = self._split_ratios(stats, self.prior)
            ratios = self._beyond_price(found)
            accepted = self._accept(ratios)
            if plan.max_clusters is not None:  # the best of them, in the order they were judged in
                rank = torch.where(accepted, -found, torch.inf).argsort().argsort()
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
        light = stats.times(self.schedule.zeta)
        return log_split_ratio(light.of(0), light.of(1), prior, self.alpha, self.least)

    def _beyond_price(self, ratios: Tensor) -> Tensor:
        """What splits (B,) bring beyond what they must, the better ones made first."""
        gain, k = self._gain(self._own_statistics())
        beyond = ratios.clone()
        for i in ratios.argsort(descending=True).tolist():
            beyond[i] -= self._equal_gain(gain, k, k + 1) - gain
            if beyond[i] > 0:
                gain, k = gain + float(ratios[i]), k + 1
        return beyond

    def _equal_gain(self, gain: float, k: int, other: int) -> float:
        n_rows = len(self.x) * self.schedule.zeta
        axes = self.schedule.n_axes or self.prior.columns or self.x.shape[1]
        return equal_gain(gain, k, other, n_rows, axes, self.schedule.parsimony)

    def _gain(self, stats: Statistics) -> tuple[float, int]:
        """What evidence clusters have beyond that of a single one, and how many are not empty."""
        return self._evidence(stats) - self.alone, int((stats.n > 0).sum())

    def _evidence(self, stats: Statistics) -> float:
        """Tempered log evidence of a partition and of its rows."""
        light = stats.times(self.schedule.zeta)
        return float((log_partition(light.n, self.alpha) + self.prior.log_evidence(light)).sum())

    def _evidence_alone(self) -> float:
        every = Statistics(*(part.sum(dim=0, keepdim=True) for part in self.stats))
        if self.single is None:
            return self._evidence(every)
        about = every.about(self.prior.mean)
        return shaped_evidence(self.single, about.times(self.schedule.zeta), self.alpha)

    @property
    def least(self) -> float:
        """What a half must count for: the smallest allowed, and one row after tempering."""
        return max(1.0, self.schedule.smallest * self.schedule.zeta)

    def _halves(self, which: Tensor) -> tuple[Tensor, Statistics]:
        """Directions (B, H + 1) that part clusters best, and the statistics (B, 2) of the parts."""
        counts = torch.bincount(self.labels, minlength=self.module.n_clusters)
        members, keep = self._members(_SAMPLE, which)
        odds = self._search(which, members, keep, counts[which].double() * self.schedule.zeta)
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
        own = place[self.labels]
        rows, own = self.x[own >= 0], own[own >= 0]
        parts = zip(rows.split(_CHUNK), own.split(_CHUNK), strict=True)
        odds = torch.cat([self.module.halve(part, directions[c]).cpu() for part, c in parts])
        half = 2 * own + (odds <= 0)
        stats = label_statistics(rows, half, 2 * len(which), self.prior.covariance)
        return Statistics(*(part.unflatten(0, (-1, 2)) for part in stats))

    def _own_statistics(self) -> Statistics:
        k = self.module.n_clusters
        return label_statistics(self.x, self.labels, k, self.prior.covariance)

    def _merge(self, number: int) -> bool:
        dropped = self._drop_small(number)
        before = self.module.n_clusters
        stats = self._own_statistics()
        ratios = merge_ratios(
            stats.times(self.schedule.zeta), self.prior, self.alpha, self.schedule.n_neighbors
        )
        pairs: list[tuple[int, int]] = []
        found: list[float] = []
        open_ = torch.ones(len(ratios), dtype=torch.bool)
        gain, k = self._gain(stats)
        while open_.sum() > 1:
            left = torch.where(open_[:, None] & open_, ratios, -torch.inf)
            best = int(left.argmax())
            i, j = divmod(best, len(ratios))
            value = left[i, j] + gain - self._equal_gain(gain, k, k - 1)
            found.append(float(value))
            if not bool(self._accept(value)):
                break
            gain, k = gain + float(left[i, j]), k - 1
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
        return dropped or bool(pairs)

    def _drop_small(self, number: int) -> bool:
        """Give up clusters that count for less than a half must, never the last; whether any."""
        before, tried = self.module.n_clusters, 0
        while self.module.n_clusters > 1:
            counts = torch.bincount(self.labels, minlength=self.module.n_clusters)
            small = (counts * self.schedule.zeta < self.least).nonzero().squeeze(1)
            if not len(small):
                break
            tried = tried or len(small)
            # The smaller half of them: with the rows of these the others may be large enough.
            small = small[counts[small].argsort(stable=True)][: (len(small) + 1) // 2]
            vain = torch.isin(self.born, self.born[small]) & (self.born >= 0)
            self.strikes += vain
            self.barred |= vain
            stay = self.module.others(small)
            self.module.drop(small)
            self._carry(stay, self.stats.at(slice(0, 0)), self.strikes[:0])
            self._look()
        dropped = before - self.module.n_clusters
        if dropped:
            self._note(number, "drop", before, tried, torch.zeros(0), dropped)
        return dropped > 0

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
        """Tell what a move has done."""
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
