"""The network that reads a table and says which rows belong together.

Rows are tokens; what it knows of them is relational (:mod:`asterism.functional.relations`), so that
columns may come in any number, order, rotation and scale, and rows in any order.

    tokens     summaries of a row's pair features, its neighbour distances, facts of the data set
    blocks     pre-norm attention whose logits are biased by a learned map of the pair features
    output     ℓ_ij = g(h_ij, u_iᵀ W_1 u_j, …, u_iᵀ W_R u_j), symmetric in i and j
               P_ij = σ(ℓ_ij), the probability that i and j share a cluster

Trained on labelled synthetic data sets by the log score of pairs,

    loss = − Σ_ij w_ij log P(same_ij),   w half uniform, half ∝ 1 / √(|C(i)| |C(j)|)

so that small clusters count. Noise rows have no pairs.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from asterism.functional.relations import PAIR_FEATURES, pair_features
from asterism.functional.sets import SetBatch

__all__ = ["PairNetwork", "Relations", "facts_of", "relate", "tokens_of"]

N_SPECTRUM = 8
N_GLOBAL = N_SPECTRUM + 2 + len(PAIR_FEATURES)
NEIGHBOURS = (1, 5, 10, 30)
"""Ranks of the neighbours whose distance a token tells."""
FORM_WIDTH = 16
N_TOKEN = 2 * len(PAIR_FEATURES) + len(NEIGHBOURS) + N_GLOBAL


class Relations(NamedTuple):
    """What the network reads: pairs (B, Q, N, F), tokens (B, Q, T); labels (B, N) in training."""

    pairs: Tensor
    tokens: Tensor
    labels: Tensor | None = None

    def to(self, device: torch.device) -> "Relations":
        """Move to a device."""
        labels = None if self.labels is None else self.labels.to(device)
        return Relations(self.pairs.to(device), self.tokens.to(device), labels)


def relate(batch: SetBatch) -> Relations:
    """Pair features and tokens of a batch of data sets of one size."""
    pairs = pair_features(batch.x)
    return Relations(pairs, tokens_of(pairs, facts_of(batch.x, pairs)), batch.labels)


def facts_of(x: Tensor, pairs: Tensor) -> Tensor:
    """What every token tells of its data set, (B, N_GLOBAL)."""
    return torch.cat([pairs.mean(dim=(1, 2)), spectrum(x), sizes(x)], dim=-1)


def tokens_of(pairs: Tensor, facts: Tensor) -> Tensor:
    """Tokens (B, Q, N_TOKEN): summaries of each row's pair features, then the facts."""
    nearest = pairs[..., 0].topk(min(max(NEIGHBOURS) + 1, pairs.shape[2]), largest=False).values
    ranks = torch.tensor(NEIGHBOURS, device=pairs.device).clamp_max(nearest.shape[2] - 1)
    mean = pairs.mean(dim=2)
    deviation = (pairs.square().mean(dim=2) - mean.square()).clamp_min(0).sqrt()
    shared = facts[:, None].expand(-1, pairs.shape[1], -1)
    return torch.cat([mean, deviation, nearest[..., ranks], shared], dim=-1)


def spectrum(x: Tensor) -> Tensor:
    """Shares of variance along the leading principal axes, (B, N_SPECTRUM)."""
    centred = x - x.mean(dim=1, keepdim=True)
    gram = centred.mT @ centred if x.shape[2] <= x.shape[1] else centred @ centred.mT
    values = torch.linalg.eigvalsh(gram).flip(-1)[:, :N_SPECTRUM].clamp_min(0)
    values = values / gram.diagonal(dim1=1, dim2=2).sum(dim=-1, keepdim=True).clamp_min(1e-12)
    return F.pad(values, (0, N_SPECTRUM - values.shape[1]))


def sizes(x: Tensor) -> Tensor:
    """Logarithms of rows and of columns that vary, (B, 2), centred by eye."""
    n = torch.full((len(x),), float(x.shape[1]), device=x.device)
    columns = (x.std(dim=1) > 0).sum(dim=-1).clamp_min(1)
    return torch.stack([n.log() - 5.3, columns.log() - 2.0], dim=-1)


