"""Tables in, labels out: read a table in any of the usual formats, write it back with clusters.

    read_table(source) -> DataFrame              columns named by unique strings, rows in file order
    attach_labels(frame, labels) -> DataFrame    the same rows in the same order, two columns more
    write_table(frame, destination)              whole or not at all

``check_new_columns`` and ``check_destination`` refuse beforehand what the last two would refuse
when the work is done.

| format    | read | written | note                                                       |
|-----------|------|---------|------------------------------------------------------------|
| csv, tsv  | yes  | yes     | header and separator detected; gz, bz2, xz, zst unpacked   |
| jsonl     | yes  | yes     | one flat object a line; absent keys are missing cells      |
| parquet,  | yes  | yes     | need the extra ``data``                                    |
| feather   |      |         |                                                            |
| npy       | yes  | yes     | two-dimensional, never pickled; names of columns are lost  |
| npz       | yes  | no      | one array, or the one chosen by ``key``                    |

``-`` stands for standard input and output.
"""

import io
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from asterism.exceptions import MissingExtraError, OutputError, TableError
from asterism.io.cells import duplicates, few
from asterism.io.delimited import read_delimited
from asterism.io.files import replacing
from asterism.io.formats import WRITERS, read_array, read_arrow, read_jsonl
from asterism.io.sources import COMPRESSIONS, SUFFIXES, Source, format_of, pack, sniff_format

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "as_frame",
    "attach_labels",
    "check_destination",
    "check_new_columns",
    "destination_of",
    "read_table",
    "write_table",
]

_WRITABLE = {suffix: name for suffix, name in SUFFIXES.items() if name != "npz"}


def read_table(
    source: Any,
    *,
    format: str | None = None,  # noqa: A002
    header: bool | Literal["auto"] = "auto",
    sep: str | None = None,
    decimal: str = ".",
    encoding: str | None = None,
    key: str | None = None,
    text: Sequence[str] = (),
) -> "pd.DataFrame":
    r"""Read a table from a file, standard input, a stream, or an object already in memory.

    Parameters
    ----------
    source : str, path, binary stream, DataFrame or array
        ``"-"`` is standard input. A data frame of pandas or polars and a two-dimensional array
        are passed on as a pandas data frame.
    format : str, optional
        ``csv``, ``tsv``, ``parquet``, ``feather``, ``jsonl``, ``npy`` or ``npz``; by default by
        the suffix of the file, or by the first bytes of a stream.
    header : bool or "auto", default="auto"
        Whether the first row of a text table names the columns. The rules of ``"auto"`` are
        those of :mod:`asterism.io.headers`; in particular an all-numeric row is data, unless
        it counts the columns.
    sep : str, optional
        Separator of a text table: one character, or ``"\s+"`` for runs of blanks. Detected by
        default.
    decimal : str, default="."
        Decimal sign of a text table.
    encoding : str, optional
        Encoding of a text table, by default UTF-8.
    key : str, optional
        Name of the array in an NPZ archive.
    text : sequence of str
        Columns of a text table to keep letter for letter, such as identifiers: ``007``.

    Returns
    -------
    DataFrame
        Columns are named by unique strings: ``x0, x1, ...`` where the source names none.

    Raises
    ------
    TableError
        If there is no table, or it is damaged; the message names the place and the fix.

    Examples
    --------
    >>> import io
    >>> read_table(io.BytesIO(b"height;weight\n1.8;77\n1.6;?\n"))
       height  weight
    0     1.8    77.0
    1     1.6     NaN
    """
    if _in_memory(source):
        return as_frame(source)
    found = Source.of(source)
    if format is not None:
        kind = format_of(format)
    else:
        kind = format_of(found.path.name) if found.path else sniff_format(found)
    if kind in ("csv", "tsv"):
        sep = sep or ("\t" if kind == "tsv" else None)
        frame = read_delimited(
            found, sep=sep, header=header, decimal=decimal, encoding=encoding, text=text
        )
    elif kind == "jsonl":
        frame = as_frame(read_jsonl(found, encoding), found.name)
    elif kind in ("npy", "npz"):
        frame = as_frame(read_array(found, key), found.name)
    else:
        frame = as_frame(read_arrow(found, kind), found.name)
    if frame.empty:
        rows, columns = frame.shape
        raise TableError(f"{found.name} has {rows} rows and {columns} columns: nothing to read")
    return frame


def as_frame(table: Any, name: str = "the table") -> "pd.DataFrame":
    """Pandas data frame over a frame of pandas or polars or a two-dimensional array.

    Examples
    --------
    >>> as_frame(np.eye(2)).columns.tolist()
    ['x0', 'x1']
    """
    import pandas as pd

    if type(table).__module__.partition(".")[0] == "polars":
        table = _from_polars(table)
    if isinstance(table, np.ndarray):
        if table.ndim != 2:
            raise TableError(
                f"{name} has shape {table.shape}: a table needs two dimensions, rows and columns"
            )
        if table.dtype.kind not in "biufUO":
            raise TableError(f"{name} has entries of type {table.dtype}: numbers or text needed")
        return pd.DataFrame(table, columns=[f"x{j}" for j in range(table.shape[1])])
    if not isinstance(table, pd.DataFrame):
        raise TableError(f"{name} is a {type(table).__name__}, not a data frame or an array")
    columns = [str(column) for column in table.columns]
    if repeated := duplicates(columns):
        raise TableError(f"{name} names several columns {few(repeated, 20)}: rename them")
    return table if columns == list(table.columns) else table.set_axis(columns, axis=1)


