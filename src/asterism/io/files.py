"""Files that are whole or not there, and the folder for what is fetched.

``replacing(path)`` writes beside the destination and moves the result over it in one operation of
the file system: whoever looks finds the old file or the new one, and a kill leaves the old.
"""

import contextlib
import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from asterism.exceptions import OutputError

__all__ = ["cache_directory", "replacing"]


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], *, durable: bool = False) -> Iterator[BinaryIO]:
    """Yield a handle whose bytes become the file on success, and vanish on failure.

    ``durable`` waits until the disk has them, for files that must outlive a power cut.
    """
    path = Path(path).expanduser()
    if path.is_dir():
        raise OutputError(f"{path} is a directory: give the name of a file in it")
    if path.exists() and not path.is_file():  # a pipe or a device cannot be replaced
        with path.open("wb") as handle:
            yield handle
        return
    target = path.resolve()  # write through a link rather than over it
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        handle = temporary.open("xb")
    except OSError as error:
        raise OutputError(
            f"{path} cannot be written: {error.strerror} ({target.parent})"
        ) from error
    try:
        with handle:
            yield handle
            if durable:
                _to_disk(handle)
        temporary.replace(target)
        if durable and hasattr(os, "O_DIRECTORY"):
            folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _to_disk(handle: BinaryIO) -> None:
    handle.flush()
    os.fsync(handle.fileno())


def sweep(path: Path, older_than: float = 3600.0) -> None:
    """Remove what killed writers of ``path`` left behind, but nothing another may be writing."""
    for leftover in path.parent.glob(f".{path.name}.*.tmp"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - leftover.stat().st_mtime > older_than:
                leftover.unlink()


def cache_directory(kind: str) -> Path:
    """Folder for fetched files of a kind: in ``ASTERISM_CACHE``, or in the user's cache folder."""
    if chosen := os.environ.get("ASTERISM_CACHE"):
        return Path(chosen).expanduser() / kind
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "asterism" / kind
