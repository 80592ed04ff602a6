"""What two rows are to each other: features that do not depend on scale, rotation or columns.

For data sets x (B, N, D), with d_ij the Euclidean distance in all columns, s_i the distance to the
tenth neighbour and c_i to the fifth, pairs of rows have

    distance     log d_ij / median d
    local        log d_ij / √(s_i s_j)
    path         log m_ij / median c, m the minimax path under mutual reachability: the largest step
                 max(d, c, c) one cannot avoid on the way from i to j. Shows rings and chains
    shared       share of the ten neighbours, or more at equal distance, that both have
    walk_t       ½ log (Pᵗ)_ij / π_j, a t-step random walk on the locally scaled neighbour graph,
                 t = 8, 64, 512: connection at several scales, without eigenvectors
    leading      as distance, but of Σ x, Σ the covariance: what the leading axes say
    affine       as distance, after the scatter of neighbours was made round (``local_metric``)
    same_k       1 if quick k-means with k centres puts both in one cluster, for several k
    leading_k    the same of Σ x: in many dimensions single rows are poor seeds, but not there
    affine_k     the same after the scatter of neighbours was made round
    diffuse_k    the same in the diffusion map, where a row is where its walks end: quick spectral
                 clustering

and each row its silhouette in all the quick partitions, compared with the mean of all rows, its
margin in them, and the chance of a walk to return. What describes the data set as a whole is in
``Context.facts``, see :mod:`asterism.functional.facts`. All are brought to about unit spread by
constants.

Rows at equal distance are neighbours together. Nothing is drawn at random and nothing depends on
the order of the rows, so the features are permuted with them; where rows are equal, the quick
partitions may part them differently.

A :class:`Context` keeps what describes the rows of a data set. :func:`cross_features` then relates
any new row to them by itself: for a row of the context the answer is that of
:func:`describe`, but for its relation to itself.
"""

from itertools import accumulate
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from asterism.functional.facts import count_facts, gather_facts
from asterism.functional.pairs import LIMIT, TINY, PairMaps
from asterism.functional.probes import (
    local_metric,
    minimax_paths,
    nearest_centers,
    nearest_groups,
    quick_groups,
    quick_kmeans,
    smallest,
    walk_legs,
    walk_powers,
)

__all__ = [
    "AFFINE_COUNTS",
    "COUNTS",
    "DIFFUSE_COUNTS",
    "LEADING_COUNTS",
    "N_FACTS",
    "PAIR_FEATURES",
    "ROW_FEATURES",
    "Context",
    "Features",
    "cross_features",
    "describe",
    "prepared",
]

COUNTS = (2, 3, 4, 5, 7, 10, 15, 24, 36)
"""Numbers of clusters at which quick k-means is asked."""

AFFINE_COUNTS = (2, 3, 4, 6, 9)
"""The same, after the scatter of neighbours was made round."""

DIFFUSE_COUNTS = (2, 3, 4, 6, 9, 14, 24)
"""The same, in the diffusion map."""

LEADING_COUNTS = (2, 3, 4, 7)
"""The same, along the leading axes."""

WALKS = (8, 64, 512)
"""Steps of the random walks: rising powers of two."""

_FAMILIES = {
    "same": COUNTS,
    "affine": AFFINE_COUNTS,
    "diffuse": DIFFUSE_COUNTS,
    "leading": LEADING_COUNTS,
}
_PARTITIONS = tuple(f"{name}_{k}" for name, counts in _FAMILIES.items() for k in counts)

PAIR_FEATURES = (
    "distance",
    "local",
    "path",
    "shared",
    *(f"walk_{t}" for t in WALKS),
    "leading",
    "affine",
    *_PARTITIONS,
)
ROW_FEATURES = (
    *(f"silhouette_{p}" for p in _PARTITIONS),
    *(f"return_{t}" for t in WALKS),
    *(f"margin_{p}" for p in _PARTITIONS),
)

