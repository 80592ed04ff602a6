"""Untidy tables with known clusters, from the table to the labels: ``cluster_table``.

    python benchmarks/robustness.py [--quick] [--weights default]

Clean       300 rows in K = 2 … 6 clusters of uneven sizes: seven numeric columns (Gaussian clusters
            with axes of different length, some columns skewed, each in a unit of its own) and two
            of categories whose frequencies depend on the cluster. Ten tables, seeds 0 … 9.
Conditions  each spoils the same ten tables:
            missing cells    a share of all cells, at random
            noise columns    a share of the final width: normal, uniform or skewed numbers, and
                             categories, that know nothing of the clusters
            outliers         a tenth more rows, each cell drawn far and wide by itself; not scored
            duplicated rows  every row three times
            one column       the same clusters along one numeric column, six deviations apart
            categories only  the same clusters in ten columns of 2 … 6 categories
Scores      mean ARI with the clusters that were drawn, and mean |K found - K drawn|; a cluster
            of outliers counts as found. A fit that fails has ARI 0 and K 0. Methods run with their
            defaults, and find K by themselves.

Nothing was chosen by these numbers, but a fault was found by them: on seeds 0, 1 and 2 the default
scaled what the table's encoder had scaled, which was then mended. How missing cells are filled, and
the weights, were chosen by tables of seeds 20 to 29 among others.
"""

import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from common import Row, cached_rows, markdown_tables, network_options, write_results
from suites import network_identity
from threadpoolctl import threadpool_limits

import asterism
from asterism import cluster_table
from asterism.metrics import clustering_scores

N_ROWS, N_NUMERIC, N_CATEGORICAL, N_ONLY = 300, 7, 2, 10
SEEDS, QUICK_SEEDS = range(10), range(1)
OURS = "asterism"
METHODS = (OURS, "kmeans", "gmm", "hdbscan")
PROTOCOL = __doc__.split("\n\n", 2)[2].strip()

Table = tuple[pd.DataFrame, np.ndarray]
Chance = np.random.Generator


# --- tables -------------------------------------------------------------------------------------


def draw_labels(chance: Chance) -> np.ndarray:
    n_clusters = int(chance.integers(2, 7))
    sizes = 20 + chance.multinomial(
        N_ROWS - 20 * n_clusters, chance.dirichlet(np.full(n_clusters, 3.0))
    )
    return chance.permutation(np.repeat(np.arange(n_clusters), sizes))


def spread_centers(n_clusters: int, dim: int, distance: float, chance: Chance) -> np.ndarray:
    """Centres (K, dim), the nearest two of which are ``distance`` apart."""
    centers = chance.standard_normal((n_clusters, dim))
    apart = np.linalg.norm(centers[:, None] - centers, axis=-1)
    return centers * distance / apart[np.triu_indices(n_clusters, 1)].min()


def numeric_columns(labels: np.ndarray, dim: int, chance: Chance) -> dict[str, np.ndarray]:
    distance = chance.uniform(4.0, 6.0) if dim > 1 else 6.0
    centers = spread_centers(labels.max() + 1, dim, distance, chance)
    if dim == 1:  # evenly, for a line has no room
        centers = distance * chance.permutation(labels.max() + 1)[:, None].astype(float)
    axes = np.exp(0.3 * chance.standard_normal((labels.max() + 1, dim))) if dim > 1 else 1.0
    deviations = np.broadcast_to(axes, centers.shape)[labels]
    x = centers[labels] + deviations * chance.standard_normal((len(labels), dim))
    skewed = chance.random(dim) < 0.3
    x = np.where(skewed & (dim > 1), np.exp(x / x.std(axis=0) / 2), x)
    units = np.exp(2 * chance.standard_normal(dim))
    return {f"x{j}": column for j, column in enumerate((x * units).T)}


def category_columns(labels: np.ndarray, n_columns: int, chance: Chance) -> dict[str, np.ndarray]:
    columns = {}
    for j in range(n_columns):
        levels = int(chance.integers(2, 7))
        table = chance.dirichlet(np.full(levels, 0.3), labels.max() + 1)
        drawn = (chance.random((len(labels), 1)) > table[labels].cumsum(axis=1)).sum(axis=1)
        columns[f"c{j}"] = np.array(list("abcdef"), dtype=object)[drawn.clip(max=levels - 1)]
    return columns


def clean(chance: Chance) -> Table:
    labels = draw_labels(chance)
    columns = numeric_columns(labels, N_NUMERIC, chance)
    return pd.DataFrame(columns | category_columns(labels, N_CATEGORICAL, chance)), labels


# --- conditions ---------------------------------------------------------------------------------


def missing_cells(share: float, chance: Chance) -> Table:
    frame, labels = clean(chance)
    gone = chance.random(frame.shape) < share
    return frame.mask(pd.DataFrame(gone, columns=frame.columns)), labels


