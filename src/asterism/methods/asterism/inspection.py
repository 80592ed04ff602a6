"""Looking into an answer: other partitions, the worth of any partition, what clusters are like.

    assess(X)                     clusters of new rows, how sure they are, and how far from all
    samples(n)                    partitions drawn from the network's belief (from the base class)
    score_partition(X, labels)    expected adjusted Rand index of any labels, fitted or not
    explain()                     columns that set each cluster apart, and its most typical rows

The most typical rows of cluster k are the rows j of the context whose mean similarity P_ji to the
rows i of k is largest. What columns say is summed up at the end of ``fit``, since the table itself
is not kept.
"""

from copy import deepcopy
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from asterism._validation import check_parameters, draw_seed, read_rows
from asterism.exceptions import DataError
from asterism.functional.affinities import Assessment, cluster_affinity
from asterism.functional.contrasts import Moments, cluster_moments, numeric_contrasts
from asterism.functional.samples import sample_partitions
from asterism.functional.validity import expected_agreement, noise_apart
from asterism.methods.asterism import sampling
from asterism.methods.asterism.explanation import ClusterExplanation, Explanation
from asterism.methods.asterism.opinions import Belief, believe
from asterism.metrics._checks import as_labels, encode, is_noise
from asterism.nn.reading import ContextReader
from asterism.training.surroundings import undisturbed

__all__ = ["InspectionMixin"]

_PROTOTYPES = 3


