"""Finding the file of a benchmark data set.

Looked for in this order, the first hit winning:

1. ``path``, the user's own: the ``.npz`` file, or a folder with it or with the public files;
2. the folder named by the environment variable ``ASTERISM_DATA``;
3. the cache, ``$ASTERISM_CACHE/datasets`` (``~/.cache/asterism/datasets`` by default);
4. the public address, when ``fetch`` is true and one is known; the download is checked against
   its MD5 and kept in the cache.

A folder holds ``mnist.npz`` itself, and public files in a folder of the set's own
(``mnist/train-images-idx3-ubyte.gz``), since sets share file names.

Files found on disk are trusted unless ``verify`` is true: then their SHA-256, or MD5 for public
files, must be that of the catalogue.
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from asterism.datasets.catalogue import DatasetInfo
from asterism.exceptions import DataError, DataNotFoundError, MissingExtraError
from asterism.io.files import cache_directory

__all__ = ["Source", "StrPath", "locate"]

StrPath: TypeAlias = str | os.PathLike[str]


@dataclass(frozen=True)
class Source:
    """Where the user allows a data set to come from."""

    path: StrPath | None = None
    fetch: bool = True
    verify: bool = False


def locate(info: DatasetInfo, source: Source) -> tuple[Path, ...]:
    """Files of a data set: its ``.npz`` alone, or its public files in catalogue order."""
    files = _on_disk(info, source)
    if files and source.verify:
        _verify(info, files)
    if not files and source.path is None and source.fetch and info.public:
        files = _download(info)
    if not files:
        raise DataNotFoundError(_instructions(info, source))
    return files


def _on_disk(info: DatasetInfo, source: Source) -> tuple[Path, ...]:
    if source.path is not None:
        path = Path(source.path).expanduser()
        return (path,) if path.is_file() else _in_folder(info, path, path)
    folders = [cache_directory("datasets")]
    if home := os.environ.get("ASTERISM_DATA"):
        folders.insert(0, Path(home).expanduser())
    found = (_in_folder(info, folder, folder / info.name) for folder in folders)
    return next(filter(None, found), ())


def _in_folder(info: DatasetInfo, folder: Path, public_folder: Path) -> tuple[Path, ...]:
    if (folder / info.file).is_file():
        return (folder / info.file,)
    public = tuple(public_folder / file.name for file in info.public)
    return public if all(file.is_file() for file in public) else ()


def _verify(info: DatasetInfo, files: tuple[Path, ...]) -> None:
    if len(files) == 1:
        expected, algorithm = [info.sha256], "sha256"
    else:
        expected, algorithm = [file.md5 for file in info.public], "md5"
    for path, digest in zip(files, expected, strict=True):
        actual = hashlib.new(algorithm, path.read_bytes(), usedforsecurity=False).hexdigest()
        if actual != digest:
            raise DataError(
                f"{path} is not the catalogued file of {info.name!r}: its {algorithm} is {actual}, "
                f"not {digest}. Get it anew, or load it with verify=False if it is your own."
            )


def _download(info: DatasetInfo) -> tuple[Path, ...]:
    try:
        import pooch
    except ImportError as error:
        raise MissingExtraError("pooch", "data", f"Downloading {info.name}") from error
    folder = cache_directory("datasets") / info.name
    try:
        return tuple(
            Path(pooch.retrieve(file.url, f"md5:{file.md5}", fname=file.name, path=folder))
            for file in info.public
        )
    except (OSError, ValueError) as error:  # no network; a download with another checksum
        raise DataNotFoundError(
            f"Downloading {info.name!r} failed: {error}\n{_instructions(info, Source())}"
        ) from error


def _instructions(info: DatasetInfo, source: Source) -> str:
    """Say where the set was looked for and how to get it."""
    cache = cache_directory("datasets")
    if source.path is not None:
        looked = f"at path={str(source.path)!r}"
    else:
        home = os.environ.get("ASTERISM_DATA")
        place = f"the folder ASTERISM_DATA={home}" if home else "ASTERISM_DATA, which is not set,"
        looked = f"in {place} nor in the cache {cache}"
    lines = [
        f"{info.title}: {info.file} is not {looked}.",
        f"Origin: {info.source} (terms: {info.licence}).",
        f"Save it as {info.file} with the arrays {info.arrays}.",
        "Then pass path=, or set the environment variable ASTERISM_DATA to the folder it is in.",
    ]
    if info.public:
        addresses = " ".join(file.url for file in info.public)
        lines.append(
            f"Or put the public files {addresses} in {cache / info.name}; "
            "fetch=True downloads them."
        )
    return "\n".join(lines)
