"""The network of the clusterwise processes: one whole cluster a step, from an anchor and a latent.

With codes e_i of the points, an anchor d, the other unassigned points R, finished clusters s_j:

    A = e_d,   U = pool_{i ∈ R} u(e_i),   G = Σ_j g(pool_{i ∈ s_j} h(e_i))
    z ~ N(μ, diag σ²),   (μ, log σ) = prior(A, U, G)
    p(i joins d | z) = sigmoid φ(e_i, z, A, U, G)
    q(z) = N(μ', diag σ'²),   (μ', log σ') = posterior(A, U_in, U_out, G)   in training only

U_in and U_out pool those of R that join and those that do not; the pool of no point is zero.

    attention="none"      CCP     pools are means
    attention="anchored"  ACP     e_i is replaced by H_i of ISAB over the unassigned, U is
                                  PMA(MAB(H, A)), U_in and U_out pool H, all pools are PMA
    attention="shared"    ACP-S   e_i is replaced by ISAB over the whole set, once; pools are PMA

The first layer of φ is a sum of one linear map an input, so that points and draws of z meet only
in a broadcast sum. Trained by the importance-weighted bound of the steps of the true partition,
its gradient doubly reparameterised: see :mod:`asterism.functional.clusterwise`.

Pakman, Wang, Mitelut, Lee & Paninski, "Neural clustering processes", ICML 2020. Wang, Lee, Basu,
Lee, Teh, Paninski & Pakman, "Amortized probabilistic detection of communities in graphs", 2020
(attention).
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from asterism.functional.clusterwise import (
    Steps,
    importance_bound,
    normal_log_prob,
    partition_steps,
    random_times,
    sums_before,
)
from asterism.functional.sets import SetBatch
from asterism.nn.attention import ISAB, MAB, PMA
from asterism.nn.perceptron import perceptron

__all__ = ["ClusterwiseNetwork", "Codes", "Latent", "Stage", "take_rows"]

_LOG_SCALE = 10.0  # beyond e^10 on either side a scale says no more, and may overflow


class Codes(NamedTuple):
    """What is computed once a data set: rows (B, N, C), and inducing rows (B, I, C) of ACP-S."""

    points: Tensor
    pooled: Tensor
    members: Tensor
    memory: Tensor | None


class Stage(NamedTuple):
    """What R steps know before z: rows (R, M, C), the candidates among them (R, M), codes (R, C).

    ``memory`` (R, I, C) are the inducing rows by which a further point gets its code.
    """

    points: Tensor
    pooled: Tensor
    candidate: Tensor
    anchor: Tensor
    unassigned: Tensor
    finished: Tensor
    memory: Tensor | None


class Latent(NamedTuple):
    """Axis-aligned Gaussians of z, (R, Z) each."""

    mean: Tensor
    log_scale: Tensor

    def draw(self, noise: Tensor) -> Tensor:
        """Standard normal ``noise`` (R, S, Z) as draws."""
        return self.mean.unsqueeze(1) + self.log_scale.exp().unsqueeze(1) * noise

    def log_prob(self, z: Tensor) -> Tensor:
        """Log density (R, S) of draws (R, S, Z)."""
        return normal_log_prob(z, self.mean.unsqueeze(1), self.log_scale.unsqueeze(1))


class ClusterwiseNetwork(nn.Module):
    """Maps, pools and latent of CCP, ACP and ACP-S; the sizes are the published ones.

    ``n_draws`` is the number of draws of z in the training bound: 40 as published, fewer here,
    since the cost of a step is proportional to it.

    >>> network = ClusterwiseNetwork(dim=2, attention="anchored", width=8, latent_dim=4)
    >>> chance = torch.Generator().manual_seed(0)
    >>> x, keep = torch.randn(1, 6, 2, generator=chance), torch.ones(1, 6, dtype=torch.bool)
    >>> network.loss(SetBatch(x, keep, torch.tensor([[0, 0, 1, 1, 1, 2]])), chance).shape
    torch.Size([])
    """

    def __init__(
        self,
        dim: int = 2,
        attention: str = "none",
        *,
        width: int = 128,
        latent_dim: int = 128,
        heads: int = 4,
        n_inducing: int = 32,
        n_draws: int = 5,
    ) -> None:
        super().__init__()
        if attention not in ("none", "anchored", "shared"):
            raise ValueError(f"attention={attention!r} is not 'none', 'anchored' or 'shared'")
        self.dim, self.width, self.latent_dim = dim, width, latent_dim
        self.attention, self.n_draws = attention, n_draws
        self.encode_point = perceptron(dim, width, 4, width)
        self.map_member = perceptron(width, width, 2, width)  # h
        self.map_cluster = perceptron(width, width, 2, width)  # g
        if attention != "anchored":
            self.map_unassigned = perceptron(width, width, 2, width)  # u
        if attention != "none":
            norm = attention == "shared"
            self.context = ISAB(width, width, heads, n_inducing, layer_norm=norm)
        if attention == "anchored":
            self.meet_anchor = MAB(width, width, width, heads)
        self.pool = nn.ModuleDict(
            {
                name: _MeanPool() if attention == "none" else _AttentionPool(width, heads)
                for name in ("members", "unassigned", "joining", "others")
            }
        )
        self.prior_net = perceptron(3 * width, width, 5, 2 * latent_dim)
        self.posterior_net = perceptron(4 * width, width, 5, 2 * latent_dim)
        self.join_first = _SplitLinear([width, latent_dim, width, width, width], width)
        self.join_rest = nn.Sequential(nn.PReLU(), *perceptron(width, width, 3, 1, bias=False))

    # --- parts --------------------------------------------------------------------------------

    def encode(self, x: Tensor, keep: Tensor | None = None) -> Codes:
        """Codes of the points of sets (B, N, D); ``keep`` (B, N) is False for padding."""
        points = self.encode_point(x)
        memory = None
        if self.attention == "shared":
            memory = self.context.induce(points, keep)
            points = self.context.spread(points, memory)
        pooled = points if self.attention == "anchored" else self.map_unassigned(points)
        return Codes(points, pooled, self.map_member(points), memory)

    def encode_cluster(self, members: Tensor, keep: Tensor) -> Tensor:
        """G of a pooled cluster, (R, C), from rows (R, M, C) of ``Codes.members``."""
        return self.map_cluster(self.pool["members"](members, keep))

    def stage(
        self,
        codes: Codes,
        owner: Tensor,
        index: Tensor,
        is_open: Tensor,
        anchor: Tensor,
        finished: Tensor,
    ) -> Stage:
        """Read R steps: of data set ``owner`` (R,) the points ``index`` (R, M).

        ``is_open`` (R, M) marks the unassigned among them, ``anchor`` (R,) is the place of the
        anchor among the M, ``finished`` (R, C) is G.
        """
        points = take_rows(codes.points, owner, index)
        memory = None if codes.memory is None else codes.memory.index_select(0, owner)
        if self.attention == "anchored":
            memory = self.context.induce(points, is_open)
            points = self.context.spread(points, memory)
        chosen = points.gather(1, anchor[:, None, None].expand(-1, 1, points.shape[2]))
        candidate = is_open.scatter(1, anchor[:, None], value=False)
        if self.attention == "anchored":
            pooled = points
            unassigned = self.pool["unassigned"](self.meet_anchor(points, chosen), is_open)
        else:
            pooled = take_rows(codes.pooled, owner, index)
            unassigned = self.pool["unassigned"](pooled, candidate)
        return Stage(points, pooled, candidate, chosen[:, 0], unassigned, finished, memory)

    def prior(self, stage: Stage) -> Latent:
        """Distribution of z before it is known who joins."""
        return self._latent(self.prior_net, stage.anchor, stage.unassigned, stage.finished)

    def posterior(self, stage: Stage, joins: Tensor) -> Latent:
        """Distribution of z given the candidates ``joins`` (R, M) that join."""
        joining = self.pool["joining"](stage.pooled, stage.candidate & joins)
        others = self.pool["others"](stage.pooled, stage.candidate & ~joins)
        return self._latent(self.posterior_net, stage.anchor, joining, others, stage.finished)

    def _latent(self, net: nn.Module, *parts: Tensor) -> Latent:
        mean, log_scale = net(torch.cat(parts, dim=-1)).chunk(2, dim=-1)
        return Latent(mean, log_scale.clamp(-_LOG_SCALE, _LOG_SCALE))

    def join_context(self, stage: Stage, z: Tensor) -> Tensor:
        """All that φ adds to a point's own part: (R, S, C) for draws ``z`` (R, S, Z)."""
        first = self.join_first
        fixed = first(2, stage.anchor) + first(3, stage.unassigned) + first(4, stage.finished)
        return first(1, z) + fixed.unsqueeze(1)

    def join_logits(self, stage: Stage, context: Tensor) -> Tensor:
        """Logits (P, S) of all P candidates, in the order of ``stage.candidate.nonzero()``."""
        # Only candidates: points that are assigned cost nothing.
        row, place = stage.candidate.nonzero(as_tuple=True)
        flat = stage.points.flatten(0, 1).index_select(0, row * stage.points.shape[1] + place)
        hidden = self.join_first(0, flat).unsqueeze(1) + context.index_select(0, row)
        return self.join_rest(hidden).squeeze(-1)

    def log_joining(self, stage: Stage, z: Tensor, joins: Tensor) -> Tensor:
        """Log p(b | z), (R, S), that exactly ``joins`` (R, M) of the candidates join."""
        logits = self.join_logits(stage, self.join_context(stage, z))
        sign = torch.where(joins[stage.candidate], 1.0, -1.0).unsqueeze(1)
        row = stage.candidate.nonzero()[:, 0]
        return logits.new_zeros(z.shape[:2]).index_add(0, row, F.logsigmoid(sign * logits))

    def new_point_logits(self, x: Tensor, contexts: Tensor, memory: Tensor | None) -> Tensor:
        """Logits (N, K) of further rows (N, D), each by itself, to join K stored clusters.

        ``contexts`` (K, C) are of :meth:`join_context`, ``memory`` (K, I, C) of the stages.
        """
        points = self.encode_point(x).expand(len(contexts), -1, -1)  # (K, N, C)
        if memory is not None:
            points = self.context.spread(points, memory)
        hidden = self.join_first(0, points) + contexts.unsqueeze(1)
        return self.join_rest(hidden).squeeze(-1).T

    # --- training -----------------------------------------------------------------------------

    def loss(self, batch: SetBatch, generator: torch.Generator | None = None) -> Tensor:
        """Minus the bound on the log-probability of the true partition, mean over data sets.

        The order of the clusters, the anchors and z are drawn with the ``generator``.
        """
        if batch.labels is None:
            raise ValueError("batch.labels is None: training needs the true partition")
        device = batch.x.device
        # Drawn on the CPU, so that a seed means the same on every device.
        times = random_times(batch.keep.shape, generator).to(device)
        steps = partition_steps(torch.where(batch.keep, batch.labels, -1), times)
        shape = (len(steps.owner), self.n_draws, self.latent_dim)
        noise = torch.randn(shape, generator=generator).to(device)
        return -self.step_bounds(batch.x, batch.keep, steps, noise).sum() / len(batch)

    def step_bounds(self, x: Tensor, keep: Tensor, steps: Steps, noise: Tensor) -> Tensor:
        """Importance-weighted bound of each of R steps, with draws by ``noise`` (R, S, Z)."""
        codes = self.encode(x, keep)
        index = torch.arange(x.shape[1], device=x.device).expand(len(steps.owner), -1)
        clusters = self.encode_cluster(take_rows(codes.members, steps.owner, index), steps.member)
        finished = sums_before(clusters, steps)
        stage = self.stage(codes, steps.owner, index, steps.open, steps.anchor, finished)
        posterior = self.posterior(stage, steps.member)
        z = posterior.draw(noise)
        fixed = Latent(*(part.detach() for part in posterior))
        log_weights = (
            self.prior(stage).log_prob(z)
            + self.log_joining(stage, z, steps.member)
            - fixed.log_prob(z)
        )
        return importance_bound(log_weights, z)


