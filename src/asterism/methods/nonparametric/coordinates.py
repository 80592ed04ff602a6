"""Coordinates in which a mixture of full covariances is at ease, however wide the rows.

    reduced     rows along their leading principal axes V (D, q), where there are more columns, or
                rows do not vary along all of them
    whitened    by the covariance W within clusters, see ``functional.pooling``, so that clusters
                are about round and what is expected of them is one number
    y = (x − offset) · factor @ A,   A = V W^−½ / unit

The unit makes the mean variance of y one. What the axes leave out is noise, the same in all
directions, as in probabilistic principal components:

    log p(x) = log p(y) + ½ log|AᵀA| − |r|² / 2σ² − (D − q)/2 log 2πσ² + Σ log factor

with r the part of a scaled row outside the axes.

Tipping & Bishop, "Probabilistic principal component analysis", Journal of the Royal Statistical
Society B 1999.
"""

from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.decomposition import PCA
from sklearn.metrics import pairwise_distances_argmin

from asterism._validation import StrOptions, at_least
from asterism.exceptions import DataError
from asterism.functional.niw import Gaussians, NormalWishart
from asterism.functional.pooling import STRENGTHS, Pooled, pool_covariance, whitener
from asterism.methods.nonparametric.conjugate import FLAT, ConjugateMixin

__all__ = ["REFERENCE_SCALE", "TurnedMixin"]

_MOST_COLUMNS, _FEWEST, _ROWS_AN_AXIS = 32, 3, 5
_MOST_TOLD = 128  # columns of which covariances are told
_AXIS_ROWS, _POOL_ROWS = 20_000, 4_000  # looked at for axes, and for the pooled covariance
_FARTHEST = 1e15
_MEAN_STRENGTH = 0.05
_PART = 0.05  # of the variance, what is expected within a cluster
_STEADY = 0.005  # of it, what the pooled covariance is drawn to
REFERENCE_SCALE = 0.005
"""Expected variance within a cluster in the authors' code, for rows of unit length."""


