"""Deep amortised clustering on its benchmarks, beside the recurrent network and classical methods.

    python benchmarks/filtering.py [--weights dac-mog dac-mog-anchored recurrent-mog]
    python benchmarks/filtering.py --prior warped [--weights dac-warped] [--baseline-batches 20]
    python benchmarks/filtering.py --weights dac-mog --variants views --baseline-batches 0 --keep

Benchmarks  ``filtering`` asks for as many clusters as the networks were trained on (K ≤ 4) and up
            to 999 points, ``clustering`` for more of both (K ≤ 12, N < 3000); 100 batches of ten
            data sets each, drawn from a name and a seed, given to all methods as they are. The
            shipped networks were trained on 50 to 400 points.
DAC         raw: labels of the passes alone. "two looks": the same, but what a pass has claimed is
            read once more by itself (``looks=2``). "eight views": two looks, and filtered eight
            times with axes reflected and exchanged (``views=8``); "sixteen views": the same, and
            then again with other anchors, where the network has them. Which answer is believed was
            settled on draws of another seed. "reassigned": all points by the clusters' densities
            once the passes are over. "+ EM": five rounds of EM from the clusters found, K kept.
ACT         the recurrent Set Transformer that writes clusters down until it stops.
Classical   Gaussian mixtures, K of 1 … 12 by BIC, and variational mixtures of 20 components (200
            rounds), both with full and with diagonal covariances, which is the form of the MoG
            data; k-means, K of 2 … 12 by the silhouette; HDBSCAN with noise given to the nearest
            cluster. One start each. The score of a variational mixture is not the likelihood of
            any density, and is left out.
Oracle      true components, shares of the true labels; the ceiling of ARI and NMI. The warped data
            have no likelihood in closed form, hence none.
Published   the authors' own test log of DAC with the min loss on ``clustering``; its time is wall
            time on one GPU.

    columns     ARI mean ± standard error; below 0.9: share of data sets whose ARI is; gap: oracle's
                log-likelihood a point less the method's; CPU s a data set, one thread

Where classical methods were given fewer batches, their number of data sets says so, and a second
table has all methods on those alone. Scores are kept batch by batch, so that a run may be broken
off and started again. With ``--keep`` methods that are not asked for stay as the report has them,
in the picture, if it changes, without error bars. The report then says of which run they are; CPU
seconds of different runs do not compare.
"""

import argparse
import json
import warnings
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from amortised import (
    Answer,
    Contestant,
    Each,
    by_count,
    by_count_table,
    draw_by_count,
    judge_batches,
    load_network,
    network_facts,
    oracle_scores,
    score_row,
    short_name,
    without_empty,
)
from common import RESULTS, ROOT, Row, markdown_tables, write_results
from many import MAX_CLUSTERS, N_COMPONENTS, by_bic, variational
from threadpoolctl import threadpool_limits

from asterism import HDBSCAN, AutoGaussianMixture, AutoKMeans, BayesianMixture
from asterism.pipeline import Evaluation
from asterism.priors import benchmark_batches

SEED, BATCHES = 0, 100
BENCHMARKS = ("clustering", "filtering")
BIC = "Gaussian mixture, BIC"  # the one classical method with a likelihood to compare
SEEN = 4
DEFAULTS = {"mog": ["dac-mog", "dac-mog-anchored", "recurrent-mog"], "warped": ["dac-warped"]}
HIDDEN = (  # in the picture
    ", two looks",
    ", eight views",
    ", sixteen views",
    ", reassigned",
    " + EM",
    ", diagonal",
)
BY_COUNT = ": mean ARI by the true number of clusters"
TITLES = {"mog": "mixtures of Gaussians", "warped": "warped clusters"}
VARIANTS = {
    "raw": ("", {}),
    "looks": (", two looks", {"looks": 2}),
    "views": (", eight views", {"looks": 2, "views": 8}),
    "sixteen": (", sixteen views", {"looks": 2, "views": 16}),
    "reassigned": (", reassigned", {"reassign": True}),
    "em": (" + EM", {"refine": "em"}),
}
PUBLISHED = {
    "method": "DAC min, published",
    "data sets": 1000,
    "log-likelihood": "-1.5460",
    "gap": "0.0215",
    "ARI": "0.9707",
    "NMI": "0.9745",
    "K error": "0.234",
    "CPU s": "0.0132 (GPU)",
}
PROTOCOL = __doc__.split("\n\n", 2)[2].strip()

