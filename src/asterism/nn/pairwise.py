"""The network that reads a table and says which rows belong together, and how many clusters.

Rows are tokens; what it knows of them is relational (:mod:`asterism.functional.relations`), so that
columns may come in any number, order, rotation and scale, and rows in any order.

    tokens     summaries of a row's pair features, its neighbour distances, facts of the data set
    look       h_ij = relu(W(facts) p_ij + b(facts)), p_ij the pair features: what they mean depends
               on the data set, as when the best of several quick partitions is to be believed
    blocks     pre-norm attention whose logits are biased by a linear map of h_ij
    pairs      ℓ_ij = g(h_ij, u_iᵀ W_1 u_j, …, u_iᵀ W_R u_j, v_i + v_j), symmetric in i and j
               P_ij = σ(ℓ_ij), the probability that i and j share a cluster
    count      softmax over K = 1 … 40 of the mean token and of soft counts: with s_i = mean_j P_ij
               the share of the rows that are with i, the mean of 1 / s_i is the number of clusters

Trained on labelled synthetic data sets by the log score of pairs and of the number of clusters,

    loss = − Σ_ij w_ij log P(same_ij) − ``count_weight`` log P(K),
    w half uniform, half ∝ 1 / √(|C(i)| |C(j)|)

so that small clusters count. Noise rows have no pairs. The rows of a draw are in random order, so
that the pairs of the first 48 with all rows stand for all.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from asterism.functional.probes import smallest
from asterism.functional.relations import (
    N_FACTS,
    PAIR_FEATURES,
    ROW_FEATURES,
    Context,
    Features,
    describe,
)
from asterism.functional.sets import SetBatch

__all__ = ["MAX_COUNT", "PairNetwork", "Reading", "Relations", "relate", "relations_of"]

MAX_COUNT = 40
"""Largest number of clusters with a probability of its own."""
NEIGHBOURS = (1, 5, 10, 30)
"""Ranks of the neighbours whose distance a token tells."""
FORM_WIDTH = 16
N_TOKEN = 2 * len(PAIR_FEATURES) + len(NEIGHBOURS) + len(ROW_FEATURES) + N_FACTS
TRAINED_ROWS = 48
N_SHARES = 4
ROWS_AT_ONCE = 64


class Relations(NamedTuple):
    """What the network reads: pairs (B, F, Q, N), tokens (B, Q, T); labels (B, N) in training."""

    pairs: Tensor
    tokens: Tensor
    labels: Tensor | None = None

    def to(self, device: torch.device) -> "Relations":
        """Move to a device."""
        labels = None if self.labels is None else self.labels.to(device)
        return Relations(self.pairs.to(device), self.tokens.to(device), labels)


class Reading(NamedTuple):
    """What the network says of rows (B, Q) towards a context (B, N)."""

    logits: Tensor  # (B, Q, N) of sharing a cluster
    counts: Tensor  # (B, MAX_COUNT) logits of K = 1, 2, …, from the mean of these rows
    states: list[Tensor]  # input of every block and the output, what later rows attend to


def relate(batch: SetBatch) -> Relations:
    """Pair features and tokens of a batch of data sets of one size."""
    context, features = describe(batch.x, alone=True)
    (relations,) = relations_of(features, context, batch.x.shape[1])
    return relations._replace(labels=batch.labels)


def relations_of(
    features: Features, context: Context, n_at_once: int | None = None
) -> Iterator[Relations]:
    """What the network reads of rows, ``n_at_once`` at a time: what is made stays in the cache.

    By default a few on the CPU, elsewhere all. The pairs of one part are gone when the next is
    asked for.
    """
    pairs = None
    if n_at_once is None:
        on_cpu = context.x.device.type == "cpu"
        n_at_once = ROWS_AT_ONCE if on_cpu else features.maps.n_rows
    for start in range(0, features.maps.n_rows, n_at_once):
        rows = slice(start, start + n_at_once)
        pairs = features.maps.features(rows, out=pairs)
        yield Relations(pairs, tokens_of(pairs, features.rows[:, rows], context.facts))


def tokens_of(pairs: Tensor, rows: Tensor, facts: Tensor) -> Tensor:
    """Tokens (B, Q, N_TOKEN): each row's own features, summaries of its pairs, then the facts."""
    nearest = smallest(pairs[:, 0], min(max(NEIGHBOURS) + 1, pairs.shape[3]))
    ranks = torch.tensor(NEIGHBOURS, device=pairs.device).clamp_max(nearest.shape[2] - 1)
    mean = pairs.mean(dim=3).mT
    square = torch.linalg.vector_norm(pairs, dim=3).square().mT / pairs.shape[3]
    deviation = (square - mean.square()).clamp_min(0).sqrt()
    facts = facts[:, None].expand(-1, pairs.shape[2], -1)
    return torch.cat([mean, deviation, nearest[..., ranks], rows, facts], dim=-1)


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

    def forward(self, x: Tensor, biases: Sequence[Tensor], memory: Tensor) -> Tensor:
        """Rows x (B, Q, C) gather from ``memory`` (B, N, C).

        ``biases`` (B, heads, rows, N) are those of some of the rows each, one after the other.
        """
        query = self._split(self.query(self.norm_attention(x)))
        key_value = self.key_value(self.norm_attention(memory))
        key, value = (self._split(part) for part in key_value.chunk(2, dim=-1))
        parts = zip(query.split([bias.shape[2] for bias in biases], dim=2), biases, strict=True)
        gathered = torch.cat(
            [F.scaled_dot_product_attention(q, key, value, attn_mask=bias) for q, bias in parts],
            dim=2,
        )
        x = x + self.join(gathered.transpose(1, 2).flatten(2))
        return x + self.feed(self.norm_feed(x))

    def _split(self, rows: Tensor) -> Tensor:
        return rows.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class PairNetwork(nn.Module):
    """Logits (B, Q, N) that a row shares the cluster of a row of the context."""

    def __init__(
        self,
        *,
        width: int = 96,
        heads: int = 4,
        n_blocks: int = 4,
        hidden: int = 24,
        rank: int = 8,
        judge: int = 48,
        count_weight: float = 0.15,
    ) -> None:
        super().__init__()
        self.hidden = hidden
        self.rank = rank
        self.count_weight = count_weight
        self.embed = nn.Sequential(nn.Linear(N_TOKEN, width), nn.GELU(), nn.Linear(width, width))
        self.look = nn.Linear(len(PAIR_FEATURES), hidden)
        self.tune = nn.Sequential(
            nn.Linear(N_FACTS, width),
            nn.GELU(),
            nn.Linear(width, hidden * (len(PAIR_FEATURES) + 1)),
        )
        with torch.no_grad():  # at first nearly the same for all data sets
            self.tune[-1].weight.mul_(0.3)  # type: ignore[operator]
        self.bias = nn.Linear(hidden, n_blocks * heads)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(n_blocks))
        self.norm = nn.LayerNorm(width)
        self.forms = nn.Linear(width, rank * FORM_WIDTH)
        self.signs = nn.Parameter(torch.randn(rank, FORM_WIDTH) / FORM_WIDTH**0.5)
        self.weigh = nn.Linear(hidden + rank, judge)
        self.lean = nn.Linear(width, judge, bias=False)
        self.judge = nn.Sequential(
            nn.ReLU(),
            nn.Linear(judge, judge // 2),
            nn.ReLU(),
            nn.Linear(judge // 2, 1),
        )
        self.count = nn.Sequential(
            nn.Linear(width + N_SHARES, width), nn.GELU(), nn.Linear(width, MAX_COUNT)
        )

    def forward(self, relations: Relations) -> Tensor:
        """Symmetric logits (B, N, N) for the rows of the context among themselves."""
        return self.read(relations).logits

    def read(
        self,
        relations: Relations | Iterable[Relations],
        memory: list[Tensor] | None = None,
        n_judged: int | None = None,
    ) -> Reading:
        """Read rows among themselves, or, with the ``memory`` of a context, each against that.

        Relations may come in parts, of some rows each, but in training, where ``n_judged`` asks
        for the logits of the first rows only; the count is judged by these.
        """
        parts = [relations] if isinstance(relations, Relations) else relations
        tokens, seen, biases = [], [], []
        for part in parts:
            tokens.append(part.tokens)
            seen.append(self._look(part))  # (B, hidden, rows, N)
            biases.append(on_maps(self.bias, seen[-1]).chunk(len(self.blocks), dim=1))
        if len(seen) > 1 and (n_judged is not None or torch.is_grad_enabled()):
            raise ValueError(f"{len(seen)} parts: with n_judged or gradients all rows come at once")
        x = self.embed(torch.cat(tokens, dim=1))
        states = [x]
        for depth, block in enumerate(self.blocks):
            own_biases = [bias[depth] for bias in biases]
            x = block(x, own_biases, x if memory is None else memory[depth])
            states.append(x)
        own = self.norm(x)
        other = own if memory is None else self.norm(memory[-1])
        if n_judged is None:
            logits = self._judge(seen, own, other, among=memory is None)
        else:
            logits = self._judge([seen[0][:, :, :n_judged]], own[:, :n_judged], other)
        counts = self.count(torch.cat([own.mean(dim=1), shares_of(logits)], dim=-1))
        return Reading(logits, counts, states)

    def _judge(
        self, seen: list[Tensor], own: Tensor, other: Tensor, *, among: bool = False
    ) -> Tensor:
        """Logits (B, Q, N) of rows that see others so, in parts, given both kinds of states.

        ``among`` tells that both are the same rows, so that a pair is judged once.
        """
        towards = self._forms(own) * self.signs[None, :, None]  # (B, rank, Q, FORM_WIDTH)
        forms, leaning = self._forms(other), self.lean(other).mT[:, :, None]
        own_leaning = self.lean(own).mT[..., None]
        if torch.is_grad_enabled():
            return self._logits(seen[0], towards @ forms.mT, own_leaning, leaning)
        logits = own.new_empty(len(own), own.shape[1], other.shape[1])
        end = 0
        for part in seen:
            start, end = end, end + part.shape[2]
            rows, rest = slice(start, end), slice(start if among else 0, None)
            found = self._logits(
                part[..., rest],
                towards[:, :, rows] @ forms[:, :, rest].mT,
                own_leaning[:, :, rows],
                leaning[..., rest],
            )
            logits[:, rows, rest] = found
            if among:
                logits[:, rest, rows] = found.mT
        return logits

    def _logits(self, seen: Tensor, forms: Tensor, own: Tensor, other: Tensor) -> Tensor:
        """What is made of pairs (B, channels, Q, N): seen, of both states, and of each."""
        judged = own + self.weigh.bias[:, None, None] + other
        weights = self.weigh.weight.expand(len(seen), -1, -1)
        parts = weights.split([seen.shape[1], forms.shape[1]], dim=2)
        flat = judged.view(*judged.shape[:2], -1)
        for weight, maps in zip(parts, (seen, forms), strict=True):
            flat.baddbmm_(weight, maps.flatten(2))
        # Of rectifiers in place the gradients of whole maps would be copied each time.
        relu = torch.relu if torch.is_grad_enabled() else torch.relu_
        for layer in self.judge:  # those that are no linear maps are rectifiers
            judged = on_maps(layer, judged) if isinstance(layer, nn.Linear) else relu(judged)
        return judged.squeeze(1)

    def _look(self, relations: Relations) -> Tensor:
        """First layer of the pair features, with weights of each data set's own."""
        facts = relations.tokens[:, 0, -N_FACTS:]
        shape = (self.hidden, len(PAIR_FEATURES) + 1)
        tuned = self.tune(facts).unflatten(-1, shape)  # (B, hidden, F + 1)
        weight = self.look.weight + tuned[..., :-1]
        bias = self.look.bias + tuned[..., -1]
        seen = torch.baddbmm(bias[..., None], weight, relations.pairs.flatten(2))
        return torch.relu_(seen).unflatten(2, relations.pairs.shape[2:])

    def _forms(self, x: Tensor) -> Tensor:
        return self.forms(x).unflatten(-1, (self.rank, FORM_WIDTH)).transpose(1, 2)

    def loss(self, relations: Relations) -> Tensor:
        """Log score of pairs and of the number of clusters; see the module's header."""
        if relations.labels is None:
            raise ValueError("training needs labels")
        labels = relations.labels
        reading = self.read(relations, n_judged=TRAINED_ROWS)
        same, weights = pair_targets(labels, TRAINED_ROWS)
        scores = F.binary_cross_entropy_with_logits(reading.logits, same, reduction="none")
        counts = F.cross_entropy(reading.counts, labels.max(dim=1).values.clamp(0, MAX_COUNT - 1))
        return (scores * weights).sum(dim=(1, 2)).mean() + self.count_weight * counts


def on_maps(layer: nn.Linear, maps: Tensor) -> Tensor:
    """A linear layer over the channels of maps (B, channels, Q, N)."""
    weight = layer.weight.expand(len(maps), -1, -1)
    found = torch.baddbmm(layer.bias[:, None], weight, maps.flatten(2))
    return found.unflatten(2, maps.shape[2:])


def shares_of(logits: Tensor) -> Tensor:
    """Logarithms (B, N_SHARES) of soft counts of clusters, and the spread of the shares."""
    share = torch.sigmoid(logits).mean(dim=2).clamp_min(1e-3)  # (B, Q)
    return torch.stack(
        [
            share.reciprocal().mean(dim=1).log(),
            -share.mean(dim=1).log(),
            -share.amax(dim=1).log(),
            share.log().std(dim=1, correction=0),
        ],
        dim=-1,
    )


def pair_targets(labels: Tensor, n_judged: int | None = None) -> tuple[Tensor, Tensor]:
    """Whether the first rows share a cluster with all rows, and the weights of these pairs."""
    first = labels[:, :n_judged]
    same = (first[:, :, None] == labels[:, None, :]).float()
    known = (labels >= 0).float()
    pairs = known[:, :n_judged, None] * known[:, None, :]
    pairs = pairs * (1 - torch.eye(labels.shape[1], device=labels.device)[:n_judged])
    sizes = (labels[:, :, None] == labels[:, None, :]).float().sum(dim=-1)
    rarity = sizes.rsqrt()
    rare = rarity[:, :n_judged, None] * rarity[:, None, :] * pairs
    return same, (sum_to_one(pairs) + sum_to_one(rare)) / 2


def sum_to_one(weights: Tensor) -> Tensor:
    """Weights (B, Q, N) that sum to one in each data set."""
    return weights / weights.sum(dim=(1, 2), keepdim=True).clamp_min(1e-12)
