"""What methods share whose clusters are axis-aligned Gaussians in the network's coordinates.

    r_ik ∝ π_k N(x_i; μ_k, diag σ_k²),   score = mean_i log Σ_k π_k N(x_i; μ_k, diag σ_k²)
    refine="em"   ``n_em`` rounds of expectation maximisation follow what the network says

The parameters are kept as ``weights_`` (K,), ``means_`` (K, D) and ``scales_`` (K, D).
"""

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from asterism._validation import StrOptions, at_least
from asterism.functional.mixtures import Mixture, em_step, log_likelihood, log_responsibilities

__all__ = ["MixtureMixin"]


class MixtureMixin:
    """Reads rows by a fitted mixture; list it before the base class."""

    _per_cluster: ClassVar[tuple[str, ...]] = ("weights_", "means_", "scales_")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "refine": [StrOptions({"em"}), None],
        "n_em": [at_least(1)],
    }

    refine: str | None
    n_em: int
    weights_: np.ndarray
    means_: np.ndarray
    scales_: np.ndarray

    _aligned: Any

    @property
    def has_density(self) -> bool:
        """Whether ``score`` is a mean log-likelihood, in the network's coordinates: it is."""
        return True

    @property
    def _mixture(self) -> Mixture:
        log_weights = np.log(np.maximum(self.weights_, np.finfo(np.float64).tiny))
        parts = (log_weights, self.means_, self.scales_)
        return Mixture(*(torch.from_numpy(part) for part in parts))

    def _refined(self, x: Tensor, mixture: Mixture, keep: Tensor | None = None) -> Mixture:
        """The mixtures of sets (..., N, D) after the rounds asked for, in double precision."""
        # Small, and some accelerators have no double precision.
        mixture = Mixture(*(part.cpu().double() for part in mixture))
        x, keep = x.cpu().double(), None if keep is None else keep.cpu()
        for _ in range(self.n_em if self.refine == "em" else 0):
            mixture = em_step(x, mixture, keep)
        return mixture

    def _log_responsibilities(self, X: np.ndarray) -> np.ndarray:
        return log_responsibilities(torch.from_numpy(self._aligned(X)), self._mixture).numpy()

    def _score(self, X: np.ndarray) -> float:
        """Mean log-likelihood a row, in the network's coordinates."""
        return float(log_likelihood(torch.from_numpy(self._aligned(X)), self._mixture).mean())
