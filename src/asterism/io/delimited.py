r"""Text tables (CSV, TSV and their kin): find the separator and the header, then parse strictly.

Separator: of ``, ; tab |`` the one that splits the first lines most evenly, then the one that
leaves most numbers, then the one that gives most fields. Where none splits them, runs of blanks
do if what they leave is mostly numbers; else the table has one column.

Header, from the first row and the lines below it (missing cells say nothing):

1. a text cell above a column of numbers              ->  header
2. else 0, 1, 2, ... or 1, 2, 3, ..., the numbers of
   three columns or more, as pandas names them        ->  header
3. else any number in the first row                   ->  no header
4. else (all text) distinct, non-empty cells, none of
   which occurs again below it                        ->  header
5. otherwise                                          ->  no header

By 2, numbers below must be of another kind, so that codes of categories are not cut short: one of
them not whole, or eight columns and more that do not go on counting. Every other first row of an
all-numeric table is data; ``header=`` overrules that. Columns without a name are called ``x0, x1,
...`` by position. Blank lines are skipped; every other line must have as many fields as the first.
Cells equal to one of ``MISSING_TOKENS`` are missing.
"""

import contextlib
import csv
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TextIO

from asterism.exceptions import TableError
from asterism.io.sources import Source

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "MISSING_TOKENS",
    "Layout",
    "detect_layout",
    "detect_separator",
    "duplicates",
    "few",
    "looks_like_header",
    "parse_number",
    "parsing",
    "read_delimited",
    "refuse_ragged",
]

