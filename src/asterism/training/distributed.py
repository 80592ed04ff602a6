"""Several processes on one run, started by ``torchrun``.

Outside ``torchrun`` there is one rank and nothing here costs anything. Inside it, only training
that asks for it shares its gradients: every process may fit models of its own.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import distributed as dist

__all__ = ["Ranks", "own_device", "ranks", "world_size"]


@dataclass(frozen=True)
class Ranks:
    """Who we are among how many; collectives run on ``device``."""

    rank: int = 0
    world: int = 1
    device: torch.device | None = None

    @property
    def leads(self) -> bool:
        """Rank 0 writes checkpoints and history and shows the progress bar."""
        return self.rank == 0

    def largest(self, *values: float) -> list[float]:
        """Largest of each value over the ranks, so that all take the same decision."""
        return self._reduce(values, dist.ReduceOp.MAX) if self.world > 1 else list(values)

    def mean(self, value: float) -> float:
        """Average over the ranks."""
        return self._reduce([value], dist.ReduceOp.SUM)[0] / self.world if self.world > 1 else value

    def _reduce(self, values: Sequence[float], operation: Any) -> list[float]:
        shared = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(shared, op=operation)
        return shared.tolist()


def world_size() -> int:
    """Processes that ``torchrun`` announces in the environment; 1 outside it."""
    return int(os.environ.get("WORLD_SIZE", "1")) if "RANK" in os.environ else 1


def own_device(device: torch.device) -> torch.device:
    """The accelerator of this process, where several share the work."""
    if world_size() > 1 and str(device) == "cuda":
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    return device


@contextmanager
def ranks(device: torch.device, active: bool = True) -> Iterator[Ranks]:
    """Join the group ``torchrun`` announces, if any and if asked to; leave it at the end."""
    if not active or world_size() == 1:
        yield Ranks()
        return
    joined_here = not dist.is_initialized()
    if joined_here:
        if device.type == "cuda":
            torch.cuda.set_device(device)
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        shared = device if dist.get_backend() == "nccl" else torch.device("cpu")
        yield Ranks(dist.get_rank(), dist.get_world_size(), shared)
    finally:
        if joined_here:
            dist.destroy_process_group()
