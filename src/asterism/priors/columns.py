"""From points to tables: warps, noise, skew, floors, rounding, categories, missing cells.

Every step takes and returns (N, D) columns; ``chance`` is the only source of randomness.
"""

import numpy as np

from asterism.io.donors import fill_from_donors
from asterism.priors.shapes import random_rotation

__all__ = [
    "add_noise_columns",
    "as_table",
    "express",
    "principal_scores",
    "shear",
    "standardise",
    "strays",
    "warp",
]


def warp(x: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """Bend space by two random residual layers, the same for all clusters."""
    dim = x.shape[1]
    x = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-9)
    strength = chance.uniform(0.2, 0.9)
    for _ in range(2):
        weights = chance.standard_normal((dim, dim)) / np.sqrt(dim)
        shift = chance.standard_normal(dim)
        hidden = x @ weights + shift
        bent = np.tanh(hidden) if chance.random() < 0.7 else np.maximum(hidden, 0)
        x = x + strength * bent @ (chance.standard_normal((dim, dim)) / np.sqrt(dim))
    return x


def shear(x: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """Stretch space along random axes: all clusters become long in the same direction."""
    dim = x.shape[1]
    x = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-9)
    axes = random_rotation(dim, chance)
    lengths = np.exp(chance.uniform(0.2, 0.9) * chance.standard_normal(dim))
    return (x @ axes * lengths) @ axes.T


def express(x: np.ndarray, dim: int, chance: np.random.Generator) -> np.ndarray:
    """Many columns (N, dim) that tell of few causes (N, m), each with noise of its own.

    So the columns of a table are correlated: its rows fill far fewer dimensions than it has.
    """
    m = x.shape[1]
    x = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-9)
    loadings = chance.standard_normal((m, dim))
    if chance.random() < 0.5:  # a column tells of some causes only
        told = chance.random((m, dim)) < 0.4
        told[chance.integers(m, size=dim), np.arange(dim)] = True
        loadings *= told
    y = x @ loadings / np.linalg.norm(loadings, axis=0)
    if chance.random() < 0.3:  # some columns reach a ceiling
        capped = chance.random(dim) < 0.4
        y[:, capped] = np.tanh(1.5 * y[:, capped])
    noise = chance.uniform(0.02, chance.uniform(0.1, 0.9), dim)
    y = y / np.maximum(y.std(axis=0), 1e-9)
    return np.sqrt(1 - noise) * y + np.sqrt(noise) * chance.standard_normal(y.shape)


def principal_scores(x: np.ndarray, n_axes: int) -> np.ndarray:
    """Coordinates along the ``n_axes`` leading axes, or all: what users bring of wide tables.

    Standardised like any columns, short axes then count as much as long ones.
    """
    centred = x - x.mean(axis=0)
    rows, lengths, _ = np.linalg.svd(centred, full_matrices=False)
    n_axes = min(n_axes, len(x) - 1)  # the last is rounding
    return rows[:, :n_axes] * lengths[:n_axes]


def strays(x: np.ndarray, n_strays: int, chance: np.random.Generator) -> np.ndarray:
    """Rows that belong nowhere: strewn evenly over the table and its margin, or far and wide."""
    if chance.random() < 0.4:
        reach = chance.uniform(1.5, 4.0) * x.std(axis=0)
        return x.mean(axis=0) + reach * chance.standard_normal((n_strays, x.shape[1]))
    low, high = np.quantile(x, [0.01, 0.99], axis=0)
    margin = 0.15 * (high - low)
    return chance.uniform(low - margin, high + margin, (n_strays, x.shape[1]))


def add_noise_columns(x: np.ndarray, n_noise: int, chance: np.random.Generator) -> np.ndarray:
    """Columns that know nothing of the clusters, of some usual distributions."""
    n = len(x)
    kinds = chance.integers(4, size=n_noise)
    noise = np.empty((n, n_noise))
    for j, kind in enumerate(kinds):
        if kind == 0:
            noise[:, j] = chance.standard_normal(n)
        elif kind == 1:
            noise[:, j] = chance.random(n)
        elif kind == 2:
            noise[:, j] = np.exp(chance.standard_normal(n))
        else:
            noise[:, j] = chance.integers(chance.integers(2, 9), size=n)
    # Of the size of the columns that matter, or they would vanish in distances that are not scaled.
    typical = float(np.median(x.std(axis=0))) or 1.0
    noise = (noise - noise.mean(axis=0)) / np.maximum(noise.std(axis=0), 1e-9) * typical
    return np.concatenate([x, noise], axis=1)


