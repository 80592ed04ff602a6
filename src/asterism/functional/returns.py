"""How many clusters are worth having, where each further one brings less than those before.

    G        log evidence of K clusters of N rows along D axes, beyond that of a single one
    worth    log(e^{2G / ND} − 1) − f log(K − 1)

No real cluster is exactly Gaussian, and evidence grows with the rows, so in the end it cuts every
one of them up. But what such cuts bring is little beside what told the clusters apart. e^{2G / ND}
is the ratio of the variance about one mean to that within K clusters, a geometric mean over rows
and axes after all that clusters cost; without the one that is there in any case, it must have grown
as (K − 1)^f. With variances themselves, and f = 1, that is the criterion of Calinski and Harabasz.
What a split must bring, so that worth does not fall,

    Δ = ND/2 · log(1 + (e^{2G / ND} − 1) (K / (K − 1))^f) − G

is a share f of what clusters bring on the average, G / (K − 1), where they are little apart, and
f ND / 2(K − 1) where they are far apart: there it no longer matters how far. It grows with the rows
as evidence does, so that K does not. Between one cluster and two the evidence alone decides.

Calinski & Harabasz, "A dendrite method for cluster analysis", Communications in Statistics 1974.
"""

import math

__all__ = ["equal_gain", "worth"]


def worth(gain: float, n_clusters: int, room: float, parsimony: float) -> float:
    """Worth of two clusters or more with a gain G; −∞ where nothing is gained.

    Parameters
    ----------
    gain : float
        G.
    n_clusters : int
        K.
    room : float
        N D, rows times axes.
    parsimony : float
        f.

    >>> [round(worth(gain, k, 200, 0.2), 3) for k, gain in ((2, 90.0), (3, 100.0), (4, 103.0))]
    [0.378, 0.403, 0.369]
    """
    if gain <= 0:
        return -math.inf
    return _log_excess(2 * gain / room) - parsimony * math.log(n_clusters - 1)


def equal_gain(gain: float, n_clusters: int, other: int, room: float, parsimony: float) -> float:
    """The gain with which ``other`` clusters are worth as much as so many with ``gain``.

    >>> round(equal_gain(100.0, 3, 4, 200, 0.2), 2)
    105.2
    >>> equal_gain(100.0, 3, 4, 200, 0.0), equal_gain(0.0, 1, 2, 200, 0.2)
    (100.0, 0.0)
    """
    if min(n_clusters, other) < 2 or gain <= 0 or parsimony == 0:
        return gain
    level = _log_excess(2 * gain / room) + parsimony * math.log((other - 1) / (n_clusters - 1))
    return room / 2 * (max(level, 0.0) + math.log1p(math.exp(-abs(level))))


def _log_excess(ratio: float) -> float:
    """log(eʳ − 1), of any r above zero."""
    return ratio + math.log(-math.expm1(-ratio))
