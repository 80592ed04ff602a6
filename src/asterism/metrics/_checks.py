"""What every metric asks of its inputs: equal lengths, at least one point, nothing missing.

Labels may be integers, strings or any sortable values; they are compared only for equality.
"""

from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from asterism.exceptions import DataError

__all__ = ["NOISE", "Floats", "Ints", "as_labels", "as_matrix", "encode", "is_noise", "same_length"]

NOISE = -1  # the predicted label of a point that belongs to no cluster

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]


def as_labels(labels: ArrayLike, name: str) -> NDArray[Any]:
    """One label a point, as an (N,) array without missing values."""
    array = np.asarray(labels)
    if array.ndim != 1:
        raise DataError(f"{name} must have one label per point, shape (N,); got {array.shape}.")
    if array.size == 0:
        raise DataError(f"{name} is empty: give at least one label.")
    missing = np.flatnonzero(pd.isna(array))
    if missing.size:
        raise DataError(
            f"{name} has {missing.size} missing labels, the first at position {missing[0]}: "
            f"drop those points, or mark noise in a prediction by {NOISE}."
        )
    return array


def as_matrix(values: ArrayLike, name: str) -> Floats:
    """Return a finite, non-empty (N, D) array of float64."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must be a rectangular array of numbers: {error}.") from error
    if array.ndim != 2 or array.size == 0:
        raise DataError(f"{name} must be a non-empty 2-D array; got shape {array.shape}.")
    if not np.isfinite(array).all():
        raise DataError(f"{name} contains NaN or infinity: impute or drop those rows first.")
    return array


def same_length(**arrays: NDArray[Any]) -> None:
    """Raise unless all the arrays, given by name, have the same number of rows."""
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"These must have the same length, one row per point: got {lengths}.")


def encode(labels: NDArray[Any]) -> tuple[NDArray[Any], Ints]:
    """Sorted distinct labels, and for every point the position of its label among them."""
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise DataError(f"Labels of mixed types cannot be compared: {error}.") from error
    return classes, codes.astype(np.int64)


def is_noise(y_pred: NDArray[Any]) -> NDArray[np.bool_]:
    """Mask of the points predicted as noise; labels that are not numbers are never noise."""
    if y_pred.dtype.kind not in "iuf":
        return np.zeros(len(y_pred), dtype=bool)
    return y_pred == NOISE
