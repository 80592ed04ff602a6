"""Clusters one at a time: iterative filtering of a padded batch of sets, and reading its record.

    left ← all points
    until nothing is left, or max_iter:
        ℓ = claim(points left)                 logits of one cluster
        the points with ℓ > 0 take the pass's number as label and leave

Every pass takes at least one point: where the claim is empty the point of the largest logit is
forced in, and a point the claim itself names, an anchor, always is; its equals come along. Data
sets with nothing left leave the batch, and points that were taken leave the computation: what
remains is gathered to the front and cut to the largest number left. Labels are −1 until taken, so
that what max_iter leaves over can be seen and counted.

A row that is read later, against the record of P passes with logits ℓ_1 … ℓ_P, breaks a stick:

    p_k = m_k Π_{j<k} (1 − m_j),   m = sigmoid(ℓ),   rest = Π_j (1 − m_j)

The hard answer is the first pass with ℓ_k > 0, as it was for the points of the set.

Lee, Lee & Teh, "Deep amortized clustering", 2019.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from asterism.functional.mixtures import Mixture

__all__ = [
    "Claim",
    "FilteringPass",
    "FilteringPath",
    "compact",
    "draw_indices",
    "equal_rows",
    "filter_sets",
    "first_claim",
    "group_moments",
    "read_claims",
    "stick_breaking",
    "sum_by_group",
]

_EQUAL = 1e-5
"""Rows this near, for their size, are equal: the same row may differ in its last digits."""

_FLOOR = 1e-3
"""Least standard deviation of a group of rows."""


class Claim(NamedTuple):
    """Logits (b, n) of one cluster of each set; index (b,) of a point that surely belongs to it.

    ``kept`` holds what else is worth keeping of the pass, tensors of b entries.
    """

    logits: Tensor
    anchor: Tensor | None
    kept: dict[str, Tensor]


class FilteringPass(NamedTuple):
    """One pass over one set: the points then left, their logits, and which were taken.

    ``anchor`` is the index of the point sure to be taken, that of the largest logit unless the
    claim named one; ``forced`` says that it was taken against its logit.
    """

    indices: Tensor
    logits: Tensor
    taken: Tensor
    anchor: int
    forced: bool
    kept: dict[str, Tensor]


class FilteringPath(NamedTuple):
    """Pass that took each point of a set (N,), −1 for those left over, and the passes."""

    labels: Tensor
    passes: list[FilteringPass]


def filter_sets(
    claim: Callable[[Tensor, Tensor, Tensor], Claim],
    rows: Tensor,
    keep: Tensor,
    *,
    max_iter: int = 50,
) -> list[FilteringPath]:
    """Filter every set of a batch until nothing is left.

    Parameters
    ----------
    claim : callable
        ``claim(rows (b, n, F), left (b, n), sets (b,))`` names one cluster of each set that is
        still in the batch; ``sets`` are their numbers, ``left`` marks their points.
    rows, keep : Tensor
        The padded batch, (B, N, F) and (B, N).
    max_iter : int
        Most passes.

    Returns
    -------
    list of FilteringPath
        One a set, on the CPU.

    Examples
    --------
    >>> def halves(rows, left, sets):  # claims what lies above the mean
    ...     mean = (rows * left[..., None]).sum(1, keepdim=True) / left.sum(1)[:, None, None]
    ...     return Claim((rows - mean).squeeze(-1), None, {})
    >>> path, = filter_sets(halves, torch.tensor([[[1.0], [9.0], [2.0]]]), torch.ones(1, 3) > 0)
    >>> path.labels
    tensor([2, 0, 1])
    """
    sizes = keep.sum(dim=1).tolist()
    labels = torch.full(keep.shape, -1, dtype=torch.long, device=keep.device)
    paths: list[list[FilteringPass]] = [[] for _ in sizes]
    sets = torch.arange(len(keep), device=keep.device)
    index = torch.arange(keep.shape[1], device=keep.device).expand(keep.shape)
    left = keep
    for number in range(max_iter):
        rows, left, index, sets = compact(rows, left, index, sets)
        if not len(sets):
            break
        found = claim(rows, left, sets)
        logits = torch.where(left, found.logits, -torch.inf)
        anchor = logits.argmax(dim=1) if found.anchor is None else found.anchor
        taken, forced = _take(rows, left, logits, anchor)
        where, what = taken.nonzero(as_tuple=True)
        labels[sets[where], index[where, what]] = number
        counts = left.sum(dim=1).tolist()
        parts = [part[left].cpu().split(counts) for part in (index, logits, taken)]
        sure = index.gather(1, anchor[:, None])[:, 0].tolist()
        kept = {name: value.cpu() for name, value in found.kept.items()}
        for b, (place, against) in enumerate(zip(sets.tolist(), forced.tolist(), strict=True)):
            own = {name: value[b] for name, value in kept.items()}
            indices, said, got = (part[b] for part in parts)
            paths[place].append(FilteringPass(indices, said, got, sure[b], against, own))
        left = left & ~taken
    return [
        FilteringPath(own[mask], passes)
        for own, mask, passes in zip(labels.cpu(), keep.cpu(), paths, strict=True)
    ]


def compact(
    rows: Tensor, left: Tensor, index: Tensor, sets: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Drop the sets with nothing left; bring the points left to the front and cut the others."""
    count = left.sum(dim=1)
    alive = count > 0
    if not alive.all():
        rows, left, index, sets = (part[alive] for part in (rows, left, index, sets))
    largest = int(count.max()) if len(count) else 0
    if largest == left.shape[1] or not len(sets):
        return rows, left, index, sets
    # True before False, each in its old order.
    order = left.to(torch.uint8).argsort(dim=1, descending=True, stable=True)[:, :largest]
    rows = rows.gather(1, order.unsqueeze(-1).expand(-1, -1, rows.shape[-1]))
    return rows, left.gather(1, order), index.gather(1, order), sets


