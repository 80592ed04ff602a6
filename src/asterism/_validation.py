"""What an estimator checks before it works: parameters, rows, seed, device.

Rows are numbers, finite, at most ``LARGEST`` in size, in a table of two dimensions. Whatever else
arrives is refused with one error that shows what came and says what to do about it; the words by
which scikit-learn's own checks know such an error are kept.

The only file that touches scikit-learn's private validators, so that one edit here absorbs a change
upstream.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar

import numpy as np
import torch
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Hidden, StrOptions
from sklearn.utils._param_validation import Interval as _Interval
from sklearn.utils.validation import validate_data

from asterism.exceptions import DataError
from asterism.training.seeding import borrowed_generators, seed_generators
from asterism.training.surroundings import undisturbed

__all__ = [
    "LARGEST",
    "CountRange",
    "HasMethods",
    "Hidden",
    "Integral",
    "Interval",
    "LayerSizes",
    "Real",
    "StrOptions",
    "at_least",
    "check_parameters",
    "check_rows",
    "draw_seed",
    "read_rows",
    "resolve_device",
    "seeded",
    "validated_fit",
]

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


def validated_fit(fit: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """Decorates ``fit``: checks the parameters against ``_parameter_constraints`` first."""
    return _fit_context(prefer_skip_nested_validation=True)(undisturbed(fit))


LARGEST = 1e100
"""Largest size of an entry: beyond, sums of squares leave the range of double precision."""

_SINGLE = 1e15  # beyond, or below its inverse, squares leave the range of single precision


class Interval(_Interval):
    """scikit-learn's interval of numbers, which True and False are not."""

    def is_satisfied_by(self, val: Any) -> bool:
        """Whether ``val`` is a number in the interval."""
        return not isinstance(val, bool) and super().is_satisfied_by(val)


class LayerSizes(HasMethods):
    """Constraint: a sequence of positive integers, empty for no layer at all.

    Derived from one of the kinds of constraint that scikit-learn lets through.
    """

    def __init__(self) -> None:
        super().__init__("__iter__")

    def is_satisfied_by(self, val: Any) -> bool:
        """Whether ``val`` lists the sizes of layers."""
        size = Interval(Integral, 1, None, closed="left")
        listed = isinstance(val, Iterable) and not isinstance(val, str)
        return listed and all(size.is_satisfied_by(entry) for entry in val)

    def __str__(self) -> str:
        return "a sequence of positive integers"


class CountRange(HasMethods):
    """Constraint: two positive integers, the lowest and the highest number of something."""

    def __init__(self) -> None:
        super().__init__("__iter__")

    def is_satisfied_by(self, val: Any) -> bool:
        """Whether ``val`` is a pair in order."""
        count = Interval(Integral, 1, None, closed="left")
        listed = isinstance(val, tuple | list) and len(val) == 2
        return listed and all(count.is_satisfied_by(entry) for entry in val) and val[0] <= val[1]

    def __str__(self) -> str:
        return "a pair of positive integers, the lowest first, such as (2, 8)"


def check_parameters(estimator: BaseEstimator) -> None:
    """Check the parameters against ``_parameter_constraints``, outside ``fit``."""
    estimator._validate_params()


def at_least(lowest: float, kind: type = Integral) -> Interval:
    """Constraint: a number of this kind, ``lowest`` or more."""
    return Interval(kind, lowest, None, closed="left")


def read_rows(estimator: BaseEstimator, X: Any, *, reset: bool) -> np.ndarray:
    """Numbers of any kind of table as a float array, float32 if it came so.

    With ``reset`` the number and names of the columns are remembered, without it compared.
    """
    if X is None:
        raise DataError("X is None: give a table of numbers, rows by columns")
    if isinstance(X, torch.Tensor):
        X = _from_torch(X)
    if type(X).__module__.startswith("polars") and hasattr(X, "collect"):
        X = X.collect()
    _refuse_dates(X)
    try:
        rows = validate_data(
            estimator,
            X,
            reset=reset,
            dtype=[np.float64, np.float32],
            order="C",
            ensure_min_samples=2 if reset else 1,
            ensure_all_finite=False,
        )
    except (ValueError, TypeError) as error:
        raise _clearer(error, X) from error
    return _in_range(rows, getattr(X, "columns", None))


def _from_torch(X: torch.Tensor) -> np.ndarray:
    X = X.detach().to_dense().cpu() if X.layout != torch.strided else X.detach().cpu()
    # numpy has no bfloat16.
    return (X.float() if X.dtype == torch.bfloat16 else X).numpy()


