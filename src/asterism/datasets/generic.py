"""One entry for every benchmark data set, by name.

``load_dataset("usps")`` is ``load_usps()``; ``load_dataset("clustering_suite/wut/x3")`` is one item
of a suite.
"""

from collections.abc import Callable
from typing import Any, Literal, overload

from asterism.datasets.catalogue import dataset_info
from asterism.datasets.dataset import Dataset, Suite
from asterism.datasets.files import StrPath
from asterism.datasets.images import (
    load_coil20,
    load_deepdpm_embeddings,
    load_fashion_mnist,
    load_mnist,
    load_omniglot,
    load_stickfigures,
    load_usps,
)
from asterism.datasets.loading import XY, Loader
from asterism.datasets.suites import load_clustering_suite, load_highdim_suite, load_tabular_suite
from asterism.datasets.text import load_newsgroups, load_rcv1_sample, load_reuters
from asterism.exceptions import DataError

__all__ = ["LOADERS", "SUITE_LOADERS", "load_dataset"]

LOADERS: dict[str, Loader] = {
    "mnist": load_mnist,
    "fashion_mnist": load_fashion_mnist,
    "usps": load_usps,
    "coil20": load_coil20,
    "omniglot": load_omniglot,
    "stickfigures": load_stickfigures,
    "deepdpm_embeddings": load_deepdpm_embeddings,
    "reuters": load_reuters,
    "rcv1_sample": load_rcv1_sample,
    "newsgroups": load_newsgroups,
}

SUITE_LOADERS: dict[str, Callable[..., Suite]] = {
    "clustering_suite": load_clustering_suite,
    "tabular_suite": load_tabular_suite,
    "highdim_suite": load_highdim_suite,
}


@overload
def load_dataset(
    name: str,
    *,
    path: StrPath | None = None,
    fetch: bool = True,
    verify: bool = False,
    return_X_y: Literal[False] = False,
    **options: Any,
) -> Dataset: ...


@overload
def load_dataset(
    name: str,
    *,
    path: StrPath | None = None,
    fetch: bool = True,
    verify: bool = False,
    return_X_y: Literal[True],
    **options: Any,
) -> XY: ...


def load_dataset(
    name: str,
    *,
    path: StrPath | None = None,
    fetch: bool = True,
    verify: bool = False,
    return_X_y: bool = False,
    **options: Any,
) -> Dataset | XY:
    """Load one benchmark data set by name.

    Parameters
    ----------
    name : str
        One of :func:`dataset_names`, or an item of a suite: ``"tabular_suite/seeds"``.
    path : str or path, optional
        Your own copy: the ``.npz`` file, or a folder with that file or with the public files.
        By default the folder in the environment variable ``ASTERISM_DATA`` is searched, then the
        cache.
    fetch : bool, default=True
        Whether to download a set found nowhere, where a public address is known; the download
        is checked and kept in the cache.
    verify : bool, default=False
        Whether to compare the checksum of a file found on disk with the catalogue. Leave it off
        for a file you made yourself: the same data compressed differently has another checksum.
    return_X_y : bool, default=False
        Return the pair ``(X, y)`` instead of a :class:`Dataset`.
    **options
        Options of the set's own loader, such as ``n_classes`` of :func:`load_reuters`.

    Returns
    -------
    Dataset or (X, y)

    Raises
    ------
    DataNotFoundError
        When the set is nowhere to be found; the message says how to get it.

    Examples
    --------
    >>> load_dataset("mnist")  # doctest: +SKIP
    Dataset('mnist', N=70000, D=784, K=10)
    >>> load_dataset("coil20", path="nowhere")
    Traceback (most recent call last):
    ...
    asterism.exceptions.DataNotFoundError: COIL-20: ... coil20.npz is not at path='nowhere'...
    """
    where: dict[str, Any] = {"path": path, "fetch": fetch, "verify": verify}
    collection, _, item = name.partition("/")
    if collection in SUITE_LOADERS:
        if not item:
            raise DataError(
                f"{name!r} is a suite: call load_{name}(), or name one of its data sets, "
                f"as in load_dataset('{name}/...')."
            )
        dataset = SUITE_LOADERS[collection](**where, **options)[item]
    else:
        dataset = LOADERS[dataset_info(name).name](**where, **options)
    return (dataset.X, dataset.y) if return_X_y else dataset
