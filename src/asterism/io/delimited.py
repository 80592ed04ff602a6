r"""Text tables (CSV, TSV and their kin): find the separator and the header, then parse strictly.

Separator: of ``, ; tab |`` the one that splits the first lines most evenly, then the one that
leaves most numbers, then the one that gives most fields. Where none splits them, runs of blanks
do if what they leave is mostly numbers; else the table has one column.

Header: by the rules of :mod:`.headers`; ``header=`` overrules them. Columns without a name are
called ``x0, x1, ...`` by position.

Blank lines are skipped; every other line must have as many fields as the first. Cells equal to one
of ``MISSING_TOKENS`` are missing.
"""

import contextlib
import csv
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TextIO

from asterism.exceptions import TableError
from asterism.io.cells import MISSING_TOKENS, Row, duplicates, few, parse_number
from asterism.io.headers import looks_like_header
from asterism.io.sources import Source

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Layout",
    "detect_layout",
    "detect_separator",
    "parsing",
    "read_delimited",
    "refuse_ragged",
]

_SEPARATORS = (",", ";", "\t", "|")
_BLANKS = r"\s+"
_SAMPLE_LINES = 200
_EVEN = 0.8  # share of lines that must agree on the number of fields, or of cells on being numbers


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
            f"{source.name} names several columns {few(repeated, 20)}: rename them, "
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
