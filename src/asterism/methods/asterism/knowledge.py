"""What a user knows of some rows: classes, pairs that belong together, pairs that do not.

Rows that are known must be read by the network, so the context holds them: every linked row, and of
the labelled ones at least one a class.
"""

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from asterism.exceptions import AsterismWarning, DataError, tell
from asterism.functional.constraints import Constraints, check_pairs, make_constraints

__all__ = ["Knowledge"]

MOST_CLASSES = 500


class Knowledge(NamedTuple):
    """Knowledge of a table of N rows."""

    classes: np.ndarray  # (N,) 0, 1, … or −1 where unknown
    must_link: np.ndarray  # (M, 2) row numbers
    cannot_link: np.ndarray  # (C, 2)
    exclusive: bool = True  # whether rows of two classes may not share a cluster

    @classmethod
    def of(
        cls, n: int, y: Any = None, must_link: Any = None, cannot_link: Any = None
    ) -> "Knowledge":
        """Knowledge from what ``fit`` was given."""
        must_link = check_pairs(must_link, n, "must_link")
        knowledge = cls(_classes(n, y), must_link, check_pairs(cannot_link, n, "cannot_link"))
        knowledge.constraints(np.arange(n))  # refuses contradictions, in the user's row numbers
        return knowledge

    def within(self, most: int) -> "Knowledge":
        """The same where at most so many clusters were asked for: more classes must share them."""
        found, _ = self.census
        if found <= most:
            return self
        tell(
            f"n_clusters={most} is fewer than the {found} classes of y: some will share a cluster",
            AsterismWarning,
        )
        return self._replace(exclusive=False)

    def rows(self, most: int, chance: np.random.RandomState) -> np.ndarray:
        """Rows a context must hold, at most ``most``: linked ones, and some of every class."""
        linked = np.unique(np.concatenate([self.must_link, self.cannot_link]))
        shuffled = chance.permutation(np.flatnonzero(self.classes >= 0))
        _, first = np.unique(self.classes[shuffled], return_index=True)
        needed = np.union1d(linked, shuffled[first])
        if len(needed) > most:
            raise DataError(
                f"links and classes name {len(needed)} rows, of which the network can read "
                f"{most} with the others: raise context_size to {2 * len(needed)} or name fewer"
            )
        labelled = np.setdiff1d(shuffled, needed, assume_unique=True)
        return np.union1d(needed, chance.permutation(labelled)[: most - len(needed)])

    @property
    def census(self) -> tuple[int, int]:
        """Number of classes, and of the rows whose class is known."""
        return int(self.classes.max(initial=-1)) + 1, int((self.classes >= 0).sum())

    @property
    def least(self) -> int:
        """Fewest clusters that keep apart what must be."""
        found = self.census[0] if self.exclusive else 1
        return max(1, found, 2 if len(self.cannot_link) else 1)

    def constraints(self, rows: np.ndarray, heads: np.ndarray | None = None) -> Constraints | None:
        """Constraints on some rows, numbered by their place.

        ``heads`` names for each of them the first equal one, with which it belongs together; that
        counts only where something else is known.
        """
        place = np.full(len(self.classes), -1)
        place[rows] = np.arange(len(rows))
        classes, must_link = self.classes[rows], place[self.must_link]
        if heads is not None and ((classes >= 0).any() or len(must_link) + len(self.cannot_link)):
            equal = np.column_stack([heads, np.arange(len(rows))])
            must_link = np.concatenate([must_link, equal])
        if not self.exclusive:
            known = np.flatnonzero(classes >= 0)
            known = known[np.argsort(classes[known], kind="stable")]
            same = classes[known[:-1]] == classes[known[1:]]
            chain = np.column_stack([known[:-1], known[1:]])[same]
            classes, must_link = None, np.concatenate([must_link, chain])
        return make_constraints(len(rows), classes, must_link, place[self.cannot_link])

    def clusters(self, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Cluster of every class, from the clusters of some rows that hold them all."""
        classes = self.classes[rows]
        found = np.zeros(self.census[0], dtype=np.int64)
        found[classes[classes >= 0]] = labels[classes >= 0]
        return found


def _classes(n: int, y: Any) -> np.ndarray:
    """Classes as 0, 1, …, with −1 for unknown: −1, NaN, None or an empty text."""
    if y is None:
        return np.full(n, -1)
    y = np.asarray(y) if hasattr(y, "dtype") else np.array(y, dtype=object)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.shape != (n,):
        raise DataError(f"y has shape {y.shape}, X has {n} rows: give one class a row, -1 unknown")
    if y.dtype.kind == "f" and (y[np.isfinite(y)] % 1).any():
        tell(
            "y holds fractions, so it is taken for a measurement and ignored: give classes",
            AsterismWarning,
        )
        return np.full(n, -1)
    if negative := [value for value in y.tolist() if isinstance(value, Real) and value < -1]:
        raise DataError(f"y holds {negative[0]:g}: classes are 0, 1, ..., and -1 where unknown")
    known = (y != -1) & ~pd.isna(y) & (y != "")
    names, codes = np.unique(y[known].astype(str), return_inverse=True)
    if len(names) > MOST_CLASSES:
        raise DataError(f"y holds {len(names)} classes: give at most {MOST_CLASSES}, -1 unknown")
    classes = np.full(n, -1)
    classes[known] = codes
    return classes
