"""What the benchmarks of the amortised family share: contestants, scores kept by batch, tables.

A contestant clusters data sets as they were drawn: a network with its weights, or a classical
method fitted to each data set by itself. Its scores on a batch are a row of the cache, known again
by benchmark, batch and name; those of a network also by its weights and its code.

    ARI         mean ± standard error; with K = 1 it is one or zero, so those data sets stand apart
    below 0.9   share of data sets whose ARI is: means hide that errors are few and large
    gap         oracle's log-likelihood a point less the method's; negative values are possible,
                since the oracle knows the population's parameters, not the sample's
    CPU s       of the process, one thread, a data set's share of its batch
"""

import ast
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from common import Row, cached_rows

from asterism import ACP, CCP, DAC, NCP, RecurrentMixture
from asterism.functional.oracles import oracle_labels, oracle_log_likelihood
from asterism.functional.sets import SetBatch
from asterism.io import find_weights, read_card
from asterism.metrics import adjusted_rand_index, normalized_mutual_information
from asterism.pipeline import Evaluation, evaluate, summarise

__all__ = [
    "Answer",
    "Contestant",
    "Each",
    "by_count",
    "by_count_table",
    "draw_by_count",
    "judge_batches",
    "load_network",
    "network_facts",
    "oracle_scores",
    "score_row",
    "short_name",
    "without_empty",
]

NETWORKS = {cls.__name__: cls for cls in (ACP, CCP, DAC, NCP, RecurrentMixture)}


# --- contestants --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """Labels of a data set."""

    labels_: np.ndarray


@dataclass(frozen=True)
class Each:
    """A method of one data set, put to many in turn."""

    cluster: Callable[[np.ndarray], Any]

    def fit_many(self, sets: Sequence[np.ndarray]) -> list[Any]:
        """One answer a data set."""
        return [self.cluster(x) for x in sets]


@dataclass(frozen=True)
class Contestant:
    """Whatever has ``fit_many``, its name, and what makes it itself."""

    name: str
    estimator: Any
    density: bool = False
    n_batches: int = 100
    identity: Row = field(default_factory=dict)


def load_network(weights: str, **parameters: Any) -> Any:
    """Estimator of the weights of this name or file, reading data as they are, on one CPU."""
    cls = NETWORKS[read_card(find_weights(weights))["method"]]
    choices = {"scaling": "none", "device": "cpu", "random_state": 0, **parameters}
    return cls.from_pretrained(weights, **choices)


def short_name(weights: str) -> str:
    """Name of weights, or of their file without folder and ending."""
    return Path(weights).name.removesuffix(".safetensors")


def network_facts(weights: str) -> Row:
    """What tells two networks apart: checksums of the weights and of the code that reads them."""
    card = read_card(find_weights(weights))
    start = [NETWORKS[card["method"]].__module__, "asterism.pipeline.evaluation"]
    files = sorted(sources([*start, "asterism.priors.benchmarks"]))
    code = sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
    return {"weights": card["sha256"][:12], "code": code[:12]}


def sources(modules: Sequence[str]) -> set[Path]:
    """Files of these modules of ours and of all that they import, and so on."""
    found: set[Path] = set()
    waiting = list(modules)
    while waiting:
        spec = find_spec(waiting.pop())
        if spec is None or spec.origin is None or Path(spec.origin) in found:
            continue
        found.add(Path(spec.origin))
        for node in ast.walk(ast.parse(Path(spec.origin).read_bytes())):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("asterism."):
                waiting.append(str(node.module))
    return found


# --- scores -------------------------------------------------------------------------------------


def judge_batches(
    cache: str, facts: Row, contestants: Sequence[Contestant], batches: Iterable[SetBatch]
) -> dict[str, list[Evaluation]]:
    """Scores of every contestant on the data sets of its first batches, by name."""
    found: dict[str, list[Evaluation]] = {one.name: [] for one in contestants}
    for number, batch in enumerate(batches):
        here = {one.name: one for one in contestants if number < one.n_batches}
        keys = [
            {**facts, "batch": number, "method": name, **one.identity} for name, one in here.items()
        ]
        for row in cached_rows(cache, keys, partial(judge, contestants=here, batch=batch)):
            found[row["method"]] += [Evaluation(*values) for values in row["sets"]]
    return found


def judge(key: Row, contestants: Mapping[str, Contestant], batch: SetBatch) -> Row:
    one = contestants[key["method"]]
    rows = [asdict(row) for row in evaluate(one.estimator, [batch])]
    for row in rows:
        if not one.density:  # the score of such a method is something else
            row["log_likelihood"] = math.nan
    return {
        "sets": [[round(v, 6) if isinstance(v, float) else v for v in row.values()] for row in rows]
    }


