"""What the priors share: checks of their settings, sizes, Gaussian points, the batch.

N ~ Unif{lowest … highest}, one a batch
x_i ~ N(μ_{y_i}, diag σ_{y_i}²)
"""

import math
from numbers import Integral, Real
from typing import Any

import torch
from torch import Tensor

from asterism.functional.mixtures import LOG_FLOOR, Mixture
from asterism.functional.sets import SetBatch
from asterism.priors.partitions import without_gaps

__all__ = [
    "check_numbers",
    "check_sizes",
    "draw_points",
    "draw_size",
    "log_weights",
    "mixture_batch",
]


def check_sizes(n_points: Any) -> None:
    """Refuse what is not a pair (lowest, highest) of positive integers."""
    ends = n_points if isinstance(n_points, tuple | list) else ()
    whole = len(ends) == 2 and all(_is_number(end, Integral) for end in ends)
    if not whole or not 1 <= ends[0] <= ends[1]:
        raise ValueError(
            f"n_points={n_points} must be (lowest, highest), two integers, 1 at the least"
        )


def check_numbers(prior: Any, *, whole: tuple[str, ...] = (), real: tuple[str, ...] = ()) -> None:
    """Refuse fields that are not positive numbers, whole or real as named."""
    for name in whole:
        if not _is_number(getattr(prior, name), Integral):
            raise TypeError(f"{name}={getattr(prior, name)!r} must be an integer")
    for name in real:
        if not _is_number(getattr(prior, name), Real):
            raise TypeError(f"{name}={getattr(prior, name)!r} must be a number")
    for name in (*whole, *real):
        if not 0 < getattr(prior, name) < math.inf:
            raise ValueError(f"{name}={getattr(prior, name)} must be positive and finite")


def draw_size(n_points: tuple[int, int], generator: torch.Generator) -> int:
    """Points a data set, uniform from lowest to highest, both included."""
    low, high = n_points
    return int(torch.randint(low, high + 1, (), generator=generator))


def draw_points(
    labels: Tensor, means: Tensor, scales: Tensor, generator: torch.Generator
) -> Tensor:
    """Points (B, N, D) around the means (B, K, D) of their labels (B, N)."""
    member = labels.unsqueeze(-1).expand(-1, -1, means.shape[-1])
    noise = torch.randn(member.shape, generator=generator)
    return means.gather(1, member) + scales.gather(1, member) * noise


def log_weights(weights: Tensor) -> Tensor:
    """Logs that stay finite where a weight is zero."""
    return weights.log().clamp_min(LOG_FLOOR)


def mixture_batch(
    x: Tensor, labels: Tensor, weights: Tensor, means: Tensor, scales: Tensor
) -> SetBatch:
    """Full batch with its true mixture; clusters that own no point are numbered last."""
    labels, order = without_gaps(labels, weights.shape[1])
    each = order.unsqueeze(-1).expand(-1, -1, means.shape[-1])
    truth = Mixture(
        log_weights(weights.gather(1, order)), means.gather(1, each), scales.gather(1, each)
    )
    return SetBatch(x, torch.ones(labels.shape, dtype=torch.bool), labels, truth)


def _is_number(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
