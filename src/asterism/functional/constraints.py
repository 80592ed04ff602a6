"""Partitions that honour what is known: rows that belong together, and rows that do not.

Known labels and must-links join rows into groups (their transitive closure); different labels and
cannot-links keep pairs of groups apart. What rows without constraints learn from them is told by
:mod:`asterism.functional.guidance`.

The partition is chosen among the cuts of an average-linkage tree over groups, in which clusters
that hold apart groups never merge; the cuts of the largest expected adjusted Rand index
(:mod:`asterism.functional.decisions`) are refined by moving whole groups.

Klein, Kamvar & Manning, "From instance-level constraints to space-level constraints", ICML 2002.
Davidson & Ravi, "Agglomerative hierarchical clustering with constraints", PKDD 2005.
Brélaz, "New methods to color the vertices of a graph", Communications of the ACM 1979.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from asterism.exceptions import DataError
from asterism.functional.decisions import (
    SINGLE_WEIGHT,
    count_bonus,
    expected_ari,
    given_several,
)

__all__ = [
    "Constraints",
    "check_pairs",
    "choose_constrained",
    "make_constraints",
    "merge_groups",
]

_MOST_CUTS = 64
_COUNT_WEIGHT = 0.1  # more than without labels, which tell of the number too


class Constraints(NamedTuple):
    """Rows of equal number in ``groups`` (N,) are together; ``apart`` (C, 2) are pairs of groups.

    Groups are numbered 0 … G − 1 by first appearance; each row without constraints is its own.
    """

    groups: np.ndarray
    apart: np.ndarray

    @property
    def forbidden(self) -> np.ndarray:
        """Symmetric (G, G) boolean matrix of the pairs of groups that are apart."""
        count = int(self.groups.max()) + 1
        matrix = np.zeros((count, count), dtype=bool)
        matrix[self.apart[:, 0], self.apart[:, 1]] = True
        return matrix | matrix.T


def make_constraints(
    n: int,
    labels: ArrayLike | None = None,
    must_link: ArrayLike | Iterable[tuple[int, int]] = (),
    cannot_link: ArrayLike | Iterable[tuple[int, int]] = (),
) -> Constraints | None:
    """Constraints on ``n`` rows; None if nothing is constrained.

    Parameters
    ----------
    n : int
    labels : array-like of shape (n,), optional
        Known classes, −1 where unknown: equal ones are together, different ones apart.
    must_link, cannot_link : pairs of row indices

    Raises
    ------
    DataError
        If the constraints contradict each other or name rows that do not exist.

    Examples
    --------
    >>> make_constraints(5, labels=[0, -1, 0, 1, -1], must_link=[(3, 4)])
    Constraints(groups=array([0, 1, 0, 2, 2]), apart=array([[0, 2]]))
    """
    together, apart = (
        check_pairs(must_link, n, "must_link"),
        check_pairs(cannot_link, n, "cannot_link"),
    )
    if labels is not None:
        known, classes = _known(labels, n)
        _, first, which = np.unique(classes, return_index=True, return_inverse=True)
        heads = known[first]  # one row stands for each class
        together = np.concatenate([together, np.stack([heads[which], known], axis=1)])
        apart = np.concatenate([apart, heads[np.stack(np.triu_indices(len(heads), 1), axis=1)]])
    graph = coo_array((np.ones(len(together)), (together[:, 0], together[:, 1])), shape=(n, n))
    _, component = connected_components(graph, directed=False)
    _, first, which = np.unique(component, return_index=True, return_inverse=True)
    groups = np.argsort(np.argsort(first))[which].astype(np.int64)
    for i, j in apart[groups[apart[:, 0]] == groups[apart[:, 1]]][:1].tolist():
        raise DataError(
            f"rows {i} and {j} must be apart, yet must-links and equal labels put them together: "
            "drop one of these constraints"
        )
    if not len(apart) and len(first) == n:
        return None
    return Constraints(groups, np.unique(np.sort(groups[apart], axis=1), axis=0))


def check_pairs(
    pairs: ArrayLike | Iterable[tuple[int, int]] | None, n: int, name: str
) -> np.ndarray:
    """Pairs of rows, or none, as an integer array (C, 2), checked."""
    if pairs is None:
        pairs = ()
    array = np.asarray(pairs if isinstance(pairs, np.ndarray) else list(pairs))  # type: ignore[arg-type]
    if array.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise DataError(
            f"{name} must be pairs of row numbers, got shape {array.shape} of {array.dtype}"
        )
    outside = array[(array < 0) | (array >= n)]
    if len(outside):
        raise DataError(f"{name} names row {outside[0]}, but rows are numbered 0 to {n - 1}")
    return array.astype(np.int64)


def _known(labels: ArrayLike, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of known class, and their classes."""
    array = np.asarray(labels)
    if array.shape != (n,):
        raise DataError(f"labels have shape {array.shape}, but there are {n} rows: give ({n},)")
    if array.dtype.kind not in "iu" or array.min() < -1:
        raise DataError(
            "labels must be integers from 0, with -1 for unknown, "
            f"got {array.dtype} with least {array.min()}"
        )
    known = np.flatnonzero(array >= 0)
    return known, array[known]


