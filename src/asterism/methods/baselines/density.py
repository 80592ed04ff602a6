"""HDBSCAN: clusters are the modes that last longest as a density threshold rises.

Campello, Moulavi & Sander, "Density-based clustering based on hierarchical density estimates",
PAKDD 2013.
"""

from typing import Any, ClassVar

import numpy as np
import sklearn.cluster
from sklearn.neighbors import NearestNeighbors

from asterism._validation import StrOptions, at_least
from asterism.methods.baselines.nearest import NearestRowClusterer

__all__ = ["HDBSCAN"]


class HDBSCAN(NearestRowClusterer):
    """scikit-learn's HDBSCAN, with the noise kept apart or given to the nearest cluster.

    Parameters
    ----------
    noise : {"fill", "keep"}, default="fill"
        "fill" gives a noise row the cluster of the nearest clustered row (one cluster when all is
        noise); "keep" labels it -1.
    min_cluster_size : int, default=5
        Fewest rows of a cluster; fewer rows than this are one cluster.
    min_samples : int or None, default=None
        Neighbours that make a row dense; None is ``min_cluster_size``.
    max_rows : int or None, default=20000
        Cluster a random sample above this many rows.
    random_state : int, RandomState or None, default=None
        Fixes the sample.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        -1 is noise.
    n_clusters_ : int
    context_rows_, context_labels_ : ndarray
        Rows and labels that new rows are compared with.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from asterism import HDBSCAN
    >>> X, _ = make_moons(300, noise=0.05, random_state=0)
    >>> HDBSCAN().fit(X).n_clusters_
    2
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NearestRowClusterer._parameter_constraints,
        "noise": [StrOptions({"fill", "keep"})],
        "min_cluster_size": [at_least(2)],
        "min_samples": [at_least(1), None],
    }

    def __init__(
        self,
        *,
        noise: str = "fill",
        min_cluster_size: int = 5,
        min_samples: int | None = None,
        max_rows: int | None = 20_000,
        random_state: Any = None,
    ) -> None:
        self.noise = noise
        self.min_cluster_size = min_cluster_size
        self.min_samples = min_samples
        self.max_rows = max_rows
        self.random_state = random_state

    def _partition(self, X: np.ndarray, seed: int) -> np.ndarray:
        if len(X) < self.min_cluster_size:
            return np.zeros(len(X), dtype=np.int64)
        neighbours = min(self.min_samples or self.min_cluster_size, len(X))
        model = sklearn.cluster.HDBSCAN(
            min_cluster_size=self.min_cluster_size, min_samples=neighbours, copy=True
        )
        labels = model.fit(X).labels_
        return fill_noise(X, labels) if self.noise == "fill" else labels


def fill_noise(X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Give every row labelled −1 the label of the nearest row that has one."""
    inside = labels >= 0
    if not inside.any():
        return np.zeros_like(labels)
    if inside.all():
        return labels
    index = NearestNeighbors(n_neighbors=1).fit(X[inside])
    filled = labels.copy()
    nearest = index.kneighbors(X[~inside], return_distance=False).squeeze(1)
    filled[~inside] = labels[inside][nearest]
    return filled
