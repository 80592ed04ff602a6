"""What two rows are to each other: pair features that do not depend on scale, rotation or columns.

For data sets x (B, N, D), with d_ij the Euclidean distance in all columns, s_i the distance to the
tenth neighbour and c_i to the fifth:

    distance     log d_ij / median d
    local        log d_ij / √(s_i s_j)
    path         log m_ij / median c, m the minimax path under mutual reachability: the largest step
                 max(d, c, c) one cannot avoid on the way from i to j. Shows rings and chains
    shared       share of the ten neighbours that i and j have in common
    walk_t       ½ log (Pᵗ)_ij / π_j, a t-step random walk on the locally scaled neighbour graph,
                 t = 8, 64, 256: connection at several scales, without eigenvectors
    same_k       1 if quick k-means with k centres puts both in one cluster, for several k

The first row of neighbours is the row itself. Nothing is drawn at random and nothing depends on the
order of the rows, so the features are permuted with them.

A :class:`Context` keeps what describes the rows of a data set. :func:`cross_features` then relates
any new row to them by itself: for a row of the context the answer is that of
:func:`pair_features`, but for its relation to itself.
"""

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = [
    "COUNTS",
    "PAIR_FEATURES",
    "Context",
    "cross_features",
    "describe",
    "minimax_paths",
    "pair_features",
]

COUNTS = (2, 3, 4, 6, 9, 14, 22, 34)
"""Numbers of clusters at which quick k-means is asked."""

WALKS = (8, 64, 256)
"""Steps of the random walks: powers of two."""

PAIR_FEATURES = (
    "distance",
    "local",
    "path",
    "shared",
    *(f"walk_{t}" for t in WALKS),
    *(f"same_{k}" for k in COUNTS),
)

_NEAR, _CORE = 10, 5
_TINY = 1e-6
_BRIDGE = 1e-8  # weight between any two rows, so that pieces have a distance too
_LIMIT = 6.0


class Context(NamedTuple):
    """What new rows are related to; B data sets of N rows."""

    x: Tensor  # (B, N, D)
    typical: Tensor  # (B,) median distance
    scale: Tensor  # (B, N) distance to the tenth neighbour
    core: Tensor  # (B, N) distance to the fifth
    near: Tensor  # (B, N, N) 1 where the column is among the row's ten neighbours
    paths: Tensor  # (B, N, N) minimax paths
    stationary: Tensor  # (B, N) where a long walk ends
    walks: Tensor  # (T, B, N, N) probabilities after t − 1 steps
    centers: Tensor  # (B, sum of COUNTS, D) centres of quick k-means, one count after the other
    labels: Tensor  # (B, N, len(COUNTS)) clusters of quick k-means


def describe(x: Tensor) -> tuple[Context, Tensor]:
    """Context of data sets (B, N, D), and their pair features (B, N, N, F)."""
    n = x.shape[1]
    distance = torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist")
    typical = distance.flatten(1).median(dim=1).values.clamp_min(_TINY)
    ranked, order = distance.topk(min(_NEAR + 1, n), largest=False)
    scale, core = _scales(ranked, typical)
    near = torch.zeros_like(distance).scatter_(2, order[..., 1:], 1.0)
    paths = minimax_paths(_reach(distance, core, core))
    weight = _weights(distance, scale, scale, torch.maximum(near, near.mT))
    degree = weight.sum(dim=-1)
    stationary = degree / degree.sum(dim=-1, keepdim=True)
    step = weight / degree[..., None]
    before, after = _powers(step)
    centers, labels = quick_kmeans(x, distance)
    context = Context(
        x, typical, scale, core, near, paths, stationary, torch.stack(before), centers, labels
    )
    return context, _stack(context, distance, scale, near, paths, after, labels)


def pair_features(x: Tensor) -> Tensor:
    """Features (B, N, N, F) of all pairs of rows, in the order of ``PAIR_FEATURES``."""
    return describe(x)[1]


def cross_features(context: Context, x: Tensor) -> Tensor:
    """Features (B, Q, N, F) of new rows x (B, Q, D) towards the rows of the context."""
    distance = torch.cdist(x, context.x, compute_mode="donot_use_mm_for_euclid_dist")
    n = context.x.shape[1]
    ranked, order = distance.topk(min(_NEAR + 1, n), largest=False)
    scale, core = _scales(ranked, context.typical)
    near = torch.zeros_like(distance).scatter_(2, order[..., 1:], 1.0)
    reach = _reach(distance, core, context.core)
    reached, entry = reach.min(dim=2)
    paths = torch.gather(context.paths, 1, entry[..., None].expand(-1, -1, n))
    paths = torch.maximum(paths, reached[..., None])
    # A row of the context counts the new one among its neighbours if it is near enough; the nearest
    # is the new row's own place, to which no step leads.
    joined = torch.maximum(near, (distance <= context.scale[:, None]).to(near.dtype))
    joined = joined.scatter(2, order[..., :1], 0.0)
    weight = _weights(distance, scale, context.scale, joined)
    step = weight / weight.sum(dim=-1, keepdim=True)
    after = [step @ walk for walk in context.walks]
    nearest = [torch.cdist(x, part).argmin(dim=-1) for part in context.centers.split(COUNTS, dim=1)]
    labels = torch.stack(nearest, dim=-1)
    return _stack(context, distance, scale, near, paths, after, labels)


