"""Torch's global generators: borrowed, seeded, and given back as they were.

Modules draw their initial weights, dropout and noise from torch's global generators and accept no
other. A lock keeps threads apart, since they share them.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

__all__ = ["borrowed_generators", "seed_generators"]

_LOCK = threading.RLock()


@contextmanager
def borrowed_generators(device: torch.device | None = None) -> Iterator[None]:
    """Inside the block the generators of the CPU and of ``device`` are ours to seed."""
    kind = "cpu" if device is None else device.type
    forked = (
        {"devices": [device], "device_type": kind} if kind in ("cuda", "xpu") else {"devices": []}
    )
    metal = torch.mps.get_rng_state() if kind == "mps" else None
    with _LOCK, torch.random.fork_rng(**forked):
        try:
            yield
        finally:
            if metal is not None:
                torch.mps.set_rng_state(metal)


def seed_generators(seed: int, device: torch.device | None = None) -> None:
    """Seed the generators of the CPU and of ``device``, and no other's."""
    torch.default_generator.manual_seed(seed)
    if device is None:
        return
    if device.type == "mps":
        torch.mps.manual_seed(seed)
    elif device.type in ("cuda", "xpu"):
        torch.Generator(device)  # fails early where there is no such device
        getattr(torch, device.type).default_generators[device.index or 0].manual_seed(seed)
