"""DeepDPM end to end: an autoencoder and a mixture of unknown size, by turns.

    pre-train   minimise  mean_i |x_i − g(z_i)|² / D,     z_i = f(x_i)
    cluster     DeepDPM on the codes: K, means μ_k
    features    minimise  mean_i |x_i − g(z_i)|² / D  +  w · mean_i min_k |z_i − μ_k|² / v
    repeat      DeepDPM again from the clusters there are, with a fresh net; then features again

v, the mean squared distance of the codes from their mean when a turn begins, makes the weight w a
pure number. No turns of features at all is the two-step method.

Ronen, Finder & Freifeld, "DeepDPM: deep clustering with an unknown number of clusters", CVPR 2022;
Yang, Fu, Sidiropoulos & Hong, "Towards k-means-friendly spaces", ICML 2017.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from asterism._validation import Interval, Real, at_least, read_rows
from asterism.base import Clusterer, EmbeddedClusterer
from asterism.exceptions import WeightsError, tell
from asterism.losses.kmeans import kmeans_loss
from asterism.methods.nonparametric.deepdpm import DeepDPM
from asterism.nn.autoencoder import Autoencoder
from asterism.training.surroundings import undisturbed

__all__ = ["AEDeepDPM"]

_LEAST = 1e-12
_MIXTURE = (
    "init_n_clusters",
    "max_clusters",
    "prior",
    "prior_scale",
    "parsimony",
    "coarsening",
    "covariance",
    "concentration",
    "mean_strength",
    "min_rows",
    "epoch_steps",
    "n_epochs",
    "max_rounds",
    "patience",
)


class AEDeepDPM(EmbeddedClusterer):
    """Autoencoder and DeepDPM that learn from each other, the number of clusters found.

    Parameters
    ----------
    init_n_clusters, max_clusters, prior, prior_scale, parsimony, coarsening, covariance
        Of the mixture of codes, as are ``concentration``, ``mean_strength``, ``min_rows``,
        ``epoch_steps``, ``n_epochs``, ``max_rounds`` and ``patience``; see
        :class:`~asterism.DeepDPM`.
    n_alternations : int, default=1
        Turns of feature learning, each followed by clustering anew; 0 leaves the codes as they are
        pre-trained. More may help or not: on USPS alike clusters merged, small digits gained.
    alternation_steps : int, default=500
        Optimiser steps of such a turn.
    clustering_weight : float, default=0.1
        What the distance of codes to their centres counts beside the reconstruction.
    latent_dim : int or None, default=None
        Length of a code; None takes 10, or the number of columns if that is smaller.
    hidden_dims : sequence of int, default=(500, 500, 2000)
        Sizes of the encoder's hidden layers; the decoder mirrors them.
    max_steps : int, default=3000
        Most steps of pre-training.
    tol : float, default=0.01
        Stop pre-training when the reconstruction error has fallen by less than this fraction over a
        tenth of ``max_steps``; 0 trains to the end.
    batch_size : int, default=256
        Rows a step.
    lr : float, default=1e-3
        Learning rate of Adam, after a short warm-up falling to zero along a cosine, in every turn.
    scaling : {"unit_ms", "minmax", "standard", "none"}, default="unit_ms"
        How columns are scaled first; see :mod:`asterism.functional.scaling`.
    device : str, default="auto"
        Where to compute: "auto", "cpu", "cuda", ...
    random_state : int, RandomState or None, default=None
        Fixes everything.
    verbose : bool or int, default=False
        Show progress bars.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row, 0 the largest.
    n_clusters_ : int
    mixture_ : DeepDPM
        The mixture of the codes, with its means, covariances and moves.
    split_merge_history_ : list of dict
        Moves of that mixture, which began with the clusters of the turn before.
    labels_path_ : ndarray of shape (n_alternations + 1, n_samples)
        Labels after pre-training, which are those of the two-step method, and after every turn.
    history_ : list of dict
        Loss over the steps, and to which turn they belong, 0 for pre-training.
    module_ : torch.nn.Module
        The autoencoder.

    References
    ----------
    Ronen, Finder & Freifeld, "DeepDPM: deep clustering with an unknown number of clusters", CVPR
    2022, https://arxiv.org/abs/2203.14309.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from asterism import AEDeepDPM
    >>> X = load_iris().data
    >>> model = AEDeepDPM(hidden_dims=(32,), max_steps=100, n_alternations=1, random_state=0)
    >>> model.fit(X).labels_path_.shape
    (2, 150)
    """

    _parts: ClassVar[Mapping[str, type[Clusterer]]] = {"mixture_": DeepDPM}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **EmbeddedClusterer._parameter_constraints,
        **{name: DeepDPM._parameter_constraints[name] for name in _MIXTURE},
        "n_alternations": [at_least(0)],
        "alternation_steps": [at_least(1)],
        "clustering_weight": [Interval(Real, 0, None, closed="left")],
    }

    mixture_: DeepDPM

    def __init__(
        self,
        init_n_clusters: int | str = "auto",
        *,
        max_clusters: int | None = None,
        prior: str = "pooled",
        prior_scale: float | None = None,
        parsimony: float = 0.2,
        coarsening: float | None = 4000,
        covariance: str = "auto",
        concentration: float = 10.0,
        mean_strength: float | None = None,
        min_rows: int | None = None,
        epoch_steps: int = 50,
        n_epochs: int = 3,
        max_rounds: int = 60,
        patience: int = 2,
        n_alternations: int = 1,
        alternation_steps: int = 500,
        clustering_weight: float = 0.1,
        latent_dim: int | None = None,
        hidden_dims: Sequence[int] = (500, 500, 2000),
        max_steps: int = 3000,
        tol: float = 0.01,
        batch_size: int = 256,
        lr: float = 1e-3,
        scaling: str = "unit_ms",
        device: str = "auto",
        random_state: Any = None,
        verbose: int | bool = False,
    ) -> None:
        self.init_n_clusters = init_n_clusters
        self.max_clusters = max_clusters
        self.prior = prior
        self.prior_scale = prior_scale
        self.parsimony = parsimony
        self.coarsening = coarsening
        self.covariance = covariance
        self.concentration = concentration
        self.mean_strength = mean_strength
        self.min_rows = min_rows
        self.epoch_steps = epoch_steps
        self.n_epochs = n_epochs
        self.max_rounds = max_rounds
        self.patience = patience
        self.n_alternations = n_alternations
        self.alternation_steps = alternation_steps
        self.clustering_weight = clustering_weight
        self.latent_dim = latent_dim
        self.hidden_dims = hidden_dims
        self.max_steps = max_steps
        self.tol = tol
        self.batch_size = batch_size
        self.lr = lr
        self.scaling = scaling
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def _fit(self, X: np.ndarray, y: Any, seed: int) -> None:
        self._mixture(seed).first_count(len(X))  # refused now, or after minutes of training
        self._pretrain(X, seed)
        self.history_ = [{**record, "turn": 0} for record in self.history_]
        codes = self._codes(X)
        path = [self._cluster(codes, seed, None)]
        for turn in range(1, self.n_alternations + 1):
            self._learn_features(X, codes, turn, seed)
            codes = self._codes(X)
            path.append(self._cluster(codes, seed, path[-1]))
        self.labels_path_ = np.stack(path)
        if not self.mixture_.converged_:
            tell(
                f"clusters of the codes still split and merged after max_rounds={self.max_rounds}: "
                "raise it, or look at split_merge_history_",
                ConvergenceWarning,
            )

    def _cluster(self, codes: np.ndarray, seed: int, start: np.ndarray | None) -> np.ndarray:
        """Labels by a new mixture of the codes, begun with those of the last one."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # told once, of the last
            self.mixture_ = self._mixture(seed)._fit_rows(codes, None, start=start)
        return self.mixture_.labels_

    def _mixture(self, seed: int) -> DeepDPM:
        settings = {name: getattr(self, name) for name in _MIXTURE}
        return DeepDPM(**settings, random_state=seed, device=self.device, verbose=self.verbose)

    def _learn_features(self, X: np.ndarray, codes: np.ndarray, turn: int, seed: int) -> None:
        """Draw the codes to the mixture's means."""
        centers = self._tensor(self.mixture_.means_[: self.mixture_.n_clusters_])
        spread = float(codes.var(axis=0, dtype=np.float64).sum())
        weight = self.clustering_weight / max(spread, _LEAST)

        def objective(module: Autoencoder, x: Tensor) -> Tensor:
            z = module.encoder(x)
            return (module.decoder(z) - x).square().mean() + weight * kmeans_loss(z, centers)

        records = self._train(
            X, objective, self.alternation_steps, 0, seed + turn, f"features, turn {turn}"
        )
        before = self.n_iter_
        self.history_ += [{**r, "step": r["step"] + before, "turn": turn} for r in records]
        self.n_iter_ = self.history_[-1]["step"]

    @property
    def split_merge_history_(self) -> list[dict[str, Any]]:
        """Moves of the last mixture."""
        return self.mixture_.split_merge_history_

    # --- prediction ---------------------------------------------------------------------------

    def _log_responsibilities(self, X: np.ndarray) -> np.ndarray:
        mixture = self._fitted_mixture
        return mixture._log_responsibilities(self._codes(X))[:, : mixture.n_clusters_]

    @undisturbed
    def score_samples(self, X: Any) -> np.ndarray:
        """Log-likelihood (N,) of the code of each row under their mixture; a low one is an outlier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        rows = read_rows(self, X, reset=False)
        return self._fitted_mixture._log_density(self._codes(rows))

    def _score(self, X: np.ndarray) -> float:
        """Mean log-likelihood a row of the codes under their mixture.

        Codes have no scale of their own, so that scores of different fits cannot be compared.
        """
        return self._fitted_mixture._score(self._codes(X))

    @property
    def _fitted_mixture(self) -> DeepDPM:
        """The mixture, on the device of choice."""
        self.mixture_.device = self.device
        if getattr(self, "n_clusters_", self.mixture_.n_clusters_) != self.mixture_.n_clusters_:
            raise WeightsError(
                f"the model has {self.n_clusters_} clusters, its mixture "
                f"{self.mixture_.n_clusters_}: the card was changed"
            )
        return self.mixture_
