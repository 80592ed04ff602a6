"""Which rows stand for a large table, and in which coordinates.

    most      at random: dense regions are seen as dense as they are
    1 of 8    (32 at least, but no more than half) where the others leave gaps, in eight rounds,
              with chances as the cube of the distance to the eighth nearest row chosen before: rare
              clusters are not missed, nor left with a single row, nor does one take all places

Some rows may be fixed beforehand, those whose cluster is known for instance. A network that must
see the rows in the proportions of the table gets them all at random (:class:`Context`); every other
row then follows the nearest of them.

Where there are more columns than rows, the rows span few dimensions: they are turned into those
(principal axes), which changes no distance between them. Of any other row the turned coordinates
keep the part it shares with them, and one more coordinate the length of the rest.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from asterism.functional.nearest import nearest_distances, nearest_rows

__all__ = ["Context", "Gaps", "choose_context", "draw_far", "some_rows", "spanned_axes", "turn"]

_COMPANY = 8  # chosen rows around a place that leave no gap
_ROUNDS = 8


class Context(NamedTuple):
    """Rows of a table that are read together, and whom the others follow."""

    indices: np.ndarray  # (C,) their numbers in the table, sorted
    rows: Tensor  # (C, D)
    nearest: np.ndarray  # (N,) int32, the place among them of the nearest; its own for one of them

    @classmethod
    def draw(cls, x: Tensor, size: int, generator: torch.Generator) -> "Context":
        """At most ``size`` of the rows (N, D), at random; the generator is on the CPU.

        >>> context = Context.draw(torch.arange(9.0)[:, None], 2, torch.Generator().manual_seed(0))
        >>> context.indices.tolist(), context.nearest.tolist()
        ([0, 8], [0, 0, 0, 0, 0, 1, 1, 1, 1])
        """
        if len(x) <= size:
            every = np.arange(len(x))
            return cls(every, x, every.astype(np.int32))
        chosen = torch.randperm(len(x), generator=generator)[:size].sort().values
        rows = x[chosen.to(x.device)]
        nearest = nearest_rows(x.cpu().numpy(), rows.cpu().numpy())[0].astype(np.int32)
        nearest[chosen.numpy()] = np.arange(size, dtype=np.int32)
        return cls(chosen.numpy(), rows, nearest)


def some_rows(X: np.ndarray, most: int, seed: int) -> np.ndarray:
    """All rows, or so many of them at random.

    >>> some_rows(np.arange(9), 3, seed=0).tolist()
    [7, 2, 1]
    """
    if len(X) <= most:
        return X
    return X[np.random.RandomState(seed).choice(len(X), most, replace=False)]


def choose_context(
    X: np.ndarray,
    size: int,
    seed: int,
    fixed: np.ndarray | None = None,
    common: np.ndarray | None = None,
) -> np.ndarray:
    """Sorted indices of ``size`` rows of X (N, D), or of all if there are no more.

    ``common`` marks the rows (N,) that may be drawn at random; the others only fill gaps.

    >>> choose_context(np.zeros((3, 1)), 5, 0).tolist()
    [0, 1, 2]
    """
    n = len(X)
    if n <= size:
        return np.arange(n)
    chance = np.random.RandomState(seed)
    chosen = np.zeros(0, dtype=np.int64) if fixed is None else np.unique(fixed)
    if len(chosen) > size // 2:
        chosen = chance.choice(chosen, size // 2, replace=False)
    free = size - len(chosen)
    n_far = min(max(free // 8, 32), free // 2)
    left = np.ones(n, dtype=bool) if common is None else common.copy()
    left[chosen] = False
    drawn = chance.permutation(np.flatnonzero(left))[: free - n_far]
    chosen = np.concatenate([chosen, drawn])
    gaps = Gaps(X, X[chosen])
    for part in np.array_split(np.arange(n_far), min(n_far, _ROUNDS)):
        found = draw_far(gaps.sizes(chosen), len(part), chance)
        gaps.fill(X[found])
        chosen = np.concatenate([chosen, found])
    return np.sort(chosen)


class Gaps:
    """How far the rows of X (N, D) are from having company among the chosen ones (C, D)."""

    def __init__(self, X: np.ndarray, chosen: np.ndarray) -> None:
        self.rows = X
        self.nearest = nearest_distances(X, chosen, min(_COMPANY, len(chosen)))

    def fill(self, more: np.ndarray) -> None:
        """Take note of rows (M, D) that were chosen besides."""
        count = self.nearest.shape[1]
        found = nearest_distances(self.rows, more, min(count, len(more)))
        self.nearest = np.sort(np.concatenate([self.nearest, found], axis=1), axis=1)[:, :count]

    def sizes(self, chosen: np.ndarray) -> np.ndarray:
        """Distance (N,) to the last of those that would be company; −1 for the chosen."""
        sizes = self.nearest[:, -1].astype(np.float64)
        sizes[chosen] = -1
        return sizes


def draw_far(gaps: np.ndarray, size: int, chance: np.random.RandomState) -> np.ndarray:
    """Places of ``size`` rows, one after the other with chances as the cube of the gaps (N,).

    That is the order in which clocks of these rates would ring (Efraimidis & Spirakis,
    Information Processing Letters 2006). Rows without a gap come last, those below zero not at all.

    >>> draw_far(np.array([-1.0, 3.0, 0.0, 2.0]), 3, np.random.RandomState(0)).tolist()
    [1, 3, 2]
    """
    clocks = np.where(gaps < 0, np.inf, chance.exponential(size=len(gaps)))
    rates = np.maximum(gaps / max(float(gaps.max()), 1e-300), 0) ** 3
    with np.errstate(divide="ignore"):
        return np.lexsort((clocks, clocks / rates))[:size]


def spanned_axes(X: np.ndarray) -> np.ndarray:
    """Orthonormal axes (D, r) of the dimensions that the rows of X (N, D) span, N < D."""
    _, sizes, axes = np.linalg.svd(X, full_matrices=False)
    return axes[sizes > 1e-6 * max(float(sizes[0]), 1e-300)].T


def turn(X: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Coordinates (Q, r + 1) of rows along the axes, and the length of what is left.

    >>> turn(np.array([[3.0, 0.0, 4.0]]), np.eye(3)[:, :2]).tolist()
    [[3.0, 0.0, 4.0]]
    """
    along = X @ axes
    left = np.maximum((X**2).sum(axis=1) - (along**2).sum(axis=1), 0)
    return np.column_stack([along, np.sqrt(left)])
