"""Methods that find the number of clusters by themselves, compared on the development suites.

    ASTERISM_DATA=... python benchmarks/suites.py [--methods a,b] [--suites x,y] [--part tuning]

Input      at most 1000 rows a data set, a sample fixed by its name; columns standardised; the same
           rows for every method.
ARI        the largest over the references of a data set, noise points of each reference left out.
K          number found, against the classes of the first reference in the sample, noise left out;
           the same number for all methods, whichever reference a method came closest to.
Limits     120 s of CPU and 8 GiB a fit, in a process of its own; a fit that passes them or fails
           has ARI 0, K 0 and a note.
Batteries  of the clustering suite weigh the same, however many data sets each has.
Parts      by a hash of the name, see ``suite_data.py``: one to make choices on (tuning), one to
           report.

Candidates for K reach up to 30 for every method that tries them; ``Asterism`` believes in up to 40.
``kmeans-true`` is given K and stands beside the ranking. A finished fit is kept, and known again by
its data set, method, seed and the library's version; that of ``Asterism`` also by its weights and
code. So CPU seconds of different methods may be of different days. Tables are written when all
suites and both parts were asked for, and otherwise printed.
"""

import argparse
import resource
import signal
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from inspect import getfile
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from common import Row, cached_rows, markdown_tables, write_results
from sklearn.metrics import calinski_harabasz_score
from suite_data import SUITES, load_suite, part_of, prepared
from suite_tables import per_set, suite_tables
from threadpoolctl import threadpool_limits

import asterism
from asterism import (
    HDBSCAN,
    AutoAgglomerative,
    AutoGaussianMixture,
    AutoKMeans,
    AutoSpectral,
    BayesianMixture,
)
from asterism.io import find_weights, read_card
from asterism.metrics import best_over_references

MAX_CLUSTERS = 30
CPU_SECONDS, MEMORY_BYTES = 120, 8 * 2**30
PROTOCOL = __doc__.split("\n\n", 2)[2].strip()
FORK = get_context("fork")  # a child starts at once, with all that is imported


# --- methods ------------------------------------------------------------------------------------


class Task(NamedTuple):
    """What a method may be told besides the rows; only those called "-true" look at ``k_true``."""

    seed: int
    k_true: int
    weights: str


@dataclass(frozen=True)
class Method:
    """Labels of standardised rows, and whether they depend on the seed."""

    labels: Callable[[np.ndarray, Task], np.ndarray]
    random: bool = True


def network(X: np.ndarray, task: Task) -> np.ndarray:
    from asterism.methods.asterism import Asterism

    model = Asterism(weights=task.weights, device="cpu", random_state=task.seed)
    return model.fit_predict(X)


def searched(cls: type) -> Callable[[np.ndarray, Task], np.ndarray]:
    return lambda X, task: cls(max_clusters=MAX_CLUSTERS, random_state=task.seed).fit_predict(X)


def fixed(n_clusters: int | None) -> Callable[[np.ndarray, Task], np.ndarray]:
    """K-means with this number of clusters; None is the true one."""
    return lambda X, task: AutoKMeans(
        min(n_clusters or task.k_true, len(X)), random_state=task.seed
    ).fit_predict(X)


def calinski_harabasz(X: np.ndarray, task: Task) -> np.ndarray:
    """K-means with the K of the largest ratio of variance between and within clusters."""
    counts = range(2, min(MAX_CLUSTERS, len(X) - 1, len(np.unique(X, axis=0))) + 1)
    tried = [AutoKMeans(k, random_state=task.seed).fit_predict(X) for k in counts]
    return max(tried, key=lambda labels: calinski_harabasz_score(X, labels))


METHODS = {
    "Asterism": Method(network),
    "kmeans-silhouette": Method(searched(AutoKMeans)),
    "kmeans-ch": Method(calinski_harabasz),
    "gmm-bic": Method(searched(AutoGaussianMixture)),
    "bayesian-gmm": Method(searched(BayesianMixture)),
    "hdbscan": Method(lambda X, _: HDBSCAN(noise="fill").fit_predict(X), random=False),
    "spectral-eigengap": Method(searched(AutoSpectral)),
    "ward-silhouette": Method(searched(AutoAgglomerative), random=False),
    "kmeans-2": Method(fixed(2)),
    "kmeans-3": Method(fixed(3)),
    "kmeans-true": Method(fixed(None)),
}


