"""Many data sets of different sizes as one padded batch.

    x (B, N, D)   points; padding rows are zero
    keep (B, N)   True where a row is a point, False where it is padding
    labels (B, N) true cluster of each point, -1 for padding or unknown

Every set network accepts ``keep`` and must give the same answer however much padding follows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from asterism.functional.mixtures import Mixture

__all__ = ["DatasetPrior", "SetBatch", "pad_sets", "size_sorted_chunks", "thin_sets"]


@dataclass(frozen=True)
class SetBatch:
    """B data sets, padded to the size of the largest; ``truth`` is the mixture they came from."""

    x: Tensor
    keep: Tensor
    labels: Tensor | None = None
    truth: Mixture | None = None

    def __post_init__(self) -> None:
        if self.x.ndim != 3 or self.keep.shape != self.x.shape[:2]:
            raise ValueError(
                "a SetBatch holds x of shape (B, N, D) and keep of shape (B, N), got "
                f"{tuple(self.x.shape)} and {tuple(self.keep.shape)}"
            )

    def __len__(self) -> int:
        return len(self.x)

    @property
    def sizes(self) -> Tensor:
        """Number of points of each data set, (B,)."""
        return self.keep.sum(dim=1)

    def to(self, device: torch.device | str) -> "SetBatch":
        """Move to a device."""
        return replace(
            self,
            x=self.x.to(device=device),
            keep=self.keep.to(device=device),
            labels=None if self.labels is None else self.labels.to(device=device),
            truth=None
            if self.truth is None
            else Mixture(*(p.to(device=device) for p in self.truth)),
        )


@runtime_checkable
class DatasetPrior(Protocol):
    """A distribution over labelled data sets.

    All randomness comes from the generator passed in, so that a batch is a pure function of its
    seed and can be drawn by any worker, on any rank, in any order.
    """

    def sample(self, batch_size: int, generator: torch.Generator) -> SetBatch:
        """Draw ``batch_size`` data sets."""
        ...


def pad_sets(sets: Sequence[Tensor]) -> SetBatch:
    """Stack (N_b, D) data sets into one batch.

    >>> batch = pad_sets([torch.ones(2, 3), torch.ones(4, 3)])
    >>> batch.x.shape, batch.sizes
    (torch.Size([2, 4, 3]), tensor([2, 4]))
    """
    x = torch.nn.utils.rnn.pad_sequence(list(sets), batch_first=True)
    sizes = torch.tensor([len(points) for points in sets], device=x.device)
    keep = torch.arange(x.shape[1], device=x.device) < sizes[:, None]
    return SetBatch(x, keep)


def thin_sets(
    batch: SetBatch, most: int | None, generators: Sequence[torch.Generator]
) -> tuple[SetBatch, list[Tensor]]:
    """Leave at most ``most`` points of each data set, drawn by its own generator; labels are lost.

    Also gives the places of what is left, in order, among the points of each data set, on the CPU.

    >>> batch, places = thin_sets(pad_sets([torch.rand(9, 2)]), 4, [torch.Generator()])
    >>> batch.x.shape, len(places[0])
    (torch.Size([1, 4, 2]), 4)
    """
    sizes = batch.sizes.tolist()
    if most is None or max(sizes) <= most:
        return batch, [torch.arange(size) for size in sizes]
    places = [
        torch.arange(size)
        if size <= most
        else torch.randperm(size, generator=chance)[:most].sort().values
        for size, chance in zip(sizes, generators, strict=True)
    ]
    rows = zip(batch.x, batch.keep, places, strict=True)
    return pad_sets([x[keep][place.to(x.device)] for x, keep, place in rows]), places


def size_sorted_chunks(sizes: Sequence[int], max_points: int) -> list[list[int]]:
    """Indices of data sets, smallest first, cut into batches of at most ``max_points`` rows.

    Padding counts: a chunk costs its length times its largest data set. A data set larger than
    ``max_points`` travels alone.

    >>> size_sorted_chunks([5, 1, 4, 2], max_points=8)
    [[1, 3], [2], [0]]
    """
    chunks: list[list[int]] = []
    for index in sorted(range(len(sizes)), key=lambda i: sizes[i]):
        # Sorted by size, so the newcomer sets the padded length.
        if chunks and (len(chunks[-1]) + 1) * sizes[index] <= max_points:
            chunks[-1].append(index)
        else:
            chunks.append([index])
    return chunks
