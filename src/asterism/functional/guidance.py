"""What rows of known class tell of all others: of pairs, and of the number of clusters.

Labelled rows first set the scale. Of the pairs among them it is known whether they are together, so

    logit P'_ij = α + β logit P_ij + γ log (D / d_ij)

with d_ij the distance of rows and D its median, is fitted to these pairs: Gaussian priors
α ~ N(0, 1), β ~ N(1, ½²), γ ~ N(0, 2²), β and γ ≥ 0, and all pairs together weigh as much as there
are labelled rows. So it shows at which grain the user looks, and where P sees no difference the
distance may.

Then rows learn from the groups of constrained rows that they resemble. With a_ig the mean of fourth
powers of P between row i and the rows of group g, to the power ¼ (a class may have several parts,
and the near one counts),

    r_ig = o_ig / (1 + Σ_h o_ih),  o = a / (1 − a)     i belongs with g: one of them, or none
    e_ij = Σ_gh r_ig B_gh r_jh                         B_gg = 1, B_gh = −1 if apart, else 0
    odds P'_ij = odds P_ij · (1 + e_ij) / (1 − e_ij)

so that two rows sure of the same class come together, rows of different classes part, and rows
that resemble no group keep their P. Within a group P' = 1, across apart groups P' = 0.

Were the labelled rows drawn at random from K clusters of equal size, m of them would all fall into
C of these with probability (C / K)^m. Nine of ten users are taken to draw so, the tenth to label
some classes only:

    p(K | labels) ∝ p(K) (0.9 (C / K)^m + 0.1),   K ≥ C

The constants were chosen on the tuning part of the development suites.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from scipy.special import expit, logit

from asterism.functional.constraints import Constraints, merge_groups

__all__ = ["constrain_similarity", "counts_given_classes", "recalibrate"]

_SURE = 1e-6  # a probability this near 0 or 1 counts as certain
_CLIP = 1e-4
_NEAR = 4
_RANDOM = 0.9
_PRIOR_MEAN, _PRIOR_SCALE = np.array([0.0, 1.0, 0.0]), np.array([1.0, 0.5, 2.0])
_BOUNDS = [(None, None), (0, None), (0, None)]


def recalibrate(P: np.ndarray, classes: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Pair probabilities (N, N) on the scale of the known classes (N,), −1 where unknown.

    ``rows`` (N, D) are where distances are taken. Rows of one class that were thought apart bring
    all rows closer:

    >>> P = np.full((4, 4), 0.2)
    >>> bool(recalibrate(P, np.array([0, 0, -1, -1]), np.eye(4))[2, 3] > 0.2)
    True
    """
    known = np.flatnonzero(classes >= 0)
    first, second = (known[side] for side in np.triu_indices(len(known), 1))
    if not len(first):
        return P
    views = np.stack([np.ones_like(P), logit(np.clip(P, _CLIP, 1 - _CLIP)), _closeness(rows)])
    inputs = views[:, first, second]
    same = (classes[first] == classes[second]).astype(np.float64)
    weight = len(known) / len(first)

    def loss(line: np.ndarray) -> tuple[float, np.ndarray]:
        """Minus the logarithm of the posterior of (α, β, γ), and its gradient."""
        z, off = line @ inputs, (line - _PRIOR_MEAN) / _PRIOR_SCALE
        value = weight * float((np.logaddexp(0, z) - same * z).sum()) + float(off @ off) / 2
        return value, weight * inputs @ (expit(z) - same) + off / _PRIOR_SCALE

    line = minimize(loss, _PRIOR_MEAN, jac=True, method="L-BFGS-B", bounds=_BOUNDS).x
    result = expit(np.tensordot(line, views, axes=1))
    np.fill_diagonal(result, 1)
    return result


def _closeness(rows: np.ndarray) -> np.ndarray:
    """Logarithm (N, N) of the median distance over the distance, within three."""
    distance = cdist(rows, rows)
    middle = max(float(np.median(distance)), 1e-12)
    return np.clip(np.log(middle / np.maximum(distance, 1e-12)), -3, 3)


def constrain_similarity(P: np.ndarray, constraints: Constraints) -> np.ndarray:
    """Pair probabilities P' (N, N) once the constraints are known.

    Two alike rows, and two more; the first is told apart from the last:

    >>> from asterism.functional.constraints import make_constraints
    >>> P = np.kron([[0.8, 0.5], [0.5, 0.8]], np.ones((2, 2)))
    >>> constrain_similarity(P, make_constraints(4, cannot_link=[(0, 3)]))[0].round(2).tolist()
    [1.0, 0.92, 0.25, 0.0]
    """
    groups = constraints.groups
    forbidden = constraints.forbidden
    sizes = np.bincount(groups)
    known = np.eye(len(sizes)) - forbidden  # (G, G): 1 together, −1 apart, 0 unknown
    anchors = np.flatnonzero((sizes > 1) | forbidden.any(axis=1))
    near = merge_groups(P**_NEAR, groups)[0] ** (1 / _NEAR)
    affinity = np.where(known > 0, 1, np.where(known < 0, 0, near))[:, anchors]
    odds = _odds(affinity)
    belongs = odds / (1 + odds.sum(axis=1, keepdims=True))
    evidence = belongs @ known[np.ix_(anchors, anchors)] @ belongs.T
    shift = np.log(_odds((1 + evidence) / 2))
    result = expit(np.log(_odds(P)) + shift[groups][:, groups])
    known = known[groups][:, groups]
    return np.where(known == 0, result, known > 0)


def _odds(p: np.ndarray) -> np.ndarray:
    p = np.clip(p, _SURE, 1 - _SURE)
    return p / (1 - p)


def counts_given_classes(counts: np.ndarray, n_classes: int, n_labelled: int) -> np.ndarray:
    """Belief over K = 1, 2, … once ``n_labelled`` rows showed so many classes.

    >>> counts_given_classes(np.full(4, 0.25), 2, 10).round(2).tolist()
    [0.45, 0.45, 0.05, 0.05]
    """
    if not n_classes:
        return counts
    share = np.minimum(1, n_classes / np.arange(1, len(counts) + 1))
    told = counts * (_RANDOM * share**n_labelled + 1 - _RANDOM)
    return told / told.sum()
