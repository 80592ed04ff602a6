"""Clusters wound around each other, in two or three dimensions: no straight cut parts them.

    winding(sizes, thickness, chance) -> list of (n_k, 2 or 3)

Neighbouring clusters are one apart, and as thick as asked for, but for broad shells, for the heap
within a ring, and for strokes, of which only the edges are as soft as asked for. Shells are told
the dimension, two or three, too.
"""

import numpy as np

from asterism.priors.shapes import SHAPES, ball, random_directions

__all__ = ["arcs", "blob_in_ring", "shells", "spirals", "strokes", "waves"]

_KNOTS = 16  # points of the line of a stroke


def shells(
    sizes: np.ndarray, thickness: float, chance: np.random.Generator, dim: int
) -> list[np.ndarray]:
    """Rings or spheres around one centre; now and then some are broad and some sharp."""
    first = chance.uniform(0.0, 1.5)
    width = np.full(len(sizes), thickness)
    if chance.random() < 0.3:  # broad ones between sharp ones
        width = np.minimum(width * np.exp(chance.uniform(0, 2, len(sizes))), 0.25)
    return [
        random_directions(int(n), dim, chance)
        * (first + k + width[k] * chance.standard_normal((int(n), 1)))
        for k, n in enumerate(sizes)
    ]


def spirals(sizes: np.ndarray, thickness: float, chance: np.random.Generator) -> list[np.ndarray]:
    """Arms of one spiral, turned against each other."""
    arms = len(sizes)
    turns = chance.uniform(0.6, 2.4)
    parts = []
    for k, n in enumerate(sizes):
        t = np.sqrt(chance.uniform(0.05, 1.0, int(n))) * turns
        angle = 2 * np.pi * (t + k / arms)
        radius = arms * t  # the gap between neighbouring arms is one
        curve = np.c_[radius * np.cos(angle), radius * np.sin(angle)]
        parts.append(curve + thickness * chance.standard_normal(curve.shape))
    return parts


def arcs(sizes: np.ndarray, thickness: float, chance: np.random.Generator) -> list[np.ndarray]:
    """Half circles that reach into each other, open to either side in turn."""
    depth = chance.uniform(0.2, 0.6)
    parts = []
    for k, n in enumerate(sizes):
        angle = np.pi * chance.random(int(n))
        flip = 1 if k % 2 == 0 else -1
        curve = 2 * np.c_[np.cos(angle) + k, flip * np.sin(angle) + (k % 2) * depth]
        parts.append(curve + thickness * chance.standard_normal(curve.shape))
    return parts


def waves(sizes: np.ndarray, thickness: float, chance: np.random.Generator) -> list[np.ndarray]:
    """Stripes side by side, straight or winding."""
    height, pace = chance.uniform(0.0, 2.0), chance.uniform(0.3, 1.2)
    parts = []
    for k, n in enumerate(sizes):
        t = chance.uniform(-4, 4, int(n))
        curve = np.c_[t, height * np.sin(pace * t) + k]
        parts.append(curve + thickness * chance.standard_normal(curve.shape))
    return parts


def blob_in_ring(
    sizes: np.ndarray, thickness: float, chance: np.random.Generator
) -> list[np.ndarray]:
    """A heap or a disc, and around it rings, or bowls that are open on one side."""
    radius = chance.uniform(0.4, 1.2)
    heap = SHAPES["spherical" if chance.random() < 0.6 else "ball"]
    parts = [radius * heap(int(sizes[0]), 2, chance) / 2]
    span = np.pi * (2.0 if chance.random() < 0.6 else chance.uniform(0.7, 1.4))
    for k, n in enumerate(sizes[1:]):
        angle = span * chance.random(int(n))
        distance = radius + 1 + k + thickness * chance.standard_normal(int(n))
        parts.append(distance[:, None] * np.c_[np.cos(angle), np.sin(angle)])
    return parts


def strokes(sizes: np.ndarray, thickness: float, chance: np.random.Generator) -> list[np.ndarray]:
    """Strokes of a broad pen, straight or bent, evenly filled, in and around each other."""
    breadth = chance.uniform(0.1, 0.9) * chance.uniform(0.6, 1.4, len(sizes))
    lengths = chance.uniform(0.0, 8.0, len(sizes))
    if chance.random() < 0.6:  # all equally dense: long ones have more rows
        lengths = 5 * len(sizes) * sizes / sizes.sum() * breadth.mean() / breadth
    gap = chance.uniform(0.35, 1.0)
    lines: list[np.ndarray] = []
    for k in range(len(sizes)):
        line = _pen_line(float(lengths[k]), chance)
        lines.append(line + _free_place(line, lines, breadth[k] + breadth[:k] + gap, chance))
    parts = []
    for line, width, n in zip(lines, breadth, sizes.astype(int), strict=True):
        t = chance.random(n) * (_KNOTS - 1)
        low = np.minimum(t.astype(int), _KNOTS - 2)
        share = (t - low)[:, None]
        filled = (1 - share) * line[low] + share * line[low + 1] + width / 2 * ball(n, 2, chance)
        parts.append(filled + 0.3 * thickness * chance.standard_normal(filled.shape))
    return parts


def _pen_line(length: float, chance: np.random.Generator) -> np.ndarray:
    """A line (_KNOTS, 2) of this length: straight, a bow, or winding to and fro."""
    s = np.linspace(0, 1, _KNOTS)
    bow = chance.uniform(-4.5, 4.5) if chance.random() < 0.6 else 0.0
    wind = chance.uniform(0.5, 1.5) if chance.random() < 0.3 else 0.0
    heading = chance.uniform(0, 2 * np.pi) + bow * s
    heading += wind * np.sin(chance.uniform(4, 10) * s + chance.uniform(0, 2 * np.pi))
    return np.cumsum(np.c_[np.cos(heading), np.sin(heading)], axis=0) * length / _KNOTS


def _free_place(
    line: np.ndarray, others: list[np.ndarray], clear: np.ndarray, chance: np.random.Generator
) -> np.ndarray:
    """Where to move a line (2,), so that it keeps ``clear`` of each of the others, but is near."""
    room = 2.0
    while others:
        tried = chance.uniform(-room, room, (16, 2)) - line.mean(axis=0)
        offset = (line + tried[:, None])[:, None, :, None] - np.stack(others)[None, :, None]
        spare = np.linalg.norm(offset, axis=-1).min(axis=(2, 3)) - clear  # (tried, others)
        least = spare.min(axis=1)
        if (least >= 0).any():
            return tried[np.where(least >= 0, least, np.inf).argmin()]
        room *= 1.2
    return -line.mean(axis=0)
