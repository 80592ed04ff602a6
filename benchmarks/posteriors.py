"""Whether NCP, CCP and ACP draw from the posterior: calibration, exact answers, orders, cost.

    python benchmarks/posteriors.py [--weights ncp-mog ccp-mog acp-mog] [--batches 100]

Data          fresh draws of the restaurant prior the networks were trained on (CRP(0.7), K ≤ 12,
              centres of deviation 10, unit clusters, median at zero), ten data sets a batch: 100
              batches to calibrate on, a tenth of that for each size of exact answers, half of
              that for each of the other sizes, and two for the largest, which take the longest.
Calibration   N in 50 … 99; 100 partitions drawn of each data set. Pairs: 5000 of each data set.
              ECE over all pairs in ten bins; "ECE, set" within one data set, above zero for exact
              posteriors too; base rate: the share of pairs together of each data set, known in
              hindsight. K: mean log-probability of the true number, half a draw where it was never
              drawn; how often the likeliest number is right, and what was said of it.
Exact         N of 4, 6 and 8, few enough to list all partitions; the posterior is in closed form
              (``exact_posterior.py``) and was checked against sums over a grid. Total variation
              between 2000 draws of the network and the truth; "of exact draws" is that of as many
              draws of the truth, which no sampler beats by much. Pairs and K: mean absolute error
              of co-assignment; total variation of the posterior of K. CCP and ACP were trained on
              larger sets than these.
Size          N of 50, 100, 200 and 500: ARI and K of the labels, CPU seconds of a fit with 100
              draws, one thread. Oracle: labels by the true centres.
Orders        deviation of NCP's log-probability of its partition over four random orders of the
              rows; an exact posterior has none.
Calls         passes of the network in the search of CCP and ACP, 50 threads side by side, against
              the true K; NCP makes N − 1 steps for each order.

Scores are kept batch by batch, so that a run may be broken off and started again.
"""

import argparse
import math
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from amortised import load_network, network_facts, short_name
from calibration import count_table, draw_panels, expand, pair_table
from common import ROOT, Row, cached_rows, markdown_tables, mean_and_error, write_results
from exact_posterior import all_partitions, exact_log_posterior, largest_difference
from threadpoolctl import threadpool_limits

from asterism.functional.oracles import oracle_labels
from asterism.functional.sets import SetBatch
from asterism.metrics import adjusted_rand_index, pair_calibration
from asterism.priors import RestaurantMixturePrior
from asterism.training import derive_seed

SEED, BATCH_SIZE, BATCHES, LARGEST_BATCHES = 2020, 10, 100, 2
CALIBRATION_POINTS, N_BINS, N_PAIRS = (50, 99), 10, 5000
SIZES, EXACT_SIZES, N_DRAWS = (50, 100, 200, 500), (4, 6, 8), 2000
COUNT_GROUPS = ((1, 1), (2, 2), (3, 4), (5, 6), (7, 12))
PROTOCOL = __doc__.split("\n\n", 2)[2].strip()


def draw(n_points: tuple[int, int], batch: int) -> SetBatch:
    """Data sets of a batch; a stream of its own, which no training run draws from."""
    generator = torch.Generator().manual_seed(derive_seed(SEED, *n_points, batch))
    return RestaurantMixturePrior(n_points=n_points).sample(BATCH_SIZE, generator)


@cache
def network(weights: str, **parameters: Any) -> Any:
    return load_network(weights, **parameters)


def fit_batch(weights: str, batch: SetBatch, **parameters: Any) -> tuple[list[Any], float]:
    """Fitted estimators, and CPU seconds a data set."""
    model = network(weights, **parameters)
    start = time.process_time()
    fitted = model.fit_many(batch.x.numpy())
    return fitted, (time.process_time() - start) / len(fitted)


def count(labels: np.ndarray) -> int:
    return len(np.unique(labels))


# --- calibration --------------------------------------------------------------------------------


def judge_calibration(key: Row, weights: str) -> Row:
    batch = draw(CALIBRATION_POINTS, key["batch"])
    fitted, _ = fit_batch(weights, batch)
    pairs = zip(fitted, batch.labels.numpy(), strict=True)
    return {"sets": [calibration_of(model, y) for model, y in pairs]}


def calibration_of(model: Any, y: np.ndarray) -> Row:
    P = np.clip(model.coassignment_, 0, 1)
    found = pair_calibration(y, P, n_bins=N_BINS, max_pairs=N_PAIRS)
    belief, k_true = model.k_posterior_, count(y)
    p_true = float(belief[k_true]) if k_true < len(belief) else 0.0
    return {
        "k_true": k_true,
        "k": model.n_clusters_,
        "ari": adjusted_rand_index(y, model.labels_),
        "p_true": max(p_true, 0.5 / len(model.partitions_)),
        "k_top": int(belief.argmax()),
        "p_top": float(belief.max()),
        "ece": found.expected_calibration_error,
        "brier": found.brier_score,
        "log_loss": -found.log_score,
        "together": float(np.nansum(found.counts * found.observed) / found.counts.sum()),
        "counts": found.counts.tolist(),
        "predicted": np.nan_to_num(found.mean_predicted).tolist(),
        "observed": np.nan_to_num(found.observed).tolist(),
    }


