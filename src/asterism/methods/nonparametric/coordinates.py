"""Coordinates in which a mixture of full covariances is at ease, however wide the rows.

    reduced     rows along their leading principal axes V (D, q), where there are more columns, or
                rows do not vary along all of them
    whitened    by the covariance W within clusters, see ``functional.pooling``, so that clusters
                are about round and what is expected of them is one number
    y = (x − offset) · factor @ A,   A = V W^−½ / unit
    directions  rows of unit length that point to all sides, such as embeddings: their parts along
                V, about the mean of all, are brought to one length ρ₀, since how much of a row the
                axes leave out says little of where it belongs

The unit makes the mean variance of y one. What the axes leave out is noise, the same in all
directions, as in probabilistic principal components:

    log p(x) = log p(y) + ½ log|AᵀA| − |r|² / 2σ² − (D − q)/2 log 2πσ² + Σ log factor

with r the part of a scaled row outside the axes. Of a direction, y is that of the row brought to
the length ρ₀, and in place of the noise stand normal densities of how long it is along the axes and
outside: of direction and lengths, so that a row of another length is an outlier.

Tipping & Bishop, "Probabilistic principal component analysis", Journal of the Royal Statistical
Society B 1999.
"""

import numpy as np
import torch
from scipy.stats import norm
from sklearn.decomposition import PCA

from asterism.functional.contexts import some_rows
from asterism.functional.niw import Gaussians
from asterism.functional.pooling import whitener
from asterism.functional.scaling import have_one_length, unit_rows
from asterism.methods.nonparametric.conjugate import FLAT, ConjugateMixin

__all__ = ["TurnedMixin"]

_MOST_TOLD = 128  # columns of which covariances are told
_AXIS_ROWS = 20_000  # looked at
_FARTHEST = 1e15
_ALL_SIDES = 0.5  # of the length of directions, which their mean may have


class TurnedMixin(ConjugateMixin):
    """Rows along axes of their own, and a mixture of them told in the user's columns."""

    axes_: np.ndarray | None  # (D, q) A
    noise_: float  # σ² of scaled rows; zero where the axes leave nothing out
    length_: float | None = None  # ρ₀ of directions
    lengths_: np.ndarray | None = None  # (2, 2) mean and deviation, along the axes and outside

    # --- fit ----------------------------------------------------------------------------------

    def _fit_axes(
        self,
        X: np.ndarray,
        most: int,
        seed: int,
        columns: np.ndarray | None = None,
        directions: bool = False,
    ) -> None:
        """Choose at most so many leading axes, of those along which rows vary.

        ``columns`` are the numbers of those that they may turn to, all by default.
        """
        rows = self._scaled(some_rows(X, _AXIS_ROWS, seed))
        n, dim = rows.shape
        varied = float(rows.var(axis=0).mean())
        if not varied > 0:
            return
        columns = np.arange(dim) if columns is None else columns
        with np.errstate(divide="ignore", invalid="ignore"):  # of rows that differ by rounding
            found = PCA(min(most, len(columns), n), random_state=seed).fit(rows[:, columns])
        # Clusters cannot be alike along an axis on which all rows are equal.
        q = max(1, int((found.explained_variance_ > FLAT * varied).sum()))
        if q >= dim:
            return
        self.axes_ = np.zeros((dim, q))
        self.axes_[columns] = found.components_[:q].T
        inside = np.square(rows @ self.axes_).sum()
        left = np.square(rows).sum() - inside
        if directions:
            self.length_ = float(np.sqrt(inside / n))
            lengths = _lengths(rows, rows @ self.axes_)
            least = FLAT * self.length_
            self.lengths_ = np.stack([lengths.mean(axis=0), lengths.std(axis=0) + least], axis=1)
        self.noise_ = max(float(left) / (n * (dim - q)), FLAT * varied)

    def _are_directions(self, X: np.ndarray) -> bool:
        """Whether rows have unit length, up to a common factor, and do not lie on one side."""
        if self.scaling_ == "standard":
            return False
        rows = unit_rows(X) if self.scaling_ == "rows" else X
        if not have_one_length(rows):
            return False
        middle = float(np.median(np.linalg.norm(rows, axis=1)))
        return float(np.linalg.norm(rows.mean(axis=0))) < _ALL_SIDES * middle

    def _whiten(self, covariance: np.ndarray, rows: np.ndarray) -> float:
        """Turn on by what makes the covariance that of round clusters; and the unit of it.

        ``rows`` (M, q) are turned so far.
        """
        axes = whitener(covariance)
        unit = float(np.sqrt((rows @ axes).var(axis=0).mean())) or 1.0
        self.axes_ = (axes if self.axes_ is None else self.axes_ @ axes) / unit
        return unit

    # --- rows ---------------------------------------------------------------------------------

    def _turned(self, X: np.ndarray) -> np.ndarray:
        scaled = self._scaled(X)
        if self.axes_ is None:
            return scaled
        turned = scaled @ self.axes_
        if self.length_ is None:
            return turned
        return turned * self._stretch(self._along(turned))

    def _along(self, turned: np.ndarray) -> np.ndarray:
        """Turned rows (N, q) along orthonormal axes again."""
        # The axes are a product of such axes and of what the QR decomposition has left.
        assert self.axes_ is not None
        return np.linalg.solve(np.linalg.qr(self.axes_)[1].T, turned.T).T

    def _stretch(self, along: np.ndarray) -> np.ndarray:
        """By how much (N, 1) directions (N, q) must be lengthened."""
        assert self.length_ is not None
        lengths = np.linalg.norm(along, axis=1, keepdims=True)
        return self.length_ / np.maximum(lengths, FLAT * self.length_)

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
        if self.lengths_ is not None:
            means, deviations = self.lengths_.T
            lengths = _lengths(scaled, self._along(scaled @ self.axes_))
            return constant + norm.logpdf(lengths, means, deviations).sum(axis=1)
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


def _lengths(rows: np.ndarray, along: np.ndarray) -> np.ndarray:
    """Of rows (N, D) along orthonormal axes, where they are (N, q), and outside them, (N, 2)."""
    inside = np.square(along).sum(axis=1)
    outside = np.maximum(np.square(rows).sum(axis=1) - inside, 0)
    return np.sqrt(np.stack([inside, outside], axis=1))
