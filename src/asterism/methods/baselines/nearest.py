"""Methods that partition the rows they see and have no rule for others.

A new row joins the cluster of the fitted row nearest to it, which may be no cluster at all (−1).
Above ``max_rows`` the partition is made of a random sample, and the remaining rows join in the same
way, so that time and memory stay bounded.
"""

from typing import Any, ClassVar

import numpy as np
from sklearn.neighbors import NearestNeighbors

from asterism._validation import at_least
from asterism.base import Clusterer
from asterism.functional.assignments import first_equal, one_hot_log

__all__ = ["NearestRowClusterer"]


class NearestRowClusterer(Clusterer):
    """Base of the three; a subclass writes ``_partition(X, seed)``, labels with −1 for noise."""

    soft: ClassVar[bool] = False
    _chunk: ClassVar[int] = 1 << 20  # the search tree is built anew for every chunk
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Clusterer._parameter_constraints,
        "max_rows": [at_least(2), None],
    }

    max_rows: int | None

    def _partition(self, X: np.ndarray, seed: int) -> np.ndarray:
        raise TypeError(f"{type(self).__name__} must define _partition")

    def _fit(self, X: np.ndarray, y: Any, seed: int) -> None:
        rows = np.arange(len(X))
        if self.max_rows is not None and len(X) > self.max_rows:
            rows = np.sort(np.random.RandomState(seed).choice(len(X), self.max_rows, replace=False))
        self.context_rows_ = X[rows]
        labels = self._partition(self.context_rows_, seed).astype(np.int64)
        # A method may part equal rows, which no rule for new rows can: the first one decides.
        self.context_labels_ = labels[first_equal(self.context_rows_)]

    def _fitted_labels(self, X: np.ndarray) -> np.ndarray:
        if len(X) == len(self.context_rows_):
            return self.context_labels_
        return super()._fitted_labels(X)

    def _reorder(self, order: np.ndarray) -> None:
        position = np.full(int(self.context_labels_.max(initial=-1)) + 2, -1)
        position[order] = np.arange(len(order))
        self.context_labels_ = position[self.context_labels_]

    def _log_responsibilities(self, X: np.ndarray) -> np.ndarray:
        # Far from the origin, expanded squares would lose the distances between rows.
        origin = self.context_rows_.mean(axis=0)
        index = NearestNeighbors(n_neighbors=1).fit(self.context_rows_ - origin)
        nearest = index.kneighbors(X - origin, return_distance=False).squeeze(1)
        return one_hot_log(self.context_labels_[nearest], int(self.context_labels_.max()) + 1)
