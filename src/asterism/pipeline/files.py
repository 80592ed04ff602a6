"""Tables too large to hold: clusters are found on a sample, and every row is assigned to one.

    survey the file → draw a sample → cluster_table → assign and write, batch by batch

The file is read twice, a batch of rows at a time, so memory does not grow with it. The sample is
uniform over all rows. Rows are assigned as new rows are, by ``TableModel.assign``: each by itself,
with categories that the sample lacked encoded as unknown ones. Clusters are numbered by their size
in the sample.
"""

import re
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from asterism._validation import draw_seed
from asterism.base import Clusterer
from asterism.exceptions import TableError, tell
from asterism.functional.wording import counted
from asterism.io.appending import appending, can_append
from asterism.io.batches import BatchedTable, draw_rows, open_batches
from asterism.io.tables import check_destination
from asterism.methods.registry import DEFAULT_METHOD, Method
from asterism.pipeline.choosing import Count, check_choices, choose_method
from asterism.pipeline.clustering import TableClustering, cluster_table
from asterism.pipeline.models import DETAILS, TableModel, count_rows

__all__ = ["FileClustering", "FilePrediction", "cluster_file", "is_large", "predict_file"]

Path = str | PathLike[str]

LARGE = 20_000_000
"""Cells beyond which the command line does not hold a table."""

_SAMPLE_ROWS = 100_000
_SAMPLE_CELLS = 50_000_000


@dataclass(frozen=True)
class FilePrediction:
    """What :func:`predict_file` wrote."""

    output: Path
    """The table with clusters."""
    n_rows: int
    """Its rows."""
    sizes: list[int]
    """Rows of each cluster."""
    noise: int
    """Rows of none."""
    mean_probability: float | None
    """Mean probability of the rows' clusters, where the method has them."""
    seconds: float
    """Wall time."""


@dataclass(frozen=True, repr=False)
class FileClustering(FilePrediction):
    """What :func:`cluster_file` found and wrote."""

    sample: TableClustering
    """The sample that was clustered; its index counts the rows of the file from 0."""

    @property
    def model(self) -> TableModel:
        """Estimator and encoder, to predict new rows with."""
        return self.sample.model

    @property
    def method(self) -> Method:
        """Row of the registry."""
        return self.sample.method

    @property
    def n_clusters(self) -> int:
        """Clusters found; noise is none."""
        return self.sample.n_clusters

    @property
    def notes(self) -> list[str]:
        """What was done to the table and by the method, in words."""
        found = self.sample.n_rows
        told = f"clusters found on a sample of {found} rows, all {self.n_rows} rows assigned"
        return [*self.sample.notes, *([told] if found < self.n_rows else [])]

    def __repr__(self) -> str:
        sizes = ", ".join(map(str, self.sizes))
        rows = f"{self.n_rows} rows by {self.method.name}"
        return f"<{counted(self.n_clusters, 'cluster')} of {rows}: {sizes}>"


