"""From a table of mixed columns to a matrix of features, the same way for every table to come.

    TableEncoder().fit(frame).transform(frame) -> X (N, D) float32

Each column in turn, as read by :mod:`asterism.io.columns` and encoded by
:mod:`asterism.io.features`:

| the training column holds             | it becomes                                           |
|---------------------------------------|------------------------------------------------------|
| the identifier, the label, dropped    | nothing; left out                                    |
| numbers                               | one scaled column; missing cells filled and flagged  |
| at most ``max_categories`` categories | one column per category, missing cells filled, flagged |
| more categories                       | the same for the most frequent, and one for the rest |
| one value only, or none at all        | nothing; dropped, but for the flag of missing cells  |
| texts nearly all distinct (N > 20)    | refused: an identifier tells nothing about clusters  |
| dates                                 | refused: derive numbers first                        |

``notes_`` tells in words what was done, and ``to_dict`` holds all of it in plain JSON values.
Rows are counted from 1 in messages.
"""

import difflib
import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from asterism.exceptions import AsterismWarning, TableError, tell
from asterism.functional.scaling import have_one_length
from asterism.io.cells import few, parse_number
from asterism.io.columns import as_numbers, as_tokens, canonical
from asterism.io.donors import (
    choose_donors,
    donors_from_dict,
    donors_to_dict,
    fill_from_donors,
)
from asterism.io.features import (
    MISSING,
    SCALINGS,
    Feature,
    Missing,
    NumericFeature,
    Scaling,
    feature_from_dict,
    feature_to_dict,
)
from asterism.io.fitting import fit_column
from asterism.io.tables import as_frame

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TableEncoder"]

_VERSION = 2
_READ = (1, 2)  # before 2, missing cells were filled by the column
_UNLABELLED = "-1"
_WIDE, _LOOKED_AT = 8, 1000  # columns that embeddings have, and rows that tell
_SCALING_NOTES = {
    "standard": "(x - mean) / standard deviation",
    "robust": "(x - median) / (interquartile range / 1.349)",
    "none": "left as they are",
}


