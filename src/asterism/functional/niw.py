"""Gaussian clusters under a conjugate prior: statistics, evidence, most probable parameters.

    Σ ~ inverse-Wishart(Ψ₀, ν₀),   μ | Σ ~ N(m₀, Σ / κ₀);   E Σ = Ψ₀ where ν₀ = D + 2

Of n rows with mean x̄ and scatter S, which follow from n, Σ x and Σ xxᵀ,

    κ = κ₀ + n,   ν = ν₀ + n,   Ψ = Ψ₀ + S + κ₀n/κ (x̄ − m₀)(x̄ − m₀)ᵀ
    log f = − nD/2 log π + log Γ_D(ν/2) − log Γ_D(ν₀/2) + ν₀/2 log|Ψ₀| − ν/2 log|Ψ| + D/2 log κ₀/κ
    mode    μ = (κ₀m₀ + nx̄) / κ,   Σ = Ψ / (ν + D + 2)

and the same with weights, n = Σ_i r_i. Covariances are

    full        as above
    diagonal    every column by itself, under the prior's marginal: D = 1 with ν₀ − D + 1
    isotropic   one variance for all columns, with that marginal of the mean of Ψ₀'s diagonal; the
                evidence may count for fewer ``columns``, where not all of them vary by themselves

Ψ₀ is diagonal. Statistics of a union are sums of statistics, so merging needs no second look at the
rows. Everything is in double precision: at n = 35 000 single precision errs by half a nat.

Gelman et al., "Bayesian data analysis", 3rd edition, 2013, section 3.6.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

__all__ = [
    "COVARIANCES",
    "Gaussians",
    "NormalWishart",
    "Statistics",
    "gather_statistics",
    "label_statistics",
    "spread_evidence",
]

COVARIANCES = ("full", "diagonal", "isotropic")

_ROWS = 1 << 14  # of a cluster looked at together
_FEW = 8  # clusters up to which it pays to look at one after the other
_ENTRIES = 1 << 22  # of products of columns held at once
_JITTERS = 12


class Statistics(NamedTuple):
    """Sums over the rows of clusters, any leading shape."""

    n: Tensor  # (...) rows, or their weight
    total: Tensor  # (..., D) Σ x
    square: Tensor  # (..., D, D) Σ xxᵀ if covariances are full, else (..., D) Σ x²

    def plus(self, other: "Statistics") -> "Statistics":
        """Those of the unions."""
        return Statistics(*(a + b for a, b in zip(self, other, strict=True)))

    def times(self, factor: float) -> "Statistics":
        """Those of as many times the rows."""
        return Statistics(*(part * factor for part in self))

    def scatter(self) -> Tensor:
        """Products (..., D, D) of the rows about their clusters' means, where products are full."""
        mean = self.total / self.n.clamp_min(1e-300).unsqueeze(-1)
        return self.square - self.total.unsqueeze(-1) * mean.unsqueeze(-2)

    def about(self, mean: Tensor) -> "Statistics":
        """Those of the rows less ``mean`` (D,), of full products."""
        n, total = self.n, self.total
        cross = total.unsqueeze(-1) * mean
        square = self.square - cross - cross.mT + n[..., None, None] * torch.outer(mean, mean)
        return Statistics(n, total - n.unsqueeze(-1) * mean, square)

    def at(self, index: Tensor | slice | int) -> "Statistics":
        """Those of some clusters."""
        return Statistics(*(part[index] for part in self))

    def of(self, j: int) -> "Statistics":
        """Those of cluster ``j`` along the last axis of clusters."""
        axis = self.n.dim() - 1
        return Statistics(*(part.select(axis, j) for part in self))