def attach_labels(
    frame: "pd.DataFrame",
    labels: Any,
    probability: Any = None,
    cluster_column: str = "cluster",
    probability_column: str = "probability",
    **further: Any,
) -> "pd.DataFrame":
    """Add the cluster of each row, and its probability, after the columns of the table.

    Parameters
    ----------
    frame : DataFrame of N rows
        Left as it is; rows, order and index are those of the result.
    labels : array-like of int, shape (N,)
        Clusters; −1 is noise.
    probability : array-like of float, shape (N,), optional
        Probability of the cluster; by default the column holds missing values.
    cluster_column, probability_column : str
        Names of the new columns, which the table must not have yet.
    **further : array-like of float, shape (N,)
        Further columns by their names.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> import pandas as pd
    >>> attach_labels(pd.DataFrame({"height": [1.8, 1.6]}), [0, 1], [0.9, 0.75])
       height  cluster  probability
    0     1.8        0         0.90
    1     1.6        1         0.75
    """
    frame = as_frame(frame)
    check_new_columns(frame, cluster_column, probability_column, further)
    if probability is None:
        probability = np.full(len(frame), np.nan)
    clusters, probabilities = np.asarray(labels), np.asarray(probability, dtype=np.float64)
    for what, values in {"labels": clusters, "probability": probabilities, **further}.items():
        if np.shape(values) != (len(frame),):
            raise TableError(f"{what} of shape {np.shape(values)} for a table of {len(frame)} rows")
    if clusters.dtype.kind not in "iu":
        raise TableError(f"labels of type {clusters.dtype}: integers needed")
    new = {cluster_column: clusters.astype(np.int64), probability_column: probabilities}
    # In one piece first: pandas warns of columns set one by one in a wide table.
    return frame.copy().assign(**new, **further)


def check_new_columns(
    frame: "pd.DataFrame",
    cluster_column: str = "cluster",
    probability_column: str = "probability",
    further: Iterable[str] = (),
) -> None:
    """Refuse names for the new columns that are empty, equal, or those of columns there are."""
    for option, column in (
        ("cluster_column", cluster_column),
        ("probability_column", probability_column),
    ):
        if not column or not isinstance(column, str):
            raise TableError(f"{option}={column!r} is no name: give a text that is not empty")
        if column in frame.columns:
            raise TableError(
                f"the table already has a column {column!r}: name the new one with {option}="
            )
    if cluster_column == probability_column:
        raise TableError(
            f"cluster_column and probability_column are both {cluster_column!r}: give two names"
        )
    taken = {*frame.columns, cluster_column, probability_column}
    if there := next((column for column in further if column in taken), None):
        raise TableError(f"a column {there!r} is to be added, and there is one: rename yours")


def check_destination(
    frame: "pd.DataFrame",
    destination: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002
) -> None:
    """Refuse what :func:`write_table` could not do with a table of these columns."""
    kind, path = destination_of(destination, format)
    if path is not None and path.is_dir():
        raise OutputError(f"{path} is a directory: give the name of a file in it")
    if path is not None and not path.absolute().parent.is_dir():
        raise OutputError(f"{path} cannot be written: there is no folder {path.parent}")
    WRITERS[kind](frame.iloc[:1], io.BytesIO())


def write_table(
    frame: "pd.DataFrame",
    destination: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002
) -> None:
    """Write the table without its index; an existing file is replaced only by a complete one.

    Parameters
    ----------
    frame : DataFrame
    destination : str or path
        ``"-"`` is standard output. Text is packed when the name ends in .gz, .bz2, .xz or .zst.
    format : str, optional
        By default by the suffix; ``csv`` for standard output.

    Raises
    ------
    TableError
        If the format cannot hold the table, or there is no such directory.

    Examples
    --------
    >>> import pandas as pd
    >>> write_table(pd.DataFrame({"height": [1.8], "cluster": [0]}), "-", format="jsonl")
    {"height": 1.8, "cluster": 0}
    """
    frame = as_frame(frame)
    kind, path = destination_of(destination, format)
    write = WRITERS[kind]
    if path is None:
        buffer = io.BytesIO()
        write(frame, buffer)
        _print_bytes(buffer.getvalue())
        return
    with replacing(path) as handle:
        if path.suffix.lower() in COMPRESSIONS:
            with pack(handle, path) as packer:
                write(frame, packer)
        else:
            write(frame, handle)


def destination_of(
    destination: str | os.PathLike[str], chosen: str | None = None
) -> tuple[str, Path | None]:
    """Format and path, which is None for standard output."""
    to_stdout = os.fspath(destination) == "-"
    path = Path(destination).expanduser()
    name = chosen or ("csv" if to_stdout else path.name)
    kind = format_of(name, _WRITABLE, "give the file one of these endings")
    if to_stdout:
        return kind, None
    if path.suffix.lower() in COMPRESSIONS and kind not in ("csv", "tsv", "jsonl"):
        raise TableError(f"{path}: {kind} is not packed again; leave out {path.suffix}")
    return kind, path


def _in_memory(source: Any) -> bool:
    package = type(source).__module__.partition(".")[0]
    return isinstance(source, np.ndarray) or package in ("pandas", "polars")


def _from_polars(table: Any) -> Any:
    if hasattr(table, "collect"):  # a lazy frame
        table = table.collect()
    if not hasattr(table, "columns"):
        return table
    try:
        return table.to_pandas()
    except ImportError as error:
        raise MissingExtraError("pyarrow", "data", "reading a polars frame") from error


def _print_bytes(content: bytes) -> None:
    sys.stdout.flush()
    stream = getattr(sys.stdout, "buffer", None)
    if stream is None:  # replaced by a text-only stream, as in a notebook
        sys.stdout.write(content.decode())
    else:
        stream.write(content)
        stream.flush()
