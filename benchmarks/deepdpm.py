"""DeepDPM on the embeddings published with it, next to what finds or is given K.

    ASTERISM_DATA=... python benchmarks/deepdpm.py [--quick] [--seeds 5] [--data a,b]

Data       UMAP embeddings of MNIST, Fashion-MNIST and USPS (10 columns), as published; imbalanced
           variants keep a share of some classes, that of USPS by the authors' rule from the
           balanced file; MoCo features of ImageNet-50's test images (128 columns, 50 classes of
           50 rows).
Settings   one for all data sets, the defaults; variational mixture with at most 50 components, and
           with at most 100.
           ``parsimony`` (0 to 0.4), ``coarsening`` (500 to none), that evidence gains are taken as
           a ratio of variances, and six tenths of the rows for a single cluster were chosen with
           labels on 44 development sets: UMAP and principal components of images, sounds and texts
           of other sets, sentence and face embeddings made for it, points in the plane, synthetic
           mixtures and single clouds; and on USPS and its imbalanced variant, which are therefore
           development sets. ``n_components`` (8 to 64) and how the covariance is pooled were chosen
           on the like. The other sets were looked at before, with former defaults, and on the way.
           How directions are treated (one length along the axes, widths of their own, ten axes)
           concerns ImageNet-50 alone of these. Each part was tried on it, with its labels, beside
           four sets of embeddings made for it, held-out Omniglot characters, glosses of WordNet,
           words alone, and documentation of Python modules, on the average of which each gains in
           NMI. So its row, and the mean over all sets with it, is less of a test than the rest.
           moVB and the sampler have the prior of ``DeepDPM(prior="data")``, without coarsening.
Scores     ACC by matching, NMI, ARI; K as found and K of clusters above 1 % of the rows. Labels
           only score, but for the methods that are told K.
Starts     K and NMI of DeepDPM from 1 to 50 clusters at the beginning.
Mind       the variational mixture has fifty components at most, which happens to be the number of
           classes of ImageNet-50: there its K says little, and one of at most a hundred stands
           beside it, one seed. It is the one wide set, and has means of its own where it is left
           out. Means of NMI differ less between DeepDPM and the variational mixture than by one
           set more or less. CPU seconds were taken with other work on both cores; those of the
           methods other than DeepDPM on other days, of ImageNet-50 on a slower machine (2.5 GHz
           Xeon), the rest on an EPYC. ``measured_with`` is the code that rows were measured with,
           before what changes none of them.
"""

import argparse
import time
import warnings
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np
import torch
from common import Row, cached_rows, write_results
from sklearn.base import clone

import asterism
from asterism import (
    HDBSCAN,
    AutoGaussianMixture,
    AutoKMeans,
    BayesianMixture,
    DeepDPM,
    DPMeans,
    DPSampler,
    MoVB,
)
from asterism.base import Clusterer
from asterism.datasets import load_deepdpm_embeddings
from asterism.metrics import clustering_scores

DATA = ("mnist", "mnist_imb", "fashion", "fashion_imb", "usps", "usps_imb", "imagenet50")
NAMES = {"fashion": "fashion_mnist", "imagenet50": "imagenet50_test"}
KEPT = {8: 0.1, 2: 0.05, 5: 0.2, 9: 0.3}  # of the classes of the imbalanced USPS
STARTS = (1, 3, 10, 30, 50)
SCORES = ("acc", "nmi", "ari")
ONCE = {  # two without chance, one for its time
    "HDBSCAN",
    "DP-means",
    "variational mixture, 100",
}

METHODS: dict[str, Clusterer] = {
    "DeepDPM": DeepDPM(),
    "DP sampler": DPSampler(20, n_burn=40),
    "DP-means": DPMeans(),
    "moVB": MoVB(),
    "variational mixture": BayesianMixture(max_clusters=50),
    "variational mixture, 100": BayesianMixture(max_clusters=100),
    "HDBSCAN": HDBSCAN(),
    "k-means, K given": AutoKMeans(),
    "Gaussian mixture, K given": AutoGaussianMixture(),
}


