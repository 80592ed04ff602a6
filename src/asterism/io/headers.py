"""Whether the first row of a text table names its columns, from that row and the lines below it.

1. a text cell above a column of numbers              ->  header
2. else 0, 1, 2, ... or 1, 2, 3, ..., as pandas
   numbers three columns and more, texts beside which
   are not met again, and the first may be blank      ->  header
3. else any number in the first row                   ->  no header
4. else (all text) distinct, non-empty cells, none of
   which occurs again below it                        ->  header
5. otherwise                                          ->  no header

By 2, cells below the numbers must be of another kind, so that codes of categories are not cut
short: a fraction, a column of texts, or eight columns and more that neither go on counting, to the
right or down, nor are ranks. With a blank first cell, as over an index, any will do. Every other
first row of an all-numeric table is data. Missing cells say nothing.
"""

from asterism.io.cells import MISSING_TOKENS, Row, duplicates, parse_number

__all__ = ["looks_like_header"]

_FEW = 8  # columns that whole numbers could count by chance


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
    """Tell whether the first row has the numbers of columns, the second rule of this module."""
    cells = [cell.strip() for cell in first]
    places = [j for j, cell in enumerate(cells) if cell.isascii() and cell.isdigit()]
    names = [cells[j] for j in places]
    if len(names) < 3 or names not in ([str(j + k) for j in range(len(names))] for k in (0, 1)):
        return False
    unnamed = not cells[0]
    others = [j for j in range(unnamed, len(cells)) if j not in set(places)]
    texts = [cells[j] for j in others]
    again = any(row[j].strip() == cells[j] for row in below for j in others)
    if again or duplicates(texts) or not all(_is_text(text, decimal) for text in texts):
        return False
    rows = [[row[j].strip() for j in places] for row in below]
    if unnamed or any(_is_fraction(cell, decimal) for row in rows for cell in row):
        return bool(below)
    columns = (
        [cell for cell in column if cell not in MISSING_TOKENS]
        for column in zip(*rows, strict=True)
    )
    if any(column and all(_is_text(cell, decimal) for cell in column) for column in columns):
        return True
    goes_on = {str(int(names[-1]) + 1), names[1]}  # in the next row, or down the first column
    ranks = any(sorted(row) == sorted(names) for row in rows)
    return bool(rows) and len(names) >= _FEW and rows[0][0] not in goes_on and not ranks


def _is_text(cell: str, decimal: str) -> bool:
    return cell not in MISSING_TOKENS and parse_number(cell, decimal) is None


def _is_fraction(cell: str, decimal: str) -> bool:
    number = parse_number(cell, decimal)
    return number is not None and not number.is_integer()
