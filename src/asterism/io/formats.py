"""One reader and one writer per table format, besides text tables (:mod:`.delimited`).

    read_*(source) -> DataFrame or array      TableError names the damaged line, array or file
    WRITERS[format](frame, handle)            bytes to an open binary handle, without the index;
                                              text tables can leave out the header

``replacing(path)`` makes a write atomic: a file beside the destination, moved over it at the end.
"""

import io
import json
import zipfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from asterism.exceptions import MissingExtraError, TableError
from asterism.io.sources import Source

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["WRITERS", "arrow", "read_array", "read_arrow", "read_jsonl"]

_ROWS_AT_A_TIME = 10_000


def read_jsonl(source: Source, encoding: str | None = None) -> "pd.DataFrame":
    """One row per line, each a flat JSON object; columns in order of appearance."""
    import pandas as pd

    with source.text(encoding) as handle:
        records = [
            _record(line, f"{source.name}, line {i}")
            for i, line in enumerate(handle, 1)
            if line.strip()
        ]
    return pd.DataFrame(records)


def _record(line: str, place: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise TableError(f"{place} is not JSON: {error}") from error
    if not isinstance(record, dict):
        raise TableError(f'{place} is not a JSON object of named values, such as {{"x": 1.5}}')
    for name, value in record.items():
        if isinstance(value, dict | list):
            raise TableError(f"{place}: {name!r} holds a {type(value).__name__}, not one value")
    return record


def read_array(source: Source, key: str | None = None) -> np.ndarray:
    """Array of an NPY file, or the one called ``key`` (or the only one) of an NPZ archive."""
    with source.binary() as handle:
        try:
            loaded = np.load(handle, allow_pickle=False)
            return _choose(loaded, key, source) if hasattr(loaded, "files") else loaded
        except TableError:
            raise
        except (ValueError, EOFError, zipfile.BadZipFile) as error:
            reason = str(error)
            if "allow_pickle" in reason:
                reason = (
                    "it is no NumPy file, or holds Python objects, which are never unpickled; "
                    "save an array of numbers or of fixed-width text"
                )
            raise TableError(f"{source.name} cannot be read as NPY or NPZ: {reason}") from error


def _choose(archive: Any, key: str | None, source: Source) -> np.ndarray:
    found = ", ".join(map(repr, archive.files)) or "none"
    if key is None and len(archive.files) == 1:
        key = archive.files[0]
    if key is None:
        raise TableError(f"{source.name} holds {len(archive.files)} arrays ({found}): choose key=")
    if key not in archive.files:
        raise TableError(f"{source.name} has no array {key!r}; it holds {found}")
    return archive[key]


def read_arrow(source: Source, kind: str) -> "pd.DataFrame":
    """Parquet or Feather table; a named index comes back as columns."""
    import pandas as pd

    pyarrow = arrow(f"reading {kind}")
    with source.binary() as handle:
        try:
            frame = pd.read_parquet(handle) if kind == "parquet" else pd.read_feather(handle)
        except pyarrow.ArrowException as error:
            raise TableError(f"{source.name} cannot be read as {kind}: {error}") from error
    if all(name is None for name in frame.index.names):
        return frame.reset_index(drop=True)
    return frame.reset_index()


def arrow(purpose: str) -> Any:
    """The package pyarrow, or an error that says what it is needed for."""
    try:
        import pyarrow
    except ImportError as error:
        raise MissingExtraError("pyarrow", "data", purpose) from error
    return pyarrow


def _write_csv(
    frame: "pd.DataFrame", handle: BinaryIO, sep: str = ",", header: bool = True
) -> None:
    stream = io.TextIOWrapper(handle, encoding="utf-8", newline="")
    frame.to_csv(stream, sep=sep, index=False, header=header, lineterminator="\n")
    stream.detach()  # flushed, and not closed with the wrapper


def _write_tsv(frame: "pd.DataFrame", handle: BinaryIO, header: bool = True) -> None:
    _write_csv(frame, handle, sep="\t", header=header)


def _write_jsonl(frame: "pd.DataFrame", handle: BinaryIO) -> None:
    # pandas rounds JSON numbers to 15 digits; the json module writes them exactly.
    for start in range(0, len(frame), _ROWS_AT_A_TIME):
        part = frame.iloc[start : start + _ROWS_AT_A_TIME]
        part = part.astype(object).where(part.notna(), None)
        for record in part.to_dict(orient="records"):
            handle.write(json.dumps(record, ensure_ascii=False, default=_plain).encode() + b"\n")


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)


def _write_parquet(frame: "pd.DataFrame", handle: BinaryIO) -> None:
    _write_arrow(frame, handle, "parquet")


def _write_feather(frame: "pd.DataFrame", handle: BinaryIO) -> None:
    _write_arrow(frame, handle, "feather")


def _write_arrow(frame: "pd.DataFrame", handle: BinaryIO, kind: str) -> None:
    pyarrow = arrow(f"writing {kind}")
    frame = frame.reset_index(drop=True)
    try:
        if kind == "parquet":
            frame.to_parquet(handle, index=False)
        else:
            frame.to_feather(handle)
    except pyarrow.ArrowException as error:
        raise TableError(f"{kind} cannot hold this table: {error}") from error


def _write_npy(frame: "pd.DataFrame", handle: BinaryIO) -> None:
    import pandas as pd

    numeric = [pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes]
    if not all(numeric):
        name = frame.columns[numeric.index(False)]
        raise TableError(
            f"NPY holds numbers only, and column {name!r} is not numeric: "
            "write another format, or the numeric columns alone"
        )
    values = (
        frame.to_numpy(dtype=np.float64, na_value=np.nan)
        if frame.isna().any(axis=None)
        else frame.to_numpy()
    )
    if values.dtype == object:  # a mixture of nullable types
        values = values.astype(np.float64)
    np.save(handle, values, allow_pickle=False)


WRITERS: dict[str, Callable[..., None]] = {
    "csv": _write_csv,
    "tsv": _write_tsv,
    "jsonl": _write_jsonl,
    "parquet": _write_parquet,
    "feather": _write_feather,
    "npy": _write_npy,
}