Found = Mapping[str, Sequence[Evaluation]]


# --- contestants --------------------------------------------------------------------------------


def networks(weights: str, n_batches: int, variants: Sequence[str]) -> list[Contestant]:
    """Contestants made of one weights file, refinements apart."""
    plain = load_network(weights)
    shape = plain.architecture_
    name, possible = "ACT", {"raw"}
    density = shape.get("density", "gaussian")
    if type(plain).__name__ == "DAC":
        name = f"DAC {shape.get('loss', 'min')}"
        possible |= {"looks", "views"} | ({"reassigned"} if density != "none" else set())
        possible |= {"em"} if density == "gaussian" else set()
        possible |= {"sixteen"} if shape.get("loss") == "anchored" else set()
    settings = dict(VARIANTS[key] for key in variants if key in possible)
    name += f" `{short_name(weights)}`"
    return [
        Contestant(
            name + ending,
            load_network(weights, **chosen) if chosen else plain,
            density != "none",
            n_batches,
            network_facts(weights),
        )
        for ending, chosen in settings.items()
    ]


def classical(n_batches: int) -> list[Contestant]:
    made = {
        BIC: lambda X: AutoGaussianMixture(max_clusters=MAX_CLUSTERS, random_state=SEED).fit(X),
        f"{BIC}, diagonal": lambda X: Answer(by_bic(X.astype(np.float64), "diag")),
        "variational mixture": lambda X: BayesianMixture(
            max_clusters=N_COMPONENTS, random_state=SEED
        ).fit(X),
        "variational mixture, diagonal": lambda X: Answer(
            variational(X.astype(np.float64), "diag")
        ),
        "k-means, silhouette": lambda X: AutoKMeans(
            max_clusters=MAX_CLUSTERS, random_state=SEED
        ).fit(X),
        "HDBSCAN": lambda X: HDBSCAN(noise="fill").fit(X),
    }
    return [
        Contestant(name, Each(cluster), name == BIC, n_batches) for name, cluster in made.items()
    ]


# --- tables -------------------------------------------------------------------------------------


def tables(benchmark: str, prior: str, found: Found) -> dict[str, list[Row]]:
    rows = [score_row(name, sets) for name, sets in found.items()]
    if (benchmark, prior) == ("clustering", "mog"):
        rows.append({head: PUBLISHED.get(head, "") for head in rows[0]})
    made = {f"{benchmark}, {prior}": without_empty(rows)}
    fewest = min(map(len, found.values()))
    if fewest < max(map(len, found.values())):
        rows = [score_row(name, sets[:fewest]) for name, sets in found.items()]
        made[f"{benchmark}, {prior}: the first {fewest} data sets"] = without_empty(rows)
    made[f"{benchmark}, {prior}{BY_COUNT}"] = by_count_table(found)
    return made


def updated(before: Sequence[Row], after: Sequence[Row]) -> list[Row]:
    """A table of the last report with what was measured since: rows by method, or columns by K."""
    key = next(iter(after[0]))
    new = {row[key]: row for row in after}
    if key != "method":
        heads = in_order(list(before[0]), list(after[0]))
        return [{head: (row | new[row[key]])[head] for head in heads} for row in before]
    old = {row[key]: row for row in before}
    return [(old | new)[name] for name in in_order(list(old), list(new))]


def in_order(known: Sequence[str], new: Sequence[str]) -> list[str]:
    """All names, the new ones behind those of the same weights."""
    order = list(known)
    for name in new:
        if name not in order:
            weights = name.split("`")[1] if "`" in name else name
            alike = [i for i, other in enumerate(order) if f"`{weights}`" in other]
            order.insert(alike[-1] + 1 if alike else 0, name)
    return order


