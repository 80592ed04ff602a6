"""The optimiser and how its learning rate moves.

Progress t runs from 0 to 1, by steps or by wall time. The rate is lr · warm(t) · decay(t):

    warm      t / warmup while t < warmup, then 1
    constant  1
    cosine    ½ (1 + cos π t)
    drop      1 until t reaches ``drop_at``, then 0.1

Adam, AdamW, or Muon for the matrices with AdamW for the rest.
"""

import math
from collections.abc import Iterable

from torch import nn, optim

from asterism.training.muon import MuonAdamW

__all__ = ["OPTIMIZERS", "SCHEDULES", "make_optimizer", "rate_factor"]

SCHEDULES = ("constant", "cosine", "drop")
OPTIMIZERS: dict[str, type[optim.Optimizer]] = {
    "adam": optim.Adam,
    "adamw": optim.AdamW,
    "muon": MuonAdamW,
}
_FUSED_DEVICES = {"cpu", "cuda", "xpu"}


def make_optimizer(
    name: str, parameters: Iterable[nn.Parameter], lr: float, weight_decay: float
) -> optim.Optimizer:
    """The optimiser of this name, fused where every parameter's device has the kernel."""
    parameters = [p for p in parameters if p.requires_grad]
    fused = all(p.device.type in _FUSED_DEVICES for p in parameters)
    options = {"lr": lr, "weight_decay": weight_decay, "fused": fused}
    return OPTIMIZERS[name](parameters, **options)  # type: ignore[arg-type]


def rate_factor(schedule: str, progress: float, warmup: float = 0.0, drop_at: float = 0.7) -> float:
    """Multiply the learning rate by this at ``progress`` in [0, 1].

    >>> [round(rate_factor("cosine", t), 3) for t in (0.0, 0.5, 1.0)]
    [1.0, 0.5, 0.0]
    >>> rate_factor("constant", 0.05, warmup=0.1)
    0.5
    """
    warm = min(1.0, progress / warmup) if warmup > 0 else 1.0
    if schedule == "constant":
        return warm
    if schedule == "cosine":
        return warm * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
    if schedule == "drop":
        return warm * (1.0 if progress < drop_at else 0.1)
    raise ValueError(f"schedule={schedule!r} is not one of {SCHEDULES}")
