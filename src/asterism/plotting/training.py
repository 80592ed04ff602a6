"""Learning curves from a training history.

A history is a list of records, one mapping a step, with any of the keys ``step``, ``loss``,
``lr``, ``seconds``… The raw curve is faint; the bold one is its running mean

    s_i = mean of the finite y_j with |j − i| ≤ min(w / 2, i).

At the start, where a loss falls steeply, the window shrinks, so that the curve starts where it
should; at the end, where it is flat and noisy, the window is cut, so that the curve stays smooth.

The vertical axis is logarithmic when all values are positive and span two decades or more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from asterism.exceptions import DataError
from asterism.plotting.style import cluster_color, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_history", "running_mean"]


def running_mean(values: np.ndarray, window: int) -> np.ndarray:
    """Centred mean over ``window`` entries, fewer near the ends; skips NaN and infinity.

    An even window is widened by one, to be centred. NaN where the window holds nothing finite.

    Examples
    --------
    >>> running_mean(np.array([3.0, np.nan, 6.0, 9.0]), 3)
    array([3. , 4.5, 7.5, 7.5])
    """
    finite = np.isfinite(values)
    total = np.concatenate([[0.0], np.cumsum(np.where(finite, values, 0.0))])
    count = np.concatenate([[0], np.cumsum(finite)])
    at = np.arange(len(values))
    half = np.minimum(at, window // 2)
    low, high = at - half, np.minimum(at + half + 1, len(values))
    with np.errstate(invalid="ignore"):
        return (total[high] - total[low]) / (count[high] - count[low])


def plot_history(
    history: Sequence[Mapping[str, Any]] | Any,
    *,
    keys: Sequence[str] = ("loss",),
    smooth: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw learning curves.

    Parameters
    ----------
    history : sequence of mappings, or an estimator
        One record a step, or what holds them as ``history_``. Records without a key are left out of
        that key's curve. The horizontal axis is ``step`` where every record has it, else the
        record's place.
    keys : sequence of str
        Curves to draw.
    smooth : int, optional
        Width in records of the running mean; 1 for none. By default a twentieth of the curve.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> from asterism.plotting import plot_history
    >>> history = [{"step": i, "loss": 10.0 ** -i} for i in range(5)]
    >>> ax = plot_history(history)
    >>> ax.get_xlabel(), ax.get_ylabel(), ax.get_yscale()
    ('step', 'loss', 'log')
    """
    history = getattr(history, "history_", history)
    if not isinstance(history, Sequence):
        raise DataError(f"{type(history).__name__} holds no history_: give a fitted estimator.")
    if len(history) == 0 or len(keys) == 0:
        raise DataError(
            f"got {len(history)} history records and {len(keys)} keys; give at least one of each."
        )
    if smooth is not None and smooth < 1:
        raise DataError(f"smooth must be a whole number of records, 1 or more; got {smooth}.")
    curves = {key: _curve(history, key) for key in keys}
    ax = new_axes(ax, figsize=(7.4, 3.4))
    for i, (key, (steps, values)) in enumerate(curves.items()):
        window = max(len(values) // 20, 1) if smooth is None else smooth
        color = cluster_color(i)
        marker = "o" if len(values) == 1 else None
        if window > 1:
            ax.plot(steps, values, color=color, alpha=0.3, linewidth=0.8)
            values = running_mean(values, window)
        ax.plot(steps, values, color=color, linewidth=1.8, label=key, marker=marker)
    ax.set_xlabel("step" if _has_steps(history) else "record")
    if _spans_decades(np.concatenate([values for _, values in curves.values()])):
        ax.set_yscale("log")
    if len(curves) == 1:
        ax.set_ylabel(keys[0])
    else:
        ax.legend(frameon=False)
    ax.grid(axis="y", alpha=0.25, linewidth=0.6)
    return ax


def _has_steps(history: Sequence[Mapping[str, Any]]) -> bool:
    return all("step" in record for record in history)


def _curve(history: Sequence[Mapping[str, Any]], key: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the steps and values (n,) of the records that hold ``key``."""
    has_steps = _has_steps(history)
    pairs = [
        (float(record["step"]) if has_steps else float(place), float(record[key]))
        for place, record in enumerate(history)
        if record.get(key) is not None
    ]
    if not pairs:
        known = ", ".join(sorted({name for record in history for name in record})) or "nothing"
        raise DataError(f"no history record holds {key!r}; the records hold {known}.")
    steps, values = np.array(pairs).T
    return steps, values


def _spans_decades(values: np.ndarray, decades: float = 2.0) -> bool:
    values = values[np.isfinite(values)]
    return len(values) > 0 and values.min() > 0 and values.max() >= 10**decades * values.min()
