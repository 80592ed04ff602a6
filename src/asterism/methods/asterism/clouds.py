"""Clusters drawn again as clouds, with all rows, where the network agrees.

The network decides on a few hundred rows, its context. Where clusters overlap, many more rows are
needed to say where one ends and the next begins, and a plain model says it well:

    round    N(μ_k, σ² I), all clusters of equal weight: by EM, or by k-means
    tailed   Student's t with ν degrees of freedom around μ_k, otherwise the same: by EM; of the
             rows as they are read, and of those whose heavy columns are let out again (``tails``)
    full     N(μ_k, Σ_k) with weights π_k; where every cluster has rows enough for Σ_k

All begin with the clusters of the context and are fitted to all rows that are at hand. A cloud
that runs away from the cluster it began with is noticed by the network: the one with the
smallest Bayesian information criterion is taken among those whose partition of the context is worth
nearly what the network's own is: with E that worth, its expected adjusted Rand index, less by a
share of ¼ (1 − E) at most, so that the surer the network is, the less it gives way. For shapes that
are no clouds none is taken, and all stays as the network said.

    r_ik ∝ π_k p(x_i; cloud k),   membership = 4/5 r_ik + 1/5 of what the network says
"""

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax, logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from asterism.functional.gaussians import fit_round, gaussian_log_prob, round_log_prob
from asterism.functional.students import fit_tailed, tailed_log_prob
from asterism.functional.tails import Tails

__all__ = ["CLOUD_SHARE", "Clouds", "draw_clouds"]

CLOUD_SHARE = 0.8
"""What the clouds count for in a row's membership, beside the network."""

_YIELD = 0.25  # of the doubt: share of its worth that the network gives way
_MOST_COLUMNS = 32  # with covariances of their own
_FLOOR = 1e-3  # of the mean variance: least variance in any direction
_STEPS = 60


class Clouds(NamedTuple):
    """One a cluster; ``factors`` are those of the precisions, or one number a cloud."""

    log_weights: np.ndarray  # (K,)
    means: np.ndarray  # (K, D)
    factors: np.ndarray  # (K, D, D), or (K,) where clouds are round
    freedom: float | None = None  # of Student's t; None for Gaussians
    tails: Tails | None = None  # of the columns that are let out before rows are compared

    def log_joint(self, X: np.ndarray) -> np.ndarray:
        """Log π_k p(x_i; cloud k) of rows (Q, D), (Q, K), a density of the rows as they are."""
        thinned = np.zeros(len(X))
        if self.tails is not None:
            X, thinned = self.tails.release(X)
        if self.freedom is not None:
            log_p = tailed_log_prob(X, self.means, self.factors, self.freedom)
        elif self.factors.ndim == 1:
            log_p = round_log_prob(X, self.means, self.factors)
        else:
            log_p = gaussian_log_prob(X, self.means, self.factors)
        return self.log_weights + log_p + thinned[:, None]

    def responsibilities(self, X: np.ndarray) -> np.ndarray:
        """Chance (Q, K) of each cloud to have brought forth a row."""
        return np.exp(log_softmax(self.log_joint(np.asarray(X, dtype=np.float64)), axis=1))

    def criterion(self, X: np.ndarray) -> float:
        """Bayesian information criterion on rows (N, D); the smaller the better."""
        k, dim = self.means.shape
        # Round clouds share one variance, and their tails, and have no weights of their own.
        own = dim if self.factors.ndim == 1 else dim + dim * (dim + 1) / 2 + 1
        n_parameters = k * own + (1 + (self.freedom is not None) if self.factors.ndim == 1 else -1)
        return float(n_parameters * np.log(len(X)) - 2 * logsumexp(self.log_joint(X), axis=1).sum())


def draw_clouds(
    X: np.ndarray,
    context: np.ndarray,
    labels: np.ndarray,
    worth: Callable[[np.ndarray], float],
    tails: Tails | None = None,
) -> Clouds | None:
    """Clouds for the clusters ``labels`` (M,) of a context (M, D), fitted to rows X (N, D).

    ``worth`` tells the expected score of a partition of the context, ``tails`` how heavy columns
    were pulled in. None where no clouds agree with the network, or there is a single cluster.
    """
    n_clusters = int(labels.max()) + 1
    if n_clusters == 1:
        return None
    X, context = X.astype(np.float64), context.astype(np.float64)
    pulled = tails is not None and tails.pinch.any()
    own = worth(labels)
    least = own * (1 - _YIELD * (1 - own))
    agreed = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        drawings = (
            _round(X, context, labels, soft=True),
            _round(X, context, labels, soft=False),
            _tailed(X, context, labels),
            _tailed(X, context, labels, tails) if pulled else None,
            _full(X, context, labels),
        )
        for clouds in drawings:
            if clouds is None:
                continue
            drawn = clouds.log_joint(context).argmax(axis=1)
            if len(np.unique(drawn)) == n_clusters and worth(drawn) >= least:
                agreed.append(clouds)
    return min(agreed, key=lambda clouds: clouds.criterion(X), default=None)


def _round(X: np.ndarray, context: np.ndarray, labels: np.ndarray, *, soft: bool) -> Clouds:
    begun = _means(context, labels)
    means, deviation = fit_round(X, begun, soft=soft, floor=_floor(X), n_steps=_STEPS)
    return _alike(means, deviation)


def _tailed(
    X: np.ndarray, context: np.ndarray, labels: np.ndarray, tails: Tails | None = None
) -> Clouds:
    if tails is not None:
        (X, _), (context, _) = tails.release(X), tails.release(context)
    begun = _means(context, labels)
    # A few cells far out would raise the floor above the clouds.
    middle = np.median(np.abs(X - np.median(X, axis=0)), axis=0)
    floor = max(_FLOOR * float(np.mean(middle**2)), 1e-12)
    means, scale, freedom = fit_tailed(X, begun, floor=floor, n_steps=_STEPS)
    return _alike(means, scale)._replace(freedom=freedom, tails=tails)


def _alike(means: np.ndarray, scale: float) -> Clouds:
    """Clouds of one size and weight."""
    k = len(means)
    return Clouds(np.full(k, -np.log(k)), means, np.full(k, 1 / scale))


def _means(context: np.ndarray, labels: np.ndarray) -> np.ndarray:
    member = np.eye(int(labels.max()) + 1)[labels]
    return member.T @ context / member.sum(axis=0)[:, None]


def _full(X: np.ndarray, context: np.ndarray, labels: np.ndarray) -> Clouds | None:
    dim, sizes = X.shape[1], np.bincount(labels)
    if dim > _MOST_COLUMNS or sizes.min() < dim + 2:
        return None
    means = _means(context, labels)
    ridge = _floor(X) * np.eye(dim)
    covariances = [np.atleast_2d(np.cov(context[labels == k].T)) for k in range(len(sizes))]
    model = GaussianMixture(
        len(sizes),
        weights_init=sizes / sizes.sum(),
        means_init=means,
        precisions_init=np.linalg.inv(np.stack(covariances) + ridge),
        reg_covar=_floor(X),
        max_iter=_STEPS,
        tol=1e-4,
        random_state=0,
    )
    try:
        model.fit(X)
    except ValueError:  # a cloud collapsed: no model of these rows
        return None
    return Clouds(
        np.log(np.maximum(model.weights_, 1e-300)), model.means_, model.precisions_cholesky_
    )


def _floor(X: np.ndarray) -> float:
    return max(_FLOOR * float(X.var(axis=0).mean()), 1e-12)
