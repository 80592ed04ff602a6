"""How much an answer depends on chance: the same method fitted again with other seeds.

    counts      share of the fits with each number of clusters: what a posterior of K would tell,
                as far as chance in the method mirrors doubt in the data
    agreement   mean adjusted Rand index of all pairs of fits

No labels are needed. An answer that changes with the seed is not to be trusted; one that does not
may still be wrong.
"""

import itertools
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from asterism.exceptions import DataError
from asterism.metrics.scores import adjusted_rand_index

__all__ = ["Stability", "stability"]


class Stability(NamedTuple):
    """What several fits have in common."""

    counts: dict[int, float]  # share of the fits by number of clusters
    agreement: float  # mean adjusted Rand index between two fits
    labels: np.ndarray  # (n_fits, N)


def stability(estimator: Any, X: Any, *, n_fits: int = 5, random_state: Any = 0) -> Stability:
    """Fit copies of a clusterer with different seeds and compare their labels.

    Parameters
    ----------
    estimator : clusterer with the parameter ``random_state``
        Left as it is.
    X : array-like of shape (n_samples, n_features)
    n_fits : int, default=5
        At least two.
    random_state : int, RandomState or None, default=0
        From which the seeds are drawn.

    Returns
    -------
    Stability
        ``counts``, share of the fits by number of clusters; ``agreement``, mean adjusted Rand index
        of two fits; ``labels`` of all of them, (n_fits, n_samples).

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from asterism import DeepDPM
    >>> from asterism.metrics import stability
    >>> X, _ = make_blobs(300, centers=3, cluster_std=0.4, random_state=0)
    >>> found = stability(DeepDPM(epoch_steps=20), X, n_fits=2)
    >>> found.counts, round(found.agreement, 2)
    ({3: 1.0}, 1.0)
    """
    if n_fits < 2:
        raise DataError(f"n_fits={n_fits}: give at least two, since fits are compared.")
    if "random_state" not in estimator.get_params():
        raise DataError(
            f"{type(estimator).__name__} has no parameter random_state to vary: its answer does "
            "not depend on chance, or a pipeline hides it."
        )
    chance = check_random_state(np.random.RandomState() if random_state is None else random_state)
    seeds = chance.randint(np.iinfo(np.int32).max, size=n_fits)
    fits = [clone(estimator).set_params(random_state=int(seed)).fit(X) for seed in seeds]
    labels = np.stack([fit.labels_ for fit in fits])
    found = [len(np.unique(row[row >= 0])) for row in labels]
    counts = {k: found.count(k) / n_fits for k in sorted(set(found))}
    pairs = itertools.combinations(labels, 2)
    agreement = float(np.mean([adjusted_rand_index(one, other) for one, other in pairs]))
    return Stability(counts, agreement, labels)
