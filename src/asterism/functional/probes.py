"""Quick classical looks at data sets, batched and deterministic: what relations are made of.

minimax_paths     the largest step one cannot avoid between two rows
walk_powers       where a random walk is after t steps; walk_legs: one that begins elsewhere
quick_kmeans      short k-means at several numbers of clusters, from one sequence of seeds
quick_groups      the same from distances alone
local_metric      a linear map after which clusters of one shape are round
principal_axes    directions of the largest variance
pieces            what falls apart when long steps are forbidden
smallest          the smallest of many numbers
"""

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from scipy.cluster.hierarchy import cophenet, linkage
from scipy.spatial.distance import squareform
from torch import Tensor

__all__ = [
    "QuickPartitions",
    "local_metric",
    "minimax_paths",
    "nearest_centers",
    "nearest_groups",
    "pieces",
    "principal_axes",
    "quick_groups",
    "quick_kmeans",
    "smallest",
    "walk_legs",
    "walk_powers",
]

_RIDGE = 0.05
_TIE = 0.01
_FAR = 3.0  # largest margin
_COINCIDENT = 2e-3  # of the centres' spread: nearer ones are one, but for rounding


class QuickPartitions(NamedTuple):
    """What quick k-means found at every count."""

    centers: Tensor  # (B, sum of counts, D), or shares (B, N, sum of counts) of rows in groups
    labels: Tensor  # (B, N, counts)
    silhouettes: Tensor  # (B, N, counts) of each row, simplified
    margins: Tensor  # (B, N, counts) of each row: 1 at its centre, 0 half way to the next
    inertia: Tensor  # (B, counts) share of the sum of squares left


def minimax_paths(weights: Tensor) -> Tensor:
    """Smallest possible largest step (B, N, N) between rows of a complete graph (B, N, N).

    It is the height at which single linkage joins two rows, and scipy's tree of a data set is made
    in less time than torch needs to add its rows one by one. Weights are finite and symmetric;
    gradients do not pass.
    """
    if weights.shape[1] < 2 or not len(weights):
        return torch.zeros_like(weights)
    paths = [
        squareform(cophenet(linkage(squareform(graph, checks=False), method="single")))
        for graph in weights.detach().cpu().double().numpy()
    ]
    return torch.from_numpy(np.stack(paths)).to(weights)


def pieces(paths: Tensor, longest: Tensor, least: int) -> tuple[Tensor, Tensor]:
    """How many pieces of at least ``least`` rows there are, and the share of rows in them.

    Two rows are in one piece if their path (B, N, N) has no step above ``longest`` (B, T); each
    result is (B, T).
    """
    found = []
    for limit in longest.unbind(dim=1):
        size = (paths <= limit[:, None, None]).sum(dim=2).to(paths.dtype)
        large = (size >= least).to(paths.dtype)
        found.append(torch.stack([(large / size).sum(dim=1), large.mean(dim=1)]))
    number, share = torch.stack(found, dim=-1)
    return number, share


def smallest(values: Tensor, count: int) -> Tensor:
    """The ``count`` smallest of values (..., N), rising, without gradients.

    On the CPU numpy selects them in a fifth of torch's time.

    >>> smallest(torch.tensor([[3.0, 1.0, 2.0]]), 2).tolist()
    [[1.0, 2.0]]
    """
    values = values.detach()
    if values.device.type != "cpu" or count >= values.shape[-1]:
        return values.topk(count, largest=False).values
    found = np.partition(values.numpy(), count - 1, axis=-1)[..., :count]
    return torch.from_numpy(np.sort(found, axis=-1))


def walk_powers(step: Tensor, longest: int) -> list[Tensor]:
    """Walks of 1, 2, 4, … steps, up to the ``longest``, a power of two."""
    powers = [step]
    for _ in range(longest.bit_length() - 1):
        powers.append(powers[-1] @ powers[-1])
    return powers


def walk_legs(powers: Sequence[Tensor], lengths: Sequence[int]) -> tuple[Tensor, ...]:
    """What takes a walk that begins elsewhere, with a first step, to each of ``lengths``.

    These are rising powers of two above one. One leg after the other, the walk is then one of
    t = 1 + (1 + 2 + … + t / 2) steps, which are those of the ``powers`` but the last.
    """
    ends = [0, *(t.bit_length() - 1 for t in lengths)]
    return tuple(reduce(torch.matmul, powers[start:end]) for start, end in pairwise(ends))


