"""From the probability that two rows share a cluster to one partition, by decision theory.

Given P (N, N), the partition c that a loss would have us choose:

    expected ARI   (A − S_p S_c / M) / (½ (S_p + S_c) − S_p S_c / M),   M = N (N − 1) / 2 pairs,
                   A = Σ p_ij over pairs within clusters, S_p = Σ p_ij, S_c = pairs within clusters
    expected VI    mean_i [ log₂|C(i)| + log₂ Σ_j p_ij − 2 log₂ Σ_{j ∈ C(i)} p_ij ], a lower bound
                   of the expected variation of information; the smaller the better, K = 1 possible
    mixed          expected ARI − ``vi_weight`` · expected VI / log₂ N

Given a belief over the number of clusters too, a partition into K clusters gains
``count_weight`` · log p(K) / max p(K), and one cluster is judged apart: if the truth is one cluster
(with probability q), the index is one for the answer K = 1 and zero for any other, so that

    value(K = 1) = w q,    value(c) = (1 − q) · expected ARI of c under P' = (P − q) / (1 − q)

where P' is what P says if there is more than one. The weight w < 1 makes up for tables without any
cluster being commoner among the training data than among those that people want clustered.

Candidates are the cuts of the average-linkage tree of 1 − P, and any others one has, as those of
classical algorithms; the best are refined by moving rows.
For the expected ARI, a ratio, a move is judged by Dinkelbach's device: with λ its present value, a
pair within a cluster is worth p_ij − θ, θ = S_p/M + λ (½ − S_p/M).

Fritsch & Ickstadt, "Improved criteria for clustering based on the posterior similarity matrix",
Bayesian Analysis 2009. Wade & Ghahramani, "Bayesian cluster analysis: point estimation and credible
balls", Bayesian Analysis 2018.
"""

from collections.abc import Sequence

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from asterism.functional.hierarchy import cut_tree

__all__ = [
    "RULES",
    "choose_partition",
    "count_bonus",
    "expected_ari",
    "expected_vi",
    "given_several",
    "refine_partition",
    "restrict_counts",
    "similarity_tree",
    "tree_scores",
]

RULES = ("ari", "vi", "mixed")
_MOST_CUTS = 64

COUNT_WEIGHT = 0.05
"""What the logarithm of a number of clusters' probability is worth, in units of the ARI."""

SINGLE_WEIGHT = 0.1
"""Odds of one cluster, relative to the network's: who asks for clusters believes in some.

A tenth, not a quarter, finds more pairs of overlapping clouds, and loses one of the sets without
structure, both on the tuning part (``benchmarks/suites.py``).
"""


