"""How clusters lie to each other: scattered, in families, wound up, overlapping, coded.

    layout(sizes, dim, separation, chance) -> x (N, dim), labels (N,)

``separation`` is what decides how hard a data set is, and it is drawn before anything else: the
distance between neighbouring clusters in units of their standard deviation along the line that
joins them (two equal Gaussians at separation δ overlap with a Bayes error of Φ(−δ/2)), whatever the
number of dimensions. For clusters wound around each other it is the gap in units of
their thickness.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from asterism.priors.shapes import (
    SHAPES,
    Shape,
    ball,
    box,
    draw_shape,
    random_directions,
    random_rotation,
)
from asterism.priors.windings import arcs, blob_in_ring, shells, spirals, strokes, waves

__all__ = ["coded", "families", "overlapping", "scattered", "wound"]

Layout = tuple[np.ndarray, np.ndarray]


def scattered(
    sizes: np.ndarray, dim: int, separation: float, chance: np.random.Generator
) -> Layout:
    """Clusters of random shapes, each at about ``separation`` from its nearest neighbour."""
    shared = _shared_shape(len(sizes), dim, chance)
    if shared in (ball, box):  # where they overlap nothing is seen: one even spread
        separation = max(separation, 2 * np.sqrt(min(dim, 3) + 2 if shared is ball else 3))
    parts = _clusters(sizes, dim, shared, chance)
    moments = np.stack([np.atleast_2d(np.cov(part.T)) for part in parts])
    evenness = chance.uniform(0.0, 0.8)
    plane = _plane(dim, chance)
    centers = place(moments, separation, evenness, plane, chance)
    x, labels = _assemble([part + center for part, center in zip(parts, centers, strict=True)])
    if chance.random() < 0.25:
        labels = _nearest(x, centers, moments, labels)
    return x, labels


def families(sizes: np.ndarray, dim: int, separation: float, chance: np.random.Generator) -> Layout:
    """Clusters in groups: close within a group, the groups further apart.

    The labels are those of the clusters or those of the groups, with equal chance: from the rows
    alone neither is wrong, and the posterior should say so.
    """
    n_groups = int(chance.integers(2, max(3, len(sizes) // 2 + 1)))
    group = np.sort(chance.integers(n_groups, size=len(sizes)))
    parts = _clusters(sizes, dim, _shared_shape(len(sizes), dim, chance), chance)
    members = []
    for number in np.unique(group):
        rows = np.flatnonzero(group == number)
        moments = np.stack([np.atleast_2d(np.cov(parts[k].T)) for k in rows])
        centers = place(moments, separation, 0.2, _plane(dim, chance), chance)
        members.append([parts[k] + center for k, center in zip(rows, centers, strict=True)])
    moments = np.stack([np.atleast_2d(np.cov(np.concatenate(each).T)) for each in members])
    ratio = chance.uniform(1.2, 3.0)
    centers = place(moments, 4.0 * ratio, 0.3, _plane(dim, chance), chance)
    moved = [
        [part - np.concatenate(each).mean(axis=0) + center for part in each]
        for each, center in zip(members, centers, strict=True)
    ]
    if chance.random() < 0.5:
        return _assemble([np.concatenate(each) for each in moved])
    return _assemble([part for each in moved for part in each])


def wound(sizes: np.ndarray, dim: int, separation: float, chance: np.random.Generator) -> Layout:
    """Shells, spirals, arcs, waves, a blob in a ring or strokes: no straight cut parts them."""
    kinds: list[Callable[..., list[np.ndarray]]]
    kinds = [partial(shells, dim=min(dim, 3)), arcs, waves, blob_in_ring]
    kinds += [spirals, strokes] * 2
    make = kinds[int(chance.integers(len(kinds)))]
    thickness = 1.0 / separation
    parts = make(sizes, thickness, chance)
    flat = np.concatenate(parts)
    x = thickness * chance.uniform(0.2, 1.0) * chance.standard_normal((len(flat), dim))
    x[:, : flat.shape[1]] = flat
    labels = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    return x @ random_rotation(dim, chance).T, labels


def overlapping(
    sizes: np.ndarray, dim: int, separation: float, chance: np.random.Generator
) -> Layout:
    """Clouds of one kind so close that they look like one, next to clouds that are one.

    Gaussian, with heavy tails or with dense cores; one by itself may be lopsided or evenly filled.
    What tells few of them apart is how a heap is flattened along an axis, not a gap; many are told
    by how evenly they lie.
    """
    if len(sizes) == 1 and chance.random() < 0.4:  # an even or a lopsided spread is one cluster too
        shape = SHAPES[str(chance.choice(["box", "ball", "skewed", "skewed"]))]
        return shape(int(sizes[0]), dim, chance), np.zeros(int(sizes[0]), dtype=np.int64)
    kind = str(chance.choice(["gaussian", "heavy", "peaked"], p=[0.5, 0.25, 0.25]))
    freedom = chance.uniform(2.5, 8.0)
    if kind == "peaked":  # dense cores show where their surroundings have merged
        separation *= chance.uniform(0.6, 1.0)
    # One cloud may be as long as two side by side, and in any direction: correlated columns.
    longest = 1.2 if len(sizes) == 1 else 0.6
    shared = None  # each is long in a way of its own, or all are round, or all long alike
    if (alike := chance.random()) < 0.75:
        shared = np.eye(dim) if alike < 0.3 else _stretch(dim, longest, chance)
    spread = chance.uniform(0.2, 0.6) if chance.random() < 0.6 else 0.1
    spread /= 1 if len(sizes) <= 5 else 2  # a crowd of all sizes is a heap
    parts = []
    for size in sizes:
        stretch = _stretch(dim, longest, chance) if shared is None else shared
        shape = SHAPES["peaked" if kind == "peaked" else "spherical"]
        part = shape(max(int(size), dim + 2), dim, chance) @ stretch
        if kind == "heavy":
            part /= np.sqrt(chance.chisquare(freedom, (len(part), 1)) / freedom)
        parts.append(part * np.exp(spread * chance.standard_normal()))
    moments = np.stack([np.atleast_2d(np.cov(part.T)) for part in parts])
    # Many lie in all directions, or they would be a chain; and not all as close as can be.
    plane, evenness = _plane(dim, chance), 0.0
    if len(sizes) > 5:
        plane, evenness = random_rotation(dim, chance)[:8], chance.uniform(0.0, 0.4)
    centers = place(moments, separation, evenness, plane, chance)
    parts = [part[:size] + center for part, size, center in zip(parts, sizes, centers, strict=True)]
    x, labels = _assemble(parts)
    if kind != "heavy" and chance.random() < 0.6:  # how far out a row lies says nothing in a tail
        labels = _nearest(x, centers, moments, labels)
    return x, labels


def _stretch(dim: int, most: float, chance: np.random.Generator) -> np.ndarray:
    """Matrix (dim, dim) that makes a round cloud long, in any direction or along the columns."""
    stretch = np.diag(np.exp(chance.uniform(0, most) * chance.standard_normal(dim)))
    return stretch @ random_rotation(dim, chance).T if chance.random() < 0.7 else stretch


def coded(sizes: np.ndarray, dim: int, chance: np.random.Generator) -> Layout:
    """Questionnaires: columns of few codes whose frequencies depend on the cluster, or do not.

    Now and then clusters have up to four parts each, which differ in some of the columns.
    """
    labels = np.repeat(np.arange(len(sizes)), sizes)
    sharpness = chance.choice([0.1, 0.3, 0.8])
    silent = chance.random(dim) < chance.uniform(0, 0.5)  # columns that know nothing
    n_parts = int(chance.integers(2, 5)) if chance.random() < 0.35 else 1
    part = labels * n_parts + chance.integers(n_parts, size=len(labels))
    parted = chance.random(dim) < chance.uniform(0.1, 0.6)  # columns in which the parts differ
    x = np.empty((len(labels), dim))
    for j in range(dim):
        own = np.repeat(np.arange(len(sizes)), n_parts)
        if parted[j] and n_parts > 1:
            own = np.arange(len(own))
        table = chance.dirichlet(np.full(chance.integers(2, 6), sharpness), size=own.max() + 1)
        table = np.maximum(table[own], 0.02)
        if silent[j]:
            table[:] = chance.dirichlet(np.full(table.shape[1], 2.0))
        heaped = np.cumsum(table / table.sum(axis=1, keepdims=True), axis=1)[part]
        x[:, j] = (chance.random((len(labels), 1)) > heaped[:, :-1]).sum(axis=1)
    return x, labels


def place(
    moments: np.ndarray,
    separation: float,
    evenness: float,
    plane: np.ndarray,
    chance: np.random.Generator,
    n_candidates: int = 32,
) -> np.ndarray:
    """Centres (K, dim) for clusters of covariances (K, dim, dim).

    Each cluster is put next to a random one of those already there, at ``separation`` or somewhat
    more along a random direction of ``plane`` (m, dim), and not nearer than that to any other.
    """
    n_clusters, dim = moments.shape[:2]
    centers = np.zeros((n_clusters, dim))
    for k in range(1, n_clusters):
        reach = 1.0
        for _ in range(8):
            parents = chance.integers(k, size=n_candidates)
            directions = random_directions(n_candidates, len(plane), chance) @ plane
            width = _width(directions, moments[parents], moments[k])
            further = 1 + chance.exponential(evenness + 1e-9, n_candidates)
            tried = centers[parents] + directions * (reach * separation * further * width)[:, None]
            nearest = _separations(tried, centers[:k], moments[:k], moments[k]).min(axis=1)
            if nearest.max() >= 0.9 * separation:
                break
            reach *= 1.35
        # Of those that are far enough the nearest: neighbours, not a dust of far-off clusters.
        good = np.where(nearest >= 0.9 * separation, nearest, np.inf)
        best = int(good.argmin() if np.isfinite(good).any() else nearest.argmax())
        centers[k] = tried[best]
    return centers


def _width(directions: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Pooled standard deviation of pairs of clusters along unit directions (..., dim)."""
    pooled = (first + second) / 2
    variance = (np.matmul(directions[..., None, :], pooled)[..., 0, :] * directions).sum(axis=-1)
    return np.sqrt(np.maximum(variance, 1e-12))


