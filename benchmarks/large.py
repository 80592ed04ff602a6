"""What large tables cost: the command line on a million rows, and how time grows with rows.

    python benchmarks/large.py                 all of it; some minutes on two idle cores
    python benchmarks/large.py --rows 100000   the same on a smaller file

The table has 20 Gaussian clusters in 30 columns and 20 columns of noise, in Parquet. Asked are
wall, CPU and memory of ``asterism cluster`` on the file, in a process of its own; the time of
``fit`` in memory against the number of rows; that on 1000 rows of 10 columns beside k-means with K
by the silhouette over 2 to 15, in turns, as wall time of all threads and as CPU time of one, the
network already loaded; and the time to load it.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import Row, write_results
from threadpoolctl import threadpool_limits

N_CLUSTERS, N_SIGNAL, N_NOISE = 20, 30, 20
PART = 100_000
SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
REPEATS = 5


def parts(n_rows: int, seed: int = 0) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows and classes of the table, some at a time."""
    chance = np.random.default_rng(seed)
    centers = 3 * chance.normal(size=(N_CLUSTERS, N_SIGNAL))
    for start in range(0, n_rows, PART):
        n = min(PART, n_rows - start)
        y = chance.integers(N_CLUSTERS, size=n)
        signal = centers[y] + chance.normal(size=(n, N_SIGNAL))
        yield np.hstack([signal, chance.normal(size=(n, N_NOISE))]), y


def make_file(path: Path, n_rows: int) -> None:
    """Write the table, its classes in the column ``class``."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"x{j}" for j in range(N_SIGNAL + N_NOISE)]
    schema = pa.schema([*((name, pa.float64()) for name in names), ("class", pa.int64())])
    with pq.ParquetWriter(path, schema) as writer:
        for X, y in parts(n_rows):
            writer.write_table(pa.table([*X.T.copy(), y], schema=schema))


def run_command(n_rows: int) -> Row:
    """Wall, CPU and largest memory of the command line on the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.parquet"
        make_file(path, n_rows)
        command = [sys.executable, "-m", "asterism", "cluster", path.name]
        command += ["--label", "class", "--json"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.perf_counter()
        run = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
        wall = time.perf_counter() - start
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        facts = json.loads(run.stdout)
        cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
        return {
            "rows": n_rows,
            "columns": N_SIGNAL + N_NOISE,
            "file MB": round(path.stat().st_size / 1e6),
            "wall s": f"{wall:.1f}",
            "CPU s": f"{cpu:.1f}",
            "peak RSS GiB": f"{used.ru_maxrss / 2**20:.2f}",  # Linux counts KiB
            "rows in the sample": facts["n_sample"],
            "clusters": facts["n_clusters"],
            "ARI": f"{facts['scores']['ari']:.3f}",
        }


def time_fits(sizes: list[int]) -> list[Row]:
    """Time of ``fit`` in memory against the number of rows."""
    from sklearn.metrics import adjusted_rand_score

    from asterism import Asterism

    drawn = list(parts(max(sizes)))
    X = np.concatenate([x for x, _ in drawn]).astype(np.float32)
    y = np.concatenate([labels for _, labels in drawn])
    Asterism(random_state=0).fit(X[:1000])  # the first pays for what is loaded once
    rows = []
    for n in sizes:
        start = time.perf_counter()
        estimator = Asterism(random_state=0).fit(X[:n])
        seconds = time.perf_counter() - start
        rows.append(
            {
                "rows": n,
                "fit s": f"{seconds:.2f}",
                "µs a row": f"{1e6 * seconds / n:.1f}",
                "clusters": estimator.n_clusters_,
                "ARI": f"{adjusted_rand_score(y[:n], estimator.labels_):.3f}",
            }
        )
    return rows


def time_small() -> list[Row]:
    """Time of ``fit`` on 1000 rows of 10 columns, beside k-means over K = 2 to 15."""
    from sklearn.datasets import make_blobs

    from asterism import Asterism, AutoKMeans

    X, _ = make_blobs(1000, n_features=10, centers=5, random_state=0)
    methods = {
        "`Asterism()`, clear clusters": Asterism(random_state=0),
        "`Asterism(views='all')`, as where there is doubt": Asterism(views="all", random_state=0),
        "`AutoKMeans(max_clusters=15)`": AutoKMeans(max_clusters=15, random_state=0),
    }
    threads = torch.get_num_threads()
    wall = medians(methods, X, time.perf_counter)
    torch.set_num_threads(1)
    with threadpool_limits(1):
        cpu = medians(methods, X, time.process_time)
    torch.set_num_threads(threads)
    *_, reference = methods
    return [
        {
            "estimator": name,
            f"wall s, {threads} threads": f"{wall[name]:.3f}",
            "ratio": f"{wall[name] / wall[reference]:.2f}",
            "CPU s, one thread": f"{cpu[name]:.3f}",
            "its ratio": f"{cpu[name] / cpu[reference]:.2f}",
        }
        for name in methods
    ]


def medians(methods: dict[str, Any], X: np.ndarray, clock: Callable[[], float]) -> dict[str, float]:
    """Median time of a fit by each estimator, in turns; the first, which loads, is left out."""
    times: dict[str, list[float]] = {name: [] for name in methods}
    for repeat in range(REPEATS + 1):
        for name, estimator in methods.items():
            start = clock()
            estimator.fit(X)
            if repeat:
                times[name].append(clock() - start)
    return {name: statistics.median(each) for name, each in times.items()}


def time_loading() -> list[Row]:
    """Time to have the network ready, torch already imported, in processes of their own."""
    code = (
        "import time, torch; start = time.perf_counter();"
        "from asterism import Asterism; ready = time.perf_counter();"
        "Asterism.from_pretrained('default'); end = time.perf_counter();"
        "print(ready - start, end - ready)"
    )
    runs = []
    for _ in range(REPEATS):
        run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        runs.append([float(number) for number in run.stdout.split()])
    imported, loaded = (statistics.median(column) for column in zip(*runs, strict=True))
    return [
        {"step": "`from asterism import Asterism`, after torch", "median s": f"{imported:.3f}"},
        {"step": "`Asterism.from_pretrained('default')`", "median s": f"{loaded:.3f}"},
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the file")
    n_rows = parser.parse_args().rows
    tables = {
        "asterism cluster on a Parquet file": [run_command(n_rows)],
        "fit in memory": time_fits([n for n in SIZES if n <= n_rows]),
        "fit of 1000 rows by 10 columns": time_small(),
        "loading": time_loading(),
    }
    write_results(
        "large" if n_rows == SIZES[-1] else f"large-{n_rows}",
        "Large tables",
        "Twenty Gaussian clusters in 30 columns, and 20 columns of noise. The command runs in a "
        "process of its own; its time and memory are those of the whole process, start-up, reading "
        f"and writing included. {REPEATS} runs each of the small ones.",
        tables,
        cores=os.cpu_count(),
    )


if __name__ == "__main__":
    main()
