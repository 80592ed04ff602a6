"""Muon for matrices, AdamW for the rest, as one optimiser.

Muon moves a weight matrix by its momentum with all singular values made about one (Jordan et al.,
"Muon: an optimizer for hidden layers in neural networks", 2024), scaled so that the step is as
large as Adam's would be (Liu et al., "Muon is scalable for LLM training", arXiv 2502.16982):

    M ← μ M + (1 − μ) G,   U = even((1 − μ) G + μ M),   W ← (1 − η λ) W − 0.2 η √max(m, n) U

Vectors, and matrices with a side shorter than eight, have too little of a spectrum and go to AdamW.
torch has a Muon as well, but one that evens in bfloat16, which processors without instructions for
it emulate: a small network then spends a third of its training there.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn, optim

__all__ = ["Muon", "MuonAdamW", "even"]

_SHORT = 8
_MOMENTUM = 0.95
_QUINTIC = (3.4445, -4.7750, 2.0315)  # steep at zero: five steps suffice (Jordan et al.)


def even(matrix: Tensor, n_steps: int = 5) -> Tensor:
    """The matrix (m, n) with its singular values brought near to one, by Newton and Schulz.

    Those above a hundredth of the norm end between about 0.7 and 1.2, smaller ones below.

    >>> values = torch.linalg.svdvals(even(torch.diag(torch.tensor([9.0, 2.0, 0.3]))))
    >>> bool(values.min() > 0.6 and values.max() < 1.3)
    True
    """
    wide = matrix.shape[0] <= matrix.shape[1]
    x = matrix if wide else matrix.mT
    x = x / x.norm().clamp_min(1e-7)
    a, b, c = _QUINTIC
    for _ in range(n_steps):
        gram = x @ x.mT
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x if wide else x.mT


class Muon(optim.Optimizer):
    """Muon for matrices, in the precision of the weights."""

    def __init__(self, matrices: Iterable[nn.Parameter], lr: float, weight_decay: float) -> None:
        super().__init__(matrices, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Move the weights once."""
        loss = _evaluated(closure)
        for group in self.param_groups:
            for matrix in group["params"]:
                if matrix.grad is None:
                    continue
                state = self.state[matrix]
                if not state:
                    state["momentum_buffer"] = torch.zeros_like(matrix)
                momentum = state["momentum_buffer"].lerp_(matrix.grad, 1 - _MOMENTUM)
                update = even(matrix.grad.lerp(momentum, _MOMENTUM))
                size = 0.2 * max(matrix.shape) ** 0.5  # as large as a step of Adam
                matrix.mul_(1 - group["lr"] * group["weight_decay"])
                matrix.add_(update, alpha=-group["lr"] * size)
        return loss


class MuonAdamW(optim.Optimizer):
    """Both optimisers at one learning rate and weight decay."""

    def __init__(
        self, parameters: Iterable[nn.Parameter], lr: float, weight_decay: float, fused: bool
    ) -> None:
        parameters = list(parameters)
        matrices = [p for p in parameters if p.ndim == 2 and min(p.shape) >= _SHORT]
        taken = {id(p) for p in matrices}
        rest = [p for p in parameters if id(p) not in taken]
        super().__init__(parameters, {"lr": lr, "weight_decay": weight_decay})
        self.parts: list[optim.Optimizer] = []
        if matrices:
            self.parts.append(Muon(matrices, lr=lr, weight_decay=weight_decay))
        if rest:
            self.parts.append(optim.AdamW(rest, lr=lr, weight_decay=weight_decay, fused=fused))
        self._join()

    def _join(self) -> None:
        """Show the groups of both, so that who sets a rate here sets it there."""
        self.param_groups = [group for part in self.parts for group in part.param_groups]

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Move the weights once."""
        loss = _evaluated(closure)
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


def _evaluated(closure: Callable[[], float] | None) -> float | None:
    if closure is None:
        return None
    with torch.enable_grad():
        return closure()
