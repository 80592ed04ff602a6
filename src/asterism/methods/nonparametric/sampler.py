"""The posterior of a Dirichlet process mixture of Gaussians, by sampling: the yardstick.

    p(c | X) ∝ α^K Π_k Γ(n_k) f(X_k),   f the evidence of ``functional.niw``
    r_ik ∝ (n_k + α/K) N(x_i; μ_k, Σ_k), most probable parameters of the likeliest partition drawn

What DeepDPM approximates by a network and by moves that only climb. How the chain moves is in
``nonparametric.chain``; its law is exact, given time.
"""

from typing import Any, ClassVar

import numpy as np
import torch
from tqdm import tqdm

from asterism._validation import at_least, check_rows
from asterism.base import Clusterer
from asterism.base.posterior import PosteriorMixin
from asterism.methods.nonparametric.chain import Chain
from asterism.methods.nonparametric.conjugate import ConjugateMixture, kmeans_start

__all__ = ["DPSampler"]


class DPSampler(PosteriorMixin, ConjugateMixture):
    """Samples partitions from the posterior of a Dirichlet process mixture of Gaussians.

    Parameters
    ----------
    n_samples : int, default=100
        Partitions to keep, one a sweep.
    n_burn : int, default=100
        Sweeps before the first is kept, with moves that climb to a mode of the posterior.
    n_moves : int, default=10
        Splits or merges tried a sweep.
    init_n_clusters : int, default=1
        Clusters to begin with, by k-means.
    prior_scale : float, default=0.05
        Expected variance within a cluster as a part of that of all rows, column by column.
    covariance : {"auto", "full", "diagonal", "isotropic"}, default="auto"
        Of a cluster; "auto" as in :class:`~asterism.DeepDPM`.
    concentration : float, default=10.0
        Mass α of the process.
    mean_strength : float or None, default=None
        κ₀, the rows that the prior of a mean is worth; None is ``prior_scale``.
    degrees_of_freedom : float or None, default=None
        ν₀ of the prior, at least the number of columns; None is two more than that.
    scaling : {"none", "standard", "rows"}, default="none"
        As in :class:`~asterism.DeepDPM`.
    random_state : int, RandomState or None, default=None
        Fixes everything.
    verbose : bool or int, default=False
        Show a progress bar.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row under the mixture of the likeliest partition drawn, 0 the largest.
    n_clusters_ : int
    weights_, means_, covariances_ : ndarray
        That mixture, in the user's units.
    partitions_, log_probabilities_, k_posterior_, confidence_, overall_confidence_
        The posterior; probabilities are up to a constant.
    covariance_ : str
        Kind of the covariances, where "auto" has chosen it.
    acceptance_ : dict
        Share of the splits and of the merges tried that were taken.

    References
    ----------
    Chang & Fisher, "Parallel sampling of DP mixture models using sub-cluster splits", NeurIPS 2013.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from asterism import DPSampler
    >>> X, _ = make_blobs(200, centers=3, cluster_std=0.4, random_state=0)
    >>> model = DPSampler(n_samples=20, n_burn=20, random_state=0).fit(X)
    >>> model.n_clusters_, model.k_posterior_.argmax().item()
    (3, 3)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Clusterer._parameter_constraints,
        **PosteriorMixin._parameter_constraints,
        **ConjugateMixture._parameter_constraints,
        "n_burn": [at_least(0)],
        "n_moves": [at_least(1)],
        "init_n_clusters": [at_least(1)],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_samples: int = 100,
        *,
        n_burn: int = 100,
        n_moves: int = 10,
        init_n_clusters: int = 1,
        prior_scale: float = 0.05,
        covariance: str = "auto",
        concentration: float = 10.0,
        mean_strength: float | None = None,
        degrees_of_freedom: float | None = None,
        scaling: str = "none",
        random_state: Any = None,
        verbose: int | bool = False,
    ) -> None:
        self.n_samples = n_samples
        self.n_burn = n_burn
        self.n_moves = n_moves
        self.init_n_clusters = init_n_clusters
        self.prior_scale = prior_scale
        self.covariance = covariance
        self.concentration = concentration
        self.mean_strength = mean_strength
        self.degrees_of_freedom = degrees_of_freedom
        self.scaling = scaling
        self.random_state = random_state
        self.verbose = verbose

    def _fit(self, X: np.ndarray, y: Any, seed: int) -> None:
        check_rows(len(X), self.init_n_clusters, "init_n_clusters")
        self._fit_coordinates(X)
        x = self._scaled(X)
        start = kmeans_start(x, self.init_n_clusters, seed)
        self._chain = Chain(
            torch.from_numpy(x),
            self._make_prior(x),
            self.concentration,
            torch.from_numpy(start),
            np.random.default_rng(seed),
        )
        for _ in tqdm(range(self.n_burn), desc="burn-in", disable=not self.verbose):
            self._step(climb=True)
        self.partitions_, self.log_probabilities_ = self._sample_partitions(self.n_samples, seed)
        chain = self._chain
        self.acceptance_ = {
            kind: chain.accepted[kind] / max(1, chain.tried[kind]) for kind in chain.tried
        }
        best = Chain(
            chain.x,
            chain.prior,
            chain.alpha,
            torch.from_numpy(self.partitions_[self.log_probabilities_.argmax()].astype(np.int64)),
            chain.chance,
        )
        self._keep(best.stats, best.prior)
        del self._chain

    def _sample_partitions(self, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """The next ``n`` states of the chain, which is alive in ``fit``."""
        partitions = np.empty((n, len(self._chain.x)), dtype=np.int32)
        scores = np.empty(n)
        for draw in tqdm(range(n), desc="samples", disable=not self.verbose):
            self._step()
            partitions[draw], scores[draw] = self._chain.labels.numpy(), self._chain.log_posterior
        return partitions, scores

    def _step(self, *, climb: bool = False) -> None:
        self._chain.sweep()
        for _ in range(self.n_moves):
            self._chain.move(climb=climb)