def _take(rows: Tensor, left: Tensor, logits: Tensor, anchor: Tensor) -> tuple[Tensor, Tensor]:
    """Points taken (b, n), and the sets (b,) whose anchor had to be forced in."""
    taken = logits > 0
    forced = ~taken.gather(1, anchor[:, None])[:, 0]
    for b in torch.nonzero(forced).flatten().tolist():
        taken[b] |= equal_rows(rows[b], rows[b, anchor[b]]) & left[b]
    return taken, forced


def equal_rows(rows: Tensor, row: Tensor) -> Tensor:
    """Which of the rows (..., N, F) equal one (..., F), but for rounding; NaN equals nothing.

    >>> equal_rows(torch.tensor([[1.0], [2.0], [1.0 + 1e-7]]), torch.tensor([1.0]))
    tensor([ True, False,  True])
    """
    row = row.unsqueeze(-2)
    allowed = _EQUAL * (1 + row.abs().amax(dim=-1))
    return (rows - row).abs().amax(dim=-1) <= allowed


def draw_indices(left: Tensor, chances: Sequence[torch.Generator]) -> Tensor:
    """Index (b,) of one of the points left (b, n) of every set, uniform, each by its generator.

    >>> draw_indices(torch.tensor([[False, True, False]]), [torch.Generator()])
    tensor([1])
    """
    counts = left.sum(dim=1).tolist()
    drawn = [
        torch.randint(count, (1,), generator=chance)
        for count, chance in zip(counts, chances, strict=True)
    ]
    rank = left.cumsum(dim=1) - 1  # of every point left among these
    return (left & (rank == torch.stack(drawn).to(left.device))).to(torch.uint8).argmax(dim=1)


# --- reading the record ---------------------------------------------------------------------------


def stick_breaking(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Log p_k (..., P) and the log of the rest (...,), from logits of P passes.

    >>> p, rest = stick_breaking(torch.zeros(3))
    >>> p.exp(), rest.exp()
    (tensor([0.5000, 0.2500, 0.1250]), tensor(0.1250))
    """
    log_left = F.pad(F.logsigmoid(-logits).cumsum(dim=-1), (1, 0))  # before each pass, and at last
    return F.logsigmoid(logits) + log_left[..., :-1], log_left[..., -1]


def first_claim(logits: Tensor) -> Tensor:
    """First pass whose logit is positive, (..., P) to (...,); −1 where none is.

    >>> first_claim(torch.tensor([[-1.0, 2.0, 3.0], [-1.0, -2.0, -3.0]]))
    tensor([ 1, -1])
    """
    claimed = logits > 0
    return torch.where(claimed.any(dim=-1), claimed.to(torch.uint8).argmax(dim=-1), -1)


def read_claims(
    logits: Tensor, clusters: Tensor, n_clusters: int, log_mixture: Tensor | None = None
) -> Tensor:
    """Log-responsibilities (N, K) of rows with logits (N, P), pass k being of ``clusters[k]``.

    The rest of the stick is shared out by ``log_mixture`` (N, K), responsibilities by the densities
    of the clusters, where there are any. Where the first claim and the largest share disagree, the
    two shares are exchanged: the label is the likeliest cluster, always.

    >>> read_claims(torch.tensor([[-0.1, 0.1]]), torch.tensor([0, 1]), 2).argmax().item()
    1
    """
    log_p, log_rest = stick_breaking(logits)
    log_r = sum_by_group(log_p, clusters, n_clusters)
    if log_mixture is not None:
        log_r = torch.logaddexp(log_r, log_rest.unsqueeze(-1) + log_mixture)
    first = first_claim(logits)
    row = torch.nonzero(first >= 0).flatten()
    label, top = clusters[first[row]], log_r[row].argmax(dim=-1)
    own, largest = log_r[row, label], log_r[row, top]
    log_r[row, top], log_r[row, label] = own, largest
    return log_r


def sum_by_group(log_p: Tensor, groups: Tensor, n_groups: int) -> Tensor:
    """Log of the sums of exp over the columns of each group: (N, P) to (N, G).

    >>> sum_by_group(torch.zeros(1, 3), torch.tensor([1, 0, 1]), 2).exp()
    tensor([[1., 2.]])
    """
    if torch.equal(groups, torch.arange(n_groups, device=groups.device)):  # each by itself
        return log_p
    largest = log_p.amax(dim=-1, keepdim=True)
    member = F.one_hot(groups, n_groups).to(log_p.dtype)
    return ((log_p - largest).exp() @ member).log() + largest


def group_moments(x: Tensor, labels: Tensor, names: Tensor) -> Mixture:
    """Share, mean and deviation of the rows (N, D) that carry each of the labels (K,)."""
    member = (labels == names[:, None]).to(x.dtype)  # (K, N)
    counts = member.sum(dim=1, keepdim=True)
    means = member @ x / counts
    # Means first, so that squares do not cancel where groups lie far from the origin.
    owner = member.argmax(dim=0)
    variances = member @ (x - means[owner]).square() / counts
    share = counts.squeeze(1) / counts.sum()
    return Mixture(share.log(), means, variances.sqrt().clamp_min(_FLOOR))
