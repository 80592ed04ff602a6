"""What clusters are expected to be like before they are found, and where a fit begins.

    pooled      as wide, as like each other and as far apart as the rows say, see
                ``functional.pooling``; the fit begins with the partition in which they said so
    data        a part of the variance of all rows, column by column; begins with k-means
    reference   0.005 on the diagonal whatever the units, κ₀ = 1e-4: that of the authors' code

Only full covariances can be pooled; with others "pooled" is "data".

Axes along which clusters do not differ hide them, since every cluster pays for its place along each
axis. So fewer leading axes are tried on some rows, and those are taken along which the evidence for
clusters, beyond that for a single one, is largest: what the others hold is then the same whatever
the partition. And a flag, a column of two values or that hardly varies, has no variance in some
clusters, which makes them out to be of different shape: it is left out where there are few columns,
and of many it has hardly a part in the leading axes.

Where rows are directions, such as embeddings of unit length, clusters have widths of their own
(``functional.widths``), and a further one is not asked for what more than ten axes could bring:
classes of embeddings that resemble each other differ along few, however many all need together.
"""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.decomposition import PCA
from sklearn.metrics import pairwise_distances_argmin

from asterism._validation import Interval, Real, StrOptions, at_least
from asterism.exceptions import DataError
from asterism.functional.contexts import some_rows
from asterism.functional.niw import NormalWishart
from asterism.functional.pooling import (
    MEAN_STRENGTHS,
    STRENGTHS,
    Pooled,
    Shape,
    pool_covariance,
    whitener,
)
from asterism.functional.widths import OwnWidths
from asterism.methods.nonparametric.conjugate import (
    FLAT,
    ConjugateMixin,
    checked_start,
    kmeans_start,
)
from asterism.methods.nonparametric.coordinates import TurnedMixin
from asterism.training.threads import one_thread

__all__ = ["ExpectationMixin"]

_MOST_AXES, _FEWEST_AXES, _ROWS_AN_AXIS = 32, 3, 5
_FEWER_AXES = (8, 12, 16, 24)
_POOL_ROWS, _TRIAL_ROWS = (
    4_000,
    1_500,
)  # in which the covariance is pooled, and numbers of axes tried
_DIRECTED_AXES = 10  # along which clusters of directions may differ
_SPREADS = (0.0, 0.5, 1.0)  # τ, of the widths of their clusters
_TIED = 0.9  # of the rows, equal in a column that is left out
_PART = 0.05  # of the variance, what is expected within a cluster
_STEADY = 0.005  # of it, what the pooled covariance is drawn to
_REFERENCE_SCALE, _REFERENCE_KAPPA = 0.005, 1e-4
_MOST_STARTS, _ROWS_A_START = 50, 50


