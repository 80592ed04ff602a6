"""What the number of clusters that DeepDPM finds depends on, and what it does not.

    ASTERISM_DATA=... python benchmarks/sensitivity.py [--quick]

Data       USPS embedding (10 columns); scikit-learn's digits (64); a3, fifty groups in two columns;
           twenty Gaussians in 16 columns, 5000 rows, drawn. Development sets: on some of them
           defaults were chosen.
Inputs     the rows as they are, times 1000, with columns of unit deviation, with rows of unit
           length (which is for directions: it folds up what lies about the origin); defaults.
Knobs      ``prior_scale``, ``parsimony`` and ``coarsening``, one at a time, the others at their
           defaults, which the grey bars of the picture mark.
Scores     K and NMI, one seed. Labels only score.
"""

import argparse
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from common import ROOT, Row, cached_rows, write_results
from deepdpm import code
from scale import draw
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler, normalize

from asterism import DeepDPM
from asterism.datasets import load_clustering_suite, load_deepdpm_embeddings
from asterism.metrics import clustering_scores

DATA = ("usps", "digits", "a3", "gaussians")
INPUTS = ("as they are", "times 1000", "unit deviation", "unit length")
SCALES = (0.01, 0.1, 1.0, 10.0, 100.0)
PARSIMONIES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5)
COARSENINGS = (500.0, 1000.0, 2000.0, 4000.0, None)
KNOBS: dict[str, tuple[tuple[float | None, ...], float]] = {  # values, and the default
    "prior_scale": (SCALES, 1.0),
    "parsimony": (PARSIMONIES, 0.2),
    "coarsening": (COARSENINGS, 4000.0),
}


@cache
def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and classes."""
    if name == "gaussians":
        return draw(5_000, 16)
    if name == "digits":
        return load_digits(return_X_y=True)
    if name == "usps":
        bunch = load_deepdpm_embeddings(embedding="usps")
    else:
        bunch = load_clustering_suite()["sipu/a3"]
    return bunch.X, bunch.y


def changed(X: np.ndarray, how: str) -> np.ndarray:
    """Rows in other units."""
    return {
        "as they are": lambda: X,
        "times 1000": lambda: 1000 * X,
        "unit deviation": lambda: StandardScaler().fit_transform(X),
        "unit length": lambda: normalize(X),
    }[how]()


def run(key: Row) -> Row:
    X, y = data(key["data"])
    settings: dict[str, Any] = {"random_state": 0}
    if key["what"] == "input":
        X = changed(X, key["value"])
    else:
        settings[key["what"]] = key["value"]
    labels = DeepDPM(**settings).fit_predict(X)
    return {"k": int(labels.max()) + 1, "nmi": round(clustering_scores(y, labels)["nmi"], 3)}


def table(rows: Sequence[Row], what: str) -> list[Row]:
    """A line a data set, a column a value: K and NMI."""
    lines = []
    for name in dict.fromkeys(row["data"] for row in rows):
        line: Row = {"data": name, "classes": len(np.unique(data(name)[1]))}
        for row in rows:
            if (row["data"], row["what"]) == (name, what):
                value = row["value"]
                head = f"{value:g}" if isinstance(value, float) else str(value)
                line[head] = f"{row['k']} ({row['nmi']:.3f})"
        lines.append(line)
    return lines


def draw_plot(rows: Sequence[Row]) -> None:
    import matplotlib.pyplot as plt

    from asterism.plotting.style import cluster_color, cluster_marker

    figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), sharey=True, layout="constrained")
    for ax, (what, (values, default)) in zip(axes, KNOBS.items(), strict=True):
        for number, name in enumerate(DATA):
            mine = [row for row in rows if (row["data"], row["what"]) == (name, what)]
            look = {"color": cluster_color(number), "marker": cluster_marker(10 * number)}
            ax.plot(range(len(values)), [row["k"] for row in mine], label=name, **look)
            ax.axhline(len(np.unique(data(name)[1])), color=look["color"], linestyle=":", alpha=0.6)
        names = ["none" if value is None else f"{value:g}" for value in values]
        ax.set(xticks=range(len(values)), xticklabels=names, xlabel=what, yscale="log")
        ax.axvline(values.index(default), color="0.85", zorder=0, linewidth=8)
        ax.grid(alpha=0.3)
    ticks = (1, 2, 5, 10, 20, 50, 100)
    axes[0].set(ylabel="clusters found", yticks=ticks, yticklabels=ticks)
    axes[-1].legend(frameon=False, fontsize=8, loc="lower right")
    figure.savefig(ROOT / "docs" / "images" / "deepdpm_sensitivity.png", dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="digits, inputs; nothing is written")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    grid: dict[str, tuple[Any, ...]] = {"input": INPUTS}
    if not asked.quick:
        grid |= {what: values for what, (values, _) in KNOBS.items()}
    keys = [
        {"data": name, "what": what, "value": value, **code("DeepDPM")}
        for what, values in grid.items()
        for name in (("digits",) if asked.quick else DATA)
        for value in values
    ]
    if asked.quick:
        print(table([run(key) | key for key in keys], "input"))
        return
    rows = cached_rows("sensitivity", keys, run)
    draw_plot(rows)
    tables = {
        "K (NMI) in other units": table(rows, "input"),
        **{f"K (NMI) by {what}": table(rows, what) for what in KNOBS},
    }
    notes = "```text\n" + __doc__.split("\n\n", 2)[2].strip() + "\n```"
    write_results("sensitivity", "What the number of clusters of DeepDPM depends on", notes, tables)


if __name__ == "__main__":
    main()
