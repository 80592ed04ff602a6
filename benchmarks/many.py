"""What a thousand small data sets cost: one call of a trained network, or a fit of each.

    python benchmarks/many.py [--weights dac-mog dac-mog-quick …] [--batches 100] [--subset 100]

Data      1000 mixtures of Gaussians in the plane, K ≤ 12, N in 300 … 999 (100 batches of ten, one N
          a batch), as the networks know them but for K, which was 4 at most in training.
Networks  ``fit_many`` of all at once, raw labels: K is found, nothing is tuned. "N read" is the
          same with ``context_size=N, reassign=True``: the network filters a random sample of so
          many rows, and all rows are assigned by the densities of the clusters.
Classical scikit-learn's mixtures, each data set by itself, one start: Gaussian mixtures of every K
          from 1 to 12, the one of the least BIC kept; variational Dirichlet-process mixtures of 20
          components, 200 rounds. With full covariances, the default, and with diagonal ones, the
          form of these data.
CPU s     of the process, one thread, all data sets together; × is how often they go into the
          time of the first classical method. With ``--subset`` the classical methods see the
          first so many data sets only; their time is then extrapolated to all, which is said, and
          their scores are of those.
Memory    of a process that fits one data set of 100,000 rows in one call: resident before, and at
          its largest during the call.
Rate      arithmetic of a training step, forwards and backwards (10 data sets of 1000 points), by
          counted operations and CPU time, next to plain matrix products on the same core: of the
          network's own shape (10,000 × width × width), and of 2048 × 2048.

The time of the training run's own optimiser is left out of the step. Results are kept line by line.
"""

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from functools import cache, partial

import numpy as np
import torch
from amortised import load_network, network_facts, short_name
from common import Row, cached_rows, forget_peak, markdown_tables, resident, write_results
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from threadpoolctl import threadpool_limits
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from asterism.metrics import adjusted_rand_index
from asterism.priors import ClusterMixturePrior
from asterism.training import derive_seed

SEED, BATCH_SIZE, BATCHES = 1909, 10, 100
MAX_CLUSTERS, N_COMPONENTS, N_POINTS = 12, 20, (300, 999)
LARGE = 100_000
CONTEXTS = (120, 150, 300)
STEP_SHAPE, REPEATS = (10, 1000), 5
PROTOCOL = __doc__.split("\n\n", 2)[2].strip()


