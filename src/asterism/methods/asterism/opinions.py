"""What the network believes of a context, after a second look where the first leaves doubt.

    P = mean of P_v,  p(K) = mean of p_v(K)    over the views v of the same rows

The network has learned to state its belief given one way to measure distances, and that way is a
choice (:mod:`asterism.functional.views`). Where it is sure, so that its best partition is expected
to agree with the truth to nine tenths, or one cluster is as likely as that, nothing else is looked
at. A view that shows nothing says so by p(1) near one, and then hardly counts.
"""

from typing import NamedTuple

import numpy as np

from asterism.functional.decisions import given_several, similarity_tree, tree_scores
from asterism.functional.views import other_views
from asterism.nn.reading import ContextReader

__all__ = ["VIEWS", "Belief", "believe"]

VIEWS = ("auto", "one", "all")
"""Whether to look at other views: where there is doubt, never, always."""

_SURE = 0.9


class Belief(NamedTuple):
    """Of the N rows of a context."""

    similarity: np.ndarray  # (N, N) probability of sharing a cluster
    counts: np.ndarray  # probabilities of K = 1, 2, …

    @property
    def sure(self) -> bool:
        """Whether some partition is beyond reasonable doubt."""
        single = float(self.counts[0])
        P, _ = given_several(self.similarity, self.counts)
        several = (1 - single) * float(tree_scores(similarity_tree(P), P)[1:].max(initial=0.0))
        return max(single, several) >= _SURE


def believe(reader: ContextReader, rows: np.ndarray, views: str = "auto") -> Belief:
    """Belief about the ``rows`` (N, D) of a context that was read, for one of the ``VIEWS``."""
    first = Belief(reader.similarity, reader.counts)
    if views == "one" or len(rows) < 3 or (views == "auto" and first.sure):
        return first
    others = ContextReader.read_many(reader.network, other_views(rows))
    heard = [first, *(Belief(other.similarity, other.counts) for other in others)]
    return Belief(*(np.mean(parts, axis=0) for parts in zip(*heard, strict=True)))