def take_rows(values: Tensor, owner: Tensor, index: Tensor) -> Tensor:
    """Rows ``index`` (R, M) of sets ``owner`` (R,) from ``values`` (B, N, C): (R, M, C)."""
    flat = (owner[:, None] * values.shape[1] + index).flatten()
    return values.flatten(0, 1).index_select(0, flat).unflatten(0, tuple(index.shape))


class _SplitLinear(nn.Linear):
    """A linear map of a concatenation, to be applied part by part; part 0 carries the bias."""

    def __init__(self, dims: list[int], out: int) -> None:
        super().__init__(sum(dims), out)
        self.dims = dims

    def forward(self, part: int, x: Tensor) -> Tensor:  # type: ignore[override]
        """Contribution of one part of the input."""
        weight = self.weight.split(self.dims, dim=1)[part]
        return F.linear(x, weight, self.bias if part == 0 else None)


class _MeanPool(nn.Module):
    """Mean of the rows (R, M, C) that are kept; zero if none is."""

    def forward(self, rows: Tensor, keep: Tensor) -> Tensor:
        weight = keep.to(rows.dtype).unsqueeze(1)
        return (weight @ rows).squeeze(1) / keep.sum(dim=1, keepdim=True).clamp_min(1)


class _AttentionPool(nn.Module):
    """One learned row attends to the rows (R, M, C) that are kept; zero if none is."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.pool = PMA(width, width, heads, n_seeds=1)

    def forward(self, rows: Tensor, keep: Tensor) -> Tensor:
        return self.pool(rows, keep).squeeze(1) * keep.any(dim=1, keepdim=True)
