"""DP-means: k-means that opens a cluster where a row is too far from all.

    minimise  Σ_i min_k |x_i − μ_k|² + λK

The limit of a Dirichlet process mixture of equal spherical Gaussians whose variance goes to zero.
Rows are assigned all at once, and the farthest one, if its squared distance passes λ, opens a
cluster (delayed creation), so that the answer depends on no order of the rows. Once nothing changes
any more, two clusters that are not worth the price of one of them are merged.

Kulis & Jordan, "Revisiting k-means: new algorithms via Bayesian nonparametrics", ICML 2012;
Dinari & Freifeld, "Revisiting DP-means: fast scalable algorithms via parallelism and delayed
cluster creation", UAI 2022.
"""

from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

from asterism._validation import Interval, Real, at_least
from asterism.base import Clusterer
from asterism.exceptions import tell
from asterism.functional.assignments import spherical_log_responsibilities

__all__ = ["DPMeans"]


class DPMeans(Clusterer):
    """K-means with a price for each cluster; K follows from the price.

    Parameters
    ----------
    penalty : float, default=0.5
        λ, the price of a cluster, as a part of the mean squared distance of the rows to their mean.
    max_clusters : int or None, default=None
        Never open more.
    max_iter : int, default=500
        Rounds of assignment.
    random_state : int, RandomState or None, default=None
        Nothing is drawn at random; there for the sake of uniformity.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
    n_clusters_ : int
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    inertia_ : float
        Sum of squared distances to the centres.
    n_iter_ : int

    References
    ----------
    Kulis & Jordan, "Revisiting k-means: new algorithms via Bayesian nonparametrics", ICML 2012.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from asterism import DPMeans
    >>> X, _ = make_blobs(200, centers=5, cluster_std=0.4, random_state=3)
    >>> DPMeans(penalty=0.2).fit(X).n_clusters_
    5
    """

    _per_cluster: ClassVar[tuple[str, ...]] = ("cluster_centers_",)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Clusterer._parameter_constraints,
        "penalty": [Interval(Real, 0, None, closed="neither")],
        "max_clusters": [at_least(1), None],
        "max_iter": [at_least(1)],
    }

    def __init__(
        self,
        penalty: float = 0.5,
        *,
        max_clusters: int | None = None,
        max_iter: int = 500,
        random_state: Any = None,
    ) -> None:
        self.penalty = penalty
        self.max_clusters = max_clusters
        self.max_iter = max_iter
        self.random_state = random_state

    def _fit(self, X: np.ndarray, y: Any, seed: int) -> None:
        X = X.astype(np.float64, copy=False)
        centers = X.mean(axis=0, keepdims=True)
        price = self.penalty * float(np.square(X - centers).sum(axis=1).mean())
        labels = np.full(len(X), -1)
        self.n_iter_ = 0
        while self.n_iter_ < self.max_iter:
            self.n_iter_ += 1
            before = labels
            labels, squared = self._nearest(X, centers)
            farthest = int(squared.argmax())
            room = self.max_clusters is None or len(centers) < self.max_clusters
            if room and squared[farthest] > price:
                labels[farthest] = len(centers)
            elif (labels == before).all():
                if not (pair := _cheapest_merge(centers, labels, price)):
                    break
                labels[labels == pair[1]] = pair[0]
            centers = _means(X, labels)
        else:
            tell(
                f"not settled after max_iter={self.max_iter} rounds, with {len(centers)} clusters: "
                "raise max_iter or the penalty",
                ConvergenceWarning,
            )
            squared = self._nearest(X, centers)[1]
        self.cluster_centers_ = centers
        self.inertia_ = float(squared.sum())
        self.variance_ = self.inertia_ / X.size

    def _nearest(self, X: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Nearest centre of each row, and the squared distance to it."""
        labels, squared = np.empty(len(X), dtype=np.int64), np.empty(len(X))
        for start in range(0, len(X), self._chunk):
            part = slice(start, start + self._chunk)
            apart = cdist(X[part], centers, "sqeuclidean")
            labels[part], squared[part] = apart.argmin(axis=1), apart.min(axis=1)
        return labels, squared

    def _log_responsibilities(self, X: np.ndarray) -> np.ndarray:
        return spherical_log_responsibilities(X, self.cluster_centers_, self.variance_)


def _means(X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Centres of the clusters that own rows."""
    names, labels = np.unique(labels, return_inverse=True)
    member = np.zeros((len(names), X.shape[1]))
    np.add.at(member, labels, X)
    return member / np.bincount(labels)[:, None]


def _cheapest_merge(
    centers: np.ndarray, labels: np.ndarray, price: float
) -> tuple[int, int] | None:
    """The two clusters whose merger costs least, if that is less than the price of one.

    It adds n₁n₂ / (n₁ + n₂) |μ₁ − μ₂|² to the sum of squares.
    """
    sizes = np.bincount(labels, minlength=len(centers)).astype(np.float64)
    pair = sizes[:, None] * sizes / np.maximum(sizes[:, None] + sizes, 1)
    cost = pair * cdist(centers, centers, "sqeuclidean")
    np.fill_diagonal(cost, np.inf)
    i, j = np.unravel_index(cost.argmin(), cost.shape)
    return (int(i), int(j)) if cost[i, j] < price else None
