"""Memoised variational Bayes: a Dirichlet process mixture of Gaussians, batch by batch.

    maximise  E_q log p(x, z, v, μ, Σ) − E_q log q(z, v, μ, Σ)      ``functional.variational``

over a posterior q in which assignments, sticks and Gaussians are independent, with births and
merges of clusters that raise the bound; how, ``nonparametric.births``.

Hughes & Sudderth, "Memoized online variational inference for Dirichlet process mixture models",
NeurIPS 2013.
"""

from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning

from asterism._validation import Interval, Real, at_least
from asterism.base import Clusterer
from asterism.exceptions import tell
from asterism.methods.nonparametric.births import GrowingMemo
from asterism.methods.nonparametric.conjugate import ConjugateMixture, checked_start, kmeans_start

__all__ = ["MoVB"]


class MoVB(ConjugateMixture):
    """Variational mixture of unknown size, with births, merges and memory of batches.

    Parameters
    ----------
    init_n_clusters : int, default=1
        Clusters to begin with, by k-means.
    max_clusters : int, default=200
        No births beyond this number.
    prior_scale : float, default=0.05
        Expected variance within a cluster as a part of that of all rows, column by column.
    covariance : {"auto", "full", "diagonal", "isotropic"}, default="auto"
        Of a cluster; "auto" as in :class:`~asterism.DeepDPM`.
    concentration : float, default=1.0
        Mass α of the process; more cuts clear clusters in two now and then.
    mean_strength : float or None, default=None
        κ₀, the rows that the prior of a mean is worth; None is ``prior_scale``.
    degrees_of_freedom : float or None, default=None
        ν₀ of the prior, at least the number of columns; None is two more than that.
    scaling : {"none", "standard", "rows"}, default="none"
        As in :class:`~asterism.DeepDPM`.
    batch_size : int, default=10000
        Rows after which the clusters follow.
    min_rows : int, default=5
        What a cluster that is born must count for.
    max_laps : int, default=200
        Most rounds through all rows.
    tol : float, default=1e-4
        Rise of the bound in a lap, in nats a row, below which moves are tried.
    patience : int, default=2
        Rounds of moves without any after which the fit ends.
    random_state : int, RandomState or None, default=None
        Fixes everything.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row, 0 the largest.
    n_clusters_ : int
    weights_, means_, covariances_ : ndarray
        The most probable mixture under the posterior, in the user's units.
    covariance_ : str
        Kind of the covariances, where "auto" has chosen it.
    bounds_ : list of float
        The variational bound after each lap.
    moves_ : list of dict
        Births and merges: when, how many were tried and made, and K before and after.

    References
    ----------
    Hughes & Sudderth, "Memoized online variational inference for Dirichlet process mixture models",
    NeurIPS 2013.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from asterism import MoVB
    >>> X, _ = make_blobs(300, centers=4, cluster_std=0.5, random_state=3)
    >>> MoVB(random_state=0).fit(X).n_clusters_
    4
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Clusterer._parameter_constraints,
        **ConjugateMixture._parameter_constraints,
        "init_n_clusters": [at_least(1)],
        "max_clusters": [at_least(1)],
        "batch_size": [at_least(1)],
        "min_rows": [at_least(1)],
        "max_laps": [at_least(1)],
        "tol": [Interval(Real, 0, None, closed="left")],
        "patience": [at_least(1)],
    }

    def __init__(
        self,
        init_n_clusters: int = 1,
        *,
        max_clusters: int = 200,
        prior_scale: float = 0.05,
        covariance: str = "auto",
        concentration: float = 1.0,
        mean_strength: float | None = None,
        degrees_of_freedom: float | None = None,
        scaling: str = "none",
        batch_size: int = 10_000,
        min_rows: int = 5,
        max_laps: int = 200,
        tol: float = 1e-4,
        patience: int = 2,
        random_state: Any = None,
    ) -> None:
        self.init_n_clusters = init_n_clusters
        self.max_clusters = max_clusters
        self.prior_scale = prior_scale
        self.covariance = covariance
        self.concentration = concentration
        self.mean_strength = mean_strength
        self.degrees_of_freedom = degrees_of_freedom
        self.scaling = scaling
        self.batch_size = batch_size
        self.min_rows = min_rows
        self.max_laps = max_laps
        self.tol = tol
        self.patience = patience
        self.random_state = random_state

    def _fit(self, X: np.ndarray, y: Any, seed: int) -> None:
        checked_start(len(X), self.init_n_clusters, self.max_clusters)
        self._fit_coordinates(X)
        x = self._scaled(X)
        prior = self._make_prior(x)
        # Batches are random parts: rows often come sorted.
        order = torch.from_numpy(np.random.default_rng(seed).permutation(len(x)))
        parts = order.split(self.batch_size)
        rows, start = torch.from_numpy(x).double(), kmeans_start(x, self.init_n_clusters, seed)
        memo = GrowingMemo(
            [rows[own] for own in parts],
            prior,
            self.concentration,
            seed,
            self.min_rows,
            self.max_clusters,
        )
        memo.start([torch.from_numpy(start)[own] for own in parts])
        if not memo.run(self.max_laps, self.tol, self.patience):
            tell(
                f"clusters still changed after max_laps={self.max_laps}: raise it, or look at "
                "bounds_ and moves_",
                ConvergenceWarning,
            )
        self.bounds_, self.moves_ = memo.bounds, memo.moves
        self._keep(memo.stats, prior)