N_FACTS = count_facts(tuple(_FAMILIES.values()), len(WALKS))
_ROW, _MARGIN = 3.0, 1.5
_SHORT = 0.2

_NEAR, _CORE = 10, 5
_EQUAL = 1e-5  # distances that differ by no more, relatively, are equal
_MIXED = 1e-10  # squared distances of walks that end alike, but for rounding
_BRIDGE = 1e-8  # weight between any two rows, so that pieces have a distance too


class Features(NamedTuple):
    """Rows (B, Q) towards a context (B, N)."""

    maps: PairMaps  # of pairs of rows: ``maps.features()`` is (B, F, Q, N)
    rows: Tensor  # (B, Q, R) of single rows
    nearest: Tensor  # (B, Q) row of the context
    gaps: Tensor  # (B, Q) log distance to the fifth neighbour, in units of the median distance


class Context(NamedTuple):
    """What new rows are related to; B data sets of N rows."""

    center: Tensor  # (B, 1, D) taken from rows, which are then divided by
    size: Tensor  # (B, 1, 1)
    leading: Tensor  # (B, D, D) covariance
    affine: Tensor  # (B, D, D) local metric
    x: Tensor  # (B, N, D) the rows, centred and divided
    typical: Tensor  # (B, 3) median distance: of rows, of their leading and of their affine image
    scale: Tensor  # (B, N) distance to the tenth neighbour
    core: Tensor  # (B, N) distance to the fifth
    near: Tensor  # (B, N, N) 1 where the column is among the row's neighbours
    paths: Tensor  # (B, N, N) minimax paths
    stationary: Tensor  # (B, N) where a long walk ends
    walks: tuple[Tensor, ...]  # (B, N, N) after 1, 2, 4, … steps, until legs are made of them
    legs: tuple[Tensor, ...]  # (B, N, N) that walks of new rows take, see ``prepared``
    ends: Tensor  # (B, N, N) diffusion map
    diffuse: Tensor  # (B, N, N) squared distances there
    centers: tuple[Tensor, ...]  # of the quick partitions, in each of their spaces
    labels: Tensor  # (B, N, partitions) clusters of quick k-means
    silhouette: Tensor  # (B, partitions) their mean silhouettes
    facts: Tensor  # (B, N_FACTS) what describes the data set as a whole


def describe(x: Tensor, *, alone: bool = False) -> tuple[Context, Features]:
    """Context of data sets (B, N, D), and the features of their own rows.

    ``alone`` says that no further rows will be related to them, and saves what that would need.
    """
    n = x.shape[1]
    center = x.mean(dim=1, keepdim=True)
    size = (x - center).square().sum(dim=2).mean(dim=1).sqrt()[:, None, None]
    size = torch.where(size > 0, size, 1.0)
    x = (x - center) / size
    distance = _distances(x, x)
    ranked = smallest(distance, min(_NEAR + 1, n))
    leading = x.mT @ x / n
    near = _near(distance, ranked, torch.arange(n, device=x.device).expand(len(x), -1))
    affine = local_metric(x, near)
    views = [distance, *(_image_distances(x @ view) for view in (leading, affine))]
    typical = torch.stack([_median(v) for v in views], dim=1).clamp_min(TINY)
    scale, core = _scales(ranked, typical)
    paths = minimax_paths(_reach(distance, core, core))
    weight = _weights(distance, scale, scale, torch.maximum(near, near.mT))
    degree = weight.sum(dim=-1)
    stationary = degree / degree.sum(dim=-1, keepdim=True)
    powers = walk_powers(weight / degree[..., None], WALKS[-1])
    after = [powers[t.bit_length() - 1] for t in WALKS]
    ends = _ends(after, stationary)
    diffuse = _squared(ends, ends)
    quick = [
        quick_kmeans(x, distance, COUNTS),
        quick_kmeans(x @ affine, views[2], AFFINE_COUNTS),
        quick_groups(diffuse, DIFFUSE_COUNTS),
        quick_kmeans(x @ leading, views[1], LEADING_COUNTS),
    ]
    silhouettes = torch.cat([found.silhouettes for found in quick], dim=-1)
    margins = torch.cat([found.margins for found in quick], dim=-1)
    facts = gather_facts(x, quick, tuple(_FAMILIES.values()), paths, core, after)
    context = Context(
        center,
        size,
        leading,
        affine,
        x,
        typical,
        scale,
        core,
        near,
        paths,
        stationary,
        () if alone else tuple(powers[:-1]),
        (),
        ends,
        diffuse,
        tuple(found.centers for found in quick),
        torch.cat([found.labels for found in quick], dim=-1),
        silhouettes.mean(dim=1),
        facts,
    )
    self = torch.arange(n, device=x.device).expand(len(x), -1)
    rows = _row_features(context, silhouettes, margins, after, self)
    maps = _maps(context, views, scale, paths, near, after, context.labels)
    return context, Features(maps, rows, self, _gaps(core, typical))


