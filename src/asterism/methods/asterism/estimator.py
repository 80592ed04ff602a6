"""One network reads a table and says which rows belong together; the number of clusters is found.

    P_ij = probability that rows i and j share a cluster, by a network trained on synthetic tables
    p(K) = its belief over the number of clusters
    ĉ    = the partition of the largest expected score under both, within what is known
    r_ik ∝ mean of P_ij over the rows j of cluster k; where clusters are like clouds, and the
           network agrees, mostly what clouds fitted to all rows say

The network reads at most ``context_size`` rows together, the context. Of a larger table it reads a
sample that covers rare regions, then every other row by itself, by its relations to that sample.
Tables of more than 20 000 rows are read through several contexts, whose answers are averaged, and
only a few thousand reference rows are read against them; the others follow the nearest reference.
"""

from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from torch import nn

from asterism._validation import (
    CountRange,
    StrOptions,
    at_least,
    check_rows,
    validated_fit,
)
from asterism.base import AmortizedClusterer
from asterism.exceptions import DataError
from asterism.functional.decisions import RULES
from asterism.methods.asterism import sampling
from asterism.methods.asterism.deciding import DecisionMixin
from asterism.methods.asterism.inspection import InspectionMixin
from asterism.methods.asterism.knowledge import Knowledge
from asterism.methods.asterism.opinions import VIEWS
from asterism.nn.pairwise import PairNetwork, relate
from asterism.nn.reading import ContextReader
from asterism.priors import TabularPrior
from asterism.training import PriorSource, TrainingPlan

__all__ = ["Asterism"]

Self = TypeVar("Self", bound="Asterism")

_REFERENCES = 4096
_CONTEXTS = 3  # of a table too large for all of its rows to be read


