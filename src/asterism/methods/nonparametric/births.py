"""Births and merges of clusters in memoised variational inference.

    birth    of every cluster a few new ones are tried, learnt from a sample of its rows; they take
             its place if that raises the bound
    merge    pairs that would gain if entropies stayed are made, best first, where the bound gains

A round of moves first assigns all rows anew, so that statistics and entropies belong to the same
responsibilities, and the bound of a move is exact: neither laps nor moves lower it.

Hughes & Sudderth, "Memoized online variational inference for Dirichlet process mixture models",
NeurIPS 2013.
"""

from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import torch
from sklearn.cluster import KMeans
from torch import Tensor
from torch.nn.functional import one_hot

from asterism.functional.niw import NormalWishart, Statistics, gather_statistics
from asterism.functional.variational import (
    entropies,
    expected_log_weights,
    log_sticks,
    pair_entropies,
)
from asterism.methods.nonparametric.memoized import ROWS, Memo

__all__ = ["GrowingMemo"]

_SAMPLE = 1 << 11  # rows of a cluster from which births are learnt
_BIRTHS, _BIRTH_ROUNDS = 8, 15
_PAIRS, _PAIRS_AT_ONCE = 256, 1024
_MERGE_LAPS = 5
_GAIN = 1e-6  # in nats, that counts as one


@dataclass
class Brood:
    """New clusters that might take the place of one, and what they hold of each batch."""

    stats: Statistics
    found: list[Statistics] = field(default_factory=list)
    entropies: list[Tensor] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.stats.n)

    def split(self, x: Tensor, r: Tensor, prior: NormalWishart) -> Tensor:
        """Responsibilities (N, J) of rows whose share ``r`` (N,) the parent has."""
        densities, correction = prior.expected(self.stats)
        share = densities.log_prob(x) + correction + (self.stats.n / self.stats.n.sum()).log()
        return r.unsqueeze(-1) * torch.softmax(share, dim=-1)


