"""Gaussian mixtures with full covariances: maximum likelihood with BIC, and variational Bayes.

    r_ik ∝ exp(c_k) N(x_i; μ_k, Σ_k)

``c_k`` is log π_k under maximum likelihood. The variational posterior adds what it knows of its own
uncertainty (Bishop, "Pattern recognition and machine learning", 2006, section 10.2):

    c_k = E[log π_k] + ½ (E[log|Λ_k|] − D log ν_k) − D / 2β_k − log-determinant already in N

so both kinds predict from the same three arrays.
"""

import math
import warnings
from typing import Any, ClassVar

import numpy as np
from scipy.special import digamma, log_softmax, logsumexp
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

from asterism._validation import Interval, Real, StrOptions, at_least, check_rows
from asterism.base import Clusterer
from asterism.functional.gaussians import gaussian_log_prob

__all__ = ["AutoGaussianMixture", "BayesianMixture"]

_SMALLEST_FRACTION = 1e-6


class _MixtureClusterer(Clusterer):
    """Prediction from ``log_weights_``, ``means_`` and ``precisions_cholesky_``."""

    has_density: ClassVar[bool] = False
    """Whether ``score`` is the mean log-likelihood of a normalised density."""

    _per_cluster: ClassVar[tuple[str, ...]] = ("log_weights_", "means_", "precisions_cholesky_")

    def _joint(self, X: np.ndarray) -> np.ndarray:
        return self.log_weights_ + gaussian_log_prob(X, self.means_, self.precisions_cholesky_)

    def _log_responsibilities(self, X: np.ndarray) -> np.ndarray:
        return log_softmax(self._joint(X), axis=1)

    def _score(self, X: np.ndarray) -> float:
        """Mean log-likelihood a row."""
        return float(logsumexp(self._joint(X), axis=1).mean())

    def _keep(self, model: GaussianMixture, log_weights: np.ndarray) -> None:
        self.log_weights_ = np.maximum(log_weights, -1e6)
        self.means_ = model.means_.astype(np.float64)
        self.precisions_cholesky_ = model.precisions_cholesky_.astype(np.float64)


class AutoGaussianMixture(_MixtureClusterer):
    """scikit-learn's Gaussian mixture; K by the Bayesian information criterion unless given.

    Parameters
    ----------
    n_clusters : int or "auto", default="auto"
        Number of components.
    max_clusters : int, default=15
        Largest number tried, from 1.
    n_init : int, default=1
        Starts of each fit.
    reg_covar : float, default=1e-6
        Added to the diagonal of every covariance; where that is too little to keep one from
        collapsing, this fraction of the mean variance of the columns is.
    random_state : int, RandomState or None, default=None
        Fixes the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
    n_clusters_ : int
    log_weights_, means_, precisions_cholesky_ : ndarray
        The mixture, largest cluster first.
    bics_ : dict
        Criterion by number of components, where the number was chosen.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from asterism import AutoGaussianMixture
    >>> X, _ = make_blobs(300, centers=3, cluster_std=0.5, random_state=0)
    >>> AutoGaussianMixture(random_state=0).fit(X).n_clusters_
    3
    """

    has_density: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Clusterer._parameter_constraints,
        "n_clusters": [at_least(1), StrOptions({"auto"})],
        "max_clusters": [at_least(1)],
        "n_init": [at_least(1)],
        "reg_covar": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_clusters: int | str = "auto",
        *,
        max_clusters: int = 15,
        n_init: int = 1,
        reg_covar: float = 1e-6,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.max_clusters = max_clusters
        self.n_init = n_init
        self.reg_covar = reg_covar
        self.random_state = random_state

    def _fit(self, X: np.ndarray, y: Any, seed: int) -> None:
        X = X.astype(np.float64, copy=False)

        def fitted(n_clusters: int) -> GaussianMixture:
            model = GaussianMixture(
                n_clusters, n_init=self.n_init, reg_covar=self.reg_covar, random_state=seed
            )
            return quietly(model, X)

        if self.n_clusters == "auto":
            self.bics_: dict[int, float] = {}
            # One after the other: the covariances of all at once may not fit into the memory.
            for k in range(1, min(self.max_clusters, len(X) - 1) + 1):
                model = fitted(k)
                self.bics_[k] = float(model.bic(X))
                if k == min(self.bics_, key=self.bics_.__getitem__):
                    best = model
        else:
            check_rows(len(X), int(self.n_clusters))
            best = fitted(int(self.n_clusters))
        with np.errstate(divide="ignore"):
            self._keep(best, np.log(best.weights_))


