"""Splits and merges of Gaussian clusters, judged by the evidence of their rows.

    log H = log α + log Γ(n₁) + log f(X₁) + log Γ(n₂) + log f(X₂) − log Γ(n) − log f(X)

is the log-ratio by which parting X into X₁ and X₂ is more probable under a Dirichlet process
mixture of Gaussians; a merge has its negative. The gammas charge about n log 2 for an even split:
parts must be apart to pay for it, and a single Gaussian is not cut in two.

Where to cut is searched in all clusters at once, each through a sample of its rows, by expectation
maximisation of two Gaussians, which begin as the two means along each of the leading axes.

Chang & Fisher, "Parallel sampling of DP mixture models using sub-cluster splits", NeurIPS 2013;
Ronen, Finder & Freifeld, "DeepDPM: deep clustering with an unknown number of clusters", CVPR 2022.
"""

import math

import torch
from torch import Tensor

from asterism.functional.niw import Gaussians, NormalWishart, Statistics, gather_statistics

__all__ = [
    "effective_columns",
    "halves_ratio",
    "leading_axes",
    "log_odds",
    "log_split_ratio",
    "merge_ratios",
    "principal_cuts",
    "row_weights",
    "search_splits",
]

_ENTRIES = 1 << 22  # of the products of pairs of clusters looked at together
_FEW_COLUMNS = 32  # up to which all axes are found at once
_SPARE_AXES, _AXIS_ROUNDS = 4, 8


def log_split_ratio(
    first: Statistics,
    second: Statistics,
    prior: NormalWishart,
    alpha: float,
    smallest: float = 1.0,
) -> Tensor:
    """Log H (...) of parting a union; −inf where a part has less than ``smallest`` rows."""
    three = zip(first, second, first.plus(second), strict=True)
    stats = Statistics(*(torch.stack(parts) for parts in three))
    values = torch.lgamma(stats.n.clamp_min(1e-9)) + prior.log_evidence(stats)
    ratio = math.log(alpha) + values[0] + values[1] - values[2]
    least = torch.minimum(first.n, second.n)
    return torch.where(least >= smallest, ratio, -torch.inf)