@cache
def data_sets(n_batches: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Rows and labels of all data sets."""
    prior = ClusterMixturePrior(max_clusters=MAX_CLUSTERS, n_points=N_POINTS)
    drawn = [prior.sample(BATCH_SIZE, generator(index)) for index in range(n_batches)]
    rows = [x.numpy() for batch in drawn for x in batch.x]
    return rows, [y.numpy() for batch in drawn for y in batch.labels]


def generator(index: int) -> torch.Generator:
    return torch.Generator().manual_seed(derive_seed(SEED, BATCHES, index))


# --- classical methods --------------------------------------------------------------------------


def by_bic(X: np.ndarray, covariance: str) -> np.ndarray:
    """Labels by the Gaussian mixture of the least BIC."""
    models = [
        GaussianMixture(k, covariance_type=covariance, random_state=SEED).fit(X)
        for k in range(1, MAX_CLUSTERS + 1)
    ]
    return min(models, key=lambda model: model.bic(X)).predict(X)


def variational(X: np.ndarray, covariance: str) -> np.ndarray:
    """Labels by a variational Dirichlet-process mixture."""
    model = BayesianGaussianMixture(
        n_components=N_COMPONENTS, covariance_type=covariance, max_iter=200, random_state=SEED
    )
    return model.fit_predict(X)


CLASSICAL: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "GaussianMixture, BIC, full": partial(by_bic, covariance="full"),
    "GaussianMixture, BIC, diagonal": partial(by_bic, covariance="diag"),
    "BayesianGaussianMixture, full": partial(variational, covariance="full"),
    "BayesianGaussianMixture, diagonal": partial(variational, covariance="diag"),
}


# --- time ---------------------------------------------------------------------------------------


def time_all(key: Row, files: Mapping[str, str]) -> Row:
    """CPU seconds of a method on the data sets, and how well it did."""
    rows, truth = data_sets(key["n_batches"])
    rows, truth = rows[: key["sets"]], truth[: key["sets"]]
    if key["method"] in CLASSICAL:
        cluster, rows = CLASSICAL[key["method"]], [x.astype(np.float64) for x in rows]
        start = time.process_time()
        labels = [cluster(x) for x in rows]
    else:
        context = key.get("context")
        options = {} if context is None else {"context_size": context, "reassign": True}
        model = load_network(files[key["network"]], **options)
        model.fit_many(rows[:2])  # the first pays for what is loaded once
        start = time.process_time()
        labels = [one.labels_ for one in model.fit_many(rows)]
    seconds = time.process_time() - start
    scores = [adjusted_rand_index(y, found) for y, found in zip(truth, labels, strict=True)]
    errors = [len(np.unique(y)) - len(np.unique(f)) for y, f in zip(truth, labels, strict=True)]
    return {
        "cpu_seconds": round(seconds, 2),
        "ari": round(float(np.mean(scores)), 4),
        "below": round(float(np.mean(np.array(scores) < 0.9)), 4),
        "k_error": round(float(np.mean(np.abs(errors))), 3),
    }


def time_table(weights: list[str], n_batches: int, subset: int | None) -> list[Row]:
    n_sets = n_batches * BATCH_SIZE
    shared = {"seed": SEED, "n_batches": n_batches}
    files = {f"`{short_name(file)}`": file for file in weights}
    networks = [
        {"method": name, "network": name, **network_facts(file)} for name, file in files.items()
    ]
    networks += [
        {**network, "method": f"{network['method']}, {context} read", "context": context}
        for network in networks
        for context in CONTEXTS
    ]
    n_seen = min(subset or n_sets, n_sets)
    keys = [{**shared, **network, "sets": n_sets} for network in networks]
    keys += [{**shared, "method": name, "sets": n_seen} for name in CLASSICAL]
    rows = cached_rows("many", keys, partial(time_all, files=files))
    each = [row["cpu_seconds"] / row["sets"] for row in rows]
    classical = each[len(networks)]
    return [
        {
            "method": row["method"],
            f"CPU s for {n_sets} data sets": f"{n_sets * seconds:.1f}"
            + ("" if row["sets"] == n_sets else f" (from {row['sets']})"),
            "CPU ms each": f"{1000 * seconds:.1f}",
            "×": f"{classical / seconds:.1f}",
            "ARI": f"{row['ari']:.4f}",
            "below 0.9": f"{row['below']:.1%}",
            "K error": f"{row['k_error']:.3f}",
        }
        for row, seconds in zip(rows, each, strict=True)
    ]


# --- memory -------------------------------------------------------------------------------------


def fit_large(weights: str) -> Row:
    """Fit one large data set; resident memory before and at its largest, in GiB."""
    prior = ClusterMixturePrior(max_clusters=MAX_CLUSTERS, n_points=(LARGE, LARGE))
    batch = prior.sample(1, generator(BATCHES))
    model = load_network(weights)
    model.fit(batch.x[0, :500].numpy())  # what is loaded once
    before = resident()
    forget_peak()
    start = time.process_time()
    model.fit(batch.x[0].numpy())
    return {
        "network": f"`{short_name(weights)}`",
        "rows": LARGE,
        "GiB before": f"{before / 1024:.2f}",
        "peak GiB": f"{resident('VmHWM') / 1024:.2f}",
        "CPU s": f"{time.process_time() - start:.1f}",
        "clusters": f"{model.n_clusters_} of {len(batch.labels.unique())}",
        "ARI": f"{adjusted_rand_index(batch.labels[0].numpy(), model.labels_):.4f}",
    }


def memory_table(weights: list[str]) -> list[Row]:
    """Each in a process of its own, whose peak is nobody else's."""
    table = []
    for name in weights:
        command = [sys.executable, __file__, "--weights", name, "--one-call"]
        run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        table.append(json.loads(run.stdout.splitlines()[-1]))
    return table


# --- arithmetic ---------------------------------------------------------------------------------


def fastest(action: Callable[[], object]) -> float:
    """Least CPU seconds of some repeats, after one for warming up."""
    action()
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def rate_row(weights: str) -> Row:
    """GFLOP/s of a training step and of matrix products."""
    sets, points = STEP_SHAPE
    batch = ClusterMixturePrior(n_points=(points, points)).sample(sets, generator(BATCHES + 1))
    model = load_network(weights)
    module, width = model.module_.train(), model.architecture_.get("width", 128)

    def step() -> None:
        module.zero_grad()
        module.loss(batch).backward()

    # Fused attention is not counted everywhere: count plain products, time what really runs.
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        step()
    seconds = fastest(step)
    rate = counter.get_total_flops() / seconds / 1e9
    own = matmul_rate(sets * points, width)
    square = matmul_rate(2048, 2048)
    return {
        "network": f"`{short_name(weights)}`",
        "width": width,
        "parameters": f"{sum(p.numel() for p in module.parameters()):,}",
        "GFLOP a step": f"{counter.get_total_flops() / 1e9:.1f}",
        "CPU s a step": f"{seconds:.3f}",
        "GFLOP/s of the step": f"{rate:.1f}",
        "of products of its shape": f"{own:.1f}",
        "of products 2048 × 2048": f"{square:.1f}",
        "share of the latter": f"{rate / square:.0%}",
    }


def matmul_rate(rows: int, width: int) -> float:
    """GFLOP/s of (rows, width) @ (width, width)."""
    left, right = torch.randn(rows, width), torch.randn(width, width)
    return 2 * rows * width**2 / fastest(lambda: left @ right) / 1e9


# --- command line -------------------------------------------------------------------------------


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--weights", nargs="+", default=["dac-mog", "dac-mog-small", "dac-mog-quick"]
    )
    parser.add_argument("--batches", type=int, default=BATCHES, help="of ten data sets")
    parser.add_argument("--subset", type=int, help="data sets of the classical methods")
    parser.add_argument("--quick", action="store_true", help="print; nothing is written")
    parser.add_argument("--one-call", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    asked = arguments()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    if asked.one_call:
        print(json.dumps(fit_large(asked.weights[0])))
        return
    with threadpool_limits(1):
        n_sets = asked.batches * BATCH_SIZE
        tables = {
            f"{n_sets} data sets": time_table(asked.weights, asked.batches, asked.subset),
            f"One call with {LARGE:,} rows": memory_table(asked.weights),
            "Arithmetic of a training step": [rate_row(name) for name in asked.weights],
        }
    if asked.quick:
        print(markdown_tables(tables))
        return
    write_results(
        "many",
        "Many small data sets",
        f"```text\n{PROTOCOL}\n```",
        tables,
        seed=SEED,
        networks={short_name(file): network_facts(file) for file in asked.weights},
    )


if __name__ == "__main__":
    main()