def oracle_scores(batches: Iterable[SetBatch]) -> list[Evaluation]:
    """What one would reach who knew the true components, but not who belongs to which."""
    rows = []
    for batch in batches:
        likelihoods, labels = oracle_log_likelihood(batch).tolist(), oracle_labels(batch).numpy()
        for truth, guess, value in zip(batch.labels.numpy(), labels, likelihoods, strict=True):
            rows.append(
                Evaluation(
                    ari=adjusted_rand_index(truth, guess),
                    nmi=normalized_mutual_information(truth, guess),
                    k=len(np.unique(guess)),
                    k_true=len(np.unique(truth)),
                    n=len(truth),
                    log_likelihood=value,
                    oracle_log_likelihood=value,
                    seconds=math.nan,
                )
            )
    return rows


# --- tables and pictures ------------------------------------------------------------------------


def score_row(name: str, sets: Sequence[Evaluation]) -> Row:
    """One line of the table of results."""
    means = summarise(list(sets))
    ari = np.array([one.ari for one in sets])
    several = np.array([one.k_true > 1 for one in sets])
    return {
        "method": name,
        "data sets": len(sets),
        "log-likelihood": number(means["log-likelihood"], 4),
        "gap": number(means["oracle"] - means["log-likelihood"], 4),
        "ARI": f"{means['ARI']:.4f} ± {ari.std() / math.sqrt(len(ari)):.4f}",
        "median ARI": number(means["median ARI"], 4),
        "below 0.9": f"{means['share below 0.9']:.1%}",
        "ARI, K = 1": number(means["ARI where K = 1"], 3),
        "ARI, K > 1": number(ari[several].mean() if several.any() else math.nan, 4),
        "NMI": number(means["NMI"], 4),
        "K error": number(means["error of K"], 3),
        "exact K": f"{means['exact K']:.1%}",
        "CPU s": number(means["seconds"], 4),
    }


def without_empty(rows: Sequence[Row]) -> list[Row]:
    """The table without columns that say nothing of any method."""
    heads = [head for head in rows[0] if any(row[head] != "" for row in rows)]
    return [{head: row[head] for head in heads} for row in rows]


def number(value: float, digits: int) -> str:
    return "" if math.isnan(value) else f"{value:.{digits}f}"


def by_count(sets: Sequence[Evaluation]) -> dict[int, np.ndarray]:
    """ARI of the data sets of each true number of clusters."""
    counts = sorted({one.k_true for one in sets})
    return {k: np.array([one.ari for one in sets if one.k_true == k]) for k in counts}


def by_count_table(found: Mapping[str, Sequence[Evaluation]]) -> list[Row]:
    """Mean ARI of each method for each true number of clusters."""
    parts = {name: by_count(sets) for name, sets in found.items()}
    counts = sorted({k for part in parts.values() for k in part})
    return [
        {
            "true K": k,
            "data sets": max(len(part.get(k, ())) for part in parts.values()),
            **{
                name: number(np.mean(part[k]), 3) if k in part else ""
                for name, part in parts.items()
            },
        }
        for k in counts
    ]


def draw_by_count(
    path: Path,
    panels: Mapping[str, Mapping[str, Mapping[int, np.ndarray]]],
    seen: int | None = None,
) -> None:
    """Mean ARI and its standard error against the true K, a panel by benchmark, from the ARI of the
    data sets of each K; ``seen`` is the largest K of training.
    """
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    from asterism.plotting.style import cluster_color, cluster_marker

    path.parent.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(
        1, len(panels), figsize=(5.2 * len(panels) + 2.2, 4.2), squeeze=False, sharey=True
    )
    figure.set_layout_engine("constrained")
    for ax, (title, found) in zip(axes[0], panels.items(), strict=True):
        for index, (name, parts) in enumerate(found.items()):
            error = [ari.std() / math.sqrt(len(ari)) for ari in parts.values()]
            ax.errorbar(
                list(parts),
                [ari.mean() for ari in parts.values()],
                yerr=error,
                label=name.replace("`", ""),
                color=cluster_color(index),
                marker=cluster_marker(10 * index),
                markersize=4,
                capsize=2,
                linewidth=1.3,
            )
        ax.set(title=title, xlabel="true number of clusters", ylim=(min(0, ax.get_ylim()[0]), 1.02))
        ax.xaxis.set_major_locator(mpl.ticker.MaxNLocator(integer=True))
        if seen is not None and ax.get_xlim()[1] > seen + 1:
            ax.axvline(seen + 0.5, color="0.6", linestyle=":", linewidth=1)
            ax.text(seen + 0.6, 0.03, "never seen in training", color="0.4", fontsize="small")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0][0].set_ylabel("ARI")
    handles, names = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside right upper", frameon=False, fontsize="small")
    figure.savefig(path, dpi=110)
    plt.close(figure)