def merge_ratios(
    stats: Statistics, prior: NormalWishart, alpha: float, n_neighbors: int | None = None
) -> Tensor:
    """Log-ratio (K, K) of merging two of the clusters, −inf on the diagonal.

    With ``n_neighbors`` only pairs of which one mean is among the nearest of the other.
    """
    k = len(stats.n)
    first, second = torch.triu_indices(k, k, 1)
    ratios = torch.full((k, k), -torch.inf, dtype=torch.float64)
    if n_neighbors is not None and k > 1:
        means = stats.total / stats.n.clamp_min(1e-300).unsqueeze(-1)
        apart = torch.cdist(means, means).fill_diagonal_(torch.inf)
        near = apart.argsort(dim=1)[:, :n_neighbors]
        listed = torch.zeros(k, k, dtype=torch.bool).scatter_(1, near, True)
        kept = (listed | listed.mT)[first, second]
        first, second = first[kept], second[kept]
    size = max(1, _ENTRIES // stats.square[0].numel())
    parts = zip(first.split(size), second.split(size), strict=True)
    merged = -torch.cat(
        [log_split_ratio(stats.at(i), stats.at(j), prior, alpha, 0) for i, j in parts]
    )
    ratios[first, second] = merged
    ratios[second, first] = merged
    return ratios


def principal_cuts(x: Tensor, keep: Tensor, n_axes: int) -> Tensor:
    """Hard halves (A, B, N) of sets (B, N, D), cut by two means along each leading axis."""
    weight = keep.unsqueeze(-1).to(x.dtype)
    n = weight.sum(dim=1, keepdim=True).clamp_min(1)
    centred = (x - (x * weight).sum(dim=1, keepdim=True) / n) * weight
    along = (centred @ leading_axes(centred, n_axes).to(x.dtype)).permute(2, 0, 1)  # (A, B, N)
    inside = keep.to(x.dtype)
    cut = torch.zeros_like(along[..., :1])
    for _ in range(10):
        above = (along > cut).to(x.dtype) * inside
        below = inside - above
        high = (along * above).sum(-1, keepdim=True) / above.sum(-1, keepdim=True).clamp_min(1)
        low = (along * below).sum(-1, keepdim=True) / below.sum(-1, keepdim=True).clamp_min(1)
        cut = (high + low) / 2
    return along > cut


def effective_columns(x: Tensor, labels: Tensor, most: int = 2000) -> float:
    """(tr Σ)² / tr Σ² of the covariance Σ within clusters: as many columns as vary by themselves.

    D where clusters are round, fewer where columns are correlated; from evenly spaced rows, at most
    ``most`` of them. With m = n − K degrees of freedom tr Σ² is estimated without bias, from the
    sample's S, by (tr S² − (tr S)² / m) m² / ((m − 1)(m + 2)).

    >>> x = torch.randn(1000, 1, generator=torch.Generator().manual_seed(0)).repeat(1, 5)
    >>> round(effective_columns(x, torch.zeros(1000, dtype=torch.int64)), 1)
    1.0
    """
    rows = torch.linspace(0, len(x) - 1, min(most, len(x)), dtype=torch.float64).round().long()
    x, own = x[rows].double(), labels[rows]
    k = int(own.max()) + 1
    member = torch.nn.functional.one_hot(own, k).to(x.dtype)
    means = (member.mT @ x) / member.sum(dim=0).clamp_min(1).unsqueeze(-1)
    within = x - means[own]
    gram = within.mT @ within if x.shape[1] < len(x) else within @ within.mT
    freedom, trace = len(x) - len(own.unique()), float(gram.trace())
    if freedom < 2 or trace == 0:
        return float(x.shape[1])
    squared = float(gram.square().sum() - trace**2 / freedom) / ((freedom - 1) * (freedom + 2))
    columns = (trace / freedom) ** 2 / squared if squared > 0 else x.shape[1]
    return min(max(columns, 1.0), float(x.shape[1]))


def leading_axes(centred: Tensor, n_axes: int) -> Tensor:
    """Leading principal axes (B, D, A) of centred sets (B, N, D), the longest first.

    In double precision; of many columns by subspace iteration, which needs no (D, D) matrix and
    does not fail where axes are of equal length.
    """
    x = centred.double()
    dim = x.shape[-1]
    n_axes = min(n_axes, dim)
    if dim <= _FEW_COLUMNS:
        _, axes = torch.linalg.eigh(x.mT @ x)
        return axes[..., -n_axes:].flip(-1)
    chance = torch.Generator().manual_seed(0)
    axes = torch.randn(len(x), dim, n_axes + _SPARE_AXES, generator=chance, dtype=x.dtype)
    for _ in range(_AXIS_ROUNDS):
        axes = torch.linalg.qr(x.mT @ (x @ axes.to(x.device))).Q
    values, turn = torch.linalg.eigh((x @ axes).mT @ (x @ axes))
    order = values.argsort(dim=-1, descending=True)[..., None, :n_axes]
    return (axes @ turn).gather(-1, order.expand(-1, dim, -1))


def search_splits(
    x: Tensor,
    keep: Tensor,
    size: Tensor,
    prior: NormalWishart,
    alpha: float,
    smallest: float = 1.0,
    *,
    n_axes: int = 3,
    n_iter: int = 10,
) -> tuple[Gaussians, Tensor]:
    """The best two Gaussians for each of B clusters, and their log-weights (B, 2).

    Parameters
    ----------
    x, keep : Tensor of shape (B, N, D), (B, N)
        Rows of each cluster, padded.
    size : Tensor of shape (B,)
        How many rows each cluster counts for; those given are a sample of them.
    prior, alpha
        Of the mixture.
    smallest : float
        What each half must count for.
    n_axes, n_iter : int
        Leading axes along which to begin with a cut, and rounds of expectation maximisation.
    """
    x = x.double()
    halves = principal_cuts(x, keep, n_axes)
    weight = row_weights(keep, size)
    rows = x.expand(len(halves), *x.shape)
    r = torch.stack([halves, ~halves], dim=-1).to(x.dtype)  # (A, B, N, 2)
    for _ in range(n_iter):
        stats = gather_statistics(rows, r * weight, prior.covariance)
        densities, log_weights = prior.mode(stats), (stats.n + 1).log()
        joint = densities.log_prob(rows) + log_weights.unsqueeze(-2)
        r = torch.softmax(joint, dim=-1)
    first = joint[..., 0] > joint[..., 1]
    ratios = halves_ratio(rows, first, weight, prior, alpha, smallest)
    best, b = ratios.argmax(dim=0), torch.arange(len(size))
    found = Gaussians(densities.mean[best, b], densities.whitener[best, b])
    return found, log_weights[best, b]


def log_odds(x: Tensor, halves: Gaussians, log_weights: Tensor) -> Tensor:
    """Log-odds (B, N) of the first of two Gaussians for rows (B, N, D)."""
    joint = halves.log_prob(x.double()) + log_weights.unsqueeze(-2)
    return joint[..., 0] - joint[..., 1]


def row_weights(keep: Tensor, size: Tensor) -> Tensor:
    """Weights (B, N, 1) by which the rows that are there count for ``size`` (B,) in all."""
    share = size / keep.sum(dim=1).clamp_min(1)
    return keep.double().unsqueeze(-1) * share.view(-1, 1, 1)


def halves_ratio(
    x: Tensor,
    first: Tensor,
    weight: Tensor,
    prior: NormalWishart,
    alpha: float,
    smallest: float = 1.0,
) -> Tensor:
    """Log H (...) of parting weighted rows (..., N, D) into those in ``first`` and the others."""
    r = torch.stack([first, ~first], dim=-1) * weight
    stats = gather_statistics(x, r, prior.covariance)
    return log_split_ratio(stats.of(0), stats.of(1), prior, alpha, smallest)
