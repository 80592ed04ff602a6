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

All that an ISAB knows of its set are the m rows PMA_m(X). A stack that remembers them, L blocks of
m rows, can read any further row by itself, and reads the rows of the set as it did at first.

With one key row y the softmax is over one entry: MAB(X, y) is O = X W_q + y W_v and the residual
layer, no attention at all, which :class:`Condition` computes directly.

Lee, Lee, Kim, Kosiorek, Choi & Teh, "Set Transformer: a framework for attention-based
permutation-invariant neural networks", ICML 2019.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["ISAB", "MAB", "PMA", "SAB", "Condition", "ISABStack"]


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


class ISABStack(nn.ModuleList):
    """ISAB blocks one after another, whose inducing rows can be kept to read further rows.

    ``tied`` lets blocks 2 … depth share their weights, as the code released with DAC does.

    >>> stack = ISABStack(2, 8, heads=2, n_inducing=4, depth=3)
    >>> x = torch.randn(1, 9, 2)
    >>> out, memory = stack.remember(x)
    >>> torch.allclose(stack.recall(x[:, 3:5], memory), out[:, 3:5], atol=1e-5)
    True
    """

    def __init__(
        self,
        dim: int,
        width: int,
        heads: int,
        n_inducing: int,
        depth: int,
        *,
        tied: bool = False,
        layer_norm: bool = False,
    ) -> None:
        if depth < 1:
            raise ValueError(f"depth={depth}: a stack has at least one block")
        super().__init__(
            ISAB(dim if i == 0 else width, width, heads, n_inducing, layer_norm=layer_norm)
            for i in range(min(depth, 2) if tied else depth)
        )
        self.depth = depth

    def _in_turn(self) -> list[ISAB]:
        """The blocks as they are applied; the last one again where the others are tied to it."""
        return [self[min(i, len(self) - 1)] for i in range(self.depth)]  # type: ignore[misc]

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        """(B, N, dim) to (B, N, width)."""
        for block in self._in_turn():
            x = block(x, keep)
        return x

    def remember(self, x: Tensor, keep: Tensor | None = None) -> tuple[Tensor, list[Tensor]]:
        """The same, and the inducing rows (B, n_inducing, width) of every block."""
        memory = []
        for block in self._in_turn():
            memory.append(block.induce(x, keep))
            x = block.spread(x, memory[-1])
        return x, memory

    def recall(self, x: Tensor, memory: Sequence[Tensor]) -> Tensor:
        """Rows (B, N', dim), each by itself, as members of the set that is remembered."""
        for block, inducing in zip(self._in_turn(), memory, strict=True):
            x = block.spread(x, inducing)
        return x


class Condition(nn.Module):
    """Rows of X (B, N, dim) told of one row y (B, condition_dim): MAB(X, y), (B, N, width)."""

    def __init__(
        self, dim: int, condition_dim: int, width: int, *, layer_norm: bool = False
    ) -> None:
        super().__init__()
        self.query = nn.Linear(dim, width)
        self.value = nn.Linear(condition_dim, width)
        self.feed = nn.Linear(width, width)
        self.norm_attention = nn.LayerNorm(width) if layer_norm else nn.Identity()
        self.norm_feed = nn.LayerNorm(width) if layer_norm else nn.Identity()

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """One condition a set."""
        out = self.norm_attention(self.query(x) + self.value(y).unsqueeze(1))
        return self.norm_feed(out + F.relu(self.feed(out)))
