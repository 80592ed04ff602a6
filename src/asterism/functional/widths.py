"""Gaussian clusters of which each has a width of its own about the one expected.

    log s ~ N(0, τ²),   Σ | s ~ inverse-Wishart(s Ψ₀, ν₀),   μ | Σ, s ~ N(m₀, Σ / s κ₀)

so that clusters are wider or narrower by a factor, whatever is expected of their shape, and means
lie as far apart whether clusters are wide or narrow. The evidence is a sum over values of s, as far
as 2.5 τ. With τ = 0 it is that of ``functional.niw``. With Ψ₀ = ψ I, λ the eigenvalues of a
cluster's scatter, o its mean along their axes and c = κ₀n / (κ₀ + n),

    |Ψ| = Π_d (λ_d + ψ) · (1 + c Σ_d o_d² / (λ_d + ψ))

so that one eigendecomposition a cluster serves all s, ψ and κ₀. Along log s, log f is as smooth as
log(1 + s) while f itself may be narrow: it is found at a few values and interpolated by cubic
splines, and the sum is over many.

Banerjee, Dhillon, Ghosh & Sra, "Clustering on the unit hypersphere using von Mises-Fisher
distributions", JMLR 2005, whose clusters of directions have concentrations of their own.
"""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from scipy.interpolate import CubicSpline
from torch import Tensor

from asterism.functional.niw import Gaussians, NormalWishart, Statistics, spread_evidence

__all__ = ["OwnWidths", "round_evidences", "shared_shape"]

_VALUES, _FINE, _REACH = 25, 241, 2.5  # of s looked at, in the sum, and how many τ they reach to
_STEADY = 20  # rows' worth by which widths are drawn together, where a common shape is found
_ROUNDS = 3


class _Spectrum(NamedTuple):
    n: Tensor  # (...) rows
    values: Tensor  # (..., D) λ
    along: Tensor  # (..., D) o²


@dataclass(frozen=True)
class OwnWidths(NormalWishart):
    """The prior of a cluster's mean, full covariance and width.

    Examples
    --------
    >>> one = Statistics(torch.ones(1), torch.zeros(1, 2), torch.zeros(1, 2, 2))
    >>> mean, scale = torch.zeros(2, dtype=torch.float64), torch.ones(2, dtype=torch.float64)
    >>> same = NormalWishart(mean, scale).log_evidence(one)
    >>> torch.testing.assert_close(OwnWidths(mean, scale).log_evidence(one), same)
    """

    spread: float = 0.0  # τ

    def log_evidence(self, stats: Statistics) -> Tensor:
        """Log f of the rows of each cluster, (...)."""
        return self._joint(stats).logsumexp(dim=0)

    def mode(self, stats: Statistics, width: Tensor | None = None) -> Gaussians:
        """Most probable mean and covariance of each cluster, of the width that is expected of it.

        >>> one = torch.ones(1, dtype=torch.float64)
        >>> nine = Statistics(9 * one, 0 * one[None], 81 * one[None, None])
        >>> for tau in (0.0, 1.0):
        ...     prior = OwnWidths(0 * one, 50 * one, degrees=50.0, spread=tau)
        ...     print(round(1 / prior.mode(nine).whitener.item(), 1))
        1.5
        2.5
        """
        if width is None:
            share = self._joint(stats).softmax(dim=0)
            width = torch.tensordot(_sum_over(self.spread).log_s, share, dims=1).exp()
        return super().mode(stats, width)

    def expected(self, stats: Statistics) -> tuple[Gaussians, Tensor]:
        """Not known of widths."""
        raise NotImplementedError("only evidence and modes are known of clusters' own widths")

    def draw(self, stats: Statistics, chance: np.random.Generator) -> Gaussians:
        """Not known of widths."""
        raise NotImplementedError("only evidence and modes are known of clusters' own widths")

    def _joint(self, stats: Statistics) -> Tensor:
        """Log f and log weight of each s, (S, ...)."""
        about, unit = stats.about(self.mean), self.scale.rsqrt()
        white = Statistics(about.n, about.total * unit, about.square * torch.outer(unit, unit))
        some = _sum_over(self.spread)
        s = some.looked_at.exp()
        found = some.over(_evidences(_spectrum(white), s, self.nu, self.kappa * s))
        return found + stats.n * unit.log().sum()