def prepared(context: Context) -> Context:
    """The context with what new rows need, made once for all of them."""
    if context.legs:
        return context
    if not context.walks:
        raise ValueError(
            "the context was described alone: describe(x) lets further rows be related"
        )
    return context._replace(walks=(), legs=walk_legs(context.walks, WALKS))


def cross_features(context: Context, x: Tensor) -> Features:
    """Features of new rows x (B, Q, D) towards the rows of the context."""
    context = prepared(context)
    x = (x - context.center) / context.size
    views = [_distances(x, context.x)]
    for view in (context.leading, context.affine):
        views.append(torch.cdist(x @ view, context.x @ view))
    distance = views[0]
    n = context.x.shape[1]
    ranked, place = smallest(distance, min(_NEAR + 1, n)), distance.argmin(dim=2)
    scale, core = _scales(ranked, context.typical)
    near = _near(distance, ranked, place)
    reach = _reach(distance, core, context.core)
    reached, entry = reach.min(dim=2)
    paths = torch.gather(context.paths, 1, entry[..., None].expand(-1, -1, n))
    paths = torch.maximum(paths, reached[..., None])
    # A row of the context counts the new one among its neighbours if it is near enough; the nearest
    # is the new row's own place, to which no step leads.
    known = distance <= context.scale[:, None] * (1 + _EQUAL)
    joined = torch.maximum(near, known.to(near.dtype))
    joined = joined.scatter(2, place[..., None], 0.0)
    weight = _weights(distance, scale, context.scale, joined)
    step = weight / weight.sum(dim=-1, keepdim=True)
    after = list(accumulate(context.legs, torch.matmul, initial=step))[1:]
    plain, affine, groups, leading = context.centers
    diffuse = _squared(_ends(after, context.stationary), context.ends)
    quick = [
        nearest_centers(x, plain, COUNTS),
        nearest_centers(x @ context.affine, affine, AFFINE_COUNTS),
        nearest_groups(diffuse, groups, context.diffuse, DIFFUSE_COUNTS),
        nearest_centers(x @ context.leading, leading, LEADING_COUNTS),
    ]
    labels, silhouettes, margins = (torch.cat(parts, dim=-1) for parts in zip(*quick, strict=True))
    rows = _row_features(context, silhouettes, margins, after, place)
    maps = _maps(context, views, scale, paths, near, after, labels)
    return Features(maps, rows, place, _gaps(core, context.typical))


def _maps(
    context: Context,
    views: list[Tensor],
    scale: Tensor,
    paths: Tensor,
    near: Tensor,
    walks: list[Tensor],
    labels: Tensor,
) -> PairMaps:
    """Maps of rows that stand so towards a context."""
    return PairMaps(
        views=views,
        typical=context.typical,
        own_scale=scale,
        scale=context.scale,
        paths=paths,
        core=context.core,
        own_near=near,
        near=context.near,
        degrees=context.near.sum(dim=2),
        walks=walks,
        stationary=context.stationary,
        own_labels=labels,
        labels=context.labels,
    )


def _distances(x: Tensor, y: Tensor) -> Tensor:
    return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")


