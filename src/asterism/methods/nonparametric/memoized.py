"""Memoised variational inference: batches keep their statistics, clusters are born and merged.

    batch    new responsibilities of its rows; its old statistics are taken out of the sums, the new
             ones added, and every cluster's posterior follows at once
    birth    of every cluster a few new ones are tried, learnt from a sample of its rows; they take
             its place if that raises the bound, exactly, over all rows
    merge    pairs for which the bound without entropies gains; made, best first, where it gains
             with them too

A lap never lowers the bound; moves are judged by the responsibilities of the moment, which differ
little from those the batches remember.

Hughes & Sudderth, "Memoized online variational inference for Dirichlet process mixture models",
NeurIPS 2013.
"""

from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import torch
from sklearn.cluster import KMeans
from torch import Tensor

from asterism.functional.niw import NormalWishart, Statistics, gather_statistics
from asterism.functional.variational import (
    expected_log_weights,
    log_sticks,
    pair_entropies,
    variational_bound,
)

__all__ = ["Memo"]

_ROWS = 1 << 11  # whose responsibilities are held at once
_SAMPLE = 1 << 11  # rows of a cluster from which births are learnt
_BIRTHS, _BIRTH_ROUNDS = 8, 15
_PAIRS = 256
_MERGE_LAPS = 5
_GAIN = 1e-6  # in nats, that counts as one