def network_identity(weights: str) -> Row:
    """What tells two networks apart: checksums of the weights and of the code that reads them."""
    from asterism.methods.asterism import Asterism

    name = Asterism._default_weights if weights == "default" else weights
    package = Path(asterism.__file__).parent
    folders = (package / "functional", package / "nn", Path(getfile(Asterism)).parent)
    sources = [path.read_bytes() for folder in folders for path in sorted(folder.glob("*.py"))]
    card = read_card(find_weights(name))
    return {"weights": card["sha256"][:12], "code": sha256(b"".join(sources)).hexdigest()[:12]}


# --- fits ---------------------------------------------------------------------------------------


def fit_in_child(sender: Connection, method: str, X: np.ndarray, task: Task) -> None:
    """Send labels, CPU seconds and a note; labels are None when the fit failed."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    warnings.simplefilter("ignore")
    start, labels, note = time.process_time(), None, ""
    try:
        labels = METHODS[method].labels(X, task)
    except Exception as error:  # whatever it is, the other fits go on
        note = f"{type(error).__name__}: {error}"[:200]
    sender.send((labels, time.process_time() - start, note))


def fit(method: str, X: np.ndarray, task: Task) -> tuple[np.ndarray | None, float, str]:
    """Labels, CPU seconds and a note, from a process that ends by itself at its limits."""
    receiver, sender = FORK.Pipe(duplex=False)
    child = FORK.Process(target=fit_in_child, args=(sender, method, X, task))
    child.start()
    sender.close()
    try:
        answer = receiver.recv()
    except EOFError:
        answer = None
    child.join()
    if answer is not None:
        return answer
    over = child.exitcode == -signal.SIGXCPU
    note = f"over {CPU_SECONDS} s of CPU" if over else f"ended with exit code {child.exitcode}"
    return None, float(CPU_SECONDS), note


def run(key: Row, weights: str) -> Row:
    X, references = prepared(key["suite"], key["set"])
    first = references[0]
    k_true = len(np.unique(first[first >= 0]))
    labels, seconds, note = fit(key["method"], X, Task(key["seed"], k_true, weights))
    scores = None if labels is None else best_over_references(references, labels, ignore=-1)
    return {
        "n": len(X),
        "d": X.shape[1],
        "k_true": k_true,
        "k": 0 if labels is None else len(np.unique(labels)),
        "ari": 0.0 if scores is None else round(scores["ari"], 4),
        "cpu_seconds": round(seconds, 2),
        "note": note,
    }


# --- command line -------------------------------------------------------------------------------


def names_from(known: Sequence[str]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        unknown = sorted(set(text.split(",")) - set(known))
        if unknown:
            raise argparse.ArgumentTypeError(f"{unknown} not among {', '.join(known)}")
        return [name for name in known if name in text.split(",")]

    return parse


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", type=names_from(list(METHODS)), default=list(METHODS))
    parser.add_argument("--suites", type=names_from(list(SUITES)), default=list(SUITES))
    parser.add_argument("--part", choices=["tuning", "reported", "all"], default="all")
    parser.add_argument("--seeds", type=int, default=1, help="of methods with randomness")
    parser.add_argument("--weights", default="default", help="of Asterism: a name or a file")
    return parser.parse_args()


def main() -> None:
    asked = arguments()
    identity = network_identity(asked.weights) if "Asterism" in asked.methods else {}
    keys = [
        {"suite": suite, "set": name, "method": method, "seed": seed, "max_clusters": MAX_CLUSTERS}
        | (identity if method == "Asterism" else {})
        for suite in asked.suites
        for name in load_suite(suite).names
        if asked.part in ("all", part_of(suite, name))
        for method in asked.methods
        for seed in range(asked.seeds if METHODS[method].random else 1)
    ]
    torch.set_num_threads(1)
    with threadpool_limits(1):
        rows = cached_rows("suites", keys, partial(run, weights=asked.weights))
    rows = [row | {"part": part_of(row["suite"], row["set"])} for row in rows]
    tables = suite_tables(rows, asked.part)
    if asked.part != "all" or asked.suites != list(SUITES):
        print(markdown_tables(tables))
        return
    write_results(
        "suites",
        "Clustering without the number of clusters",
        f"```text\n{PROTOCOL}\n```",
        tables,
        details=per_set(rows),
        seeds=list(range(asked.seeds)),
        network=identity or None,
    )


if __name__ == "__main__":
    main()