def _image_distances(y: Tensor) -> Tensor:
    """Distances (B, N, N) by matrix products, whose rounding is made the same for both rows."""
    distance = torch.cdist(y, y)
    return (distance + distance.mT) / 2


def _median(values: Tensor) -> Tensor:
    """Lower median (B,) of values (B, …); numpy selects in a tenth of the time of torch."""
    flat = values.flatten(1)
    if flat.device.type != "cpu":
        return flat.median(dim=1).values
    middle = (flat.shape[1] - 1) // 2
    return torch.from_numpy(np.partition(flat.numpy(), middle, axis=1)[:, middle].copy())


def _near(distance: Tensor, ranked: Tensor, place: Tensor) -> Tensor:
    """1 where a row (B, Q, N) is as near as the tenth neighbour, but for one's own place (B, Q).

    Of rows at equal distance all are neighbours: their order says nothing.
    """
    near = (distance <= ranked[..., -1:] * (1 + _EQUAL)).to(distance.dtype)
    return near.scatter(2, place[..., None], 0.0)


def _scales(ranked: Tensor, typical: Tensor) -> tuple[Tensor, Tensor]:
    """Distances to the tenth and fifth neighbour, never zero, from those of the nearest rows."""
    floor = (TINY * typical[:, 0])[:, None]
    last = ranked.shape[2] - 1
    return tuple(ranked[..., min(k, last)].maximum(floor) for k in (_NEAR, _CORE))  # type: ignore[return-value]


def _gaps(core: Tensor, typical: Tensor) -> Tensor:
    return (core / typical[:, :1]).log().clamp(-LIMIT, LIMIT)


def _reach(distance: Tensor, core: Tensor, other: Tensor) -> Tensor:
    """Mutual reachability max(d_ij, c_i, c_j)."""
    return torch.maximum(distance, torch.maximum(core[:, :, None], other[:, None, :]))


def _weights(distance: Tensor, scale: Tensor, other: Tensor, joined: Tensor) -> Tensor:
    """Weights of the neighbour graph, falling with the locally scaled distance."""
    closeness = torch.exp(-distance.square() / (scale[:, :, None] * other[:, None, :]))
    return closeness * joined + _BRIDGE


def _ends(walks: list[Tensor], stationary: Tensor) -> Tensor:
    """Diffusion map (B, Q, N): a row is where its walks end.

    Long walks tell parts of the graph, and shares of shorter ones what is within them. Where all
    walks would end is taken off: it is the same for all, and would drown the differences.
    """
    short, middle, long = walks
    root = stationary[:, None].sqrt()
    return (long + middle + _SHORT * short) / root - (2 + _SHORT) * root


def _squared(ends: Tensor, others: Tensor) -> Tensor:
    """Squared distances (B, Q, N) in the diffusion map.

    In double precision where there is any: within a part they are small beside those between. In
    very small tables all walks end alike, and what differs is rounding.
    """
    exact = torch.float32 if ends.device.type == "mps" else torch.float64
    x, y = ends.to(exact), others.to(exact)
    norms = x.square().sum(dim=2)[:, :, None] + y.square().sum(dim=2)[:, None]
    squared = torch.baddbmm(norms, x, y.mT, alpha=-2)
    return torch.where(squared > _MIXED, squared, 0.0).to(ends.dtype)


def _row_features(
    context: Context, silhouettes: Tensor, margins: Tensor, walks: list[Tensor], place: Tensor
) -> Tensor:
    """Features (B, Q, R) of single rows; ``place`` is the nearest row of the context."""
    here = torch.gather(context.stationary, 1, place)
    back = [
        (torch.gather(w, 2, place[..., None]).squeeze(-1).clamp_min(1e-12) / here).log() / 2
        for w in walks
    ]
    compared = _ROW * (silhouettes - context.silhouette[:, None])
    returns = torch.stack(back, dim=-1).clamp(-LIMIT, LIMIT)
    return torch.cat([compared, returns, _MARGIN * (margins - 0.7)], dim=-1)
