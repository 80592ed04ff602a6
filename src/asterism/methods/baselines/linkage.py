"""Spectral clustering of the neighbour graph, and agglomeration by Ward's criterion.

    spectral   k-means on the leading eigenvectors of L = I − D^{−1/2} W D^{−1/2}; K by the eigengap
    Ward       merge, again and again, the two clusters whose union adds least to the sum of
               squares; K by the silhouette of the cuts

von Luxburg, "A tutorial on spectral clustering", 2007. Ward, "Hierarchical grouping to optimize an
objective function", 1963.
"""

import warnings
from typing import Any, ClassVar

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components, laplacian
from scipy.sparse.linalg import eigsh
from sklearn.cluster import SpectralClustering
from sklearn.neighbors import kneighbors_graph

from asterism._validation import StrOptions, at_least, check_rows
from asterism.functional.hierarchy import cut_tree
from asterism.methods.baselines.nearest import NearestRowClusterer
from asterism.methods.baselines.selection import best_silhouette, candidate_counts, largest_gap

__all__ = ["AutoAgglomerative", "AutoSpectral"]

_SHARED: dict[str, list[Any]] = {
    **NearestRowClusterer._parameter_constraints,
    "n_clusters": [at_least(1), StrOptions({"auto"})],
    "max_clusters": [at_least(2)],
}


class AutoSpectral(NearestRowClusterer):
    """scikit-learn's spectral clustering of a neighbour graph; K by the eigengap unless given.

    Parameters
    ----------
    n_clusters : int or "auto", default="auto"
        Number of clusters.
    max_clusters : int, default=15
        Largest number considered.
    n_neighbors : int, default=10
        Neighbours each row is joined to.
    max_rows : int or None, default=10000
        Cluster a random sample above this many rows.
    random_state : int, RandomState or None, default=None
        Fixes the sample, the eigensolver and k-means.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
    n_clusters_ : int
    context_rows_, context_labels_ : ndarray
        Rows and labels that new rows are compared with.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from asterism import AutoSpectral
    >>> X, _ = make_moons(300, noise=0.05, random_state=0)
    >>> AutoSpectral(random_state=0).fit(X).n_clusters_
    2
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_SHARED,
        "n_neighbors": [at_least(1)],
    }

    def __init__(
        self,
        n_clusters: int | str = "auto",
        *,
        max_clusters: int = 15,
        n_neighbors: int = 10,
        max_rows: int | None = 10_000,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.max_clusters = max_clusters
        self.n_neighbors = n_neighbors
        self.max_rows = max_rows
        self.random_state = random_state

    def _partition(self, X: np.ndarray, seed: int) -> np.ndarray:
        graph = neighbour_graph(X, self.n_neighbors)
        if self.n_clusters == "auto":
            n_clusters = largest_gap(laplacian_spectrum(graph, self.max_clusters + 1, seed))
        else:
            n_clusters = int(self.n_clusters)
            check_rows(len(X), n_clusters)
        if n_clusters == 1:
            return np.zeros(len(X), dtype=np.int64)
        model = SpectralClustering(
            n_clusters,
            affinity="precomputed",
            # The sparse solver needs more rows than eigenvectors.
            eigen_solver="arpack" if len(X) > n_clusters + 1 else "lobpcg",
            random_state=seed,
        )
        with warnings.catch_warnings():
            # A graph in pieces is what well separated clusters look like.
            warnings.filterwarnings("ignore", message="Graph is not fully connected")
            return model.fit(graph).labels_


class AutoAgglomerative(NearestRowClusterer):
    """Ward's agglomeration; K by the silhouette of the cuts unless given.

    Parameters
    ----------
    n_clusters : int or "auto", default="auto"
        Number of clusters.
    max_clusters : int, default=15
        Largest number tried.
    linkage : {"ward", "complete", "average", "single"}, default="ward"
        What two clusters' distance is.
    max_rows : int or None, default=10000
        Cluster a random sample above this many rows; the tree costs memory in N².
    random_state : int, RandomState or None, default=None
        Fixes the sample and the silhouette's rows.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
    n_clusters_ : int
    context_rows_, context_labels_ : ndarray
        Rows and labels that new rows are compared with.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from asterism import AutoAgglomerative
    >>> X, _ = make_blobs(200, centers=5, cluster_std=0.4, random_state=3)
    >>> AutoAgglomerative().fit(X).n_clusters_
    5
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_SHARED,
        "linkage": [StrOptions({"ward", "complete", "average", "single"})],
    }

    def __init__(
        self,
        n_clusters: int | str = "auto",
        *,
        max_clusters: int = 15,
        linkage: str = "ward",
        max_rows: int | None = 10_000,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.max_clusters = max_clusters
        self.linkage = linkage
        self.max_rows = max_rows
        self.random_state = random_state

    def _partition(self, X: np.ndarray, seed: int) -> np.ndarray:
        tree = linkage(X, method=self.linkage)

        def cut(n_clusters: int) -> np.ndarray:
            return cut_tree(tree, n_clusters)

        if self.n_clusters == "auto":
            cuts = (cut(k) for k in candidate_counts(X, self.max_clusters))
            best, self.silhouettes_ = best_silhouette(X, cuts, np.asarray, seed)
            return cut(1) if best is None else best
        check_rows(len(X), int(self.n_clusters))
        return cut(int(self.n_clusters))


def neighbour_graph(X: np.ndarray, n_neighbors: int) -> csr_matrix:
    """Symmetric graph: weight 1 between mutual neighbours, ½ where only one side is."""
    graph = kneighbors_graph(X, min(n_neighbors, len(X) - 1), include_self=False)
    return 0.5 * (graph + graph.T)


def laplacian_spectrum(graph: csr_matrix, n_values: int, seed: int) -> np.ndarray:
    """Smallest eigenvalues of the normalised Laplacian, ascending.

    The spectrum of a graph in pieces is the union of theirs. Taken piece by piece, since a Krylov
    method sees only one of several equal eigenvalues, and every piece has a zero.
    """
    n_pieces, piece = connected_components(graph, directed=False)
    spectra = []
    for number in range(n_pieces):
        rows = np.flatnonzero(piece == number)
        spectra.append(_connected_spectrum(graph[rows][:, rows], n_values, seed))
    return np.sort(np.concatenate(spectra))[:n_values]


def _connected_spectrum(graph: csr_matrix, n_values: int, seed: int) -> np.ndarray:
    n_rows = graph.shape[0]
    # The spectrum lies in [0, 2]: the smallest of L are the largest of 2I - L, which converge.
    flipped = -laplacian(graph, normed=True)
    flipped.setdiag(flipped.diagonal() + 2)
    if n_values >= n_rows - 1:
        return 2 - np.linalg.eigvalsh(flipped.toarray())[::-1][:n_values]
    start = np.random.RandomState(seed).uniform(-1, 1, n_rows)
    return 2 - eigsh(flipped, k=n_values, v0=start, return_eigenvectors=False, tol=1e-6)
