"""K-means, with the number of clusters chosen by the silhouette when it is not given."""

from operator import attrgetter
from typing import Any, ClassVar

import numpy as np
from sklearn.cluster import KMeans

from asterism._validation import StrOptions, at_least, check_rows
from asterism.base import Clusterer
from asterism.functional.assignments import spherical_log_responsibilities
from asterism.methods.baselines.selection import best_silhouette, candidate_counts

__all__ = ["AutoKMeans"]


class AutoKMeans(Clusterer):
    """scikit-learn's k-means; K by the silhouette over 2 ... ``max_clusters`` unless given.

    Memberships are those of equal spherical Gaussians at the centres, with the variance k-means
    leaves within its clusters.

    Parameters
    ----------
    n_clusters : int or "auto", default="auto"
        Number of clusters.
    max_clusters : int, default=15
        Largest number tried.
    n_init : int, default=10
        Starts of each k-means.
    random_state : int, RandomState or None, default=None
        Fixes the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
    n_clusters_ : int
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    inertia_ : float
    silhouettes_ : dict
        Silhouette by number of clusters, where the number was chosen.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from asterism import AutoKMeans
    >>> X, _ = make_blobs(200, centers=5, cluster_std=0.4, random_state=3)
    >>> AutoKMeans(random_state=0).fit(X).n_clusters_
    5
    """

    _per_cluster: ClassVar[tuple[str, ...]] = ("cluster_centers_",)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Clusterer._parameter_constraints,
        "n_clusters": [at_least(1), StrOptions({"auto"})],
        "max_clusters": [at_least(2)],
        "n_init": [at_least(1)],
    }

    def __init__(
        self,
        n_clusters: int | str = "auto",
        *,
        max_clusters: int = 15,
        n_init: int = 10,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.max_clusters = max_clusters
        self.n_init = n_init
        self.random_state = random_state

    def _fit(self, X: np.ndarray, y: Any, seed: int) -> None:
        def fitted(n_clusters: int) -> KMeans:
            return KMeans(n_clusters, n_init=self.n_init, random_state=seed).fit(X)

        if self.n_clusters == "auto":
            tried = (fitted(k) for k in candidate_counts(X, self.max_clusters))
            chosen, self.silhouettes_ = best_silhouette(X, tried, attrgetter("labels_"), seed)
            best = chosen or fitted(1)
        else:
            check_rows(len(X), int(self.n_clusters))
            best = fitted(int(self.n_clusters))
        self.cluster_centers_ = best.cluster_centers_.astype(np.float64)
        self.inertia_ = float(best.inertia_)
        self.variance_ = self.inertia_ / X.size

    def _log_responsibilities(self, X: np.ndarray) -> np.ndarray:
        return spherical_log_responsibilities(X, self.cluster_centers_, self.variance_)
