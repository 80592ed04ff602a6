"""Tables in units of their own, read by networks that know clusters of one width.

    python benchmarks/units.py [--quick] [--sets 20]

Tables     kinds of synthetic ones, twenty of each (``--sets``), 200 to 800 rows, one to eight
           clusters, none of which any setting was chosen on:
           round      Gaussians of one width, which may run into each other
           stretched  the same after a random linear map
           sizes      Gaussians whose widths differ up to four times
           columns    the same as round in three to ten columns
           whole      the same as round, in whole numbers
           one        one column
           single     one Gaussian in two to five columns
DAC        ``scaling`` "auto" (the default: several scales are tried), "local" (the guess with which
           they begin) and "global" (the whole table as wide as in training); default weights
Classical  Gaussian mixture, K of 1 … 12 by BIC; k-means, K of 2 … 12 by the silhouette; HDBSCAN
Scores     mean ARI ± standard error, of a single cluster one or zero; CPU s a table, one thread
"""

import argparse
import time
import warnings

import numpy as np
import torch
from amortised import network_facts
from common import Row, cached_rows, mean_and_error, write_results
from sklearn.datasets import make_blobs
from threadpoolctl import threadpool_limits

from asterism import DAC, HDBSCAN, AutoGaussianMixture, AutoKMeans
from asterism.base import Clusterer
from asterism.metrics import adjusted_rand_index

SEED = 20_000
KINDS = ("round", "stretched", "sizes", "columns", "whole", "one", "single")
METHODS: dict[str, Clusterer] = {
    "DAC, auto": DAC(random_state=0),
    "DAC, local": DAC(scaling="local", random_state=0),
    "DAC, global": DAC(scaling="global", random_state=0),
    "Gaussian mixture, BIC": AutoGaussianMixture(max_clusters=12, random_state=0),
    "k-means, silhouette": AutoKMeans(max_clusters=12, random_state=0),
    "HDBSCAN": HDBSCAN(noise="fill"),
}


def table(kind: str, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and clusters of a table."""
    chance = np.random.RandomState(SEED + 100 * KINDS.index(kind) + number)
    n_clusters = 1 if kind == "single" else chance.randint(1, 9)
    columns = {"columns": chance.randint(3, 11), "one": 1, "single": chance.randint(2, 6)}
    dim = columns.get(kind, 2)
    width = chance.uniform(0.4, 1.4) * (dim / 2) ** 0.5
    factors = chance.uniform(0.5, 2, n_clusters) if kind == "sizes" else np.ones(n_clusters)
    X, y = make_blobs(
        chance.randint(200, 801),
        dim,
        centers=chance.uniform(-10, 10, (n_clusters, dim)),
        cluster_std=width * factors,
        random_state=chance,
    )
    if kind == "stretched":
        X = X @ chance.standard_normal((dim, dim))
    return X.round() if kind == "whole" else 50 + 7 * X, y


def run(key: Row) -> Row:
    X, y = table(key["kind"], key["number"])
    start = time.process_time()
    labels = METHODS[key["method"]].fit_predict(X)
    seconds = time.process_time() - start
    return {"ari": round(float(adjusted_rand_index(y, labels)), 4), "seconds": round(seconds, 3)}


def summary(rows: list[Row]) -> list[Row]:
    made = []
    for method in METHODS:
        mine = [row for row in rows if row["method"] == method]
        scores = {kind: [row["ari"] for row in mine if row["kind"] == kind] for kind in KINDS}
        made.append(
            {
                "method": method,
                **{kind: mean_and_error(values) for kind, values in scores.items()},
                "all": mean_and_error([row["ari"] for row in mine]),
                "CPU s": f"{np.mean([row['seconds'] for row in mine]):.2f}",
            }
        )
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one table a kind; nothing is written")
    parser.add_argument("--sets", type=int, default=20)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    network = network_facts("dac-mog")
    keys = [
        {"kind": kind, "number": number, "method": method}
        | (network if method.startswith("DAC") else {})
        for kind in KINDS
        for number in range(1 if asked.quick else asked.sets)
        for method in METHODS
    ]
    with threadpool_limits(1):
        if asked.quick:
            print(summary([key | run(key) for key in keys]))
            return
        rows = cached_rows("units", keys, run)
    notes = "```text\n" + __doc__.split("\n\n", 2)[2].strip() + "\n```"
    write_results(
        "units", "Tables in units of their own", notes, summary(rows), details=rows, seed=SEED
    )


if __name__ == "__main__":
    main()
