"""DeepDPM end to end beside the same in two steps, on images and texts, K unknown.

    ASTERISM_DATA=... python benchmarks/end_to_end.py [--quick] [--seeds 5]

Data       the 10,000 test digits of MNIST; USPS, all 9298 digits; the four largest topics of
           Reuters-21578, 6387 documents as tf-idf of 2000 terms.
Two steps  the autoencoder is trained, then its codes are clustered by DeepDPM: what the end-to-end
           fit begins with, so that both share autoencoder and seed. On the same codes the
           variational mixture of at most 50 components, HDBSCAN, and k-means told K.
Turns      "end to end" is the default, one turn of feature learning; on USPS, where that number was
           chosen, scores after each of up to three.
Settings   one for all data sets, the defaults. The weight of the clustering loss (0.03, 0.1, 0.3
           and 1 were tried, one seed) and the number of turns (five seeds) were chosen on USPS with
           its labels: a development set.
Scores     ACC by matching, NMI, ARI; labels only score, but for k-means, told K. CPU seconds of a
           fit, one thread, with other work on both cores; of three turns on USPS.
Mind       ``measured_with`` is the code that rows were measured with, before what changes none of
           them.
"""

import argparse
import time
import warnings
from functools import cache
from typing import Any

import numpy as np
import torch
from common import Row, cached_rows, write_results
from deepdpm import SCORES, code, spread

from asterism import HDBSCAN, AEDeepDPM, AutoKMeans, BayesianMixture
from asterism.datasets import load_mnist, load_reuters, load_usps
from asterism.metrics import clustering_scores

DATA = ("usps", "mnist-10k", "reuters-4")
CODE = code("DeepDPM end to end")
END, TWO = "DeepDPM, end to end", "DeepDPM, two steps"
DEFAULT = 1  # turns of feature learning that a fit makes
TURNS = {"usps": 3}  # more, that are looked at here


class Recorded(AEDeepDPM):
    """Keeps the codes that the autoencoder begins with."""

    def _cluster(self, codes: np.ndarray, seed: int, start: np.ndarray | None) -> np.ndarray:
        if start is None:
            self.first_codes = codes.copy()
        return super()._cluster(codes, seed, start)


@cache
def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and classes."""
    if name == "mnist-10k":
        bunch = load_mnist()
        return bunch.X[-10_000:], bunch.y[-10_000:]
    if name == "reuters-4":
        bunch = load_reuters(n_classes=4)
        return bunch.X, bunch.y
    bunch = load_usps()
    return bunch.X, bunch.y


def run(key: Row) -> Row:
    X, y = data(key["data"])
    start = time.process_time()
    turns = TURNS.get(key["data"], DEFAULT)
    model = Recorded(n_alternations=turns, random_state=key["seed"]).fit(X)
    seconds = time.process_time() - start
    codes, n_classes = model.first_codes, len(np.unique(y))
    others: dict[str, Any] = {
        "variational mixture on the codes": BayesianMixture(max_clusters=50),
        "HDBSCAN on the codes": HDBSCAN(),
        "k-means on the codes, K given": AutoKMeans(n_classes),
    }
    answers = {TWO: model.labels_path_[0], END: model.labels_path_[DEFAULT]}
    for name, other in others.items():
        if "random_state" in other.get_params():
            other.set_params(random_state=key["seed"])
        answers[name] = other.fit_predict(codes)
    return {
        "answers": {name: judge(y, labels) for name, labels in answers.items()},
        "turns": [judge(y, labels) for labels in model.labels_path_],
        "pretraining_steps": max(r["step"] for r in model.history_ if r["turn"] == 0),
        "cpu_seconds": round(seconds),
    }


def judge(y: np.ndarray, labels: np.ndarray) -> Row:
    scores = clustering_scores(y, labels)
    found = {name: round(float(scores[name]), 4) for name in SCORES}
    return {"k": len(np.unique(labels[labels >= 0])), **found}


def averages(answers: list[Row]) -> Row:
    """Mean and spread over seeds."""
    return {
        "K": spread([one["k"] for one in answers], 1),
        **{name.upper(): spread([one[name] for one in answers], 3) for name in SCORES},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="USPS, one seed; nothing is written")
    parser.add_argument("--seeds", type=int, default=5)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    names, seeds = (("usps",), 1) if asked.quick else (DATA, asked.seeds)
    keys = [{"data": name, "seed": seed, **CODE} for seed in range(seeds) for name in names]
    rows = [run(key) | key for key in keys] if asked.quick else cached_rows("end_to_end", keys, run)
    tables: dict[str, list[Row]] = {}
    for name in names:
        mine = [row for row in rows if row["data"] == name]
        X, y = data(name)
        head = f"{name}: {len(X):,} rows, {X.shape[1]} columns, {len(np.unique(y))} classes"
        tables[head] = [
            {"method": method, **averages([row["answers"][method] for row in mine])}
            for method in mine[0]["answers"]
        ]
        if name in TURNS:
            tables[f"{name}: after each turn of features"] = [
                {"turns": turn, **averages([row["turns"][turn] for row in mine])}
                for turn in range(TURNS[name] + 1)
            ]
    if asked.quick:
        print(tables)
        return
    notes = "```text\n" + __doc__.split("\n\n", 2)[2].strip() + "\n```"
    cost = {
        name: round(float(np.mean([row["cpu_seconds"] for row in rows if row["data"] == name])))
        for name in names
    }
    write_results(
        "end_to_end",
        "DeepDPM end to end",
        notes,
        tables,
        details=rows,
        seeds=seeds,
        cpu_seconds=cost,
    )


if __name__ == "__main__":
    main()