# What pandas takes for missing, and the question mark of many public data sets.
MISSING_TOKENS = frozenset(
    {"", "?", "NA", "N/A", "n/a", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None", "<NA>"}
    | {"#N/A", "#NA", "#N/A N/A", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"}
)
_SEPARATORS = (",", ";", "\t", "|")
_BLANKS = r"\s+"
_SAMPLE_LINES = 200
_FEW = 8  # columns that whole numbers could count by chance
_EVEN = 0.8  # share of lines that must agree on the number of fields, or of cells on being numbers

Row = list[str]


class Layout(NamedTuple):
    """How a text table is written."""

    sep: str
    names: Row
    has_header: bool
    decimal: str
    encoding: str | None


def read_delimited(source: Source, *, text: Sequence[str] = (), **options: Any) -> "pd.DataFrame":
    """Parse the text table; separator and header are detected where not given.

    Columns named in ``text`` are kept letter for letter. ``options`` are those of
    :func:`detect_layout`.
    """
    layout = detect_layout(source, **options)
    with parsing(source, layout, dict.fromkeys(text, "str")) as reader:
        frame = reader.read()
    # pandas fills short rows with missing cells, so only those with a missing end are suspects.
    if len(layout.names) > 1 and frame.iloc[:, -1].isna().any():
        refuse_ragged(source, layout)
    return frame


def detect_layout(
    source: Source,
    *,
    sep: str | None = None,
    header: bool | Literal["auto"] = "auto",
    decimal: str = ".",
    encoding: str | None = None,
) -> Layout:
    """Look at the first lines, and find separator and header where they are not given."""
    if header not in (True, False, "auto"):
        raise TableError(f"header={header!r} is none of 'auto', True, False")
    if sep is not None and len(sep) != 1 and sep != _BLANKS:
        raise TableError(rf"sep={sep!r} is neither one character nor '\s+' (runs of blanks)")
    if len(decimal) != 1:
        raise TableError(f"decimal={decimal!r} is not one character, such as ',' or '.'")
    with source.text(encoding) as handle:
        lines = list(itertools.islice(handle, _SAMPLE_LINES))
    sep = sep or detect_separator(lines)
    rows = _sample_rows(lines, sep, source)
    has_header = looks_like_header(rows, decimal) if header == "auto" else header
    if has_header and len(rows) == 1:
        raise TableError(f"{source.name} has only a header, no rows; if it is data, header=False")
    width = len(rows[0])
    names = _column_names(rows[0], source) if has_header else [f"x{j}" for j in range(width)]
    return Layout(sep, names, has_header, decimal, encoding)


@contextlib.contextmanager
def parsing(
    source: Source, layout: Layout, types: Mapping[str, str], rows: int | None = None
) -> Iterator[Any]:
    """Yield a pandas reader over the table: whole, or so many rows at a time."""
    import pandas as pd

    kinds: dict[str, Any] = {name: types[name] for name in layout.names if name in types}
    try:
        with (
            source.text(layout.encoding) as handle,
            pd.read_csv(
                handle,
                sep=layout.sep,
                header=0 if layout.has_header else None,
                names=layout.names,
                index_col=False,
                dtype=kinds,
                skipinitialspace=True,
                na_values=sorted(MISSING_TOKENS),
                keep_default_na=False,
                decimal=layout.decimal,
                low_memory=False,
                iterator=True,
                chunksize=rows,
            ) as reader,
        ):
            yield reader
    except pd.errors.ParserError as error:
        refuse_ragged(source, layout)
        raise TableError(f"{source.name} cannot be parsed: {error}") from error


def detect_separator(lines: list[str]) -> str:
    r"""Separator of the lines: one of ``, ; tab |``, or ``\s+`` for runs of blanks.

    Examples
    --------
    >>> detect_separator(["height; weight", "1,80; 77,5"])
    ';'
    """
    scored = []
    for sep in _SEPARATORS:
        rows = _try_split(lines, sep)
        width, share = _usual_width(rows)
        if width > 1 and share >= _EVEN:
            scored.append((share, _numeric_share(rows), width, sep))
    if scored:
        return max(scored, key=lambda score: score[:3])[3]
    rows = _try_split(lines, _BLANKS)
    width, share = _usual_width(rows)
    blanks = width > 1 and share >= _EVEN and _numeric_share(rows[1:] or rows) >= _EVEN
    return _BLANKS if blanks else ","


def looks_like_header(rows: list[Row], decimal: str = ".") -> bool:
    """Tell whether the first row names the columns, by the five rules of this module.

    Examples
    --------
    >>> looks_like_header([["height", "weight"], ["1.8", "77"]])
    True
    >>> looks_like_header([["5.1", "setosa"], ["4.9", "setosa"]])
    False
    """
    first, *below = rows
    any_number = False
    for j, cell in enumerate(first):
        if cell.strip() in MISSING_TOKENS:
            continue
        if parse_number(cell, decimal) is not None:
            any_number = True
            continue
        column = [row[j].strip() for row in below if row[j].strip() not in MISSING_TOKENS]
        if column and all(parse_number(value, decimal) is not None for value in column):
            return True
    if any_number:
        return _counts_columns(first, below, decimal)
    return (
        len({cell.strip() for cell in first}) == len(first)
        and all(cell.strip() for cell in first)
        and not any(cell == row[j] for row in below for j, cell in enumerate(first))
    )


def _counts_columns(first: Row, below: list[Row], decimal: str) -> bool:
    """Tell whether the first row is the numbers of its columns, the second rule of this module."""
    unnamed = not first[0].strip()  # an index, which pandas writes without a name
    cells = [cell.strip() for cell in first[unnamed:]]
    width = len(cells)
    if width < 3 or cells not in ([str(j + start) for j in range(width)] for start in (0, 1)):
        return False
    values = [parse_number(cell, decimal) for row in below for cell in row[unnamed:]]
    if any(value is not None and not value.is_integer() for value in values):
        return True
    return bool(below) and width >= _FEW and below[0][unnamed].strip() != str(int(cells[-1]) + 1)


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


def _try_split(lines: list[str], sep: str) -> list[Row]:
    try:
        return [row for _, row in _numbered(lines, sep)]
    except csv.Error:  # a wide line left whole is longer than the csv module takes
        return []


def _numbered(lines: Iterable[str], sep: str) -> Iterator[tuple[int, Row]]:
    """Rows that are not blank, each with the number of the line on which it ends."""
    if sep == _BLANKS:
        yield from ((i, row) for i, row in enumerate(map(str.split, lines), 1) if row)
        return
    reader = csv.reader(lines, delimiter=sep, skipinitialspace=True)
    for row in reader:
        if len(row) > 1 or (row and row[0].strip()):
            yield reader.line_num, row


def _sample_rows(lines: list[str], sep: str, source: Source) -> list[Row]:
    try:
        numbered = list(_numbered(lines, sep))
    except csv.Error as error:
        raise TableError(f"{source.name} cannot be parsed: {error}") from error
    if not numbered:
        raise TableError(f"{source.name} is empty: its first lines are blank")
    if len(lines) == _SAMPLE_LINES and len(numbered) > 1:
        numbered.pop()  # a quoted cell may have been cut
    for line, row in numbered:
        _check_width(source, line, len(row), len(numbered[0][1]))
    return [row for _, row in numbered]


def refuse_ragged(source: Source, layout: Layout) -> None:
    """Raise for the first line that has not as many fields as the first row."""
    handle: TextIO
    try:
        with source.text(layout.encoding) as handle:
            for line, row in _numbered(handle, layout.sep):
                _check_width(source, line, len(row), len(layout.names))
    except csv.Error as error:
        raise TableError(f"{source.name} cannot be parsed: {error}") from error


def _check_width(source: Source, line: int, found: int, width: int) -> None:
    if found != width:
        raise TableError(
            f"{source.name}, line {line}: expected {width} fields as in the first row, found "
            f"{found}; mend the line, or give the right sep="
        )


def _column_names(cells: Row, source: Source) -> Row:
    names = [cell.strip() or f"x{j}" for j, cell in enumerate(cells)]
    if repeated := duplicates(names):
        raise TableError(
            f"{source.name} names several columns {', '.join(map(repr, repeated))}: rename them, "
            "or header=False if the first row is data"
        )
    return names


def _usual_width(rows: list[Row]) -> tuple[int, float]:
    if not rows:
        return 0, 0.0
    width, count = Counter(map(len, rows)).most_common(1)[0]
    return width, count / len(rows)


def _numeric_share(rows: list[Row]) -> float:
    # A decimal comma counts too: the separator is sought before the decimal sign is known.
    cells = [cell for row in rows for cell in row if cell.strip() not in MISSING_TOKENS]
    numbers = sum(parse_number(cell.replace(",", ".")) is not None for cell in cells)
    return numbers / max(len(cells), 1)
