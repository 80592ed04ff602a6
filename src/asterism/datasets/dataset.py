"""What a loader returns: one labelled data set, or a suite of them read item by item.

Every array a user meets has one form, whatever the file it came from: ``X`` float32 with one row
per point, labels int64 in 0..K−1, and −1 for the noise points of a reference labelling.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from asterism.exceptions import DataError

__all__ = ["Dataset", "Labels", "Suite"]

Labels: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """One labelled data set.

    Attributes
    ----------
    name : str
        Name under which it was loaded; ``battery/name`` in the clustering suite.
    X : ndarray of shape (N, D), float32, or CSR matrix
        Points, scaled as its loader says.
    y : ndarray of shape (N,), int64
        Reference labels 0..K−1, with −1 for noise; the first of ``labels``.
    labels : tuple of ndarray
        All reference labellings, at least one.
    target_names : tuple of str
        Names of the classes of ``y``, where known.
    train_mask : ndarray of shape (N,), bool, or None
        Points of the customary training set, where there is one.
    image_shape : tuple of int or None
        Height and width when the rows are images.
    feature_kinds : tuple of str
        ``"continuous"``, ``"binary"`` or ``"categorical"`` for each column, where known.
    groups : ndarray of shape (N,), int64, or None
        Which hand drew each point, where known.
    battery : str or None
        Part of a suite the set belongs to.
    source, licence : str
        Where the data come from, and on what terms.
    """

    name: str
    X: Any
    y: Labels
    labels: tuple[Labels, ...]
    target_names: tuple[str, ...] = ()
    train_mask: NDArray[np.bool_] | None = None
    image_shape: tuple[int, int] | None = None
    feature_kinds: tuple[str, ...] = ()
    groups: Labels | None = None
    battery: str | None = None
    source: str = ""
    licence: str = ""

    @classmethod
    def build(cls, name: str, X: Any, *labels: NDArray[Any], **fields: Any) -> "Dataset":
        """Check the arrays of a file against each other and bring them to the common form.

        Examples
        --------
        >>> Dataset.build("pair", np.array([[0, 1], [2, 3]]), np.array([0, 1], dtype="uint8"))
        Dataset('pair', N=2, D=2, K=2)
        """
        if getattr(X, "ndim", 0) != 2 or X.dtype.kind not in "iufb":
            raise DataError(f"Data set {name!r}: X must be a table of numbers, shape (N, D).")
        for array in labels:
            if array.shape != X.shape[:1] or array.dtype.kind not in "iu":
                raise DataError(
                    f"Data set {name!r}: X has {X.shape[0]} rows, so labels must be "
                    f"{X.shape[0]} integers; got shape {array.shape} of {array.dtype}."
                )
        references = tuple(array.astype(np.int64) for array in labels)
        points = X.astype(np.float32, copy=False)
        return cls(name, points, references[0], references, **fields)

    @property
    def n_samples(self) -> int:
        """Number of points N."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns D."""
        return int(self.X.shape[1])

    @property
    def n_classes(self) -> int:
        """Number of classes K in ``y``, noise left out."""
        return len(np.unique(self.y[self.y >= 0]))

    def __repr__(self) -> str:
        return (
            f"Dataset({self.name!r}, N={self.n_samples}, D={self.n_features}, K={self.n_classes})"
        )


class Suite:
    """Named data sets in one file, each read from disk when it is asked for.

    Iterating yields the data sets, indexing by name gives one, ``names`` lists them.

    Parameters
    ----------
    name : str
        Name of the suite.
    readers : mapping of str to callable
        For each item, a function without arguments that returns its :class:`Dataset`.

    Examples
    --------
    >>> item = Dataset.build("dot", np.zeros((1, 2)), np.zeros(1, dtype=int))
    >>> suite = Suite("tiny", {"dot": lambda: item})
    >>> suite, suite["dot"], [data.name for data in suite]
    (Suite('tiny', 1 data sets), Dataset('dot', N=1, D=2, K=1), ['dot'])
    """

    def __init__(self, name: str, readers: Mapping[str, Callable[[], Dataset]]) -> None:
        self.name = name
        self._readers = dict(readers)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the items, in the order of iteration."""
        return tuple(self._readers)

    def __getitem__(self, name: str) -> Dataset:
        if name not in self._readers:
            raise DataError(
                f"Suite {self.name!r} has no data set {name!r}; it has {', '.join(self.names)}."
            )
        return self._readers[name]()

    def __contains__(self, name: object) -> bool:
        return name in self._readers

    def __iter__(self) -> Iterator[Dataset]:
        return (read() for read in self._readers.values())

    def __len__(self) -> int:
        return len(self._readers)

    def __repr__(self) -> str:
        return f"Suite({self.name!r}, {len(self)} data sets)"
