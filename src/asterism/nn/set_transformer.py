"""The Set Transformer that reads a data set and writes down a mixture of K Gaussians.

    encoder  ISAB_m × L      every point learns where it lies in the set
    pooling  PMA_K           one row a component
    decoder  SAB × L'        components learn of each other, so that no two settle on one cluster
    output   linear → (logit π_k, μ_k, raw σ_k),  π = softmax, σ = softplus

Trained by amortised maximum likelihood: minimise −E_X [ (1/N) Σ_i log Σ_k π_k N(x_i; μ_k, σ_k) ];
no labels are used.

Lee et al., "Set Transformer", ICML 2019, section 5.3 and its supplement.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from asterism.functional.mixtures import Mixture, log_likelihood
from asterism.functional.sets import SetBatch
from asterism.nn.attention import PMA, SAB, ISABStack

__all__ = ["SetTransformer"]


class SetTransformer(nn.Module):
    """Map (B, N, D) sets to mixtures of ``n_components`` axis-aligned Gaussians."""

    def __init__(
        self,
        dim: int = 2,
        n_components: int = 4,
        *,
        width: int = 128,
        heads: int = 4,
        n_inducing: int = 32,
        encoder_blocks: int = 2,
        decoder_blocks: int = 1,
        layer_norm: bool = False,
    ) -> None:
        super().__init__()
        self.dim = dim
        self.n_components = n_components
        self.encoder = ISABStack(
            dim, width, heads, n_inducing, encoder_blocks, layer_norm=layer_norm
        )
        self.pool = PMA(width, width, heads, n_components, layer_norm=layer_norm)
        self.decoder = nn.ModuleList(
            SAB(width, width, heads, layer_norm=layer_norm) for _ in range(decoder_blocks)
        )
        self.head = nn.Linear(width, 1 + 2 * dim)

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Mixture:
        """Mixture of each set; ``keep`` (B, N) is False for padding."""
        slots = self.pool(self.encoder(x, keep), keep)  # (B, K, C)
        for block in self.decoder:
            slots = block(slots)
        logits, means, raw = self.head(slots).split([1, self.dim, self.dim], dim=-1)
        return Mixture(torch.log_softmax(logits.squeeze(-1), dim=-1), means, F.softplus(raw) + 1e-5)

    def loss(self, batch: SetBatch) -> Tensor:
        """Mean over data sets of the mean negative log-likelihood of their points."""
        log_p = log_likelihood(batch.x, self(batch.x, batch.keep))
        return -((log_p * batch.keep).sum(dim=1) / batch.sizes).mean()