def _separations(
    tried: np.ndarray, centers: np.ndarray, moments: np.ndarray, own: np.ndarray
) -> np.ndarray:
    """Separation (C, k) of candidate places from the clusters already placed."""
    offset = tried[:, None] - centers[None]
    distance = np.maximum(np.linalg.norm(offset, axis=-1), 1e-12)
    toward = (offset / distance[..., None]).swapaxes(0, 1)  # (k, C, dim): one product a cluster
    variance = (np.matmul(toward, (moments + own) / 2) * toward).sum(axis=-1).T
    return distance / np.sqrt(np.maximum(variance, 1e-12))


def _shared_shape(n_clusters: int, dim: int, chance: np.random.Generator) -> Shape | None:
    """The shape of all clusters, or none if each has its own."""
    if n_clusters == 1 and chance.random() < 0.35:  # no structure at all: an even spread
        return SHAPES[str(chance.choice(["box", "ball"]))]
    return draw_shape(dim, chance) if chance.random() < 0.6 else None


def _clusters(
    sizes: np.ndarray, dim: int, shared: Shape | None, chance: np.random.Generator
) -> list[np.ndarray]:
    """One cloud a cluster: all of one kind or of several, of equal size or not."""
    spread = chance.uniform(0.0, 0.7) if chance.random() < 0.5 else 0.0
    parts = []
    for k in range(len(sizes)):
        shape = shared or draw_shape(dim, chance)
        # A few rows more than asked for, so that a covariance can always be taken.
        part = shape(max(int(sizes[k]), dim + 2, 5), dim, chance)
        parts.append(part * np.exp(spread * chance.standard_normal()))
    return [
        part[: int(size)] if size > 1 else part[:2] for part, size in zip(parts, sizes, strict=True)
    ]


