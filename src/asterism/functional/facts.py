"""What describes a data set as a whole: numbers that tell which of its relations to believe.

From quick partitions, paths, walks and the rows themselves (:mod:`asterism.functional.relations`):

    peaks        mean silhouettes of the quick partitions, compared with each other
    silhouette   their mean
    slopes       − Δ log W / Δ log k from one k to the next, W the sum of squares that is left
    edges        shares of the rows that lie between two clusters of a quick partition
    middles      the same by margins, which do not shrink with the number of dimensions
    apart        log mean (1 − margin)², which is − 2 log (δ / 2) for clusters that lie δ standard
                 deviations from their neighbours, along the line of the centres
    pieces       logarithm of the number of pieces when no step of a path may be longer than some
                 multiples of the median c, and the share of the rows in them
    traces       log Σ_i (Pᵗ)_ii, a soft count of clusters
    spectrum     log shares of variance along the leading axes
    moments      excess kurtosis and size of the skewness along the first of them, where they are
                 clearly apart: flat along an axis that parts clusters
    sizes        log N, log D

all brought to about unit spread by constants, since differences between them are what tells.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from asterism.functional.pairs import LIMIT, TINY
from asterism.functional.probes import QuickPartitions, pieces, principal_axes

__all__ = ["STEPS", "count_facts", "gather_facts"]

STEPS = (0.35, 0.5, 0.65, 0.8, 0.95, 1.1, 1.25, 1.5, 1.8, 2.2, 2.8, 3.7, 5.0, 8.0)
"""Longest steps of a path at which pieces are counted, in units of the median core distance.

Below one, pieces are the dense cores of clusters whose surroundings have merged.
"""

_SPECTRUM, _AXES = 8, 4  # leading axes whose variance, and whose moments, are told
_PEAK, _LEVEL = 10.0, 5.0
_EDGE, _MIDDLE = 0.15, 0.2
_FLAT = 1e-4  # share of the leading variance below which an axis is taken for none
_GAP = 0.05  # relative difference of two variances at which their axes are half clear
_PIECE, _LEAST = 0.02, 5  # share of the rows, and number, that a piece has at least


def count_facts(families: Sequence[Sequence[int]], n_walks: int) -> int:
    """How many facts there are, for families of partitions with these numbers of clusters."""
    n_partitions = sum(map(len, families))
    others = 2 * len(STEPS) + n_walks + _SPECTRUM + 2 * _AXES + 2
    return 5 * n_partitions + len(families) + others


def gather_facts(
    x: Tensor,
    quick: Sequence[QuickPartitions],
    families: Sequence[Sequence[int]],
    paths: Tensor,
    core: Tensor,
    walks: Sequence[Tensor],
) -> Tensor:
    """Facts (B, count_facts) of centred rows (B, N, D), in the order of the header.

    ``quick`` are the partitions of each family, ``core`` (B, N) the core distances under which the
    ``paths`` (B, N, N) were found, ``walks`` the probabilities (B, N, N) of each length.
    """
    silhouettes = torch.cat([found.silhouettes for found in quick], dim=-1)
    margins = torch.cat([found.margins for found in quick], dim=-1)
    return torch.cat(
        [
            *(part for found in quick for part in _peaks(found.silhouettes)),
            *(
                _slopes(found.inertia, counts)
                for found, counts in zip(quick, families, strict=True)
            ),
            _share_below(silhouettes, _EDGE),
            _share_below(margins, _MIDDLE),
            ((1 - margins).square().mean(dim=1) + 0.01).log() + 1,
            _pieces(paths, core),
            *(w.diagonal(dim1=1, dim2=2).sum(dim=-1, keepdim=True).log() for w in walks),
            *_axes(x),
            _sizes(x),
        ],
        dim=-1,
    )


def _axes(x: Tensor) -> tuple[Tensor, Tensor]:
    """Log shares (B, _SPECTRUM) of variance along leading axes, and moments (B, 2 _AXES) there.

    The moments are excess kurtosis within [−2, 4] and the size of the skewness up to 3. They fade
    where two axes have nearly the same variance, since then neither is any direction.
    """
    values, vectors = principal_axes(x)
    shares = values[:, :_SPECTRUM] / values.sum(dim=-1, keepdim=True).clamp_min(1e-12)
    shares = (F.pad(shares, (0, _SPECTRUM - shares.shape[1])) + 0.01).log() + 3
    y = x @ vectors[..., :_AXES]
    real = values[:, :_AXES] > _FLAT * values[:, :1].clamp_min(1e-12)
    scale = (x.shape[1] / values[:, :_AXES].clamp_min(1e-12)).sqrt()
    y = y * torch.where(real, scale, 0.0)[:, None]
    next_values = F.pad(values, (0, _AXES + 1))[:, 1 : y.shape[2] + 1]
    gap = 1 - next_values / values[:, : y.shape[2]].clamp_min(1e-12)
    apart = torch.minimum(gap, F.pad(gap, (1, 0), value=1.0)[:, :-1]).clamp_min(0)
    clear = real * apart / (apart + _GAP)
    kurtosis = (y.pow(4).mean(dim=1) - 3).clamp(-2, 4) * clear
    skewness = y.pow(3).mean(dim=1).abs().clamp_max(3) * clear
    short = _AXES - y.shape[2]
    return shares, torch.cat([F.pad(kurtosis, (0, short)), F.pad(skewness, (0, short))], dim=-1)


def _pieces(paths: Tensor, core: Tensor) -> Tensor:
    """Logarithm of the number of pieces and the share of rows in them, (B, 2 STEPS)."""
    n = core.shape[1]
    steps = torch.tensor(STEPS, dtype=core.dtype, device=core.device)
    # Copies have no distance: the usual step is one between different rows.
    floor = core.amin(dim=1, keepdim=True) * 1.01
    usual = torch.where(core > floor, core, torch.nan).nanmedian(dim=1).values
    longest = torch.where(usual.isnan(), core[:, 0], usual)[:, None] * steps
    number, share = pieces(paths, longest, max(_LEAST, round(_PIECE * n)))
    return torch.cat([number.clamp_min(0.5).log(), 2 * share - 1], dim=-1)


def _peaks(silhouettes: Tensor) -> tuple[Tensor, Tensor]:
    """Mean silhouettes (B, partitions) compared with each other, and their mean (B, 1)."""
    mean = silhouettes.mean(dim=1)
    level = mean.mean(dim=-1, keepdim=True)
    return _PEAK * (mean - level), _LEVEL * (level - 0.45)


def _share_below(values: Tensor, limit: float) -> Tensor:
    """Logarithms (B, partitions) of the share of rows (B, N, partitions) below a limit."""
    return ((values < limit).to(values.dtype).mean(dim=1) + 0.01).log() + 3


def _slopes(inertia: Tensor, counts: Sequence[int]) -> Tensor:
    """How fast the sum of squares falls with the number of clusters, (B, counts)."""
    left = F.pad(inertia.clamp_min(TINY).log(), (1, 0))
    steps = torch.tensor((1, *counts), dtype=inertia.dtype, device=inertia.device).log()
    return (-left.diff(dim=-1) / steps.diff() - 0.7).clamp(-LIMIT, LIMIT)


def _sizes(x: Tensor) -> Tensor:
    """Logarithms of rows and of columns that vary, (B, 2), centred by eye."""
    n = torch.full((len(x),), float(x.shape[1]), device=x.device, dtype=x.dtype)
    columns = (x.std(dim=1) > 0).sum(dim=-1).clamp_min(1)
    return torch.stack([n.log() - 5.3, columns.log() - 2.0], dim=-1)
