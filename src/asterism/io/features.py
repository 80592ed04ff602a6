"""How one column becomes features: learnt by :mod:`asterism.io.fitting`, applied to any rows.

    numeric       (x − center) / scale; missing cells take the training median first
    categorical   one column per category, 1/√2 where it applies and 0 elsewhere, so that two
                  different categories are at distance 1; missing cells take the most frequent
    indicator     1 where the cell was missing, else 0; only if training cells were missing

| scaling  | center | scale                                                      |
|----------|--------|------------------------------------------------------------|
| standard | mean   | standard deviation (of the population)                     |
| robust   | median | interquartile range / 1.349, which is the standard         |
|          |        | deviation of a Gaussian; where it is 0, that of the column |
| none     | 0      | 1                                                          |

Missing cells may be filled from other rows afterwards, see :mod:`asterism.io.donors`.

Statistics and scaling run in float64 and only the result is float32, so a small spread on a huge
offset survives. A column of equal values keeps at most its indicator.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np

from asterism.exceptions import AsterismWarning, TableError, tell
from asterism.io.cells import few
from asterism.io.columns import as_numbers, as_tokens

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "MISSING",
    "SCALINGS",
    "CategoricalFeature",
    "Feature",
    "Missing",
    "NumericFeature",
    "Scaling",
    "feature_from_dict",
    "feature_to_dict",
]

Scaling = Literal["standard", "robust", "none"]
SCALINGS: tuple[str, ...] = get_args(Scaling)

Missing = Literal["neighbours", "column"]
MISSING: tuple[str, ...] = get_args(Missing)

_ONE_HOT = 1 / math.sqrt(2)


@dataclass(frozen=True)
class NumericFeature:
    """A column of numbers; ``varies`` is False when only its indicator is worth keeping."""

    kind: ClassVar[str] = "numeric"
    column: str
    fill: float
    center: float
    scale: float
    varies: bool
    indicator: bool
    odd: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """Names of the encoded columns."""
        return [self.column] * self.varies + [f"{self.column}_missing"] * self.indicator

    def encode(self, series: "pd.Series[Any]", out: np.ndarray) -> np.ndarray:
        """Write the features of the cells to ``out (N, len(names))``; tell which were missing."""
        values = as_numbers(series, self.odd)
        missing = np.isnan(values)
        if self.varies:
            with np.errstate(over="ignore"):
                scaled = (np.where(missing, self.fill, values) - self.center) / self.scale
                out[:, 0] = scaled
            if not (bounded := np.isfinite(out[:, 0])).all():
                row = int(bounded.argmin())
                raise TableError(
                    f"column {self.column!r}, row {row + 1}: {values[row]:g} is too large for "
                    "single precision once encoded; take logarithms, or mend the cell"
                )
        if self.indicator:
            out[:, -1] = missing
        return missing


@dataclass(frozen=True)
class CategoricalFeature:
    """A column of categories; ``other`` gathers those that are not listed."""

    kind: ClassVar[str] = "categorical"
    column: str
    categories: tuple[str, ...]
    fill: str
    other: bool
    indicator: bool

    @property
    def names(self) -> list[str]:
        """Names of the encoded columns."""
        one_hot = [f"{self.column}={name}" for name in self.categories]
        other = [f"{self.column}=(other)"] * self.other
        return one_hot + other + [f"{self.column}_missing"] * self.indicator

    def encode(self, series: "pd.Series[Any]", out: np.ndarray) -> np.ndarray:
        """Write the features of the cells to ``out (N, len(names))``; tell which were missing."""
        tokens = as_tokens(series)
        place = {name: j for j, name in enumerate(self.categories)}
        elsewhere = len(self.categories) if self.other else -1
        targets = [place.get(name, elsewhere) for name in tokens.names]
        if self.categories and (unknown := [n for n in tokens.names if n not in place]):
            self._report_unknown(unknown)
        # Code −1, a missing cell, points at the appended entry.
        columns = np.array([*targets, place.get(self.fill, elsewhere)])[tokens.codes]
        out[:] = 0
        rows = np.flatnonzero(columns >= 0)
        if self.categories:
            out[rows, columns[rows]] = _ONE_HOT
        missing = np.asarray(tokens.codes < 0)
        if self.indicator:
            out[:, -1] = missing
        return missing

    def _report_unknown(self, unknown: list[str]) -> None:
        if self.other:
            return
        tell(
            f"column {self.column!r} has categories unknown to the encoder ({few(unknown, 3)}), "
            f"{len(unknown)} in all: they are encoded as zeros",
            AsterismWarning,
        )


Feature = NumericFeature | CategoricalFeature


def feature_from_dict(state: Mapping[str, Any]) -> Feature:
    """Rebuild a feature from ``{"kind": ..., **fields}``."""
    fields = dict(state)
    kinds: dict[str, Callable[..., Feature]] = {
        "numeric": NumericFeature,
        "categorical": CategoricalFeature,
    }
    cls = kinds[fields.pop("kind")]
    return cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()})


def feature_to_dict(feature: Feature) -> dict[str, Any]:
    """Plain values only, as JSON would return them."""
    fields = dataclasses.asdict(feature)
    plain = {k: list(v) if isinstance(v, tuple) else v for k, v in fields.items()}
    return {"kind": feature.kind, **plain}
