"""What a few labels are worth: ``Asterism`` told the class of 0, 1, 3 or 10 rows of each class.

    ASTERISM_DATA=... python benchmarks/few_labels.py [--quick] [--weights default]

Data      of the development suites those with 2 … 12 classes: all tables and high-dimensional sets,
          and a third of the clustering suite, by a checksum of the names; at most 400 rows.
Labels    of the first reference, drawn at random, seeds 0 … 2; of a class of fewer than 20 rows at
          most half. Those of 1 are among those of 3, and these among those of 10.
ARI       on the rows that are never labelled, the same for all columns; rows that the reference
          calls noise are neither labelled nor scored.
Asterism  is given ``y`` with -1 where unknown, and finds the number of clusters by itself.
Baselines know the number of classes. Seeded k-means starts from the means of the labelled rows
          (without labels, from k-means++); nearest label copies the nearest labelled row.
Means     batteries of the clustering suite weigh the same. Parts as in ``suites.py``; nothing was
          chosen by these numbers.

Basu, Banerjee & Mooney, "Semi-supervised clustering by seeding", ICML 2002.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pandas as pd
import torch
from common import Row, cached_rows, markdown_tables, network_options, write_results
from sklearn.cluster import KMeans
from sklearn.neighbors import KNeighborsClassifier
from suite_data import digest, load_suite, part_of, prepared, quick
from suite_tables import WITH_BATTERIES, balanced_mean
from suites import network_identity
from threadpoolctl import threadpool_limits

from asterism import Asterism
from asterism.metrics import adjusted_rand_index

SUITES = ("clustering_suite", "tabular", "highdim")
QUICK_NAMES = ("clustering_suite/wut/x3", "tabular/new_thyroid", "tabular/seeds")
CLASSES = (2, 12)
MAX_ROWS = 400
LABELS, SEEDS = (0, 1, 3, 10), (0, 1, 2)
OURS = "Asterism"
PROTOCOL = __doc__.split("\n\n", 2)[2].strip()


# --- data ---------------------------------------------------------------------------------------


def chosen(suite: str, name: str) -> bool:
    """Whether a data set takes part."""
    low, high = CLASSES
    in_third = suite != WITH_BATTERIES or digest(suite, name) % 3 == 0
    return in_third and low <= load_suite(suite)[name].n_classes <= high


def sample(suite: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and first reference of a data set."""
    X, (y, *_) = prepared(suite, name)
    if len(X) > MAX_ROWS:
        rows = np.random.default_rng(digest(suite, name)).choice(len(X), MAX_ROWS, replace=False)
        X, y = X[rows], y[rows]
    codes = np.full(len(y), -1)
    codes[y >= 0] = np.unique(y[y >= 0], return_inverse=True)[1]
    return X, codes


def reveal(y: np.ndarray, n_labels: int, seed: int) -> np.ndarray:
    """Classes of ``n_labels`` rows of each class, of half a small one at most; -1 elsewhere."""
    chance = np.random.default_rng(seed)
    known = np.full(len(y), -1)
    for code in range(y.max() + 1):
        members = chance.permutation(np.flatnonzero(y == code))
        told = members[: min(n_labels, len(members) // 2)]
        known[told] = code
    return known


# --- methods ------------------------------------------------------------------------------------


def seeded_kmeans(X: np.ndarray, known: np.ndarray, n_classes: int, seed: int) -> np.ndarray:
    if (known < 0).all():
        return KMeans(n_classes, n_init=10, random_state=seed).fit_predict(X)
    means = [X[known == code].mean(axis=0) for code in np.unique(known[known >= 0])]
    return KMeans(len(means), init=np.array(means), n_init=1).fit_predict(X)


def nearest_label(X: np.ndarray, known: np.ndarray, *_: int) -> np.ndarray:
    if (known < 0).all():
        return np.zeros(len(X), dtype=np.int64)
    told = known >= 0
    return KNeighborsClassifier(1).fit(X[told], known[told]).predict(X)


def network(
    X: np.ndarray, known: np.ndarray, n_classes: int, seed: int, *, weights: str
) -> np.ndarray:
    del n_classes  # it is to find out by itself
    model = Asterism(weights=weights, device="cpu", random_state=seed)
    return model.fit_predict(X, known if (known >= 0).any() else None)


METHODS: dict[str, Callable[..., np.ndarray]] = {
    OURS: network,
    "seeded k-means, K known": seeded_kmeans,
    "nearest label": nearest_label,
}


def run(key: Row, weights: str) -> Row:
    X, y = sample(key["suite"], key["set"])
    scored = (reveal(y, max(LABELS), key["seed"]) < 0) & (y >= 0)
    known = reveal(y, key["labels"], key["seed"])
    method = METHODS[key["method"]]
    if key["method"] == OURS:
        method = partial(method, weights=weights)
    labels = method(X, known, int(y.max()) + 1, key["seed"])
    return {
        "n": len(X),
        "scored": int(scored.sum()),
        "k_true": int(y.max()) + 1,
        "k": len(np.unique(labels)),
        "ari": round(adjusted_rand_index(y[scored], labels[scored]), 4),
    }


# --- tables and command line --------------------------------------------------------------------


def label_tables(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """For each part, mean ARI of each method by the number of labels, all suites and each."""
    frame = pd.DataFrame(rows)
    frame["part"] = [part_of(*pair) for pair in zip(frame["suite"], frame["set"], strict=True)]
    battery = frame["set"].str.partition("/")[0]
    frame["battery"] = battery.where(frame["suite"] == WITH_BATTERIES, frame["suite"])
    tables = {}
    for part, here in frame.groupby("part", sort=False):
        for suite, own in [("all", here), *here.groupby("suite", sort=False)]:
            columns = {n: balanced_mean(told, "ari") for n, told in own.groupby("labels")}
            heading = f"Mean ARI by labels a class, {suite}, {part} part"
            tables[f"{heading}, {own['set'].nunique()} data sets"] = [
                {"method": method}
                | {
                    f"{n}": "" if method == "nearest label" and n == 0 else f"{mean[method]:.3f}"
                    for n, mean in columns.items()
                }
                for method in METHODS
            ]
    return tables


def main() -> None:
    asked = network_options(__doc__)
    identity = network_identity(asked.weights)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    keys = [
        {"suite": suite, "set": name, "labels": n_labels, "seed": seed, "method": method}
        | (identity if method == OURS else {})
        for suite in SUITES
        for name in load_suite(suite).names
        if (quick(suite, name, QUICK_NAMES) if asked.quick else chosen(suite, name))
        for n_labels in LABELS
        for seed in SEEDS[: 1 if asked.quick else None]
        for method in METHODS
    ]
    with threadpool_limits(1):
        rows = cached_rows("few_labels", keys, partial(run, weights=asked.weights))
    tables = label_tables(rows)
    if asked.quick:
        print(markdown_tables(tables))
        return
    write_results(
        "few_labels",
        "What a few labels are worth",
        f"```text\n{PROTOCOL}\n```",
        tables,
        details=rows,
        seeds=list(SEEDS),
        network=identity,
    )


if __name__ == "__main__":
    main()