class InspectionMixin:
    """Adds ``assess``, ``score_partition``, ``explain`` and what ``samples`` needs."""

    context_size: int
    views: str
    scaling: str
    tails: str
    random_state: Any

    labels_: np.ndarray
    n_clusters_: int
    confidence_: np.ndarray
    overall_confidence_: float
    k_posterior_: np.ndarray
    similarity_: np.ndarray
    context_indices_: np.ndarray
    context_labels_: np.ndarray

    _chunk: ClassVar[int]
    _load_weights: Any
    _look: Any
    _on_device: Any

    # --- new rows -----------------------------------------------------------------------------

    @undisturbed
    def assess(self, X: Any) -> Assessment:
        """What is known of rows, new ones or those of ``fit``, each by itself.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        Assessment
            ``membership``, as :meth:`predict_proba`; ``labels``; ``confidence``, the expected
            overlap of a row's cluster with the true one; ``outlier``, from 0 for usual rows
            towards 1 for rows far from all.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import make_blobs
        >>> from asterism import Asterism
        >>> X, _ = make_blobs(200, centers=[[0, 0], [8, 0]], random_state=0)
        >>> found = Asterism(random_state=0).fit(X).assess([[0.1, 0.2], [4.0, 90.0]])
        >>> bool(found.outlier[1] > found.outlier[0])
        True
        """
        check_is_fitted(self)
        rows = read_rows(self, X, reset=False)
        seen = [self._look(rows[i : i + self._chunk]) for i in range(0, len(rows), self._chunk)]
        membership, confidence, outlier = map(np.concatenate, zip(*seen, strict=True))
        owned = membership[:, : self.n_clusters_]  # clusters without rows come last
        return Assessment(owned / owned.sum(axis=1, keepdims=True), confidence, outlier)

    # --- other partitions ---------------------------------------------------------------------

    def _sample_partitions(self, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        P = self.similarity_.astype(np.float64)
        return sample_partitions(P, n, seed, counts=self.k_posterior_[1:])

    # --- the worth of any partition -----------------------------------------------------------

    @undisturbed
    def score_partition(self, X: Any, labels: Any) -> float | np.ndarray:
        """Expected adjusted Rand index of given labels with the true clusters of ``X``.

        A validity index that was learned: it compares partitions from anywhere, of any number of
        clusters, one included, with what the network sees in the rows. It needs no ``fit`` and
        changes none.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers: numpy, pandas, polars or torch.
        labels : array-like of shape (n_samples,) or (n_partitions, n_samples)
            One partition or several; integers or names. Rows of noise, -1, are clusters of their
            own.

        Returns
        -------
        float or ndarray of shape (n_partitions,)
            One for a partition beyond doubt, about zero for one made at random.

        Notes
        -----
        Of a table of more than ``context_size`` rows a sample is read, the same at every call as
        long as ``random_state`` is, and the partition is judged on that.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import make_blobs
        >>> from asterism import Asterism
        >>> X, y = make_blobs(200, centers=3, cluster_std=0.5, random_state=0)
        >>> right, merged = Asterism().score_partition(X, [y, np.minimum(y, 1)])
        >>> bool(right > merged)
        True
        """
        check_parameters(self)
        # A blank twin reads the rows, so that the columns of our own fit are not forgotten.
        rows = read_rows(clone(self), X, reset=True)
        several, partitions = _partitions(labels, len(rows))
        if not hasattr(self, "labels_"):
            self._load_weights()
        seen, (P, counts) = self._read_sample(rows)
        scores = [
            expected_agreement(P, noise_apart(codes[seen], noise[seen]), float(counts[0]))
            for codes, noise in partitions
        ]
        return np.array(scores) if several else scores[0]

    def _read_sample(self, X: np.ndarray) -> tuple[np.ndarray, Belief]:
        """Choose a context of any table and read it; row numbers, and what is believed of them."""
        # None is a seed of its own and a generator is copied: scores of two calls are comparable.
        state = 0 if self.random_state is None else deepcopy(self.random_state)
        chance = np.random.RandomState(draw_seed(state))
        sample = sampling.draw_sample(X, self.scaling, self.tails, self.context_size, chance)
        (rows,) = sample.contexts
        (reader,) = ContextReader.read_many(self._on_device(), [rows])
        return sample.indices, believe(reader, rows, self.views).stated

    # --- what clusters are like ---------------------------------------------------------------

    @undisturbed
    def explain(self, top: int = 5) -> Explanation:
        """What sets each cluster apart from the other rows, and its most typical rows.

        Parameters
        ----------
        top : int, default=5
            Most columns to name of a cluster. Those that differ by less than a fifth of their
            standard deviation are left out.

        Returns
        -------
        Explanation
            One entry a cluster; ``print`` shows a table.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from asterism import Asterism
        >>> X = load_iris(as_frame=True).data
        >>> explanation = Asterism(n_clusters=2).fit(X).explain()
        >>> explanation[1].size, explanation[1].contrasts[0].feature
        (50, 'petal length (cm)')
        """
        check_is_fitted(self)
        if isinstance(top, bool) or not isinstance(top, int | np.integer) or top < 1:
            raise DataError(f"top={top!r} must be a number of columns, 1 or more")
        sizes = self.cluster_sizes_
        moments = Moments(
            np.array([len(self.labels_)]),
            self.column_means_,
            self.column_deviations_,
            sizes[:, None],
            self.cluster_means_,
        )
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(len(moments.mean))])
        differing = numeric_contrasts([str(name) for name in names], moments, top=top)
        confidence = np.bincount(self.labels_, self.confidence_) / sizes
        entries = (
            ClusterExplanation(
                cluster=k,
                size=int(sizes[k]),
                share=float(sizes[k] / len(self.labels_)),
                confidence=float(confidence[k]),
                contrasts=contrasts,
                prototypes=tuple(row for row in self.prototypes_[k].tolist() if row >= 0),
            )
            for k, contrasts in enumerate(differing)
        )
        return Explanation(tuple(entries), float(self.overall_confidence_))

    def _describe_clusters(self, X: np.ndarray) -> None:
        """Keep what ``explain`` tells of the rows of ``fit``, in the units of the user."""
        moments = cluster_moments(X, self.labels_, self.n_clusters_)
        self.cluster_sizes_ = moments.cluster_count[:, 0]
        self.cluster_means_ = moments.cluster_mean
        self.column_means_, self.column_deviations_ = moments.mean, moments.deviation
        self.prototypes_ = self._typical_rows()

    def _typical_rows(self) -> np.ndarray:
        """Numbers (K, 3) of the rows most like their cluster, -1 where it has fewer."""
        affinity = cluster_affinity(self.similarity_, self.context_labels_)
        typical = np.full((self.n_clusters_, _PROTOTYPES), -1)
        for k in range(self.n_clusters_):
            # What is known of a row, or a nearer reference, may have moved it elsewhere.
            own = (self.context_labels_ == k) & (self.labels_[self.context_indices_] == k)
            places = np.flatnonzero(own)
            best = places[np.argsort(-affinity[places, k], kind="stable")][:_PROTOTYPES]
            typical[k, : len(best)] = self.context_indices_[best]
        return typical


def _partitions(labels: Any, n_rows: int) -> tuple[bool, list[tuple[np.ndarray, np.ndarray]]]:
    """Whether there are several, and of each the codes and the mask of noise, (N,) both."""
    try:
        array = np.asarray(labels)
    except ValueError as error:
        raise DataError(f"the partitions in labels differ in length: {error}") from error
    several = array.ndim == 2
    if array.ndim not in (1, 2) or array.shape[-1] != n_rows or len(array) == 0:
        raise DataError(
            f"labels has shape {array.shape} for {n_rows} rows: give one label a row, "
            f"({n_rows},), or a partition a row, (n_partitions, {n_rows})"
        )
    found = []
    for number, partition in enumerate(array if several else [array]):
        checked = as_labels(partition, f"labels[{number}]" if several else "labels")
        found.append((encode(checked)[1], is_noise(checked)))
    return several, found