def local_metric(x: Tensor, near: Tensor) -> Tensor:
    """Map (B, D, D) under which differences of neighbours are alike in all axes.

    ``near`` (B, N, N) is 1 where the column is a neighbour of the row.

    Neighbours mostly share a cluster, so their differences show the shape of clusters without
    knowing them (Art, Gnanadesikan & Kettenring, "Data-based metrics for cluster analysis",
    Utilitas Mathematica 1982). Distances of x @ map are Mahalanobis distances under their scatter.
    """
    batch, _, dim = x.shape
    joined = _exact(near + near.mT)
    y = _exact(x)
    # Σ near_ij (x_i − x_j)(x_i − x_j)ᵀ by the graph's Laplacian. Steps may be tiny beside the rows,
    # and a column that does not vary among neighbours has none.
    scatter = y.mT @ (joined.sum(dim=2, keepdim=True) * y - joined @ y)
    scatter = (scatter + scatter.mT).to(x) / 2 / near.sum(dim=(1, 2)).clamp_min(1)[:, None, None]
    diagonal = scatter.diagonal(dim1=1, dim2=2)
    scatter = scatter - torch.diag_embed(diagonal.clamp_max(0))
    varying = (scatter.diagonal(dim1=1, dim2=2) > 0).sum(dim=1).clamp_min(1)
    level = (scatter.diagonal(dim1=1, dim2=2).sum(dim=1) / varying).clamp_min(1e-12)
    ridge = _RIDGE * level[:, None, None] * torch.eye(dim, dtype=x.dtype, device=x.device)
    factor = torch.linalg.cholesky(scatter + ridge)
    eye = torch.eye(dim, dtype=x.dtype, device=x.device).expand(batch, -1, -1)
    return torch.linalg.solve_triangular(factor, eye, upper=False).mT


