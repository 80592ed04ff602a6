"""Methods that train a network on the one data set they cluster."""

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from asterism._validation import resolve_device
from asterism.base.contract import Clusterer
from asterism.base.network import NetworkMixin

__all__ = ["DeepClusterer"]


class DeepClusterer(NetworkMixin, Clusterer):
    """Holds a network trained in ``fit``; see :class:`Clusterer` for what a subclass writes.

    A subclass also names its ``_module_class`` and sets ``architecture_``, its keyword arguments,
    in ``_fit``.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Clusterer._parameter_constraints,
        **NetworkMixin._parameter_constraints,
    }

    def _tensor(self, X: np.ndarray) -> Tensor:
        """Rows in single precision on the device of choice."""
        return torch.as_tensor(X, dtype=torch.float32).to(resolve_device(self.device))
