"""From a table to a table with clusters, and a model that treats new rows the same way.

    read → encode → fit → attach labels        cluster_table
    read → encode → predict → attach labels    TableModel.predict

The command line is a thin shell over these.
"""

import difflib
import inspect
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from asterism.base import Clusterer
from asterism.exceptions import DataError, TableError, UnknownMethodError, WeightsError
from asterism.io.encoder import TableEncoder
from asterism.io.tables import as_frame, attach_labels, check_new_columns, read_table
from asterism.io.weights import read_weights
from asterism.methods.registry import DEFAULT_METHOD, Method, get_method, method_of_class
from asterism.metrics import clustering_scores

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TableClustering", "TableModel", "cluster_table", "load", "make_estimator"]


@dataclass(frozen=True)
class TableModel:
    """A fitted estimator together with the encoder of its table."""

    estimator: Clusterer
    encoder: TableEncoder

    def assign(self, table: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """Cluster of each row of a table and, if the method has them, its probability."""
        return assign(self.estimator, self.encoder.transform(as_frame(table)))

    def predict(self, table: Any, **columns: str) -> "pd.DataFrame":
        """The table with clusters and probabilities; ``columns`` as in ``attach_labels``."""
        frame = as_frame(table)
        check_new_columns(frame, **columns)
        return attach_labels(frame, *self.assign(frame), **columns)

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


@dataclass(frozen=True, repr=False)
class TableClustering:
    """What :func:`cluster_table` found."""

    frame: "pd.DataFrame"
    """The table, with columns ``cluster`` and ``probability``."""
    original: "pd.DataFrame"
    """The table as it came."""
    model: TableModel
    """Estimator and encoder, to predict new rows with."""
    method: Method
    """Row of the registry."""
    X: np.ndarray
    """Encoded features, (N, D)."""
    labels: np.ndarray
    """Cluster of each row."""
    probability: np.ndarray | None
    """Probability of each row's cluster, where the method has them."""
    seconds: float
    """Wall time of encoding and fitting."""
    scores: dict[str, float] | None = field(default=None)
    """Agreement with the label column, if one was named."""

    @property
    def n_clusters(self) -> int:
        """Clusters found; noise is none."""
        return int(self.model.estimator.n_clusters_)

    @property
    def notes(self) -> list[str]:
        """What was done to the table and by the method, in words."""
        return [*self.model.encoder.notes_, *getattr(self.model.estimator, "notes_", [])]

    def __repr__(self) -> str:
        sizes = ", ".join(map(str, self.sizes))
        rows = f"{len(self.labels)} rows by {self.method.name}"
        return f"<{self.n_clusters} clusters of {rows}: {sizes}>"

    @property
    def sizes(self) -> list[int]:
        """Rows of each cluster, largest first."""
        return np.bincount(self.labels[self.labels >= 0], minlength=self.n_clusters).tolist()


def cluster_table(
    table: Any,
    method: "str | Clusterer" = DEFAULT_METHOD,
    n_clusters: int | str = "auto",
    *,
    id_column: str | None = None,
    label_column: str | None = None,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    scaling: str = "standard",
    cluster_column: str = "cluster",
    probability_column: str = "probability",
    random_state: Any = 0,
    **parameters: Any,
) -> TableClustering:
    """Cluster the rows of a table of numbers, categories and missing cells.

    Parameters
    ----------
    table : data frame, array or path
        pandas, polars, numpy, or a file that :func:`asterism.io.read_table` reads.
    method : str or Clusterer
        A name of the registry; or an estimator, which is then fitted as it is.
    n_clusters : int or "auto"
        Number of clusters; "auto" lets the method find it.
    id_column, label_column : str, optional
        Columns that are no features: the rows' names, and known classes to compare with.
    drop : sequence of str
        Further columns to leave out.
    categorical : sequence of str
        Columns of numbers that are names, such as post codes: taken as categories.
    scaling : {"standard", "robust", "none"}
        What is done to numeric columns.
    cluster_column, probability_column : str
        Names of the columns added.
    random_state : int
        Fixes everything.
    **parameters
        Parameters of the method; one that shares its name with an argument of this function is
        given to an estimator of yours, ``cluster_table(table, AEKMeans(3, scaling="minmax"))``.

    Returns
    -------
    TableClustering

    Examples
    --------
    >>> import pandas as pd
    >>> from asterism import cluster_table
    >>> table = pd.DataFrame({"size": [1, 2, 1, 2, 90, 91, 92], "kind": list("aaaabbb")})
    >>> cluster_table(table).frame["cluster"].tolist()
    [0, 0, 0, 0, 1, 1, 1]
    """
    start = time.perf_counter()
    if isinstance(method, Clusterer):
        if n_clusters != "auto" or parameters:
            named = ", ".join(["n_clusters"] * (n_clusters != "auto") + [*parameters])
            raise DataError(f"{named}: give it to {type(method).__name__} itself, which is fitted")
        chosen, estimator = _described(method), method
    else:
        chosen = get_method(method)
        estimator = make_estimator(chosen, n_clusters, random_state=random_state, **parameters)
    frame = read_table(table, text=[] if id_column is None else [id_column])
    if len(frame) < 2:
        found = "1 row" if len(frame) else "0 rows"
        raise TableError(f"the table has {found}: clustering needs two at least")
    check_new_columns(frame, cluster_column, probability_column)
    encoder = TableEncoder(id_column, label_column, drop, scaling, categorical=categorical)  # type: ignore[arg-type]
    X = encoder.fit_transform(frame)
    known = encoder.labels(frame)
    estimator.fit(X, known) if chosen.uses_labels else estimator.fit(X)
    labels, probability = estimator.labels_, assign(estimator, X)[1]
    return TableClustering(
        frame=attach_labels(frame, labels, probability, cluster_column, probability_column),
        original=frame,
        model=TableModel(estimator, encoder),
        method=chosen,
        X=X,
        labels=labels,
        probability=probability,
        seconds=time.perf_counter() - start,
        scores=None if known is None else _agreement(known, labels),
    )


def make_estimator(
    method: Method, n_clusters: int | str = "auto", /, **parameters: Any
) -> Clusterer:
    """Estimator of a method; a parameter it does not have is refused, before any work."""
    cls = method.load()
    n_clusters = parameters.pop("n_clusters", n_clusters)
    known = inspect.signature(cls).parameters
    if "random_state" not in known:
        parameters.pop("random_state", None)
    if unknown := sorted(set(parameters) - set(known)):
        raise DataError(
            f"method {method.name!r} has no parameter {unknown[0]!r}{_closest(unknown[0], known)}; "
            f"it has: {', '.join(known)}"
        )
    if n_clusters == "auto":
        if method.needs_k:
            raise DataError(
                f"method {method.name!r} needs the number of clusters: give n_clusters=K "
                "(--n-clusters K), or choose a method that finds it"
            )
        return cls(**parameters)
    if not method.takes_k:
        raise DataError(
            f"method {method.name!r} finds the number of clusters itself, got {n_clusters}: leave "
            "n_clusters='auto' (--n-clusters auto)"
        )
    return cls(n_clusters=n_clusters, **parameters)


def _closest(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def assign(estimator: Clusterer, X: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Labels and, if the method is soft, the probability of each row's cluster."""
    if not estimator.soft:
        return estimator.predict(X), None
    probability = estimator.predict_proba(X)
    surest = probability.max(axis=1)
    # Six digits: the rest differs from machine to machine.
    return np.where(surest > 0, probability.argmax(axis=1), -1), np.round(surest, 6)


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
    return _restore(*read_weights(path), path).set_params(**overrides)


def _described(estimator: Clusterer) -> Method:
    """Row of the registry for an estimator; one is made up for a class that is not registered."""
    cls = type(estimator)
    try:
        return method_of_class(cls.__name__)
    except UnknownMethodError:
        target = f"{cls.__module__}:{cls.__qualname__}"
        return Method(cls.__name__, target, "own", "given by the user", soft=cls.soft)


def _restore(arrays: dict[str, np.ndarray], card: dict[str, Any], path: str | Path) -> Clusterer:
    try:
        cls = method_of_class(card["method"]).load()
    except UnknownMethodError as error:
        raise WeightsError(
            f"the card names the method {card['method']!r}, which this version does not know"
        ) from error
    return cls._restore(arrays, card, path)


def _agreement(known: np.ndarray, labels: np.ndarray) -> dict[str, float] | None:
    labelled = known >= 0
    if not labelled.any():
        return None
    return dict(clustering_scores(known[labelled], labels[labelled]))  # type: ignore[arg-type]