class TurnedMixin(ConjugateMixin):
    """Adds ``n_components`` and the pooled prior to a mixture under a conjugate prior."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ConjugateMixin._parameter_constraints,
        "prior_scale": [*ConjugateMixin._parameter_constraints["prior_scale"], None],
        "prior": [StrOptions({"pooled", "data", "reference"})],
        "n_components": [at_least(1), StrOptions({"auto"}), None],
    }

    prior: str
    n_components: int | str | None
    axes_: np.ndarray | None  # (D, q) A
    noise_: float  # σ² of scaled rows; zero where the axes leave nothing out

    @property
    def _pools(self) -> bool:
        """Whether clusters expect the pooled covariance; only full ones can."""
        return self.prior == "pooled" and self.covariance in ("auto", "full")

    # --- fit ----------------------------------------------------------------------------------

    def _fit_axes(self, X: np.ndarray, seed: int) -> None:
        """Choose the leading axes, if the rows are to be reduced or vary along some only."""
        self.axes_, self.noise_ = None, 0.0
        most = self._most_axes(*X.shape)
        rows = self._scaled(_some(X, _AXIS_ROWS, seed))
        n, dim = rows.shape
        if most >= dim and not self._pools:
            return
        if n < 2 or not (varied := float(rows.var(axis=0).mean())) > 0:
            return
        found = PCA(min(most, dim, n), random_state=seed).fit(rows)
        # Clusters cannot be alike along an axis on which all rows are equal.
        q = max(1, int((found.explained_variance_ > FLAT * varied).sum()))
        if q >= dim:
            return
        self.axes_ = found.components_[:q].T
        left = np.square(rows).sum() - np.square(rows @ self.axes_).sum()
        self.noise_ = max(float(left) / (n * (dim - q)), FLAT * varied)

    def _most_axes(self, n: int, dim: int) -> int:
        """Axes that n rows of so many columns may have."""
        if self.n_components is None:
            return dim
        if not isinstance(self.n_components, str):
            return max(1, min(self.n_components, n - 1))
        # Rows that are few for their axes fall apart by chance.
        return min(_MOST_COLUMNS, max(_FEWEST, n // _ROWS_AN_AXIS)) if self._pools else dim

    def _pool(
        self, X: np.ndarray, n_counted: float, most: int | None, seed: int
    ) -> tuple[Pooled, float]:
        """Whiten by the covariance pooled of some rows, which count for so many; and the unit."""
        rows = self._turned(_some(X, _POOL_ROWS, seed))
        dim, variance = rows.shape[1], rows.var(axis=0)
        steady = np.maximum(variance, max(FLAT * float(variance.mean()), 1e-12))
        found = pool_covariance(
            rows,
            n_counted,
            _STEADY * steady,
            alpha=self.concentration,
            kappa=_MEAN_STRENGTH if self.mean_strength is None else self.mean_strength,
            max_clusters=most,
            strengths=STRENGTHS if self.degrees_of_freedom is None else (self._strength(dim),),
        )
        axes = whitener(found.covariance)
        unit = float(np.sqrt((rows @ axes).var(axis=0).mean())) or 1.0
        self.axes_ = (axes if self.axes_ is None else self.axes_ @ axes) / unit
        return found, unit

    def _strength(self, dim: int) -> float:
        """What the prior is worth, in rows, for the ``degrees_of_freedom`` asked for."""
        assert self.degrees_of_freedom is not None
        if self.degrees_of_freedom <= dim + 1:
            raise DataError(
                f"degrees_of_freedom={self.degrees_of_freedom} must be above {dim + 1}, one more "
                f"than the {dim} axes of the rows: leave it out to have it found, or take "
                "prior='data'"
            )
        return self.degrees_of_freedom - dim - 1

    def _pooled_prior(self, x: np.ndarray, strength: float, unit: float) -> NormalWishart:
        """The prior for turned rows (N, q), whose clusters are as wide as ``unit`` says."""
        self.covariance_ = "full"
        kappa = _MEAN_STRENGTH * self._scale if self.mean_strength is None else self.mean_strength
        return NormalWishart(
            torch.from_numpy(x.mean(axis=0, dtype=np.float64)),
            torch.full((x.shape[1],), self._scale * strength / unit**2, dtype=torch.float64),
            kappa,
            x.shape[1] + 1 + strength,
        )

    @property
    def _scale(self) -> float:
        if self.prior == "reference":
            return REFERENCE_SCALE
        if self.prior_scale is None:
            return 1.0 if self._pools else _PART
        return self.prior_scale

    def _pooled_start(self, X: np.ndarray, found: Pooled, seed: int) -> np.ndarray:
        """Labels (N,) of all rows by the means of the partition the covariance was pooled in."""
        if len(X) <= _POOL_ROWS:
            return found.labels
        rows = self._turned(_some(X, _POOL_ROWS, seed))
        sizes = np.bincount(found.labels)
        means = np.stack([np.bincount(found.labels, column) for column in rows.T], axis=1)
        nearest = pairwise_distances_argmin(self._turned(X), means / sizes[:, None])
        return np.unique(nearest, return_inverse=True)[1]

    # --- rows ---------------------------------------------------------------------------------

    def _turned(self, X: np.ndarray) -> np.ndarray:
        scaled = self._scaled(X)
        return scaled if self.axes_ is None else scaled @ self.axes_

    def _clipped(self, X: np.ndarray) -> np.ndarray:
        """Turned rows; those beyond the range of single precision's squares moved to its end."""
        return np.clip(self._turned(X), -_FARTHEST, _FARTHEST)

    def _single(self, X: np.ndarray) -> np.ndarray:
        """The same in single precision."""
        return self._clipped(X).astype(np.float32)

    def _log_volume(self, X: np.ndarray) -> np.ndarray:
        """What to add (N,) to the log density of the turned rows to have that of the rows."""
        constant = float(np.log(self.factor_).sum())
        if self.axes_ is None:
            return np.full(len(X), constant)
        dim, q = self.axes_.shape
        constant += float(np.linalg.slogdet(self.axes_.T @ self.axes_)[1]) / 2
        if q == dim:
            return np.full(len(X), constant)
        scaled = self._scaled(X)
        outside = scaled - scaled @ self.axes_ @ np.linalg.pinv(self.axes_)
        constant -= (dim - q) / 2 * np.log(2 * np.pi * self.noise_)
        return constant - np.square(outside).sum(axis=1) / (2 * self.noise_)

    def _describe(self, densities: Gaussians) -> tuple[np.ndarray, np.ndarray]:
        """Means and covariances in the user's units; of many columns the variances alone."""
        if self.axes_ is None:
            return super()._describe(densities)
        dim = len(self.axes_)
        back = np.linalg.pinv(self.axes_)  # (q, D)
        means = densities.mean.numpy() @ back / self.factor_ + self.offset_
        full = densities.whitener.dim() == 3
        root = torch.linalg.inv(densities.whitener if full else densities.whitener.diag_embed())
        root = back.T @ root.numpy() / self.factor_[:, None]  # (K, D, q)
        if dim <= _MOST_TOLD:
            outside = (np.eye(dim) - self.axes_ @ back) / np.multiply.outer(*[self.factor_] * 2)
            return means, root @ root.swapaxes(1, 2) + self.noise_ * (outside + outside.T) / 2
        outside = (1 - np.einsum("dq,qd->d", self.axes_, back)) / self.factor_**2
        return means, np.square(root).sum(axis=2) + self.noise_ * outside


def _some(X: np.ndarray, most: int, seed: int) -> np.ndarray:
    """All rows, or so many of them at random."""
    if len(X) <= most:
        return X
    return X[np.random.RandomState(seed).choice(len(X), most, replace=False)]