class TableEncoder:
    """Turn tables of mixed columns into float32 features.

    Parameters
    ----------
    id_column : str, optional
        Column that names the rows; left out.
    label_column : str, optional
        Column of known classes; left out of the features, see :meth:`labels`.
    drop : sequence of str, default=()
        Further columns to leave out.
    scaling : {"standard", "robust", "none"}, default="standard"
        What is done to numeric columns.
    categorical : sequence of str, default=()
        Columns of numbers that are names, such as codes and post codes: taken as categories.
    max_categories : int, default=30
        Categories of a column that get a feature of their own; rarer ones, and values first met
        after ``fit``, share one.
    missing : {"neighbours", "column"}, default="neighbours"
        What fills missing cells: the mean of the rows most alike that have them (see
        :mod:`asterism.io.donors`), or the median or most frequent category of the column. If no
        cell was missing in training, those of new rows are filled by the column.

    Attributes
    ----------
    features_ : tuple
        What was learnt of each column kept.
    feature_names_ : list of str
        Names of the D encoded columns: ``height``, ``height_missing``, ``colour=red``.
    label_names_ : list of str
        Classes, in the order of their codes.
    notes_ : list of str
        What was done, in words.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"height": [1.5, None, 1.9], "colour": ["red", "blue", "red"]})
    >>> encoder = TableEncoder().fit(frame)
    >>> encoder.feature_names_
    ['height', 'height_missing', 'colour=blue', 'colour=red']
    >>> encoder.transform(frame).round(2)
    array([[-1.  ,  0.  ,  0.  ,  0.71],
           [ 0.  ,  1.  ,  0.71,  0.  ],
           [ 1.  ,  0.  ,  0.  ,  0.71]], dtype=float32)
    """

    features_: tuple[Feature, ...]
    label_names_: list[str]
    notes_: list[str]
    _donors: np.ndarray | None

    def __init__(
        self,
        id_column: str | None = None,
        label_column: str | None = None,
        drop: Sequence[str] = (),
        scaling: Scaling = "standard",
        max_categories: int = 30,
        categorical: Sequence[str] = (),
        missing: Missing = "neighbours",
    ) -> None:
        self.id_column = id_column
        self.label_column = label_column
        self.drop = drop
        self.scaling = scaling
        self.max_categories = max_categories
        self.categorical = categorical
        self.missing = missing

    def fit(self, table: Any) -> "TableEncoder":
        """Learn from the columns of a training table (a data frame, or a 2-D array)."""
        frame = as_frame(table)
        self._check_parameters()
        left_out = self._left_out(frame)
        if not len(frame):
            raise TableError("the table has no rows to fit an encoder on")
        notes = [f"{name!r} left out: {why}" for name, why in left_out.items()]
        features = []
        for name in frame.columns:
            if name not in left_out:
                feature, told = fit_column(
                    frame[name],
                    self.scaling,
                    self.max_categories,
                    categorical=name in self.categorical,
                    missing=self.missing,
                )
                notes += told
                features += [feature] if feature.names else []
        if not features:
            raise TableError(
                "no column is left to cluster on: " + ("; ".join(notes) or "none given")
            )
        if numeric := sum(isinstance(f, NumericFeature) and f.varies for f in features):
            notes.append(f"numeric columns ({numeric}) scaled: {_SCALING_NOTES[self.scaling]}")
        if self.scaling != "none" and _are_embeddings(frame.iloc[:_LOOKED_AT], features):
            notes.append(
                "rows had one length, as embeddings do, and have it no longer: scaling='none' "
                "(--scaling none) leaves them as they are"
            )
        self.features_ = tuple(features)
        self.notes_ = notes
        self.label_names_ = _label_names(frame, self.label_column)
        self._donors = self._fit_donors(frame)
        return self

    def _fit_donors(self, frame: "pd.DataFrame") -> np.ndarray | None:
        """Training rows to fill gaps from, NaN where they have some; None if not needed."""
        if self.missing == "column" or not any(f.indicator for f in self.features_):
            return None
        X, missing = self._encode(frame)
        rows = choose_donors(*X.shape)
        kept = np.where(missing[rows], np.nan, X[rows])[:, self._filled]
        # In the order of memory that a loaded encoder has them in: sums round by it.
        return np.ascontiguousarray(kept, dtype=np.float64)

    def transform(self, table: Any) -> np.ndarray:
        """Features (N, D) of the rows; columns may come in any order, others are ignored.

        Raises
        ------
        TableError
            If a column is absent, or holds text where training had numbers.
        """
        self._check_fitted()
        frame = as_frame(table)
        _check_names(frame, (f.column for f in self.features_), "the encoder was fitted on")
        X, missing = self._encode(frame)
        rows = np.flatnonzero(missing.any(axis=1))
        if self._donors is not None and len(rows):
            place = np.ix_(rows, np.flatnonzero(self._filled))
            gappy = X[place]
            fill_from_donors(gappy, missing[place], self._donors, self._widths)
            X[place] = gappy
        return X

    def _encode(self, frame: "pd.DataFrame") -> tuple[np.ndarray, np.ndarray]:
        """Features (N, D), gaps filled column by column, and where the gaps were."""
        X = np.empty((len(frame), len(self.feature_names_)), dtype=np.float32)
        missing = np.zeros(X.shape, dtype=bool)
        start = 0
        for feature in self.features_:
            stop = start + len(feature.names)
            gone = feature.encode(frame[feature.column], X[:, start:stop])
            missing[:, start : stop - feature.indicator] = gone[:, None]
            start = stop
        return X, missing

    @property
    def _filled(self) -> np.ndarray:
        """Whether features (D,) hold cells; the others tell where cells were missing."""
        told = [
            [True] * (len(f.names) - f.indicator) + [False] * f.indicator for f in self.features_
        ]
        return np.array([cell for feature in told for cell in feature])

    @property
    def _widths(self) -> list[int]:
        """How many features the cells of each column make."""
        widths = [len(f.names) - f.indicator for f in self.features_]
        return [width for width in widths if width]

    def fit_transform(self, table: Any) -> np.ndarray:
        """``fit(table).transform(table)``."""
        return self.fit(table).transform(table)

    @property
    def feature_names_(self) -> list[str]:
        """Names of the D encoded columns."""
        self._check_fitted()
        return [name for feature in self.features_ for name in feature.names]

    def readable(self, table: Any) -> "pd.DataFrame":
        """The columns that make features: numbers as numbers, odd cells missing, names as text."""
        frame = as_frame(table)
        kept = frame[[feature.column for feature in self.features_]].copy()
        for feature in self.features_:
            if isinstance(feature, NumericFeature):
                kept[feature.column] = as_numbers(frame[feature.column], feature.odd)
            elif frame[feature.column].dtype.kind in "iufb":
                kept[feature.column] = frame[feature.column].map(canonical, na_action="ignore")
        return kept

    def labels(self, table: Any) -> np.ndarray | None:
        """Codes of ``label_column`` into ``label_names_``, int64.

        Missing cells and −1 are unlabelled and coded −1, and so, with a warning, are classes
        which training did not have. None if no label column was named, or the table has none.
        """
        self._check_fitted()
        frame = as_frame(table)
        if self.label_column is None or self.label_column not in frame.columns:
            return None
        tokens = as_tokens(frame[self.label_column])
        place = {name: code for code, name in enumerate(self.label_names_)}
        unknown = [n for n in tokens.names if n not in place and n != _UNLABELLED]
        if unknown:
            tell(
                f"label column {self.label_column!r} has classes unknown to the encoder "
                f"({few(unknown, 3)}): their rows count as unlabelled",
                AsterismWarning,
            )
        # Code −1, a missing cell, points at the appended entry.
        codes = np.array([*(place.get(name, -1) for name in tokens.names), -1], dtype=np.int64)
        return codes[tokens.codes]

    def to_dict(self) -> dict[str, Any]:
        """Everything learnt, in values that JSON keeps exactly."""
        self._check_fitted()
        return {
            "table_encoder": _VERSION,
            "id_column": self.id_column,
            "label_column": self.label_column,
            "drop": list(self.drop),
            "scaling": self.scaling,
            "max_categories": self.max_categories,
            "categorical": list(self.categorical),
            "missing": self.missing,
            "donors": None if self._donors is None else donors_to_dict(self._donors),
            "features": [feature_to_dict(feature) for feature in self.features_],
            "label_names": list(self.label_names_),
            "notes": list(self.notes_),
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> "TableEncoder":
        """Rebuild the encoder that ``to_dict`` described."""
        version = state.get("table_encoder")
        if version not in _READ:
            raise TableError(
                f"not the state of a table encoder of version {_VERSION} (found {version!r}): "
                "it was saved by another program, or by a newer one"
            )
        try:
            encoder = cls(
                id_column=state["id_column"],
                label_column=state["label_column"],
                drop=tuple(state["drop"]),
                scaling=state["scaling"],
                max_categories=state["max_categories"],
                categorical=tuple(state.get("categorical", ())),
                missing=state.get("missing", "column"),
            )
            encoder._check_parameters()
            encoder.features_ = tuple(feature_from_dict(f) for f in state["features"])
            encoder.label_names_ = list(state["label_names"])
            encoder.notes_ = list(state["notes"])
            donors = state.get("donors")
            n_filled = int(encoder._filled.sum())
            encoder._donors = None if donors is None else donors_from_dict(donors, n_filled)
        except (KeyError, TypeError, ValueError) as error:
            raise TableError(f"the state of the table encoder is damaged: {error}") from error
        return encoder

    def __repr__(self) -> str:
        given = [
            f"{name}={getattr(self, name)!r}"
            for name, parameter in inspect.signature(TableEncoder).parameters.items()
            if getattr(self, name) != parameter.default
        ]
        return f"TableEncoder({', '.join(given)})"

    def _check_fitted(self) -> None:
        if not hasattr(self, "features_"):
            raise TableError("this TableEncoder is not fitted: call fit(table) first")

    def _check_parameters(self) -> None:
        if self.scaling not in SCALINGS:
            raise TableError(f"scaling={self.scaling!r} is none of {', '.join(SCALINGS)}")
        if not isinstance(self.max_categories, int) or self.max_categories < 1:
            raise TableError(f"max_categories={self.max_categories!r} is not a positive integer")
        if self.missing not in MISSING:
            raise TableError(f"missing={self.missing!r} is none of {', '.join(MISSING)}")
        for option in ("drop", "categorical"):
            if isinstance(value := getattr(self, option), str):
                raise TableError(f"{option}={value!r} is a string: give a list, [{value!r}]")

    def _left_out(self, frame: "pd.DataFrame") -> dict[str, str]:
        left_out = dict.fromkeys(self.drop, "as asked")
        _check_names(frame, left_out, "drop asks for")
        _check_names(frame, self.categorical, "categorical asks for")
        for option, why in (("id_column", "identifier"), ("label_column", "label")):
            if (name := getattr(self, option)) is not None:
                _check_names(frame, [name], f"{option} asks for")
                left_out[name] = why
        return left_out


def _label_names(frame: "pd.DataFrame", column: str | None) -> list[str]:
    if column is None:
        return []
    names = [name for name in as_tokens(frame[column]).names if name != _UNLABELLED]
    return sorted(names, key=_numbers_first)


def _numbers_first(name: str) -> tuple[bool, float, str]:
    number = parse_number(name)
    return (number is None, 0.0 if number is None else number, name)


def _are_embeddings(frame: "pd.DataFrame", features: Sequence[Feature]) -> bool:
    if len(features) < _WIDE or any(f.kind != "numeric" or f.indicator for f in features):
        return False
    X = np.stack([as_numbers(frame[f.column]) for f in features], axis=1)
    return bool((X.round() != X).any()) and have_one_length(X)  # whole ones are codes or ranks


def _by_place(name: str) -> bool:
    return re.fullmatch(r"x\d+", str(name)) is not None


def _check_names(frame: "pd.DataFrame", names: Iterable[str], who: str) -> None:
    absent = [name for name in names if name not in frame.columns]
    if not absent:
        return
    close = difflib.get_close_matches(str(absent[0]), frame.columns, n=1)
    advice = f" (did you mean {close[0]!r}?)" if close else ""
    if any(part in frame.columns for part in str(absent[0]).split(",")):
        advice = " (give each column by itself, the option may be repeated)"
    elif all(map(_by_place, absent)):
        advice = " (these stand for columns without names, by their places: rename the table's)"
    elif all(map(_by_place, frame.columns)):
        advice = " (nor names at all; if the first row of a text table has them, header=True)"
    raise TableError(
        f"{who} column {few(absent, 20)}, which the table does not have{advice}; "
        f"its columns are {few(list(frame.columns), 20)}"
    )
