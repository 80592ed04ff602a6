"""How well an estimator clusters data sets whose clusters are known.

    evaluate(estimator, batches)    one row a data set: ARI, NMI, K found and true, log-likelihood
    summarise(rows)                 what is reported of them

A batch goes to the network at a time; for data drawn from its training prior it should have
``scaling="none"``. Likelihoods are those of the data as drawn, whatever the map to the network's
coordinates: log p(x) = log p(x P) + log |det P|, NaN where P drops a dimension. A data set of one
cluster has an ARI of one if one cluster is found and of zero otherwise, so that those count apart.
The time is that of the processor, a data set's share of its batch.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from asterism.functional.oracles import oracle_log_likelihood
from asterism.functional.sets import SetBatch
from asterism.metrics import adjusted_rand_index, normalized_mutual_information

__all__ = ["Evaluation", "evaluate", "summarise"]


@dataclass(frozen=True)
class Evaluation:
    """Scores of one data set; likelihoods are those of a point, NaN where there are none."""

    ari: float
    nmi: float
    k: int
    k_true: int
    n: int
    log_likelihood: float
    oracle_log_likelihood: float
    seconds: float


def evaluate(
    estimator: Any,
    batches: Iterable[SetBatch],
    *,
    total: int | None = None,
    verbose: bool = False,
) -> list[Evaluation]:
    """Cluster every data set of every batch and compare with its labels.

    Parameters
    ----------
    estimator : AmortizedClusterer
        With weights; its ``fit_many`` is called.
    batches : iterable of SetBatch
        Labelled data sets, for instance :func:`asterism.priors.benchmark_batches`.
    total : int, optional
        Number of batches, for the progress bar.
    verbose : bool
        Show one.

    Returns
    -------
    list of Evaluation

    Examples
    --------
    >>> from asterism import SetTransformerMixture
    >>> from asterism.pipeline import evaluate, summarise
    >>> from asterism.priors import benchmark_batches
    >>> model = SetTransformerMixture(scaling="none")
    >>> rows = evaluate(model, benchmark_batches("filtering", n_batches=1))
    >>> len(rows), summarise(rows)["data sets"]
    (10, 10)
    """
    rows = []
    for batch in tqdm(batches, total=total, disable=not verbose, desc="batches"):
        if batch.labels is None:
            raise ValueError("evaluation needs labelled data sets")
        keep = batch.keep.numpy()
        sets = [x[own].numpy() for x, own in zip(batch.x, batch.keep, strict=True)]
        start = time.process_time()
        fitted = estimator.fit_many(sets)
        seconds = (time.process_time() - start) / len(sets)
        oracle = np.full(len(sets), np.nan)
        if batch.truth is not None:
            oracle = oracle_log_likelihood(batch).numpy()
        for b, (model, x) in enumerate(zip(fitted, sets, strict=True)):
            truth = batch.labels[b].numpy()[keep[b]]
            known = truth >= 0
            found = model.labels_[known]
            rows.append(
                Evaluation(
                    adjusted_rand_index(truth[known], found),
                    normalized_mutual_information(truth[known], found),
                    len(np.unique(model.labels_)),
                    len(np.unique(truth[known])),
                    len(x),
                    _log_likelihood(model, x),
                    float(oracle[b]),
                    seconds,
                )
            )
    return rows


def _log_likelihood(model: Any, x: np.ndarray) -> float:
    """Mean log-likelihood of a point where the model has a density, NaN elsewhere."""
    if not getattr(model, "has_density", False):
        return float("nan")
    projection = getattr(model, "projection_", np.eye(x.shape[1]))
    if projection.shape[0] != projection.shape[1]:
        return float("nan")
    return float(model.score(x)) + float(np.linalg.slogdet(projection)[1])


def summarise(rows: list[Evaluation]) -> dict[str, float]:
    """Means over data sets, the median ARI, and what hides behind a mean."""
    ari = np.array([row.ari for row in rows])
    k, k_true = (np.array([getattr(row, name) for row in rows]) for name in ("k", "k_true"))
    single = k_true == 1
    return {
        "data sets": len(rows),
        "log-likelihood": float(np.mean([row.log_likelihood for row in rows])),
        "oracle": float(np.mean([row.oracle_log_likelihood for row in rows])),
        "ARI": float(ari.mean()),
        "median ARI": float(np.median(ari)),
        "share below 0.9": float((ari < 0.9).mean()),
        "ARI where K = 1": float(ari[single].mean()) if single.any() else float("nan"),
        "NMI": float(np.mean([row.nmi for row in rows])),
        "error of K": float(np.abs(k - k_true).mean()),
        "exact K": float((k == k_true).mean()),
        "seconds": float(np.mean([row.seconds for row in rows])),
    }
