"""What clusters have in common, learnt from the rows: how wide they are, how like, how far apart.

How wide clusters are is not known before they are, and a guess decides how many there are. But the
evidence of all rows tells it. Along the path of Ward's merges, for every number K of clusters,

    W     covariance within the clusters, pooled
    Ψ₀ = m W,   ν₀ = D + 1 + m      so that clusters expect W, as if they had seen m rows of it
    κ₀                              so that means vary by W / κ₀
    τ                               so that widths differ, see ``functional.widths``, or zero

and of all m, κ₀ and τ those of the largest evidence of partition and rows are taken,

    Σ_k [log α + log Γ(n_k) + log f(X_k)]

and of all K the one that is most worth having by it, see ``functional.returns``. There are clusters
at all only if there would be if rows counted for six tenths: a cloud that is not Gaussian may be
described a little better by pieces, and where rows are few, hardly more. (With a ``parsimony`` of
zero evidence decides on both.)

With m small, clusters are of many shapes, and a small cluster is costly; with m large they are all
alike, and cost no more than their means. These cost D/2 · log(1 + n/κ₀): with κ₀ small, as if means
could lie anywhere, so much in many columns that clusters hardly apart in each, but clearly in all
of them, are taken for one. W is what it is at each K, not at another: clusters cut in two look
narrow, and would keep their halves apart if judged by their own width alone. A single cluster lies
where all rows do, so its mean costs nothing: it takes the largest κ₀.

Ward's merges want round clusters. So the path is gone again with rows whitened by the W found, as
long as what it finds is worth more.

Efron, "Large-scale inference: empirical Bayes methods for estimation, testing and prediction",
2010; Fraley & Raftery, "Bayesian regularization for normal mixture estimation and model-based
clustering", Journal of Classification 2007.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from scipy.cluster.hierarchy import linkage
from torch import Tensor

from asterism.functional.hierarchy import cut_tree
from asterism.functional.niw import Statistics, label_statistics
from asterism.functional.returns import equal_gain
from asterism.functional.widths import round_evidences, shared_shape

__all__ = [
    "MEAN_STRENGTHS",
    "STRENGTHS",
    "Pooled",
    "Shape",
    "log_partition",
    "pool_covariance",
    "shaped_evidence",
    "turned",
    "whitener",
]

STRENGTHS = (2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 300.0, 1000.0)
"""Rows m that the pooled covariance may be worth to a cluster."""

MEAN_STRENGTHS = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
"""Rows κ₀ that the mean of all rows may be worth to a cluster's."""

_ALL, _MOST = 30, 256  # every K up to the first, then some up to the second
_LEAST_ROWS = 5  # of a cluster, on the average
_FURTHER, _PATHS = 16, 4  # how many such K, and times the path is gone
_QUICK_FURTHER, _QUICK_PATHS = 6, 2
_SURE = 0.6  # of the rows, by which clusters must be there too


class Shape(NamedTuple):
    """What clusters are expected to be like."""

    covariance: np.ndarray  # (D, D) W
    strength: float  # m
    mean_strength: float  # κ₀
    spread: float = 0.0  # τ


class Pooled(NamedTuple):
    """What the rows say of their clusters."""

    shape: Shape
    labels: np.ndarray  # (N,) the partition most worth having
    single: Shape  # that of a single cluster
    gain: float  # log evidence of the partition beyond that of a single cluster


def pool_covariance(
    x: np.ndarray,
    n_rows: float,
    steady: np.ndarray,
    *,
    alpha: float,
    parsimony: float = 0.0,
    max_clusters: int | None = None,
    strengths: Sequence[float] = STRENGTHS,
    mean_strengths: Sequence[float] = MEAN_STRENGTHS,
    spreads: Sequence[float] = (0.0,),
    n_axes: int | None = None,
    quick: bool = False,
) -> Pooled:
    """Pool the covariance of rows (N, D) that stand for ``n_rows``.

    ``steady`` (D,) are variances that W is drawn to, by D + 2 rows' worth, so that it is one of
    full rank. ``parsimony`` is that of ``functional.returns``, where D is ``n_axes`` if
    given. ``spreads`` are the τ to choose from. ``quick`` looks at fewer partitions, to compare
    rather than to keep: the gain may be less.

    >>> chance = np.random.default_rng(0)
    >>> x = chance.standard_normal((300, 2)) + 20 * np.eye(2)[np.arange(300) % 2]
    >>> found = pool_covariance(x, 300, np.ones(2), alpha=1.0)
    >>> int(found.labels.max()) + 1, found.shape.covariance.round().tolist()
    (2, [[1.0, 0.0], [0.0, 1.0]])
    """
    n, dim = x.shape
    x = x - x.mean(axis=0)  # so that squares lose no digits
    rows, round_ = torch.from_numpy(x), x

    def best(stats: Statistics, weight: float = 1.0) -> tuple[float, Shape]:
        freedom = max(n - len(stats.n), 0) + dim + 2
        W = (_scatter(stats).numpy() + (dim + 2) * np.diag(steady)) / freedom
        light = stats.times(weight * n_rows / n)
        found = []
        for tau in spreads if len(stats.n) > 1 else (0.0,):
            own = W if tau == 0 else _shared(stats, W, steady)
            values = _evidences(own, light, alpha, strengths, mean_strengths, tau)
            s, q = divmod(int(values.argmax()), len(mean_strengths))
            shape = Shape(own, strengths[s], mean_strengths[q], tau)
            found.append((float(values.max()), shape))
        return max(found, key=lambda pair: pair[0])

    together = np.zeros(n, dtype=np.int64)
    every = label_statistics(rows, torch.from_numpy(together), 1, "full")
    alone, single = best(every)
    doubt = best(every, _SURE)[0]
    found, sure = Pooled(single, together, single, 0.0), parsimony == 0
    most = 0.0  # gain of two clusters worth as much as the best so far
    paths, further = (_QUICK_PATHS, _QUICK_FURTHER) if quick else (_PATHS, _FURTHER)
    for turn in range(paths):
        before = most
        for labels, stats in _path(rows, round_, max_clusters, further):
            value, shape = best(stats)
            gain = value - alone
            if gain <= 0:
                continue
            sure = sure or best(stats, _SURE)[0] > doubt
            new = equal_gain(gain, len(stats.n), 2, n_rows, n_axes or dim, parsimony)
            if new > most:
                most, found = new, Pooled(shape, labels, single, gain)
        if most <= before and turn:  # whitened once in any case
            break
        round_ = x @ whitener(found.shape.covariance)
    return found if sure else Pooled(single, together, single, 0.0)


