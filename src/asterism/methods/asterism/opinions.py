"""What the network believes of a context, after a second look where the first leaves doubt.

The network has learned to state its belief given one way to measure distances, and that way is a
choice (:mod:`asterism.functional.views`). Where it is sure, so that its best partition is expected
to agree with the truth to nine tenths, or one cluster so likely that nothing else would be chosen
(``SINGLE_WEIGHT``), nothing else is looked at. Otherwise, with P_1, p_1 the first reading and P_v,
p_v all of them, other views included,

    pooled   P̄ = mean of P_v,  p̄(K) = mean of p_v(K)
    stated   P = σ(0.43 logit P̄ + 0.63 logit P_1 + 0.04),  p(K) ∝ √(p_1(K) p̄(K))

A mean of beliefs is more cautious than any of them, which suits the choice of a partition: chosen
by the pool it is better than by what is stated, on draws of the prior and elsewhere. But the pool
says less than is known. What is stated is nearer to calibrated: its constants are those of the
least log loss on the doubtful ones of two hundred draws of the prior, of 300 rows each
(``benchmarks/opinions.py``).
"""

from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from asterism.functional.decisions import (
    SINGLE_WEIGHT,
    given_several,
    similarity_tree,
    tree_scores,
)
from asterism.functional.views import other_views
from asterism.nn.reading import ContextReader

__all__ = ["CERTAIN", "VIEWS", "Belief", "Beliefs", "believe"]

VIEWS = ("auto", "one", "all")
"""Whether to look at other views: where there is doubt, never, always."""

_SURE = 0.9
_POOLED, _FIRST, _LEVEL = 0.43, 0.63, 0.04
CERTAIN = 1e-4
"""Probabilities nearer to zero or one count as this."""


class Belief(NamedTuple):
    """Of the N rows of a context."""

    similarity: np.ndarray  # (N, N) probability of sharing a cluster
    counts: np.ndarray  # probabilities of K = 1, 2, …

    @property
    def sure(self) -> bool:
        """Whether some partition is beyond reasonable doubt."""
        return self.search()[0]

    def search(self) -> tuple[bool, np.ndarray | None]:
        """Whether some partition is beyond reasonable doubt, and the tree it was sought in."""
        P, odds = given_several(self.similarity, self.counts)
        if SINGLE_WEIGHT * odds >= 1:  # nothing else would be chosen
            return True, None
        tree, several = similarity_tree(P), 1 - float(self.counts[0])
        return several * float(tree_scores(tree, P)[1:].max(initial=0.0)) >= _SURE, tree


class Beliefs(NamedTuple):
    """What to choose by, and what to say."""

    pooled: Belief
    stated: Belief
    tree: np.ndarray | None = None  # of the former, given several clusters, where it was made


def believe(reader: ContextReader, rows: np.ndarray, views: str = "auto") -> Beliefs:
    """Beliefs about the ``rows`` (N, D) of a context that was read, for one of the ``VIEWS``."""
    first = Belief(reader.similarity, reader.counts)
    if views == "one" or len(rows) < 3:
        return Beliefs(first, first)
    if views == "auto":
        sure, tree = first.search()
        if sure:
            return Beliefs(first, first, tree)
    others = ContextReader.read_many(reader.network, other_views(rows))
    heard = [first, *(Belief(other.similarity, other.counts) for other in others)]
    pooled = Belief(*(np.mean(parts, axis=0) for parts in zip(*heard, strict=True)))
    return Beliefs(pooled, _stated(first, pooled))


def _stated(first: Belief, pooled: Belief) -> Belief:
    own, mean = (logit(np.clip(P, CERTAIN, 1 - CERTAIN)) for P, _ in (first, pooled))
    P = expit(_POOLED * mean + _FIRST * own + _LEVEL)
    np.fill_diagonal(P, 1.0)
    counts = np.sqrt(first.counts * pooled.counts)
    return Belief(P, counts / counts.sum())
