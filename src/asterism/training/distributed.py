"""Several processes on one run, started by ``torchrun``.

Outside ``torchrun`` there is one rank and nothing here costs anything.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import distributed as dist

__all__ = ["Ranks", "ranks"]


@dataclass(frozen=True)
class Ranks:
    """Who we are among how many."""

    rank: int = 0
    world: int = 1

    @property
    def leads(self) -> bool:
        """Rank 0 writes checkpoints and history and shows the progress bar."""
        return self.rank == 0

    def largest(self, *values: float) -> list[float]:
        """Largest of each value over the ranks, so that all take the same decision."""
        if self.world == 1:
            return list(values)
        shared = torch.tensor(values, dtype=torch.float64)
        if dist.get_backend() == "nccl":
            shared = shared.cuda()
        dist.all_reduce(shared, op=dist.ReduceOp.MAX)
        return [float(value) for value in shared]

    def mean(self, value: float) -> float:
        """Average over the ranks."""
        if self.world == 1:
            return value
        shared = torch.tensor([value], dtype=torch.float64)
        if dist.get_backend() == "nccl":
            shared = shared.cuda()
        dist.all_reduce(shared)
        return float(shared) / self.world


@contextmanager
def ranks(device: torch.device) -> Iterator[Ranks]:
    """Join the group ``torchrun`` announces in the environment, if any; leave it at the end."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        yield Ranks()
        return
    joined_here = not dist.is_initialized()
    if joined_here:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield Ranks(dist.get_rank(), dist.get_world_size())
    finally:
        if joined_here:
            dist.destroy_process_group()