def round_evidences(
    stats: Statistics, strengths: Tensor, kappas: Tensor, spread: float = 0.0
) -> Tensor:
    """Log f (S, Q, K) of K clusters under priors about zero: Ψ₀ = m I, ν₀ = D + 1 + m, κ₀ and τ.

    For each m of ``strengths`` (S,) and κ₀ of ``kappas`` (Q,) at once.

    >>> one = Statistics(torch.ones(1), torch.zeros(1, 2), torch.zeros(1, 2, 2))
    >>> round_evidences(one, torch.tensor([1.0, 5.0]), torch.tensor([1e-4])).shape
    torch.Size([2, 1, 1])
    """
    found, dim = _spectrum(stats), stats.total.shape[-1]
    some = _sum_over(spread)
    s = some.looked_at.exp()
    of_m = [
        _evidences(found, m * s, dim + 1 + m, kappas.to(s)[:, None] * s).movedim(1, 0)
        for m in strengths.to(s).tolist()
    ]
    return torch.stack([some.over(one).logsumexp(dim=0) for one in of_m])


def shared_shape(scatters: Tensor, n: Tensor, start: Tensor, steady: Tensor) -> Tensor:
    """The covariance (D, D) that clusters share, each of a width of its own.

    From their scatters (K, D, D), rows n (K,), a covariance to begin with and ``steady`` (D, D), to
    which the shape is drawn by D + 2 rows' worth.
    """
    dim, shape = len(start), start
    freedom = max(float(n.sum()) - len(n), 0.0) + dim + 2
    for _ in range(_ROUNDS):
        inside = torch.einsum("ij,kji->k", torch.linalg.inv(shape), scatters)
        log_s = ((inside + _STEADY * dim) / (dim * (n + _STEADY))).log()
        s = (log_s - (log_s * n).sum() / n.sum()).exp()
        shape = ((scatters / s[:, None, None]).sum(dim=0) + (dim + 2) * steady) / freedom
    return shape


class _Sum(NamedTuple):
    """A sum over s."""

    looked_at: Tensor  # (S,) log s
    log_s: Tensor  # (F,) of the sum
    log_weights: Tensor  # (F,)
    spline: Tensor  # (F, S) from values at the former to values at the latter

    def over(self, values: Tensor) -> Tensor:
        """Terms (F, ...) of the sum, from what is known at ``looked_at`` (S, ...)."""
        # Less what is common, so that sums of large values lose no digits.
        level = values[len(values) // 2]
        terms = torch.tensordot(self.spline, values - level, dims=1) + level
        return terms + self.log_weights.view(-1, *(1,) * (values.dim() - 1))


@cache
def _sum_over(spread: float) -> _Sum:
    if spread == 0:
        zero = torch.zeros(1, dtype=torch.float64)
        return _Sum(zero, zero, zero, torch.ones(1, 1, dtype=torch.float64))
    coarse, fine = (np.linspace(-_REACH, _REACH, n) for n in (_VALUES, _FINE))
    spline = torch.from_numpy(CubicSpline(coarse, np.eye(_VALUES))(fine))
    some, every = torch.from_numpy(coarse), torch.from_numpy(fine)
    weights = torch.log_softmax(-every.square() / 2, dim=0)
    return _Sum(spread * some, spread * every, weights, spline)


def _spectrum(stats: Statistics) -> _Spectrum:
    mean, scatter = stats.total / stats.n.clamp_min(1e-300).unsqueeze(-1), stats.scatter()
    values, axes = torch.linalg.eigh((scatter + scatter.mT) / 2)
    along = (axes.mT @ mean.unsqueeze(-1)).squeeze(-1).square()
    return _Spectrum(stats.n, values.clamp_min(0), along)


def _evidences(found: _Spectrum, psi: Tensor, nu: float, kappas: Tensor) -> Tensor:
    """Log f of clusters (...) under Ψ₀ = ψ I for each ψ of (S,), and κ₀ of (S,) or (Q, S)."""
    n, values, along = found
    dim, inner = values.shape[-1], (1,) * n.dim()
    wide = values + psi.view(-1, *inner, 1)
    kappa = kappas.view(*kappas.shape, *inner)
    pulled = kappa * n / (kappa + n) * (along / wide).sum(dim=-1)
    log_det = wide.log().sum(dim=-1) + torch.log1p(pulled)
    before = dim * psi.log().view(-1, *inner)
    shrink = dim / 2 * (kappa.log() - (kappa + n).log())
    return shrink + spread_evidence(n, torch.tensor(nu, dtype=n.dtype), before, log_det, dim)
