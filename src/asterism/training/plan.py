"""How to optimise: a frozen table of settings, checked when it is made."""

from dataclasses import asdict, dataclass
from typing import Any

from asterism.training.optim import OPTIMIZERS, rate_factor

__all__ = ["TrainingPlan"]

_HARMLESS = {"log_every", "checkpoint_seconds", "checkpoint_steps", "workers"}
"""Fields of a plan that may change between a run and its continuation."""


@dataclass(frozen=True)
class TrainingPlan:
    """Everything that decides the final weights but module, source and seed.

    Parameters
    ----------
    steps : int
        Optimiser steps. With ``max_seconds`` a mere upper bound.
    lr, optimizer, weight_decay : float, {"adam", "adamw", "muon"}, float
        The optimiser.
    schedule, warmup, drop_at : {"constant", "cosine", "drop"}, float, float
        Learning rate over progress in [0, 1]; see :mod:`asterism.training.optim`.
    max_seconds : float or None
        Drive the schedule by wall time instead of steps and stop when it is used up. Such runs
        resume, but depend on the machine's speed.
    clip : float or None
        Largest norm of the gradient.
    ema : float or None
        Decay of the moving average of the weights, which then replaces them at the end.
    shards : int or None
        Batches a step, over all ranks; by default one a rank.
    log_every, checkpoint_seconds, checkpoint_steps : int, float, int or None
        Cadence of history records and checkpoints.
    workers : int
        Background processes that draw batches.
    """

    steps: int
    lr: float = 1e-3
    optimizer: str = "adam"
    weight_decay: float = 0.0
    schedule: str = "constant"
    warmup: float = 0.0
    drop_at: float = 0.7
    max_seconds: float | None = None
    clip: float | None = None
    ema: float | None = None
    shards: int | None = None
    log_every: int = 100
    checkpoint_seconds: float = 120.0
    checkpoint_steps: int | None = None
    workers: int = 0

    def __post_init__(self) -> None:
        for name, value in list(vars(self).items()):
            if hasattr(value, "item"):  # a numpy scalar would make the checkpoint unreadable
                object.__setattr__(self, name, value.item())
        if self.optimizer not in OPTIMIZERS:
            raise ValueError(f"optimizer={self.optimizer!r} is not one of {sorted(OPTIMIZERS)}")
        wrong = {
            "steps": self.steps < 0,
            "lr": not self.lr > 0,
            "weight_decay": self.weight_decay < 0,
            "warmup": not 0 <= self.warmup < 1,
            "drop_at": not 0 < self.drop_at <= 1,
            "max_seconds": self.max_seconds is not None and not self.max_seconds > 0,
            "clip": self.clip is not None and not self.clip > 0,
            "ema": self.ema is not None and not 0 < self.ema < 1,
            "shards": self.shards is not None and self.shards < 1,
            "log_every": self.log_every < 1,
            "checkpoint_steps": self.checkpoint_steps is not None and self.checkpoint_steps < 1,
            "workers": self.workers < 0,
        }
        for name in (name for name, is_wrong in wrong.items() if is_wrong):
            raise ValueError(f"{name}={getattr(self, name)} is out of range: see TrainingPlan")
        rate_factor(self.schedule, 0.0)  # refuses an unknown schedule before any work

    def fingerprint(self) -> dict[str, Any]:
        """Settings that a continued run must share with its beginning."""
        unused = set() if self.schedule == "drop" else {"drop_at"}
        harmless = _HARMLESS | unused
        return {name: value for name, value in asdict(self).items() if name not in harmless}
