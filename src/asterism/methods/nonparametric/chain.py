"""A Markov chain over partitions whose law is the posterior of a Dirichlet process mixture.

    p(c | X) ∝ α^K Π_k Γ(n_k) f(X_k)

Two kinds of steps leave it as it is:

    sweep    π ~ Dirichlet(n₁ … n_K), (μ_k, Σ_k) ~ their posterior, then every row anew with chances
             ∝ π_k N(x; μ_k, Σ_k), all at once; taken back if a cluster would be left without rows.
             K stays
    move     with even chances a split or a merge, by Metropolis-Hastings. A split draws every
             row's half by the odds of two Gaussians that were fitted to the cluster without any
             chance: so its probability is known, and that of the split that would undo a merge.
             Some toss a coin for every row instead: hardly ever taken, but without them clusters
             that cover each other could hardly ever be merged

The moves are informed as those of sub-cluster samplers are, and exact for any number of rows.

Chang & Fisher, "Parallel sampling of DP mixture models using sub-cluster splits", NeurIPS 2013;
Jain & Neal, "A split-merge Markov chain Monte Carlo procedure for the Dirichlet process mixture
model", JCGS 2004.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from asterism.functional.niw import NormalWishart, Statistics, label_statistics
from asterism.functional.splits import log_odds, log_split_ratio, search_splits

__all__ = ["Chain"]

_CHUNK = 1 << 14
_SAMPLE = 1024
_BLIND = 0.1  # share of the splits that toss a coin for every row
_FAR = 1e-3  # least share of a cluster's chance to be merged with one far away


@dataclass
class Chain:
    """The state: a partition of the rows, no cluster empty."""

    x: Tensor  # (N, D)
    prior: NormalWishart
    alpha: float
    labels: Tensor  # (N,)
    chance: np.random.Generator

    def __post_init__(self) -> None:
        self.x = self.x.double()
        self.labels = torch.unique(self.labels, return_inverse=True)[1]
        self.stats = self._gather(torch.arange(len(self.x)), self.labels, self.n_clusters)
        self.accepted = {"split": 0, "merge": 0}
        self.tried = {"split": 0, "merge": 0}

    @property
    def n_clusters(self) -> int:
        """K now."""
        return int(self.labels.max()) + 1

    @property
    def log_posterior(self) -> float:
        """Log p(c | X) up to a constant."""
        parts = torch.lgamma(self.stats.n) + self.prior.log_evidence(self.stats)
        return float(parts.sum() + len(self.stats.n) * np.log(self.alpha))

    # --- steps --------------------------------------------------------------------------------

    def sweep(self) -> None:
        """Draw parameters, then every row's cluster anew among those there are."""
        k = self.n_clusters
        weights = torch.from_numpy(self.chance.dirichlet(self.stats.n.numpy()))
        densities = self.prior.draw(self.stats, self.chance)
        log_weights = weights.clamp_min(1e-300).log()
        drawn = []
        for part in self.x.split(_CHUNK):
            joint = densities.log_prob(part) + log_weights
            noise = torch.from_numpy(self.chance.gumbel(size=joint.shape))
            drawn.append((joint + noise).argmax(dim=1))
        labels = torch.cat(drawn)
        if int(torch.bincount(labels, minlength=k).min()) > 0:
            self.labels = labels
            self.stats = self._gather(torch.arange(len(self.x)), labels, k)

    def move(self, *, climb: bool = False) -> bool:
        """Try one split or one merge; whether it was taken.

        To ``climb`` is to judge by the posterior alone, whatever the chances of the way back: it
        finds a mode faster, but is no step of the chain.
        """
        kind = "split" if self.chance.random() < 0.5 else "merge"
        done = self._split(climb) if kind == "split" else self._merge(climb)
        if not climb:
            self.tried[kind] += 1
            self.accepted[kind] += done
        return done

    def _split(self, climb: bool) -> bool:
        cluster = int(self.chance.integers(self.n_clusters))
        rows = (self.labels == cluster).nonzero().squeeze(1)
        if len(rows) < 2:
            return False
        odds = self._odds(rows)
        chances = odds.sigmoid() if self.chance.random() > _BLIND else torch.tensor(0.5)
        first = torch.from_numpy(self.chance.random(len(rows))) < chances
        if first.all() or not first.any():
            return False
        halves = self._gather(rows, (~first).long(), 2)
        after = _joined(self.stats, [cluster], halves)
        k = self.n_clusters
        log_accept = log_split_ratio(halves.of(0), halves.of(1), self.prior, self.alpha)
        if not climb:  # the halves come last
            back = _log_pair(after, k - 1, k) + np.log(k)
            log_accept = log_accept + back - _log_halving(odds, first)
        if np.log(self.chance.random()) >= float(log_accept):
            return False
        self._relabel(cluster, None, rows[first], rows[~first])
        self.stats = after
        return True

    def _merge(self, climb: bool) -> bool:
        k = self.n_clusters
        if k < 2:
            return False
        a = int(self.chance.integers(k))
        b = int(self.chance.choice(k, p=_pair_chances(self.stats)[a].numpy()))
        rows = ((self.labels == a) | (self.labels == b)).nonzero().squeeze(1)
        first = self.labels[rows] == a
        one, other = self.stats.at(a), self.stats.at(b)
        log_accept = -log_split_ratio(one, other, self.prior, self.alpha)
        if not climb:
            there = _log_pair(self.stats, a, b) + np.log(k - 1)
            log_accept = log_accept + _log_halving(self._odds(rows), first) - there
        if np.log(self.chance.random()) >= float(log_accept):
            return False
        union = Statistics(*(part.unsqueeze(0) for part in one.plus(other)))
        self.stats = _joined(self.stats, [a, b], union)
        self._relabel(a, b, rows)
        return True

    # --- inside -------------------------------------------------------------------------------

    def _odds(self, rows: Tensor) -> Tensor:
        """Log-odds (n,) of the halves of a cluster: a function of which rows it has, no more."""
        every = -(-len(rows) // _SAMPLE)
        sample = self.x[rows[::every]].unsqueeze(0)
        keep = torch.ones(sample.shape[:2], dtype=torch.bool)
        size = torch.tensor([float(len(rows))], dtype=torch.float64)
        halves = search_splits(sample, keep, size, self.prior, self.alpha, n_axes=1)
        odds = log_odds(self.x[rows].unsqueeze(0), *halves).squeeze(0)
        # No row is beyond doubt, so that every partition can be reached; of many hardly one is.
        limit = np.log(len(rows) + 10)
        return odds.clamp(-limit, limit)

    def _gather(self, rows: Tensor, labels: Tensor, k: int) -> Statistics:
        return label_statistics(self.x[rows], labels, k, self.prior.covariance)

    def _relabel(self, a: int, b: int | None, *groups: Tensor) -> None:
        """Take clusters out and number new ones last, as :func:`_joined` does."""
        gone = [a] if b is None else [a, b]
        stay = torch.ones(self.n_clusters, dtype=torch.bool)
        stay[gone] = False
        place = stay.long().cumsum(0) - 1
        labels = place[self.labels]
        for offset, rows in enumerate(groups):
            labels[rows] = int(stay.sum()) + offset
        self.labels = labels


def _joined(stats: Statistics, gone: list[int], new: Statistics) -> Statistics:
    stay = torch.ones(len(stats.n), dtype=torch.bool)
    stay[gone] = False
    return Statistics(*(torch.cat([old[stay], add]) for old, add in zip(stats, new, strict=True)))


def _log_halving(odds: Tensor, first: Tensor) -> Tensor:
    """Log-probability that a split draws these two halves, whichever is called the first."""
    one = F.logsigmoid(torch.where(first, odds, -odds)).sum()
    other = F.logsigmoid(torch.where(first, -odds, odds)).sum()
    informed = torch.logaddexp(one, other) + np.log(1 - _BLIND)
    blind = torch.tensor(np.log(_BLIND) - (len(first) - 1) * np.log(2), dtype=torch.float64)
    return torch.logaddexp(informed, blind)


def _pair_chances(stats: Statistics) -> Tensor:
    """Chance (K, K) that a cluster, once chosen, is merged with another: near ones more often."""
    means = stats.total / stats.n.unsqueeze(-1)
    squared = torch.cdist(means, means).square().fill_diagonal_(torch.inf)
    nearest = squared.min(dim=1, keepdim=True).values
    weight = torch.exp(-squared / (nearest + 1e-300)) + _FAR
    weight.fill_diagonal_(0)
    return weight / weight.sum(dim=1, keepdim=True)


def _log_pair(stats: Statistics, a: int, b: int) -> Tensor:
    """Log-probability that a merge chooses these two."""
    chances = _pair_chances(stats)
    return ((chances[a, b] + chances[b, a]) / len(stats.n)).log()