def drawn_lines(table: Sequence[Row], found: Found) -> dict[str, dict[int, np.ndarray]]:
    """The methods that the picture shows: refined networks and second variants would hide them.

    ARI of the data sets of each K; of methods that were not run, their mean in the table.
    """
    names = [head for head in table[0] if not head.endswith((*HIDDEN, "true K", "data sets"))]
    means = {
        name: {row["true K"]: np.array([float(row[name])]) for row in table if row[name]}
        for name in names
    }
    return means | {name: by_count(sets) for name, sets in found.items() if name in means}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", nargs="+", help="names or files, of DAC and the recurrent one")
    parser.add_argument("--prior", choices=list(DEFAULTS), default="mog")
    parser.add_argument("--variants", nargs="+", choices=list(VARIANTS), default=list(VARIANTS))
    parser.add_argument("--benchmarks", nargs="+", choices=BENCHMARKS, default=BENCHMARKS)
    parser.add_argument("--batches", type=int, default=BATCHES, help="of ten data sets")
    parser.add_argument("--baseline-batches", type=int, help="of the classical methods; 0: none")
    parser.add_argument("--keep", action="store_true", help="other rows stay as they were reported")
    parser.add_argument("--quick", action="store_true", help="print; nothing is written")
    asked = parser.parse_args()
    if asked.keep and (asked.batches != BATCHES or set(asked.benchmarks) != set(BENCHMARKS)):
        parser.error(
            "--keep puts rows beside those of whole benchmarks: leave --batches and "
            "--benchmarks out"
        )
    return asked


def main() -> None:
    asked = arguments()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    weights = asked.weights or DEFAULTS[asked.prior]
    few = asked.batches if asked.baseline_batches is None else asked.baseline_batches
    contestants = [one for file in weights for one in networks(file, asked.batches, asked.variants)]
    contestants += classical(min(few, asked.batches)) if few else []
    name = "filtering" if asked.prior == "mog" else f"filtering_{asked.prior}"
    before = json.loads((RESULTS / f"{name}.json").read_text()) if asked.keep else {}
    made, panels = {}, {}
    for benchmark in asked.benchmarks:
        facts = {"benchmark": benchmark, "prior": asked.prior, "seed": SEED}
        choice = {"seed": SEED, "n_batches": asked.batches}
        with threadpool_limits(1):
            found = judge_batches(
                "filtering", facts, contestants, benchmark_batches(benchmark, asked.prior, **choice)
            )
        if asked.prior == "mog":
            found["oracle"] = oracle_scores(benchmark_batches(benchmark, asked.prior, **choice))
        measured = tables(benchmark, asked.prior, found)
        for title, rows in measured.items():
            made[title] = updated(before["tables"][title], rows) if before else rows
        table = made[f"{benchmark}, {asked.prior}{BY_COUNT}"]
        panels[f"{benchmark}, {TITLES[asked.prior]}"] = drawn_lines(table, found)
    folder = ROOT / "runs" / "quick" if asked.quick else ROOT / "docs" / "images"
    if any(not one.name.endswith(HIDDEN) for one in contestants):
        draw_by_count(folder / f"{name}.png", panels, SEEN)
    if asked.quick:
        print(markdown_tables(made))
        return
    write_results(
        name,
        f"Deep amortised clustering of {TITLES[asked.prior]}",
        f"```text\n{PROTOCOL}\n```",
        made,
        seed=SEED,
        networks=before.get("networks")
        or {short_name(file): network_facts(file) for file in weights},
        **(
            {
                "measured since": {
                    **before.get("measured since", {}),
                    **{one.name: one.identity for one in contestants},
                },
                "kept": [*before.get("kept", []), f"{before['date']}: {before['command']}"],
            }
            if before
            else {}
        ),
    )


if __name__ == "__main__":
    main()
