"""Suites: many data sets in one archive, each read when it is asked for.

The items are whatever the file holds, so a larger archive of the same layout works as well.
Values are those of the source, cast to float32 and not scaled.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from asterism.datasets.catalogue import DatasetInfo, dataset_info
from asterism.datasets.dataset import Dataset, Suite
from asterism.datasets.files import Source, StrPath, locate
from asterism.datasets.formats import npz_keys, read_npz
from asterism.exceptions import DataError

__all__ = ["load_clustering_suite", "load_highdim_suite", "load_tabular_suite"]

_KINDS = np.array(["continuous", "binary", "categorical"])


def load_clustering_suite(
    battery: str | None = None,
    *,
    path: StrPath | None = None,
    fetch: bool = True,
    verify: bool = False,
) -> Suite:
    """Benchmark batteries of Gagolewski, with all their reference labellings.

    ``labels`` of an item holds every reference, with −1 for the points a reference calls noise;
    score with :func:`asterism.metrics.best_over_references` and ``ignore=-1``.

    Parameters
    ----------
    battery : str, optional
        Only the data sets of this battery, such as ``"wut"``; all by default.
    path, fetch, verify
        As :func:`load_dataset`; needs a file.

    Returns
    -------
    Suite
        Iterates over the data sets; ``suite["wut/x3"]`` is one of them.

    References
    ----------
    Gagolewski, "A framework for benchmarking clustering algorithms", SoftwareX 20, 2022.

    Examples
    --------
    >>> for data in load_clustering_suite("graves"):  # doctest: +SKIP
    ...     print(data, len(data.labels))
    """
    info = dataset_info("clustering_suite")
    suite_path = locate(info, Source(path, fetch, verify))[0]
    names = _items(suite_path)
    batteries = sorted({name.split("/")[0] for name in names})
    if battery is not None and battery not in batteries:
        raise DataError(f"battery must be one of {', '.join(batteries)}; got {battery!r}.")
    kept = [name for name in names if battery is None or name.startswith(f"{battery}/")]
    return Suite(
        info.name if battery is None else f"{info.name}/{battery}",
        {name: partial(_read_references, info, suite_path, name) for name in kept},
    )


def load_tabular_suite(
    *, path: StrPath | None = None, fetch: bool = True, verify: bool = False
) -> Suite:
    """Small labelled tables, with the kind of every column in ``feature_kinds``.

    Categories are integer codes. The kinds are those of the source, which calls some columns of
    integers categorical: look before one-hot encoding.

    Parameters
    ----------
    path, fetch, verify
        As :func:`load_dataset`; needs a file.

    Returns
    -------
    Suite

    Examples
    --------
    >>> load_tabular_suite()["seeds"]  # doctest: +SKIP
    Dataset('seeds', N=210, D=7, K=3)
    """
    return _plain_suite("tabular_suite", Source(path, fetch, verify), _read_table)


def load_highdim_suite(
    *, path: StrPath | None = None, fetch: bool = True, verify: bool = False
) -> Suite:
    """Few points in many dimensions: faces, spoken letters, gene expression.

    Parameters
    ----------
    path, fetch, verify
        As :func:`load_dataset`; needs a file.

    Returns
    -------
    Suite

    Examples
    --------
    >>> load_highdim_suite().names[:2]  # doctest: +SKIP
    ('isolet', 'lymphoma')
    """
    return _plain_suite("highdim_suite", Source(path, fetch, verify), _read_plain)


def _plain_suite(
    name: str, source: Source, read: Callable[[DatasetInfo, Path, str], Dataset]
) -> Suite:
    info = dataset_info(name)
    path = locate(info, source)[0]
    return Suite(name, {item: partial(read, info, path, item) for item in _items(path)})


def _items(path: Path) -> list[str]:
    """Names of the data sets in the archive: what stands before ``/X``."""
    items = sorted(key.removesuffix("/X") for key in npz_keys(path) if key.endswith("/X"))
    if not items:
        raise DataError(f"{path} holds no data set: no array is named <name>/X.")
    return items


def _read_references(info: DatasetInfo, path: Path, name: str) -> Dataset:
    keys = sorted(key for key in npz_keys(path) if key.startswith(f"{name}/labels"))
    if not keys:
        raise DataError(f"{path} lacks the array {name}/labels0.")
    arrays = read_npz(path, f"{name}/X", *keys)
    return Dataset.build(
        name,
        arrays[f"{name}/X"],
        *(arrays[key].astype(np.int64) - 1 for key in keys),  # 1..K and 0 for noise, in the file
        battery=name.split("/")[0],
        source=info.source,
        licence=info.licence,
    )


def _read_table(info: DatasetInfo, path: Path, name: str) -> Dataset:
    arrays = read_npz(path, f"{name}/X", f"{name}/y", f"{name}/ftype")
    kinds = arrays[f"{name}/ftype"]
    if kinds.shape != arrays[f"{name}/X"].shape[1:] or kinds.max(initial=0) >= len(_KINDS):
        raise DataError(f"{path}: {name}/ftype must say 0, 1 or 2 for every column of {name}/X.")
    return Dataset.build(
        name,
        arrays[f"{name}/X"],
        arrays[f"{name}/y"],
        feature_kinds=tuple(_KINDS[kinds].tolist()),
        source=info.source,
        licence=info.licence,
    )


def _read_plain(info: DatasetInfo, path: Path, name: str) -> Dataset:
    arrays = read_npz(path, f"{name}/X", f"{name}/y")
    return Dataset.build(
        name,
        arrays[f"{name}/X"],
        arrays[f"{name}/y"],
        source=info.source,
        licence=info.licence,
    )
