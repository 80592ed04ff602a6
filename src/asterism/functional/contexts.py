"""Which rows stand for a large table, and in which coordinates.

    most      at random: dense regions are seen as dense as they are
    1 of 8    (32 at least, but no more than half) where the first leave gaps, with chances as the
              cube of the distance to the fourth nearest of them: rare clusters are not missed, nor
              left with a single row

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

from asterism.functional.nearest import depth_among, nearest_rows

__all__ = ["Context", "choose_context", "draw_far", "gaps_between", "spanned_axes", "turn"]

_COMPANY = 4  # chosen rows around a place that leave no gap


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


def choose_context(
    X: np.ndarray, size: int, seed: int, fixed: np.ndarray | None = None
) -> np.ndarray:
    """Sorted indices of ``size`` rows of X (N, D), or of all if there are no more.

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
    pool = chance.permutation(n)
    pool = pool[~np.isin(pool, chosen)]
    free = size - len(chosen)
    n_far = min(max(free // 8, 32), free // 2)
    split = free - n_far
    chosen, rest = np.concatenate([chosen, pool[:split]]), pool[split:]
    extra = draw_far(gaps_between(X[rest], X[chosen]), n_far, chance)
    return np.sort(np.concatenate([chosen, rest[extra]]))


def gaps_between(X: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """How far (N,) each row of X (N, D) is from having company among the chosen ones (C, D)."""
    return depth_among(X, chosen, _COMPANY)


def draw_far(gaps: np.ndarray, size: int, chance: np.random.RandomState) -> np.ndarray:
    """Places of ``size`` rows, one after the other with chances as the cube of the distances (N,).

    That is the order in which clocks of these rates would ring (Efraimidis & Spirakis,
    Information Processing Letters 2006), which takes one pass, however uneven the chances.
    """
    weights = gaps.astype(np.float64) ** 3
    # A last resort where all rows are alike: any of them.
    weights += 1e-12 * max(float(weights.max()), 1e-300) + 1e-300
    return np.argsort(chance.exponential(size=len(weights)) / weights, kind="stable")[:size]


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
