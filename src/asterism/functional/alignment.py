"""Move a user's data to the place, scale and dimension a network was trained on.

    aligned = (x − origin) P

``origin`` is the mean. With as many columns as the network has, or fewer, P only rescales (and
leaves the missing coordinates zero); with more, it projects on the leading principal axes. One
factor for all axes, so shapes are kept: the root mean square deviation of an aligned coordinate
becomes ``spread``.
"""

import numpy as np

__all__ = ["apply_alignment", "fit_alignment"]


def fit_alignment(X: np.ndarray, dim: int, spread: float) -> tuple[np.ndarray, np.ndarray]:
    """Origin (D,) and matrix (D, dim) for the rows of ``X`` (N, D), in double precision."""
    X = np.asarray(X, dtype=np.float64)
    origin = X.mean(axis=0)
    n_columns = X.shape[1]
    matrix = _principal_axes(X - origin, dim) if n_columns > dim else np.eye(n_columns, dim)
    aligned = (X - origin) @ matrix
    deviation = np.sqrt(aligned.var(axis=0)[: min(n_columns, dim)].mean())
    # Rows that all coincide have no scale of their own.
    tiny = np.finfo(np.float64).eps * float(np.abs(origin).max())
    return origin, matrix * (spread / deviation if deviation > tiny else 1.0)


def apply_alignment(X: np.ndarray, origin: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Aligned rows (N, dim), in double precision."""
    return (np.asarray(X, dtype=np.float64) - origin) @ matrix


def _principal_axes(centred: np.ndarray, dim: int) -> np.ndarray:
    """Leading right singular vectors (D, dim), through the smaller of the two Gram matrices."""
    n_rows, n_columns = centred.shape
    if n_columns <= n_rows:
        _, vectors = np.linalg.eigh(centred.T @ centred)
        axes = vectors[:, ::-1][:, :dim]
    else:
        values, vectors = np.linalg.eigh(centred @ centred.T)
        axes = centred.T @ vectors[:, ::-1][:, :dim]
        axes /= np.maximum(np.sqrt(np.maximum(values[::-1][:dim], 0)), 1e-300)
        if axes.shape[1] < dim:  # fewer rows than the network has coordinates
            axes = np.pad(axes, ((0, 0), (0, dim - axes.shape[1])))
    # The sign of an axis is arbitrary: its largest entry is made positive.
    signs = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    return axes * np.where(signs == 0, 1.0, signs)
