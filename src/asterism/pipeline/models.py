"""A fitted estimator with the encoder of its table, and what it says of rows."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from asterism.base import Clusterer
from asterism.exceptions import UnknownMethodError, WeightsError
from asterism.io.encoder import TableEncoder
from asterism.io.tables import as_frame, attach_labels, check_new_columns
from asterism.io.weights import read_weights
from asterism.methods.registry import method_of_class
from asterism.pipeline.choosing import check_choices, described

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DETAILS", "Assignment", "TableModel", "assign", "assign_fitted", "count_rows", "load"]

DETAILS = ("confidence", "outlier_score")
"""Columns that ``details`` adds."""


class Assignment(NamedTuple):
    """What is said of rows (N,); None where the method has no such thing."""

    labels: np.ndarray
    probability: np.ndarray | None = None
    confidence: np.ndarray | None = None
    outlier_score: np.ndarray | None = None

    def attach(
        self, frame: "pd.DataFrame", details: bool = False, **columns: str
    ) -> "pd.DataFrame":
        """The frame with these as columns; ``columns`` as in ``attach_labels``."""
        further = {name: getattr(self, name) for name in DETAILS if details}
        return attach_labels(frame, self.labels, self.probability, **columns, **further)


@dataclass(frozen=True)
class TableModel:
    """A fitted estimator together with the encoder of its table."""

    estimator: Clusterer
    encoder: TableEncoder

    def assign(self, table: Any) -> Assignment:
        """Cluster of each row of a table and, if the method has them, its probability."""
        return assign(self.estimator, self.encoder.transform(as_frame(table)))

    def predict(self, table: Any, *, details: bool = False, **columns: str) -> "pd.DataFrame":
        """The table with clusters and probabilities; ``columns`` as in ``attach_labels``."""
        frame = as_frame(table)
        self.check_new_columns(frame, details=details, **columns)
        return self.assign(frame).attach(frame, details, **columns)

    def check_new_columns(
        self, frame: "pd.DataFrame", *, details: bool = False, **columns: str
    ) -> None:
        """Refuse what :meth:`predict` could not add to a table."""
        check_choices(described(type(self.estimator)), details=details)
        check_new_columns(frame, **columns, further=DETAILS if details else ())

    def save(self, path: str | Path, *, command: str | None = None) -> Path:
        """Write estimator and encoder as one pair of files."""
        return self.estimator.save(path, command=command, encoder=self.encoder.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> "TableModel":
        """Read what :meth:`save` wrote."""
        arrays, card = read_weights(path)
        if "encoder" not in card:
            raise WeightsError(
                f"{path} holds an estimator without a table's encoder; read it with asterism.load"
            )
        return cls(_restore(arrays, card, path), TableEncoder.from_dict(card["encoder"]))


def assign(estimator: Clusterer, X: np.ndarray) -> Assignment:
    """What a fitted estimator says of rows, each by itself; they are read once."""
    if hasattr(estimator, "assess"):
        found = estimator.assess(X)
        surest = found.membership.max(axis=1)
        return Assignment(found.labels, *map(_rounded, (surest, found.confidence, found.outlier)))
    if not estimator.soft:
        return Assignment(estimator.predict(X))
    probability = estimator.predict_proba(X)
    surest = probability.max(axis=1)
    return Assignment(np.where(surest > 0, probability.argmax(axis=1), -1), _rounded(surest))


def assign_fitted(estimator: Clusterer, X: np.ndarray) -> Assignment:
    """What ``fit`` said of its rows X; they are read again only for what it did not keep."""
    again = estimator.soft and not hasattr(estimator, "probability_")
    found = assign(estimator, X) if again else Assignment(estimator.labels_)
    kept = {name: getattr(estimator, f"{name}_", None) for name in Assignment._fields[1:]}
    known = {name: _rounded(value) for name, value in kept.items() if value is not None}
    return found._replace(labels=estimator.labels_, **known)


def count_rows(labels: np.ndarray, n_clusters: int) -> list[int]:
    """Rows of no cluster, then of each cluster.

    >>> count_rows(np.array([0, -1, 0, 1]), 3)
    [1, 2, 1, 0]
    """
    return np.bincount(labels + 1, minlength=n_clusters + 1).tolist()


def _rounded(values: np.ndarray) -> np.ndarray:
    """Six digits: the rest differs from machine to machine."""
    return np.round(values.astype(np.float64), 6)


def load(path: str | Path, **overrides: Any) -> Clusterer:
    """Estimator of any method that ``save`` wrote; its class is taken from the card.

    Parameters
    ----------
    path : path
        With or without the ending.
    **overrides
        Constructor parameters to change, for example ``device="cpu"``.

    Returns
    -------
    Clusterer
    """
    arrays, card = read_weights(path)
    return _restore(arrays, card, path)._loaded_with(overrides, card, path)


def _restore(arrays: dict[str, np.ndarray], card: dict[str, Any], path: str | Path) -> Clusterer:
    try:
        cls = method_of_class(card["method"]).load()
    except UnknownMethodError as error:
        raise WeightsError(
            f"the card names the method {card['method']!r}, which this version does not know"
        ) from error
    return cls._restore(arrays, card, path)
