"""Attention blocks for sets.

With heads h slicing width C, a query set X and a key set Y:

    Q = X W_q,  K = Y W_k,  V = Y W_v,      A_j = softmax(Q_j K_jᵀ / √C)
    O = Q + [A_1 V_1 … A_h V_h]             the residual is the projected query
    MAB(X, Y)  = O + ReLU(O W_o)            multi-head attention block
    SAB(X)     = MAB(X, X)                  points attend to points, O(N²)
    PMA_k(X)   = MAB(S, X)                  k learned rows S pool the set
    ISAB_m(X)  = MAB(X, PMA_m(X))           the same through m inducing rows, O(N m)

The scale is the root of the full width, there is no projection after the heads are joined, and
layer normalisation (after each residual) is off unless asked for: so were the published results
obtained. ``keep`` (B, N) marks usable *keys*; queries are never masked. A query whose keys are all
masked receives nothing, hence O = Q.

Lee, Lee, Kim, Kosiorek, Choi & Teh, "Set Transformer: a framework for attention-based
permutation-invariant neural networks", ICML 2019.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["ISAB", "MAB", "PMA", "SAB"]


class MAB(nn.Module):
    """Rows of X (B, N, query_dim) gather from rows of Y (B, M, key_dim): (B, N, width)."""

    def __init__(
        self, query_dim: int, key_dim: int, width: int, heads: int, *, layer_norm: bool = False
    ) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"heads={heads} must divide width={width}")
        self.heads = heads
        self.query = nn.Linear(query_dim, width)
        self.key_value = nn.Linear(key_dim, 2 * width)
        self.feed = nn.Linear(width, width)
        self.norm_attention = nn.LayerNorm(width) if layer_norm else nn.Identity()
        self.norm_feed = nn.LayerNorm(width) if layer_norm else nn.Identity()

    def forward(self, x: Tensor, y: Tensor, keep: Tensor | None = None) -> Tensor:
        """``keep`` (B, M) is True where a row of ``y`` may be attended to."""
        query = self.query(x)  # (B, N, C)
        key, value = (self._split(part) for part in self.key_value(y).chunk(2, dim=-1))
        gathered = F.scaled_dot_product_attention(
            self._split(query),
            key,
            value,
            attn_mask=None if keep is None else keep[:, None, None, :],
            scale=query.shape[-1] ** -0.5,
        )
        gathered = gathered.transpose(1, 2).flatten(start_dim=2)
        if keep is not None:
            gathered = torch.where(keep.any(dim=1)[:, None, None], gathered, 0.0)
        out = self.norm_attention(query + gathered)
        return self.norm_feed(out + F.relu(self.feed(out)))

    def _split(self, rows: Tensor) -> Tensor:
        """(B, N, C) to (B, heads, N, C / heads)."""
        return rows.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class SAB(nn.Module):
    """Self-attention over a set."""

    def __init__(self, dim: int, width: int, heads: int, *, layer_norm: bool = False) -> None:
        super().__init__()
        self.block = MAB(dim, dim, width, heads, layer_norm=layer_norm)

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        """(B, N, dim) to (B, N, width)."""
        return self.block(x, x, keep)


class PMA(nn.Module):
    """Pool a set into ``n_seeds`` rows."""

    def __init__(
        self, dim: int, width: int, heads: int, n_seeds: int, *, layer_norm: bool = False
    ) -> None:
        super().__init__()
        self.seeds = nn.Parameter(torch.empty(n_seeds, width))
        nn.init.xavier_uniform_(self.seeds)
        self.block = MAB(width, dim, width, heads, layer_norm=layer_norm)

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        """(B, N, dim) to (B, n_seeds, width)."""
        return self.block(self.seeds.expand(len(x), -1, -1), x, keep)


class ISAB(nn.Module):
    """Self-attention through ``n_inducing`` learned rows, linear in the size of the set."""

    def __init__(
        self, dim: int, width: int, heads: int, n_inducing: int, *, layer_norm: bool = False
    ) -> None:
        super().__init__()
        self.induce = PMA(dim, width, heads, n_inducing, layer_norm=layer_norm)
        self.spread = MAB(dim, width, width, heads, layer_norm=layer_norm)

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        """(B, N, dim) to (B, N, width)."""
        return self.spread(x, self.induce(x, keep))
