"""Columns with heavy tails pulled in, so that a few extreme cells do not outshout all others.

A column of excess kurtosis above five, of deviation s, becomes

    x' = g · asinh(2 (x − c) / r),    g = s / deviation of asinh(2 (x − c) / r)

about linear near its centre, logarithmic far out, and as widely spread as before. The unit r is s,
and c the mean, unless a few cells make up most of s: with w the deviation that the middle 95 % of
the cells tell of (their range over 3.92), r is no more than 3 w. Where that limits it c is the
median, and what is farther from there than 15 w counts as that far, so that groups out there are
one in this column. Where the middle is a single value, up to rounding, there is no w and r is s.
A column of two values stays what it was up to its place. Each cell is treated by itself, so that
new rows can be.

Burbidge, Magee & Robb, "Alternative transformations to handle extreme values of the dependent
variable", Journal of the American Statistical Association 1988.
"""

from typing import NamedTuple

import numpy as np

__all__ = ["Tails", "find_tails"]

HEAVY = 5.0
"""Excess kurtosis from which on a column is pulled in: that of a Gaussian is 0, of a Laplace 3."""

_PINCH = 2.0
_LOW, _BETWEEN = 0.025, 3.92  # outside the middle on either side; deviations of a Gaussian in it
_WIDEST = 3.0
_MOST = 10.0  # fifteen deviations of the middle
_NOISE, _ROUNDING = 1e-9, 8 * float(np.finfo(np.float32).eps)  # of s, and of a cell
_FURTHEST = 300.0  # beyond it what is let out has no square


class Tails(NamedTuple):
    """Heavy columns of centred rows."""

    pinch: np.ndarray  # (D,) 2 / r, zero for columns that stay as they are
    gain: np.ndarray  # (D,)
    centre: np.ndarray  # (D,)
    most: np.ndarray  # (D,) what 2 (x − c) / r is limited to

    def pull(self, X: np.ndarray) -> np.ndarray:
        """Rows (Q, D) with the heavy columns pulled in."""
        heavy = np.flatnonzero(self.pinch)
        if len(heavy):
            X = X.copy()
            off = self.pinch[heavy] * (X[:, heavy] - self.centre[heavy])
            off = np.clip(off, -self.most[heavy], self.most[heavy])
            X[:, heavy] = self.gain[heavy] * np.arcsinh(off)
        return X

    def release(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Undo :meth:`pull`: rows (Q, D), and by how much (Q,) they were thinned, as logarithms.

        A density of the rows let out becomes one of those pulled in by adding the latter to its
        logarithm.
        """
        heavy = np.flatnonzero(self.pinch)
        X, pulled = X.astype(np.float64), X[:, heavy] / self.gain[heavy]
        pulled = np.clip(pulled, -_FURTHEST, _FURTHEST)
        X[:, heavy] = np.sinh(pulled) / self.pinch[heavy] + self.centre[heavy]
        slope = np.log(np.cosh(pulled)) - np.log(self.gain[heavy] * self.pinch[heavy])
        return X, slope.sum(axis=1)


def find_tails(
    X: np.ndarray,
    origin: np.ndarray | float = 0.0,
    deviation: np.ndarray | None = None,
) -> Tails:
    """Tails of the columns of centred rows (N, D).

    ``origin`` (D,) is what was taken off them: a width that rounding could have made is none. Rows
    that are a sample come with the ``deviation`` (D,) of all, which cells they lack may have made.

    The forty rows that are near each other take up a tenth of the range, then half of it:

    >>> X = np.concatenate([np.arange(-20.0, 20.0), [360.0]])[:, None]
    >>> pulled = find_tails(X - X.mean(axis=0)).pull(X - X.mean(axis=0))
    >>> [round(float(np.ptp(x[:40]) / np.ptp(x)), 2) for x in (X, pulled)]
    [0.1, 0.54]
    """
    X = X.astype(np.float64)
    own = X.std(axis=0)
    z = X / np.where(own > 0, own, 1.0)
    heavy = ((z - z.mean(axis=0)) ** 4).mean(axis=0) - 3 > HEAVY
    deviation = own if deviation is None else np.maximum(own, deviation)
    few, middle, widest = _middles(X, heavy | (own < deviation / 2), deviation, origin)
    pulled = np.flatnonzero(heavy | few)
    centre, most = np.where(few, middle, 0.0), np.where(few, _MOST, np.inf)
    pinch, gain = np.zeros((2, X.shape[1]))
    pinch[pulled] = _PINCH / np.where(few, widest, deviation)[pulled]
    off = pinch[pulled] * (X[:, pulled] - centre[pulled])
    gain[pulled] = np.arcsinh(np.clip(off, -most[pulled], most[pulled])).std(axis=0)
    gain[pulled] = deviation[pulled] / gain[pulled]
    return Tails(pinch, gain, centre, most)


def _middles(
    X: np.ndarray, asked: np.ndarray, deviation: np.ndarray, origin: np.ndarray | float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of columns: whether few cells make up most of the deviation, the median, and 3 w."""
    few = np.zeros(len(asked), dtype=bool)
    middle, widest = np.zeros((2, len(asked)))
    if asked.any():
        low, middle[asked], high = np.quantile(X[:, asked], [_LOW, 0.5, 1 - _LOW], axis=0)
        widest[asked] = _WIDEST * (high - low) / _BETWEEN
        least = np.maximum(_ROUNDING * np.abs(middle + origin), _NOISE * deviation)
        few = (least < widest) & (widest < deviation)
    return few, middle, widest
