"""The broad prior over tables from which the default network learns to cluster.

How hard and how fine a data set is comes first, whatever the dimension:

    K ~ 9 % one, else from two to ``max_clusters`` with probability ∝ (K + 1)^−1.8: smooth, since
        the network's belief has every edge that its prior has
    separation δ ~ log-uniform      distance of neighbours in standard deviations, see ``layouts``;
                                    where K > 4 from (K/4)^¾ of the lowest on, up to 4.5; 12 % up to
                                    seven times further apart
    d ~ 8 % one; 19 % two; 8 % three; 65 % log-uniform to ``max_columns``; kinds have more
    N ~ log-uniform, weights ~ Dirichlet(α), α from very uneven to even

One in nine data sets is of one to five clouds that overlap, δ from 1.8 to 3.2; one in fourteen
is a crowd, from six clouds to one for every eight rows, but no more than half as many again as
``max_clusters``, with probability ∝ 1/K, δ from 2.1 to 8. The others have a layout (``_SHARES``;
where one does not fit K or d, scattered), shapes, warps, shears, noise rows and columns, and what
happens to columns on the way to a table. Half of those with five columns or more, but for coded
ones and kinds, are laid out in two to six dimensions, of which the columns tell; the columns' own
noise brings clusters nearer than δ. Half of the kinds with more than four columns, and some of
these, come as principal scores. In a table of four columns or more, scattered clusters are now and
then finer than the labels, or crossed by groups that the labels know nothing of; one table in
twenty, of those with 96 rows or more, has copies of its rows, and is laid out with a quarter of
them or more (``divisions``).

A draw whose clusters are not found again by nine nearest neighbours that know all the true labels,
nor by round Gaussians around the true means, is thrown away, if it takes no more than twenty draws:
nobody could label it. (In many dimensions neighbours alone fail where the clouds are plain to see.)
Many clusters pass less often than few, so that those that are kept have somewhat fewer than the law
above says.
"""

from dataclasses import dataclass

import numpy as np
import torch

from asterism.functional.sets import SetBatch
from asterism.priors.columns import (
    add_noise_columns,
    as_table,
    express,
    principal_scores,
    shear,
    standardise,
    strays,
    warp,
)
from asterism.priors.divisions import copied, crossed, unions
from asterism.priors.kinds import kinds
from asterism.priors.layouts import coded, families, overlapping, scattered, wound

__all__ = ["TabularPrior"]

_CENTRED = 0.76  # share of rows that round clouds must give back, where neighbours fail
_BEYOND = 0.4  # of the rows outside the largest cluster, share to be won over naming it for all
_CROWD = 4.5  # separation up to which many clusters are moved apart
_COPIED = 96  # rows of a table that may have copies: enough of them are left
_CROWDED = 1.5  # times ``max_clusters``: most clusters of a crowd
_SHARES = {
    "scattered": 0.33,
    "families": 0.06,
    "wound": 0.21,
    "coded": 0.07,
    "kinds": 0.15,
    "overlapping": 0.11,
    "crowds": 0.07,
}
_CLOUDS = ("overlapping", "crowds")  # drawn as clouds side by side, whatever the other layouts do