def renamed(table: Sequence[Row]) -> list[Row]:
    return [{"network": row["family"]} | {k: row[k] for k in row if k != "family"} for row in table]


# --- against the exact posterior ----------------------------------------------------------------


def judge_exact(key: Row, weights: str) -> Row:
    n = key["n"]
    batch, labels = draw((n, n), key["batch"]), all_partitions(n)
    fitted, _ = fit_batch(weights, batch, n_samples=N_DRAWS)
    chance = np.random.default_rng(derive_seed(SEED, n, key["batch"]))
    prior = RestaurantMixturePrior(n_points=(n, n))
    place = {row.tobytes(): index for index, row in enumerate(labels)}
    sets = []
    for model, x in zip(fitted, batch.x.double().numpy(), strict=True):
        p = np.exp(exact_log_posterior(x, labels, prior))
        drawn = Counter(place[by_appearance(row).tobytes()] for row in model.partitions_)
        q = np.zeros(len(p))
        q[list(drawn)] = list(drawn.values())
        q /= q.sum()
        floor = chance.multinomial(N_DRAWS, p / p.sum()) / N_DRAWS
        sets.append(
            {
                "tv": total_variation(p, q),
                "floor": total_variation(p, floor),
                "pairs": float(np.abs(together(labels, p) - together(labels, q)).mean()),
                "k": total_variation(counted(labels, p), counted(labels, q)),
            }
        )
    return {"sets": sets}


def by_appearance(labels: np.ndarray) -> np.ndarray:
    """A partition with its clusters numbered by first appearance."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return first.argsort().argsort()[inverse]


def total_variation(p: np.ndarray, q: np.ndarray) -> float:
    return 0.5 * float(np.abs(p - q).sum())


def together(labels: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Probability that each pair i < j shares a cluster."""
    rows, columns = np.triu_indices(labels.shape[1], k=1)
    return p @ (labels[:, rows] == labels[:, columns])


def counted(labels: np.ndarray, p: np.ndarray) -> np.ndarray:
    return np.bincount(labels.max(axis=1), weights=p)


def exact_table(rows: Sequence[Row]) -> list[Row]:
    return [
        {
            "network": name,
            "N": n,
            "data sets": len(sets),
            "total variation": spread(sets, "tv"),
            "of exact draws": spread(sets, "floor"),
            "pairs, mean error": f"{mean(sets, 'pairs'):.4f}",
            "K, total variation": f"{mean(sets, 'k'):.4f}",
        }
        for (name, n), sets in grouped(rows).items()
    ]


def check_closed_form() -> float:
    """Largest difference to sums over a grid, with and without the median at zero."""
    differences = []
    for centred in (True, False):
        prior = RestaurantMixturePrior(n_points=(4, 4), centred=centred)
        batch = prior.sample(2, torch.Generator().manual_seed(SEED))
        differences += [largest_difference(x.double().numpy(), prior) for x in batch.x]
    if max(differences) > 1e-8:
        raise ArithmeticError(f"closed form and sums differ by {max(differences):.1e}")
    return max(differences)


# --- size, orders, calls ------------------------------------------------------------------------


def judge_size(key: Row, weights: str) -> Row:
    batch = draw((key["n"], key["n"]), key["batch"])
    fitted, seconds = fit_batch(weights, batch)
    return {
        "sets": [
            {
                "ari": adjusted_rand_index(y, model.labels_),
                "k": count(model.labels_),
                "k_true": count(y),
                "seconds": seconds,
                "log_q": float(model.log_probability_),
                "deviation": float(getattr(model, "order_deviation_", math.nan)),
                "passes": int(getattr(model, "n_passes_", 0)),
            }
            for model, y in zip(fitted, batch.labels.numpy(), strict=True)
        ]
    }


def oracle_size(n: int, batches: range) -> Row:
    sets = []
    for number in batches:
        batch = draw((n, n), number)
        for y, guess in zip(batch.labels.numpy(), oracle_labels(batch).numpy(), strict=True):
            sets.append({"ari": adjusted_rand_index(y, guess), "k": count(guess)})
            sets[-1] |= {"k_true": count(y), "seconds": math.nan}
    return {"network": "oracle", "n": n, "sets": sets}


