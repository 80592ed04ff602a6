"""Networks whose clusters split and merge: one that assigns rows, and one a cluster that parts it.

    r(x)   = softmax(V relu(Ux + a) + b)                K outputs, the assigning net
    r̃_k(x) = softmax(V_k relu(U_k x + a_k) + b_k)       2 outputs, one net a cluster

The assigning net imitates the E-step of a Gaussian mixture, whose parameters it is told:

    forward   KL(r^E ‖ r), r^E ∝ π_k N(x; μ_k, Σ_k): what the authors' code does
    reverse   KL(r ‖ r^E): what the paper writes

and the small nets learn halves by L = Σ_j r̃_kj |x − μ̃_kj|². The nets of all clusters are one
batched product over (K, hidden, D); growing and shrinking is indexing along K. A split cluster's
two outputs begin as its one, moved apart by the log-odds of the halves, regressed on the hidden
layer; a merged one's is that of the larger part.

Ronen, Finder & Freifeld, "DeepDPM: deep clustering with an unknown number of clusters", CVPR 2022.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from asterism.functional.niw import Gaussians

__all__ = ["KL_DIRECTIONS", "SplitMergeBatch", "SplitMergeNet"]

KL_DIRECTIONS = ("forward", "reverse")

_SMOOTH = 1e-5
_IMPOSSIBLE = -50.0  # the log-probability below which none is told
_RIDGE = 1e-2
_CERTAIN = 8.0  # log-odds beyond which halves are told apart well enough


class SplitMergeBatch(NamedTuple):
    """Rows to assign, and rows of every cluster to part."""

    rows: Tensor  # (B, D)
    members: Tensor | None = None  # (K, M, D)
    targets: Tensor | None = None  # (B, K) of the rows, where they are known already

    def to(self, device: torch.device) -> "SplitMergeBatch":
        """The same on a device."""
        members, targets = (
            None if part is None else part.to(device) for part in (self.members, self.targets)
        )
        return SplitMergeBatch(self.rows.to(device), members, targets)


class SplitMergeNet(nn.Module):
    """Assigns rows to K clusters and parts each cluster in two."""

    log_weights: Tensor
    means: Tensor
    whiteners: Tensor
    halves: Tensor

    def __init__(
        self,
        dim: int,
        n_clusters: int,
        width: int = 50,
        sub_width: int = 50,
        covariance: str = "full",
        kl: str = "forward",
    ) -> None:
        super().__init__()
        self.kl = kl
        self.hidden = nn.Linear(dim, width)
        self.weight = nn.Parameter(torch.empty(n_clusters, width))
        self.bias = nn.Parameter(torch.zeros(n_clusters))
        nn.init.normal_(self.weight, std=width**-0.5)
        self.sub = nn.ParameterList(_new_parts(n_clusters, sub_width, dim))
        square = (dim, dim) if covariance == "full" else (dim,)
        self.register_buffer("log_weights", torch.zeros(n_clusters))
        self.register_buffer("means", torch.zeros(n_clusters, dim))
        self.register_buffer("whiteners", torch.ones(n_clusters, *square))
        self.register_buffer("halves", torch.zeros(n_clusters, 2, dim))

    @property
    def n_clusters(self) -> int:
        """K now."""
        return len(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Log r (..., K) of rows (..., D)."""
        return torch.log_softmax(self._features(x) @ self.weight.mT + self.bias, dim=-1)

    def mixture_log_prob(self, x: Tensor) -> Tensor:
        """Log π_k N(x; μ_k, Σ_k), (N, K): what the net imitates, up to its norm."""
        return Gaussians(self.means, self.whiteners).log_prob(x) + self.log_weights

    def parts(self, members: Tensor) -> Tensor:
        """Log r̃ (K, M, 2) of rows (K, M, D), each under its own cluster's net."""
        first, shift, second, offset = self.sub
        hidden = torch.relu(torch.baddbmm(shift.unsqueeze(1), members, first.mT))
        return torch.log_softmax(torch.baddbmm(offset.unsqueeze(1), hidden, second.mT), dim=-1)

    def loss(self, batch: SplitMergeBatch) -> Tensor:
        """Divergence from the E-step, and what the halves leave unexplained."""
        loss = self.divergence(batch.rows, batch.targets)
        if batch.members is not None:
            apart = (batch.members.unsqueeze(2) - self.halves.unsqueeze(1)).square().sum(dim=-1)
            loss = loss + (self.parts(batch.members).exp() * apart).sum(dim=-1).mean(dim=1).sum()
        return loss

    def divergence(self, x: Tensor, targets: Tensor | None = None) -> Tensor:
        """Mean divergence of the net and the E-step, ``targets`` if given, on rows (N, D)."""
        target = self.targets(x) if targets is None else targets
        log_r = self(x)
        if self.kl == "forward":
            return (target.exp() * (target - log_r)).sum(dim=-1).mean()
        log_r, target = _smoothed(log_r), _smoothed(target)
        return (log_r.exp() * (log_r - target)).sum(dim=-1).mean()

    @torch.no_grad()
    def targets(self, x: Tensor) -> Tensor:
        """Log r^E (N, K) of rows (N, D): the E-step of the mixture."""
        # Bounded, so that no weight falls below the normal numbers, with which sums are slow.
        return torch.log_softmax(self.mixture_log_prob(x), dim=-1).clamp_min(_IMPOSSIBLE)

    def tell(self, densities: Gaussians, log_weights: Tensor, halves: Tensor | None = None) -> None:
        """Take over the mixture's parameters, and the means of every cluster's halves."""
        parts = {
            "log_weights": log_weights,
            "means": densities.mean,
            "whiteners": densities.whitener,
            "halves": self.halves if halves is None else halves,
        }
        for name, value in parts.items():
            setattr(self, name, value.to(self.bias.device, torch.float32))

    @torch.no_grad()
    def plan_split(self, members: Tensor, keep: Tensor, odds: Tensor) -> Tensor:
        """Directions (S, H + 1) of the hidden layer that tell the halves of S clusters apart.

        A ridge regression of the log-odds ``odds`` (S, M) of the halves, over rows ``members``
        (S, M, D) where ``keep`` (S, M).
        """
        design = self._design(members.to(self.bias.device)) * keep.unsqueeze(-1).to(self.bias)
        ridge = _RIDGE * keep.sum(dim=1).clamp_min(1).to(self.bias)
        gram = design.mT @ design
        gram = gram + ridge[:, None, None] * torch.eye(gram.shape[-1], device=gram.device)
        odds = (odds * keep).clamp(-_CERTAIN, _CERTAIN).to(self.bias)
        return torch.linalg.solve(gram, design.mT @ odds.unsqueeze(-1)).squeeze(-1)

    @torch.no_grad()
    def halve(self, x: Tensor, directions: Tensor) -> Tensor:
        """Log-odds (N,) of the halves for rows (N, D), each with its own direction (N, H + 1)."""
        return (self._design(x.to(self.bias.device)) * directions).sum(dim=-1)

    @torch.no_grad()
    def split(self, which: Tensor, directions: Tensor) -> None:
        """Replace the clusters ``which`` (S,) by two each, which come last, pair by pair."""
        weight = _paired(self.weight[which], directions[:, :-1] / 2)
        bias = _paired(self.bias[which, None], directions[:, -1:] / 2).squeeze(-1)
        stay = self.others(which)
        self._keep(stay, weight, bias)
        self._renew_parts(stay, 2 * len(which))

    @torch.no_grad()
    def merge(self, pairs: Tensor, larger: Tensor) -> None:
        """Replace ``pairs`` (M, 2) by one cluster each, last; its outputs are the ``larger``'s."""
        stay = self.others(pairs.flatten())
        self._keep(stay, self.weight[larger], self.bias[larger])
        self._renew_parts(stay, len(pairs))

    @torch.no_grad()
    def drop(self, which: Tensor) -> None:
        """Forget clusters."""
        stay = self.others(which)
        self._keep(stay, self.weight[:0], self.bias[:0])
        self._renew_parts(stay, 0)

    @torch.no_grad()
    def permute(self, order: Tensor) -> None:
        """Put the clusters in another order."""
        self.weight, self.bias = nn.Parameter(self.weight[order]), nn.Parameter(self.bias[order])
        self.sub = nn.ParameterList([nn.Parameter(part[order]) for part in self.sub])
        for name in ("log_weights", "means", "whiteners", "halves"):
            setattr(self, name, getattr(self, name)[order])

    def _features(self, x: Tensor) -> Tensor:
        return torch.relu(self.hidden(x))

    def _design(self, x: Tensor) -> Tensor:
        features = self._features(x)
        return torch.cat([features, torch.ones_like(features[..., :1])], dim=-1)

    def others(self, which: Tensor) -> Tensor:
        """Numbers of the clusters that are not among these, in order."""
        stay = torch.ones(self.n_clusters, dtype=torch.bool)
        stay[which.cpu()] = False
        return stay.nonzero().squeeze(1)

    def _keep(self, stay: Tensor, weight: Tensor, bias: Tensor) -> None:
        self.weight = nn.Parameter(torch.cat([self.weight[stay], weight]))
        self.bias = nn.Parameter(torch.cat([self.bias[stay], bias]))

    def _renew_parts(self, stay: Tensor, n_new: int) -> None:
        fresh = _new_parts(n_new, self.sub[0].shape[1], self.sub[0].shape[2])
        joined = [
            torch.cat([old[stay], new.to(old)]) for old, new in zip(self.sub, fresh, strict=True)
        ]
        self.sub = nn.ParameterList([nn.Parameter(part.detach().clone()) for part in joined])


def _new_parts(n_clusters: int, width: int, dim: int) -> list[Tensor]:
    """U, a, V, b of the nets that part ``n_clusters`` clusters."""
    return [
        torch.randn(n_clusters, width, dim) / dim**0.5,
        torch.zeros(n_clusters, width),
        torch.randn(n_clusters, 2, width) / width**0.5,
        torch.zeros(n_clusters, 2),
    ]


def _paired(value: Tensor, offset: Tensor) -> Tensor:
    """Rows value + offset and value − offset, one pair after the other."""
    return torch.stack([value + offset, value - offset], dim=1).flatten(0, 1)


def _smoothed(log_r: Tensor) -> Tensor:
    return F.normalize(log_r.exp() + _SMOOTH, p=1, dim=-1).log()
