"""Features of rows by an encoder the user has trained: any transformer, network or function.

    transformer   has ``transform``, fitted: of scikit-learn, or an estimator of this library
    network       a ``torch.nn.Module`` that takes float32 rows (N, D), on its own device
    function      takes an array (N, D)

Each gives (N, features), or (N, ...) which is flattened.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted
from torch import nn

from asterism.exceptions import DataError

__all__ = ["encode"]

_CHUNK = 4096


def encode(encoder: Any, X: np.ndarray) -> np.ndarray:
    """Features (N, D') of rows (N, D), chunk by chunk; the encoder stays as it was."""
    one = _reader(encoder)
    parts = [one(X[start : start + _CHUNK]) for start in range(0, len(X), _CHUNK)]
    for part, start in zip(parts, range(0, len(X), _CHUNK), strict=True):
        expected = len(X[start : start + _CHUNK])
        if part.ndim < 2 or len(part) != expected:
            raise DataError(
                f"the encoder gave an array of shape {part.shape} for {expected} rows: it must "
                "give one row of features each"
            )
    features = np.concatenate([part.reshape(len(part), -1) for part in parts])
    if not np.issubdtype(features.dtype, np.number) or not np.isfinite(features).all():
        raise DataError(
            "the encoder gave features that are not finite numbers: look at its weights, and at "
            "the scale of the rows it was trained on"
        )
    return features


def _reader(encoder: Any) -> Callable[[np.ndarray], np.ndarray]:
    if isinstance(encoder, nn.Module):
        return lambda rows: _by_network(encoder, rows)
    if hasattr(encoder, "transform"):
        try:
            check_is_fitted(encoder)
        except NotFittedError as error:
            raise DataError(
                f"encoder={encoder!r} is not fitted: fit it first; where the model is cloned, as "
                "in a search, wrap it in sklearn.frozen.FrozenEstimator"
            ) from error
        return lambda rows: _by_transformer(encoder, rows)
    return lambda rows: np.asarray(encoder(rows))


def _by_network(network: nn.Module, rows: np.ndarray) -> np.ndarray:
    weight = next(network.parameters(), None)
    device = torch.device("cpu") if weight is None else weight.device
    training = network.training
    network.eval()
    try:
        with torch.inference_mode():
            return network(torch.as_tensor(rows, dtype=torch.float32, device=device)).cpu().numpy()
    finally:
        network.train(training)


def _by_transformer(transformer: Any, rows: np.ndarray) -> np.ndarray:
    with warnings.catch_warnings():
        # Columns were matched by the estimator that holds the encoder.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        features = transformer.transform(rows)
    return features.toarray() if hasattr(features, "toarray") else np.asarray(features)