@dataclass(frozen=True)
class TabularPrior:
    """Data sets of many kinds, standardised or encoded as tables are.

    All data sets of a batch have one size N; narrow ones are padded with columns of zeros, which
    change no distance. Noise rows are labelled −1. ``batch_size`` data sets are drawn at
    ``typical_points`` rows, fewer of larger ones, so that every batch costs about the same.

    Examples
    --------
    >>> import torch
    >>> from asterism.priors import TabularPrior
    >>> batch = TabularPrior(n_points=(50, 60)).sample(4, torch.Generator().manual_seed(0))
    >>> batch.x.ndim, bool(batch.keep.all()), int(batch.labels.min()) >= -1
    (3, True, True)
    """

    n_points: tuple[int, int] = (48, 512)
    max_clusters: int = 40
    max_columns: int = 100
    separation: tuple[float, float] = (1.6, 12.0)
    typical_points: int = 192
    recoverable: float = 0.72
    families: tuple[str, ...] = tuple(_SHARES)

    def sample(self, batch_size: int, generator: torch.Generator) -> SetBatch:
        """Draw about ``batch_size`` data sets."""
        seed = int(torch.randint(2**62, (), generator=generator))
        chance = np.random.default_rng(seed)
        n = round(float(np.exp(chance.uniform(*np.log(self.n_points)))))
        count = max(1, round(batch_size * min(1.0, (self.typical_points / n) ** 1.5)))
        draws = [self.draw(n, chance) for _ in range(count)]
        width = max(x.shape[1] for x, _ in draws)
        x = np.zeros((count, n, width), dtype=np.float32)
        for b, (columns, _) in enumerate(draws):
            x[b, :, : columns.shape[1]] = columns
        labels = torch.from_numpy(np.stack([labels for _, labels in draws]))
        return SetBatch(torch.from_numpy(x), torch.ones(count, n, dtype=torch.bool), labels)

    def draw(self, n: int, chance: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """One data set of ``n`` rows: columns (n, d) and labels (n,)."""
        rows = np.arange(n)
        if n >= _COPIED and chance.random() < 0.05:
            rows = copied(n, chance)
        for _ in range(20):
            x, labels = self._attempt(int(rows.max()) + 1, chance)
            if self._recoverable(x, labels):
                break
        order = chance.permutation(rows)
        return x[order].astype(np.float32), labels[order]

    def _attempt(self, n: int, chance: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        dim = min(draw_width(self.max_columns, chance), self.max_columns)
        family = chance.random()
        if family < self._share("overlapping"):
            return self._overlap(n, dim, chance)
        if family < self._share("overlapping") + self._share("crowds"):
            return self._crowd(n, dim, chance)
        n_noise = int(n * chance.uniform(0.01, 0.12)) if chance.random() < 0.15 else 0
        n_clusters = self._draw_count(n - n_noise, chance)
        sizes = draw_sizes(n - n_noise, n_clusters, chance)
        low, high = np.log(self.separation)
        # Many clusters in a crowd are a chain or a carpet to any reader: the more, the further.
        rise = 0.75 * np.log(max(n_clusters / 4, 1))
        low = max(low, min(low + rise, np.log(_CROWD), high))
        separation = float(np.exp(chance.uniform(low, high)))
        if chance.random() < 0.12:  # far apart: beyond doubt, but features look unlike all others
            separation *= float(np.exp(chance.uniform(0, 2)))
        kind = self._draw_kind(dim, n_clusters, chance)
        told = dim >= 5 and kind not in ("coded", "kinds") and chance.random() < 0.5
        causes = int(chance.integers(2, min(6, dim - 1) + 1)) if told else dim
        x, labels = self._lay_out(kind, sizes, causes, separation, chance)
        if kind == "scattered" and dim >= 4 and (divided := chance.random()) < 0.27:
            if divided < 0.15:
                labels = unions(x, labels, chance)
            else:
                x = crossed(x, labels, chance)
        bend = chance.random() if dim > 1 and kind not in ("coded", "kinds") else 1.0
        if bend < 0.4:
            x = warp(x, chance) if bend < 0.25 else shear(x, chance)
        if n_noise:
            x = np.concatenate([x, strays(x, n_noise, chance)])
            labels = np.concatenate([labels, np.full(n_noise, -1)])
        if told:
            x = express(x, dim, chance)
        if x.shape[1] > 4 and chance.random() < (0.5 if kind == "kinds" else 0.12 * told):
            x = principal_scores(x, int(chance.integers(2, min(24, x.shape[1]) + 1)))
        if chance.random() < (0.1 if kind == "kinds" else 0.2):
            most = max(1, min(x.shape[1], self.max_columns - x.shape[1]))
            x = add_noise_columns(x, int(chance.integers(1, most + 1)), chance)
        return as_table(x, labels, chance), labels

    def _overlap(
        self, n: int, dim: int, chance: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """A few clouds of one kind, close together, or one by itself."""
        most = max(1, min(self.max_clusters, n // 8))
        drawn = int(chance.choice([1, 2, 3, 4, 5], p=[0.28, 0.44, 0.16, 0.07, 0.05]))
        return self._clouds(draw_sizes(n, min(drawn, most), chance, 20.0), dim, (1.8, 3.2), chance)

    def _crowd(
        self, n: int, dim: int, chance: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Many clouds of one kind side by side, of eight rows or more; few columns mostly."""
        most = max(1, min(int(_CROWDED * self.max_clusters), n // 8))
        counts = np.arange(min(6, most), most + 1)
        weights = 1.0 / counts
        n_clusters = int(chance.choice(counts, p=weights / weights.sum()))
        dim = dim if chance.random() < 0.3 else min(dim, int(chance.integers(2, 4)))
        sizes = draw_sizes(n, n_clusters, chance, float(chance.choice([5.0, 20.0, 100.0])))
        return self._clouds(sizes, dim, (2.1, 8.0), chance)

    def _clouds(
        self,
        sizes: np.ndarray,
        dim: int,
        separations: tuple[float, float],
        chance: np.random.Generator,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Clouds side by side, mostly left as they are: borders are hard enough to see."""
        separation = float(np.exp(chance.uniform(*np.log(separations))))
        x, labels = overlapping(sizes, dim, separation, chance)
        finish = as_table(x, labels, chance) if chance.random() < 0.3 else standardise(x, chance)
        return finish, labels

    def _share(self, name: str) -> float:
        """Chance of a layout among those asked for."""
        asked = sum(_SHARES[family] for family in self.families)
        return _SHARES[name] / asked if name in self.families else 0.0

    def _draw_count(self, n: int, chance: np.random.Generator) -> int:
        most = max(1, min(self.max_clusters, n // 5))
        if most == 1 or chance.random() < 0.09:
            return 1
        counts = np.arange(2, most + 1)
        weights = (counts + 1.0) ** -1.8
        return int(chance.choice(counts, p=weights / weights.sum()))

    def _draw_kind(self, dim: int, n_clusters: int, chance: np.random.Generator) -> str:
        others = [name for name in self.families if name not in _CLOUDS]
        p = np.array([_SHARES[name] for name in others])
        kind = str(chance.choice(others, p=p / p.sum()))
        fits = {
            "wound": dim > 1 and 2 <= n_clusters <= 8,
            "families": n_clusters >= 4,
            "coded": self.max_columns >= 5,
            "kinds": dim >= 3,
        }
        return kind if fits.get(kind, True) else "scattered"

    def _lay_out(
        self,
        kind: str,
        sizes: np.ndarray,
        dim: int,
        separation: float,
        chance: np.random.Generator,
    ) -> tuple[np.ndarray, np.ndarray]:
        if kind == "coded":
            width = int(chance.integers(5, min(25, self.max_columns) + 1))
            return coded(sizes, max(dim, width), chance)
        if kind == "wound":
            thin = np.exp(chance.uniform(0, 1.5)) if chance.random() < 0.4 else 1.0
            return wound(sizes, dim, max(separation, 4.0) * thin, chance)
        if kind == "kinds":
            return kinds(sizes, self._draw_measurements(dim, chance), separation, chance)
        return (families if kind == "families" else scattered)(sizes, dim, separation, chance)

    def _draw_measurements(self, dim: int, chance: np.random.Generator) -> int:
        """Columns of measured objects: many more often than of other tables."""
        wide = max(dim, min(self.max_columns, int(np.exp(chance.uniform(np.log(8), np.log(100))))))
        return wide if chance.random() < 0.6 else dim

    def _recoverable(self, x: np.ndarray, labels: np.ndarray) -> bool:
        """Whether nine neighbours' votes, or else round clouds, give back most labels."""
        known = labels >= 0
        x, labels = x[known].astype(np.float32), labels[known]
        n_clusters = int(labels.max()) + 1
        if n_clusters == 1:
            return True
        squared = (x**2).sum(axis=1)
        distance = squared[:, None] + squared[None] - 2 * x @ x.T
        np.fill_diagonal(distance, np.inf)
        nearest = np.argpartition(distance, min(9, len(x) - 2), axis=1)[:, :9]
        votes = np.zeros((len(x), n_clusters))
        np.add.at(votes, (np.arange(len(x))[:, None], labels[nearest]), 1)
        # Where one cluster has most rows, naming it for all is no finding.
        most = np.bincount(labels).max() / len(labels)
        blind = most + _BEYOND * (1 - most)
        if (votes.argmax(axis=1) == labels).mean() >= max(self.recoverable, blind):
            return True
        found = (_likeliest_cloud(x, labels) == labels).mean()
        return bool(found >= max(_CENTRED, blind))


def _likeliest_cloud(x: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Cluster (N,) of each row, were all round Gaussians: argmin_k |x − c_k|² / v_k + log v_k.

    c_k and v_k are the mean and the mean squared distance from it. A row's own centre is the one
    without it: in many dimensions a row is near any centre that it helped to set.
    """
    member = np.eye(labels.max() + 1, dtype=np.float32)[labels]
    sizes = np.maximum(member.sum(axis=0), 1)
    centers = member.T @ x / sizes[:, None]
    squared = (x**2).sum(axis=1)[:, None] + (centers**2).sum(axis=1) - 2 * x @ centers.T
    squared *= 1 + member * ((sizes / np.maximum(sizes - 1, 1)) ** 2 - 1)
    spread = (squared * member).sum(axis=0) / sizes
    spread = np.maximum(spread, 1e-6 * max(float(spread.max()), 1e-12))
    return (squared / spread + np.log(spread)).argmin(axis=1)


def draw_sizes(
    n: int, n_clusters: int, chance: np.random.Generator, evenness: float | None = None
) -> np.ndarray:
    """Rows of each cluster, at least four, summing to ``n``; ``evenness`` is Dirichlet's α."""
    alpha = evenness or chance.choice([0.7, 1.0, 2.0, 5.0, 30.0])
    least = min(4, n // n_clusters)
    weights = chance.dirichlet(np.full(n_clusters, alpha))
    return least + chance.multinomial(n - least * n_clusters, weights)


def draw_width(most: int, chance: np.random.Generator) -> int:
    """Number of columns: often one to three, where shapes can be seen, else up to ``most``."""
    kind = chance.random()
    if kind < 0.35:
        return 1 if kind < 0.08 else 2 if kind < 0.27 else 3
    return int(np.exp(chance.uniform(np.log(4), np.log(max(most, 4) + 1))))
