"""What methods share whose clusters are Gaussian under a conjugate prior tied to the data.

    Ψ₀ = ``prior_scale`` · diag(variance of the columns),   m₀ their mean
    κ₀ = ``mean_strength``, by default ``prior_scale``: means are spread as the rows are
    ν₀ = ``degrees_of_freedom``, by default D + 2: Ψ₀ is the expected covariance of a cluster

so that neither place nor a common factor of the columns matters; where columns have units of their
own, ``scaling="standard"``.

Covariances are full where there are ten rows for every entry of one and of the mean, D(D + 3) / 2
in all, else diagonal, and isotropic beyond ``MOST_FULL`` columns, unless asked otherwise.
"""

import warnings
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import torch
from scipy.special import log_softmax, logsumexp
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from asterism._validation import Interval, Real, StrOptions, check_rows, read_rows
from asterism.base import Clusterer
from asterism.exceptions import DataError
from asterism.functional.contexts import some_rows
from asterism.functional.niw import COVARIANCES, Gaussians, NormalWishart, Statistics
from asterism.functional.scaling import fit_common_scaling, unit_rows
from asterism.training.surroundings import undisturbed

__all__ = [
    "FLAT",
    "MOST_FULL",
    "ConjugateMixin",
    "ConjugateMixture",
    "checked_start",
    "kmeans_start",
]

MOST_FULL = 20
FLAT = 1e-6
"""What a constant column is given of the mean variance."""

_ROWS_AN_ENTRY = 10
_START_ROWS = 20_000
_ENTRIES = 1 << 23


class ConjugateMixin:
    """Coordinates, the prior in them, and clusters told in the user's units."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "prior_scale": [Interval(Real, 0, None, closed="neither")],
        "covariance": [StrOptions({"auto", *COVARIANCES})],
        "concentration": [Interval(Real, 0, None, closed="neither")],
        "mean_strength": [Interval(Real, 0, None, closed="neither"), None],
        "degrees_of_freedom": [Interval(Real, 0, None, closed="neither"), None],
        "scaling": [StrOptions({"none", "standard", "rows"})],
    }

    prior_scale: float | None
    covariance: str
    concentration: float
    mean_strength: float | None
    degrees_of_freedom: float | None
    scaling: str
    scaling_: str
    offset_: np.ndarray
    factor_: np.ndarray
    covariance_: str

    def _fit_coordinates(self, X: np.ndarray) -> None:
        self.scaling_ = self.scaling
        rows = unit_rows(X) if self.scaling == "rows" else X
        kind = "standard" if self.scaling == "standard" else "none"
        self.offset_, self.factor_ = fit_common_scaling(rows, kind)

    def _scaled(self, X: np.ndarray) -> np.ndarray:
        rows = unit_rows(X) if self.scaling_ == "rows" else X
        return (rows - self.offset_) * self.factor_

    @undisturbed
    def score_samples(self, X: Any) -> np.ndarray:
        """Log-likelihood (N,) of each row under the mixture; a low one tells an outlier."""
        check_is_fitted(self)
        return self._log_density(read_rows(self, X, reset=False))

    def _score(self, X: np.ndarray) -> float:
        """Mean log-likelihood a row."""
        return float(self._log_density(X).mean())

    @abstractmethod
    def _log_density(self, X: np.ndarray) -> np.ndarray: ...

    def _make_prior(self, x: np.ndarray) -> NormalWishart:
        """The prior for scaled rows (N, D)."""
        dim = x.shape[1]
        if self.degrees_of_freedom is not None and self.degrees_of_freedom < dim:
            raise DataError(
                f"degrees_of_freedom={self.degrees_of_freedom} must be at least the {dim} columns: "
                "leave it out for two more than them"
            )
        self.covariance_ = self._covariance_kind(*x.shape)
        variance = x.var(axis=0, dtype=np.float64)
        least = max(FLAT * float(variance.mean()), 1e-12)
        return NormalWishart(
            torch.from_numpy(x.mean(axis=0, dtype=np.float64)),
            torch.from_numpy(self._scale * np.maximum(variance, least)),
            self._scale if self.mean_strength is None else self.mean_strength,
            self.degrees_of_freedom,
            self.covariance_,
        )

    @property
    def _scale(self) -> float:
        """Expected variance within a cluster, as a part of that of all rows."""
        assert self.prior_scale is not None
        return self.prior_scale

    def _covariance_kind(self, n_rows: int, dim: int) -> str:
        if self.covariance != "auto":
            return self.covariance
        if dim > MOST_FULL:
            return "isotropic"
        return "full" if n_rows >= _ROWS_AN_ENTRY * dim * (dim + 3) / 2 else "diagonal"

    def _describe(self, densities: Gaussians) -> tuple[np.ndarray, np.ndarray]:
        """Means and covariances in the user's units."""
        means = densities.mean.numpy() / self.factor_ + self.offset_
        if densities.whitener.dim() == 3:
            root = torch.linalg.inv(densities.whitener).numpy() / self.factor_[:, None]
            return means, root @ root.swapaxes(1, 2)
        return means, (densities.whitener.reciprocal().numpy() / self.factor_) ** 2


