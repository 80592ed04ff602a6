"""Cuts of a tree of merges, as many clusters as asked.

A tree is what :func:`scipy.cluster.hierarchy.linkage` returns: row m merges two clusters into
cluster N + m. Undoing the last K − 1 merges leaves exactly K clusters, ties or not.
"""

import numpy as np

__all__ = ["cut_tree"]


def cut_tree(tree: np.ndarray, n_clusters: int) -> np.ndarray:
    """Labels (N,) of the cut into ``n_clusters`` clusters, at most N.

    >>> from scipy.cluster.hierarchy import linkage
    >>> cut_tree(linkage([[0.0], [1.0], [10.0], [11.0]]), 3).tolist()
    [0, 0, 1, 2]
    """
    n = len(tree) + 1
    kept = tree[: n - min(n_clusters, n), :2].astype(np.int64)
    parent = np.arange(2 * n - 1)
    parent[kept] = n + np.arange(len(kept))[:, None]
    # Every chain of parents is followed at once, doubling its length each round.
    while True:
        further = parent[parent]
        if (further == parent).all():
            break
        parent = further
    roots = parent[:n]
    _, first, labels = np.unique(roots, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[labels]