class Gaussians(NamedTuple):
    """Normal densities, as what whitens them."""

    mean: Tensor  # (..., D)
    whitener: Tensor  # (..., D, D) inverse Cholesky factor, or (..., D) 1 / deviation

    def log_prob(self, x: Tensor) -> Tensor:
        """Log density of rows (..., N, D) under each of K, (..., N, K)."""
        if self.whitener.dim() == self.mean.dim() + 1:
            shift = (self.whitener @ self.mean.unsqueeze(-1)).squeeze(-1)  # (..., K, D)
            white = (x.unsqueeze(-3) @ self.whitener.mT) - shift.unsqueeze(-2)  # (..., K, N, D)
            log_det = self.whitener.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)
            mahalanobis = white.square().sum(dim=-1).mT
        else:  # expanded about the mean of the centres, in matrix products: (N, K, D) is not held
            origin = self.mean.mean(dim=-2, keepdim=True)
            x, mean = x - origin, self.mean - origin
            precision = self.whitener.square()
            cross = x.square() @ precision.mT - 2 * x @ (mean * precision).mT
            own = (mean.square() * precision).sum(dim=-1).unsqueeze(-2)
            mahalanobis = (cross + own).clamp_min(0)
            log_det = self.whitener.log().sum(dim=-1)
        log_p = log_det.unsqueeze(-2) - mahalanobis / 2
        return log_p - x.shape[-1] / 2 * math.log(2 * math.pi)


