"""Tables of some rows in a report: typical ones, doubtful ones, outliers.

    typical     nearest to the mean of their cluster
    doubtful    the lowest confidence
    outliers    the highest outlier score, half or more

Rows are shown as the user gave them, in the columns that tell most of the clusters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

from asterism.plotting.page import Html, element, format_column, section, table
from asterism.plotting.pieces import cluster_tag
from asterism.plotting.summaries import ClusterSummary

__all__ = ["doubtful_rows", "typical_rows"]

_MAX_COLUMNS = 8
_MAX_ROWS = 8
_OUTLYING = 0.5


def typical_rows(summaries: Sequence[ClusterSummary], shown: pd.DataFrame) -> Html:
    """Section of the rows nearest to the mean of each cluster."""
    columns = _telling_columns(summaries, shown, _MAX_COLUMNS)
    chosen = [row for summary in summaries for row in summary.prototypes]
    if not chosen:
        return Html()
    tags = [cluster_tag(summary.label) for summary in summaries for _ in summary.prototypes]
    lead: dict[str, Sequence[str]] = {"Cluster": tags, "Row": _row_names(shown, chosen)}
    lengths = [len(summary.prototypes) for summary in summaries if summary.prototypes]
    about = "The rows nearest to the mean of each cluster, as given." + _left_out(shown, columns)
    body = _rows_table(lead, shown, chosen, columns, first_rows=np.cumsum(lengths)[:-1].tolist())
    return section("Typical rows", element("p", about, class_="muted"), body)


def doubtful_rows(
    summaries: Sequence[ClusterSummary],
    shown: pd.DataFrame,
    labels: np.ndarray,
    confidence: np.ndarray | None = None,
    outlier_score: np.ndarray | None = None,
) -> list[Html]:
    """Sections of the rows whose cluster is least certain, and of those far from all others."""
    known = {
        name: values
        for name, values in (("Confidence", confidence), ("Outlier score", outlier_score))
        if values is not None
    }
    columns = _telling_columns(summaries, shown, _MAX_COLUMNS - len(known))

    def listed(heading: str, about: str, chosen: list[int]) -> Html:
        lead: dict[str, Sequence[str]] = {
            "Row": _row_names(shown, chosen),
            "Cluster": [cluster_tag(int(label)) for label in labels[chosen]],
        }
        for name, values in known.items():
            lead[name] = [f"{value:.2f}" for value in values[chosen]]
        text = about + _left_out(shown, columns)
        body = _rows_table(lead, shown, chosen, columns, numeric=range(2, len(lead)))
        return section(heading, element("p", text, class_="muted"), body)

    sections = []
    if confidence is not None:
        about = (
            "Rows of the lowest confidence: the expected overlap of their cluster with the true "
            "one, from 0 to 1."
        )
        chosen = np.argsort(confidence, kind="stable")[:_MAX_ROWS].tolist()
        sections.append(listed("Least certain rows", about, chosen))
    if outlier_score is not None:
        order = np.argsort(-outlier_score, kind="stable")[:_MAX_ROWS]
        chosen = order[outlier_score[order] >= _OUTLYING].tolist()
        n_outlying = int((outlier_score >= _OUTLYING).sum())
        about = (
            "Rows farthest from their neighbours, measured by what is usual in their cluster: "
            f"the score is 0 where it is usual and towards 1 far from all. {n_outlying:,} of "
            f"{len(labels):,} rows have {_OUTLYING} or more."
        )
        if chosen:
            sections.append(listed("Outliers", about, chosen))
    return sections


def _rows_table(
    lead: dict[str, Sequence[str]],
    shown: pd.DataFrame,
    chosen: list[int],
    columns: Sequence[int],
    *,
    numeric: Sequence[int] = (),
    first_rows: Sequence[int] = (),
) -> Html:
    """Leading cells by heading, then the chosen rows as they were given."""
    given = [format_column(shown.iloc[chosen, j].tolist()) for j in columns]
    numbers = [j for j, place in enumerate(columns) if shown.dtypes.iloc[place].kind in "iuf"]
    return table(
        [*lead, *(str(shown.columns[j]) for j in columns)],
        list(zip(*lead.values(), *given, strict=True)),
        numeric=[*numeric, *(j + len(lead) for j in numbers)],
        first_rows=first_rows,
    )


def _telling_columns(
    summaries: Sequence[ClusterSummary], shown: pd.DataFrame, most: int
) -> list[int]:
    """Places of the columns to show: those most often in contrast, else the leading ones."""
    votes = Counter(contrast.feature for summary in summaries for contrast in summary.contrasts)
    names = [str(name) for name in shown.columns]
    ranked = sorted(range(len(names)), key=lambda j: (-votes[names[j]], j))
    return sorted(ranked[:most])


def _row_names(shown: pd.DataFrame, chosen: list[int]) -> list[str]:
    return [str(name) for name in shown.index[chosen]]


def _left_out(shown: pd.DataFrame, columns: Sequence[int]) -> str:
    if len(columns) == shown.shape[1]:
        return ""
    return f" {len(columns)} of {shown.shape[1]:,} columns are shown."
