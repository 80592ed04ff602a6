"""Missing cells filled from the rows most alike.

    d(x, z)² = Σ_{j ∈ S} |x_j − z_j|² / |S|,   S the columns of the table that both rows have
    x_j      ← mean of z_j over the k donors z nearest to x that have j, k = √M up to ten

The M donors are a sample of the training rows, kept with the encoder, so that new rows are filled
as those of training were. The median of a column lies between its clusters and puts every gap
there; the rows most alike are mostly of the same cluster. A category, several features at once,
becomes a blend of the donors' categories. A cell stays as it is where no donor has it and shares a
column with the row.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["choose_donors", "donors_from_dict", "donors_to_dict", "fill_from_donors"]

_NEIGHBOURS = 10  # at most
_MOST, _LEAST = 1000, 100
_CELLS = 200_000  # kept with a model at most, but for the least number of donors
_AT_ONCE = 2048  # rows: bounds the memory


def choose_donors(n_rows: int, n_features: int) -> np.ndarray:
    """Numbers of the rows to keep, the same for every table of one size.

    >>> [len(choose_donors(*size)) for size in ((50, 10), (10_000, 10), (10_000, 1000))]
    [50, 1000, 200]
    """
    number = min(n_rows, max(_LEAST, min(_MOST, _CELLS // max(n_features, 1))))
    return np.sort(np.random.default_rng(0).choice(n_rows, number, replace=False))


def fill_from_donors(
    X: np.ndarray, missing: np.ndarray, donors: np.ndarray, columns: Sequence[int] | None = None
) -> None:
    """Fill the gaps of X (N, D), in place.

    Parameters
    ----------
    X, missing : ndarray of shape (N, D)
        Features, and where they are missing.
    donors : ndarray of shape (M, D)
        Rows to take from, NaN where they have gaps themselves.
    columns : sequence of int, optional
        How many features each column of the table has, D in all; one each by default. Those of one
        column are missing together.

    Examples
    --------
    >>> X = np.array([[0.1, 3.0], [5.1, 3.0]])
    >>> donors = np.array([[0.0, 1.0], [5.0, 9.0], [0.2, 2.0], [5.1, 8.0], [np.nan, 7.0]])
    >>> fill_from_donors(X, np.array([[False, False], [False, True]]), donors)
    >>> X.tolist()
    [[0.1, 3.0], [5.1, 8.5]]
    """
    widths = np.ones(X.shape[1], dtype=np.int64) if columns is None else np.asarray(columns)
    starts = np.cumsum(widths) - widths
    most = min(_NEIGHBOURS, round(len(donors) ** 0.5))
    center = np.nansum(donors, axis=0) / np.maximum(np.isfinite(donors).sum(axis=0), 1)
    rows = np.flatnonzero(missing.any(axis=1))
    for part in (rows[i : i + _AT_ONCE] for i in range(0, len(rows), _AT_ONCE)):
        gone = missing[part][:, starts]  # of whole columns
        given = X[part].astype(np.float64) - center
        distance = _distances(np.where(missing[part], 0.0, given), gone, donors - center, starts)
        for number in np.flatnonzero(gone.any(axis=0)):
            own = slice(starts[number], starts[number] + widths[number])
            has = np.flatnonzero(np.isfinite(donors[:, own.start]))
            gaps = np.flatnonzero(gone[:, number])
            near, alike = _nearest(distance[np.ix_(gaps, has)], most)
            taken = donors[has, own][near] * alike[..., None]  # (gaps, most, features)
            mean = taken.sum(axis=1) / np.maximum(alike.sum(axis=1), 1)[:, None]
            some = alike.any(axis=1)
            X[part[gaps[some]], own] = mean[some]


def _distances(
    x: np.ndarray, gone: np.ndarray, donors: np.ndarray, starts: np.ndarray
) -> np.ndarray:
    """Mean squared distances (n, M) over shared columns, infinite where there are none."""
    has = np.repeat(~gone, np.diff([*starts, x.shape[1]]), axis=1).astype(np.float64)
    theirs, z = np.isfinite(donors).astype(np.float64), np.nan_to_num(donors)
    squared = (x * x) @ theirs.T + has @ (z * z).T - 2 * x @ z.T
    shared = has[:, starts] @ theirs[:, starts].T
    return np.where(shared > 0, np.maximum(squared, 0) / np.maximum(shared, 1), np.inf)


def _nearest(distance: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """The nearest donors (n, most) of rows, and whether they share a column at all."""
    if distance.shape[1] > most:
        near = np.argpartition(distance, most - 1, axis=1)[:, :most]
    else:
        near = np.broadcast_to(np.arange(distance.shape[1]), distance.shape)
    return near, np.isfinite(np.take_along_axis(distance, near, axis=1))


def donors_to_dict(donors: np.ndarray) -> dict[str, Any]:
    """Shape and bytes as text: JSON has no NaN, and a number a line would hide all else."""
    cells = base64.b64encode(donors.astype("<f4").tobytes()).decode()
    return {"shape": list(donors.shape), "float32": cells}


def donors_from_dict(state: Mapping[str, Any], n_features: int) -> np.ndarray:
    """The donors again; a ``ValueError`` tells of damage."""
    try:
        cells = np.frombuffer(base64.b64decode(state["float32"], validate=True), dtype="<f4")
    except binascii.Error as error:
        raise ValueError(f"rows kept to fill gaps: {error}") from error
    donors = cells.reshape(state["shape"]).astype(np.float64)
    if donors.ndim != 2 or donors.shape[1] != n_features or not len(donors):
        raise ValueError(f"rows kept to fill gaps have the shape {donors.shape}")
    return donors