def _nearest(
    x: np.ndarray, centers: np.ndarray, moments: np.ndarray, labels: np.ndarray
) -> np.ndarray:
    """Labels of a reader who parts what overlaps: each row that of the cloud it is likeliest of.

    Clouds are round Gaussians of each cluster's mean deviation. Where more than a quarter of the
    rows would change, or a cluster vanish, the clusters are no such regions: nothing changes.
    """
    variance = np.maximum(np.trace(moments, axis1=1, axis2=2) / x.shape[1], 1e-12)
    squared = ((x[:, None] - centers[None]) ** 2).sum(axis=-1)
    nearest = (squared / variance + x.shape[1] * np.log(variance)).argmin(axis=1)
    sizes = np.bincount(nearest, minlength=len(centers))
    regions = (nearest == labels).mean() > 0.75 and sizes.min() >= min(4, np.bincount(labels).min())
    return nearest if regions else labels


def _plane(dim: int, chance: np.random.Generator) -> np.ndarray:
    """Basis (m, dim) of a random subspace in which the centres lie."""
    m = dim if chance.random() < 0.5 else int(chance.integers(1, dim + 1))
    return random_rotation(dim, chance)[:m]


def _assemble(parts: list[np.ndarray]) -> Layout:
    labels = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    return np.concatenate(parts), labels
