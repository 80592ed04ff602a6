"""What estimators with a network share: building it, moving it, and where training may run."""

from typing import Any, ClassVar

from torch import nn

from asterism._validation import resolve_device
from asterism.training.history import Record

__all__ = ["NetworkMixin"]


class NetworkMixin:
    """Holds ``module_``, built by ``_module_class(**architecture_)``.

    The architecture is stored with the fit, so that a network is rebuilt as it was trained whatever
    the parameters have become since.
    """

    _module_class: ClassVar[type[nn.Module]]
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "device": [str],
        "verbose": ["verbose"],
    }

    device: str
    verbose: int | bool
    module_: nn.Module
    architecture_: dict[str, Any]
    history_: list[Record]

    def _make_module(self) -> nn.Module:
        """The untrained network."""
        return self._module_class(**self.architecture_)

    def _on_device(self) -> nn.Module:
        """The network, ready for use on the device of choice; a pickle may come from another."""
        device = resolve_device(self.device)
        here = next((parameter.device for parameter in self.module_.parameters()), None)
        # Moving visits every parameter, which shows when thousands of data sets are read.
        if here is None or here.type != device.type or device.index not in (None, here.index):
            self.module_.to(device)
        if self.module_.training:  # asking every part shows among thousands too
            self.module_.eval()
        return self.module_
