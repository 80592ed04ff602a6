"""Time and memory of methods that find K, against the number of rows.

    python benchmarks/scale.py [--quick] [--columns 16]

Data      twenty Gaussian clusters of random place, size and covariance in 16 columns, float32.
Methods   as they come: DeepDPM; DP-means; the variational mixture with at most 50 components;
          HDBSCAN; and k-means, told K, for comparison. Those whose time would run away stop early.
Measured  each fit in a process of its own, one thread: CPU seconds of ``fit``, and by how much the
          largest memory of the process exceeds what it held before the fit, rows included.
Slope     of log seconds against log rows over the last three sizes: 1 is linear.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence

import numpy as np
from common import ROOT, Row, cached_rows, forget_peak, resident, write_results
from deepdpm import code

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
N_CLUSTERS, COLUMNS = 20, 16
MOST = {
    "DeepDPM": SIZES[-1],
    "DP-means": SIZES[-1],
    "variational mixture": 100_000,
    "HDBSCAN": 30_000,
    "k-means, K given": SIZES[-1],
}


def draw(n_rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and classes."""
    chance = np.random.default_rng(0)
    centers = 4 * chance.normal(size=(N_CLUSTERS, columns))
    mixing = chance.normal(size=(N_CLUSTERS, columns, columns)) / np.sqrt(columns)
    share = chance.dirichlet(np.full(N_CLUSTERS, 5.0))
    y = chance.choice(N_CLUSTERS, size=n_rows, p=share)
    X = chance.normal(size=(n_rows, columns)).astype(np.float32)
    for k in range(N_CLUSTERS):
        own = y == k
        X[own] = X[own] @ (mixing[k] + 0.3 * np.eye(columns)).astype(np.float32) + centers[k]
    return X, y


def fit_once(method: str, n_rows: int, columns: int) -> Row:
    """Fit in this process and tell what it took."""
    import warnings

    import torch
    from threadpoolctl import threadpool_limits

    from asterism import HDBSCAN, AutoKMeans, BayesianMixture, DeepDPM, DPMeans
    from asterism.metrics import clustering_scores

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    X, y = draw(n_rows, columns)
    make = {
        "DeepDPM": lambda: DeepDPM(random_state=0),
        "DP-means": lambda: DPMeans(random_state=0),
        "variational mixture": lambda: BayesianMixture(max_clusters=50, random_state=0),
        "HDBSCAN": HDBSCAN,
        "k-means, K given": lambda: AutoKMeans(N_CLUSTERS, random_state=0),
    }[method]
    make().fit(X[:500])  # what is loaded once
    before = resident()
    forget_peak()
    with threadpool_limits(1):
        start = time.process_time()
        labels = make().fit_predict(X)
        seconds = time.process_time() - start
    return {
        "cpu_seconds": round(seconds, 2),
        "grown_mb": round(resident("VmHWM") - before),
        "data_mb": round(X.nbytes / 2**20, 1),
        "k": int(labels.max()) + 1,
        "ari": round(float(clustering_scores(y, labels)["ari"]), 3),
    }


def run(key: Row) -> Row:
    """The same in a process of its own."""
    command = [sys.executable, __file__, "--one", json.dumps(key)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def slope(rows: Sequence[Row]) -> str:
    last = rows[-3:]
    x, t = (np.log([row[name] for row in last]) for name in ("rows", "cpu_seconds"))
    return f"{np.polyfit(x, t, 1)[0]:.2f}"


def draw_plot(rows: Sequence[Row], columns: int) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for method in MOST:
        mine = [row for row in rows if row["method"] == method]
        sizes = [row["rows"] for row in mine]
        axes[0].loglog(sizes, [row["cpu_seconds"] for row in mine], "o-", label=method)
        axes[1].loglog(sizes, [max(row["grown_mb"], 1) for row in mine], "o-")
    sizes = np.array([10_000, SIZES[-1]])
    axes[1].loglog(sizes, sizes * columns * 4 / 2**20, "k--", label="the rows themselves")
    axes[0].set(xlabel="rows", ylabel="CPU seconds", title="time of a fit")
    axes[1].set(xlabel="rows", ylabel="MB", title="memory beyond the rows")
    for ax in axes:
        ax.grid(alpha=0.3)
        ax.legend(frameon=False, fontsize=8)
    figure.savefig(ROOT / "docs" / "images" / "scale.png", dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="up to 3000 rows; nothing is written")
    parser.add_argument("--columns", type=int, default=COLUMNS)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        key = json.loads(asked.one)
        print(json.dumps(fit_once(key["method"], key["rows"], key["columns"])))
        return
    largest = 3_000 if asked.quick else SIZES[-1]
    keys = [
        {"method": method, "rows": n, "columns": asked.columns, **code(method)}
        for method, most in MOST.items()
        for n in SIZES
        if n <= min(most, largest)
    ]
    rows = [run(key) | key for key in keys] if asked.quick else cached_rows("scale", keys, run)
    shown = ("method", "rows", "k", "ari", "cpu_seconds", "grown_mb", "data_mb")
    table = [{name: row[name] for name in shown} for row in rows]
    slopes = [
        {"method": m, "slope of the last three": slope([row for row in rows if row["method"] == m])}
        for m in MOST
    ]
    if asked.quick:
        print(table, slopes)
        return
    draw_plot(rows, asked.columns)
    notes = "```text\n" + __doc__.split("\n\n", 2)[2].strip() + "\n```"
    tables = {"Growth with the rows": slopes, "Fits": table}
    write_results("scale", "Time and memory against the number of rows", notes, tables)


if __name__ == "__main__":
    main()