def noise_columns(share: float, chance: Chance) -> Table:
    frame, labels = clean(chance)
    n_noise = round(frame.shape[1] * share / (1 - share))
    for j in range(n_noise):
        draws = (
            chance.standard_normal(len(frame)),
            chance.random(len(frame)),
            np.exp(chance.standard_normal(len(frame))),
            chance.choice(list("uvwxyz")[: int(chance.integers(2, 7))], len(frame)).astype(object),
        )
        frame[f"noise{j}"] = draws[int(chance.integers(len(draws)))]
    return frame, labels


def outliers(share: float, chance: Chance) -> Table:
    frame, labels = clean(chance)
    n = round(share * len(frame))
    stray = {}
    for name, column in frame.items():
        stray[name] = chance.choice(column, n)
        if column.dtype.kind == "f":
            stray[name] = column.mean() + 4 * column.std() * chance.standard_normal(n)
    spoilt = pd.concat([frame, pd.DataFrame(stray)], ignore_index=True)
    return spoilt, np.concatenate([labels, np.full(n, -1)])


def duplicated_rows(times: int, chance: Chance) -> Table:
    frame, labels = clean(chance)
    rows = np.tile(np.arange(len(frame)), times)
    return frame.iloc[rows].reset_index(drop=True), labels[rows]


def one_column(chance: Chance) -> Table:
    labels = draw_labels(chance)
    return pd.DataFrame(numeric_columns(labels, 1, chance)), labels


def categories_only(chance: Chance) -> Table:
    labels = draw_labels(chance)
    return pd.DataFrame(category_columns(labels, N_ONLY, chance)), labels


CONDITIONS: dict[str, Callable[[Chance], Table]] = {
    "clean": clean,
    **{f"missing cells {s:.0%}": partial(missing_cells, s) for s in (0.05, 0.1, 0.2, 0.4)},
    **{f"noise columns {s:.0%}": partial(noise_columns, s) for s in (0.1, 0.25, 0.5)},
    "outliers 10%": partial(outliers, 0.1),
    "duplicated rows x3": partial(duplicated_rows, 3),
    "one column": one_column,
    "categories only": categories_only,
}


# --- runs ---------------------------------------------------------------------------------------


def run(key: Row, weights: str) -> Row:
    frame, truth = CONDITIONS[key["condition"]](np.random.default_rng(key["seed"]))
    k_true = int(truth.max()) + 1
    chosen = {"weights": weights} if key["method"] == OURS else {}
    start = time.process_time()
    try:
        found = cluster_table(frame, key["method"], random_state=0, **chosen)
    except Exception as error:  # whatever it is, the other fits go on
        note = f"{type(error).__name__}: {error}"[:200]
        return {"k_true": k_true, "k": 0, "ari": 0.0, "cpu_seconds": 0.0, "note": note}
    scores = clustering_scores(truth, found.labels, ignore=-1)
    return {
        "k_true": k_true,
        "k": found.n_clusters,
        "ari": round(scores["ari"], 4),
        "cpu_seconds": round(time.process_time() - start, 2),
        "note": "",
    }


def tables_of(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Mean ARI and mean error in K, a line a condition and a column a method."""
    frame = pd.DataFrame(rows)
    frame["k_error"] = (frame["k"] - frame["k_true"]).abs()
    tables = {}
    for heading, column, digits in (("Mean ARI", "ari", 3), ("Mean error in K", "k_error", 2)):
        means = frame.pivot_table(index="condition", columns="method", values=column)
        tables[heading] = [
            {"condition": condition}
            | {method: f"{means[method][condition]:.{digits}f}" for method in METHODS}
            for condition in CONDITIONS
        ]
    seconds = frame.groupby("method")["cpu_seconds"].mean()
    failed = frame.groupby("method")["note"].apply(lambda notes: (notes != "").sum())
    tables["Cost"] = [
        {"method": method, "CPU s a table": f"{seconds[method]:.2f}", "failed": int(failed[method])}
        for method in METHODS
    ]
    return tables


def table_code() -> str:
    """Checksum of the code between a table and an estimator: no fit outlives a change of it."""
    package = Path(asterism.__file__).parent
    files = [path for name in ("io", "pipeline") for path in sorted((package / name).glob("*.py"))]
    return sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


def main() -> None:
    asked = network_options(__doc__)
    identity, tables_by = network_identity(asked.weights), table_code()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    seeds = QUICK_SEEDS if asked.quick else SEEDS
    keys = [
        {"condition": condition, "seed": seed, "method": method, "tables": tables_by}
        | (identity if method == OURS else {})
        for condition in CONDITIONS
        for seed in seeds
        for method in METHODS
    ]
    with threadpool_limits(1):
        rows = cached_rows("robustness", keys, partial(run, weights=asked.weights))
    tables = tables_of(rows)
    if asked.quick:
        print(markdown_tables(tables))
        return
    write_results(
        "robustness",
        "Untidy tables",
        f"```text\n{PROTOCOL}\n```",
        tables,
        details=rows,
        seeds=list(seeds),
        network=identity,
    )


if __name__ == "__main__":
    main()
