"""One affine map of all columns, fitted once: scaled = (x − offset) · factor.

none      x
unit_ms   x / √(mean of x² over all entries): one number, keeps sparsity and relative scale
minmax    (x − min) / (max − min) over all entries: one number, images to 0 … 1
standard  (x − mean) / deviation, column by column; a constant column becomes zero
"""

import numpy as np

__all__ = ["SCALINGS", "fit_common_scaling", "fit_scaling", "have_one_length", "unit_rows"]

SCALINGS = ("none", "unit_ms", "minmax", "standard")
_SAME_LENGTH = 1e-3
_OTHER_LENGTHS = 0.01  # of the rows: an empty document among them


def fit_scaling(X: np.ndarray, scaling: str) -> tuple[np.ndarray, np.ndarray]:
    """Offset (D,) and factor (D,) for the rows of ``X`` (N, D), in double precision.

    >>> offset, factor = fit_scaling(np.array([[1.0, 5.0], [3.0, 5.0]]), "standard")
    >>> offset, factor
    (array([2., 5.]), array([1., 1.]))
    """
    zeros, ones = np.zeros(X.shape[1]), np.ones(X.shape[1])
    if scaling == "none":
        return zeros, ones
    if scaling == "unit_ms":
        size = float(np.sqrt(np.mean(np.square(X, dtype=np.float64))))
        return zeros, ones / (size if size > 0 else 1.0)
    if scaling == "minmax":
        low, high = float(X.min()), float(X.max())
        return zeros + low, ones / (high - low if high > low else 1.0)
    if scaling == "standard":
        mean = X.mean(axis=0, dtype=np.float64)
        deviation = X.std(axis=0, dtype=np.float64)
        # Rounding leaves a constant column with a deviation of a few units in the last place.
        constant = deviation <= 1e-12 * np.maximum(np.abs(mean), 1e-300)
        return mean, np.where(constant, 1.0, 1.0 / np.where(constant, 1.0, deviation))
    raise ValueError(f"scaling={scaling!r} is not one of {SCALINGS}")


def fit_common_scaling(X: np.ndarray, scaling: str) -> tuple[np.ndarray, np.ndarray]:
    """As :func:`fit_scaling`, for methods to which place and overall size mean nothing.

    "none" then takes off the mean and divides all columns by one number, their root mean square
    deviation, so that single precision is enough whatever the units.
    """
    if scaling != "none":
        return fit_scaling(X, scaling)
    mean = X.mean(axis=0, dtype=np.float64)
    size = float(np.sqrt(np.mean(X.std(axis=0, dtype=np.float64) ** 2)))
    # Rounding of the mean leaves equal rows with a deviation of a few units in the last place.
    varied = size > 8 * np.finfo(np.float64).eps * float(np.abs(mean).max())
    return mean, np.full(X.shape[1], 1.0 / size if varied else 1.0)


def unit_rows(X: np.ndarray) -> np.ndarray:
    """Rows brought to unit length; a row of zeros stays.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    length = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(length > 0, length, 1.0)


def have_one_length(X: np.ndarray) -> bool:
    """Whether rows are equally long but for one in a hundred, as embeddings often are.

    >>> have_one_length(np.array([[3.0, 4.0], [5.0, 0.0]]))
    True
    >>> have_one_length(np.array([[3.0, 4.0], [1.0, 0.0]]))
    False
    """
    largest = float(np.abs(X).max())  # divided by which no square can overflow
    if not 0 < largest < np.inf:
        return False
    lengths = np.linalg.norm(X / largest, axis=1)
    middle = float(np.median(lengths))
    others = np.abs(lengths - middle) > _SAME_LENGTH * middle
    return float(others.mean()) <= _OTHER_LENGTHS
