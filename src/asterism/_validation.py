"""What an estimator checks before it works: parameters, rows, seed, device.

The only file that touches scikit-learn's private validators, so that one edit here absorbs a change
upstream.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Hidden, Interval, StrOptions
from sklearn.utils.validation import validate_data

from asterism.exceptions import DataError

__all__ = [
    "Hidden",
    "Integral",
    "Interval",
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

validated_fit = _fit_context(prefer_skip_nested_validation=True)
"""Decorates ``fit``: checks the parameters against ``_parameter_constraints`` first."""


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
    if isinstance(X, torch.Tensor):
        X = X.detach().cpu().numpy()
    try:
        return validate_data(
            estimator,
            X,
            reset=reset,
            dtype=[np.float64, np.float32],
            order="C",
            ensure_min_samples=2 if reset else 1,
        )
    except ValueError as error:
        if "could not convert string to float" in str(error):
            raise DataError(
                f"X holds text ({error}); encode it first with asterism.io.TableEncoder, or "
                "cluster the table itself with asterism.cluster_table"
            ) from error
        raise


def check_rows(n_rows: int, n_clusters: int) -> None:
    """Refuse more clusters than rows."""
    if n_rows < n_clusters:
        raise DataError(
            f"n_samples={n_rows} should be >= n_clusters={n_clusters}: ask for fewer clusters or "
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
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


def resolve_device(device: str) -> torch.device:
    """``"auto"`` takes an accelerator where there is one."""
    if device != "auto":
        try:
            chosen = torch.device(device)
            torch.empty(0, device=chosen)
        except (RuntimeError, AssertionError, NotImplementedError) as error:
            reason = str(error).splitlines()[0]
            raise DataError(
                f"device={device!r} cannot be used here ({reason}); use 'auto' or 'cpu'"
            ) from error
        return chosen
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")
