"""Which rows stand for a large table.

    half      at random: dense regions are seen as dense as they are
    half      where the first leave gaps, by k-means++: rare clusters are not missed

from a pool of at most 20 000 rows, so that the choice costs the same for any N. Some rows may be
fixed beforehand, those whose cluster is known for instance.
"""

import numpy as np

__all__ = ["choose_context"]

_POOL = 20_000


def choose_context(
    X: np.ndarray, size: int, seed: int, fixed: np.ndarray | None = None
) -> np.ndarray:
    """Sorted indices of ``size`` rows of X (N, D), or of all if there are no more.

    >>> choose_context(np.zeros((3, 1)), 5, 0).tolist()
    [0, 1, 2]
    """
    n = len(X)
    if n <= size:
        return np.arange(n)
    chance = np.random.RandomState(seed)
    chosen = np.zeros(0, dtype=np.int64) if fixed is None else np.unique(fixed)
    if len(chosen) > size // 2:
        chosen = chance.choice(chosen, size // 2, replace=False)
    pool = chance.permutation(n) if n <= _POOL else chance.choice(n, _POOL, replace=False)
    pool = pool[~np.isin(pool, chosen)]
    split = (size - len(chosen)) // 2
    chosen = np.concatenate([chosen, pool[:split]])
    rest = pool[split:]
    squared = _squared_to_nearest(X[rest], X[chosen])
    # A last resort where all rows are alike: any of them.
    weights = squared + 1e-12 * max(float(squared.max()), 1e-300) + 1e-300
    extra = chance.choice(len(rest), size - len(chosen), replace=False, p=weights / weights.sum())
    return np.sort(np.concatenate([chosen, rest[extra]]))


def _squared_to_nearest(X: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    norms = (chosen**2).sum(axis=1)
    nearest = [
        (norms - 2 * part @ chosen.T).min(axis=1) + (part**2).sum(axis=1)
        for part in np.array_split(X, max(1, len(X) // 4096))
    ]
    return np.maximum(np.concatenate(nearest), 0)
