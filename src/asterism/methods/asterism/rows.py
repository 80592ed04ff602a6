"""Rows read against the context, each by itself: the labels of ``fit`` and those of ``predict``.

    r_ik ∝ mean of P_ij over the rows j of cluster k of the context

Of a table too large for that, the references are read so, and any other row follows the nearest.
Where the clusters were drawn again as clouds (``clouds``), these have the larger say.
"""

from typing import Any, ClassVar

import numpy as np

from asterism.functional.affinities import Assessment, assess, isolation
from asterism.functional.assignments import by_decreasing_size
from asterism.functional.nearest import nearest_rows
from asterism.functional.tails import Tails
from asterism.methods.asterism import sampling
from asterism.methods.asterism.clouds import CLOUD_SHARE, Clouds
from asterism.methods.asterism.knowledge import Knowledge
from asterism.nn.reading import ContextReader, RowReading

__all__ = ["RowsMixin"]

_NO_GAP = 1e-30


class RowsMixin:
    """Adds what ``fit`` ends with and ``predict`` does; list it before the base class."""

    offset_: np.ndarray
    factor_: np.ndarray
    tails_: np.ndarray | None
    axes_: np.ndarray | None
    context_indices_: np.ndarray
    context_rows_: np.ndarray
    context_labels_: np.ndarray
    usual_gaps_: np.ndarray
    cloud_log_weights_: np.ndarray
    cloud_means_: np.ndarray
    cloud_factors_: np.ndarray
    cloud_freedom_: float | None = None  # models saved before there were any have none
    cloud_tails_: np.ndarray | None = None
    reference_rows_: np.ndarray
    reference_gaps_: np.ndarray
    reference_membership_: np.ndarray
    reference_confidence_: np.ndarray
    probability_: np.ndarray
    confidence_: np.ndarray
    outlier_score_: np.ndarray

    _chunk: ClassVar[int]
    _known: Knowledge
    _reader: ContextReader
    _on_device: Any
    _describe_clusters: Any

    def _settle(self, X: np.ndarray) -> None:
        labels = np.empty(len(X), dtype=np.int64)
        self.probability_, self.confidence_, self.outlier_score_ = np.empty((3, len(X)))
        of_class = self._known.clusters(self.context_indices_, self.context_labels_)

        def note(rows: np.ndarray, found: Assessment) -> None:
            classes = self._known.classes[rows]
            own = found.labels.copy()
            own[classes >= 0] = of_class[classes[classes >= 0]]
            labels[rows] = own
            self.probability_[rows] = np.take_along_axis(found.membership, own[:, None], 1)[:, 0]
            self.confidence_[rows], self.outlier_score_[rows] = found.confidence, found.outlier

        rest = np.arange(len(X))
        if not hasattr(self, "reference_rows_"):  # the context has been read already
            note(self.context_indices_, self._assess(self._reader.own, self.context_rows_))
            rest = np.setdiff1d(rest, self.context_indices_, assume_unique=True)
        for start in range(0, len(rest), self._chunk):
            rows = rest[start : start + self._chunk]
            note(rows, self._look(X[rows]))
        self.labels_, order = by_decreasing_size(labels)
        self.n_clusters_ = len(order)
        self._reorder(order)
        self._describe_clusters(X)
        del self._known

    def _log_responsibilities(self, X: np.ndarray) -> np.ndarray:
        return np.log(np.maximum(self._look(X).membership, 1e-30))

    def _look(self, X: np.ndarray) -> Assessment:
        """Assess rows: by the network, or by the nearest reference of a large table."""
        rows = self._coordinates.scale(X)
        if hasattr(self, "reference_rows_"):
            nearest, distance = nearest_rows(rows, self.reference_rows_)
            gaps = np.maximum(np.log(np.maximum(distance, _NO_GAP)), self.reference_gaps_[nearest])
            membership = self.reference_membership_[nearest]
            if (advice := self._advise(self._coordinates.turn(rows))) is not None:
                membership = (1 - CLOUD_SHARE) * membership + CLOUD_SHARE * advice
            usual = self.usual_gaps_[membership.argmax(axis=1)]
            return Assessment(
                membership, self.reference_confidence_[nearest], isolation(gaps, usual)
            )
        turned = self._coordinates.turn(rows)
        return self._assess(self._own_reader().read(turned), turned)

    def _assess(self, reading: RowReading, rows: np.ndarray | None = None) -> Assessment:
        """Assess rows that were read, with the clouds' advice if their coordinates are given."""
        advice = None if rows is None else self._advise(rows)
        return assess(*reading, self.context_labels_, self.usual_gaps_, advice, CLOUD_SHARE)

    def _advise(self, rows: np.ndarray) -> np.ndarray | None:
        """What the clouds say of rows, if the clusters were drawn as such."""
        if not hasattr(self, "cloud_means_"):
            return None
        clouds = Clouds(
            self.cloud_log_weights_,
            self.cloud_means_,
            self.cloud_factors_,
            self.cloud_freedom_,
            None if self.cloud_tails_ is None else Tails(*self.cloud_tails_),
        )
        return clouds.responsibilities(self._in_clouds(rows))

    def _in_clouds(self, rows: np.ndarray) -> np.ndarray:
        """Coordinates (Q, D) in which clouds are drawn, of those the network reads.

        Where these are the axes of the context, the last is the length of what rows do not share
        with it, which is nought for rows of the context and for no others.
        """
        return rows if self.axes_ is None else rows[:, :-1]

    def _own_reader(self) -> ContextReader:
        """The context as the network reads it; read again after a load or a move."""
        network = self._network
        reader = getattr(self, "_reader", None)
        if reader is None or not reader.is_of(network):
            (self._reader,) = ContextReader.read_many(network, [self.context_rows_])
        return self._reader

    @property
    def _coordinates(self) -> sampling.Coordinates:
        tails = None if self.tails_ is None else Tails(*self.tails_)
        return sampling.Coordinates(self.offset_, self.factor_, tails, self.axes_)

    @property
    def _network(self) -> Any:
        return self._on_device()

    def _reorder(self, order: np.ndarray) -> None:
        empty = np.setdiff1d(np.arange(len(self.usual_gaps_)), order)
        order = np.concatenate([order, empty])
        self.context_labels_ = np.argsort(order)[self.context_labels_]
        per_cluster = ("usual_gaps_", "cloud_log_weights_", "cloud_means_", "cloud_factors_")
        for name in per_cluster:
            if hasattr(self, name):
                setattr(self, name, getattr(self, name)[order])
        if hasattr(self, "reference_membership_"):
            self.reference_membership_ = self.reference_membership_[:, order]