@dataclass(frozen=True)
class NormalWishart:
    """The prior of a cluster's mean and covariance.

    Examples
    --------
    >>> prior = NormalWishart(torch.zeros(2), torch.ones(2))
    >>> prior.nu
    4.0
    >>> one = gather_statistics(torch.ones(1, 2), torch.ones(1, 1), prior.covariance)
    >>> round(prior.log_evidence(one).item(), 2)
    -9.95
    """

    mean: Tensor  # (D,)
    scale: Tensor  # (D,) the diagonal of Ψ₀
    kappa: float = 1e-4
    degrees: float | None = None  # ν₀, by default D + 2
    covariance: str = "full"
    columns: float | None = None  # that isotropic clusters count for, by default D

    @property
    def dim(self) -> int:
        """D."""
        return len(self.mean)

    @property
    def nu(self) -> float:
        """ν₀."""
        return float(self.dim + 2 if self.degrees is None else self.degrees)

    def log_evidence(self, stats: Statistics) -> Tensor:
        """Log f of the rows of each cluster, (...)."""
        n, kappa = stats.n, self.kappa + stats.n
        psi = self._psi(stats)
        columns: float = self.dim
        if self.covariance == "isotropic" and self.columns is not None:
            columns = self.columns
            psi = self._psi0 + (psi - self._psi0) * columns / self.dim
        shrink = columns / 2 * (math.log(self.kappa) - kappa.log())
        if self.covariance == "full":
            nu = torch.tensor(self.nu, dtype=n.dtype)
            return shrink + spread_evidence(n, nu, self.scale.log().sum(), _log_det(psi), self.dim)
        # Inverse gamma: one variance for each column, or for all.
        a0, b0 = self._shape, self._psi0 / 2
        width = 1 if self.covariance == "diagonal" else columns
        a, b = a0 + n * width / 2, psi / 2
        gain = a0 * b0.log() - a.unsqueeze(-1) * b.log()
        gammas = torch.lgamma(a) - math.lgamma(a0)
        constant = -n * columns / 2 * math.log(2 * math.pi)
        return shrink + constant + gain.sum(dim=-1) + gammas * b0.shape[-1]

    def mode(self, stats: Statistics, width: Tensor | None = None) -> Gaussians:
        """Most probable mean and covariance of each cluster.

        With ``width`` (...) of clusters with full covariances that are expected to have so many
        times the covariance, their means as far apart.
        """
        kappa0 = self.kappa * (torch.ones_like(stats.n) if width is None else width)
        kappa, n = kappa0 + stats.n, stats.n
        mean = (kappa0.unsqueeze(-1) * self.mean + stats.total) / kappa.unsqueeze(-1)
        psi = self._psi(stats, width)
        if self.covariance == "full":
            covariance = psi / (self.nu + n + self.dim + 2)[..., None, None]
            return Gaussians(mean, _inverse_cholesky(covariance))
        each = 1 if self.covariance == "diagonal" else self.dim
        variance = psi / (2 * self._shape + n * each + each + 2).unsqueeze(-1)
        return Gaussians(mean, variance.rsqrt().expand_as(mean))

    def expected(self, stats: Statistics) -> tuple[Gaussians, Tensor]:
        """E log N(x; μ, Σ) under each cluster's posterior: a log density, and what to add, (...).

        >>> one = Statistics(torch.ones(1), torch.zeros(1, 2), torch.zeros(1, 2, 2))
        >>> density, correction = NormalWishart(torch.zeros(2), torch.ones(2)).expected(one)
        >>> (density.log_prob(torch.zeros(1, 2)) + correction < density.log_prob(torch.zeros(1, 2)))
        tensor([[True]])
        """
        kappa, n, psi = self.kappa + stats.n, stats.n, self._psi(stats)
        mean = (self.kappa * self.mean + stats.total) / kappa.unsqueeze(-1)
        vague = self.dim / (2 * kappa)  # of the mean
        if self.covariance == "full":
            nu = self.nu + n
            whitener = _inverse_cholesky(psi) * nu.sqrt()[..., None, None]
            halves = (nu.unsqueeze(-1) - torch.arange(self.dim)) / 2
            spread = torch.digamma(halves).sum(dim=-1) - self.dim * (nu / 2).log()
            return Gaussians(mean, whitener), spread / 2 - vague
        width = 1 if self.covariance == "diagonal" else self.dim
        a = self._shape + n * width / 2
        whitener = (a.unsqueeze(-1) / (psi / 2)).sqrt().expand_as(mean)
        return Gaussians(mean, whitener), self.dim / 2 * (torch.digamma(a) - a.log()) - vague

    def draw(self, stats: Statistics, chance: np.random.Generator) -> Gaussians:
        """Means and covariances drawn from the posterior of each of K clusters."""
        kappa, psi = self.kappa + stats.n, self._psi(stats)
        center = (self.kappa * self.mean + stats.total) / kappa.unsqueeze(-1)
        noise = torch.from_numpy(chance.standard_normal(center.shape)) / kappa.sqrt().unsqueeze(-1)
        if self.covariance == "full":
            # Bartlett: T lower triangular and TᵀT a standard Wishart matrix of ν degrees.
            k, dim = center.shape
            freedom = (self.nu + stats.n).unsqueeze(-1) - torch.arange(dim)
            root = torch.from_numpy(np.tril(chance.standard_normal((k, dim, dim)), -1))
            squares = 2 * torch.from_numpy(chance.standard_gamma(freedom.numpy() / 2))
            root = root + torch.diag_embed(squares.sqrt())
            whitener = root.mT.flip(-2, -1) @ _inverse_cholesky(psi)
            offset = torch.linalg.solve_triangular(whitener, noise.unsqueeze(-1), upper=False)
            return Gaussians(center + offset.squeeze(-1), whitener)
        width = 1 if self.covariance == "diagonal" else self.dim
        shape = (self._shape + stats.n * width / 2).unsqueeze(-1).expand_as(psi)
        precision = torch.from_numpy(chance.standard_gamma(shape.numpy())) / (psi / 2)
        whitener = precision.sqrt().expand_as(center)
        return Gaussians(center + noise / whitener, whitener)

    @property
    def _shape(self) -> float:
        return (self.nu - self.dim + 1) / 2

    @property
    def _psi0(self) -> Tensor:
        return self.scale if self.covariance == "diagonal" else self.scale.mean().reshape(1)

    def _psi(self, stats: Statistics, width: Tensor | None = None) -> Tensor:
        """Ψ (..., D, D), or its diagonal (..., D), or the trace's part of that, (..., 1)."""
        n = stats.n.unsqueeze(-1)
        mean = stats.total / n.clamp_min(1e-300)
        offset = mean - self.mean
        wide = torch.ones_like(n) if width is None else width.unsqueeze(-1)
        pull = self.kappa * wide * n / (self.kappa * wide + n)
        if self.covariance == "full":
            # The scatter is symmetric up to rounding, and made so.
            outer = offset.unsqueeze(-1) * offset.unsqueeze(-2) * pull.unsqueeze(-1)
            psi = stats.scatter() + outer
            return (psi + psi.mT) / 2 + wide.unsqueeze(-1) * torch.diag(self.scale)
        spread = (stats.square - stats.total * mean).clamp_min(0) + pull * offset.square()
        if self.covariance == "diagonal":
            return self.scale + spread
        return self._psi0 + spread.sum(dim=-1, keepdim=True)


