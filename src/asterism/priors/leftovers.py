"""Data sets of which some clusters have been taken already: what a network that filters meets next.

    y*           likeliest true component of each point (``functional.oracles``)
    taken        each cluster with probability ½, but for that of one point at random
    points       those of y* in a taken cluster are gone, the others have y* for label

So a cluster that overlapped a taken one has an edge cut off, and strays of the taken one, which lay
nearer to it, belong to it now. A network that has never seen either makes clusters of its own of
them.
"""

from dataclasses import replace

import torch
from torch import Tensor

from asterism.functional.oracles import oracle_labels
from asterism.functional.sets import SetBatch

__all__ = ["take_clusters"]


def take_clusters(batch: SetBatch, chosen: Tensor, generator: torch.Generator) -> SetBatch:
    """Take some clusters away from the ``chosen`` (B,) data sets, which must have their truth.

    What is left has no true mixture any more; data sets keep their places, with gaps.
    """
    nearest = oracle_labels(batch)
    b, k = len(batch), int(nearest.max()) + 1
    taken = (torch.rand(b, k, generator=generator) < 0.5) & chosen.unsqueeze(1)
    point = torch.multinomial(batch.keep.float(), 1, generator=generator)
    taken.scatter_(1, nearest.gather(1, point), False)
    keep = batch.keep & ~taken.gather(1, nearest.clamp_min(0))
    assert batch.labels is not None  # the oracle has asked
    labels = torch.where(chosen.unsqueeze(1), nearest, batch.labels)
    return replace(batch, keep=keep, labels=torch.where(keep, labels, -1), truth=None)