def principal_axes(x: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues (B, m), falling, and vectors (B, D, m) of the scatter of rows (B, N, D).

    m is the smaller of N and D; directions without variance come last, and are arbitrary or zero.
    """
    if x.shape[2] <= x.shape[1]:
        values, vectors = torch.linalg.eigh(x.mT @ x)
        return values.flip(-1).clamp_min(0), vectors.flip(-1)
    values, vectors = torch.linalg.eigh(x @ x.mT)
    values, vectors = values.flip(-1).clamp_min(0), vectors.flip(-1)
    return values, x.mT @ vectors * values.clamp_min(1e-12).rsqrt()[:, None]


def quick_kmeans(
    x: Tensor, distance: Tensor, counts: Sequence[int], n_steps: int = 8
) -> QuickPartitions:
    """Short k-means at every number of ``counts``, given the distances (B, N, N) of rows.

    The first k of one sequence of seeds start k-means with k centres. Where there are fewer rows
    than centres, rows are chosen more than once.
    """
    seeds = x[_batch(x), _seeds(distance.square(), max(counts))]
    total = (x - x.mean(dim=1, keepdim=True)).square().sum(dim=(1, 2)).clamp_min(1e-12)
    centers = torch.cat([seeds[:, :count] for count in counts], dim=1)
    for _ in range(n_steps):
        member = _members(torch.cdist(x, centers), counts)
        size = member.sum(dim=1)[..., None]
        centers = torch.where(size > 0, member.mT @ x / size.clamp_min(1), centers)
    inertia = _left(torch.cdist(x, centers).square(), counts) / total[:, None]
    return QuickPartitions(centers, *nearest_centers(x, centers, counts), inertia)


def quick_groups(squared: Tensor, counts: Sequence[int], n_steps: int = 8) -> QuickPartitions:
    """The same where only squared distances (B, N, N) are known, by those to a group's mean:

        |x − mean of C|² = mean_{j ∈ C} |x − x_j|² − ½ mean_{j, l ∈ C} |x_j − x_l|²

    So nothing is lost to rounding where distances within parts are small beside those between. What
    stands for centres are the shares (B, N, sum of counts) of rows in groups.
    """
    seeds = _seeds(squared, max(counts))
    n = squared.shape[1]
    total = (squared.sum(dim=(1, 2)) / (2 * n)).clamp_min(1e-12)
    joined = torch.cat([seeds[:, :count] for count in counts], dim=1)
    shares = torch.nn.functional.one_hot(joined, n).to(squared.dtype).mT
    for _ in range(n_steps):
        member = _members(_to_means(squared, shares, squared), counts)
        size = member.sum(dim=1, keepdim=True)
        shares = torch.where(size > 0, member / size.clamp_min(1), shares)
    inertia = _left(_to_means(squared, shares, squared), counts) / total[:, None]
    found = nearest_groups(squared, shares, squared, counts)
    return QuickPartitions(shares, *found, inertia)


def _members(apart: Tensor, counts: Sequence[int]) -> Tensor:
    """1 where a row (B, N) is nearest to a centre among those of one count, (B, N, all centres)."""
    nearest, start = [], 0
    for part in apart.split(list(counts), dim=-1):
        nearest.append(part.argmin(dim=-1) + start)
        start += part.shape[-1]
    return torch.zeros_like(apart).scatter_(2, torch.stack(nearest, dim=-1), 1.0)


def _left(squared: Tensor, counts: Sequence[int]) -> Tensor:
    """Sums (B, counts) of the squared distances (B, N, all centres) to the nearest."""
    parts = squared.split(list(counts), dim=-1)
    return torch.stack([part.amin(dim=-1).sum(dim=1) for part in parts], dim=1)


def nearest_groups(
    squared: Tensor, shares: Tensor, among: Tensor, counts: Sequence[int]
) -> tuple[Tensor, Tensor, Tensor]:
    """Nearest group, silhouette and margin of rows (B, Q) at ``squared`` (B, Q, N), as below.

    ``among`` (B, N, N) are the squared distances of the rows that form the groups.
    """
    own, member = _exact(among), _exact(shares)
    to_own = _to_means(own, member, own)
    to_all = to_own if squared is among else _to_means(_exact(squared), member, own)
    means = member.mT @ to_own  # distances to a mean, averaged over a group: the means' distance
    means = means - means.diagonal(dim1=1, dim2=2)[..., None]  # and the spread within the group
    apart, between = (part.clamp_min(0).sqrt().to(squared) for part in (to_all, means))
    spread = (among.sum(dim=(1, 2)) / 2).sqrt() / among.shape[1]
    return _nearest(apart, between, _COINCIDENT * spread, counts)


def _to_means(squared: Tensor, shares: Tensor, among: Tensor) -> Tensor:
    """Squared distances (B, Q, K) of rows to the means of groups with these shares (B, N, K)."""
    mean = squared @ shares
    within = (shares * (mean if among is squared else among @ shares)).sum(dim=1, keepdim=True)
    return mean - within / 2


def _seeds(squared: Tensor, most: int) -> Tensor:
    """Rows (B, most) chosen greedily: the most central one, then those that lower the sum most."""
    rows = torch.arange(len(squared), device=squared.device)
    nearest = torch.full_like(squared[:, 0], torch.inf)
    chosen = []
    for _ in range(most):
        after = torch.minimum(squared, nearest[:, None]).sum(dim=-1)  # (B, N) if it were chosen
        # Two rows that win only each other are a tie, which the further one decides, not the order.
        pick = (after - _TIE * torch.where(nearest.isfinite(), nearest, 0.0)).argmin(dim=1)
        nearest = torch.minimum(nearest, squared[rows, pick])
        chosen.append(pick)
    return torch.stack(chosen, dim=1)


def _batch(x: Tensor) -> Tensor:
    return torch.arange(len(x), device=x.device)[:, None]


def nearest_centers(
    x: Tensor, centers: Tensor, counts: Sequence[int]
) -> tuple[Tensor, Tensor, Tensor]:
    """Nearest centre, simplified silhouette and margin of rows (B, Q, D), each (B, Q, counts).

    With a and b the distances to the nearest and to the second centre, and c that of the two, the
    silhouette is (b − a) / b, which vanishes in many dimensions, and the margin (b² − a²) / c²,
    which does not: the place along the line of the two centres, 1 at the nearest, 0 half way.
    """
    spread = (centers - centers.mean(dim=1, keepdim=True)).square().sum(dim=2).mean(dim=1).sqrt()
    # Products would round away the distance of a row that is a centre.
    apart = torch.cdist(x, centers, compute_mode="donot_use_mm_for_euclid_dist")
    between = torch.cdist(centers, centers, compute_mode="donot_use_mm_for_euclid_dist")
    return _nearest(apart, between, _COINCIDENT * spread, counts)


def _nearest(
    apart: Tensor, between: Tensor, floor: Tensor, counts: Sequence[int]
) -> tuple[Tensor, Tensor, Tensor]:
    """From distances of rows (B, Q, sum of counts) and of centres among themselves."""
    labels, silhouettes, margins = [], [], []
    start = 0
    for count in counts:
        block = slice(start, start + count)
        start += count
        two, order = apart[..., block].topk(2, dim=-1, largest=False)
        near, far = two.unbind(dim=-1)
        first, second = order.unbind(dim=-1)
        line = between[:, block, block].flatten(1).gather(1, (first * count + second).flatten(1))
        labels.append(first)
        # Where both centres are where the row is, nothing is said.
        clear = far > floor[:, None]
        silhouettes.append(torch.where(clear, 1 - near / far.clamp_min(1e-12), 1.0))
        margin = (far - near) * (far + near) / line.square().clamp_min(1e-24)
        margins.append(torch.where(line > floor[:, None], margin.clamp_max(_FAR), 1.0))
    return tuple(torch.stack(part, dim=-1) for part in (labels, silhouettes, margins))  # type: ignore[return-value]


def _exact(x: Tensor) -> Tensor:
    """In double precision, on the CPU where the device has none."""
    return (x.cpu() if x.device.type == "mps" else x).double()
