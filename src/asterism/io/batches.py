"""Tables too large to hold, a batch of rows at a time.

    open_batches(path)          -> BatchedTable      Parquet, CSV and TSV, NPY
    table.batches()             -> frames in file order; their index counts on through the file
    draw_rows(frames, n, seed)  -> a uniform sample of n rows, in file order

Every batch of a column has the type the whole column has. For Parquet and NPY that is the file's.
For text it is what the first reading, ``survey``, met anywhere in the file: whole numbers, numbers
with a fraction or missing cells, true and false, or else text.

The sample is drawn in one reading, of a table whose length nobody knows: every row gets a random
key, and those with the n smallest keys stay (Vitter, "Random sampling with a reservoir", 1985).
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from asterism.exceptions import TableError
from asterism.io.delimited import Layout, detect_layout, parsing, refuse_ragged
from asterism.io.formats import arrow
from asterism.io.sources import COMPRESSIONS, Source, format_of
from asterism.io.tables import as_frame

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BatchedTable", "draw_rows", "open_batches"]

_BATCH_CELLS = 4_000_000
_BATCH_ROWS = (64, 1 << 16)
_BYTES_PER_CELL = 8.0  # of text, separator included
_PACKED = 4.0  # how much text shrinks, roughly


class BatchedTable(Protocol):
    """A table in a file, read a batch of rows at a time."""

    name: str
    n_columns: int
    cells: float
    """Rows times columns; of text a guess from the size of the file."""

    def survey(self) -> Iterator["pd.DataFrame"]:
        """Batches of a first reading, whose types may differ from batch to batch."""

    def batches(self) -> Iterator["pd.DataFrame"]:
        """Batches of the same types throughout."""

    def schema(self) -> Any:
        """Arrow schema of the batches, once surveyed."""


def open_batches(
    source: Any,
    *,
    format: str | None = None,  # noqa: A002
    text: Sequence[str] = (),
    sep: str | None = None,
    **options: Any,
) -> BatchedTable | None:
    """Open a file to be read in batches; None where it can only be read whole.

    Arguments are those of :func:`asterism.io.read_table`, but for ``key``.
    """
    if isinstance(source, str) and source == "-":
        return None
    found = Source.of(source)
    if found.path is None:
        return None
    kind = format_of(format or found.path.name)
    if kind in ("csv", "tsv"):
        sep = sep or ("\t" if kind == "tsv" else None)
        return _TextTable(found, detect_layout(found, sep=sep, **options), text)
    if kind == "parquet":
        return _ParquetTable(found)
    return _ArrayTable.of(found.path) if kind == "npy" else None


def draw_rows(frames: Iterable["pd.DataFrame"], size: int, seed: int) -> "pd.DataFrame":
    """Uniform sample of ``size`` rows in file order, or all rows if there are no more.

    Examples
    --------
    >>> import pandas as pd
    >>> frames = (pd.DataFrame({"x": range(i, i + 50)}, range(i, i + 50)) for i in (0, 50, 100))
    >>> sample = draw_rows(frames, 4, seed=0)
    >>> len(sample), sample.index.is_monotonic_increasing
    (4, True)
    """
    import pandas as pd

    chance = np.random.default_rng(seed)
    kept: list[pd.DataFrame] = []
    keys, bar = np.empty(0), 1.0

    def prune() -> None:
        nonlocal kept, keys, bar
        bar = float(np.partition(keys, size)[size])  # rows at or above it have size others below
        stay = keys < bar
        kept, keys = [pd.concat(kept)[stay]], keys[stay]

    for frame in frames:
        own = chance.random(len(frame))
        chosen = own < bar
        if chosen.any():
            kept.append(frame[chosen])
            keys = np.append(keys, own[chosen])
        if len(keys) > 2 * size:
            prune()
    if len(keys) > size:
        prune()
    return pd.concat(kept) if kept else pd.DataFrame()


def _batch_rows(n_columns: int) -> int:
    return int(np.clip(_BATCH_CELLS // max(n_columns, 1), *_BATCH_ROWS))


class _TextTable:
    def __init__(self, source: Source, layout: Layout, text: Sequence[str]) -> None:
        self.name = source.name
        self.n_columns = len(layout.names)
        size = source.path.stat().st_size if source.path else 0
        packed = source.name.lower().endswith(COMPRESSIONS)
        self.cells = size / _BYTES_PER_CELL * (_PACKED if packed else 1)
        self._source, self._layout = source, layout
        self._text = dict.fromkeys(text, "str")
        self._types: dict[str, str] = {}

    def survey(self) -> Iterator["pd.DataFrame"]:
        met: dict[str, set[str]] = {name: set() for name in self._layout.names}
        suspect = False
        for frame in self._frames(self._text):
            for name, kind in frame.dtypes.items():
                met[str(name)].add(kind.kind)
            suspect |= bool(frame.iloc[:, -1].isna().any())
            yield frame
        if suspect and self.n_columns > 1:
            refuse_ragged(self._source, self._layout)
        self._types = {name: _common_type(kinds) for name, kinds in met.items()} | self._text

    def batches(self) -> Iterator["pd.DataFrame"]:
        if not self._types:
            for _ in self.survey():
                pass
        yield from self._frames(self._types)

    def schema(self) -> Any:
        pa = arrow("writing parquet")
        kinds = {"int64": pa.int64(), "float64": pa.float64(), "bool": pa.bool_()}
        types = [kinds.get(self._types[name], pa.string()) for name in self._layout.names]
        return pa.schema(list(zip(self._layout.names, types, strict=True)))

    def _frames(self, types: dict[str, str]) -> Iterator["pd.DataFrame"]:
        rows = _batch_rows(self.n_columns)
        with parsing(self._source, self._layout, types, rows) as reader:
            yield from reader


def _common_type(kinds: set[str]) -> str:
    """Type that pandas would give to a whole column whose parts have these kinds."""
    if kinds <= {"i"}:
        return "int64"
    if kinds <= {"i", "f"}:
        return "float64"
    return "bool" if kinds <= {"b"} else "str"


class _ParquetTable:
    def __init__(self, source: Source) -> None:
        self.name = source.name
        self._path = source.path
        with self._open() as file:
            self._schema = file.schema_arrow.remove_metadata()
            rows = file.metadata.num_rows
        # An index of pandas without a name is no column of the table.
        self._columns = [n for n in self._schema.names if not n.startswith("__index_level_")]
        self.n_columns = len(self._columns)
        self.cells = float(rows * self.n_columns)

    def _open(self) -> Any:
        pa = arrow("reading parquet")
        import pyarrow.parquet as pq

        try:
            return pq.ParquetFile(self._path)
        except (pa.ArrowException, OSError) as error:
            raise TableError(f"{self.name} cannot be read as parquet: {error}") from error

    def batches(self) -> Iterator["pd.DataFrame"]:
        import pandas as pd

        pa = arrow("reading parquet")
        start = 0
        rows = _batch_rows(self.n_columns)
        with self._open() as file:
            try:
                for batch in file.iter_batches(batch_size=rows, columns=self._columns):
                    frame = as_frame(_to_pandas(batch.replace_schema_metadata()), self.name)
                    frame.index = pd.RangeIndex(start, start + len(frame))
                    start += len(frame)
                    yield frame
            except (pa.ArrowException, OSError) as error:
                raise TableError(f"{self.name} cannot be read as parquet: {error}") from error

    survey = batches

    def schema(self) -> Any:
        return arrow("writing parquet").schema([self._schema.field(n) for n in self._columns])


def _to_pandas(batch: Any) -> "pd.DataFrame":
    """Data frame in which whole numbers stay whole beside missing cells."""
    import pandas as pd
    import pyarrow as pa

    gaps = {c.type for c in batch.columns if c.null_count and pa.types.is_integer(c.type)}
    # int64 -> Int64, uint8 -> UInt8
    names = {kind: str(kind).replace("i", "I").replace("u", "U") for kind in gaps}
    nullable = {kind: pd.api.types.pandas_dtype(name) for kind, name in names.items()}
    return batch.to_pandas(types_mapper=nullable.get)


class _ArrayTable:
    def __init__(self, name: str, array: np.ndarray) -> None:
        self.name = name
        self.n_columns = array.shape[1]
        self.cells = float(array.size)
        self._array = array

    @classmethod
    def of(cls, path: Path) -> "_ArrayTable | None":
        """Table of numbers mapped from the file; None for anything else."""
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, OSError):
            return None  # reading it whole says what is wrong
        return cls(str(path), array) if array.ndim == 2 and array.dtype.kind in "biuf" else None

    def batches(self) -> Iterator["pd.DataFrame"]:
        import pandas as pd

        rows = _batch_rows(self.n_columns)
        for start in range(0, len(self._array), rows):
            frame = as_frame(np.array(self._array[start : start + rows]), self.name)
            frame.index = pd.RangeIndex(start, start + len(frame))
            yield frame

    survey = batches

    def schema(self) -> Any:
        pa = arrow("writing parquet")
        kind = pa.from_numpy_dtype(self._array.dtype)
        return pa.schema([(f"x{j}", kind) for j in range(self.n_columns)])
