"""Move a user's data to the place, scale and dimension a network was trained on.

    aligned = (x − origin) P

``origin`` is the mean, or the median where the training data had theirs at zero. With as many
columns as the network has, or fewer, P only rescales (and leaves the missing coordinates zero);
with more, it projects on the leading principal axes. One factor for all axes, so shapes are kept:
the root mean square deviation of an aligned coordinate becomes ``spread``.

That makes a table of one cluster as wide as one of many. Where clusters had one typical size in
training, their own scale is the better measure, by a rough guess of the clusters:

    groups     components of the graph in which two rows are linked that are among the k nearest
               neighbours of each other, k = 2 % of the rows, 5 at the least; of k / 2 rows or more
    scale      median over rows of the distance to the nearest mean of a group, over √D

It is about the same, up to a constant, for one cluster and for many, for few rows and for many: on
mixtures of Gaussians the medians for 60 and for 2000 rows are within a tenth of their mean.

Brito, Chávez, Quiroz & Yukich, "Connectivity of the mutual k-nearest-neighbor graph in clustering
and outlier detection", Statistics & Probability Letters 1997.
"""

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from asterism.functional.contexts import some_rows

__all__ = ["apply_alignment", "fit_alignment", "group_scale"]

_SHARE, _FEWEST = 0.02, 5
_ROUNDING = 1e-12
_MOST = 500
"""Rows that a scale is measured on, those of a larger table at random."""


def fit_alignment(
    X: np.ndarray, dim: int, spread: float, *, center: str = "mean"
) -> tuple[np.ndarray, np.ndarray]:
    """Origin (D,) and matrix (D, dim) for the rows of ``X`` (N, D), in double precision."""
    X = np.asarray(X, dtype=np.float64)
    mean = X.mean(axis=0)
    origin = np.median(X, axis=0) if center == "median" else mean
    n_columns = X.shape[1]
    matrix = _principal_axes(X - mean, dim) if n_columns > dim else np.eye(n_columns, dim)
    aligned = (X - mean) @ matrix
    deviation = np.sqrt(aligned.var(axis=0)[: min(n_columns, dim)].mean())
    # Rows that all coincide have no scale of their own.
    tiny = np.finfo(np.float64).eps * float(np.abs(origin).max())
    return origin, matrix * (spread / deviation if deviation > tiny else 1.0)


def apply_alignment(X: np.ndarray, origin: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Aligned rows (N, dim), in double precision."""
    return (np.asarray(X, dtype=np.float64) - origin) @ matrix


def group_scale(X: np.ndarray) -> float:
    """Typical scale of the clusters of rows (N, D), N > 1; 0 where most rows are equal.

    >>> one = np.random.default_rng(0).normal(size=(200, 2))
    >>> four = one + 20 * np.array([[0, 0], [0, 1], [1, 0], [1, 1]]).repeat(50, axis=0)
    >>> bool(0.8 < group_scale(four) / group_scale(one) < 1.25)
    True
    """
    X = some_rows(X, _MOST, seed=0)
    X = X - X.mean(axis=0)
    rank = min(max(_FEWEST, round(_SHARE * (len(X) - 1))), len(X) - 1)
    # A row is the first of its neighbours; twice as many, since those at equal distance count too.
    distance, near = cKDTree(X).query(X, min(2 * rank + 1, len(X)))
    reach = distance[:, rank] * (1 + _ROUNDING)
    row, place = np.nonzero(distance <= np.minimum(reach[:, None], reach[near]))
    links = coo_array((np.ones(len(row)), (row, near[row, place])), shape=(len(X),) * 2)
    group = connected_components(links, directed=False)[1]
    sizes = np.bincount(group)
    large = np.flatnonzero(sizes >= min(rank / 2, sizes.max()))
    centers = np.stack([X[group == g].mean(axis=0) for g in large])
    apart = cdist(X, centers).min(axis=1)
    found = float(np.median(apart) / np.sqrt(X.shape[1]))
    # Rounding leaves equal rows a hair apart.
    return found if found > 1e-7 * np.linalg.norm(X) / np.sqrt(len(X)) else 0.0


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
