"""Missing cells filled from the rows most alike.

    d(x, z)² = D / |S| · Σ_{j ∈ S} (x_j − z_j)²,   S the features that both rows have
    x_j      ← mean of z_j over the k donors z nearest to x that have j, k = √M up to ten, sought
               among the 4 k nearest

The M donors are a sample of the training rows, kept with the encoder, so that new rows are filled
as those of training were. The median of a column lies between its clusters and puts every gap
there; the rows most alike are mostly of the same cluster. A category becomes a blend of the donors'
categories. A row without any cell is like no other, and stays as it is.
"""

import numpy as np

__all__ = ["choose_donors", "donors_from_lists", "donors_to_lists", "fill_from_donors", "n_donors"]

_NEIGHBOURS = 10  # at most
_ASKED = 4  # times as many donors are looked at, some of which lack the cell too
_AT_ONCE = 4096  # rows: bounds the memory
_MOST, _LEAST = 1000, 100
_CELLS = 200_000  # kept with a model at most, but for the least number of donors


def n_donors(n_rows: int, n_features: int) -> int:
    """How many rows of a training table are kept.

    >>> n_donors(50, 10), n_donors(10_000, 10), n_donors(10_000, 1000)
    (50, 1000, 200)
    """
    return min(n_rows, max(_LEAST, min(_MOST, _CELLS // max(n_features, 1))))


def choose_donors(n_rows: int, n_features: int) -> np.ndarray:
    """Numbers of the rows to keep, the same for every table of one size."""
    kept = np.random.default_rng(0).choice(n_rows, n_donors(n_rows, n_features), replace=False)
    return np.sort(kept)


def fill_from_donors(X: np.ndarray, missing: np.ndarray, donors: np.ndarray) -> None:
    """Replace the ``missing`` cells of X (N, D), in place; ``donors`` (M, D) are NaN where empty.

    A cell that none of the nearest donors has stays as it is.

    >>> X = np.array([[0.1, 3.0], [5.1, 3.0]])
    >>> donors = np.array([[0.0, 1.0], [5.0, 9.0], [0.2, 2.0], [5.1, 8.0], [np.nan, 7.0]])
    >>> fill_from_donors(X, np.array([[False, False], [False, True]]), donors)
    >>> X.tolist()
    [[0.1, 3.0], [5.1, 8.5]]
    """
    rows = np.flatnonzero(missing.any(axis=1) & ~missing.all(axis=1))
    most = min(_NEIGHBOURS, round(len(donors) ** 0.5))
    for part in (rows[i : i + _AT_ONCE] for i in range(0, len(rows), _AT_ONCE)):
        near = _nearest(X[part], missing[part], donors, _ASKED * most)
        row, column = np.nonzero(missing[part])
        given = donors[near[row], column[:, None]]  # (gaps, asked)
        has = np.isfinite(given)
        first = has & (has.cumsum(axis=1) <= most)
        number = first.sum(axis=1)
        mean = given.sum(axis=1, where=first) / np.maximum(number, 1)
        row, column, mean = (each[number > 0] for each in (row, column, mean))
        X[part[row], column] = mean


def _nearest(X: np.ndarray, missing: np.ndarray, donors: np.ndarray, most: int) -> np.ndarray:
    """The donors (n, most) nearest to each row, nearest first."""
    has, theirs = (~missing).astype(np.float64), np.isfinite(donors).astype(np.float64)
    x, z = np.where(missing, 0.0, X), np.nan_to_num(donors)
    shared = has @ theirs.T
    squared = (x * x) @ theirs.T + has @ (z * z).T - 2 * x @ z.T
    distance = np.where(shared > 0, np.maximum(squared, 0) / np.maximum(shared, 1), np.inf)
    most = min(most, len(donors))
    near = np.argpartition(distance, most - 1, axis=1)[:, :most]
    order = np.take_along_axis(distance, near, axis=1).argsort(axis=1, kind="stable")
    return np.take_along_axis(near, order, axis=1)


def donors_to_lists(donors: np.ndarray) -> list[list[float | None]]:
    """Plain values: JSON has no NaN."""
    return [[None if np.isnan(cell) else float(cell) for cell in row] for row in donors]


def donors_from_lists(lists: list[list[float | None]]) -> np.ndarray:
    """The donors again."""
    return np.array([[np.nan if cell is None else cell for cell in row] for row in lists])
