"""Gaussian clusters of which each has a width of its own about the one expected.

    log s ~ N(0, τ²),   Σ | s ~ inverse-Wishart(s Ψ₀, ν₀),   μ | Σ, s ~ N(m₀, Σ / s κ₀)

so that clusters are wider or narrower by a factor, whatever is expected of their shape, and means
lie as far apart whether clusters are wide or narrow. The evidence is a sum over values of s, as far
as 2.5 τ. With τ = 0 it is that of ``functional.niw``. With Ψ₀ = ψ I, λ the eigenvalues of a
cluster's scatter, o its mean along their axes and c = κ₀n / (κ₀ + n),

    |Ψ| = Π_d (λ_d + ψ) · (1 + c Σ_d o_d² / (λ_d + ψ))

so that one eigendecomposition a cluster serves all s, ψ and κ₀.

Banerjee, Dhillon, Ghosh & Sra, "Clustering on the unit hypersphere using von Mises-Fisher
distributions", JMLR 2005, whose clusters of directions have concentrations of their own.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from asterism.functional.niw import Gaussians, NormalWishart, Statistics, spread_evidence

__all__ = ["OwnWidths", "round_evidences", "shared_shape"]

_VALUES, _REACH = 25, 2.5  # of s, and how many τ they reach to
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
            log_s, _ = _widths(self.spread)
            width = torch.tensordot(log_s, self._joint(stats).softmax(dim=0), dims=1).exp()
        return super().mode(stats, width)

    def _joint(self, stats: Statistics) -> Tensor:
        """Log f and log weight of each s, (S, ...)."""
        log_s, weights = _widths(self.spread)
        about, unit = stats.about(self.mean), self.scale.rsqrt()
        white = Statistics(about.n, about.total * unit, about.square * torch.outer(unit, unit))
        found = _evidences(_spectrum(white), log_s.exp(), self.nu, self.kappa * log_s.exp())
        shape = (-1, *(1,) * stats.n.dim())
        return found + weights.view(shape) + stats.n * unit.log().sum()


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
    log_s, weights = _widths(spread)
    s = log_s.exp()
    of_m = [
        _evidences(found, m * s, dim + 1 + m, kappas.to(s)[:, None] * s)
        + weights.view(-1, *(1,) * stats.n.dim())
        for m in strengths.to(s).tolist()
    ]
    return torch.stack(of_m).logsumexp(dim=2)


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


def _widths(spread: float) -> tuple[Tensor, Tensor]:
    """Log s (S,) and the log of their weights."""
    if spread == 0:
        return torch.zeros(1, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
    steps = torch.linspace(-_REACH, _REACH, _VALUES, dtype=torch.float64)
    return spread * steps, torch.log_softmax(-steps.square() / 2, dim=0)


def _spectrum(stats: Statistics) -> _Spectrum:
    mean = stats.total / stats.n.clamp_min(1e-300).unsqueeze(-1)
    scatter = stats.square - stats.total.unsqueeze(-1) * mean.unsqueeze(-2)
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