class Asterism(InspectionMixin, DecisionMixin, AmortizedClusterer):
    """Clusters a table with a pre-trained network; the number of clusters is found.

    Parameters
    ----------
    n_clusters : int, (int, int) or "auto", default="auto"
        Number of clusters, honoured exactly; or the lowest and highest number to choose from.
    rule : {"ari", "vi", "mixed"}, default="ari"
        What the partition should do best by, in expectation; see
        :mod:`asterism.functional.decisions`.
    candidates : {"tree", "classical"}, default="tree"
        Partitions to choose from: cuts of the tree of pair probabilities; or those and the quick
        classical partitions that the network was shown: k-means, as it is, along leading axes,
        under a local metric and in the diffusion map. Not with labels or links.
    refine : {"clouds", None}, default="clouds"
        Whether clusters are drawn again as clouds fitted to all rows, Gaussian or with heavy
        tails, where the network agrees, by the expected adjusted Rand index whatever the
        ``rule``; see :mod:`asterism.methods.asterism.clouds`. Not with labels or links.
    context_size : int, default=512
        Most rows the network reads together. More show finer clusters and take longer. Before it
        says that there is one cluster it reads twice as many, unless ``views="one"``.
    views : {"auto", "one", "all"}, default="auto"
        Whether the network also reads the rows by ranks and along evened-out principal axes, and
        its beliefs are averaged: where the first reading leaves doubt, never, or always; see
        :mod:`asterism.methods.asterism.opinions`. Takes three readings more.
    weights : str or path, default="default"
        Name of shipped weights, or a file.
    scaling : {"standard", "none"}, default="standard"
        Whether columns are brought to unit deviation first.
    tails : {"pull", "keep"}, default="pull"
        Whether columns with heavy tails, of excess kurtosis above five, are pulled in; see
        :mod:`asterism.functional.tails`.
    device : str, default="auto"
        Where to compute: "auto", "cpu", "cuda", ...
    random_state : int, RandomState or None, default=None
        Fixes which rows of a large table make the context.
    verbose : bool or int, default=False
        Show a progress bar while pre-training.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row, 0 the largest.
    n_clusters_ : int
    k_posterior_ : ndarray of shape (41,)
        Probability of each number of clusters, given what was asked; the index is K, and the last
        stands for all from 40 on.
    probability_ : ndarray of shape (n_samples,)
        Probability of each row's cluster, the largest of ``predict_proba``.
    confidence_ : ndarray of shape (n_samples,)
        For each row, the expected overlap (Jaccard index) of its cluster with the true one.
    overall_confidence_ : float
        Expected adjusted Rand index of the partition.
    outlier_score_ : ndarray of shape (n_samples,)
        0 for rows as close to their neighbours as is usual in their cluster, towards 1 for rows
        far from all.
    context_indices_ : ndarray of shape (n_context,)
        Rows that the network read together.
    similarity_ : ndarray of shape (n_context, n_context)
        Probability that two of them share a cluster.
    cluster_means_, cluster_sizes_ : ndarray of shape (n_clusters, n_features), (n_clusters,)
        Mean of every column in each cluster, in the user's units, and its rows.
    column_means_, column_deviations_ : ndarray of shape (n_features,)
        The same over all rows.
    cloud_log_weights_, cloud_means_, cloud_factors_ : ndarray
        The clouds, only where the clusters were drawn as such, in the coordinates the network
        reads (but for ``cloud_tails_``); factors of the precisions, or for round clouds one over
        the scale.
    cloud_freedom_ : float or None
        Degrees of freedom of the clouds, if they have heavy tails; None for Gaussians.
    cloud_tails_ : ndarray of shape (4, n_features) or None
        Columns that are let out again before rows are compared with the clouds, if any: the fields
        of :class:`asterism.functional.tails.Tails`.
    prototypes_ : ndarray of shape (n_clusters, 3)
        Most typical rows of each cluster; -1 where there are fewer.
    module_ : torch.nn.Module
        The network.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from asterism import Asterism
    >>> X, y = make_blobs(300, centers=3, cluster_std=0.5, random_state=0)
    >>> Asterism(random_state=0).fit(X).n_clusters_
    3
    """

    _module_class: ClassVar[type[nn.Module]] = PairNetwork
    _default_weights: ClassVar[str] = "asterism"
    _chunk: ClassVar[int] = 1024
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **AmortizedClusterer._parameter_constraints,
        "n_clusters": [at_least(1), CountRange(), StrOptions({"auto"})],
        "rule": [StrOptions(set(RULES))],
        "candidates": [StrOptions({"tree", "classical"})],
        "refine": [StrOptions({"clouds"}), None],
        "context_size": [at_least(16)],
        "views": [StrOptions(set(VIEWS))],
        "scaling": [StrOptions({"standard", "none"})],
        "tails": [StrOptions({"pull", "keep"})],
    }

    def __init__(
        self,
        n_clusters: int | tuple[int, int] | str = "auto",
        *,
        rule: str = "ari",
        candidates: str = "tree",
        refine: str | None = "clouds",
        context_size: int = 512,
        views: str = "auto",
        weights: str | Path = "default",
        scaling: str = "standard",
        tails: str = "pull",
        device: str = "auto",
        random_state: Any = None,
        verbose: int | bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.rule = rule
        self.candidates = candidates
        self.refine = refine
        self.context_size = context_size
        self.views = views
        self.weights = weights
        self.scaling = scaling
        self.tails = tails
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    # --- training -----------------------------------------------------------------------------

    def _architecture(self, prior: Any) -> dict[str, Any]:
        return {}

    def _default_prior(self) -> TabularPrior:
        return TabularPrior()

    def _default_plan(self) -> TrainingPlan:
        return TrainingPlan(
            steps=20_000, optimizer="adamw", weight_decay=0.01, schedule="cosine", clip=1, ema=0.999
        )

    def _source(self, prior: Any, batch_size: int, seed: int) -> PriorSource:
        return PriorSource(prior, batch_size, seed, relate)

    # --- fit ----------------------------------------------------------------------------------

    @validated_fit
    def fit(
        self: Self, X: Any, y: Any = None, *, must_link: Any = None, cannot_link: Any = None
    ) -> Self:
        """Cluster the rows of ``X``, within what is known of them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers: numpy, pandas, polars or torch.
        y : array-like of shape (n_samples,), optional
            Classes of some rows, -1 where unknown: rows of one class share a cluster, rows of two
            do not. Leave it out to cluster without labels. With labels or links the partition is
            that of the largest expected ARI, whatever the ``rule``.
        must_link, cannot_link : array-like of shape (n_pairs, 2), optional
            Pairs of row numbers that must, or must not, share a cluster.

        Returns
        -------
        self
        """
        return self._fit_rows(X, y, must_link=must_link, cannot_link=cannot_link)

    def fit_predict(self, X: Any, y: Any = None, **knowledge: Any) -> np.ndarray:
        """Cluster of each row; see :meth:`fit`."""
        return self.fit(X, y, **knowledge).labels_

    def _fit(
        self, X: np.ndarray, y: Any, seed: int, must_link: Any = None, cannot_link: Any = None
    ) -> None:
        self._load_weights()
        self._check_set(X)
        self._known = Knowledge.of(len(X), y, must_link, cannot_link)
        if self._limits is not None:
            self._known = self._known.within(self._limits[1])
        self._cluster(X, seed, self.context_size)
        self._make_sure(X, seed)

    def _cluster(self, X: np.ndarray, seed: int, context_size: int) -> None:
        """Choose rows, let the network read them, and decide."""
        sample = self._choose(X, seed, context_size)
        self._decide(ContextReader.read_many(self._network, sample.contexts), sample)

    def _make_sure(self, X: np.ndarray, seed: int) -> None:
        """Read twice the rows before saying that there is one cluster: few rows may hide two."""
        asked = self._limits is not None and self._limits[1] == 1
        alone = self.context_labels_.max() == 0 and not asked
        if alone and self.views != "one" and len(X) > self.context_size:
            self._cluster(X, seed, 2 * self.context_size)

    def _prepare(self, X: np.ndarray) -> None:
        self._check_set(X)

    def _check_set(self, X: np.ndarray) -> None:
        if self._limits is None:
            return
        low = self._limits[0]
        check_rows(len(X), low)
        if low > self.context_size:
            raise DataError(
                f"n_clusters={low} is more than the {self.context_size} rows read together: "
                "raise context_size"
            )

    @property
    def _limits(self) -> tuple[int, int] | None:
        """Lowest and highest number of clusters asked for."""
        if isinstance(self.n_clusters, str):
            return None
        low, high = np.broadcast_to(self.n_clusters, 2)
        return int(low), int(high)

    def _fit_together(self: Self, fitted: list[Self], rows: list[np.ndarray], seed: int) -> None:
        samples = []
        for twin, X in zip(fitted, rows, strict=True):
            twin._known = Knowledge.of(len(X))
            samples.append(twin._choose(X, seed, twin.context_size))
        flat = ContextReader.read_many(
            self._network, [c for each in samples for c in each.contexts]
        )
        for twin, X, sample in zip(fitted, rows, samples, strict=True):
            twin._decide([flat.pop(0) for _ in sample.chosen], sample)
            twin._make_sure(X, seed)
            twin._settle(X)
            del twin._reader  # thousands of them would fill the memory; made anew when asked

    def _choose(self, X: np.ndarray, seed: int, context_size: int) -> sampling.Sample:
        """Choose coordinates, contexts and references."""
        chance = np.random.RandomState(seed)
        known = None
        if len(X) > context_size:
            known = self._known.rows(context_size // 2, chance)
        large = len(X) > sampling.POOL
        sample = sampling.draw_sample(
            X,
            self.scaling,
            self.tails,
            context_size,
            chance,
            n_contexts=_CONTEXTS if large else 1,
            known=known,
        )
        self.offset_, self.factor_, tails, self.axes_ = sample.coordinates
        self.tails_ = None if tails is None else np.stack(tails)
        self.context_indices_ = sample.indices
        if large:
            # The context is among the references, so that what was decided there holds.
            references = chance.choice(len(sample.pool), _REFERENCES, replace=False)
            self.reference_rows_ = sample.scaled[np.union1d(references, sample.chosen[0])]
        self.context_rows_ = sample.contexts[0]
        return sample

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the context as read: it is large, and made anew in a moment."""
        return {name: value for name, value in super().__getstate__().items() if name != "_reader"}