def minimax_paths(weights: Tensor) -> Tensor:
    """Smallest possible largest step (B, N, N) between rows of a complete graph (B, N, N).

    No search is needed: along the order in which Prim's algorithm adds the rows, the path of a new
    row to all others passes through its parent.
    """
    batch, n, _ = weights.shape
    rows = torch.arange(batch, device=weights.device)
    paths = torch.zeros_like(weights)
    inside = torch.zeros(batch, n, dtype=torch.bool, device=weights.device)
    best = torch.full((batch, n), torch.inf, dtype=weights.dtype, device=weights.device)
    parent = torch.zeros(batch, n, dtype=torch.long, device=weights.device)
    new = torch.zeros(batch, dtype=torch.long, device=weights.device)
    for step in range(n):
        if step:
            new = best.argmin(dim=1)
            reached = torch.maximum(paths[rows, parent[rows, new]], best[rows, new][:, None])
            reached = torch.where(inside, reached, 0.0)
            paths[rows, new] = reached
            paths[rows, :, new] = reached
        inside[rows, new] = True
        offered = weights[rows, new]
        nearer = (offered < best) & ~inside
        best = torch.where(nearer, offered, best)
        parent = torch.where(nearer, new[:, None], parent)
        best[rows, new] = torch.inf
    return paths


def quick_kmeans(x: Tensor, distance: Tensor, n_steps: int = 8) -> tuple[Tensor, Tensor]:
    """Short k-means at every number of ``COUNTS``: centres (B, sum, D) and labels (B, N, counts).

    Started from rows chosen greedily: the most central one, then again and again the one that
    lowers the sum of squares most. The first k of one such sequence start k-means with k centres.
    Where there are fewer rows than centres, rows are chosen more than once.
    """
    squared = distance.square()
    rows = torch.arange(len(x), device=x.device)
    nearest = torch.full_like(squared[:, 0], torch.inf)
    chosen = []
    for _ in range(max(COUNTS)):
        after = torch.minimum(squared, nearest[:, None]).sum(dim=-1)  # (B, N) if it were chosen
        pick = after.argmin(dim=1)
        nearest = torch.minimum(nearest, squared[rows, pick])
        chosen.append(pick)
    seeds = x[rows[:, None], torch.stack(chosen, dim=1)]
    centers, labels = [], []
    for count in COUNTS:
        center = seeds[:, :count]
        for _ in range(n_steps):
            label = torch.cdist(x, center).argmin(dim=-1)
            member = torch.nn.functional.one_hot(label, count).to(x.dtype)
            size = member.sum(dim=1)
            mean = member.mT @ x / size.clamp_min(1)[..., None]
            center = torch.where(size[..., None] > 0, mean, center)
        centers.append(center)
        labels.append(torch.cdist(x, center).argmin(dim=-1))
    return torch.cat(centers, dim=1), torch.stack(labels, dim=-1)


def _scales(ranked: Tensor, typical: Tensor) -> tuple[Tensor, Tensor]:
    """Distances to the tenth and fifth neighbour, never zero, from those of the nearest rows."""
    floor = (_TINY * typical)[:, None]
    last = ranked.shape[2] - 1
    return tuple(ranked[..., min(k, last)].maximum(floor) for k in (_NEAR, _CORE))  # type: ignore[return-value]


def _reach(distance: Tensor, core: Tensor, other: Tensor) -> Tensor:
    """Mutual reachability max(d_ij, c_i, c_j)."""
    return torch.maximum(distance, torch.maximum(core[:, :, None], other[:, None, :]))


def _weights(distance: Tensor, scale: Tensor, other: Tensor, joined: Tensor) -> Tensor:
    """Weights of the neighbour graph, falling with the locally scaled distance."""
    closeness = torch.exp(-distance.square() / (scale[:, :, None] * other[:, None, :]))
    return closeness * joined + _BRIDGE


def _powers(step: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Walks of t − 1 and of t steps, for every t of ``WALKS``."""
    before, after = [], []
    power, steps, less = step, 1, None  # less is step to the power steps − 1
    for t in WALKS:
        while steps < t:
            less = power if less is None else less @ power
            power, steps = power @ power, 2 * steps
        before.append(less)
        after.append(power)
    return before, after  # type: ignore[return-value]


def _stack(
    context: Context,
    distance: Tensor,
    scale: Tensor,
    near: Tensor,
    paths: Tensor,
    walks: list[Tensor],
    labels: Tensor,
) -> Tensor:
    """Features (B, Q, N, F) in the order of ``PAIR_FEATURES``."""
    typical = context.typical[:, None, None]
    middle = context.core.median(dim=1).values[:, None, None]
    floored = distance.maximum(_TINY * typical)
    features = [
        (floored / typical).log(),
        (floored / (scale[:, :, None] * context.scale[:, None, :]).sqrt()).log(),
        (paths.maximum(_TINY * typical) / middle).log(),
        near @ context.near.mT / max(1, min(_NEAR, near.shape[2] - 1)),
        *((w.clamp_min(1e-12) / context.stationary[:, None]).log() / 2 for w in walks),
        *(
            (labels[:, :, None, k] == context.labels[:, None, :, k]).to(distance.dtype)
            for k in range(len(COUNTS))
        ),
    ]
    return torch.stack(features, dim=-1).clamp_(-_LIMIT, _LIMIT)
