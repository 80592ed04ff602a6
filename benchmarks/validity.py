"""Choosing among partitions of the same rows: the learned validity index and the classical ones.

    ASTERISM_DATA=... python benchmarks/validity.py [--quick] [--weights default]

Data        the development suites, at most 500 rows a data set; sets of one class are left out,
            since all candidates have two clusters or more.
Candidates  k-means with K = 2 … 15, Gaussian mixtures with K = 2 … 10 (diagonal covariances beyond
            20 columns), HDBSCAN with 5, 10 and 20 rows at least and its noise filled, spectral
            clustering of a ten-neighbour graph with K = 2 … 8.
Indices     ``Asterism.score_partition``; silhouette, Calinski-Harabasz, Davies-Bouldin; a density
            index, DBCV, on all rows of the partition.
ARI         of the candidate an index likes best, the largest over the references as in
            ``suites.py``; the oracle knows the best candidate, "mean candidate" picks at random.
Regret      ARI of the oracle minus that.
Means       batteries of the clustering suite weigh the same, and as much as another suite. Parts as
            in ``suites.py``; nothing was chosen by these numbers.

Moulavi, Jaskowiak, Campello, Zimek & Sander, "Density-based clustering validation", SDM 2014.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pandas as pd
import torch
from common import Row, cached_rows, markdown_tables, network_options, write_results
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.special import logsumexp
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.metrics import (
    calinski_harabasz_score,
    davies_bouldin_score,
    pairwise_distances,
    silhouette_score,
)
from sklearn.mixture import GaussianMixture
from suite_data import digest, load_suite, part_of, prepared, quick
from suite_tables import WITH_BATTERIES, balanced_mean
from suites import network_identity
from threadpoolctl import threadpool_limits

from asterism import HDBSCAN, Asterism
from asterism.metrics import best_over_references

SUITES = ("clustering_suite", "tabular", "highdim", "toys")
QUICK_NAMES = ("clustering_suite/wut/x3", "tabular/new_thyroid", "toys/asterism/moons")
MAX_ROWS, SEED = 500, 0
MANY_COLUMNS = 20
OURS, ORACLE, MEAN = "Asterism", "oracle", "mean candidate"
PROTOCOL = __doc__.split("\n\n", 2)[2].strip()


# --- candidates ---------------------------------------------------------------------------------


def candidates(X: np.ndarray) -> dict[str, np.ndarray]:
    """Partitions into two clusters or more, by name."""
    covariance = "full" if X.shape[1] <= MANY_COLUMNS else "diag"
    methods = {
        **{f"kmeans-{k}": KMeans(k, n_init=3, random_state=SEED) for k in range(2, 16)},
        **{
            f"gmm-{k}": GaussianMixture(k, covariance_type=covariance, random_state=SEED)
            for k in range(2, 11)
        },
        **{f"hdbscan-{size}": HDBSCAN(min_cluster_size=size) for size in (5, 10, 20)},
        **{
            f"spectral-{k}": SpectralClustering(
                k,
                affinity="nearest_neighbors",
                n_neighbors=min(10, len(X) - 1),
                assign_labels="cluster_qr",
                random_state=SEED,
            )
            for k in range(2, 9)
        },
    }
    found = {}
    for name, method in methods.items():
        try:
            labels = method.fit_predict(X)
        except ValueError:  # such as a covariance that collapses: one candidate fewer
            continue
        codes = np.unique(labels, return_inverse=True)[1]
        if 1 <= codes.max() < len(X) - 1:  # the classical indices know no other numbers
            found[name] = codes
    return found


# --- indices: the larger the better -------------------------------------------------------------


def density_validity(distances: np.ndarray, labels: np.ndarray, dim: int) -> float:
    """DBCV from -1 to 1: gaps between clusters against the widest gap within each.

    Distances are those of mutual reachability, the largest of d_ij and the core distances of i and
    j, (mean_j d_ij^-dim)^(-1/dim) within a cluster. The gap within is the longest edge between
    inner nodes of a cluster's spanning tree, the gap between the least distance of inner nodes.
    A cluster of one row is noise and worth nothing.
    """
    d = np.maximum(distances, 1e-9)  # a zero is no edge to the spanning tree
    members = [np.flatnonzero(labels == k) for k in range(labels.max() + 1)]
    core, inner, widest = np.zeros(len(d)), [], []
    for rows in members:
        if len(rows) < 2:
            inner.append(rows)
            widest.append(np.inf)
            continue
        logs = -dim * np.log(d[np.ix_(rows, rows)])
        np.fill_diagonal(logs, -np.inf)
        core[rows] = np.exp(-(logsumexp(logs, axis=1) - np.log(len(rows) - 1)) / dim)
        reach = np.maximum(d[np.ix_(rows, rows)], np.maximum.outer(core[rows], core[rows]))
        np.fill_diagonal(reach, 0)
        tree = minimum_spanning_tree(reach).tocoo()
        degree = np.bincount(np.concatenate([tree.row, tree.col]), minlength=len(rows))
        between = (degree[tree.row] > 1) & (degree[tree.col] > 1)
        inner.append(rows[degree > 1] if (degree > 1).any() else rows)
        widest.append(tree.data[between].max() if between.any() else tree.data.max(initial=0.0))
    reach = np.maximum(d, np.maximum.outer(core, core))
    total = 0.0
    for k, rows in enumerate(members):
        if len(rows) < 2:
            continue
        others = np.concatenate([nodes for other, nodes in enumerate(inner) if other != k])
        gap = reach[np.ix_(inner[k], others)].min()
        total += len(rows) * (gap - widest[k]) / max(gap, widest[k])
    return float(total / len(labels))


def classical(X: np.ndarray) -> dict[str, Callable[[np.ndarray], float]]:
    distances = pairwise_distances(X)
    return {
        "silhouette": lambda labels: silhouette_score(distances, labels, metric="precomputed"),
        "Calinski-Harabasz": lambda labels: calinski_harabasz_score(X, labels),
        "Davies-Bouldin": lambda labels: -davies_bouldin_score(X, labels),
        "DBCV": lambda labels: density_validity(distances, labels, X.shape[1]),
    }


def choose(key: Row, weights: str) -> Row:
    """ARI of the candidate that each index likes best, and which that is."""
    X, references = prepared(key["suite"], key["set"])
    if len(X) > MAX_ROWS:
        chance = np.random.default_rng(digest(key["suite"], key["set"]))
        rows = np.sort(chance.choice(len(X), MAX_ROWS, replace=False))
        X, references = X[rows], [labels[rows] for labels in references]
    tried = candidates(X)
    names, partitions = list(tried), np.array(list(tried.values()))
    aris = [best_over_references(references, labels, ignore=-1)["ari"] for labels in partitions]
    model = Asterism(weights=weights, device="cpu", random_state=SEED)
    scores = {OURS: model.score_partition(X, partitions)}
    for index, score in classical(X).items():
        scores[index] = np.array([score(labels) for labels in partitions])
    picked = {index: int(np.argmax(values)) for index, values in scores.items()}
    picked[ORACLE] = int(np.argmax(aris))
    return {
        "n": len(X),
        "candidates": len(names),
        "chosen": {index: names[best] for index, best in picked.items()},
        "ari": {index: round(aris[best], 4) for index, best in picked.items()}
        | {MEAN: round(float(np.mean(aris)), 4)},
    }


# --- tables and command line --------------------------------------------------------------------


def validity_tables(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """One table a part: each index in each suite, and its regret over all."""
    frame = pd.DataFrame(
        [
            {
                "part": part_of(row["suite"], row["set"]),
                "suite": row["suite"],
                "battery": row["set"].partition("/")[0]
                if row["suite"] == WITH_BATTERIES
                else row["suite"],
                "method": index,
                "ari": ari,
                "regret": row["ari"][ORACLE] - ari,
            }
            for row in rows
            for index, ari in row["ari"].items()
        ]
    )
    tables = {}
    for part, here in frame.groupby("part", sort=False):
        columns = {
            f"{suite} ({len(own) // here['method'].nunique()})": balanced_mean(own, "ari")
            for suite, own in here.groupby("suite", sort=False)
        }
        means = {name: balanced_mean(here, name) for name in ("ari", "regret")}
        best = here.assign(best=here["regret"] <= 0.01).groupby("method")["best"].mean()
        tables[f"ARI of the chosen partition, {part} part"] = [
            {"index": index}
            | {suite: f"{mean[index]:.3f}" for suite, mean in columns.items()}
            | {"mean": f"{means['ari'][index]:.3f}", "mean regret": f"{means['regret'][index]:.3f}"}
            | {"within 0.01 of the best": f"{best[index]:.0%}"}
            for index in here["method"].unique()
        ]
    return tables


def main() -> None:
    asked = network_options(__doc__)
    identity = network_identity(asked.weights)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    keys = [
        {"suite": suite, "set": name} | identity
        for suite in SUITES
        for name in load_suite(suite).names
        if (not asked.quick or quick(suite, name, QUICK_NAMES))
        and load_suite(suite)[name].n_classes > 1
    ]
    with threadpool_limits(1):
        rows = cached_rows("validity", keys, partial(choose, weights=asked.weights))
    tables = validity_tables(rows)
    if asked.quick:
        print(markdown_tables(tables))
        return
    write_results(
        "validity",
        "Choosing among partitions",
        f"```text\n{PROTOCOL}\n```",
        tables,
        details=rows,
        seeds=[SEED],
        network=identity,
    )


if __name__ == "__main__":
    main()
