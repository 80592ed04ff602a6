"""How many clusters are worth having, where each further one brings less than those before.

    G       log evidence of K clusters of N rows along D axes, beyond that of a single one
    d       min(D, 2(K − 1)), axes along which so many clusters may well differ
    r       e^{2G / Nd} − 1
    Δ       what a split must bring:  Nd/2 · log(1 + r (K / (K − 1))^f) − G

No real cluster is exactly Gaussian, and evidence grows with the rows, so in the end it cuts every
one of them up. But what such cuts bring is little beside what told the clusters apart. 1 + r is the
ratio of the variance about one mean to that within K clusters, a geometric mean over rows and axes
after all that clusters cost; r, what is between them, has to have grown as (K − 1)^f. With
variances themselves, one axis and f = 1 that is the criterion of Calinski and Harabasz.

Δ is a share f of what clusters bring on the average, G / (K − 1), where they are little apart, and
f Nd / 2(K − 1) where they are far apart: there it no longer matters how far. It grows with the rows
as evidence does, so that K does not. Two clusters that are far apart differ along one axis; what
is asked of a third must not be what many axes could bring, or clusters within far groups were lost.
Between one cluster and two, and as long as nothing is gained, the evidence alone decides.

Calinski & Harabasz, "A dendrite method for cluster analysis", Communications in Statistics 1974.
"""

import math

__all__ = ["equal_gain"]

_AXES_A_CLUSTER = 2


def equal_gain(
    gain: float, n_clusters: int, other: int, n_rows: float, n_axes: float, parsimony: float
) -> float:
    """The gain with which ``other`` clusters are worth as much as so many with ``gain``.

    Parameters
    ----------
    gain : float
        G, for K = ``n_clusters``.
    n_clusters, other : int
        Numbers of clusters; nothing is asked or allowed where one of them is below two.
    n_rows, n_axes : float
        N and D.
    parsimony : float
        f.

    >>> round(equal_gain(100.0, 3, 4, 50, 4, 0.2), 2)
    105.2
    >>> round(equal_gain(105.2, 4, 3, 50, 4, 0.2), 1)
    100.0
    >>> equal_gain(100.0, 3, 4, 50, 4, 0.0), equal_gain(0.0, 1, 2, 50, 4, 0.2)
    (100.0, 0.0)
    """
    if min(n_clusters, other) < 2 or gain <= 0 or parsimony == 0:
        return gain
    # From here on all axes count: steps between larger numbers are one step.
    full = max(2, math.ceil(n_axes / _AXES_A_CLUSTER + 1))
    k = n_clusters
    while k != other:
        if k < other:
            to = other if k >= full else k + 1
        else:
            to = max(other, full) if k > full else k - 1
        room = n_rows * min(n_axes, _AXES_A_CLUSTER * (min(k, to) - 1))
        level = _log_excess(2 * gain / room) + parsimony * math.log((to - 1) / (k - 1))
        gain = room / 2 * (max(level, 0.0) + math.log1p(math.exp(-abs(level))))
        k = to
    return gain


def _log_excess(ratio: float) -> float:
    """log(eʳ − 1), of any r; where nothing is left of a gain, −∞."""
    if ratio <= 0:
        return -math.inf
    return ratio + math.log(-math.expm1(-ratio))
