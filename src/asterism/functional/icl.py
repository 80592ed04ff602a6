"""How well Gaussians describe a partition: its integrated completed likelihood.

    ICL = Σ_k Σ_{i ∈ k} [log π_k + log N(x_i; μ_k, Σ_k)] − p/2 log N,   π_k = n_k / N

with means and full covariances of the clusters' own rows and p = K (1 + D + D (D + 1)/2) − 1
parameters, D the columns that vary. Rows count for their own cluster alone, so clusters pay for
overlapping, where BIC, the likelihood of the mixture, would let them: BIC asks for the number of
Gaussians, ICL for that of clusters.

Covariances are those of the rows and a ten-thousandth of the variance of the middle nine tenths of
all rows, so that no cluster of one row, or of equal ones, is infinitely dense. Rows on a grid, such
as counts or ages, would still be best described by a cluster for every point of it: where fewer
than half of a column's values are different, rows are taken to lie anywhere within their steps of
u, which adds u²/12 to a variance.

Biernacki, Celeux & Govaert, "Assessing a mixture model for clustering with the integrated completed
likelihood", IEEE Transactions on Pattern Analysis and Machine Intelligence 2000; Sheppard, "On the
calculation of the most probable values of frequency-constants, for data arranged according to
equidistant division of a scale", Proceedings of the London Mathematical Society 1898.
"""

import math
import warnings

import numpy as np
import torch

from asterism.functional.niw import label_statistics

__all__ = ["completed_likelihood", "rounding_variance"]

_RIDGE = 1e-4
_FLAT, _DIGITS = 1e-20, 1e-14  # of the largest variance, of the cells: rounding leaves as much
_MIDDLE = 0.9


def completed_likelihood(
    x: np.ndarray, labels: np.ndarray, rounding: np.ndarray | float = 0.0
) -> float:
    """ICL of labels (N,) of rows (N, D), larger is better; minus infinity if all rows are equal.

    ``rounding`` (D, D) is the covariance that the rows have lost by it.

    >>> chance = np.random.default_rng(0)
    >>> halves = np.repeat([0, 1], 50)
    >>> x = chance.standard_normal((100, 2)) + 9 * halves[:, None]
    >>> together, apart, mixed = 0 * halves, halves, np.arange(100) % 2
    >>> one, two, wrong = (completed_likelihood(x, y) for y in (together, apart, mixed))
    >>> two > one > wrong
    True
    """
    variance = x.var(axis=0)
    rounded = np.square(_DIGITS * np.abs(x).max())
    varies = variance > max(_FLAT * variance.max(), rounded)
    if not varies.any():
        return -math.inf
    x = np.asarray((x - x.mean(axis=0))[:, varies], dtype=np.float64)
    lost = np.broadcast_to(rounding, (len(varies),) * 2)[np.ix_(varies, varies)]
    n_rows, dim = x.shape
    found, number = np.unique(labels, return_inverse=True)
    stats = label_statistics(torch.from_numpy(x), torch.from_numpy(number), len(found), "full")
    mean = (stats.total / stats.n[:, None]).unsqueeze(2)
    scatter = stats.square / stats.n[:, None, None] - mean @ mean.mT  # (K, D, D)
    scatter = scatter + torch.from_numpy(np.ascontiguousarray(lost))
    covariance = scatter + _RIDGE * _middle_variance(x) * torch.eye(dim, dtype=torch.float64)
    misfit = torch.linalg.solve(covariance, scatter).diagonal(dim1=1, dim2=2).sum(dim=1)
    log_p = -(torch.logdet(covariance) + misfit + dim * math.log(2 * math.pi)) / 2
    likelihood = float((stats.n * ((stats.n / n_rows).log() + log_p)).sum())
    n_parameters = len(found) * (1 + dim + dim * (dim + 1) // 2) - 1
    return likelihood - n_parameters / 2 * math.log(n_rows)


def rounding_variance(X: np.ndarray) -> np.ndarray:
    """Variance (D,) lost by the rounding of columns (N, D), zero where values are on no grid.

    >>> ages, sizes = [30.0, 32, 32, 30, 34, 30, 32], [0.1, 0.7, 0.5, 0.2, 0.9, 0.8, 0.4]
    >>> rounding_variance(np.array([ages, sizes]).T).round(2).tolist()
    [0.33, 0.0]
    """
    steps = np.diff(np.sort(X, axis=0), axis=0)
    rounded = (steps > 0).sum(axis=0) + 1 < len(X) / 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a constant column has no step
        step = np.nanmedian(np.where(steps > 0, steps, np.nan), axis=0)
    return np.where(rounded & np.isfinite(step), step, 0.0) ** 2 / 12


def _middle_variance(x: np.ndarray) -> float:
    """Mean variance of the columns among the rows nearest to the median, far ones left out."""
    apart = np.linalg.norm(x - np.median(x, axis=0), axis=1)
    middle = x[apart <= np.quantile(apart, _MIDDLE)].var(axis=0).mean()
    return float(middle) if middle > 0 else float(x.var(axis=0).mean())
