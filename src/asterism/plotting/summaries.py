"""What sets a cluster apart, and its most typical rows. Pure computation, linear in N.

    numeric column      effect = (mean inside − mean outside) / standard deviation of all rows,
                        see :mod:`asterism.functional.contrasts`
    categorical value   effect = 2 asin √p_in − 2 asin √p_out,  p the value's share of rows
    typical rows        those nearest to the cluster's mean

"Outside" is every row not in the cluster, noise included. Missing numbers are left out of the
means; a missing category is a value of its own. Both effects read on the same scale: 0.2 is
small, 0.8 is large.

J. Cohen, "Statistical power analysis for the behavioral sciences", 1988 (d and h).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from asterism.functional.contrasts import Contrast, Moments, numeric_contrasts
from asterism.plotting.checks import check_labels, check_probability, check_rows

__all__ = ["ClusterSummary", "Contrast", "contrasts", "prototypes", "summarise_clusters"]

MISSING = "(missing)"


@dataclass(frozen=True)
class ClusterSummary:
    """One cluster, or the noise (label −1), of which only the size is told."""

    label: int
    size: int
    share: float
    mean_probability: float | None
    contrasts: tuple[Contrast, ...]
    prototypes: tuple[int, ...]  # row numbers, most typical first


def summarise_clusters(
    X: Any,
    labels: Any,
    table: pd.DataFrame,
    *,
    probability: Any = None,
    top: int = 5,
    n_prototypes: int = 3,
) -> tuple[ClusterSummary, ...]:
    """Summarise every cluster in order of label, then the noise.

    Parameters
    ----------
    X : array of shape (N, D)
        Features as clustered; prototypes are nearest to the mean in this space.
    labels : array of N integers
        −1 is noise.
    table : pandas.DataFrame of N rows
        Columns to contrast, in the units to report.
    probability : array of shape (N,) or (N, K), optional
        Confidence of each assignment.
    top, n_prototypes : int
        Greatest number of contrasts, and of typical rows, of each cluster.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from asterism.plotting import summarise_clusters
    >>> X = np.array([[0.0], [1.0], [2.0], [9.0]])
    >>> first, second = summarise_clusters(X, np.array([0, 0, 0, 1]), pd.DataFrame(X))
    >>> first.size, first.share, first.prototypes
    (3, 0.75, (1, 0, 2))
    """
    X = check_rows(X)
    labels = check_labels(labels, len(X))
    confidence = check_probability(probability, len(X))
    differing = contrasts(table, labels, top=top)
    typical = prototypes(X, labels, n_prototypes)
    groups, codes, sizes = np.unique(
        np.maximum(labels, -1), return_inverse=True, return_counts=True
    )
    sure = None if confidence is None else np.bincount(codes, confidence) / sizes
    summaries = [
        ClusterSummary(
            label=int(k),
            size=int(sizes[i]),
            share=float(sizes[i] / len(labels)),
            mean_probability=None if sure is None or k < 0 else float(sure[i]),
            contrasts=differing.get(int(k), ()),
            prototypes=typical.get(int(k), ()),
        )
        for i, k in enumerate(groups)
    ]
    return tuple(sorted(summaries, key=lambda summary: (summary.label < 0, summary.label)))


def contrasts(
    table: pd.DataFrame,
    labels: Any,
    *,
    top: int = 5,
    min_effect: float = 0.2,
    max_values: int = 50,
) -> dict[int, tuple[Contrast, ...]]:
    """Columns that set each cluster apart, the greatest effect first.

    Parameters
    ----------
    table : pandas.DataFrame of N rows
        Numeric columns are compared by mean; text, categories and booleans by their most
        over-represented value; dates are skipped.
    labels : array of N integers
        Negative labels (noise) count as outside every cluster.
    top : int
        Greatest number of contrasts of a cluster.
    min_effect : float
        Lesser effects are left out.
    max_values : int
        Only this many commonest values of a categorical column are considered, so that a
        column of names or identifiers cannot dominate.

    Examples
    --------
    >>> import pandas as pd
    >>> from asterism.plotting import contrasts
    >>> table = pd.DataFrame({"height": [1.0, 1.0, 3.0, 3.0], "always": 7})
    >>> contrasts(table, [0, 0, 1, 1])[1]
    (Contrast(feature='height', effect=2.0, inside=3.0, outside=1.0, value=None),)
    """
    labels = check_labels(labels, len(table))
    clusters, codes = _cluster_codes(labels)
    if len(clusters) == 0:
        return {}
    found: list[list[Contrast]] = [[] for _ in clusters]
    numeric = [j for j in range(table.shape[1]) if _kind(table.iloc[:, j]) == "number"]
    if numeric:
        names = [str(table.columns[j]) for j in numeric]
        moments = _moments(_numbers(table, numeric), codes, len(clusters))
        differing = numeric_contrasts(names, moments, top=top, min_effect=min_effect)
        found = [list(contrasts_of_k) for contrasts_of_k in differing]
    for j in range(table.shape[1]):
        if _kind(table.iloc[:, j]) == "category":
            name = str(table.columns[j])
            _add_categorical(found, name, table.iloc[:, j], codes, max_values, min_effect)
    return {
        int(k): tuple(sorted(found[i], key=lambda contrast: -abs(contrast.effect))[:top])
        for i, k in enumerate(clusters)
    }


def prototypes(X: Any, labels: Any, n_rows: int = 3) -> dict[int, tuple[int, ...]]:
    """Numbers of the rows nearest to each cluster's mean, nearest first; noise is left out.

    Examples
    --------
    >>> from asterism.plotting import prototypes
    >>> prototypes([[0.0], [4.0], [2.5], [9.0]], [0, 0, 0, 1], n_rows=2)
    {0: (2, 1), 1: (3,)}
    """
    X = check_rows(X)
    labels = check_labels(labels, len(X))
    clusters, codes = _cluster_codes(labels)
    rows = np.flatnonzero(codes >= 0)
    if len(rows) == 0:
        return {}
    sizes = np.bincount(codes[rows])
    means = _membership(codes, len(clusters)) @ X / sizes[:, None]  # (K, D)
    squared = np.square(X[rows] - means[codes[rows]]).sum(axis=1)
    rows = rows[np.lexsort((rows, squared, codes[rows]))]
    starts = np.cumsum(sizes) - sizes
    return {
        int(k): tuple(rows[start : start + min(n_rows, size)].tolist())
        for k, start, size in zip(clusters, starts, sizes, strict=True)
    }


def _cluster_codes(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct nonnegative labels (K,), and each row's place among them (N,), −1 for noise."""
    clusters = np.unique(labels[labels >= 0])
    return clusters, np.where(labels < 0, -1, np.searchsorted(clusters, labels))