class Block(nn.Module):
    """Pre-norm attention with given biases, then a two-layer perceptron."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention = nn.LayerNorm(width)
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        self.join = nn.Linear(width, width)
        self.norm_feed = nn.LayerNorm(width)
        self.feed = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x: Tensor, bias: Tensor, memory: Tensor) -> Tensor:
        """Rows x (B, Q, C) gather from ``memory`` (B, N, C); ``bias`` is (B, heads, Q, N)."""
        query = self._split(self.query(self.norm_attention(x)))
        key_value = self.key_value(self.norm_attention(memory))
        key, value = (self._split(part) for part in key_value.chunk(2, dim=-1))
        gathered = F.scaled_dot_product_attention(query, key, value, attn_mask=bias)
        x = x + self.join(gathered.transpose(1, 2).flatten(2))
        return x + self.feed(self.norm_feed(x))

    def _split(self, rows: Tensor) -> Tensor:
        return rows.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class PairNetwork(nn.Module):
    """Logits (B, Q, N) that a row shares the cluster of a row of the context."""

    def __init__(
        self, *, width: int = 96, heads: int = 6, n_blocks: int = 5, hidden: int = 16, rank: int = 8
    ) -> None:
        super().__init__()
        self.rank = rank
        self.embed = nn.Sequential(nn.Linear(N_TOKEN, width), nn.GELU(), nn.Linear(width, width))
        self.look = nn.Sequential(nn.Linear(len(PAIR_FEATURES), hidden), nn.ReLU())
        self.bias = nn.Linear(hidden, n_blocks * heads)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(n_blocks))
        self.norm = nn.LayerNorm(width)
        self.forms = nn.Linear(width, rank * FORM_WIDTH)
        self.signs = nn.Parameter(torch.randn(rank, FORM_WIDTH) / FORM_WIDTH**0.5)
        self.judge = nn.Sequential(
            nn.Linear(hidden + rank, 2 * hidden), nn.ReLU(), nn.Linear(2 * hidden, 1)
        )

    def forward(self, relations: Relations) -> Tensor:
        """Symmetric logits (B, N, N) for the rows of the context among themselves."""
        return self.read(relations)[0]

    def read(
        self, relations: Relations, memory: list[Tensor] | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        """Logits, and what later rows need of these: the input of every block and the output.

        With the ``memory`` of a context, rows are read against it, each by itself: they attend to
        the context only.
        """
        seen = self.look(relations.pairs)  # (B, Q, N, hidden)
        biases = self.bias(seen).movedim(-1, 1).chunk(len(self.blocks), dim=1)
        x = self.embed(relations.tokens)
        states = [x]
        for depth, (block, bias) in enumerate(zip(self.blocks, biases, strict=True)):
            x = block(x, bias, x if memory is None else memory[depth])
            states.append(x)
        own, other = self._forms(x), self._forms(x if memory is None else memory[-1])
        forms = (own * self.signs[None, :, None]) @ other.mT  # (B, rank, Q, N)
        logits = self.judge(torch.cat([seen, forms.movedim(1, -1)], dim=-1)).squeeze(-1)
        return logits, states

    def _forms(self, x: Tensor) -> Tensor:
        return self.forms(self.norm(x)).unflatten(-1, (self.rank, FORM_WIDTH)).transpose(1, 2)

    def loss(self, relations: Relations) -> Tensor:
        """Weighted log score of all pairs of labelled rows; see the module's header."""
        if relations.labels is None:
            raise ValueError("training needs labels")
        labels = relations.labels
        same = (labels[:, :, None] == labels[:, None, :]).float()
        known = (labels >= 0).float()
        pairs = known[:, :, None] * known[:, None, :]
        pairs = pairs * (1 - torch.eye(labels.shape[1], device=labels.device))
        rarity = (same * pairs).sum(dim=-1).clamp_min(1).rsqrt() * known
        weights = rarity[:, :, None] * rarity[:, None, :] * pairs
        weights = sum_to_one(pairs) / 2 + sum_to_one(weights) / 2
        scores = F.binary_cross_entropy_with_logits(self(relations), same, reduction="none")
        return (scores * weights).sum(dim=(1, 2)).mean()


def sum_to_one(weights: Tensor) -> Tensor:
    """Weights (B, N, N) that sum to one in each data set."""
    return weights / weights.sum(dim=(1, 2), keepdim=True).clamp_min(1e-12)