def choose_partition(
    P: np.ndarray,
    n_clusters: int | tuple[int, int] | None = None,
    *,
    rule: str = "ari",
    counts: np.ndarray | None = None,
    count_weight: float = COUNT_WEIGHT,
    single_weight: float = SINGLE_WEIGHT,
    vi_weight: float = 0.25,
    n_refined: int = 3,
    candidates: Sequence[np.ndarray] = (),
    tree: np.ndarray | None = None,
) -> np.ndarray:
    """Partition (N,) of the largest expected score among refined cuts and ``candidates``.

    ``n_clusters`` may be a number, which is honoured exactly, or a range (lowest, highest).
    ``counts`` holds the probabilities of K = 1, 2, …; ``tree`` is that of P given several clusters,
    if it is there already.

    >>> P = np.kron(np.eye(2), np.full((3, 3), 0.9)) + 0.05
    >>> choose_partition(np.minimum(P, 1.0)).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    n = len(P)
    if rule not in RULES:
        raise ValueError(f"rule={rule!r} is not one of {RULES}")
    low, high = (n_clusters, n_clusters) if isinstance(n_clusters, int) else n_clusters or (1, n)
    if not 1 <= low <= high or low > n:
        raise ValueError(f"n_clusters={n_clusters} cannot be had of {n} rows")
    if n == 1 or high == 1:
        return np.zeros(n, dtype=np.int64)
    P, single = given_several(P, counts)

    def score(labels: np.ndarray) -> float:
        k = int(labels.max()) + 1
        if k == 1 and counts is not None:
            return single_weight * single
        vi = 0.0 if rule == "ari" else expected_vi(P, labels) / np.log2(n)
        ari = 0.0 if rule == "vi" else expected_ari(P, labels)
        value = ari - (vi if rule == "vi" else vi_weight * vi)
        return value + count_weight * count_bonus(counts, k)

    tree = similarity_tree(P) if tree is None else tree
    counted = range(low, min(high, max(low, _MOST_CUTS), n) + 1)
    if rule == "ari":  # along the tree the expected ARI costs nothing, so that few cuts are made
        value = tree_scores(tree, P)[[k - 1 for k in counted]]
        value += [count_weight * count_bonus(counts, k) for k in counted]
        likely = np.argsort(-value, kind="stable")[: 2 * n_refined]
        counted = [counted[i] for i in likely] + ([1] if low == 1 else [])  # type: ignore[assignment]
    cuts = [cut_tree(tree, k) for k in counted]
    others = [np.unique(labels, return_inverse=True)[1] for labels in candidates]
    cuts += [labels for labels in others if low <= labels.max() + 1 <= high]
    scored = sorted(((score(labels), labels) for labels in cuts), key=_first, reverse=True)
    best = scored[:n_refined]
    refined = [refine_partition(P, labels, low) for _, labels in best]
    # Labels that nothing moved in have their score already.
    moved = [
        (score(labels), labels)
        for labels, (_, before) in zip(refined, best, strict=True)
        if not np.array_equal(labels, before)
    ]
    return max([*best, *moved], key=_first)[1]


def given_several(P: np.ndarray, counts: np.ndarray | None) -> tuple[np.ndarray, float]:
    """What P says if there is more than one cluster, and the odds that there is one only."""
    if counts is None or counts[0] <= 0:
        return P, 0.0
    several = max(1 - float(counts[0]), 1e-6)
    P = np.clip((P - float(counts[0])) / several, 0, 1)
    np.fill_diagonal(P, 1)
    return P, float(counts[0]) / several


def count_bonus(counts: np.ndarray | None, k: int) -> float:
    """Log p(k) / max p(K), K > 1: zero for the likeliest number of clusters."""
    if counts is None:
        return 0.0
    believed = counts[min(k, len(counts)) - 1] / max(float(counts[1:].max()), 1e-300)
    return float(np.log(max(believed, 1e-4)))


def restrict_counts(counts: np.ndarray, low: int, high: int | None = None) -> np.ndarray:
    """Belief over K = 1, 2, … given that it is at least ``low`` and at most ``high``.

    The last number stands for all larger ones too, and so for limits beyond it.

    >>> restrict_counts(np.array([0.5, 0.2, 0.2, 0.1]), 2, 3).tolist()
    [0.0, 0.5, 0.5, 0.0]
    """
    last = len(counts)
    inside = np.zeros(last)
    within = slice(min(low, last) - 1, min(high or last, last))
    inside[within] = np.maximum(counts[within], 1e-300)
    return inside / inside.sum()


def expected_ari(P: np.ndarray, labels: np.ndarray) -> float:
    """Posterior expectation of the adjusted Rand index of ``labels``, to first order."""
    n = len(labels)
    pairs = n * (n - 1) / 2
    own = P.diagonal().sum()
    total = (P.sum() - own) / 2
    sizes = np.bincount(labels)
    member = _one_hot(labels)
    agreed = (np.einsum("ik,ik->", P @ member, member) - own) / 2
    together = float((sizes * (sizes - 1) / 2).sum())
    chance = total * together / pairs
    spread = (total + together) / 2 - chance
    # Both all apart or both all together: nothing to disagree about.
    return float((agreed - chance) / spread) if spread > 1e-9 * pairs else 1.0


def expected_vi(P: np.ndarray, labels: np.ndarray) -> float:
    """Lower bound of the posterior expected variation of information, in bits."""
    member = _one_hot(labels)
    within = np.take_along_axis(P @ member, labels[:, None], axis=1).squeeze(1)
    sizes = np.bincount(labels)[labels]
    terms = np.log2(sizes) + np.log2(P.sum(axis=1)) - 2 * np.log2(np.maximum(within, 1e-12))
    return float(terms.mean())


def similarity_tree(P: np.ndarray) -> np.ndarray:
    """Average-linkage tree of 1 − P."""
    apart = np.clip(1 - (P + P.T) / 2, 0, 1)
    np.fill_diagonal(apart, 0)
    return linkage(squareform(apart, checks=False), method="average")


def tree_scores(tree: np.ndarray, P: np.ndarray) -> np.ndarray:
    """Expected ARI (N,) of the cuts of the tree of P into 1, 2, …, N clusters.

    A merge of a and b adds n_a n_b pairs, whose mean probability is one minus its height.
    """
    n = len(P)
    pairs = n * (n - 1) / 2
    sizes = np.concatenate([np.ones(n), tree[:, 3]])
    joined = np.prod(sizes[tree[:, :2].astype(np.int64)], axis=1)
    together = np.concatenate([[0.0], np.cumsum(joined)])[::-1]
    agreed = np.concatenate([[0.0], np.cumsum(joined * (1 - tree[:, 2]))])[::-1]
    total = (P.sum() - P.diagonal().sum()) / 2
    chance = total * together / pairs
    spread = (total + together) / 2 - chance
    flat = spread <= 1e-9 * pairs
    return np.where(flat, 1.0, (agreed - chance) / np.where(flat, 1.0, spread))


def refine_partition(
    P: np.ndarray, labels: np.ndarray, low: int = 1, n_sweeps: int = 6
) -> np.ndarray:
    """Move rows one by one to where they are worth most, until none moves.

    Clusters may vanish, down to ``low``; none is added.
    """
    labels = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    n = len(labels)
    P = P.copy()
    np.fill_diagonal(P, 0)
    share = P.sum() / (n * (n - 1))
    for _ in range(n_sweeps):
        theta = share + expected_ari(P, labels) * (0.5 - share)
        worth = P - theta
        np.fill_diagonal(worth, 0)
        member = _one_hot(labels)
        gain = worth @ member  # (N, K): worth of joining each cluster
        sizes = member.sum(axis=0)
        moved = False
        # Only rows that would rather be elsewhere are looked at, the most eager first.
        wish = gain.max(axis=1) - np.take_along_axis(gain, labels[:, None], axis=1).squeeze(1)
        for i in np.argsort(-wish)[: int((wish > 1e-9).sum())]:
            old, new = labels[i], int(gain[i].argmax())
            if new == old or gain[i, new] <= gain[i, old] + 1e-9:
                continue
            if sizes[old] == 1 and (sizes > 0).sum() <= low:
                continue
            gain[:, old] -= worth[:, i]
            gain[:, new] += worth[:, i]
            sizes[old], sizes[new] = sizes[old] - 1, sizes[new] + 1
            labels[i] = new
            moved = True
        if not moved:
            break
        labels = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    return labels


def _first(scored: tuple[float, np.ndarray]) -> float:
    return scored[0]


def _one_hot(labels: np.ndarray) -> np.ndarray:
    return np.eye(int(labels.max()) + 1)[labels]