def _membership(codes: np.ndarray, n_clusters: int) -> sparse.csr_matrix:
    """0/1 matrix (K, N): its product with a table sums the table within clusters."""
    rows = np.flatnonzero(codes >= 0)
    return sparse.csr_matrix(
        (np.ones(len(rows)), (codes[rows], rows)), shape=(n_clusters, len(codes))
    )


def _kind(column: pd.Series) -> str:
    if pd.api.types.is_bool_dtype(column):
        return "category"
    if pd.api.types.is_numeric_dtype(column):
        return "other" if pd.api.types.is_complex_dtype(column) else "number"
    is_time = pd.api.types.is_datetime64_any_dtype(column) or column.dtype.kind == "m"
    return "other" if is_time else "category"


def _numbers(table: pd.DataFrame, columns: list[int]) -> np.ndarray:
    """Columns as (N, D) floats, with NaN for whatever is missing or infinite."""
    numbers = table.iloc[:, columns].to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _moments(values: np.ndarray, codes: np.ndarray, n_clusters: int) -> Moments:
    """Moments of (N, D) numbers by cluster, over those that are not missing."""
    present = ~np.isnan(values)
    count = present.sum(axis=0)  # (D,)
    shift = np.where(present, values, 0.0).sum(axis=0) / np.maximum(count, 1)
    centred = np.where(present, values - shift, 0.0)  # sums of squares lose no digits
    member = _membership(codes, n_clusters)
    n_in = member @ present.astype(np.float64)  # (K, D)
    return Moments(
        total=count,
        mean=shift,
        deviation=np.sqrt(np.square(centred).sum(axis=0) / np.maximum(count, 1)),
        cluster_count=n_in,
        cluster_mean=shift + member @ centred / np.maximum(n_in, 1),
    )


def _add_categorical(
    found: list[list[Contrast]],
    name: str,
    column: pd.Series,
    codes: np.ndarray,
    max_values: int,
    min_effect: float,
) -> None:
    text = column.astype(object).where(column.notna(), MISSING).astype(str)
    value_codes, values = pd.factorize(text)
    if len(values) < 2:
        return
    common = np.argsort(-np.bincount(value_codes), kind="stable")[:max_values]
    place = np.full(len(values), -1)
    place[common] = np.arange(len(common))
    value_codes = place[value_codes]  # (N,), −1 for the values left out
    shape = (len(found), len(common))
    kept = (codes >= 0) & (value_codes >= 0)
    flat = codes[kept] * shape[1] + value_codes[kept]
    count_in = np.bincount(flat, minlength=shape[0] * shape[1]).reshape(shape)  # (K, V)
    n_in = np.bincount(codes[codes >= 0], minlength=shape[0])[:, None]
    n_out = len(codes) - n_in
    if not n_out.all():
        return  # a single cluster holds every row: there is nothing to compare it with
    count_out = np.bincount(value_codes[value_codes >= 0], minlength=shape[1]) - count_in
    share_in, share_out = count_in / n_in, count_out / n_out
    effect = 2 * np.arcsin(np.sqrt(share_in)) - 2 * np.arcsin(np.sqrt(share_out))
    for k, j in enumerate(effect.argmax(axis=1)):
        if effect[k, j] >= min_effect:
            found[k].append(
                Contrast(
                    name,
                    float(effect[k, j]),
                    float(share_in[k, j]),
                    float(share_out[k, j]),
                    str(values[common[j]]),
                )
            )
