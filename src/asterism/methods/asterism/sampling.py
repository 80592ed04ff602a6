"""What the network is given of a table: which rows, in which coordinates.

    scaled      (x − offset) · factor, heavy tails pulled in, in single precision
    pool        all rows; of a larger table 20 000 at random and 2 000 of the others where a sample
                of the first leaves gaps, which takes one look at every row
    contexts    rows of the pool that are read together, see ``functional.contexts``
    axes        where a context has more columns than rows, the dimensions it spans

Rows whose cluster is known are in every context.
"""

from typing import NamedTuple

import numpy as np

from asterism.functional.contexts import Gaps, choose_context, draw_far, spanned_axes, turn
from asterism.functional.scaling import fit_common_scaling
from asterism.functional.tails import Tails, find_tails

__all__ = ["POOL", "Coordinates", "Sample", "draw_sample"]

POOL = 20_000
_FAR = 0.1  # rows that fill gaps, as a share of those drawn at random
_ANCHORS = 512  # of the latter, the sample that gaps are seen in
_CELLS = 2**22  # scaled at once


class Coordinates(NamedTuple):
    """From the user's columns to those the network reads."""

    offset: np.ndarray  # (D,)
    factor: np.ndarray  # (D,)
    tails: Tails | None = None
    axes: np.ndarray | None = None  # (D, r)

    def scale(self, X: np.ndarray) -> np.ndarray:
        """Rows (Q, D), centred and scaled, heavy tails pulled in."""
        scaled = self.shift(X)
        return (scaled if self.tails is None else self.tails.pull(scaled)).astype(np.float32)

    def shift(self, X: np.ndarray) -> np.ndarray:
        """Rows (Q, D) centred and scaled, nothing rounded."""
        return (X - self.offset) * self.factor

    def turn(self, scaled: np.ndarray) -> np.ndarray:
        """Scaled rows along the axes of the context, if it has any."""
        return scaled if self.axes is None else turn(scaled, self.axes)


class Sample(NamedTuple):
    """Rows of a table chosen to be read."""

    coordinates: Coordinates
    pool: np.ndarray  # (M,) row numbers, sorted
    scaled: np.ndarray  # (M, D)
    chosen: list[np.ndarray]  # places in the pool of the rows of each context
    common: np.ndarray | None = None  # (M,) which rows were drawn at random; None for all

    @property
    def indices(self) -> np.ndarray:
        """Row numbers of the first context."""
        return self.pool[self.chosen[0]]

    @property
    def rows(self) -> np.ndarray:
        """Rows of the pool but those that fill gaps, in the coordinates that the network reads."""
        return self.coordinates.turn(
            self.scaled if self.common is None else self.scaled[self.common]
        )

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
    if large := len(X) > POOL:
        pool = np.sort(chance.choice(len(X), POOL, replace=False))
    if tails == "pull":
        origin, deviation = plain.offset * plain.factor, None
        if large:  # the pool may lack the few cells that a column was scaled by
            deviation = np.ones(X.shape[1])
            if scaling == "none":
                deviation = X.std(axis=0, dtype=np.float64) * plain.factor
        plain = plain._replace(tails=find_tails(plain.shift(X[pool]), origin, deviation))
    scaled, common = plain.scale(X[pool]), None
    if large:
        far = _far_rows(X, plain, pool, scaled, chance)
        pool, place = np.unique(np.concatenate([pool, far, known]), return_index=True)
        common = place < POOL
        scaled = plain.scale(X[pool])
    fixed = np.searchsorted(pool, known)
    chosen = [
        choose_context(scaled, size, chance.randint(2**31 - 1), fixed, common)
        for _ in range(n_contexts)
    ]
    first = scaled[chosen[0]]
    axes = spanned_axes(first) if first.shape[1] > len(first) else None
    return Sample(plain._replace(axes=axes), pool, scaled, chosen, common)


def _far_rows(
    X: np.ndarray,
    coordinates: Coordinates,
    pool: np.ndarray,
    scaled: np.ndarray,
    chance: np.random.RandomState,
) -> np.ndarray:
    """Row numbers where a sample of the pool (M,) leaves gaps: rare clusters are among them."""
    anchors = scaled[choose_context(scaled, _ANCHORS, chance.randint(2**31 - 1))]
    step = max(1, _CELLS // X.shape[1])
    blocks = (coordinates.scale(X[start : start + step]) for start in range(0, len(X), step))
    gaps = np.concatenate([Gaps(block, anchors).nearest[:, -1] for block in blocks])
    gaps[pool] = -1
    return draw_far(gaps, min(round(_FAR * len(pool)), len(X) - len(pool)), chance)
