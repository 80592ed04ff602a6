"""Toy data sets in the plane whose right clustering can be seen.

Every toy is a function of the number of points and one random state, and returns exactly that
many points with their labels. Where scikit-learn has a generator, it is used.
"""

from collections.abc import Callable
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.utils import check_random_state

from asterism.datasets.dataset import Dataset
from asterism.datasets.loading import XY
from asterism.exceptions import DataError

__all__ = ["load_toy", "toy_names"]

RandomState = np.random.RandomState
Sample = tuple[NDArray[Any], NDArray[Any]]

_MIN_SAMPLES = 10  # enough for every toy to have a point in every cluster


def _blobs(n: int, rng: RandomState) -> Sample:
    """Five round clusters of one size."""
    centers = 6 * np.array([(0, 0), (1, 1), (1, -1), (-1, 1), (-1, -1)])
    return make_blobs(n, centers=centers, cluster_std=1.0, random_state=rng)


def _anisotropic(n: int, rng: RandomState) -> Sample:
    """Three parallel, stretched clusters."""
    centers = [(-8, -4), (0, 0), (8, 4)]
    X, y = make_blobs(n, centers=centers, cluster_std=1.0, random_state=rng)
    return X @ np.array([[0.6, -0.6], [-0.4, 0.8]]), y


def _varied(n: int, rng: RandomState) -> Sample:
    """Three round clusters of unequal spread."""
    centers = [(-8, 0), (0, 0), (7, 7)]
    return make_blobs(n, centers=centers, cluster_std=[1.0, 0.4, 2.5], random_state=rng)


def _unbalanced(n: int, rng: RandomState) -> Sample:
    """Three round clusters with about 80, 15 and 5 percent of the points."""
    small, tiny = max(1, round(0.15 * n)), max(1, round(0.05 * n))
    sizes = [n - small - tiny, small, tiny]
    return make_blobs(sizes, centers=[(-5, 0), (3, 4), (3, -4)], random_state=rng)


def _noisy_blobs(n: int, rng: RandomState) -> Sample:
    """Three round clusters on a uniform background, which is labelled −1."""
    n_noise = n // 10
    X, y = make_blobs(n - n_noise, centers=[(-5, 0), (3, 4), (3, -4)], random_state=rng)
    background = rng.uniform(-10, 10, size=(n_noise, 2))
    return np.concatenate([X, background]), np.concatenate([y, np.full(n_noise, -1)])


def _moons(n: int, rng: RandomState) -> Sample:
    """Two interleaved half circles."""
    return make_moons(n, noise=0.06, random_state=rng)


def _circles(n: int, rng: RandomState) -> Sample:
    """One circle inside another."""
    return make_circles(n, noise=0.05, factor=0.5, random_state=rng)


def _spirals(n: int, rng: RandomState) -> Sample:
    """Three arms of a spiral, one turn each."""
    y = np.arange(n) % 3
    # The root spreads the points evenly along the arm.
    turn = np.sqrt(rng.uniform(0.04, 1, size=n))
    angle = 2 * np.pi * (turn + y / 3)
    X = turn[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return X + rng.normal(scale=0.015, size=X.shape), y


def _uniform(n: int, rng: RandomState) -> Sample:
    """One cluster: a square without structure."""
    return rng.uniform(size=(n, 2)), np.zeros(n, dtype=int)


def _rings_and_blob(n: int, rng: RandomState) -> Sample:
    """Two concentric rings around a round cluster."""
    y = np.arange(n) % 3
    angle = rng.uniform(0, 2 * np.pi, size=n)
    X = y[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return X + rng.normal(scale=np.where(y == 0, 0.15, 0.06)[:, None], size=X.shape), y


_TOYS: dict[str, Callable[[int, RandomState], Sample]] = {
    "blobs": _blobs,
    "anisotropic": _anisotropic,
    "varied": _varied,
    "unbalanced": _unbalanced,
    "noisy_blobs": _noisy_blobs,
    "moons": _moons,
    "circles": _circles,
    "spirals": _spirals,
    "rings_and_blob": _rings_and_blob,
    "uniform": _uniform,
}


def toy_names() -> tuple[str, ...]:
    """Names of the toys, as :func:`load_toy` takes them.

    Examples
    --------
    >>> "moons" in toy_names()
    True
    """
    return tuple(_TOYS)


@overload
def load_toy(
    name: str,
    n_samples: int = 500,
    *,
    random_state: int | RandomState | None = None,
    return_X_y: Literal[False] = False,
) -> Dataset: ...


@overload
def load_toy(
    name: str,
    n_samples: int = 500,
    *,
    random_state: int | RandomState | None = None,
    return_X_y: Literal[True],
) -> XY: ...


def load_toy(
    name: str,
    n_samples: int = 500,
    *,
    random_state: int | RandomState | None = None,
    return_X_y: bool = False,
) -> Dataset | XY:
    """Draw a toy data set in the plane.

    Parameters
    ----------
    name : str
        One of :func:`toy_names`: round clusters ("blobs", and "varied", "unbalanced" or
        "anisotropic" ones; "noisy_blobs" with 10 percent of background, labelled −1), curves
        ("moons", "circles", "spirals", "rings_and_blob"), or no structure ("uniform").
    n_samples : int, default=500
        Number of points, at least 10.
    random_state : int, RandomState or None, default=None
        Source of all randomness.
    return_X_y : bool, default=False
        Return the pair ``(X, y)`` instead of a :class:`Dataset`.

    Returns
    -------
    Dataset or (X, y)
        Points in random order, not scaled.

    Examples
    --------
    >>> load_toy("spirals", 300, random_state=0)
    Dataset('spirals', N=300, D=2, K=3)
    >>> X, y = load_toy("moons", random_state=0, return_X_y=True)
    >>> X.shape, y.shape
    ((500, 2), (500,))
    """
    if name not in _TOYS:
        raise DataError(f"Unknown toy {name!r}. Known: {', '.join(_TOYS)}.")
    if n_samples < _MIN_SAMPLES:
        raise DataError(f"n_samples must be at least {_MIN_SAMPLES}; got {n_samples}.")
    rng = check_random_state(random_state)
    X, y = _TOYS[name](n_samples, rng)
    order = rng.permutation(n_samples)
    dataset = Dataset.build(name, X[order], y[order], source="generated", licence="none needed")
    return (dataset.X, dataset.y) if return_X_y else dataset