class ConjugateMixture(ConjugateMixin, Clusterer):
    """A method whose answer is a mixture of Gaussians, the most probable given its statistics."""

    has_density: ClassVar[bool] = True
    _per_cluster: ClassVar[tuple[str, ...]] = (
        "weights_",
        "means_",
        "covariances_",
        "scaled_means_",
        "whiteners_",
    )

    weights_: np.ndarray
    scaled_means_: np.ndarray
    whiteners_: np.ndarray

    def _keep(self, stats: Statistics, prior: NormalWishart) -> None:
        """Describe the mixture of K clusters with these statistics."""
        k, densities = len(stats.n), prior.mode(stats)
        weights = (stats.n + self.concentration / k) / (stats.n.sum() + self.concentration)
        self.weights_ = weights.numpy()
        self.scaled_means_ = densities.mean.numpy()
        self.whiteners_ = densities.whitener.contiguous().numpy()
        self.means_, self.covariances_ = self._describe(densities)

    def _joint(self, X: np.ndarray) -> np.ndarray:
        densities = Gaussians(
            torch.from_numpy(self.scaled_means_), torch.from_numpy(self.whiteners_)
        )
        x = torch.from_numpy(self._scaled(X).astype(np.float64))
        size = max(1, _ENTRIES // self.scaled_means_.size)  # rows whose distances are held at once
        parts = [densities.log_prob(part) for part in x.split(size)]
        return torch.cat(parts).numpy() + np.log(self.weights_)

    def _log_responsibilities(self, X: np.ndarray) -> np.ndarray:
        return log_softmax(self._joint(X), axis=1)

    def _log_density(self, X: np.ndarray) -> np.ndarray:
        parts = [self._joint(X[i : i + self._chunk]) for i in range(0, len(X), self._chunk)]
        scores = np.concatenate([logsumexp(part, axis=1) for part in parts])
        return scores + np.log(self.factor_).sum()


def checked_start(n_rows: int, n_clusters: int, most: int | None) -> int:
    """The number of clusters to begin with, if it is not too large."""
    check_rows(n_rows, n_clusters, "init_n_clusters")
    if most is not None and n_clusters > most:
        raise DataError(
            f"init_n_clusters={n_clusters} is more than max_clusters={most}: begin with fewer, or "
            "allow more"
        )
    return n_clusters


def kmeans_start(x: np.ndarray, n_clusters: int, seed: int) -> np.ndarray:
    """Labels (N,) of rows (N, D) to begin with, learnt from a sample of many."""
    if n_clusters == 1:
        return np.zeros(len(x), dtype=np.int64)
    rows = some_rows(x, _START_ROWS, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than centres
        kmeans = KMeans(n_clusters, n_init=1, random_state=seed).fit(rows)
    return kmeans.predict(x).astype(np.int64)