def size_table(rows: Sequence[Row]) -> list[Row]:
    return [
        {
            "network": name,
            "N": n,
            "data sets": len(sets),
            "ARI": spread(sets, "ari"),
            "below 0.9": f"{np.mean([one['ari'] < 0.9 for one in sets]):.0%}",
            "K error": f"{np.mean([abs(one['k'] - one['k_true']) for one in sets]):.2f}",
            "exact K": f"{np.mean([one['k'] == one['k_true'] for one in sets]):.0%}",
            "CPU s a fit": "" if name == "oracle" else f"{mean(sets, 'seconds'):.3f}",
        }
        for (name, n), sets in grouped(rows).items()
    ]


def order_table(rows: Sequence[Row]) -> list[Row]:
    return [
        {
            "network": name,
            "N": n,
            "mean log q": f"{mean(sets, 'log_q'):.2f}",
            "deviation over orders, mean": f"{mean(sets, 'deviation'):.3f}",
            "median": f"{np.median([one['deviation'] for one in sets]):.3f}",
            "largest": f"{max(one['deviation'] for one in sets):.2f}",
        }
        for (name, n), sets in grouped(rows).items()
        if not math.isnan(sets[0]["deviation"])
    ]


def call_table(rows: Sequence[Row]) -> list[Row]:
    table = []
    for (name, n), sets in grouped(rows).items():
        if not sets[0]["passes"]:
            continue
        row = {"network": name, "N": n}
        for low, high in COUNT_GROUPS:
            own = [one["passes"] for one in sets if low <= one["k_true"] <= high]
            head = f"K = {low}" if low == high else f"K = {low}-{high}"
            row[head] = f"{np.mean(own):.1f} ({len(own)})" if own else ""
        table.append(row)
    return table


# --- small things -------------------------------------------------------------------------------


def grouped(rows: Sequence[Row]) -> dict[tuple[str, int], list[Row]]:
    """Scores of the data sets of all batches, by network and N."""
    found: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        found.setdefault((row["network"], row["n"]), []).extend(row["sets"])
    return found


def mean(sets: Sequence[Row], name: str) -> float:
    return float(np.mean([one[name] for one in sets]))


def spread(sets: Sequence[Row], name: str) -> str:
    return mean_and_error([one[name] for one in sets])


# --- command line -------------------------------------------------------------------------------


def run_part(part: str, judge: Any, weights: Sequence[str], keys: Sequence[Row]) -> list[Row]:
    """Rows of all networks, one a key."""
    rows = []
    for file in weights:
        facts = {"seed": SEED, "network": short_name(file), **network_facts(file)}
        own = [facts | key for key in keys]
        rows += cached_rows(f"posteriors_{part}", own, partial(judge, weights=file))
    return rows


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", nargs="+", default=["ncp-mog", "ccp-mog", "acp-mog"])
    parser.add_argument("--batches", type=int, default=BATCHES, help="of ten data sets")
    parser.add_argument("--quick", action="store_true", help="print; nothing is written")
    return parser.parse_args()


def main() -> None:
    asked = arguments()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    fewer = range(max(1, asked.batches // 10))
    half = fewer[: max(1, len(fewer) // 2)]
    by_size = {n: half if n < max(SIZES) else half[:LARGEST_BATCHES] for n in SIZES}
    difference = check_closed_form()
    with threadpool_limits(1):
        calibration = run_part(
            "calibration",
            judge_calibration,
            asked.weights,
            [{"batch": b} for b in range(asked.batches)],
        )
        exact = run_part(
            "exact",
            judge_exact,
            asked.weights,
            [{"n": n, "batch": b} for n in EXACT_SIZES for b in fewer],
        )
        sizes = run_part(
            "sizes",
            judge_size,
            asked.weights,
            [{"n": n, "batch": b} for n, batches in by_size.items() for b in batches],
        )
    groups = {
        name: sets for (name, _), sets in grouped([r | {"n": 0} for r in calibration]).items()
    }
    tables = {
        "Calibration of pairs": renamed(pair_table(groups)),
        "Calibration of the number of clusters": renamed(count_table(groups)),
        "Distance to the exact posterior": exact_table(exact),
        "Size": size_table([*sizes, *(oracle_size(n, by_size[n]) for n in SIZES)]),
        "Order of the rows": order_table(sizes),
        "Network calls": call_table(sizes),
    }
    tables = {head: rows for head, rows in tables.items() if rows}
    folder = ROOT / "runs" / "quick" if asked.quick else ROOT / "docs" / "images"
    pairs = {name: expand(sets) for name, sets in groups.items()}
    draw_panels(folder / "posterior_pairs.png", pairs, N_BINS, "together")
    if asked.quick:
        print(markdown_tables(tables))
        return
    write_results(
        "posteriors",
        "Posteriors over partitions",
        f"```text\n{PROTOCOL}\n```",
        tables,
        seed=SEED,
        closed_form_checked_to=f"{difference:.1e}",
        networks={short_name(file): network_facts(file) for file in asked.weights},
    )


if __name__ == "__main__":
    main()