def gather_statistics(x: Tensor, weights: Tensor, covariance: str) -> Statistics:
    """Statistics of K clusters from rows (..., N, D) and their weights (..., N, K)."""
    n, dim = x.shape[-2:]
    lead, k = weights.shape[:-2], weights.shape[-1]
    count = torch.zeros(*lead, k, dtype=torch.float64)
    total = torch.zeros(*lead, k, dim, dtype=torch.float64)
    full = covariance == "full"
    if full and k <= _FEW:
        return _few_statistics(x, weights)
    first, second = torch.triu_indices(dim, dim) if full else (torch.arange(dim),) * 2
    products = torch.zeros(*lead, k, len(first), dtype=torch.float64)
    size = max(1, _ENTRIES // (len(first) * max(1, math.prod(lead))))
    for start in range(0, n, size):
        part = x[..., start : start + size, :].double()
        r = weights[..., start : start + size, :].double().mT  # (..., K, n)
        count += r.sum(dim=-1)
        total += r @ part
        products += r @ (part[..., first] * part[..., second])
    if not full:
        return Statistics(count, total, products)
    square = torch.zeros(*lead, k, dim, dim, dtype=torch.float64)
    square[..., first, second] = products
    square[..., second, first] = products
    return Statistics(count, total, square)


def _few_statistics(x: Tensor, weights: Tensor) -> Statistics:
    """The same with full products, cluster by cluster: products of columns are not written out."""
    size = max(1, _ENTRIES // (x.shape[-1] * max(1, math.prod(weights.shape[:-2]))))
    found = []
    for j in range(weights.shape[-1]):
        total, square = torch.zeros(()), torch.zeros(())
        for part, r in zip(x.split(size, dim=-2), weights[..., j].split(size, dim=-1), strict=True):
            rows, r = part.double(), r.double().unsqueeze(-2)  # (..., 1, n)
            total = total + (r @ rows).squeeze(-2)
            square = square + (rows.mT * r) @ rows
        found.append((weights[..., j].double().sum(dim=-1), total, square))
    n, totals, squares = zip(*found, strict=True)
    return Statistics(
        torch.stack(n, dim=-1), torch.stack(totals, dim=-2), torch.stack(squares, dim=-3)
    )


def label_statistics(x: Tensor, labels: Tensor, k: int, covariance: str) -> Statistics:
    """Statistics of K clusters from rows (N, D) and their labels (N,), some rows at a time.

    >>> label_statistics(torch.ones(3, 1), torch.tensor([0, 1, 1]), 2, "full").n.tolist()
    [1.0, 2.0]
    """
    dim, full = x.shape[1], covariance == "full"
    counts = torch.bincount(labels, minlength=k)
    total = torch.zeros(k, dim, dtype=torch.float64)
    square = torch.zeros(k, *((dim, dim) if full else (dim,)), dtype=torch.float64)
    for j, own in enumerate(labels.argsort(stable=True).split(counts.tolist())):
        for some in own.split(_ROWS):
            rows = x[some].double()
            total[j] += rows.sum(dim=0)
            square[j] += rows.mT @ rows if full else rows.square().sum(dim=0)
    return Statistics(counts.double(), total, square)


def spread_evidence(n: Tensor, nu: Tensor, before: Tensor, after: Tensor, dim: int) -> Tensor:
    """What n rows say of a covariance, from ν₀ and log |Ψ₀| before them and log |Ψ| after."""
    return (
        torch.special.multigammaln((nu + n) / 2, dim)
        - torch.special.multigammaln(nu / 2, dim)
        - n * dim / 2 * math.log(math.pi)
        + nu / 2 * before
        - (nu + n) / 2 * after
    )


def _log_det(matrix: Tensor) -> Tensor:
    return 2 * _cholesky(matrix).diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)


def _inverse_cholesky(matrix: Tensor) -> Tensor:
    eye = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    return torch.linalg.solve_triangular(_cholesky(matrix), eye.expand_as(matrix), upper=False)


def _cholesky(matrix: Tensor) -> Tensor:
    """Lower factor; where rounding has cost a matrix its definiteness, of it and a little more."""
    factor, failed = torch.linalg.cholesky_ex(matrix)
    jitter = 1e-14 * matrix.diagonal(dim1=-2, dim2=-1).mean(dim=-1)
    for _ in range(_JITTERS):
        if not failed.any():
            break
        jitter = jitter * 10
        eye = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
        matrix = torch.where(
            (failed > 0)[..., None, None], matrix + jitter[..., None, None] * eye, matrix
        )
        factor, failed = torch.linalg.cholesky_ex(matrix)
    if failed.any():
        raise ArithmeticError("a covariance is not positive definite: rescale the columns")
    return factor
