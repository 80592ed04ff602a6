"""Memoised variational inference: batches keep their statistics.

    batch    new responsibilities of its rows; its old statistics are taken out of the sums, the new
             ones added, and every cluster's posterior follows at once
    lap      all batches, in random order

The bound of all rows is known throughout, and no batch lowers it.

Hughes & Sudderth, "Memoized online variational inference for Dirichlet process mixture models",
NeurIPS 2013.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from asterism.functional.niw import NormalWishart, Statistics, gather_statistics
from asterism.functional.variational import entropies, expected_log_weights, variational_bound

__all__ = ["ROWS", "Memo"]

ROWS = 1 << 11
"""Rows whose responsibilities are held at once."""


@dataclass
class Memo:
    """Sums over batches, and what follows from them."""

    batches: list[Tensor]  # (N_b, D) each
    prior: NormalWishart
    alpha: float
    seed: int
    bounds: list[float] = field(default_factory=list, init=False)

    def start(self, labels: list[Tensor]) -> None:
        """Begin with hard labels of every batch."""
        k = 1 + max(int(own.max()) for own in labels)
        self.kept = [
            gather_statistics(x, one_hot(own, k).double(), self._kind)
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

    # --- laps ---------------------------------------------------------------------------------

    def lap(self) -> None:
        """Go through all batches once, and let the clusters follow after each."""
        self._order()
        for b in self.chance.permutation(len(self.batches)).tolist():
            old = self.kept[b]
            self.kept[b], self.entropies[b] = self._assign(self.batches[b])
            change = zip(self.stats, old, self.kept[b], strict=True)
            self.stats = Statistics(*(whole - before + after for whole, before, after in change))
        self.stats = reduce(Statistics.plus, self.kept)  # so that rounding does not pile up
        self.bounds.append(self.bound)

    def responsibilities(self, x: Tensor) -> Tensor:
        """Of rows (N, D) for each cluster, (N, K)."""
        densities, correction = self.prior.expected(self.stats)
        log_r = densities.log_prob(x) + correction + expected_log_weights(self.stats.n, self.alpha)
        return torch.softmax(log_r, dim=-1)

    def _assign(
        self, x: Tensor, look: Callable[[Tensor, Tensor], None] | None = None
    ) -> tuple[Statistics, Tensor]:
        """Statistics and entropies of rows under new responsibilities, shown to ``look``."""
        found = []
        entropy = torch.zeros(self.n_clusters, dtype=torch.float64)
        for part in x.split(ROWS):
            r = self.responsibilities(part)
            entropy += entropies(r)
            found.append(gather_statistics(part, r, self._kind))
            if look is not None:
                look(part, r)
        return reduce(Statistics.plus, found), entropy

    def _refresh(self, look: Callable[[int, Tensor, Tensor], None]) -> None:
        """Assign all rows by the clusters as they are, and only then let the clusters follow."""
        fresh = [
            self._assign(x, lambda part, r, b=b: look(b, part, r))  # type: ignore[misc]
            for b, x in enumerate(self.batches)
        ]
        self.kept = [stats for stats, _ in fresh]
        self.entropies = [entropy for _, entropy in fresh]
        self.stats = reduce(Statistics.plus, self.kept)

    def _order(self) -> None:
        """Sticks are broken from the largest cluster on, and what is empty is dropped."""
        order = self.stats.n.argsort(descending=True, stable=True)
        self._choose(order[self.stats.n[order] >= min(1.0, float(self.stats.n.max()))])

    def _choose(self, kept: Tensor) -> None:
        self.kept = [stats.at(kept) for stats in self.kept]
        self.entropies = [entropy[kept] for entropy in self.entropies]
        self.stats = self.stats.at(kept)

    # --- inside -------------------------------------------------------------------------------

    @property
    def _kind(self) -> str:
        return self.prior.covariance
