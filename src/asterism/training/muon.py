"""Muon for matrices, AdamW for the rest, as one optimiser.

Muon moves a weight matrix by its momentum with all singular values made one (Jordan et al., "Muon:
an optimizer for hidden layers in neural networks", 2024), scaled so that the step is as large as
Adam's would be (Liu et al., "Muon is scalable for LLM training", arXiv 2502.16982). Vectors, and
matrices with a side shorter than eight, have too little of a spectrum and go to AdamW.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn, optim

__all__ = ["MuonAdamW"]

_SHORT = 8


class MuonAdamW(optim.Optimizer):
    """Both optimisers at one learning rate and weight decay."""

    def __init__(
        self, parameters: Iterable[nn.Parameter], lr: float, weight_decay: float, fused: bool
    ) -> None:
        if not hasattr(optim, "Muon"):
            raise ValueError(
                f"optimizer='muon' needs torch 2.9 or newer, this is {torch.__version__}"
            )
        parameters = list(parameters)
        matrices = [p for p in parameters if p.ndim == 2 and min(p.shape) >= _SHORT]
        taken = {id(p) for p in matrices}
        rest = [p for p in parameters if id(p) not in taken]
        super().__init__(parameters, {"lr": lr, "weight_decay": weight_decay})
        self.parts: list[optim.Optimizer] = []
        if matrices:
            muon = optim.Muon(
                matrices, lr=lr, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw"
            )
            self.parts.append(muon)
        if rest:
            self.parts.append(optim.AdamW(rest, lr=lr, weight_decay=weight_decay, fused=fused))
        self._join()

    def _join(self) -> None:
        """Show the groups of both, so that who sets a rate here sets it there."""
        self.param_groups = [group for part in self.parts for group in part.param_groups]

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Move the weights once."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for part in self.parts:
            part.step()
        return loss

    def state_dict(self) -> dict[str, Any]:
        """State of both."""
        return {str(k): part.state_dict() for k, part in enumerate(self.parts)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go back to a state of both."""
        for k, part in enumerate(self.parts):
            part.load_state_dict(state_dict[str(k)])
        self._join()
