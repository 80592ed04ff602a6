"""Autoencoder, then k-means on its codes.

    minimise  mean_i |x_i − g(f(x_i))|² / D,       z_i = f(x_i)
    minimise  Σ_i min_k |z_i − μ_k|²               by k-means, best of n_init starts

The baseline of all embedded methods, and where DEC, IDEC and DCN start from. Memberships are those
of equal spherical Gaussians at the centres, with the variance k-means leaves within its clusters.

Xie, Girshick & Farhadi, "Unsupervised deep embedding for clustering analysis", ICML 2016.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans

from asterism._validation import Integral, Interval, at_least, check_rows
from asterism.base import EmbeddedClusterer
from asterism.functional.assignments import spherical_log_responsibilities

__all__ = ["AEKMeans"]


class AEKMeans(EmbeddedClusterer):
    """K-means on the codes of an autoencoder trained on the same data.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    latent_dim : int or None, default=None
        Length of a code; None takes 10, or the number of columns if that is smaller.
    hidden_dims : sequence of int, default=(500, 500, 2000)
        Sizes of the encoder's hidden layers; the decoder mirrors them.
    max_steps : int, default=3000
        Most optimiser steps of the autoencoder. What an embedding is worth depends on the number
        of steps, not of epochs, so the budget is quoted in steps.
    tol : float, default=0.01
        Stop when the reconstruction error has fallen by less than this fraction over a tenth of
        ``max_steps``; 0 trains to the end.
    batch_size : int, default=256
        Rows a step.
    lr : float, default=1e-3
        Learning rate of Adam, after a short warm-up falling to zero along a cosine.
    scaling : {"unit_ms", "minmax", "standard", "none"}, default="unit_ms"
        How columns are scaled first; see :mod:`asterism.functional.scaling`.
    n_init : int, default=20
        Starts of k-means.
    device : str, default="auto"
        Where to compute: "auto", "cpu", "cuda", ...
    random_state : int, RandomState or None, default=None
        Fixes everything.
    verbose : bool or int, default=False
        Show a progress bar.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row, 0 the largest.
    cluster_centers_ : ndarray of shape (n_clusters, latent_dim)
        Centres in the embedding.
    inertia_ : float
        Sum of squared distances of codes to their centres.
    history_ : list of dict
        Reconstruction error over the steps.
    module_ : torch.nn.Module
        The autoencoder.

    References
    ----------
    Xie, Girshick & Farhadi, "Unsupervised deep embedding for clustering analysis", ICML 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from asterism import AEKMeans
    >>> X = load_iris().data
    >>> model = AEKMeans(3, hidden_dims=(32,), max_steps=200, random_state=0).fit(X)
    >>> model.n_clusters_, model.transform(X).shape
    (3, (150, 4))
    """

    _per_cluster: ClassVar[tuple[str, ...]] = ("cluster_centers_",)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **EmbeddedClusterer._parameter_constraints,
        "n_clusters": [at_least(1)],
        "n_init": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        latent_dim: int | None = None,
        hidden_dims: Sequence[int] = (500, 500, 2000),
        max_steps: int = 3000,
        tol: float = 0.01,
        batch_size: int = 256,
        lr: float = 1e-3,
        scaling: str = "unit_ms",
        n_init: int = 20,
        device: str = "auto",
        random_state: Any = None,
        verbose: int | bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.latent_dim = latent_dim
        self.hidden_dims = hidden_dims
        self.max_steps = max_steps
        self.tol = tol
        self.batch_size = batch_size
        self.lr = lr
        self.scaling = scaling
        self.n_init = n_init
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def _fit(self, X: np.ndarray, y: Any, seed: int) -> None:
        check_rows(len(X), self.n_clusters)
        self._pretrain(X, seed)
        codes = self._codes(X).astype(np.float64)
        kmeans = KMeans(self.n_clusters, n_init=self.n_init, random_state=seed).fit(codes)
        self.cluster_centers_ = kmeans.cluster_centers_
        self.inertia_ = float(kmeans.inertia_)
        self.variance_ = self.inertia_ / codes.size

    def _log_responsibilities(self, X: np.ndarray) -> np.ndarray:
        log_r = spherical_log_responsibilities(
            self._codes(X), self.cluster_centers_, self.variance_
        )
        # Single precision is what the network computes in.
        return log_r.astype(np.float32)

    def _score(self, X: np.ndarray) -> float:
        """Mean over rows of minus the squared distance to the nearest centre, in the embedding."""
        squared = cdist(self._codes(X), self.cluster_centers_, "sqeuclidean")
        return -float(squared.min(axis=1).mean())
