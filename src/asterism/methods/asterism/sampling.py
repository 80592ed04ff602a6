"""What the network is given of a table: which rows, in which coordinates.

    scaled      (x − offset) · factor, heavy tails pulled in, in single precision
    pool        all rows; of a larger table 20 000 at random and 2 000 where these leave gaps, which
                takes one look at every row
    contexts    rows of the pool that are read together, see ``functional.contexts``
    axes        where a context has more columns than rows, the dimensions it spans

Rows whose cluster is known are in every context.
"""

from typing import NamedTuple

import numpy as np

from asterism.functional.contexts import (
    choose_context,
    draw_far,
    gaps_between,
    spanned_axes,
    turn,
)
from asterism.functional.scaling import fit_common_scaling
from asterism.functional.tails import Tails, find_tails

__all__ = ["POOL", "Coordinates", "Sample", "draw_sample"]

POOL = 20_000
_FAR = 0.1  # rows of the pool that lie far from the others, as a share of the rest
_ANCHORS = 64  # rows that the distance of all is taken to
_BLOCK = 65_536


class Coordinates(NamedTuple):
    """From the user's columns to those the network reads."""

    offset: np.ndarray  # (D,)
    factor: np.ndarray  # (D,)
    tails: Tails | None = None
    axes: np.ndarray | None = None  # (D, r)

    def scale(self, X: np.ndarray) -> np.ndarray:
        """Rows (Q, D), centred and scaled, heavy tails pulled in."""
        scaled = (X - self.offset) * self.factor
        return (scaled if self.tails is None else self.tails.pull(scaled)).astype(np.float32)

    def turn(self, scaled: np.ndarray) -> np.ndarray:
        """Scaled rows along the axes of the context, if it has any."""
        return scaled if self.axes is None else turn(scaled, self.axes)


class Sample(NamedTuple):
    """Rows of a table chosen to be read."""

    coordinates: Coordinates
    pool: np.ndarray  # (M,) row numbers, sorted
    scaled: np.ndarray  # (M, D)
    chosen: list[np.ndarray]  # places in the pool of the rows of each context

    @property
    def indices(self) -> np.ndarray:
        """Row numbers of the first context."""
        return self.pool[self.chosen[0]]

    @property
    def contexts(self) -> list[np.ndarray]:
        """Rows of every context, as the network reads them."""
        return [self.coordinates.turn(self.scaled[places]) for places in self.chosen]


def draw_sample(
    X: np.ndarray,
    scaling: str,
    tails: str,
    size: int,
    chance: np.random.RandomState,
    *,
    n_contexts: int = 1,
    known: np.ndarray | None = None,
) -> Sample:
    """Choose coordinates, pool and contexts of at most ``size`` rows; ``known`` ones are in all."""
    known = np.zeros(0, dtype=np.int64) if known is None else known
    plain = Coordinates(*fit_common_scaling(X, scaling))
    pool = np.arange(len(X))
    if len(X) > POOL:
        pool = chance.choice(len(X), POOL, replace=False)
    if tails == "pull":
        plain = plain._replace(tails=find_tails(plain.scale(X[pool])))
    if len(X) > POOL:
        pool = np.unique(np.concatenate([pool, _far_rows(X, plain, pool, chance), known]))
    scaled = plain.scale(X[pool])
    fixed = np.searchsorted(pool, known)
    chosen = [
        choose_context(scaled, size, chance.randint(2**31 - 1), fixed) for _ in range(n_contexts)
    ]
    first = scaled[chosen[0]]
    axes = spanned_axes(first) if first.shape[1] > len(first) else None
    return Sample(plain._replace(axes=axes), pool, scaled, chosen)


def _far_rows(
    X: np.ndarray, coordinates: Coordinates, pool: np.ndarray, chance: np.random.RandomState
) -> np.ndarray:
    """Row numbers drawn by their distance from some of the pool: rare clusters are among them."""
    scaled = coordinates.scale(X[pool])
    anchors = scaled[choose_context(scaled, _ANCHORS, chance.randint(2**31 - 1))]
    blocks = (X[start : start + _BLOCK] for start in range(0, len(X), _BLOCK))
    gaps = np.concatenate([gaps_between(coordinates.scale(block), anchors) for block in blocks])
    return draw_far(gaps, max(1, round(_FAR * len(pool))), chance)
