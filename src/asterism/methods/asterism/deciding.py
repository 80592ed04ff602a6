"""From what the network says of a context to a partition of it.

one context   its beliefs, after second opinions where there is doubt (``opinions``)
several       the first context's, averaged with the clusters that the others would give it
known         links, classes and numbers of clusters rule out and recalibrate first
ĉ             the partition of the largest expected score, drawn again as clouds where the
              network agrees (``clouds``)
"""

from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from asterism.exceptions import tell
from asterism.functional.affinities import (
    cluster_affinity,
    consensus,
    median_gaps,
)
from asterism.functional.assignments import first_equal
from asterism.functional.constraints import Constraints, choose_constrained
from asterism.functional.decisions import (
    choose_partition,
    given_several,
    restrict_counts,
)
from asterism.functional.guidance import (
    constrain_similarity,
    counts_given_classes,
    recalibrate,
)
from asterism.functional.nearest import reference_gaps
from asterism.functional.validity import expected_agreement
from asterism.methods.asterism import sampling
from asterism.methods.asterism.clouds import draw_clouds
from asterism.methods.asterism.opinions import Belief, believe
from asterism.methods.asterism.rows import RowsMixin
from asterism.nn.reading import ContextReader

__all__ = ["DecisionMixin"]


class DecisionMixin(RowsMixin):
    """Adds the decision that ``fit`` comes to; list it before the base class."""

    n_clusters: int | tuple[int, int] | str
    rule: str
    candidates: str
    refine: str | None
    views: str
    similarity_: np.ndarray
    k_posterior_: np.ndarray
    overall_confidence_: float

    _limits: Any

    def _decide(self, readers: list[ContextReader], sample: sampling.Sample) -> None:
        """Choose the partition of the first context, with the others' advice."""
        self._reader, *others = readers
        pooled, stated, tree = believe(self._reader, self.context_rows_, self.views)
        if others:
            tree = None
            advice = [self._advice(reader) for reader in others]
            pooled, stated = (
                Belief(
                    consensus(P, advice),
                    np.mean([counts, *(reader.counts for reader in others)], axis=0),
                )
                for P, counts in (pooled, stated)
            )
        P, counts = pooled
        heads = first_equal(self.context_rows_)
        constraints = self._known.constraints(self.context_indices_, heads)
        if constraints is not None:  # one cluster, and too few, are ruled out before all else
            P, _ = given_several(P, counts)
            counts = restrict_counts(counts, max(2, self._known.least))
            if self._known.exclusive:
                P = recalibrate(P, self._known.classes[self.context_indices_], self.context_rows_)
                counts = counts_given_classes(counts, *self._known.census)
            P = constrain_similarity(P, constraints)
            stated = Belief(P, counts)
        self.similarity_ = stated.similarity.astype(np.float32)
        low, high = self._limits or (1, len(P))
        self.k_posterior_ = np.append(0.0, restrict_counts(stated.counts, low, min(high, len(P))))
        # No rule for new rows could part equal ones.
        labels = self._partition(P, counts, self._reader, constraints, tree)[heads]
        self.context_labels_ = np.unique(labels, return_inverse=True)[1]
        if self._limits is not None and self.context_labels_.max() + 1 < self._limits[0]:
            tell(
                f"n_clusters={self.n_clusters}, but only {self.context_labels_.max() + 1} distinct "
                "rows: equal rows share a cluster",
                ConvergenceWarning,  # as scikit-learn's k-means has it
            )
        if self.refine == "clouds" and constraints is None:
            self._draw_again(sample.rows, Belief(P, counts))
        self.overall_confidence_ = self._worth(stated, self.context_labels_)
        self.usual_gaps_ = median_gaps(self._reader.gaps, self.context_labels_)
        if others:
            found = self._assess(self._reader.read(self._coordinates.turn(self.reference_rows_)))
            self.reference_membership_, self.reference_confidence_, _ = found
            # Distances are to references from now on, and so is what is usual.
            self.reference_gaps_ = reference_gaps(self.reference_rows_)
            self.usual_gaps_ = median_gaps(self.reference_gaps_, found.labels)

    def _worth(self, belief: Belief, labels: np.ndarray) -> float:
        """Expected adjusted Rand index of a partition of the context, given what was asked for."""
        P, counts = belief
        if self._limits is not None and self._limits[0] > 1:
            P, counts = given_several(P, counts)[0], np.zeros(1)
        return expected_agreement(P, labels, float(counts[0]))

    def _draw_again(self, rows: np.ndarray, belief: Belief) -> None:
        """Draw the clusters as clouds of ``rows``, where they are believed to be as good."""
        rows, context = self._in_clouds(rows), self._in_clouds(self.context_rows_)
        tails = self._coordinates.tails if self.axes_ is None else None
        worth = partial(self._worth, belief)
        clouds = draw_clouds(rows, context, self.context_labels_, worth, tails)
        if clouds is None:
            return
        self.context_labels_ = clouds.log_joint(context).argmax(axis=1)
        self.cloud_log_weights_, self.cloud_means_, self.cloud_factors_ = clouds[:3]
        self.cloud_freedom_ = clouds.freedom
        self.cloud_tails_ = None if clouds.tails is None else np.stack(clouds.tails)

    def _partition(
        self,
        P: np.ndarray,
        counts: np.ndarray,
        reader: ContextReader,
        constraints: Constraints | None = None,
        tree: np.ndarray | None = None,
    ) -> np.ndarray:
        if constraints is not None:
            return choose_constrained(P, constraints, self._limits, counts=counts)
        others = reader.partitions if self.candidates == "classical" else ()
        return choose_partition(
            P, self._limits, rule=self.rule, counts=counts, candidates=list(others), tree=tree
        )

    def _advice(self, reader: ContextReader) -> np.ndarray:
        """Clusters that another context would give to the rows of the first, (N, K)."""
        labels = self._partition(reader.similarity, reader.counts, reader)
        affinity = cluster_affinity(reader.read(self.context_rows_).similarity, labels)
        return affinity / affinity.sum(axis=1, keepdims=True)
