"""What one column of a table holds: numbers or categories, and which cells are missing.

    read_column(series) -> Numbers(values, odd)     float64, missing is NaN; or
                           Tokens(codes, names)     codes index names, missing is −1

A column counts as numbers when its type is numeric or boolean, or when its text reads as numbers
(or as True and False) in at least 90 % of the cells that are not missing; the few other texts
(``odd``) then count as missing. A column of the type ``category`` always holds categories. Dates
and infinities are refused, since neither has an agreed place on a scale.

A token is the canonical spelling of a cell (``1``, ``1.0`` and ``"01"`` are ``1``; ``TRUE`` is
``True``), because the type a reader gives to a column depends on what else is in the file.
"""

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from asterism.exceptions import TableError
from asterism.io.cells import MISSING_TOKENS, parse_number

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Numbers", "Tokens", "as_numbers", "as_tokens", "canonical", "read_column"]

_MOSTLY = 0.9
_EXACT_INTEGERS = 2.0**53
_BOOLEANS = {"True": 1.0, "False": 0.0}
_DATE = re.compile(
    r"(\d{4}[-/](0?[1-9]|1[0-2])[-/](0?[1-9]|[12]\d|3[01])"
    r"|(0?[1-9]|[12]\d|3[01])([/.-])(0?[1-9]|[12]\d|3[01])\5\d{4})"
    r"([T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?\s?(Z|[+-]\d{2}:?\d{2})?)?"
)


class Numbers(NamedTuple):
    """A numeric column: ``values (N,)`` in float64, and the texts that were taken for missing."""

    values: np.ndarray
    odd: tuple[str, ...] = ()


class Tokens(NamedTuple):
    """A column of categories: ``codes (N,)`` into the distinct ``names``; −1 is missing."""

    codes: np.ndarray
    names: list[str]


def read_column(series: "pd.Series[Any]") -> Numbers | Tokens:
    """Decide what the column holds, and read it so.

    Examples
    --------
    >>> import pandas as pd
    >>> read_column(pd.Series(["1.5", "?", "2"], name="height")).values
    array([1.5, nan, 2. ])
    >>> read_column(pd.Series(["red", None, "blue"], name="colour"))
    Tokens(codes=array([ 0, -1,  1]), names=['red', 'blue'])
    """
    import pandas as pd

    if _is_numeric(series):
        return Numbers(_finite(series.name, _to_float(series)))
    tokens = as_tokens(series)
    counts = np.bincount(tokens.codes[tokens.codes >= 0], minlength=len(tokens.names))
    enough = _MOSTLY * counts.sum()
    if not tokens.names:
        return Numbers(np.full(len(series), np.nan))
    dates = np.array([_DATE.fullmatch(name) is not None for name in tokens.names])
    if counts[dates].sum() >= enough:
        _refuse_dates(series.name)
    if isinstance(series.dtype, pd.CategoricalDtype):
        return tokens
    numbers = _numbers_of(tokens.names)
    readable = ~np.isnan(numbers)
    if counts[readable].sum() < enough:
        return tokens
    odd = tuple(sorted(np.array(tokens.names, dtype=object)[~readable]))
    return Numbers(_finite(series.name, _spread(numbers, tokens.codes)), odd)


def as_numbers(series: "pd.Series[Any]", odd: tuple[str, ...] = ()) -> np.ndarray:
    """Read as float64 a column known to be numeric; of texts, only ``odd`` ones are missing."""
    if _is_numeric(series):
        return _finite(series.name, _to_float(series))
    tokens = as_tokens(series)
    numbers = _numbers_of(tokens.names)
    for code in np.flatnonzero(np.isnan(numbers)):
        if tokens.names[code] not in odd:
            row = int(np.flatnonzero(tokens.codes == code)[0])
            raise TableError(
                f"column {series.name!r}, row {row + 1}: {tokens.names[code]!r} is not a number, "
                "and the encoder was fitted on numbers; mend the cell or leave it empty"
            )
    return _finite(series.name, _spread(numbers, tokens.codes))


def as_tokens(series: "pd.Series[Any]") -> Tokens:
    """Read a column of any type as canonical texts; only distinct values are looked at."""
    import pandas as pd

    if series.dtype.kind in "mM" or isinstance(series.dtype, pd.PeriodDtype):
        _refuse_dates(series.name)
    try:
        codes, distinct = pd.factorize(series)
    except TypeError as error:
        kind = next(type(v).__name__ for v in series if not pd.api.types.is_hashable(v))
        raise TableError(
            f"column {series.name!r} holds values of type {kind}, not numbers or text: "
            f"{_leave_out(series.name)}"
        ) from error
    spelled = [canonical(value) for value in distinct]
    merged, names = pd.factorize(np.array([*spelled, None], dtype=object))
    # The last entry, None, is factorised to −1, which is where code −1 points.
    return Tokens(merged[codes], [str(name) for name in names])


def canonical(value: Any) -> str | None:
    """One spelling for equal values, None for a missing one.

    Examples
    --------
    >>> canonical(1.0), canonical(" 01"), canonical("true"), canonical("?")
    ('1', '1', 'True', None)
    """
    text = str(value).strip()
    if text in MISSING_TOKENS:
        return None
    if text.lower() in ("true", "false"):
        return text.capitalize()
    number = parse_number(text)
    # Beyond 2^53 long numbers would run together: they are names, not amounts.
    if number is None or not abs(number) < _EXACT_INTEGERS:
        return text
    return str(int(number)) if number.is_integer() else repr(number)


def _is_numeric(series: "pd.Series[Any]") -> bool:
    import pandas as pd

    if isinstance(series.dtype, pd.CategoricalDtype):
        return False
    if pd.api.types.is_complex_dtype(series.dtype):
        raise TableError(
            f"column {series.name!r} holds complex numbers: split it into real and imaginary parts"
        )
    return pd.api.types.is_numeric_dtype(series.dtype) or pd.api.types.is_bool_dtype(series.dtype)


def _to_float(series: "pd.Series[Any]") -> np.ndarray:
    return series.to_numpy(dtype=np.float64, na_value=np.nan)


def _numbers_of(names: list[str]) -> np.ndarray:
    parsed = (_BOOLEANS.get(name, parse_number(name)) for name in names)
    return np.array([np.nan if x is None else x for x in parsed], dtype=np.float64)


def _spread(numbers: np.ndarray, codes: np.ndarray) -> np.ndarray:
    # Code −1 points at the appended NaN.
    return np.append(numbers, np.nan)[codes]


def _finite(name: Any, values: np.ndarray) -> np.ndarray:
    infinite = np.isinf(values)
    if infinite.any():
        row = int(infinite.argmax())
        raise TableError(
            f"column {name!r}, row {row + 1}: {values[row]} is not a finite number; "
            "replace infinities, or leave these cells empty"
        )
    return values


def _refuse_dates(name: Any) -> None:
    raise TableError(
        f"column {name!r} holds dates or times, which have no single scale: derive numbers from "
        f"it (age in days, hour of the day), or {_leave_out(name)}"
    )


def _leave_out(name: Any) -> str:
    return f"leave it out with drop=[{name!r}] (--drop {name})"
