"""The one training loop, with what it stands on."""

from asterism.training.loop import train
from asterism.training.plan import TrainingPlan
from asterism.training.sources import ArraySource, PriorSource, derive_seed

__all__ = ["ArraySource", "PriorSource", "TrainingPlan", "derive_seed", "train"]