@dataclass
class Memo:
    """Sums over batches, and what follows from them."""

    batches: list[Tensor]  # (N_b, D) each
    prior: NormalWishart
    alpha: float
    smallest: float
    max_clusters: int
    seed: int
    bounds: list[float] = field(default_factory=list, init=False)
    moves: list[dict[str, float | int | str]] = field(default_factory=list, init=False)

    def start(self, labels: list[Tensor]) -> None:
        """Begin with hard labels of every batch."""
        k = 1 + max(int(own.max()) for own in labels)
        self.kept = [
            gather_statistics(x, torch.nn.functional.one_hot(own, k).double(), self._kind)
            for x, own in zip(self.batches, labels, strict=True)
        ]
        self.entropies = [torch.zeros(k, dtype=torch.float64) for _ in labels]
        self.stats = reduce(Statistics.plus, self.kept)
        self.chance = np.random.default_rng(self.seed)

    @property
    def n_clusters(self) -> int:
        """K now."""
        return len(self.stats.n)

    @property
    def bound(self) -> float:
        """Of what is remembered."""
        entropies = torch.stack(self.entropies).sum(dim=0)
        return float(variational_bound(self.stats, entropies, self.prior, self.alpha))

    def run(self, max_laps: int, tol: float, patience: int) -> bool:
        """Laps until the bound rises by less than ``tol`` nats a row, then moves, and so on.

        Merges are also tried now and then on the way, which shortens it.

        Ends after ``patience`` rounds of moves without any; whether it did.
        """
        n_rows, idle = sum(map(len, self.batches)), 0
        while len(self.bounds) < max_laps:
            self.lap()
            if len(self.bounds) > 1 and self.bounds[-1] - self.bounds[-2] > tol * n_rows:
                if len(self.bounds) % _MERGE_LAPS == 0:
                    self.merge()
                continue
            moved = self.merge() + self.birth()
            idle = 0 if moved else idle + 1
            if idle >= patience:
                return True
        self.merge()
        return False

    # --- laps ---------------------------------------------------------------------------------

    def lap(self) -> None:
        """Go through all batches once."""
        self._order()
        for b in self.chance.permutation(len(self.batches)).tolist():
            old = self.kept[b]
            self.kept[b], self.entropies[b] = self._assign(self.batches[b])
            self.stats = Statistics(
                *(
                    (whole - before + after)
                    for whole, before, after in zip(self.stats, old, self.kept[b], strict=True)
                )
            )
        self.stats = reduce(Statistics.plus, self.kept)  # so that rounding does not pile up
        self.bounds.append(self.bound)

    def _assign(self, x: Tensor) -> tuple[Statistics, Tensor]:
        """Statistics and entropies of rows under their new responsibilities."""
        found = []
        entropy = torch.zeros(self.n_clusters, dtype=torch.float64)
        for part in x.split(_ROWS):
            r = self.responsibilities(part)
            entropy -= torch.xlogy(r, r).sum(dim=0)
            found.append(gather_statistics(part, r, self._kind))
        return reduce(Statistics.plus, found), entropy

    def responsibilities(self, x: Tensor) -> Tensor:
        """Of rows (N, D) for each cluster, (N, K)."""
        densities, correction = self.prior.expected(self.stats)
        log_r = densities.log_prob(x) + correction + expected_log_weights(self.stats.n, self.alpha)
        return torch.softmax(log_r, dim=-1)

    def _order(self) -> None:
        """Sticks are broken from the largest cluster on, and what is empty is dropped."""
        order = self.stats.n.argsort(descending=True, stable=True)
        kept = order[self.stats.n[order] >= min(1.0, float(self.stats.n.max()))]
        self._choose(kept)

    def _choose(self, kept: Tensor) -> None:
        self.kept = [stats.at(kept) for stats in self.kept]
        self.entropies = [entropy[kept] for entropy in self.entropies]
        self.stats = self.stats.at(kept)

    # --- merges -------------------------------------------------------------------------------

    def merge(self) -> int:
        """Merge pairs while that raises the bound; how many."""
        self._order()
        k = self.n_clusters
        if k < 2:
            return 0
        first, second, gains = self._candidates()
        if len(gains) == 0:
            return 0
        single, union = torch.zeros(k).double(), torch.zeros(len(gains)).double()
        per_batch = []
        for x in self.batches:
            own = torch.zeros(len(gains)).double()
            for part in x.split(_ROWS):
                r = self.responsibilities(part)
                single -= torch.xlogy(r, r).sum(dim=0)
                own += pair_entropies(r, first, second)
            per_batch.append(own)
            union += own
        exact = gains + union - single[first] - single[second]
        taken: list[int] = []
        used: set[int] = set()
        for p in exact.argsort(descending=True).tolist():
            if float(exact[p]) <= _GAIN:
                break
            pair = {int(first[p]), int(second[p])}
            if not used & pair:
                used |= pair
                taken.append(p)
        if taken:
            self._unite(first[taken], second[taken], [own[taken] for own in per_batch])
        self._note("merge", k, len(gains), len(taken))
        return len(taken)

    def _candidates(self) -> tuple[Tensor, Tensor, Tensor]:
        """Pairs that would gain if entropies stayed, and how much."""
        k = self.n_clusters
        first, second = torch.triu_indices(k, k, 1)
        evidence = self.prior.log_evidence(self.stats)
        unions = torch.cat(
            [
                self.prior.log_evidence(self.stats.at(i).plus(self.stats.at(j)))
                for i, j in zip(first.split(1024), second.split(1024), strict=True)
            ]
        )
        counts = self.stats.n.expand(len(first), k).clone()
        pair, stay = torch.arange(len(first)), torch.ones(len(first), k, dtype=torch.bool)
        counts[pair, first] += counts[pair, second]
        stay[pair, second] = False
        united = counts[stay].view(-1, k - 1).sort(dim=1, descending=True).values
        sticks = log_sticks(united, self.alpha) - log_sticks(self.stats.n, self.alpha)
        gains = unions - evidence[first] - evidence[second] + sticks
        best = gains.argsort(descending=True)[:_PAIRS]
        best = best[gains[best] > _GAIN]
        return first[best], second[best], gains[best]

    def _unite(self, first: Tensor, second: Tensor, entropies: list[Tensor]) -> None:
        stay = torch.ones(self.n_clusters, dtype=torch.bool)
        stay[second] = False
        for b, stats in enumerate(self.kept):
            for part in stats:
                part[first] += part[second]
            self.entropies[b][first] = entropies[b]
        self._choose(stay.nonzero().squeeze(1))
        self.stats = reduce(Statistics.plus, self.kept)

    # --- births -------------------------------------------------------------------------------

    def birth(self) -> int:
        """Let clusters be replaced by several where that raises the bound; how many were."""
        self._order()
        before = self.n_clusters
        broods = self._broods()
        if not broods:
            return 0
        densities = {k: self.prior.expected(brood) for k, brood in broods.items()}
        weights = {k: (brood.n / brood.n.sum()).log() for k, brood in broods.items()}
        found: dict[int, list[Statistics]] = {k: [] for k in broods}
        entropies: dict[int, list[Tensor]] = {k: [] for k in broods}
        own = torch.zeros(before).double()
        for x in self.batches:
            sums: dict[int, list[Statistics]] = {k: [] for k in broods}
            left = {k: torch.zeros(len(brood.n)).double() for k, brood in broods.items()}
            for part in x.split(_ROWS):
                r = self.responsibilities(part)
                own -= torch.xlogy(r, r).sum(dim=0)
                for k, (gaussians, correction) in densities.items():
                    share = gaussians.log_prob(part) + correction + weights[k]
                    split = r[:, k, None] * torch.softmax(share, dim=-1)
                    left[k] -= torch.xlogy(split, split).sum(dim=0)
                    sums[k].append(gather_statistics(part, split, self._kind))
            for k in broods:
                found[k].append(reduce(Statistics.plus, sums[k]))
                entropies[k].append(left[k])
        accepted = [
            k for k in broods if self._gain(k, found[k], entropies[k], float(own[k])) > _GAIN
        ]
        room = self.max_clusters - before
        for k in accepted.copy():
            room -= len(broods[k].n) - 1
            if room < 0:
                accepted.remove(k)
        if accepted:
            self._replace(accepted, found, entropies)
        self._note("birth", before, len(broods), len(accepted))
        return len(accepted)

    def _broods(self) -> dict[int, Statistics]:
        """Of each cluster large enough, statistics of a few new ones in a sample of its rows."""
        samples = self._samples()
        broods = {}
        for k, x in samples.items():
            most = min(_BIRTHS, int(len(x) / (2 * self.smallest)))
            if most < 2 or len(torch.unique(x, dim=0)) < most:
                continue
            start = KMeans(most, n_init=1, random_state=int(self.chance.integers(2**31 - 1)))
            labels = torch.from_numpy(start.fit_predict(x.numpy()).astype(np.int64))
            scale = float(self.stats.n[k]) / len(x)
            stats = gather_statistics(
                x, torch.nn.functional.one_hot(labels, most).double() * scale, self._kind
            )
            for _ in range(_BIRTH_ROUNDS):
                stats = stats.at(stats.n >= self.smallest)
                if len(stats.n) < 2:
                    break
                densities, correction = self.prior.expected(stats)
                log_r = densities.log_prob(x) + correction
                r = torch.softmax(log_r + expected_log_weights(stats.n, self.alpha), dim=-1)
                stats = gather_statistics(x, r * scale, self._kind)
            if len(stats.n) >= 2:
                broods[k] = stats
        return broods

    def _samples(self) -> dict[int, Tensor]:
        """Random rows of each cluster, by its hard members."""
        found: dict[int, list[Tensor]] = {k: [] for k in range(self.n_clusters)}
        for x in self.batches:
            labels = torch.cat([self.responsibilities(p).argmax(dim=1) for p in x.split(_ROWS)])
            for k in found:
                mine = (labels == k).nonzero().squeeze(1)
                most = -(-_SAMPLE // len(self.batches))
                if len(mine) > most:
                    mine = mine[torch.from_numpy(self.chance.permutation(len(mine))[:most])]
                found[k].append(x[mine])
        return {k: torch.cat(parts) for k, parts in found.items()}

    def _gain(
        self, k: int, found: list[Statistics], entropies: list[Tensor], before: float
    ) -> float:
        """By how much the bound rises if the new clusters take the place of ``k``."""
        new = reduce(Statistics.plus, found)
        counts = torch.cat([self.stats.n[:k], self.stats.n[k + 1 :], new.n])
        sticks = log_sticks(counts.sort(descending=True).values, self.alpha)
        whole = Statistics(*(part.sum(dim=0) for part in new))
        evidence = self.prior.log_evidence(new).sum() - self.prior.log_evidence(whole)
        entropy = torch.stack(entropies).sum() - before
        return float(evidence + entropy + sticks - log_sticks(self.stats.n, self.alpha))

    def _replace(
        self,
        accepted: list[int],
        found: dict[int, list[Statistics]],
        entropies: dict[int, list[Tensor]],
    ) -> None:
        stay = torch.ones(self.n_clusters, dtype=torch.bool)
        stay[accepted] = False
        rest = stay.nonzero().squeeze(1)
        for b in range(len(self.kept)):
            parts = [self.kept[b].at(rest), *(found[k][b] for k in accepted)]
            self.kept[b] = Statistics(*(torch.cat(p) for p in zip(*parts, strict=True)))
            self.entropies[b] = torch.cat(
                [self.entropies[b][rest], *(entropies[k][b] for k in accepted)]
            )
        self.stats = reduce(Statistics.plus, self.kept)

    # --- inside -------------------------------------------------------------------------------

    @property
    def _kind(self) -> str:
        return self.prior.covariance

    def _note(self, move: str, before: int, tried: int, accepted: int) -> None:
        self.moves.append(
            {
                "lap": len(self.bounds),
                "move": move,
                "tried": tried,
                "accepted": accepted,
                "n_before": before,
                "n_after": self.n_clusters,
            }
        )
