"""A clustering told on one HTML page.

The page holds, in this order: a sentence of summary, notes, a picture of the clusters, their
sizes, what sets each apart, typical rows, belief over the number of clusters and over pairs of
rows, doubtful rows and outliers, splits and merges, the learning curve, scores, and the parameters.
What was not given is left out. It is one file that loads nothing, so it can be mailed or archived.
The same input gives the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from asterism.functional.wording import counted
from asterism.io.files import replacing
from asterism.plotting.belief import confidence_sentence, count_section, similarity_section
from asterism.plotting.checks import (
    check_labels,
    check_names,
    check_probability,
    check_rows,
    check_table,
)
from asterism.plotting.moves import plot_split_merge
from asterism.plotting.page import (
    Html,
    document,
    element,
    format_value,
    join,
    section,
    table,
)
from asterism.plotting.pieces import cluster_name, cluster_tag, swatch
from asterism.plotting.rows import doubtful_rows, typical_rows
from asterism.plotting.scatter import plot_clusters
from asterism.plotting.style import cluster_color
from asterism.plotting.summaries import ClusterSummary, Contrast, summarise_clusters
from asterism.plotting.svg import picture, picture_style
from asterism.plotting.training import plot_history

__all__ = ["write_report"]

_MAX_POINTS = 5000  # drawn
_MAX_DETAILED = 20  # clusters with more than one typical row


def write_report(
    path: str | os.PathLike[str],
    *,
    X: Any,
    labels: Any,
    method: str,
    title: str = "Clustering report",
    probability: Any = None,
    feature_names: Sequence[Any] | None = None,
    parameters: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
    history: Sequence[Mapping[str, Any]] | None = None,
    moves: Sequence[Mapping[str, Any]] | None = None,
    scores: Mapping[str, float] | None = None,
    k_posterior: Mapping[int, float] | Sequence[float] | np.ndarray | None = None,
    overall_confidence: float | None = None,
    confidence: Any = None,
    outlier_score: Any = None,
    similarity: Any = None,
    similarity_rows: Any = None,
    original: pd.DataFrame | None = None,
    seconds: float | None = None,
    version: str | None = None,
) -> Path:
    """Write a self-contained HTML report.

    Parameters
    ----------
    path : path
        File to write. Missing folders are made; an existing file is replaced in one step, so a
        reader never sees half a page.
    X : array of shape (N, D)
        Features as clustered; finite.
    labels : array of N integers
        −1 is noise.
    method : str
        Name of the method.
    title : str
        Heading of the page.
    probability : array of shape (N,) or (N, K), optional
        Confidence of each assignment, or responsibilities.
    feature_names : sequence of D names, optional
        Names of the columns of ``X``.
    parameters : mapping, optional
        Listed at the foot; ``random_state`` is named in the summary as the seed.
    notes : sequence of str
        Remarks shown under the summary.
    history : sequence of mappings, optional
        Training records; the curve of ``loss`` is drawn if any holds it.
    moves : sequence of mappings, optional
        Rounds of splits and merges; see :func:`plot_split_merge`.
    scores : mapping of name to value, optional
        Agreement with known labels.
    k_posterior : mapping or array, optional
        Probability of each number of clusters; see :func:`plot_k_posterior`.
    overall_confidence : float, optional
        Expected adjusted Rand index of the partition.
    confidence : array of shape (N,), optional
        Expected overlap of each row's cluster with the true one; the least certain are listed.
    outlier_score : array of shape (N,), optional
        From 0 for usual rows towards 1 for rows far from all; the highest are listed.
    similarity : array of shape (n, n), optional
        Probability that two rows share a cluster; see :func:`plot_similarity`.
    similarity_rows : array of n row numbers, optional
        Rows of the similarity; by default all N.
    original : pandas.DataFrame of N rows, optional
        Rows as the user gave them: contrasts and typical rows are then in these units. By
        default the columns of ``X`` are used.
    seconds : float, optional
        Time taken.
    version : str, optional
        Version of the library, for the foot.

    Returns
    -------
    pathlib.Path
        The file written.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from asterism.plotting import write_report
    >>> X = np.array([[0.0, 1.0], [0.2, 1.1], [5.0, 9.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_report(f"{folder}/r.html", X=X, labels=[0, 0, 1], method="k-means")
    ...     "3 rows with 2 features into 2 clusters" in path.read_text(encoding="utf-8")
    True
    """
    X = check_rows(X)
    labels = check_labels(labels, len(X))
    probability = check_probability(probability, len(X))
    confidence = check_probability(confidence, len(X), "confidence")
    outlier_score = check_probability(outlier_score, len(X), "outlier_score")
    names = check_names(feature_names, X.shape[1], "feature")
    shown = pd.DataFrame(X, columns=names) if original is None else check_table(original, len(X))
    n_clusters = len(np.unique(labels[labels >= 0]))
    summaries = summarise_clusters(
        X,
        labels,
        shown,
        probability=probability,
        n_prototypes=3 if n_clusters <= _MAX_DETAILED else 1,
    )
    parts = [
        element("h1", title),
        _summary(X, summaries, method, parameters or {}, seconds, overall_confidence),
        _notes(notes),
        _cluster_picture(X, labels, probability, names, summaries),
        _sizes(summaries),
        _contrasts(summaries),
        typical_rows(summaries, shown),
        "" if k_posterior is None else count_section(k_posterior, n_clusters),
        "" if similarity is None else similarity_section(similarity, labels, similarity_rows),
        *doubtful_rows(summaries, shown, labels, confidence, outlier_score),
        _moves(moves),
        _learning_curve(history),
        _scores(scores),
        _foot(method, parameters or {}, version),
    ]
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as file:
        file.write(document(title, *(part for part in parts if part)).encode())
    return target


def _summary(
    X: np.ndarray,
    summaries: Sequence[ClusterSummary],
    method: str,
    parameters: Mapping[str, Any],
    seconds: float | None,
    overall_confidence: float | None,
) -> Html:
    n_clusters = sum(summary.label >= 0 for summary in summaries)
    n_noise = sum(summary.size for summary in summaries if summary.label < 0)
    seed = parameters.get("random_state")
    text = (
        f"{method} grouped {counted(len(X), 'row')} with {counted(X.shape[1], 'feature')} "
        f"into {counted(n_clusters, 'cluster')}"
    )
    text += "" if seed is None else f" (seed {seed})"
    text += f" in {_duration(seconds)}." if seconds is not None else "."
    if n_noise:
        text += f" {counted(n_noise, 'row')} ({n_noise / len(X):.1%}) belong to no cluster."
    if any(summary.mean_probability is not None for summary in summaries):
        mean = sum(s.size * (s.mean_probability or 0.0) for s in summaries) / (len(X) - n_noise)
        text += f" The mean probability of an assignment is {mean:.3f}."
    if overall_confidence is not None:
        text += f" {confidence_sentence(overall_confidence)}"
    return element("p", text, class_="lead")


def _notes(notes: Sequence[str]) -> Html:
    return (
        element("ul", *(element("li", note) for note in notes), class_="notes") if notes else Html()
    )


def _cluster_picture(
    X: np.ndarray,
    labels: np.ndarray,
    probability: np.ndarray | None,
    names: list[str],
    summaries: Sequence[ClusterSummary],
) -> Html:
    with picture_style():
        ax = plot_clusters(
            X, labels, probability=probability, feature_names=names, max_points=_MAX_POINTS
        )
        how = "first two principal components" if X.shape[1] > 2 else "features"
        sizes = ", ".join(f"{cluster_name(each.label)}: {each.size:,}" for each in summaries)
        alt = f"Scatter plot of the rows by {how}, coloured by cluster. Rows of each: {sizes}."
        caption = f"Each point is a row, placed by the {how} and coloured by cluster."
        if len(X) > _MAX_POINTS:
            caption += (
                f" About {_MAX_POINTS:,} of {len(X):,} rows are drawn, some of every cluster."
            )
        if probability is not None:
            caption += " Fainter, smaller points are less certain."
        return section("Picture", picture(ax, alt, "clusters", caption))


def _sizes(summaries: Sequence[ClusterSummary]) -> Html:
    sure = any(summary.mean_probability is not None for summary in summaries)
    greatest = max(summary.share for summary in summaries)
    rows = []
    for summary in summaries:
        style = (
            f"width:{100 * summary.share / greatest:.1f}%;background:{cluster_color(summary.label)}"
        )
        row = [
            cluster_tag(summary.label),
            f"{summary.size:,}",
            f"{summary.share:.1%}",
            element("span", class_="bar", style=style),
        ]
        probability = summary.mean_probability
        rows.append(row + (["–" if probability is None else f"{probability:.3f}"] if sure else []))
    headers = ["Cluster", "Rows", "Share", "Relative size"]
    headers += ["Mean probability"] if sure else []
    return section("Cluster sizes", table(headers, rows, numeric=(1, 2, 4), wide=3))


def _contrasts(summaries: Sequence[ClusterSummary]) -> Html:
    cards = []
    for summary in summaries:
        if summary.label < 0:
            continue
        heading = element(
            "h3",
            swatch(summary.label),
            cluster_name(summary.label),
            element("small", counted(summary.size, "row")),
        )
        if summary.contrasts:
            rows = [_contrast_row(contrast) for contrast in summary.contrasts]
            body = table(["Feature", "Inside", "Elsewhere", "Effect"], rows, numeric=(1, 2, 3))
        else:
            body = element("p", "No feature sets this cluster apart.", class_="muted")
        cards.append(element("div", heading, body, class_="card"))
    if not cards:
        return Html()
    explanation = element(
        "p",
        "Mean within the cluster and over all other rows, for the features that differ most; for "
        "a category, the share of rows that hold it. The effect is the difference in standard "
        "deviations (for shares, Cohen’s h): 0.2 is small, 0.8 large.",
        class_="muted",
    )
    return section(
        "What sets each cluster apart", explanation, element("div", *cards, class_="grid")
    )


def _contrast_row(contrast: Contrast) -> list[Any]:
    arrow = "▲" if contrast.effect > 0 else "▼"
    effect = f"{arrow} {abs(contrast.effect):.1f}"
    if contrast.value is None:
        inside, outside = format_value(contrast.inside), format_value(contrast.outside)
        return [contrast.feature, inside, outside, effect]
    feature = f"{contrast.feature} = {format_value(contrast.value)}"
    return [feature, f"{contrast.inside:.0%}", f"{contrast.outside:.0%}", effect]


def _moves(moves: Sequence[Mapping[str, Any]] | None) -> Html:
    if not moves:
        return Html()
    with picture_style():
        axes = plot_split_merge(moves)
        alt = (
            f"Number of clusters over {counted(len(moves), 'move')}, from "
            f"{moves[0]['n_before']} to {moves[-1]['n_after']}."
        )
        caption = (
            "Clusters after each split, merge or drop, and the log-ratio of the best one tried."
        )
        return section("Splits and merges", picture(axes[0], alt, "moves", caption))


def _learning_curve(history: Sequence[Mapping[str, Any]] | None) -> Html:
    if history is None or all(record.get("loss") is None for record in history):
        return Html()
    with picture_style():
        ax = plot_history(history)
        alt = f"Learning curve: loss over {len(history):,} training records."
        caption = "Training loss: every record (faint) and its running mean (bold)."
        return section("Learning curve", picture(ax, alt, "curve", caption))


def _scores(scores: Mapping[str, float] | None) -> Html:
    if not scores:
        return Html()
    rows = [[name, format_value(value)] for name, value in scores.items()]
    return section(
        "Agreement with known labels", table(["Score", "Value"], rows, numeric=[1], narrow=True)
    )


def _foot(method: str, parameters: Mapping[str, Any], version: str | None) -> Html:
    rows = [[k, "None" if v is None else format_value(v)] for k, v in parameters.items()]
    made = f"Made by asterism {version}." if version else "Made by asterism."
    body = table(["Parameter", "Value"], rows, narrow=True)
    listed = section(f"Parameters of {method}", body) if rows else ""
    return join([listed, element("footer", element("p", made))])


def _duration(seconds: float) -> str:
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes:,} min {rest:02d} s"
