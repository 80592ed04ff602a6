"""Methods that train a network on the one data set they cluster."""

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from asterism._validation import resolve_device
from asterism.base.contract import Clusterer
from asterism.training.history import Record

__all__ = ["DeepClusterer"]


class DeepClusterer(Clusterer):
    """Holds a module, trained in ``fit``; see :class:`Clusterer` for what a subclass writes.

    A subclass also writes ``_make_module()``, which builds the untrained network from the
    parameters and ``n_features_in_``.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Clusterer._parameter_constraints,
        "device": [str],
        "verbose": ["verbose"],
    }

    device: str
    verbose: int | bool
    module_: nn.Module
    history_: list[Record]

    def _tensor(self, X: np.ndarray) -> Tensor:
        """Rows in single precision on the device of choice."""
        return torch.as_tensor(X, dtype=torch.float32).to(resolve_device(self.device))

    def _on_device(self) -> nn.Module:
        """The module, moved to the device of choice (a pickle may have come from another)."""
        return self.module_.to(resolve_device(self.device))