def _refuse_dates(X: Any) -> None:
    """Refuse dates, which scikit-learn would take for nanoseconds since 1970."""
    frame = hasattr(X, "columns") and hasattr(X, "dtypes")
    columns = zip(X.columns, X.dtypes, strict=True) if frame else [("X", getattr(X, "dtype", None))]
    for name, kind in columns:
        temporal = getattr(kind, "is_temporal", lambda: False)  # polars; the others have a letter
        if getattr(kind, "kind", None) in ("m", "M") or temporal():
            raise DataError(
                f"{name!r} holds dates or times ({kind}), which have no single scale: derive "
                "numbers from them (age in days, hour of the day), or leave them out"
            )


def _clearer(error: Exception, X: Any) -> Exception:
    """The same refusal, in one line, with what was received and what to do."""
    text = str(error)
    if "could not convert string to float" in text:
        return DataError(
            f"X holds text ({error}); encode it first with asterism.io.TableEncoder, or "
            "cluster the table itself with asterism.cluster_table"
        )
    if "Complex data" in text:
        return DataError(
            f"Complex data not supported: X is {np.asarray(X).dtype}; give real and imaginary "
            "parts as columns of their own"
        )
    if "inhomogeneous" in text:
        return DataError("the rows of X differ in length: give as many columns in every row")
    if any(part in text for part in ("Expected 2D", "Expected a 2-dimensional", "array with dim")):
        shape = np.shape(X)
        advice = "X.reshape(-1, 1) is one column, X.reshape(1, -1) one row"
        return DataError(
            f"Expected 2D array, rows by columns, got {len(shape)}D instead: X has shape {shape}. "
            f"Reshape your data: {advice if len(shape) < 2 else 'X.reshape(len(X), -1)'}"
        )
    if "while a minimum of" in text:
        what = "columns" if "feature(s)" in text else "rows"
        return DataError(f"{text.rstrip('.')}: give more {what}")
    if isinstance(error, ValueError):
        return DataError(text)
    if "Sparse" in text:
        return error
    return TypeError(f"X holds something that is no number ({error}): give a table of numbers")


def _in_range(rows: np.ndarray, names: Any) -> np.ndarray:
    """Refuse what is not finite, or so large that its square is not."""
    size = max(float(rows.max()), -float(rows.min()))  # NaN where there is any
    if not size <= LARGEST:
        # The first of the worst kind: NaN before infinity, infinity before large numbers.
        bad = next(b for b in (np.isnan(rows), np.isinf(rows), np.abs(rows) > LARGEST) if b.any())
        row, column = np.argwhere(bad)[0].tolist()
        value = rows[row, column]
        named = "" if names is None else f" ({names[column]!r})"
        where = f"first at row {row + 1}, column {column + 1}{named}"
        if np.isnan(value):
            raise DataError(
                f"X contains NaN, {where}: fill or drop the missing entries, or cluster the table "
                "itself with asterism.cluster_table, which fills and flags them"
            )
        if np.isinf(value):
            raise DataError(f"X contains infinity ({value}), {where}: replace it or drop the row")
        raise DataError(
            f"X contains {value:g}, {where}, larger than {LARGEST:g} in size, so that squared "
            "distances overflow: rescale the columns or take logarithms"
        )
    # Squared distances in single precision would overflow, or vanish, without a word.
    if rows.dtype == np.float32 and size > 0 and not 1 / _SINGLE < size < _SINGLE:
        return rows.astype(np.float64)
    return rows


def check_rows(n_rows: int, n_clusters: int, name: str = "n_clusters") -> None:
    """Refuse more clusters than rows; ``name`` is the parameter that asks for them."""
    if n_rows < n_clusters:
        raise DataError(
            f"n_samples={n_rows} should be >= {name}={n_clusters}: ask for fewer clusters or "
            "give more rows"
        )


def draw_seed(random_state: Any) -> int:
    """One integer seed from whatever scikit-learn accepts; None draws a fresh one."""
    # None must not draw from numpy's global generator, which belongs to the user.
    source = np.random.RandomState() if random_state is None else random_state
    return int(check_random_state(source).randint(np.iinfo(np.int32).max))


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch inside the block and put its global generators back afterwards."""
    with borrowed_generators():
        seed_generators(seed)
        yield


def resolve_device(device: str) -> torch.device:
    """``"auto"`` takes an accelerator where there is one."""
    if device != "auto":
        try:
            chosen = torch.device(device)
            torch.zeros(1, device=chosen).item()  # "meta" has no numbers to give
        except (RuntimeError, AssertionError, NotImplementedError) as error:
            reason = str(error).splitlines()[0].partition(". ")[0]
            raise DataError(
                f"device={device!r} cannot be used here ({reason}); use 'auto' or 'cpu'"
            ) from error
        return chosen
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")
