"""Errors and warnings users can catch.

Every error of ours is also the built-in error a scikit-learn user would expect, so that both
``except AsterismError`` and ``except ValueError`` work. Warnings are told of the user's own line,
however deep in here they arise.
"""

import sys
import warnings

__all__ = [
    "AsterismError",
    "AsterismWarning",
    "DataError",
    "DataNotFoundError",
    "MissingExtraError",
    "OutputError",
    "TableError",
    "TrainingError",
    "UnknownMethodError",
    "WeightsError",
    "tell",
]

_INNER = {"asterism", "sklearn", "contextlib"}


class AsterismError(Exception):
    """Anything the library refuses to do, with the value received and the fix."""


class AsterismWarning(UserWarning):
    """Something the user should know, though the work went on."""


class DataError(AsterismError, ValueError):
    """The array given cannot be clustered as asked."""


class TableError(DataError):
    """A file or data frame cannot be read as a table of features."""


class WeightsError(AsterismError, ValueError):
    """A weights file is damaged, foreign, of another method, or newer than this library."""


class TrainingError(AsterismError, RuntimeError):
    """Training cannot start, resume or go on."""


class UnknownMethodError(AsterismError, KeyError):
    """No clustering method is registered under that name."""

    def __str__(self) -> str:
        # KeyError would print the repr of the message, quotes and all.
        return str(self.args[0]) if self.args else ""


class DataNotFoundError(AsterismError, FileNotFoundError):
    """A benchmark data set is neither on disk nor to be fetched."""


class OutputError(AsterismError, OSError):
    """A file cannot be written."""


class MissingExtraError(AsterismError, ImportError):
    """An optional dependency is needed; the message names the extra to install."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs {package}, which is not installed: pip install 'asterism[{extra}]'"
        )


def tell(message: str, category: type[Warning] = AsterismWarning) -> None:
    """Warn at the nearest line outside this library and scikit-learn, which called them."""
    frame, level = sys._getframe(), 1
    while frame.f_globals.get("__name__", "").partition(".")[0] in _INNER and frame.f_back:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