class BayesianMixture(_MixtureClusterer):
    """scikit-learn's variational Dirichlet-process mixture; unused components fade away.

    Parameters
    ----------
    max_clusters : int, default=15
        Components to start from.
    concentration : float or None, default=None
        Weight concentration of the process; small favours few clusters. None is 1 / max_clusters.
    n_init : int, default=1
        Starts.
    max_iter : int, default=300
        Rounds of variational updates.
    reg_covar : float, default=1e-6
        Added to the diagonal of every covariance; where that is too little to keep one from
        collapsing, this fraction of the mean variance of the columns is.
    random_state : int, RandomState or None, default=None
        Fixes the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
    n_clusters_ : int
        Components that own at least one row.
    log_weights_, means_, precisions_cholesky_ : ndarray
        The mixture, largest cluster first.
    n_iter_ : int
        Rounds until it converged.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from asterism import BayesianMixture
    >>> X, _ = make_blobs(300, centers=3, cluster_std=0.5, random_state=0)
    >>> BayesianMixture(random_state=0).fit(X).n_clusters_ >= 3
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Clusterer._parameter_constraints,
        "max_clusters": [at_least(1)],
        "concentration": [Interval(Real, 0, None, closed="neither"), None],
        "n_init": [at_least(1)],
        "max_iter": [at_least(1)],
        "reg_covar": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        max_clusters: int = 15,
        concentration: float | None = None,
        n_init: int = 1,
        max_iter: int = 300,
        reg_covar: float = 1e-6,
        random_state: Any = None,
    ) -> None:
        self.max_clusters = max_clusters
        self.concentration = concentration
        self.n_init = n_init
        self.max_iter = max_iter
        self.reg_covar = reg_covar
        self.random_state = random_state

    def _fit(self, X: np.ndarray, y: Any, seed: int) -> None:
        model = BayesianGaussianMixture(
            n_components=min(self.max_clusters, len(X) - 1),
            weight_concentration_prior=self.concentration,
            n_init=self.n_init,
            max_iter=self.max_iter,
            reg_covar=self.reg_covar,
            random_state=seed,
        )
        quietly(model, X.astype(np.float64, copy=False))
        self.n_iter_ = int(model.n_iter_)
        self._keep(model, expected_log_weights(model))


def expected_log_weights(model: BayesianGaussianMixture) -> np.ndarray:
    """c_k of the module's header for a fitted Dirichlet-process mixture."""
    taken, left = model.weight_concentration_
    total = digamma(taken + left)
    rest = np.concatenate([[0.0], np.cumsum(digamma(left) - total)[:-1]])
    freedom, dim = model.degrees_of_freedom_, model.means_.shape[1]
    half = 0.5 * (freedom - np.arange(dim)[:, None])
    log_precision = dim * math.log(2.0) + digamma(half).sum(axis=0)
    correction = 0.5 * (log_precision - dim / model.mean_precision_ - dim * np.log(freedom))
    return digamma(taken) - total + rest + correction


def quietly(model: GaussianMixture, X: np.ndarray) -> GaussianMixture:
    """Fit without the warning that a candidate had not converged: it competes all the same.

    Where ``reg_covar`` is too small, in the units of ``X``, to keep a covariance from collapsing,
    the fit is repeated with that fraction of the mean variance of the columns; the variational
    prior, the covariance of all rows, needs it too when columns depend on each other. On numpy
    arrays, whatever array type the user has scikit-learn dispatch on.
    """
    with warnings.catch_warnings(), config_context(array_api_dispatch=False):
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            return model.fit(X)
        except ValueError as error:
            if "ill-defined empirical covariance" not in str(error):
                raise
            fraction = max(model.reg_covar, _SMALLEST_FRACTION)
            floor = max(model.reg_covar, fraction * float(X.var(axis=0).mean()))
            if isinstance(model, BayesianGaussianMixture):
                prior = np.atleast_2d(np.cov(X.T)) + floor * np.eye(X.shape[1])
                model.set_params(covariance_prior=prior)
            return model.set_params(reg_covar=floor).fit(X)
