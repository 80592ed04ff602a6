"""What one cell of a text table says, and how cells are named in messages."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["MISSING_TOKENS", "Row", "duplicates", "few", "parse_number"]

# What pandas takes for missing, and the question mark of many public data sets.
MISSING_TOKENS = frozenset(
    {"", "?", "NA", "N/A", "n/a", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None", "<NA>"}
    | {"#N/A", "#NA", "#N/A N/A", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"}
)

Row = list[str]


def parse_number(cell: str, decimal: str = ".") -> float | None:
    """Return the number written in the cell, or None; underscores and ``nan`` are no numbers."""
    if "_" in cell:
        return None
    try:
        number = float(cell if decimal == "." else cell.replace(decimal, "."))
    except ValueError:
        return None
    return None if math.isnan(number) else number


def few(values: Sequence[Any], most: int) -> str:
    """The first of the values, for a message.

    Examples
    --------
    >>> few(["height", "weight", "age"], 2)
    "'height', 'weight', ..."
    """
    return ", ".join(map(repr, values[:most])) + (", ..." if len(values) > most else "")


def duplicates(names: Iterable[str]) -> list[str]:
    """Names that occur more than once, in order of appearance."""
    return [name for name, count in Counter(names).items() if count > 1]
