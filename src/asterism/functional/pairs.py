"""Maps of what rows are to each other, and the features made of them, a few rows at a time.

A feature is a map (Q, N) of rows towards a context, and there are many: all of them at once would
be far more than the maps they are made of. So the maps are kept, and features are made of as many
rows as are wanted. What each means: :mod:`asterism.functional.relations`.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["LIMIT", "TINY", "PairMaps"]

TINY = 1e-6
"""Share of the median distance below which rows are taken to be no nearer."""

LIMIT = 6.0
"""Largest size of a feature."""

_COARSE = 1e-3  # below it the images' distances, computed by matrix products, are rounding error


class PairMaps(NamedTuple):
    """Rows (B, Q) towards a context (B, N)."""

    views: list[Tensor]  # (B, Q, N) distances: of rows, of their leading and of their affine image
    typical: Tensor  # (B, 3) medians of these in the context
    own_scale: Tensor  # (B, Q) distance to the tenth neighbour
    scale: Tensor  # (B, N) the same in the context
    paths: Tensor  # (B, Q, N) minimax paths
    core: Tensor  # (B, N) distance of the context's rows to the fifth neighbour
    own_near: Tensor  # (B, Q, N) 1 where the column is among the row's neighbours
    near: Tensor  # (B, N, N) the same in the context
    degrees: Tensor  # (B, N) how many neighbours those have
    walks: list[Tensor]  # (B, Q, N) probabilities after t steps
    stationary: Tensor  # (B, N) where a long walk ends
    own_labels: Tensor  # (B, Q, partitions) clusters of quick k-means
    labels: Tensor  # (B, N, partitions) the same in the context

    @property
    def n_rows(self) -> int:
        """Number Q of rows."""
        return self.own_scale.shape[1]

    def features(self, rows: slice = slice(None), out: Tensor | None = None) -> Tensor:
        """Features (B, F, R, N) of some of the rows, in the order of ``relations.PAIR_FEATURES``.

        ``out`` is what was made of as many rows before, and is written over if it fits: new memory
        would take longer to get than to fill.
        """
        own_labels = self.own_labels[:, rows]
        n_measures = 4 + len(self.walks) + len(self.views) - 1
        batch, n_rows, n_partitions = own_labels.shape
        sizes = (batch, n_measures + n_partitions, n_rows, self.scale.shape[1])
        features = self.scale.new_empty(sizes) if out is None or out.shape != sizes else out
        for place, measure in zip(range(n_measures), self._measures(rows), strict=True):
            torch.clamp(measure, -LIMIT, LIMIT, out=features[:, place])
        # Comparing numbers of the kind that is written takes a tenth of the time.
        numbered = (each.to(features.dtype).unbind(2) for each in (own_labels, self.labels))
        for place, (own, others) in enumerate(zip(*numbered, strict=True), n_measures):
            torch.eq(own[:, :, None], others[:, None], out=features[:, place])
        return features

    def _measures(self, rows: slice) -> Iterator[Tensor]:
        """Distances, shared neighbours and walks (B, R, N), one after the other."""
        typical = self.typical[:, :, None, None].unbind(1)
        middle = self.core.median(dim=1).values[:, None, None]
        distance = self.views[0][:, rows].maximum(TINY * typical[0])
        yield (distance / typical[0]).log_()
        scales = self.own_scale[:, rows, None] * self.scale[:, None, :]
        yield (distance / scales.sqrt_()).log_()
        yield (self.paths[:, rows].maximum(TINY * typical[0]) / middle).log_()
        yield self._shared(self.own_near[:, rows])
        for walk in self.walks:
            yield (walk[:, rows].clamp_min(1e-12) / self.stationary[:, None]).log_() / 2
        for view, usual in zip(self.views[1:], typical[1:], strict=True):
            yield (view[:, rows].maximum(_COARSE * usual) / usual).log_()

    def _shared(self, near: Tensor) -> Tensor:
        """Neighbours (B, R, N) in common, as a share of the neighbours of both."""
        sizes = near.sum(dim=2)[:, :, None] * self.degrees[:, None]
        return near @ self.near.mT / sizes.clamp_min(1).sqrt()
