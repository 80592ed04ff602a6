"""Readers of the file formats benchmark data come in; none of them can run code from a file.

    npz        NumPy archives, pickled objects refused
    idx        images and labels of the MNIST family: magic 00 00 type ndim, then big-endian sizes
    svmlight   ``label index:value ...`` lines, plain or compressed
    csr        a sparse matrix stored as its arrays data, indices, indptr and shape

A damaged, truncated or foreign file raises :class:`~asterism.exceptions.DataError`.
"""

import gzip
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from asterism.exceptions import DataError

__all__ = ["csr_from_arrays", "npz_keys", "read_idx", "read_npz", "read_svmlight"]

_DAMAGE = (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, zlib.error)


def npz_keys(path: Path) -> tuple[str, ...]:
    """Names of the arrays in an ``.npz`` file, without reading them."""
    try:
        with zipfile.ZipFile(path) as archive:
            return tuple(name.removesuffix(".npy") for name in archive.namelist())
    except _DAMAGE as error:
        raise _damaged(path, "an .npz archive", error) from error


def read_npz(path: Path, *keys: str) -> dict[str, NDArray[Any]]:
    """Read the arrays named; a name ending in ``?`` is left out when the file lacks it."""
    present = npz_keys(path)
    wanted = [key.removesuffix("?") for key in keys if not key.endswith("?") or key[:-1] in present]
    missing = [key for key in wanted if key not in present]
    if missing:
        raise DataError(f"{path} lacks the arrays {missing}; it has {', '.join(present[:20])}.")
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {key: archive[key] for key in wanted}
    except _DAMAGE as error:
        raise _damaged(path, "an .npz archive", error) from error


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Read an array of bytes in idx format, compressed by gzip or not."""
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
    except _DAMAGE as error:
        raise _damaged(path, "an idx file", error) from error
    if len(content) < 4 or content[:3] != b"\x00\x00\x08":
        raise DataError(f"{path} is not an idx file of unsigned bytes: {content[:4]!r}.")
    start = 4 + 4 * content[3]
    if len(content) < start:
        raise DataError(f"{path} is cut short within its header of {start} bytes.")
    shape = tuple(np.frombuffer(content[4:start], dtype=">i4").tolist())
    body = np.frombuffer(content[start:], dtype=np.uint8)
    if body.size != np.prod(shape):
        raise DataError(f"{path} is cut short: it announces {shape} and holds {body.size} bytes.")
    return body.reshape(shape)


def read_svmlight(path: Path, n_features: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Read points and integer labels, ``.bz2`` and ``.gz`` included, as a dense table."""
    try:
        X, y = load_svmlight_file(str(path), n_features=n_features, dtype=np.float32)
    except _DAMAGE as error:
        raise _damaged(path, f"a svmlight file of {n_features} features", error) from error
    return X.toarray(), y.astype(np.int64)


def csr_from_arrays(arrays: Mapping[str, NDArray[Any]]) -> sparse.csr_matrix:
    """Assemble ``data``, ``indices``, ``indptr`` and ``shape`` into a float32 CSR matrix."""
    try:
        matrix = sparse.csr_matrix(
            (
                arrays["data"].astype(np.float32),
                arrays["indices"].astype(np.int32),
                arrays["indptr"].astype(np.int32),
            ),
            shape=tuple(arrays["shape"].tolist()),
        )
        matrix.check_format(full_check=True)
    except (ValueError, TypeError) as error:
        raise DataError(f"The sparse matrix is inconsistent: {error}.") from error
    return matrix


def _damaged(path: Path, kind: str, error: BaseException) -> DataError:
    return DataError(f"{path} cannot be read as {kind}, it may be cut short: {error}")