def cluster_file(
    path: Path,
    output: Path,
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
    sample_size: int | None = None,
    reading: Mapping[str, Any] | None = None,
    random_state: Any = 0,
    **parameters: Any,
) -> FileClustering:
    """Cluster the rows of a file of any length, in memory that does not grow with it.

    Parameters
    ----------
    path : path
        Parquet, CSV, TSV or NPY.
    output : path
        Where the table with clusters goes: Parquet, CSV, TSV or JSON lines. It is whole or not
        there.
    sample_size : int, optional
        Rows to find clusters on; by default 100 000, and fewer of a table of over 500 columns.
    reading : mapping, optional
        How to read the file, as in :func:`asterism.io.read_table`.
    method, n_clusters, id_column, label_column, use_labels, drop, categorical, scaling, missing, \
    details, cluster_column, probability_column, random_state, **parameters
        As in :func:`asterism.cluster_table`, which clusters the sample. Classes of
        ``label_column`` are compared with, or used, in the sample.

    Returns
    -------
    FileClustering

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from asterism import cluster_file
    >>> folder = tempfile.mkdtemp()
    >>> table = pd.DataFrame({"size": [1, 2, 90, 1, 91, 2, 92], "kind": list("aababab")})
    >>> table.to_csv(f"{folder}/table.csv", index=False)
    >>> cluster_file(f"{folder}/table.csv", f"{folder}/labelled.csv", "kmeans")
    <2 clusters of 7 rows by kmeans: 4, 3>
    >>> pd.read_csv(f"{folder}/labelled.csv")["cluster"].tolist()
    [0, 0, 1, 0, 1, 0, 1]
    """
    start = time.perf_counter()
    chosen, estimator = choose_method(method, n_clusters, random_state=random_state, **parameters)
    check_choices(chosen, label_column, use_labels=use_labels, details=details)
    columns = {"cluster_column": cluster_column, "probability_column": probability_column}
    table = _open(path, output, id_column, reading)
    if sample_size is None:
        sample_size = min(_SAMPLE_ROWS, max(1000, _SAMPLE_CELLS // max(table.n_columns, 1)))
    sample = draw_rows(table.survey(), sample_size, draw_seed(random_state))
    check_destination(sample, output)
    with _rows_of_file(sample.index.to_numpy()):
        found = cluster_table(
            sample,
            estimator,
            id_column=id_column,
            label_column=label_column,
            use_labels=use_labels,
            drop=drop,
            categorical=categorical,
            scaling=scaling,
            missing=missing,
            details=details,
            **columns,
        )
    rows = _write(found.model, table, output, details, columns)
    seconds = time.perf_counter() - start
    return FileClustering(**vars(rows) | {"seconds": seconds, "sample": found})


def predict_file(
    model: TableModel,
    path: Path,
    output: Path,
    *,
    details: bool = False,
    reading: Mapping[str, Any] | None = None,
    **columns: str,
) -> FilePrediction:
    """Assign the rows of a file of any length to the clusters of a model.

    Parameters
    ----------
    model : TableModel
    path, output, details, reading
        As in :func:`asterism.cluster_file`.
    **columns
        As in :func:`asterism.io.attach_labels`.

    Returns
    -------
    FilePrediction
    """
    table = _open(path, output, model.encoder.id_column, reading)
    return _write(model, table, output, details, columns)


def is_large(path: Path, output: Path, reading: Mapping[str, Any] | None = None) -> bool:
    """Whether a file has more than ``LARGE`` cells, and both formats allow for batches."""
    table = open_batches(path, **(reading or {}))
    return table is not None and table.cells > LARGE and can_append(output)


def _open(
    path: Path, output: Path, id_column: str | None, reading: Mapping[str, Any] | None
) -> BatchedTable:
    text = [] if id_column is None else [id_column]
    table = open_batches(path, **{"text": text, **(reading or {})})
    if table is None:
        raise TableError(
            f"{path} can only be read whole: give a Parquet, CSV or NPY file, or use cluster_table"
        )
    if not can_append(output):
        raise TableError(f"{output}: give a name that ends in .parquet, .csv, .tsv or .jsonl")
    return table


def _write(
    model: TableModel, table: BatchedTable, output: Path, details: bool, columns: dict[str, str]
) -> FilePrediction:
    """Assign and write, a batch at a time."""
    start = time.perf_counter()
    counts = np.zeros(int(model.estimator.n_clusters_) + 1, dtype=np.int64)  # noise first
    total = 0.0
    with _warnings_once(), _appending_labels(table, output, details, columns) as append:
        for frame in table.batches():
            with _rows_of_file(frame.index.to_numpy()):
                model.check_new_columns(frame, details=details, **columns)
                found = model.assign(frame)
            append(found.attach(frame, details, **columns))
            counts += count_rows(found.labels, len(counts) - 1)
            total += 0.0 if found.probability is None else float(found.probability.sum())
    return FilePrediction(
        output=output,
        n_rows=int(counts.sum()),
        sizes=counts[1:].tolist(),
        noise=int(counts[0]),
        mean_probability=total / max(int(counts.sum()), 1) if model.estimator.soft else None,
        seconds=time.perf_counter() - start,
    )


def _appending_labels(
    table: BatchedTable, output: Path, details: bool, columns: dict[str, str]
) -> Any:
    cluster = columns.get("cluster_column", "cluster")
    probability = columns.get("probability_column", "probability")

    def schema() -> Any:
        import pyarrow as pa

        new = [pa.field(cluster, pa.int64()), pa.field(probability, pa.float64())]
        new += [pa.field(name, pa.float64()) for name in DETAILS if details]
        return pa.schema([*table.schema(), *new])

    return appending(output, schema)


@contextmanager
def _rows_of_file(rows: np.ndarray) -> Iterator[None]:
    """Let an error that counts the rows of a part count those of the file; ``rows`` are theirs."""
    try:
        yield
    except TableError as error:
        told = re.sub(
            r"(?<=, row )\d+(?=:)", lambda found: str(rows[int(found[0]) - 1] + 1), str(error)
        )
        raise type(error)(told) from error


@contextmanager
def _warnings_once() -> Iterator[None]:
    """Warn once of what is met in many batches."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    met: set[str] = set()
    for warning in caught:
        # The count is that of a batch, and the next batch's would differ.
        text = re.sub(r", \d+ in all", "", str(warning.message))
        if (gist := text.partition(" (")[0]) not in met:
            met.add(gist)
            tell(text, warning.category)
