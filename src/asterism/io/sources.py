"""Where a table comes from: a file, standard input or a stream, as bytes that can be read again.

    name.csv.gz   ->  format by the suffix before the compression (csv), text unpacked on the way
    ``-``, pipes  ->  read whole into memory, format by the first bytes (``sniff_format``)

Compression is recognised by the first bytes of the content, never by the name, so a file that
was unpacked under its old name still opens.
"""

import bz2
import contextlib
import gzip
import importlib
import io
import lzma
import os
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from asterism.exceptions import TableError

__all__ = ["COMPRESSIONS", "SUFFIXES", "Source", "format_of", "pack", "sniff_format"]

SUFFIXES = {
    ".csv": "csv",
    ".txt": "csv",
    ".data": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".npy": "npy",
    ".npz": "npz",
}
COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")

_MAGIC = {
    b"PAR1": "parquet",
    b"ARROW1": "feather",
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz",
}
_DAMAGE = (OSError, EOFError, zlib.error, lzma.LZMAError)


@dataclass(frozen=True)
class Source:
    """A table's bytes: in a file, or held in memory."""

    name: str
    path: Path | None = None
    content: bytes = b""

    @classmethod
    def of(cls, source: Any) -> "Source":
        """Describe a path, ``"-"`` or a binary stream, once it is known to hold something."""
        if isinstance(source, str | os.PathLike):
            if os.fspath(source) == "-":
                found = _from_stream(getattr(sys.stdin, "buffer", sys.stdin), "standard input")
            else:
                found = _from_path(Path(source))
        elif hasattr(source, "read"):
            found = _from_stream(source, "the stream")
        else:
            raise TableError(
                f"cannot read a table from {type(source).__name__}: give a path, '-', a binary "
                "stream, a data frame of pandas or polars, or a two-dimensional array"
            )
        if not (found.path.stat().st_size if found.path else found.content):
            raise TableError(f"{found.name} is empty")
        return found

    @contextlib.contextmanager
    def binary(self) -> Iterator[BinaryIO]:
        """Yield the unpacked bytes from their beginning; each call starts afresh."""
        raw: BinaryIO = self.path.open("rb") if self.path else io.BytesIO(self.content)
        with contextlib.ExitStack() as stack:
            stack.enter_context(raw)
            try:
                yield stack.enter_context(_unpack(raw, self.name))
            except _DAMAGE as error:
                raise TableError(
                    f"{self.name} cannot be read, it may be damaged: {error}"
                ) from error

    @contextlib.contextmanager
    def text(self, encoding: str | None = None) -> Iterator[TextIO]:
        """Yield the unpacked text, by default UTF-8 with or without a byte-order mark."""
        if encoding is None:
            self._refuse_binary()
        with self.binary() as handle:
            try:
                stream = io.TextIOWrapper(handle, encoding=encoding or "utf-8-sig", newline="")
            except LookupError as error:
                raise TableError(f"encoding={encoding!r} is not a text encoding") from error
            try:
                yield stream
            except UnicodeError as error:
                raise TableError(
                    f"{self.name} is not text in {encoding or 'UTF-8'}: give its encoding, "
                    "perhaps encoding='latin-1', or format= if it is no text at all"
                ) from error

    def _refuse_binary(self) -> None:
        with self.binary() as handle:
            start = handle.read(4096)
        if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise TableError(f"{self.name} is not text in UTF-8: try encoding='utf-16'")
        if b"\0" in start:
            raise TableError(
                f"{self.name} holds binary data, not text: give its format=, "
                "or its encoding= if it is text after all"
            )


def format_of(
    name: str,
    supported: dict[str, str] = SUFFIXES,
    advice: str = "name the file so, or say which with format=",
) -> str:
    """Format that a file name, suffix or format name stands for.

    Examples
    --------
    >>> format_of("points.csv.gz"), format_of("ndjson")
    ('csv', 'jsonl')
    """
    suffixes = Path(f"x.{name.lstrip('.')}").suffixes
    if suffixes[-1].lower() in COMPRESSIONS:
        suffixes.pop()
    suffix = suffixes[-1].lower() if suffixes else ""
    if suffix not in supported:
        raise TableError(
            f"{name!r} names no table format: supported are {', '.join(supported)} "
            f"(text also with {', '.join(COMPRESSIONS)} after it); {advice}"
        )
    return supported[suffix]


def sniff_format(source: Source) -> str:
    """Format by the first bytes; text that does not open with ``{`` is CSV."""
    with source.binary() as handle:
        start = handle.read(512)
    for magic, name in _MAGIC.items():
        if start.startswith(magic):
            return name
    return "jsonl" if start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{") else "csv"


def pack(raw: BinaryIO, path: Path) -> BinaryIO:
    """Stream that packs what is written to it into ``raw``, as the suffix of the path says."""
    suffix = path.suffix.lower()
    if suffix == ".gz":
        # Name and time are left out, so equal tables give equal files.
        return cast("BinaryIO", gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0))
    if suffix == ".bz2":
        return cast("BinaryIO", bz2.BZ2File(raw, "wb"))
    if suffix == ".xz":
        return cast("BinaryIO", lzma.LZMAFile(raw, "wb"))
    return cast("BinaryIO", _zstandard(path).ZstdCompressor().stream_writer(raw, closefd=False))


def _from_stream(stream: Any, name: str) -> Source:
    content = stream.read()
    return Source(name, content=content.encode() if isinstance(content, str) else content)


def _from_path(path: Path) -> Source:
    path = path.expanduser()
    if path.is_dir():
        raise TableError(f"{path} is a directory, not a table")
    if not path.exists():
        raise TableError(f"no such file: {path}")
    try:
        # A pipe can be read once only, and a table is looked at before it is parsed.
        if not path.is_file():
            return Source(str(path), content=path.read_bytes())
        path.open("rb").close()
    except OSError as error:
        raise TableError(f"{path} cannot be opened: {error.strerror}") from error
    return Source(str(path), path=path)


def _unpack(raw: BinaryIO, name: str) -> BinaryIO:
    start = raw.read(10)
    raw.seek(0)
    if start.startswith(b"\x1f\x8b"):
        return cast("BinaryIO", gzip.GzipFile(fileobj=raw))
    if start[:3] == b"BZh" and start[4:] == b"1AY&SY":
        return cast("BinaryIO", bz2.BZ2File(raw))
    if start.startswith(b"\xfd7zXZ\x00"):
        return cast("BinaryIO", lzma.LZMAFile(raw))
    if start.startswith(b"\x28\xb5\x2f\xfd"):
        reader = _zstandard(name).ZstdDecompressor().stream_reader(raw, read_across_frames=True)
        return cast("BinaryIO", io.BufferedReader(reader))
    return raw


def _zstandard(name: object) -> Any:
    try:
        return importlib.import_module("zstandard")
    except ImportError as error:
        raise TableError(
            f"{name} is packed with Zstandard, which needs another package: "
            "pip install zstandard, or use .gz"
        ) from error