def as_table(x: np.ndarray, labels: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """Turn columns into what tables hold, then encode them as the library's encoder would."""
    x = x.copy()
    dim = x.shape[1]
    if chance.random() < 0.25:  # skewed columns: incomes, counts, concentrations
        share, most = chance.uniform(0.2, 1.0), chance.uniform(0.6, 1.6)
        for j in np.flatnonzero(chance.random(dim) < share):
            scaled = (x[:, j] - x[:, j].mean()) / max(float(x[:, j].std()), 1e-9)
            x[:, j] = np.exp(chance.uniform(0.3, most) * scaled)
    if chance.random() < 0.15:  # a floor: counts that are mostly nought, readings below a limit
        share = chance.uniform(0.2, 0.9)
        for j in np.flatnonzero(chance.random(dim) < share):
            x[:, j] = np.maximum(x[:, j], np.quantile(x[:, j], chance.uniform(0.1, 0.8)))
    if chance.random() < 0.25:  # rounding, of some columns or of all
        some = chance.random(dim) < (1.0 if chance.random() < 0.4 else 0.5)
        for j in np.flatnonzero(some):
            step = max(float(x[:, j].std()), 1e-9) * chance.choice([0.05, 0.2, 0.5, 1.0])
            x[:, j] = np.round(x[:, j] / step) * step
    flags: list[np.ndarray] = []
    if chance.random() < 0.14:
        flags = _lose_cells(x, chance)
    encoded = [standardise(x, chance)]
    if chance.random() < 0.32:  # categories that go with the clusters, more or less, or do not
        encoded += _categories(labels, chance)
        if chance.random() < 0.25 and dim > 1:
            encoded[0] = encoded[0][:, : max(1, dim // 3)]
    if flags:
        encoded.append(np.stack(flags, axis=1))
    return np.concatenate(encoded, axis=1)


def _lose_cells(x: np.ndarray, chance: np.random.Generator) -> list[np.ndarray]:
    """Lose cells of some columns, in place, and fill them: from the rows most alike, or by medians.

    Returns a flag (N,) for every column that lost some.
    """
    n, dim = x.shape
    rate, spoilt = chance.uniform(0.02, 0.4), chance.uniform(0.3, 1.0)
    missing = (chance.random((n, dim)) < rate) & (chance.random(dim) < spoilt)
    missing &= missing.sum(axis=0) < n - 1
    spread = np.maximum(x.std(axis=0), 1e-9)
    donors = np.where(missing, np.nan, x / spread)
    for j in np.flatnonzero(missing.any(axis=0)):
        x[missing[:, j], j] = np.median(x[~missing[:, j], j])
    if chance.random() < 0.7:
        scaled = x / spread
        fill_from_donors(scaled, missing, donors)
        x[:] = np.where(missing, scaled * spread, x)
    return [column.astype(float) for column in missing.T if column.any()]


def standardise(x: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """Columns of unit deviation, as the encoder makes them, or one scale for all, as plain data."""
    centred = x - x.mean(axis=0)
    deviation = centred.std(axis=0)
    if chance.random() < 0.7:
        return centred / np.where(deviation > 1e-9, deviation, 1.0)
    return centred / max(float(np.sqrt(np.mean(deviation**2))), 1e-9)


def _categories(labels: np.ndarray, chance: np.random.Generator) -> list[np.ndarray]:
    """Categories whose frequencies depend on the cluster, or do not; one-hot, or as plain codes."""
    n_clusters = int(labels.max()) + 1
    coded = chance.random() < 0.35  # a table that was never encoded: numbers in no order
    columns = []
    for _ in range(int(chance.integers(1, 9))):
        levels = int(chance.integers(2, 9))
        sharpness = chance.choice([0.15, 0.5, 1.5])
        table = chance.dirichlet(np.full(levels, sharpness), size=n_clusters + 1)
        if chance.random() < 0.5:  # a category that has nothing to do with the clusters
            table[:] = chance.dirichlet(np.full(levels, 2.0))
        heaped = np.cumsum(table[labels], axis=1)  # noise rows, −1, have a row of their own
        value = (chance.random((len(labels), 1)) > heaped).sum(axis=1).clip(max=levels - 1)
        if coded:
            codes = (value - value.mean())[:, None]
            columns.append(codes / max(float(codes.std()), 1e-9))
        else:
            one_hot = np.eye(levels)[value] / np.sqrt(2)
            columns.append(one_hot[:, one_hot.std(axis=0) > 0])
    return [column for column in columns if column.shape[1]]
