"""A table written a batch of rows at a time, and whole or not at all.

    with appending(destination, schema) as append:
        append(frame)            any number of times, frames of the same columns

The rows go to a file beside the destination, which takes its place when the block ends well; see
:func:`asterism.io.files.replacing`. CSV, TSV and JSON lines grow by lines, Parquet by row groups.
"""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

from asterism.exceptions import TableError
from asterism.io.files import replacing, sweep
from asterism.io.formats import WRITERS, arrow
from asterism.io.sources import COMPRESSIONS, pack
from asterism.io.tables import destination_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["appending", "can_append"]

Append = Callable[["pd.DataFrame"], None]
_LINES = ("csv", "tsv", "jsonl")


def can_append(destination: str | os.PathLike[str]) -> bool:
    """Whether the format of the destination can be written in batches.

    >>> can_append("table.parquet"), can_append("table.csv.gz"), can_append("table.npy")
    (True, True, False)
    """
    return destination_of(destination)[0] in (*_LINES, "parquet")


@contextlib.contextmanager
def appending(destination: str | os.PathLike[str], schema: Callable[[], Any]) -> Iterator[Append]:
    """Yield a function that adds the rows of a frame to the table.

    ``schema`` makes the Arrow schema of the frames; it is asked for by Parquet only.
    """
    kind, path = destination_of(destination)
    if not can_append(destination):
        raise TableError(
            f"{destination}: {kind} is written whole; give a name that ends in .parquet or .csv"
        )
    with contextlib.ExitStack() as stack:
        if path is None:
            sys.stdout.flush()
            handle: BinaryIO = sys.stdout.buffer
        else:
            sweep(path.resolve())
            handle = stack.enter_context(replacing(path))
            if path.suffix.lower() in COMPRESSIONS:
                handle = stack.enter_context(pack(handle, path))
        if kind == "parquet":
            yield stack.enter_context(_row_groups(handle, schema()))
        else:
            yield _lines(handle, kind)


def _lines(handle: BinaryIO, kind: str) -> Append:
    first = True

    def append(frame: "pd.DataFrame") -> None:
        nonlocal first
        header = {} if kind == "jsonl" else {"header": first}
        WRITERS[kind](frame, handle, **header)
        first = False

    return append


@contextlib.contextmanager
def _row_groups(handle: BinaryIO, schema: Any) -> Iterator[Append]:
    pa = arrow("writing parquet")
    import pyarrow.parquet as pq

    # Dictionaries pay for texts and codes; numbers with fractions hardly ever repeat.
    repeated = [field.name for field in schema if not pa.types.is_floating(field.type)]
    with pq.ParquetWriter(handle, schema, use_dictionary=repeated) as writer:

        def append(frame: "pd.DataFrame") -> None:
            try:
                writer.write_table(pa.Table.from_pandas(frame, schema, preserve_index=False))
            except pa.ArrowException as error:
                raise TableError(f"parquet cannot hold this table: {error}") from error

        yield append
