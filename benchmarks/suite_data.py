"""Data of the comparison ``suites.py``: five suites, their two parts, the rows a method is given.

    rows    at most 1000, a sample fixed by the name of the data set; columns standardised
    parts   SHA-256 of "suite/battery/name", even for tuning, odd to be reported; the name is the
            loader's, which begins with the battery where there is one, and without one the suite
            stands for it: "clustering_suite/wut/wut/x3", "tabular/tabular/seeds"

The clustering suite, the tables and the high-dimensional sets are files. The toys, which include
the data of scikit-learn's comparison of clustering algorithms, and the data without structure are
drawn.
"""

from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from hashlib import sha256

import numpy as np
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.preprocessing import StandardScaler

from asterism.datasets import (
    Dataset,
    Suite,
    load_clustering_suite,
    load_highdim_suite,
    load_tabular_suite,
    load_toy,
    toy_names,
)

__all__ = ["SUITES", "load_suite", "part_of", "prepared", "quick"]

MAX_ROWS = 1000


def digest(suite: str, name: str) -> int:
    return int(sha256(f"{suite}/{name}".encode()).hexdigest(), 16)


def part_of(suite: str, name: str) -> str:
    """Tuning or reported, by the hash of suite, battery and name."""
    battery = name.partition("/")[0] if "/" in name else suite
    return "tuning" if digest(f"{suite}/{battery}", name) % 2 == 0 else "reported"


def quick(suite: str, name: str, names: Sequence[str]) -> bool:
    """Whether a smoke test looks at a data set; at none that is to be reported."""
    return f"{suite}/{name}" in names and part_of(suite, name) == "tuning"


def sklearn_toy(name: str) -> Dataset:
    """Data of scikit-learn's comparison of clustering algorithms, with its parameters."""
    n, seed, other_seed = 500, 30, 170
    if name == "circles":
        X, y = make_circles(n, factor=0.5, noise=0.05, random_state=seed)
    elif name == "moons":
        X, y = make_moons(n, noise=0.05, random_state=seed)
    elif name == "varied":
        X, y = make_blobs(n, cluster_std=[1.0, 2.5, 0.5], random_state=other_seed)
    elif name == "anisotropic":
        X, y = make_blobs(n, random_state=other_seed)
        X = X @ np.array([[0.6, -0.6], [-0.4, 0.8]])
    else:
        X, y = make_blobs(n, random_state=seed)
    return Dataset.build(f"sklearn/{name}", X, y)


def toys() -> Suite:
    ours = {f"asterism/{name}": partial(load_toy, name, random_state=0) for name in toy_names()}
    shapes = ("moons", "circles", "anisotropic", "varied", "blobs")
    return Suite("toys", ours | {f"sklearn/{name}": partial(sklearn_toy, name) for name in shapes})


def structureless(shape: str, draw: int) -> Dataset:
    """One Gaussian of random covariance, or a uniform cube: a single cluster, so ARI is 0 or 1."""
    name = f"{shape}/{draw}"
    rng = np.random.default_rng(digest("no_structure", name))
    n, dim = int(rng.integers(300, 1001)), (2, 5, 10)[draw % 3]
    if shape == "gaussian":
        X = rng.normal(size=(n, dim)) @ rng.normal(size=(dim, dim))
    else:
        X = rng.uniform(size=(n, dim))
    return Dataset.build(name, X, np.zeros(n, dtype=np.int64))


def no_structure() -> Suite:
    draws = [(shape, draw) for shape in ("gaussian", "uniform") for draw in range(10)]
    return Suite("no_structure", {f"{s}/{i}": partial(structureless, s, i) for s, i in draws})


SUITES: dict[str, Callable[[], Suite]] = {
    "clustering_suite": load_clustering_suite,
    "tabular": load_tabular_suite,
    "highdim": load_highdim_suite,
    "toys": toys,
    "no_structure": no_structure,
}


@cache
def load_suite(name: str) -> Suite:
    return SUITES[name]()


@lru_cache(maxsize=1)  # methods take turns on one data set
def prepared(suite: str, name: str) -> tuple[np.ndarray, list[np.ndarray]]:
    """Standardised rows of a data set and its references on them."""
    data = load_suite(suite)[name]
    rows = np.arange(data.n_samples)
    if len(rows) > MAX_ROWS:
        rng = np.random.default_rng(digest(suite, name))
        rows = np.sort(rng.choice(rows, MAX_ROWS, replace=False))
    X = StandardScaler().fit_transform(data.X[rows].astype(np.float64))
    return X, [labels[rows] for labels in data.labels]