@cache
def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and classes."""
    base, _, variant = name.partition("_")
    stored = bool(variant) and base != "usps"
    bunch = load_deepdpm_embeddings(embedding=NAMES.get(base, base), imbalanced=stored)
    X, y = bunch.X, bunch.y
    if variant and not stored:
        rows = np.arange(len(y))
        for label, share in KEPT.items():
            own = rows[y[rows] == label]
            rows = np.setdiff1d(rows, own[: int(len(own) * (1 - share))])
        X, y = X[rows], y[rows]
    return X, y


@cache
def code(method: str) -> Row:
    """What a fit of ours is known again by: the text of the modules that make it."""
    deepdpm = ("deepdpm", "expectations", "coordinates", "growth", "learning")
    own = {
        "DeepDPM": deepdpm,
        "DeepDPM end to end": (*deepdpm, "ae_deepdpm"),
        "DP sampler": ("sampler", "chain"),
        "moVB": ("movb", "births", "memoized"),
    }.get(method)
    if own is None:
        return {}
    functions = ("niw", "variational") if method == "moVB" else ("niw", "splits")
    root = Path(asterism.__file__).parent
    files = [root / "methods" / "nonparametric" / f"{name}.py" for name in (*own, "conjugate")]
    files += [root / "functional" / f"{name}.py" for name in functions]
    if "DeepDPM" in method:
        functions = ("pooling", "hierarchy", "returns", "widths")
        files += [root / "functional" / f"{name}.py" for name in functions]
        files.append(root / "nn" / "splitmerge.py")
    if method == "DeepDPM end to end":
        files += [root / "nn" / "autoencoder.py", root / "base" / "embedded.py"]
    text = b"".join(path.read_bytes() for path in files)
    return {"code": sha256(text).hexdigest()[:12]}


def run(key: Row) -> Row:
    X, y = data(key["data"])
    model = clone(METHODS[key["method"]]).set_params(random_state=key["seed"])
    if key["method"].endswith("K given"):
        model.set_params(n_clusters=len(np.unique(y)))
    if "start" in key:
        model.set_params(init_n_clusters=key["start"])
    start = time.process_time()
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        labels = model.fit_predict(X)
    seconds = time.process_time() - start
    scores = clustering_scores(y, labels)
    sizes = np.bincount(labels[labels >= 0])
    return {
        "k": len(sizes),
        "k_large": int((sizes > 0.01 * len(y)).sum()),
        **{name: round(float(scores[name]), 4) for name in ("acc", "nmi", "ari")},
        "cpu_seconds": round(seconds, 1),
        "settled": not any("max_rounds" in str(w.message) for w in raised),
    }


def summarise(rows: Sequence[Row], by: str) -> list[Row]:
    table = []
    for value in dict.fromkeys(row[by] for row in rows):
        mine = [row for row in rows if row[by] == value]
        table.append(
            {
                by: value,
                "seeds": len(mine),
                "K": spread([row["k"] for row in mine], 1),
                "K above 1 %": spread([row["k_large"] for row in mine], 1),
                **{name.upper(): spread([row[name] for row in mine], 3) for name in SCORES},
                "CPU s a fit": round(float(np.mean([row["cpu_seconds"] for row in mine])), 1),
            }
        )
    return table


def spread(values: list[float], digits: int) -> str:
    mean, deviation = np.mean(values), np.std(values)
    return (
        f"{mean:.{digits}f} ± {deviation:.{digits}f}" if len(values) > 1 else f"{mean:.{digits}f}"
    )


def overall(rows: Sequence[Row]) -> list[Row]:
    """Over all data sets, and over those of ten columns: mean NMI and error of K."""
    table = []
    names = list(dict.fromkeys(row["data"] for row in rows))
    for method in dict.fromkeys(row["method"] for row in rows):
        nmi, error, narrow = [], [], []
        for name in names:
            mine = [row for row in rows if (row["data"], row["method"]) == (name, method)]
            classes = len(np.unique(data(name)[1]))
            nmi.append(np.mean([row["nmi"] for row in mine]))
            error.append(np.mean([abs(row["k"] - classes) for row in mine]))
            narrow.append(data(name)[0].shape[1] <= 10)
        table.append(
            {
                "method": method,
                "mean NMI": f"{np.mean(nmi):.3f}",
                "mean error of K": f"{np.mean(error):.1f}",
                "median error of K": f"{np.median(error):.1f}",
                "mean NMI, ten columns": f"{np.mean(np.array(nmi)[narrow]):.3f}",
                "mean error of K, ten columns": f"{np.mean(np.array(error)[narrow]):.1f}",
            }
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="USPS, one seed; nothing is written")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--data", default=",".join(DATA))
    options = parser.parse_args()
    torch.set_num_threads(1)
    names, methods = options.data.split(","), list(METHODS)
    if options.quick:
        names, methods, options.seeds = ["usps"], ["DeepDPM", "DP-means", "k-means, K given"], 1
    keys = [
        {"data": name, "method": method, "seed": seed, **code(method)}
        for name in names
        for method in methods
        for seed in range(1 if method in ONCE else options.seeds)
    ]
    rows = cached_rows("deepdpm", keys, run)
    starts = [
        {"data": name, "method": "DeepDPM", "seed": 0, "start": start, **code("DeepDPM")}
        for name in ("mnist", "fashion", "usps")
        for start in STARTS
        if name in names
    ]
    begun = [] if options.quick else cached_rows("deepdpm", starts, run)
    tables: dict[str, Sequence[Row]] = {"All data sets": overall(rows)}
    for name in names:
        X, y = data(name)
        head = f"{name}: {len(X):,} rows, {X.shape[1]} columns, {len(np.unique(y))} classes"
        tables[head] = summarise([row for row in rows if row["data"] == name], "method")
    columns = ("data", "start", "k", "acc", "nmi", "cpu_seconds")
    tables["DeepDPM from other starts"] = [{c: row[c] for c in columns} for row in begun]
    if options.quick or options.data != ",".join(DATA):
        print({head: table for head, table in tables.items() if table})
        return
    notes = "```text\n" + __doc__.split("\n\n", 2)[2].strip() + "\n```"
    write_results("deepdpm", "DeepDPM and its relatives", notes, tables, details=rows)


if __name__ == "__main__":
    main()
