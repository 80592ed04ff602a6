"""The arrays every picture takes, checked once.

X (N, D) finite     labels (N,) integers, −1 noise     probability (N,) or (N, K) in [0, 1]
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from asterism.exceptions import DataError

__all__ = ["check_labels", "check_names", "check_probability", "check_rows", "check_table"]


def check_labels(labels: Any, n_rows: int | None = None, name: str = "labels") -> np.ndarray:
    """Labels as an int64 vector (N,), or a ``DataError`` that says what is wrong with them."""
    array = np.asarray(labels)
    if array.ndim != 1 or array.dtype.kind not in "iub":
        raise DataError(
            f"{name} must be a vector of integers (−1 for noise); "
            f"got shape {array.shape} and dtype {array.dtype}."
        )
    if n_rows is not None and len(array) != n_rows:
        raise DataError(f"{name} has {len(array)} entries for {n_rows} rows; give one per row.")
    if len(array) == 0:
        raise DataError(f"{name} is empty: there is nothing to show. Give at least one row.")
    return array.astype(np.int64)


def check_rows(X: Any, name: str = "X") -> np.ndarray:
    """Features as a finite float64 matrix (N, D), or a ``DataError``."""
    array = np.asarray(X, dtype=np.float64)
    if array.ndim != 2 or 0 in array.shape:
        raise DataError(
            f"{name} must have shape (rows, features) with at least one of each; "
            f"got shape {array.shape}."
        )
    if not np.isfinite(array).all():
        raise DataError(f"{name} contains NaN or infinity; impute or drop those rows first.")
    return array


def check_probability(
    probability: Any, n_rows: int, name: str = "probability"
) -> np.ndarray | None:
    """Confidence (N,) in [0, 1]; from responsibilities (N, K) the greatest of each row."""
    if probability is None:
        return None
    array = np.asarray(probability, dtype=np.float64)
    if array.ndim == 2 and array.shape[1] > 0:
        array = array.max(axis=1)
    if array.shape != (n_rows,):
        raise DataError(
            f"{name} must have shape ({n_rows},) or ({n_rows}, clusters); "
            f"got {np.shape(probability)}."
        )
    # Rounding may overshoot one by a little; anything else is a mistake worth reporting.
    if not ((array >= -1e-6) & (array <= 1 + 1e-6)).all():
        raise DataError(
            f"{name} must lie in [0, 1]; got values from {array.min()} to {array.max()}."
        )
    return array.clip(0.0, 1.0)


def check_names(feature_names: Sequence[Any] | None, n_features: int, stem: str) -> list[str]:
    """Names as strings; ``stem 1``, ``stem 2``… when none are given."""
    if feature_names is None:
        return [f"{stem} {j + 1}" for j in range(n_features)]
    if len(feature_names) != n_features:
        raise DataError(
            f"feature_names has {len(feature_names)} names for {n_features} features; "
            "give one per feature."
        )
    return [str(name) for name in feature_names]


def check_table(table: Any, n_rows: int) -> pd.DataFrame:
    """Rows as the user gave them: a data frame with one row per label, or a ``DataError``."""
    if not isinstance(table, pd.DataFrame):
        raise DataError(f"original must be a pandas DataFrame; got {type(table).__name__}.")
    if len(table) != n_rows:
        raise DataError(f"original has {len(table)} rows for {n_rows} labels; give one per label.")
    return table
