"""How the number of clusters came about, split by split and merge by merge.

A history is a list of records, one a move, ``split_merge_history_`` of an estimator:

    ``move``             "split", "merge", or "drop": clusters too small are given up
    ``n_before``         clusters before it
    ``n_after``          and after it
    ``best_log_ratio``   of the best one tried, if any

Upper panel: K after every move; a filled mark where clusters moved, a hollow one where none did.
Lower panel: the best log-ratio tried, marked likewise, on a scale that is linear about zero; above
zero it pays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from asterism.exceptions import DataError
from asterism.plotting.style import cluster_color, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["plot_split_merge"]

_MOVES = {"split": ("^", 0), "merge": ("v", 1), "drop": ("X", 2)}
_NEEDED = ("move", "n_before", "n_after")


def plot_split_merge(
    history: Sequence[Mapping[str, Any]] | Any,
    *,
    n_true: int | None = None,
    figure: Figure | SubFigure | None = None,
) -> np.ndarray:
    """Draw the splits and merges of a fit, move by move.

    Parameters
    ----------
    history : sequence of mappings, or an estimator
        One record a move, or what holds them as ``split_merge_history_``.
    n_true : int, optional
        Number of clusters to mark, where it is known.
    figure : matplotlib.figure.Figure, optional
        Figure to draw on; by default a new one.

    Returns
    -------
    ndarray of matplotlib.axes.Axes
        The two panels: ``axes[0].figure.savefig("moves.png")``.

    Examples
    --------
    >>> from asterism.plotting import plot_split_merge
    >>> history = [
    ...     {"move": "split", "n_before": 1, "n_after": 2, "accepted": 1, "best_log_ratio": 40.0},
    ...     {"move": "merge", "n_before": 2, "n_after": 2, "accepted": 0, "best_log_ratio": -9.0},
    ... ]
    >>> axes = plot_split_merge(history)
    >>> [ax.get_ylabel() for ax in axes]
    ['clusters', 'best log-ratio']
    """
    records = getattr(history, "split_merge_history_", history)
    if not isinstance(records, Sequence):
        raise DataError(
            f"{type(history).__name__} holds no split_merge_history_: give a fitted DeepDPM."
        )
    if len(records) == 0:
        raise DataError("history is empty: fit with max_rounds of at least 1 to see moves.")
    for number, record in enumerate(records):
        lacking = [name for name in _NEEDED if name not in record]
        if lacking or record["move"] not in _MOVES:
            wrong = f"lacks {', '.join(lacking)}" if lacking else f"has move={record['move']!r}"
            raise DataError(f"record {number} {wrong}: give split_merge_history_ of a fit.")
    if figure is None:
        figure = new_axes(figsize=(7.4, 4.6)).figure
        figure.clear()
    axes = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
    _draw_counts(axes[0], records, n_true)
    _draw_ratios(axes[1], records)
    return axes


def _draw_counts(ax: Axes, records: Sequence[Mapping[str, Any]], n_true: int | None) -> None:
    from matplotlib.ticker import MaxNLocator

    counts = [records[0]["n_before"], *(record["n_after"] for record in records)]
    ax.step(range(len(counts)), counts, where="post", color="0.75", linewidth=1.2, zorder=1)
    if n_true is not None:
        ax.axhline(n_true, color="0.4", linewidth=0.8, linestyle=":", label="true number")
    for move, (marker, color) in _MOVES.items():
        for moved in (True, False):
            at = [
                i
                for i, record in enumerate(records, start=1)
                if record["move"] == move and (record["n_after"] != record["n_before"]) == moved
            ]
            if not at:
                continue
            hue = cluster_color(color)
            ax.scatter(
                at,
                [counts[i] for i in at],
                marker=marker,
                s=34,
                facecolors=hue if moved else "white",
                edgecolors=hue,
                linewidths=1.0,
                zorder=2,
                label=f"{move}s" if moved else f"no {move}",
            )
    ax.set_ylabel("clusters")
    for axis in (ax.xaxis, ax.yaxis):  # moves and clusters are counted
        axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    if len(set(counts)) == 1:  # ticks of a range below one would not be whole
        ax.set_ylim(counts[0] - 1, counts[0] + 1)
    ax.legend(frameon=False, fontsize="small", ncols=3, loc="best")
    ax.grid(axis="y", alpha=0.25, linewidth=0.6)


def _draw_ratios(ax: Axes, records: Sequence[Mapping[str, Any]]) -> None:
    from matplotlib.ticker import ScalarFormatter, SymmetricalLogLocator

    ax.axhline(0, color="0.4", linewidth=0.8)
    for move, (marker, color) in _MOVES.items():
        told = [
            (i, float(record["best_log_ratio"]), record["n_after"] != record["n_before"])
            for i, record in enumerate(records, start=1)
            if record["move"] == move and record.get("best_log_ratio") is not None
        ]
        hue = cluster_color(color)
        faces = [hue if moved else "white" for _, _, moved in told]
        at, values = [i for i, _, _ in told], [value for _, value, _ in told]
        ax.scatter(at, values, marker=marker, s=24, facecolors=faces, edgecolors=hue)
    ax.set_yscale("symlog", linthresh=10)
    ax.yaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=10, subs=[1, 3]))
    ax.yaxis.set_major_formatter(ScalarFormatter())
    ax.tick_params(axis="y", labelsize="small")
    ax.set_ylabel("best log-ratio")
    ax.set_xlabel("move")
    ax.grid(axis="y", alpha=0.25, linewidth=0.6)
