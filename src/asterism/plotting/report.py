"""A clustering told on one HTML page.

The page holds, in this order: a sentence of summary, notes, a picture of the clusters, their
sizes, what sets each apart, typical rows, belief over the number of clusters, the learning curve,
scores, and the parameters. It is one file that loads nothing, so it can be mailed or archived.
The same input gives the same bytes.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from asterism.io.files import replacing
from asterism.plotting.checks import (
    check_labels,
    check_names,
    check_probability,
    check_rows,
    check_table,
)
from asterism.plotting.diagnostics import plot_k_posterior
from asterism.plotting.page import (
    Html,
    document,
    element,
    format_column,
    format_value,
    join,
    section,
    table,
)
from asterism.plotting.scatter import plot_clusters
from asterism.plotting.style import cluster_color
from asterism.plotting.summaries import ClusterSummary, Contrast, summarise_clusters
from asterism.plotting.svg import picture, picture_style
from asterism.plotting.training import plot_history

__all__ = ["write_report"]

_MAX_POINTS = 5000  # drawn
_MAX_COLUMNS = 8  # of typical rows
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
    scores: Mapping[str, float] | None = None,
    k_posterior: Mapping[int, float] | Sequence[float] | np.ndarray | None = None,
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
    scores : mapping of name to value, optional
        Agreement with known labels.
    k_posterior : mapping or array, optional
        Probability of each number of clusters; see :func:`plot_k_posterior`.
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
    confidence = check_probability(probability, len(X))
    names = check_names(feature_names, X.shape[1], "feature")
    shown = pd.DataFrame(X, columns=names) if original is None else check_table(original, len(X))
    n_clusters = len(np.unique(labels[labels >= 0]))
    summaries = summarise_clusters(
        X,
        labels,
        shown,
        probability=confidence,
        n_prototypes=3 if n_clusters <= _MAX_DETAILED else 1,
    )
    parts = [
        element("h1", title),
        _summary(X, summaries, method, parameters or {}, confidence, seconds),
        _notes(notes),
        *_cluster_pictures(X, labels, confidence, names, summaries),
        _sizes(summaries),
        _contrasts(summaries),
        _prototypes(summaries, shown),
        *_further_pictures(k_posterior, history),
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
    confidence: np.ndarray | None,
    seconds: float | None,
) -> Html:
    n_clusters = sum(summary.label >= 0 for summary in summaries)
    n_noise = sum(summary.size for summary in summaries if summary.label < 0)
    seed = parameters.get("random_state")
    text = (
        f"{method} grouped {_count(len(X), 'row')} with {_count(X.shape[1], 'feature')} "
        f"into {_count(n_clusters, 'cluster')}"
    )
    text += "" if seed is None else f" (seed {seed})"
    text += f" in {_duration(seconds)}." if seconds is not None else "."
    if n_noise:
        text += f" {_count(n_noise, 'row')} ({n_noise / len(X):.1%}) belong to no cluster."
    if confidence is not None and n_clusters:
        mean = sum(s.size * (s.mean_probability or 0.0) for s in summaries) / (len(X) - n_noise)
        text += f" The mean probability of an assignment is {mean:.3f}."
    return element("p", text, class_="lead")


def _notes(notes: Sequence[str]) -> Html:
    return (
        element("ul", *(element("li", note) for note in notes), class_="notes") if notes else Html()
    )


def _cluster_pictures(
    X: np.ndarray,
    labels: np.ndarray,
    confidence: np.ndarray | None,
    names: list[str],
    summaries: Sequence[ClusterSummary],
) -> list[Html]:
    with picture_style():
        ax = plot_clusters(
            X, labels, probability=confidence, feature_names=names, max_points=_MAX_POINTS
        )
        how = "first two principal components" if X.shape[1] > 2 else "features"
        sizes = ", ".join(f"{_name(summary)}: {summary.size:,}" for summary in summaries)
        alt = f"Scatter plot of the rows by {how}, coloured by cluster. Rows of each: {sizes}."
        caption = f"Each point is a row, placed by the {how} and coloured by cluster."
        if len(X) > _MAX_POINTS:
            caption += (
                f" About {_MAX_POINTS:,} of {len(X):,} rows are drawn, some of every cluster."
            )
        if confidence is not None:
            caption += " Fainter, smaller points are less certain."
        return [section("Picture", picture(ax, alt, "clusters", caption))]


def _sizes(summaries: Sequence[ClusterSummary]) -> Html:
    sure = any(summary.mean_probability is not None for summary in summaries)
    greatest = max(summary.share for summary in summaries)
    rows = []
    for summary in summaries:
        style = (
            f"width:{100 * summary.share / greatest:.1f}%;background:{cluster_color(summary.label)}"
        )
        row = [
            _tag(summary),
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
            _swatch(summary.label),
            _name(summary),
            element("small", _count(summary.size, "row")),
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


def _prototypes(summaries: Sequence[ClusterSummary], shown: pd.DataFrame) -> Html:
    columns = _telling_columns(summaries, [str(name) for name in shown.columns])
    rows: list[list[Any]] = []
    first_rows = []
    for summary in summaries:
        if summary.prototypes:
            first_rows.append(len(rows))
        name = _tag(summary)
        rows += [[name, str(shown.index[row])] for row in summary.prototypes]
    if not rows:
        return Html()
    chosen = [row for summary in summaries for row in summary.prototypes]
    for j in columns:
        for row, text in zip(rows, format_column(shown.iloc[chosen, j].tolist()), strict=True):
            row.append(text)
    numeric = [j + 2 for j, place in enumerate(columns) if shown.dtypes.iloc[place].kind in "iuf"]
    about = "The rows nearest to the mean of each cluster, as given."
    if len(columns) < shown.shape[1]:
        about += f" {len(columns)} of {shown.shape[1]:,} columns are shown."
    headers = ["Cluster", "Row", *(str(shown.columns[j]) for j in columns)]
    body = table(headers, rows, numeric=numeric, first_rows=first_rows[1:])
    return section("Typical rows", element("p", about, class_="muted"), body)


def _telling_columns(summaries: Sequence[ClusterSummary], names: Sequence[str]) -> list[int]:
    """Places of the columns to show: those most often in contrast, else the leading ones."""
    votes = Counter(contrast.feature for summary in summaries for contrast in summary.contrasts)
    ranked = sorted(range(len(names)), key=lambda j: (-votes[names[j]], j))
    return sorted(ranked[:_MAX_COLUMNS])


def _further_pictures(
    k_posterior: Mapping[int, float] | Sequence[float] | np.ndarray | None,
    history: Sequence[Mapping[str, Any]] | None,
) -> list[Html]:
    parts = []
    with picture_style():
        if k_posterior is not None:
            ax = plot_k_posterior(k_posterior)
            alt = "Bar chart of the probability of each number of clusters."
            parts.append(section("Number of clusters", picture(ax, alt, "posterior")))
        if history is not None and any(record.get("loss") is not None for record in history):
            ax = plot_history(history)
            alt = f"Learning curve: loss over {len(history):,} training records."
            caption = "Training loss: every record (faint) and its running mean (bold)."
            parts.append(section("Learning curve", picture(ax, alt, "curve", caption)))
    return parts


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


def _swatch(label: int) -> Html:
    return element("span", class_="swatch", style=f"background:{cluster_color(label)}")


def _tag(summary: ClusterSummary) -> Html:
    return element("span", _swatch(summary.label), _name(summary), class_="name")


def _name(summary: ClusterSummary) -> str:
    return "Noise" if summary.label < 0 else f"Cluster {summary.label}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _duration(seconds: float) -> str:
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes:,} min {rest:02d} s"
