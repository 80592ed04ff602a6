"""What the encoder learns from one training column, and how it says so.

    fit_column(series) -> feature, notes

Numbers give median, centre and scale over the cells present (table in
:mod:`asterism.io.features`), categories the list of the most frequent ones. What fills missing
cells is only told here: it is the encoder's choice. Texts nearly all of which differ are refused as
identifiers; a column that counts the rows is warned of.
"""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from asterism.exceptions import AsterismWarning, TableError, tell
from asterism.io.cells import few, parse_number
from asterism.io.columns import Numbers, Tokens, as_tokens, read_column
from asterism.io.features import CategoricalFeature, Feature, NumericFeature, Scaling

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["fit_categorical", "fit_column", "fit_numeric"]

_IQR_OF_GAUSSIAN = 1.349
_FEW_ROWS = 20  # so few texts may all differ and still be categories
_NEARLY_ALL = 0.95


def fit_column(
    series: "pd.Series[Any]",
    scaling: Scaling = "standard",
    max_categories: int = 30,
    *,
    categorical: bool = False,
    missing: str = "column",
) -> tuple[Feature, list[str]]:
    """Learn one training column, with notes on what was done to it.

    A column worth nothing gives a feature without ``names``. With ``categorical`` numbers are taken
    for categories.

    Examples
    --------
    >>> import pandas as pd
    >>> feature, notes = fit_column(pd.Series([1.0, None, 3.0], name="height"))
    >>> feature.center, feature.scale, feature.names
    (2.0, 1.0, ['height', 'height_missing'])
    >>> notes[0]
    "'height': 1 missing, filled with the median 2"
    """
    column = as_tokens(series) if categorical else read_column(series)
    name = str(series.name)
    if isinstance(column, Numbers):
        if np.isnan(column.values).all():
            nothing = NumericFeature(name, 0.0, 0.0, 1.0, varies=False, indicator=False)
            return nothing, [f"{name!r} dropped: every cell is missing"]
        _warn_of_row_numbers(name, column.values, series.index)
        numeric = fit_numeric(name, column, scaling)
        return numeric, _numeric_notes(numeric, int(np.isnan(column.values).sum()), missing)
    _refuse_identifier(name, column)
    feature = fit_categorical(name, column, max_categories)
    return feature, _categorical_notes(feature, column, missing)


def fit_numeric(column: str, numbers: Numbers, scaling: Scaling) -> NumericFeature:
    """Median, centre and scale of the cells present, of which there is at least one."""
    missing = np.isnan(numbers.values)
    present = numbers.values[~missing] if missing.any() else numbers.values
    varies = bool(present.min() < present.max())
    center, scale = 0.0, 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        median = float(np.median(present))
        if varies and scaling != "none":
            center, scale = _center_and_spread(present)
        if varies and scaling == "robust":
            low, high = np.percentile(present, [25, 75])
            center, scale = median, float((high - low) / _IQR_OF_GAUSSIAN) or scale
    if not np.isfinite([median, center, scale]).all():
        raise TableError(
            f"column {column!r} reaches {np.abs(present).max():g}, too large to be scaled: "
            "take logarithms, or mend the cells"
        )
    return NumericFeature(
        column, median, center, scale, varies, bool(missing.any()), odd=numbers.odd
    )


def _center_and_spread(x: np.ndarray) -> tuple[float, float]:
    # Divided by the largest deviation, no square can underflow or overflow.
    center = float(x.mean())
    deviation = np.abs(x - center)
    largest = float(deviation.max())
    deviation /= largest
    return center, largest * math.sqrt(float(np.mean(np.square(deviation, out=deviation))))


def fit_categorical(column: str, tokens: Tokens, max_categories: int) -> CategoricalFeature:
    """List the most frequent categories, in alphabetical order; there is at least one."""
    counts = np.bincount(tokens.codes[tokens.codes >= 0], minlength=len(tokens.names))
    ranked = sorted(zip(-counts, tokens.names, strict=True))
    kept = sorted(name for _, name in ranked[:max_categories]) if len(ranked) > 1 else []
    return CategoricalFeature(
        column,
        tuple(kept),
        fill=ranked[0][1],
        other=len(ranked) > max_categories,
        indicator=bool((tokens.codes < 0).any()),
    )


def _numeric_notes(feature: NumericFeature, n_missing: int, missing: str) -> list[str]:
    notes = []
    if feature.odd:
        odd = few(feature.odd, 5)
        notes.append(f"{feature.column!r} holds numbers, but for {odd}: taken for missing")
    if not feature.varies:
        notes.append(f"{feature.column!r} dropped: always {feature.fill:g}")
    elif n_missing:
        notes.append(_filled(feature, n_missing, missing, f"with the median {feature.fill:g}"))
    return notes + _indicator_note(feature)


def _categorical_notes(feature: CategoricalFeature, tokens: Tokens, missing: str) -> list[str]:
    if not feature.categories:
        notes = [f"{feature.column!r} dropped: always {feature.fill!r}"]
        return notes + _indicator_note(feature)
    n_missing = int((tokens.codes < 0).sum())
    notes = []
    if n_missing:
        by_column = f"with the most frequent category, {feature.fill!r}"
        notes.append(_filled(feature, n_missing, missing, by_column))
    text = f"{feature.column!r} one-hot encoded: {len(feature.categories)} categories"
    if feature.other:
        text += f", and {len(tokens.names) - len(feature.categories)} rarer ones together as other"
    return [*notes, text, *_indicator_note(feature)]


def _filled(feature: Feature, n_missing: int, missing: str, by_column: str) -> str:
    how = by_column if missing == "column" else "from the rows most alike"
    return f"{feature.column!r}: {n_missing} missing, filled {how}"


def _indicator_note(feature: Feature) -> list[str]:
    name = feature.column
    return [f"'{name}_missing' tells where {name!r} was missing"] if feature.indicator else []


def _refuse_identifier(name: str, tokens: Tokens) -> None:
    n_present = int((tokens.codes >= 0).sum())
    if n_present > _FEW_ROWS and len(tokens.names) >= _NEARLY_ALL * n_present:
        advice = ""
        if all(parse_number(text, ",") is not None for text in tokens.names):
            advice = "if these are numbers, read them with decimal=','; else "
        raise TableError(
            f"column {name!r} looks like an identifier: {len(tokens.names)} distinct texts in "
            f"{n_present} rows, such as {tokens.names[0]!r}; {advice}leave it out with "
            f"id_column={name!r} (--id {name}) or drop=[{name!r}] (--drop {name})"
        )


def _warn_of_row_numbers(name: str, values: np.ndarray, index: Any) -> None:
    counts = [np.arange(len(values))]
    if index.dtype.kind == "i" and index.is_unique:  # a sample keeps the numbers of its rows
        counts.append(np.asarray(index))
    if len(values) > _FEW_ROWS and any(np.ptp(values - count) == 0 for count in counts):
        tell(
            f"column {name!r} merely counts the rows; if it is an identifier, leave it out with "
            f"id_column={name!r} (--id {name}) or drop=[{name!r}] (--drop {name})",
            AsterismWarning,
        )
