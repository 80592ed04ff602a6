"""Reading a set more than once: what the network has claimed of it, by itself.

    S₀ = points left
    S_j = {i in S_{j−1} : ℓ_i(S_{j−1}) > 0}      ℓ(S): logits of one cluster of the set S
    ℓ_i = min_j ℓ_i(S_j)                         of the looks that count

A network trained on few clusters that sees a crowd may claim two that overlap as one. What it has
claimed is a small set, of the kind it was trained on: looked at again, the two are told apart, and
what the second look leaves out goes back to the points left. All second looks together cost about
as much as the first pass alone: little next to many passes, as much again where there are few.

A look counts if it is sure of both parts: if |ℓ| > 1 for five points of each, and for a twentieth
of the set. Borders that former passes have frayed are left as they are, or strays would become
clusters; so it was on development draws of mixtures of Gaussians, where the rule was chosen.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from asterism.functional.filtering import compact
from asterism.nn.filtering import FilteringNetwork

__all__ = ["Looks", "look"]

_SURE = 1.0  # logit
_FEWEST, _SHARE = 5, 0.05


class Looks(NamedTuple):
    """One cluster of each set, and what it takes to read further rows by the same looks.

    ``contexts`` (B, L, width) and ``memory`` (B, L, 2 · depth, n_inducing, width); a look that does
    not count is the one before it.
    """

    logits: Tensor
    contexts: Tensor
    memory: Tensor


def look(
    network: FilteringNetwork,
    features: Tensor,
    keep: Tensor,
    anchor: Tensor | None = None,
    *,
    looks: int = 1,
) -> Looks:
    """Read sets (B, N, F) of which the points ``keep`` (B, N) are left, each so many times.

    >>> network = FilteringNetwork(dim=2, width=16, n_inducing=4)
    >>> seen = look(network, torch.randn(3, 10, 2), torch.ones(3, 10) > 0, looks=2)
    >>> seen.logits.shape, seen.contexts.shape
    (torch.Size([3, 10]), torch.Size([3, 2, 16]))
    """
    reading = network.remember(features, keep, anchor)
    logits = torch.where(keep, reading.logits, -torch.inf)
    contexts, memory = [reading.context], [reading.memory]
    open_ = torch.ones(len(keep), dtype=torch.bool, device=keep.device)
    for _ in range(looks - 1):
        claimed = logits > 0
        if anchor is not None:  # it belongs to its cluster, whatever its logit
            claimed = claimed.scatter(1, anchor.unsqueeze(1), True)
        claimed = claimed & open_.unsqueeze(1)
        places = torch.arange(keep.shape[1], device=keep.device).expand(keep.shape)
        sets = torch.arange(len(keep), device=keep.device)
        rows, left, places, sets = compact(features, claimed, places, sets)
        context, inducing = contexts[-1].clone(), memory[-1].clone()
        open_ = torch.zeros_like(open_)  # what did not change would be seen the same again
        if len(sets):
            own = None if anchor is None else _place_of(anchor[sets], places, left)
            again = network.remember(rows, left, own)
            narrower = _parts(again.logits, left)
            open_[sets[narrower]] = True
            context[sets[narrower]] = again.context[narrower]
            inducing[sets[narrower]] = again.memory[narrower]
            b, i = (left & narrower.unsqueeze(1)).nonzero(as_tuple=True)
            where = (sets[b], places[b, i])
            logits[where] = torch.minimum(logits[where], again.logits[b, i])
        contexts.append(context)
        memory.append(inducing)
    return Looks(logits, torch.stack(contexts, dim=1), torch.stack(memory, dim=1))


def _parts(logits: Tensor, left: Tensor) -> Tensor:
    """Whether (b,) logits (b, n) part the points left into two, and are sure of both."""
    least = (_SHARE * left.sum(dim=1)).clamp_min(_FEWEST)
    return ((left & (logits > _SURE)).sum(dim=1) >= least) & (
        (left & (logits < -_SURE)).sum(dim=1) >= least
    )


def _place_of(anchor: Tensor, places: Tensor, left: Tensor) -> Tensor:
    """Where the points of these numbers (b,) have come to lie among ``places`` (b, n)."""
    return (left & (places == anchor.unsqueeze(1))).to(torch.uint8).argmax(dim=1)
