"""What a method with a posterior over partitions knows besides its labels.

A method that defines ``_sample_partitions(n, seed)``, partitions (n, N) of the rows of ``fit`` and
their log-probabilities (n,), draws ``n_samples`` of them in ``fit`` and keeps

    ``partitions_``           the draws c_1 … c_S, clusters numbered by first appearance
    ``log_probabilities_``    log q(c_s | X), as the method has it
    ``k_posterior_``          p(K), the share of draws with K clusters
    ``confidence_``           expected overlap of a row's cluster with its true one
    ``overall_confidence_``   expected adjusted Rand index of ``labels_``

The names and their meaning are those of :class:`asterism.Asterism`; the expectations are exact
means over the draws, each of which counts the same, however probable: the likelier ones have been
drawn more often. Time and memory are linear in N, except for ``coassignment_``.
"""

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from asterism._validation import at_least, draw_seed
from asterism.exceptions import DataError
from asterism.functional.comparisons import adjusted_rand, by_appearance
from asterism.functional.posterior import (
    CredibleBall,
    central_partition,
    coassignment,
    count_posterior,
    credible_ball,
    row_confidence,
)
from asterism.functional.validity import noise_apart
from asterism.training.surroundings import undisturbed

__all__ = ["MOST_PAIRED", "PosteriorMixin"]

MOST_PAIRED = 5000
"""Most rows whose pairs ``coassignment_`` holds: 100 MB."""


class _TooManyRowsError(DataError, AttributeError):
    """An attribute that would be too large; an ``AttributeError`` too, so that displays skip it."""


class PosteriorMixin:
    """Adds the posterior's summaries to an amortised clusterer; list it before the base class.

    A subclass has the constructor parameter ``n_samples`` (100 partitions by convention) and joins
    our constraint to its own. If its ``_infer`` has drawn ``partitions_`` and
    ``log_probabilities_`` already, those are kept.

    Attributes
    ----------
    partitions_ : ndarray of shape (n_samples, n_rows), int32
        Partitions drawn in ``fit``.
    log_probabilities_ : ndarray of shape (n_samples,)
        Their log-probabilities.
    k_posterior_ : ndarray of shape (largest K + 1,)
        Probability of each number of clusters; the index is K.
    confidence_ : ndarray of shape (n_rows,)
        For each row, the expected overlap (Jaccard index) of its cluster with the true one.
    overall_confidence_ : float
        Expected adjusted Rand index of the partition.
    coassignment_ : ndarray of shape (n_rows, n_rows)
        Probability that two rows share a cluster; made when asked for.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"n_samples": [at_least(1)]}

    n_samples: int
    random_state: Any
    labels_: np.ndarray

    _sample_partitions: Any

    # --- what users ask for -------------------------------------------------------------------

    @property
    @undisturbed
    def coassignment_(self) -> np.ndarray:
        """Probability that two rows of ``fit`` share a cluster, (n_rows, n_rows)."""
        check_is_fitted(self)
        n_rows = self.partitions_.shape[1]
        if n_rows > MOST_PAIRED:
            raise _TooManyRowsError(
                f"coassignment_ of {n_rows:,} rows would take {4e-9 * n_rows**2:.1f} GB, and is "
                f"made for {MOST_PAIRED:,} at most: choose some rows and call "
                "asterism.functional.posterior.coassignment(model.partitions_[:, rows])"
            )
        return coassignment(self.partitions_)

    @undisturbed
    def central_partition(self, loss: str = "vi") -> np.ndarray:
        """Partition, of those drawn, of the smallest expected loss.

        Parameters
        ----------
        loss : {"vi", "binder"}, default="vi"
            Variation of information, or the share of pairs judged wrongly.

        Returns
        -------
        ndarray of shape (n_rows,)
            Clusters numbered by first appearance.
        """
        check_is_fitted(self)
        return central_partition(self.partitions_, loss=loss)

    @undisturbed
    def credible_set(self, level: float = 0.9) -> CredibleBall:
        """Partitions nearest to ``labels_`` that hold together a share of the posterior.

        Parameters
        ----------
        level : float, default=0.9
            Share of the posterior, above 0 and at most 1.

        Returns
        -------
        CredibleBall
            ``partitions``, each once, by their distance to ``labels_``, with ``weights``,
            ``distances`` (variation of information, in bits) and the ball's ``radius``; ``upper``,
            ``lower`` and ``horizontal`` are its bounds: the farthest partitions of the fewest, of
            the most and of any number of clusters.
        """
        check_is_fitted(self)
        return credible_ball(self._answer, self.partitions_, level=level)

    # --- inside -------------------------------------------------------------------------------

    @property
    def _answer(self) -> np.ndarray:
        """The fitted labels as a partition: rows that belong to no cluster are by themselves."""
        return noise_apart(self.labels_, self.labels_ < 0)

    def _settle(self, X: np.ndarray) -> None:
        # Drawn before the rows are labelled, so that a method may take its labels from the draws.
        if not hasattr(self, "partitions_"):
            seed = draw_seed(self.random_state)
            self.partitions_, self.log_probabilities_ = self._sample_partitions(
                self.n_samples, seed
            )
        self.partitions_ = by_appearance(self.partitions_)
        self.log_probabilities_ = np.asarray(self.log_probabilities_, dtype=np.float64)
        super()._settle(X)  # type: ignore[misc]
        self.k_posterior_ = count_posterior(self.partitions_)
        self.confidence_ = row_confidence(self._answer, self.partitions_)
        self.overall_confidence_ = float(adjusted_rand(self._answer, self.partitions_).mean())
