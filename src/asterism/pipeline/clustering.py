"""From a table to the same table with clusters, and a model for new rows.

    read → encode → fit → attach labels        cluster_table
    read → encode → predict → attach labels    TableModel.predict

The command line is a thin shell over these.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from asterism.base import Clusterer
from asterism.exceptions import TableError
from asterism.functional.wording import counted
from asterism.io.encoder import TableEncoder
from asterism.io.tables import check_new_columns, read_table
from asterism.methods.registry import DEFAULT_METHOD, Method
from asterism.metrics import clustering_scores
from asterism.pipeline.choosing import Count, check_choices, choose_method
from asterism.pipeline.models import DETAILS, TableModel, assign_fitted, count_rows

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TableClustering", "cluster_table"]


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
    labels_used: bool = False
    """Whether that column guided the fit."""

    @property
    def n_clusters(self) -> int:
        """Clusters found; noise is none."""
        return int(self.model.estimator.n_clusters_)

    @property
    def sample(self) -> "TableClustering":
        """Rows the clusters were found on: all."""
        return self

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return len(self.labels)

    @property
    def noise(self) -> int:
        """Rows of no cluster."""
        return int((self.labels < 0).sum())

    @property
    def mean_probability(self) -> float | None:
        """Mean probability of the rows' clusters, where the method has them."""
        return None if self.probability is None else float(self.probability.mean())

    @property
    def notes(self) -> list[str]:
        """What was done to the table and by the method, in words."""
        return [*self.model.encoder.notes_, *getattr(self.model.estimator, "notes_", [])]

    def __repr__(self) -> str:
        sizes = ", ".join(map(str, self.sizes))
        rows = f"{len(self.labels)} rows by {self.method.name}"
        return f"<{counted(self.n_clusters, 'cluster')} of {rows}: {sizes}>"

    @property
    def sizes(self) -> list[int]:
        """Rows of each cluster, largest first."""
        return count_rows(self.labels, self.n_clusters)[1:]


def cluster_table(
    table: Any,
    method: "str | Clusterer" = DEFAULT_METHOD,
    n_clusters: Count = "auto",
    *,
    id_column: str | None = None,
    label_column: str | None = None,
    use_labels: bool = False,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    scaling: str = "standard",
    missing: str = "neighbours",
    details: bool = False,
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
    n_clusters : int, (int, int) or "auto"
        Number of clusters, or the lowest and highest; "auto" lets the method find it.
    id_column, label_column : str, optional
        Columns that are no features: the rows' names, and known classes to compare with.
    use_labels : bool
        Let the classes of ``label_column`` guide the fit; rows without one are free.
    drop : sequence of str
        Further columns to leave out.
    categorical : sequence of str
        Columns of numbers that are names, such as post codes: taken as categories.
    scaling : {"standard", "robust", "none"}
        What is done to numeric columns.
    missing : {"neighbours", "column"}
        What fills missing cells: the rows most alike that have them, or the median or most frequent
        category of the column.
    details : bool
        Add columns ``confidence`` and ``outlier_score``, where the method has them.
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
    >>> sizes, kinds = [1, 2, 3] * 5 + [90, 91] * 5, ["a"] * 15 + ["b"] * 10
    >>> table = pd.DataFrame({"size": sizes, "kind": kinds})
    >>> cluster_table(table)
    <2 clusters of 25 rows by asterism: 15, 10>
    """
    start = time.perf_counter()
    chosen, estimator = choose_method(method, n_clusters, random_state=random_state, **parameters)
    check_choices(chosen, label_column, use_labels=use_labels, details=details)
    frame = read_table(table, text=[] if id_column is None else [id_column])
    if len(frame) < 2:
        found = "1 row" if len(frame) else "0 rows"
        raise TableError(f"the table has {found}: clustering needs two at least")
    check_new_columns(frame, cluster_column, probability_column, DETAILS if details else ())
    encoder = TableEncoder(
        id_column,
        label_column,
        drop,
        scaling,  # type: ignore[arg-type]
        categorical=categorical,
        missing=missing,  # type: ignore[arg-type]
    )
    X = encoder.fit_transform(frame)
    known = encoder.labels(frame)
    estimator.fit(X, known if use_labels else None)
    rows = assign_fitted(estimator, X)
    columns = {"cluster_column": cluster_column, "probability_column": probability_column}
    return TableClustering(
        frame=rows.attach(frame, details, **columns),
        original=frame,
        model=TableModel(estimator, encoder),
        method=chosen,
        X=X,
        labels=rows.labels,
        probability=rows.probability,
        seconds=time.perf_counter() - start,
        scores=None if known is None else _agreement(known, rows.labels),
        labels_used=use_labels,
    )


def _agreement(known: np.ndarray, labels: np.ndarray) -> dict[str, float] | None:
    labelled = known >= 0
    if not labelled.any():
        return None
    return dict(clustering_scores(known[labelled], labels[labelled]))  # type: ignore[arg-type]
