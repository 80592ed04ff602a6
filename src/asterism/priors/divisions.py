"""What else divides the rows of a table: finer clusters, groups that cross them, copies.

Rows fall apart in more ways than the one a table is clustered for. Species are many, and the
question is which can be eaten; patients differ by sex and age beside what ails them; a file was
appended to itself. From the rows alone it cannot be known which division is meant, and the network
should say so: that rows of two clusters may well be of one class.

    unions     labels (N,) of classes made of neighbouring clusters
    crossed    rows (N, D) moved by groups that know nothing of the labels, by less than the nearest
               clusters are apart
    copied     which row of a smaller table each row of this one is
"""

import numpy as np
from scipy.cluster.hierarchy import cut_tree, linkage
from scipy.spatial.distance import pdist

__all__ = ["copied", "crossed", "unions"]


def unions(x: np.ndarray, labels: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """Classes (N,) of clusters whose means are near each other; two at least, fewer than before.

    >>> x = np.array([[0.0], [1.0], [9.0]])
    >>> unions(x, np.array([0, 1, 2]), np.random.default_rng(0)).tolist()
    [0, 0, 1]
    """
    n_clusters = int(labels.max()) + 1
    if n_clusters < 3:
        return labels
    fewer = np.arange(2, n_clusters)
    n_classes = int(chance.choice(fewer, p=(weights := 1.0 / fewer) / weights.sum()))
    classes = cut_tree(linkage(_means(x, labels), "average"), n_classes)[:, 0]
    return classes[labels]


def crossed(x: np.ndarray, labels: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """Rows moved by two to four groups that cross the clusters.

    The groups are no further from each other than the nearest two clusters are. They differ along
    random directions, or in some of the columns only.
    """
    n_clusters = int(labels.max()) + 1
    if n_clusters < 2:  # the groups would be the clusters
        return x
    dim = x.shape[1]
    n_groups = int(chance.choice([2, 3, 4], p=[0.6, 0.25, 0.15]))
    group = chance.choice(n_groups, size=len(x), p=chance.dirichlet(np.full(n_groups, 3.0)))
    offsets = chance.standard_normal((n_groups, dim))
    if chance.random() < 0.5:
        touched = np.less(chance.random(dim), 0.4)
        touched[chance.integers(dim)] = True
        offsets *= touched
    reach = chance.uniform(0.3, 1.0) * pdist(_means(x, labels)).min()
    return x + reach / max(float(pdist(offsets).max()), 1e-9) * offsets[group]


def copied(n_rows: int, chance: np.random.Generator) -> np.ndarray:
    """Numbers (n_rows,) of the rows that stand in a table: each several times, or some again."""
    if chance.random() < 0.5:  # the file was appended to itself
        times = int(chance.integers(2, 5))
        return np.arange(n_rows) // times
    n_distinct = max(1, int(n_rows * chance.uniform(0.5, 0.95)))
    again = chance.integers(n_distinct, size=n_rows - n_distinct)
    return np.concatenate([np.arange(n_distinct), again])


def _means(x: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return np.stack([x[labels == k].mean(axis=0) for k in range(int(labels.max()) + 1)])
