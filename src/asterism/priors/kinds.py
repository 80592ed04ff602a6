"""Kinds of things seen under changing conditions: written letters, spoken words, objects in images.

    h = α e_k U + z (W + β V_k) + b,   x = ψ(h) B + noise

with e_k the code of a kind, z the conditions of a row (slant, loudness, light), and ψ one or two
random layers. All rows pass through the same layers, so that a kind is a curved sheet of a few
dimensions: where codes differ little, means nearly agree and spreads differ everywhere, yet
neighbours are mostly of one kind. This is what tables of measured objects are like, and what
Gaussians in many dimensions are not. Some conditions have a few levels only (sex, make, place), and
part the rows of a kind into heaps.
"""

import numpy as np

__all__ = ["kinds"]

_NEAR = 3.0  # separation at which codes differ as much as conditions do


def kinds(
    sizes: np.ndarray, dim: int, separation: float, chance: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Rows (N, dim) of kinds of these sizes, and labels (N,); see the header."""
    n_conditions, width = int(chance.integers(1, 8)), int(chance.integers(8, 49))
    n_codes = int(chance.integers(1, 9))
    labels = np.repeat(np.arange(len(sizes)), sizes)
    z = chance.standard_normal((len(labels), n_conditions))
    if chance.random() < 0.3:  # conditions between two extremes
        z = np.sqrt(12) * (chance.random(z.shape) - 0.5)
    if chance.random() < 0.3:
        for j in range(min(n_conditions, int(chance.integers(1, 4)))):
            level = chance.standard_normal(int(chance.integers(2, 5)))
            z[:, j] = level[chance.integers(len(level), size=len(z))] + 0.1 * z[:, j]
    lengths = np.exp(chance.uniform(0, 0.7) * chance.standard_normal(n_conditions))
    z *= lengths / np.sqrt(np.mean(lengths**2))

    codes = chance.standard_normal((len(sizes), n_codes)) / np.sqrt(n_codes)
    shift = separation / _NEAR * codes @ chance.standard_normal((n_codes, width))
    shared = chance.standard_normal((n_conditions, width)) / np.sqrt(n_conditions)
    own = chance.uniform(0, 1.5) if chance.random() < 0.6 else 0.0
    h = np.empty((len(labels), width))
    for k in range(len(sizes)):
        rows = labels == k
        change = chance.standard_normal((n_conditions, width)) / np.sqrt(n_conditions)
        h[rows] = z[rows] @ (shared + own * change) + shift[k]
    h = _layer(h + chance.standard_normal(width), chance)
    if chance.random() < 0.5:
        again = chance.standard_normal((width, width)) / np.sqrt(width)
        h = _layer((h / max(float(h.std()), 1e-9)) @ again + chance.standard_normal(width), chance)
    x = h @ chance.standard_normal((width, dim)) / np.sqrt(width)
    noise = chance.uniform(0.02, 0.4) * x.std(axis=0)
    return x + noise * chance.standard_normal(x.shape), labels


def _layer(h: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    if chance.random() < 0.6:
        return np.tanh(chance.uniform(0.4, 1.6) * h)
    return np.maximum(h, 0)
