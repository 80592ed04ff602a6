"""What a prior over data sets is: something that draws labelled batches from a generator.

All randomness comes from the generator passed in, so that a batch is a pure function of its seed
and can be drawn by any worker, on any rank, in any order.
"""

from typing import Protocol, runtime_checkable

import torch

from asterism.functional.sets import SetBatch

__all__ = ["DatasetPrior", "SetBatch"]


@runtime_checkable
class DatasetPrior(Protocol):
    """A distribution over labelled data sets."""

    def sample(self, batch_size: int, generator: torch.Generator) -> SetBatch:
        """Draw ``batch_size`` data sets."""
        ...