def shaped_evidence(shape: Shape, stats: Statistics, alpha: float) -> float:
    """Log evidence of the partition and rows, about zero, of clusters that are expected so."""
    one = ((shape.strength,), (shape.mean_strength,), shape.spread)
    return float(_evidences(shape.covariance, stats, alpha, *one)[0, 0])


def log_partition(n: Tensor, alpha: float) -> Tensor:
    """What clusters of so many rows (...) earn by being clusters; nothing below one row."""
    return torch.where(n >= 1, torch.lgamma(n) + np.log(alpha), 0.0)


def whitener(covariance: np.ndarray) -> np.ndarray:
    """The map (D, D) of rows, from the right, after which they have no covariance but identity."""
    values, axes = np.linalg.eigh(covariance)
    return axes / np.sqrt(values)


def turned(stats: Statistics, axes: Tensor) -> Statistics:
    """Statistics of rows x @ axes, from those of x, with full products."""
    return Statistics(stats.n, stats.total @ axes, axes.mT @ stats.square @ axes)


def _evidences(
    W: np.ndarray,
    stats: Statistics,
    alpha: float,
    strengths: Sequence[float],
    mean_strengths: Sequence[float],
    spread: float,
) -> np.ndarray:
    """Log evidence (S, Q) of a partition and of its rows about zero, for all m and κ₀."""
    axes = whitener(W)
    white = turned(stats, torch.from_numpy(axes))
    denser = stats.n.sum() * np.linalg.slogdet(axes)[1]  # rows are, before they are turned
    parts = log_partition(stats.n, alpha).sum() + denser
    m, kappas = (torch.tensor(v, dtype=torch.float64) for v in (strengths, mean_strengths))
    return (parts + round_evidences(white, m, kappas, spread).sum(dim=-1)).numpy()


def _path(
    x: Tensor, round_: np.ndarray, max_clusters: int | None, further: int
) -> Iterator[tuple[np.ndarray, Statistics]]:
    """Labels (N,) and statistics of cuts in two and more of Ward's tree of ``round_`` rows."""
    n = len(x)
    most = max(1, min(n // _LEAST_ROWS, _MOST, max_clusters or _MOST))
    if most == 1:
        return
    counts = set(range(2, min(_ALL, most) + 1))
    counts |= set(np.geomspace(min(_ALL, most), most, further).round().astype(int).tolist())
    tree = linkage(round_, "ward")
    finest = cut_tree(tree, most)
    pieces = label_statistics(x, torch.from_numpy(finest), most, "full")
    for k in sorted(counts):
        labels = cut_tree(tree, k)
        owner = np.zeros(most, dtype=np.int64)
        owner[finest] = labels  # cuts of one tree are nested
        sums = torch.nn.functional.one_hot(torch.from_numpy(owner), k).double().mT
        yield (
            labels,
            Statistics(
                sums @ pieces.n,
                sums @ pieces.total,
                torch.einsum("kp,pij->kij", sums, pieces.square),
            ),
        )


def _scatter(stats: Statistics) -> Tensor:
    """Σ_k of the products (D, D) about the clusters' own means."""
    return stats.square.sum(dim=0) - (stats.total / stats.n.unsqueeze(-1)).mT @ stats.total


def _shared(stats: Statistics, W: np.ndarray, steady: np.ndarray) -> np.ndarray:
    """W (D, D) of clusters of which each has a width of its own."""
    start, least = torch.from_numpy(W), torch.from_numpy(np.diag(steady))
    return shared_shape(stats.scatter(), stats.n, start, least).numpy()
