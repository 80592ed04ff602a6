"""A report's words and pictures of how sure a method is.

belief over K     "5 clusters: probability 0.83; next 4: 0.12."
confidence        the expected adjusted Rand index of the partition, in words
similarity        the probability that two rows share a cluster, as a picture
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from asterism.exceptions import DataError
from asterism.functional.wording import counted
from asterism.plotting.certainty import plot_similarity
from asterism.plotting.diagnostics import plot_k_posterior
from asterism.plotting.page import Html, element, section
from asterism.plotting.svg import picture, picture_style

__all__ = ["confidence_sentence", "count_section", "count_sentence", "similarity_section"]

_WORDS = ((0.9, "very high"), (0.75, "high"), (0.5, "moderate"), (0.25, "low"))
_WORTH_TELLING = 0.005  # a lesser probability would be printed as 0.00


def count_sentence(
    k_posterior: Mapping[int, float] | Sequence[float] | np.ndarray, n_clusters: int
) -> str:
    """Say the two likeliest numbers of clusters, and which of them, if any, is the one shown.

    Examples
    --------
    >>> count_sentence([0, 0.01, 0.04, 0.83, 0.12], 3)
    '3 clusters: probability 0.83; next 4: 0.12.'
    >>> count_sentence({2: 1.0}, 3)
    '2 clusters: probability 1.00. The partition shown has 3: 0.00.'
    """
    belief = dict(
        k_posterior.items() if isinstance(k_posterior, Mapping) else enumerate(k_posterior)
    )
    likeliest, *others = sorted(belief, key=lambda k: -belief[k])
    text = f"{counted(int(likeliest), 'cluster')}: probability {belief[likeliest]:.2f}"
    told = {likeliest}
    if others and belief[others[0]] >= _WORTH_TELLING:
        told.add(others[0])
        shown = ", as shown" if others[0] == n_clusters else ""
        text += f"; next {others[0]}{shown}: {belief[others[0]]:.2f}"
    if n_clusters not in told:
        text += f". The partition shown has {n_clusters}: {belief.get(n_clusters, 0.0):.2f}"
    return text + "."


def confidence_sentence(overall_confidence: float) -> str:
    """Say how much the partition is to be trusted.

    Examples
    --------
    >>> confidence_sentence(0.8)
    'Confidence is high: the expected agreement with the true clusters (adjusted Rand index) is
    0.80.'
    """
    value = float(overall_confidence)
    if not -1 <= value <= 1 + 1e-6:
        raise DataError(f"overall_confidence must be at most 1 and no less than −1; got {value}.")
    word = next((word for least, word in _WORDS if value >= least), "very low")
    about = "the expected agreement with the true clusters (adjusted Rand index)"
    return f"Confidence is {word}: {about} is {value:.2f}."


def count_section(
    k_posterior: Mapping[int, float] | Sequence[float] | np.ndarray, n_clusters: int
) -> Html:
    """Section of the belief over the number of clusters."""
    with picture_style():
        ax = plot_k_posterior(k_posterior)
        alt = "Bar chart of the probability of each number of clusters."
        sentence = element("p", count_sentence(k_posterior, n_clusters))
        return section("Number of clusters", sentence, picture(ax, alt, "posterior"))


def similarity_section(similarity: Any, labels: np.ndarray, rows: Any = None) -> Html:
    """Section of the picture of pairs of rows; ``labels`` are those of the whole table."""
    rows = np.arange(len(labels)) if rows is None else np.asarray(rows)
    if np.shape(similarity) != (len(rows), len(rows)):
        raise DataError(
            f"similarity has shape {np.shape(similarity)} for {len(rows)} rows: give their numbers "
            "as similarity_rows."
        )
    with picture_style():
        ax = plot_similarity(similarity, labels[rows])
        alt = "Matrix of the probability that two rows share a cluster, ordered by cluster."
        caption = (
            "Each entry is the probability that two rows share a cluster. A dark block beside the "
            "diagonal is a pair of clusters that may be one; a pale one on it, a cluster that may "
            "be several."
        )
        if len(rows) < len(labels):
            caption += f" {len(rows):,} of {len(labels):,} rows are shown, those read together."
        return section("Which rows belong together", picture(ax, alt, "similarity", caption))