def merge_groups(P: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean of P over the pairs of rows of two groups (G, G), and the sizes of the groups (G,).

    >>> Q, sizes = merge_groups(np.array([[1.0, 0.8, 0.2], [0.8, 1, 0], [0.2, 0, 1]]), [0, 0, 1])
    >>> Q.round(2).tolist(), sizes.tolist()
    ([[0.9, 0.1], [0.1, 1.0]], [2, 1])
    """
    groups = np.asarray(groups)
    sizes = np.bincount(groups)
    member = csr_array((1 / sizes[groups], (groups, np.arange(len(groups)))))  # (G, N)
    return (member @ (member @ P).T).T, sizes


def choose_constrained(
    P: np.ndarray,
    constraints: Constraints,
    n_clusters: int | tuple[int, int] | None = None,
    *,
    counts: np.ndarray | None = None,
    count_weight: float = _COUNT_WEIGHT,
    n_refined: int = 3,
) -> np.ndarray:
    """Partition (N,) of large expected adjusted Rand index that honours every constraint.

    ``n_clusters``, ``counts``, ``count_weight`` and ``n_refined`` are those of
    :func:`asterism.functional.decisions.choose_partition`. P is best made aware of the
    constraints first, by :func:`asterism.functional.guidance.constrain_similarity`.

    Raises
    ------
    DataError
        If the constraints leave no partition into so many clusters, or none was found.

    Examples
    --------
    >>> constraints = make_constraints(4, cannot_link=[(0, 1)], must_link=[(1, 3)])
    >>> choose_constrained(np.full((4, 4), 0.9), constraints, 2).tolist()
    [0, 1, 0, 1]
    """
    groups, forbidden = constraints.groups, constraints.forbidden
    asked = (n_clusters, n_clusters) if isinstance(n_clusters, int | np.integer) else n_clusters
    low, high = asked or (1, len(P))
    if not 1 <= low <= high or low > len(forbidden):
        raise DataError(
            f"n_clusters={n_clusters} cannot be had of the {len(forbidden)} groups of rows "
            "that the constraints keep together"
        )
    P, single = given_several(P, counts)

    def score(labels: np.ndarray) -> float:
        k = int(labels.max()) + 1
        if k == 1 and counts is not None:
            return SINGLE_WEIGHT * single
        return expected_ari(P, labels[groups]) + count_weight * count_bonus(counts, k)

    Q, sizes = merge_groups(P, groups)
    merges = _allowed_merges(Q, sizes, forbidden, low, high)
    least = len(Q) - len(merges)
    if least > high:
        raise DataError(
            f"n_clusters={n_clusters} is too few to keep apart what must be: "
            f"the least number of clusters found is {least}"
        )
    cuts = _cuts(merges, len(Q), min(high, max(least, _MOST_CUTS)))
    best = sorted(cuts, key=score, reverse=True)[:n_refined]
    share = (P.sum() - np.trace(P)) / max(len(P) * (len(P) - 1), 1)
    refined = [
        _refine(Q, sizes, forbidden, labels, low, share, expected_ari(P, labels[groups]))
        for labels in best
    ]
    return max([*best, *refined], key=score)[groups]


def _allowed_merges(
    Q: np.ndarray, sizes: np.ndarray, forbidden: np.ndarray, low: int, high: int
) -> list[tuple[int, int]]:
    """Merges that keep apart groups apart, down to ``low`` clusters, or ``high`` at least."""
    merges = _agglomerate(Q, sizes, forbidden, low)
    if len(Q) - len(merges) <= high:
        return merges
    # Greedy merges came to a deadlock, which a colouring of the apart groups may avoid.
    free = _agglomerate(Q, sizes, np.zeros_like(forbidden), high)
    color = _colors(Q, forbidden, _cuts(free, len(Q), high)[0])
    clash = (color[:, None] != color) & (color[:, None] >= 0) & (color >= 0)
    return _agglomerate(Q, sizes, clash, low)


def _agglomerate(
    Q: np.ndarray, sizes: np.ndarray, forbidden: np.ndarray, low: int
) -> list[tuple[int, int]]:
    """Average-linkage merges (kept, absorbed) until ``low`` clusters or no merge is allowed."""
    closeness = np.where(forbidden, -np.inf, Q)  # −∞ stays −∞ in every mean: the veto is inherited
    np.fill_diagonal(closeness, -np.inf)
    weights = sizes.astype(np.float64)
    partner = closeness.argmax(axis=1)
    nearest = closeness.max(axis=1)
    merges = []
    for _ in range(len(Q) - low):
        a = int(nearest.argmax())
        b = int(partner[a])
        if nearest[a] == -np.inf:
            break
        a, b = min(a, b), max(a, b)
        merged = (weights[a] * closeness[a] + weights[b] * closeness[b]) / (weights[a] + weights[b])
        merged[[a, b]] = -np.inf
        closeness[a] = closeness[:, a] = merged
        closeness[b] = closeness[:, b] = -np.inf
        weights[a] += weights[b]
        merges.append((a, b))
        # A mean exceeds neither part, so only the partners of a and b look for another.
        stale = np.flatnonzero((partner == a) | (partner == b))
        stale = np.union1d(stale, [a, b])
        partner[stale] = closeness[stale].argmax(axis=1)
        nearest[stale] = closeness[stale].max(axis=1)
    return merges


def _cuts(merges: list[tuple[int, int]], n: int, high: int) -> list[np.ndarray]:
    """Labels after each merge that leaves at most ``high`` clusters of ``n``."""
    labels = np.arange(n)
    cuts = [labels.copy()] if n <= high else []
    for k, (kept, absorbed) in zip(range(n - 1, 0, -1), merges, strict=False):
        labels[labels == absorbed] = kept
        if k <= high:
            cuts.append(np.unique(labels, return_inverse=True)[1])
    return cuts


def _colors(Q: np.ndarray, forbidden: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Colours (G,), different for apart groups; −1 for groups that are apart from none.

    Each takes the colour of the cluster of ``labels`` most like it among those allowed, or one
    more; the group with the fewest left to choose from is next.
    """
    member = np.eye(len(Q))[labels]
    affinity = Q @ (member / np.maximum(member.sum(axis=0), 1))  # (G, G), zero for further colours
    color = np.full(len(Q), -1)
    degree = forbidden.sum(axis=1)
    taken = np.zeros(Q.shape, dtype=bool)  # colours of the groups apart from each
    for _ in range(int((degree > 0).sum())):
        urgency = np.where((degree > 0) & (color < 0), taken.sum(axis=1) * len(Q) + degree, -1)
        g = int(urgency.argmax())
        color[g] = np.where(taken[g], -1, affinity[g]).argmax()
        taken[forbidden[g], color[g]] = True
    return color


def _refine(
    Q: np.ndarray,
    sizes: np.ndarray,
    forbidden: np.ndarray,
    labels: np.ndarray,
    low: int,
    share: float,
    value: float,
    n_sweeps: int = 6,
) -> np.ndarray:
    """Move whole groups to the allowed cluster where they are worth most, until none moves.

    ``share`` is the mean of P and ``value`` the expected index of ``labels``.
    """
    labels = labels.copy()
    member = np.eye(int(labels.max()) + 1)[labels]
    worth = (Q - (share + value * (0.5 - share))) * np.outer(sizes, sizes)
    np.fill_diagonal(worth, 0)
    gain, clashes = worth @ member, forbidden @ member  # (G, K)
    held = member.sum(axis=0)
    for _ in range(n_sweeps):
        allowed = np.where(clashes > 0, -np.inf, gain)
        wish = allowed.max(axis=1) - gain[np.arange(len(Q)), labels]
        moved = False
        for g in np.argsort(-wish)[: int((wish > 1e-9).sum())]:
            old, new = labels[g], int(np.where(clashes[g] > 0, -np.inf, gain[g]).argmax())
            if gain[g, new] <= gain[g, old] + 1e-9 or (held[old] == 1 and (held > 0).sum() <= low):
                continue
            gain[:, old] -= worth[:, g]
            gain[:, new] += worth[:, g]
            clashes[:, old] -= forbidden[:, g]
            clashes[:, new] += forbidden[:, g]
            held[old], held[new] = held[old] - 1, held[new] + 1
            labels[g] = new
            moved = True
        if not moved:
            break
    return np.unique(labels, return_inverse=True)[1]
