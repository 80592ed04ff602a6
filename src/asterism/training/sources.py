"""Where training batches come from: a source is a pure function of an integer.

    source(index) -> batch        index = step · shards + shard

Nothing else determines a batch: no worker, no rank, no batch drawn before. So a killed run goes on
with exactly the batches it would have seen, any number of background workers draw the same data,
and two ranks see what one rank with twice the shards would.
"""

import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from asterism.functional.sets import DatasetPrior, SetBatch

__all__ = ["ArraySource", "Indices", "PriorSource", "Source", "derive_seed", "move", "stream"]

Source = Callable[[int], Any]

DATA, NOISE = 0, 1
"""First part of every derived seed: batches and a module's own noise never share a stream."""


def derive_seed(*parts: int) -> int:
    """Independent 63-bit seed for every tuple of non-negative integers of one length.

    >>> derive_seed(0, 1) != derive_seed(1, 0)
    True
    """
    low, high = np.random.SeedSequence(parts).generate_state(2, np.uint32)
    return (int(high) << 32 | int(low)) >> 1


class PriorSource:
    """Fresh data sets from a prior, ``batch_size`` a batch.

    ``prepare(batch)`` turns a batch into what the network reads, where that is work better done by
    the background workers.
    """

    def __init__(
        self,
        prior: DatasetPrior,
        batch_size: int,
        seed: int,
        prepare: Callable[[SetBatch], Any] | None = None,
    ) -> None:
        self.prior = prior
        self.batch_size = batch_size
        self.seed = seed
        self.prepare = prepare

    def __call__(self, index: int) -> Any:
        """Draw the batch that belongs to this index."""
        generator = torch.Generator().manual_seed(derive_seed(DATA, self.seed, index))
        batch = self.prior.sample(self.batch_size, generator)
        return batch if self.prepare is None else self.prepare(batch)


class ArraySource:
    """Minibatches of the rows of one tensor, in a new random order every epoch."""

    def __init__(self, x: Tensor, batch_size: int, seed: int) -> None:
        self.x = x
        self.batch_size = min(batch_size, len(x))
        self.seed = seed
        self._epoch = -1
        self._order = torch.empty(0, dtype=torch.long)

    def __len__(self) -> int:
        """Batches an epoch; the last may be smaller."""
        return -(-len(self.x) // self.batch_size)

    def __call__(self, index: int) -> Tensor:
        """Rows of batch ``index``; epochs follow each other without a break."""
        epoch, batch = divmod(index, len(self))
        if epoch != self._epoch:
            generator = torch.Generator().manual_seed(derive_seed(DATA, self.seed, epoch))
            self._order = torch.randperm(len(self.x), generator=generator).to(self.x.device)
            self._epoch = epoch
        rows = self._order[batch * self.batch_size : (batch + 1) * self.batch_size]
        return self.x[rows]


class _IndexedSource(Dataset[Any]):
    """A source as torch's loader wants it."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def __getitem__(self, index: int) -> Any:
        return self.source(index)


@dataclass(frozen=True)
class Indices:
    """Indices of the batches a rank has still to see, made as they are asked for."""

    start: int
    stop: int
    shards: int = 1
    first: int = 0
    per_rank: int = 1

    def __iter__(self) -> Iterator[int]:
        for step in range(self.start, self.stop):
            for shard in range(self.first, self.first + self.per_rank):
                yield step * self.shards + shard


def move(batch: Any, device: torch.device) -> Any:
    """A batch on a device: anything with ``to``, or a tuple, list or dictionary of such."""
    if hasattr(batch, "to"):
        return batch.to(device)
    if isinstance(batch, Mapping):
        return {name: move(part, device) for name, part in batch.items()}
    if isinstance(batch, tuple | list):
        parts = [move(part, device) for part in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    return batch


def stream(source: Source, indices: Iterable[int], workers: int) -> Iterator[Any]:
    """Batches of ``indices`` in order; with workers, drawn ahead of time in other processes."""
    if workers == 0:
        return map(source, indices)
    loader: DataLoader[Any] = DataLoader(
        _IndexedSource(source),
        batch_size=None,
        sampler=indices,
        num_workers=workers,
        prefetch_factor=4,
        collate_fn=_as_it_is,
        worker_init_fn=_quiet_worker,
        # Without a generator of its own the loader would draw from the global one.
        generator=torch.Generator().manual_seed(0),
    )
    return iter(loader)


def _as_it_is(batch: Any) -> Any:
    """Batches arrive as the source made them; the loader would turn arrays into tensors."""
    return batch


def _quiet_worker(_: int) -> None:
    """Leave Ctrl-C to the main process, and one core to each worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
