"""Plausible partitions whose pair frequencies are the pair probabilities P.

A partition is drawn along the average-linkage tree of 1 − P, from its leaves up. Where branches A
and B meet, with p the mean of P between them and w the mean of P within each, a random row of A and
a random row of B are picked,

    their clusters become one with probability min(1, p / (w_A w_B))

so that a row of A and one of B come together with probability p, about. In a branch of equal p
throughout this is Pólya's urn: it may part in two, but does not shatter. A tree cannot hold all of
P (a row between two clusters hangs on one of them), so the next partition is drawn from the tree of
what those before owe, a herding:

    target_s = P + 2 (P − F_s),    F_s the pair frequencies of the first s partitions, F_0 = P

One sweep then moves rows to where the target wants them, so that none is left alone by chance. The
samples are therefore not independent: they match P together.

    log score(c) = 2 / (N − 1) · Σ_{i<j} log p(c_i = c_j or not)  [ + log p(K) ]

is the composite log-likelihood of a partition, in which the pairs of a row count as one
observation. It ranks partitions; it is neither normalised nor the density that was drawn from.

Welling, "Herding dynamical weights to learn", ICML 2009.
Varin, Reid & Firth, "An overview of composite likelihood methods", Statistica Sinica 2011.
"""

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from asterism.exceptions import DataError
from asterism.functional.comparisons import by_appearance
from asterism.functional.decisions import refine_partition

__all__ = ["partition_scores", "sample_partitions"]

_OPTIONS = 4
_LEAST = 1e-4  # probabilities below count as this much, so that no score is infinite


def sample_partitions(
    P: np.ndarray, n_samples: int, seed: int, counts: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Partitions whose pair frequencies resemble P, and their log scores.

    Parameters
    ----------
    P : ndarray of shape (N, N)
        Probability that two rows share a cluster.
    n_samples : int
    seed : int
    counts : ndarray, optional
        Probabilities of K = 1, 2, …: of several draws each time, one of a likely K is kept.

    Returns
    -------
    labels : ndarray of shape (n_samples, N)
        Clusters numbered by first appearance, so that equal partitions are equal rows.
    log_scores : ndarray of shape (n_samples,)
        Composite log-likelihood, see :func:`partition_scores`.

    Examples
    --------
    Two groups that are one with probability one half:

    >>> P = np.kron([[1.0, 0.5], [0.5, 1.0]], np.ones((3, 3)))
    >>> labels, _ = sample_partitions(P, 40, seed=0)
    >>> bool(0.4 < (labels[:, 0] == labels[:, 5]).mean() < 0.6)
    True
    """
    if n_samples < 1:
        raise DataError(f"n_samples={n_samples} must be at least 1")
    chance = np.random.default_rng(seed)
    P = (P + P.T) / 2
    np.fill_diagonal(P, 1)
    labels = np.zeros((n_samples, len(P)), dtype=np.int64)
    found = np.zeros_like(P)  # how often each pair was together
    for s in range(n_samples if len(P) > 1 else 0):
        target = np.clip(3 * P - 2 * found / s, 0, 1) if s else P
        drawn = _draw(target, 1 if counts is None else _OPTIONS, chance)
        options = [refine_partition(target, option, n_sweeps=1) for option in drawn]
        labels[s] = by_appearance(options[_pick(options, counts, chance)][None])[0]
        found += labels[s][:, None] == labels[s]
    return labels, partition_scores(P, labels, counts)


def partition_scores(
    P: np.ndarray, labels: np.ndarray, counts: np.ndarray | None = None
) -> np.ndarray:
    """Composite log-likelihood (S,) of partitions (S, N).

    >>> P = np.array([[1.0, 0.9, 0.2], [0.9, 1.0, 0.2], [0.2, 0.2, 1.0]])
    >>> partition_scores(P, np.array([[0, 0, 1], [0, 1, 1]])).round(2).tolist()
    [-0.55, -4.14]
    """
    n = len(P)
    P = np.clip(P, _LEAST, 1 - _LEAST)
    rows, columns = np.triu_indices(n, 1)
    yes, no = np.log(P[rows, columns]), np.log1p(-P[rows, columns])
    pairs = np.array([np.where(c[rows] == c[columns], yes, no).sum() for c in labels])
    scores = 2 / max(n - 1, 1) * pairs
    if counts is None:
        return scores
    return scores + np.log(np.maximum(_belief(labels, counts), _LEAST))


def _draw(P: np.ndarray, n_draws: int, chance: np.random.Generator) -> np.ndarray:
    """Random joins (n_draws, N) along the average-linkage tree of 1 − P."""
    n = len(P)
    apart = 1 - P
    np.fill_diagonal(apart, 0)
    tree = linkage(squareform(apart, checks=False), method="average")
    rows = [np.array([i]) for i in range(n)]  # of each node
    within = [1.0] * n  # mean of P over the pairs of a node, the row with itself among them
    labels = np.tile(np.arange(n), (n_draws, 1))
    each = np.arange(n_draws)
    uniform = chance.random((n - 1, 3, n_draws))
    for (left, right, height, size), u in zip(tree.tolist(), uniform, strict=True):
        one, other = rows[int(left)], rows[int(right)]
        a, b = within[int(left)], within[int(right)]
        joined = u[0] * a * b < 1 - height
        kept = labels[each, one[(u[1] * len(one)).astype(np.int64)]]
        lost = labels[each, other[(u[2] * len(other)).astype(np.int64)]]
        renamed = joined[:, None] & (labels == lost[:, None])
        labels = np.where(renamed, kept[:, None], labels)
        rows.append(np.concatenate([one, other]))
        across = 2 * len(one) * len(other) * (1 - height)
        within.append((len(one) ** 2 * a + len(other) ** 2 * b + across) / size**2)
    return labels


def _pick(options: list[np.ndarray], counts: np.ndarray | None, chance: np.random.Generator) -> int:
    """One of the options, drawn by the belief in its number of clusters."""
    if counts is None:
        return 0
    weights = np.maximum(_belief(np.stack(options), counts), _LEAST)
    return int(chance.choice(len(options), p=weights / weights.sum()))


def _belief(labels: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Probability (S,) of the numbers of clusters of partitions labelled 0 … K − 1."""
    return np.asarray(counts)[np.minimum(labels.max(axis=1), len(counts) - 1)]
