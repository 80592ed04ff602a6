"""Which rows stand for a large table, and in which coordinates.

    half      at random: dense regions are seen as dense as they are
    half      where the first leave gaps, with chances as the squared distance to them: rare
              clusters are not missed

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

from asterism.functional.nearest import nearest_rows

__all__ = ["Context", "choose_context", "spanned_axes", "turn"]


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
    split = (size - len(chosen)) // 2
    chosen = np.concatenate([chosen, pool[:split]])
    rest = pool[split:]
    squared = _squared_to_nearest(X[rest], X[chosen]).astype(np.float64)
    # A last resort where all rows are alike: any of them.
    weights = squared + 1e-12 * max(float(squared.max()), 1e-300) + 1e-300
    extra = chance.choice(len(rest), size - len(chosen), replace=False, p=weights / weights.sum())
    return np.sort(np.concatenate([chosen, rest[extra]]))


def _squared_to_nearest(X: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    norms = (chosen**2).sum(axis=1)
    nearest = [
        (norms - 2 * part @ chosen.T).min(axis=1) + (part**2).sum(axis=1)
        for part in np.array_split(X, max(1, len(X) // 4096))
    ]
    return np.maximum(np.concatenate(nearest), 0)


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