class ExpectationMixin(TurnedMixin):
    """Adds ``prior``, ``n_components``, and what decides on the number of clusters."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ConjugateMixin._parameter_constraints,
        "init_n_clusters": [at_least(1), StrOptions({"auto"})],
        "max_clusters": [at_least(1), None],
        "prior": [StrOptions({"pooled", "data", "reference"})],
        "prior_scale": [*ConjugateMixin._parameter_constraints["prior_scale"], None],
        "parsimony": [Interval(Real, 0, None, closed="left")],
        "coarsening": [Interval(Real, 0, None, closed="neither"), None],
        "n_components": [at_least(1), StrOptions({"auto"}), None],
    }

    init_n_clusters: int | str
    max_clusters: int | None
    prior: str
    parsimony: float
    coarsening: float | None
    row_weight_: float
    n_components: int | str | None

    def first_count(self, n_rows: int) -> int:
        """Clusters that k-means begins a fit of so many rows with."""
        if isinstance(self.init_n_clusters, str):
            most = _MOST_STARTS if self.max_clusters is None else self.max_clusters
            return max(1, min(_MOST_STARTS, most, n_rows // _ROWS_A_START))
        return checked_start(n_rows, self.init_n_clusters, self.max_clusters)

    def _begin(
        self, X: np.ndarray, start: np.ndarray | None, seed: int
    ) -> tuple[np.ndarray, NormalWishart, np.ndarray, Shape | None]:
        """Rows (N, q) as the net reads them, the prior for them, and labels (N,) to begin with.

        And what a single cluster is expected to be like, if not as others.
        """
        self._fit_coordinates(X)
        self.axes_, self.noise_, self.length_, self.lengths_ = None, 0.0, None, None
        most = self._most_axes(*X.shape)
        chooses = self._pools and self.n_components == "auto"
        columns = _spread_columns(some_rows(X, _POOL_ROWS, seed)) if chooses else None
        directions = self._pools and most < X.shape[1] and self._are_directions(X)
        if self._pools or most < X.shape[1]:
            self._fit_axes(X, most, seed, columns, directions)
        self.row_weight_ = self._temper(len(X))
        if chooses:
            self._leave_out_axes(X, seed, columns)
        if self._pools:
            return self._begin_pooled(X, start, seed)
        x = self._single(X)
        if start is None:
            start = kmeans_start(x, self.first_count(len(X)), seed)
        return x, self._make_prior(x), start, None

    def _begin_pooled(
        self, X: np.ndarray, start: np.ndarray | None, seed: int
    ) -> tuple[np.ndarray, NormalWishart, np.ndarray, Shape | None]:
        rows = self._turned(some_rows(X, _POOL_ROWS, seed))
        found = self._pool(rows, len(X))
        unit = self._whiten(found.shape.covariance, rows)
        axes = whitener(found.shape.covariance) / unit
        single = found.single._replace(
            covariance=self._scale * axes.T @ found.single.covariance @ axes,
            mean_strength=self._kappa(found.single),
        )
        x = self._single(X)
        prior = self._pooled_prior(x, found.shape, unit)
        if start is None and self.init_n_clusters != "auto":
            start = kmeans_start(x, self.first_count(len(X)), seed)
        elif start is None:
            start = found.labels
            if len(X) > len(rows):
                start = _by_nearest_mean(x, some_rows(x, _POOL_ROWS, seed), start)
        return x, prior, start, single

    @one_thread()
    def _pool(self, rows: np.ndarray, n_rows: int, quick: bool = False) -> Pooled:
        """What turned rows (M, q), a sample of so many, say of their clusters."""
        dim, variance = rows.shape[1], rows.var(axis=0)
        steady = np.maximum(variance, max(FLAT * float(variance.mean()), 1e-12))
        return pool_covariance(
            rows,
            min(n_rows * self.row_weight_, len(rows)),  # which tell no more than they are
            _STEADY * steady,
            alpha=self.concentration,
            parsimony=self.parsimony,
            max_clusters=self.max_clusters,
            strengths=STRENGTHS if self.degrees_of_freedom is None else (self._strength(dim),),
            mean_strengths=MEAN_STRENGTHS if self.mean_strength is None else (self.mean_strength,),
            spreads=(0.0,) if self.length_ is None else _SPREADS,
            n_axes=self._told_apart_along(dim),
            quick=quick,
        )

    def _leave_out_axes(self, X: np.ndarray, seed: int, columns: np.ndarray | None) -> None:
        """Keep those of the leading axes along which the rows speak loudest for clusters."""
        rows = self._turned(some_rows(X, _TRIAL_ROWS, seed))
        dim = rows.shape[1]
        fewer = [q for q in _FEWER_AXES if q + 2 < dim]  # one or two less gain nothing
        if not fewer or not rows.var() > 0:
            return
        along = PCA(random_state=seed).fit_transform(rows)
        gains = {}
        for q in (dim, *fewer):
            part = along[:, :q]
            part = part if self.length_ is None else part * self._stretch(part)
            gains[q] = self._pool(part, len(X), quick=True).gain
        best = max(gains, key=lambda q: gains[q])
        if best < dim:
            self._fit_axes(X, best, seed, columns, self.length_ is not None)

    def _told_apart_along(self, dim: int) -> int | None:
        """Axes, of so many, along which a further cluster may differ; None is all."""
        return None if self.length_ is None else min(dim, _DIRECTED_AXES)

    @property
    def _pools(self) -> bool:
        """Whether the prior is pooled: one of single variances has no covariance to pool."""
        return self.prior == "pooled" and self.covariance in ("auto", "full")

    def _most_axes(self, n: int, dim: int) -> int:
        """Axes that n rows of so many columns may have."""
        if self.n_components is None:
            return dim
        if not isinstance(self.n_components, str):
            return max(1, min(self.n_components, n - 1))
        # Rows that are few for their axes fall apart by chance.
        return min(_MOST_AXES, max(_FEWEST_AXES, n // _ROWS_AN_AXIS)) if self._pools else dim

    def _temper(self, n_rows: int) -> float:
        """What each of so many rows counts for."""
        return 1.0 if self.coarsening is None else min(1.0, self.coarsening / n_rows)

    # --- priors -------------------------------------------------------------------------------

    @property
    def _scale(self) -> float:
        if self.prior_scale is not None:
            return self.prior_scale
        if self.prior == "reference":
            return _REFERENCE_SCALE
        return 1.0 if self._pools else _PART

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

    def _pooled_prior(self, x: np.ndarray, shape: Shape, unit: float) -> NormalWishart:
        """The prior for turned rows (N, q), whose clusters are as wide as ``unit`` says."""
        self.covariance_ = "full"
        expected = (
            torch.from_numpy(x.mean(axis=0, dtype=np.float64)),
            torch.full((x.shape[1],), self._scale * shape.strength / unit**2, dtype=torch.float64),
            self._kappa(shape),
            x.shape[1] + 1 + shape.strength,
        )
        if shape.spread:
            return OwnWidths(*expected, spread=shape.spread)
        return NormalWishart(*expected)

    def _kappa(self, shape: Shape) -> float:
        return shape.mean_strength * (self._scale if self.mean_strength is None else 1.0)

    def _make_prior(self, x: np.ndarray) -> NormalWishart:
        prior = super()._make_prior(x)
        if self.prior == "reference":
            kappa = _REFERENCE_KAPPA if self.mean_strength is None else self.mean_strength
            scale = torch.full_like(prior.scale, self._scale)
            return replace(prior, scale=scale, kappa=kappa)
        return prior

    def _rescaled(self, prior: NormalWishart, factor: float) -> NormalWishart:
        """The prior of another ``prior_scale``, on which κ₀ may depend too."""
        tied = self.prior != "reference" and self.mean_strength is None
        kappa = prior.kappa * factor if tied else prior.kappa
        return replace(prior, scale=prior.scale * factor, kappa=kappa)

    def _fit_coordinates(self, X: np.ndarray) -> None:
        super()._fit_coordinates(X)
        if self.prior == "reference" and self.scaling != "standard":
            self.factor_ = np.ones(X.shape[1])  # its scale is in the rows' own units


def _spread_columns(rows: np.ndarray) -> np.ndarray | None:
    """Numbers of the columns that are no flags; None if all or none are, or there are many columns.

    A flag has two values, or the same one in more rows than ``_TIED``. Columns without any variance
    are no matter: there is no axis along them.
    """
    n, dim = rows.shape
    if dim > _MOST_AXES:
        return None
    counts = [np.unique(column, return_counts=True)[1] for column in rows.T]
    most, values = np.array([(count.max(), len(count)) for count in counts]).T
    spread = np.flatnonzero(((most < _TIED * n) & (values > 2)) | (values == 1))
    return spread if (most[spread] < n).any() and len(spread) < dim else None


def _by_nearest_mean(x: np.ndarray, sample: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Labels (N,) of rows by the nearest mean of a labelled sample of them."""
    sizes = np.bincount(labels)
    means = np.stack([np.bincount(labels, column) for column in sample.T], axis=1)
    nearest = pairwise_distances_argmin(x, (means / sizes[:, None]).astype(x.dtype))
    return np.unique(nearest, return_inverse=True)[1]