@dataclass
class GrowingMemo(Memo):
    """Laps and moves by turns."""

    smallest: float = 5
    max_clusters: int = 200
    moves: list[dict[str, float | int | str]] = field(default_factory=list, init=False)

    def run(self, max_laps: int, tol: float, patience: int) -> bool:
        """Laps until the bound rises by less than ``tol`` nats a row, then moves, and so on.

        Merges are also tried now and then on the way, which shortens it. Ends after ``patience``
        rounds of moves without any; whether it did.
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

    def _sticks(self, counts: Tensor) -> Tensor:
        return log_sticks(counts.sort(dim=-1, descending=True).values, self.alpha)

    # --- merges -------------------------------------------------------------------------------

    def merge(self) -> int:
        """Merge pairs while that raises the bound; how many."""
        self._order()
        before = self.n_clusters
        first, second = self._candidates()
        if len(first) == 0:
            return 0
        united = [torch.zeros(len(first), dtype=torch.float64) for _ in self.batches]

        def look(b: int, _: Tensor, r: Tensor) -> None:
            united[b] += pair_entropies(r, first, second)

        self._refresh(look)
        entropies = torch.stack(self.entropies).sum(dim=0)
        gains = self._united_evidence(first, second)
        gains += torch.stack(united).sum(dim=0) - entropies[first] - entropies[second]
        counts, taken, used = self.stats.n.clone(), [], set[int]()
        for p in gains.argsort(descending=True).tolist():
            i, j = int(first[p]), int(second[p])
            if used & {i, j}:
                continue
            after = counts.clone()
            after[i] += after[j]
            after[j] = 0.0
            rise = self._sticks(after[after > 0]) - self._sticks(counts[counts > 0])
            if float(gains[p] + rise) > _GAIN:
                used |= {i, j}
                taken.append(p)
                counts = after
        if taken:
            self._unite(first[taken], second[taken], [own[taken] for own in united])
        self._note("merge", before, len(first), len(taken))
        return len(taken)

    def _candidates(self) -> tuple[Tensor, Tensor]:
        """The pairs that would gain most if entropies stayed, which they cannot rise from."""
        k = self.n_clusters
        first, second = torch.triu_indices(k, k, 1)
        if k < 2:
            return first, second
        now, gains = self._sticks(self.stats.n), []
        chunks = (first.split(_PAIRS_AT_ONCE), second.split(_PAIRS_AT_ONCE))
        for i, j in zip(*chunks, strict=True):
            counts = self.stats.n.expand(len(i), k).clone()
            pair, stay = torch.arange(len(i)), torch.ones(len(i), k, dtype=torch.bool)
            counts[pair, i] += counts[pair, j]
            stay[pair, j] = False
            sticks = self._sticks(counts[stay].view(-1, k - 1)) - now
            gains.append(self._united_evidence(i, j) + sticks)
        gain = torch.cat(gains)
        best = gain.argsort(descending=True)[:_PAIRS]
        best = best[gain[best] > _GAIN]
        return first[best], second[best]

    def _united_evidence(self, first: Tensor, second: Tensor) -> Tensor:
        """What the evidence gains (P,) by the unions of pairs."""
        evidence = self.prior.log_evidence(self.stats)
        unions = self.prior.log_evidence(self.stats.at(first).plus(self.stats.at(second)))
        return unions - evidence[first] - evidence[second]

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
        broods = self._broods(self.max_clusters - before)
        if not broods:
            return 0
        for brood in broods.values():
            zeros = Statistics(*(torch.zeros_like(part) for part in brood.stats))
            brood.found = [zeros] * len(self.batches)
            brood.entropies = [torch.zeros_like(brood.stats.n)] * len(self.batches)

        def look(b: int, part: Tensor, r: Tensor) -> None:
            for k, brood in broods.items():
                split = brood.split(part, r[:, k], self.prior)
                own = gather_statistics(part, split, self._kind)
                brood.found[b] = brood.found[b].plus(own)
                brood.entropies[b] = brood.entropies[b] + entropies(split)

        self._refresh(look)
        accepted = self._chosen_births(broods)
        if accepted:
            self._replace({k: broods[k] for k in accepted})
        self._note("birth", before, len(broods), len(accepted))
        return len(accepted)

    def _broods(self, room: int) -> dict[int, Brood]:
        """Of each cluster large enough, a few new ones learnt from a sample of its rows."""
        broods = {}
        for k, x in self._samples().items():
            distinct = len(torch.unique(x, dim=0))
            large = int(float(self.stats.n[k]) / (2 * self.smallest))
            most = min(_BIRTHS, room + 1, distinct, large)
            if most < 2:
                continue
            start = KMeans(most, n_init=1, random_state=int(self.chance.integers(2**31 - 1)))
            labels = torch.from_numpy(start.fit_predict(x.numpy()).astype(np.int64))
            scale = float(self.stats.n[k]) / len(x)
            stats = gather_statistics(x, one_hot(labels, most).double() * scale, self._kind)
            for _ in range(_BIRTH_ROUNDS):
                stats = stats.at(stats.n >= self.smallest)
                if len(stats.n) < 2:
                    break
                densities, correction = self.prior.expected(stats)
                log_r = densities.log_prob(x) + correction
                r = torch.softmax(log_r + expected_log_weights(stats.n, self.alpha), dim=-1)
                stats = gather_statistics(x, r * scale, self._kind)
            stats = stats.at(stats.n >= self.smallest)
            if len(stats.n) >= 2:
                broods[k] = Brood(stats)
        return broods

    def _samples(self) -> dict[int, Tensor]:
        """Random rows of each cluster, by its hard members."""
        found: dict[int, list[Tensor]] = {k: [] for k in range(self.n_clusters)}
        most = -(-_SAMPLE // len(self.batches))
        for x in self.batches:
            labels = torch.cat([self.responsibilities(p).argmax(dim=1) for p in x.split(ROWS)])
            for k, rows in found.items():
                mine = (labels == k).nonzero().squeeze(1)
                if len(mine) > most:
                    mine = mine[torch.from_numpy(self.chance.permutation(len(mine))[:most])]
                rows.append(x[mine])
        samples = {k: torch.cat(rows) for k, rows in found.items()}
        return {k: rows for k, rows in samples.items() if len(rows)}

    def _chosen_births(self, broods: dict[int, Brood]) -> list[int]:
        """Parents whose broods raise the bound, one after the other, the best first."""
        entropies = torch.stack(self.entropies).sum(dim=0)
        evidence = self.prior.log_evidence(self.stats)
        whole = {k: reduce(Statistics.plus, brood.found) for k, brood in broods.items()}
        gains = {
            k: float(
                self.prior.log_evidence(whole[k]).sum()
                - evidence[k]
                + torch.stack(brood.entropies).sum()
                - entropies[k]
            )
            for k, brood in broods.items()
            if float(whole[k].n.min()) >= self.smallest
        }
        room, accepted = self.max_clusters - self.n_clusters, list[int]()
        stay, born = torch.ones(self.n_clusters, dtype=torch.bool), list[Tensor]()
        for k in sorted(gains, key=lambda k: -gains[k]):
            now = self._sticks(torch.cat([self.stats.n[stay], *born]))
            stay[k] = False
            after = self._sticks(torch.cat([self.stats.n[stay], *born, whole[k].n]))
            if len(broods[k]) - 1 <= room and gains[k] + float(after - now) > _GAIN:
                accepted.append(k)
                born.append(whole[k].n)
                room -= len(broods[k]) - 1
            else:
                stay[k] = True
        return accepted

    def _replace(self, broods: dict[int, Brood]) -> None:
        stay = torch.ones(self.n_clusters, dtype=torch.bool)
        stay[list(broods)] = False
        rest = stay.nonzero().squeeze(1)
        for b in range(len(self.kept)):
            parts = [self.kept[b].at(rest), *(brood.found[b] for brood in broods.values())]
            self.kept[b] = Statistics(*(torch.cat(p) for p in zip(*parts, strict=True)))
            own = [self.entropies[b][rest], *(brood.entropies[b] for brood in broods.values())]
            self.entropies[b] = torch.cat(own)
        self.stats = reduce(Statistics.plus, self.kept)

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
