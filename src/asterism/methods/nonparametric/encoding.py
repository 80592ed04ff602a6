"""Features of rows by an encoder the user has trained: any transformer, network or function.

    transformer   has ``transform``, fitted: of scikit-learn, or an estimator of this library
    network       a ``torch.nn.Module`` that takes rows (N, D), on its own device and precision
    function      takes an array (N, D)

Each gives (N, features), or (N, ...) which is flattened, and finds torch as the script has it.
"""

import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted
from torch import nn

from asterism._validation import LARGEST, HasMethods
from asterism.exceptions import DataError
from asterism.training.surroundings import as_called

__all__ = ["EncoderMixin", "encode"]

_CHUNK = 4096


class EncoderMixin:
    """Adds ``encoder``, trained already, to an estimator of its features."""

    _unsaved: ClassVar[tuple[str, ...]] = ("encoder",)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "encoder": [HasMethods("transform"), callable, None]
    }

    encoder: Any
    get_params: Any
    n_features_encoded_: int

    @property
    def has_density(self) -> bool:
        """Whether ``score`` is a likelihood of the rows themselves."""
        return self.encoder is None

    def __sklearn_clone__(self) -> Any:
        """A clone without the fit, that shares the encoder, whose training is no part of it."""
        settings = self.get_params(deep=False)
        encoder = settings.pop("encoder")
        return type(self)(**clone(settings, safe=False) | {"encoder": encoder})

    def _fit_features(self, X: np.ndarray) -> np.ndarray:
        """Features of the rows of ``fit``, or the rows themselves."""
        if self.encoder is None:
            return X
        features = encode(self.encoder, X)
        self.n_features_encoded_ = features.shape[1]
        return features

    def _features(self, X: np.ndarray) -> np.ndarray:
        """The same of new rows."""
        if not hasattr(self, "n_features_encoded_"):
            return X
        if self.encoder is None:
            raise DataError(
                "the model was fitted to the features of an encoder, which is not saved with it: "
                f"load it with {type(self).__name__}.load(path, encoder=...)"
            )
        features = encode(self.encoder, X)
        if features.shape[1] != self.n_features_encoded_:
            raise DataError(
                f"the encoder gives {features.shape[1]} features, the model was fitted to "
                f"{self.n_features_encoded_}: pass the encoder of the fit"
            )
        return features


def encode(encoder: Any, X: np.ndarray) -> np.ndarray:
    """Features (N, D') of rows (N, D), chunk by chunk; the encoder stays as it was."""
    one = _guarded(_reader(encoder))
    rows = (X[start : start + _CHUNK] for start in range(0, len(X), _CHUNK))
    features = np.concatenate([_checked(one(part), len(part)) for part in rows])
    size = float(np.abs(features).max())
    if not size <= LARGEST:  # nor NaN
        raise DataError(
            f"the encoder gave features of size {size}: look at its weights, and at the scale of "
            "the rows it was trained on"
        )
    return features


def _checked(found: Any, n_rows: int) -> np.ndarray:
    """What an encoder gave for so many rows, as numbers (N, D')."""
    if isinstance(found, torch.Tensor):
        found = found.detach().cpu()
        found = (found.float() if found.dtype == torch.bfloat16 else found).numpy()
    if isinstance(found, tuple | list | dict):
        raise DataError(
            f"the encoder gave a {type(found).__name__}: wrap it in a function that gives the "
            "features alone"
        )
    features = found.toarray() if hasattr(found, "toarray") else np.asarray(found)
    if features.ndim < 2 or len(features) != n_rows or features.size == 0:
        raise DataError(
            f"the encoder gave {type(found).__name__} of shape {features.shape} for {n_rows} rows: "
            "it must give one row of features each"
        )
    if not np.issubdtype(features.dtype, np.number) or np.iscomplexobj(features):
        raise DataError(f"the encoder gave {features.dtype}: its features must be real numbers")
    return features.reshape(n_rows, -1)


def _guarded(read: Callable[[np.ndarray], Any]) -> Callable[[np.ndarray], Any]:
    """The same, whose failures are told to be the encoder's."""

    def reading(rows: np.ndarray) -> Any:
        try:
            with as_called():
                return read(rows)
        except Exception as error:
            raise DataError(
                f"the encoder failed on rows of shape {rows.shape}: {error}; give one that was "
                "trained on such rows"
            ) from error

    return reading


def _reader(encoder: Any) -> Callable[[np.ndarray], Any]:
    if isinstance(encoder, type):
        raise DataError(f"encoder is the class {encoder.__name__}: give a trained instance of it")
    if isinstance(encoder, nn.Module):
        return lambda rows: _by_network(encoder, rows)
    if hasattr(encoder, "transform"):
        try:
            if hasattr(encoder, "fit"):
                check_is_fitted(encoder)
        except NotFittedError as error:
            raise DataError(
                f"encoder={encoder!r} is not fitted: fit it first, as in encoder=PCA(10).fit(X)"
            ) from error
        return lambda rows: _by_transformer(encoder, rows)
    return encoder


def _by_network(network: nn.Module, rows: np.ndarray) -> Any:
    weight = next(network.parameters(), None)
    device = torch.device("cpu") if weight is None else weight.device
    precision = torch.float32 if weight is None else weight.dtype
    modes = {module: module.training for module in network.modules()}
    network.eval()
    try:
        with torch.inference_mode():
            return network(torch.as_tensor(rows, dtype=precision, device=device))
    finally:
        for module, training in modes.items():
            module.training = training


def _by_transformer(transformer: Any, rows: np.ndarray) -> Any:
    with warnings.catch_warnings():
        # Columns were matched by the estimator that holds the encoder.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return transformer.transform(rows)
