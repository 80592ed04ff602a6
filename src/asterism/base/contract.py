"""The contract every method keeps: scikit-learn's, wholly, and a little more.

A subclass writes

    ``_fit(X, y, seed)``            learns; sets attributes that describe the clusters
    ``_log_responsibilities(X)``    log-probability of each cluster for each row, (N, K)

and names in ``_per_cluster`` the attributes whose first axis runs over clusters. The base does the
rest: checks parameters and rows, puts the clusters in order of decreasing size, drops empty ones,
and gives ``fit``, ``predict``, ``fit_predict``, ``predict_proba``, ``score``, ``save``, ``load``.

Prediction is per point: it conditions on what ``fit`` stored and on nothing else, so a row gets the
same answer alone, in any order and in any company. A row of log-responsibilities that is −inf
throughout belongs to no cluster and is labelled −1.
"""

import copy
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from torch import nn

from asterism import __version__
from asterism._validation import draw_seed, read_rows, validated_fit
from asterism.base import persistence
from asterism.exceptions import WeightsError
from asterism.functional.assignments import by_decreasing_size, simplified_silhouette
from asterism.io.weights import read_weights, write_weights

__all__ = ["Clusterer", "EmbeddingMixin"]

Self = TypeVar("Self", bound="Clusterer")


def _is_soft(estimator: "Clusterer") -> bool:
    if not estimator.soft:
        raise AttributeError(f"{type(estimator).__name__} assigns hard labels, no probabilities")
    return True


class Clusterer(ClusterMixin, BaseEstimator):
    """Base of all methods; see the module's header for what a subclass writes."""

    soft: ClassVar[bool] = True
    """Whether the method has probabilities to offer."""

    _per_cluster: ClassVar[tuple[str, ...]] = ()
    _chunk: ClassVar[int] = 1 << 15  # rows assigned at once, so that memory stays flat
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"random_state": ["random_state"]}

    random_state: Any

    # --- what a subclass writes ---------------------------------------------------------------

    def _fit(self, X: np.ndarray, y: Any, seed: int) -> None:
        raise TypeError(f"{type(self).__name__} must define _fit")

    def _log_responsibilities(self, X: np.ndarray) -> np.ndarray:
        raise TypeError(f"{type(self).__name__} must define _log_responsibilities")

    # --- the contract -------------------------------------------------------------------------

    @validated_fit
    def fit(self: Self, X: Any, y: Any = None) -> Self:
        """Cluster the rows of ``X``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers: numpy, pandas, polars or torch.
        y : array-like of shape (n_samples,), optional
            Ignored, unless the method says that it uses labels; -1 is unlabelled.

        Returns
        -------
        self
        """
        rows = read_rows(self, X, reset=True)
        self._fit(rows, y, draw_seed(self.random_state))
        self._settle(rows)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Cluster of each row, given the fitted clusters; -1 where the row belongs to none.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), int64
        """
        return self._hard(self._check_and_assign(X))

    @available_if(_is_soft)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each cluster for each row; rows sum to one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
        """
        probability = np.exp(self._check_and_assign(X))
        return probability / probability.sum(axis=1, keepdims=True)

    def score(self, X: Any, y: Any = None) -> float:
        """How good the fitted clusters are for ``X``, larger is better; ``y`` is ignored.

        The mean log-likelihood a point where the method has a density, otherwise the mean
        simplified silhouette (b - a) / max(a, b), with a and b the distances to the centre of the
        row's own cluster and to the nearest other.
        """
        check_is_fitted(self)
        return float(self._score(read_rows(self, X, reset=False)))

    def save(self, path: str | Path, *, command: str | None = None, **extra: Any) -> Path:
        """Write ``path.safetensors`` and its card ``path.json``.

        Methods that assign new rows by their neighbours keep rows of the training data in the file.

        Parameters
        ----------
        path : path
            With or without the ending.
        command : str, optional
            The command that made the model, for the card.
        **extra
            Further JSON-able entries for the card.

        Returns
        -------
        Path
            The tensor file.
        """
        arrays, values = persistence.collect_state(self)
        if not arrays and not values:
            check_is_fitted(self)
        card = {
            "method": type(self).__name__,
            "parameters": persistence.collect_parameters(self),
            "version": __version__,
            "command": command,
            "seed": persistence.collect_parameters(self).get("random_state"),
            **extra,
            "state": values,
        }
        return write_weights(path, arrays, card)

    @classmethod
    def load(cls: type[Self], path: str | Path) -> Self:
        """Read what :meth:`save` wrote; runs no code from the file."""
        arrays, card = read_weights(path)
        if card["method"] != cls.__name__:
            raise WeightsError(
                f"{path} holds {card['method']!r}, not {cls.__name__}; asterism.load(path) takes "
                "the class from the file"
            )
        return cls._restore(arrays, card)

    # --- inside -------------------------------------------------------------------------------

    @classmethod
    def _restore(cls: type[Self], arrays: dict[str, np.ndarray], card: dict[str, Any]) -> Self:
        with persistence.as_weights_error(f"the card's parameters do not fit {cls.__name__}"):
            estimator = cls(**card["parameters"])
        with persistence.as_weights_error(f"the card's state does not fit {cls.__name__}"):
            persistence.restore_state(estimator, arrays, card.get("state", {}))
            if any(key.startswith("module_/") for key in arrays):
                estimator.module_ = persistence.restore_module(estimator._make_module, arrays)
        return estimator

    def _make_module(self) -> nn.Module:
        """Build the untrained module from parameters and fitted attributes."""
        raise WeightsError(f"{type(self).__name__} has no network to fill")

    def _settle(self, X: np.ndarray) -> None:
        """Label the rows, order clusters by decreasing size, drop the empty ones."""
        self.labels_, order = by_decreasing_size(self._fitted_labels(X))
        self.n_clusters_ = len(order)
        self._reorder(order)

    def _reorder(self, order: np.ndarray) -> None:
        """Let cluster ``order[k]`` of the fit become cluster k."""
        for name in self._per_cluster:
            setattr(self, name, getattr(self, name)[order])

    def _fitted_labels(self, X: np.ndarray) -> np.ndarray:
        """Labels of the rows of ``fit``, before the clusters are put in order."""
        return self._hard(self._assign(X))

    def _assign(self, X: np.ndarray) -> np.ndarray:
        """Log-responsibilities, a chunk of rows at a time."""
        parts = [
            self._log_responsibilities(X[start : start + self._chunk])
            for start in range(0, len(X), self._chunk)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _check_and_assign(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return self._assign(read_rows(self, X, reset=False))

    @staticmethod
    def _hard(log_r: np.ndarray) -> np.ndarray:
        if log_r.shape[1] == 0:
            return np.full(len(log_r), -1, dtype=np.int64)
        labels = log_r.argmax(axis=1).astype(np.int64)
        labels[np.isneginf(log_r.max(axis=1))] = -1
        return labels

    def _score(self, X: np.ndarray) -> float:
        return simplified_silhouette(X, self._hard(self._assign(X)))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "labels_")

    def __getstate__(self) -> dict[str, Any]:
        """Pickle modules on the CPU, so that a machine without the accelerator can read them."""
        state = dict(super().__getstate__())
        for name, value in state.items():
            if isinstance(value, nn.Module) and _device_of(value) != "cpu":
                state[name] = copy.deepcopy(value).cpu()
        return state


def _device_of(module: nn.Module) -> str:
    parameter = next(module.parameters(), None)
    return "cpu" if parameter is None else parameter.device.type


_CHUNK = Clusterer._chunk


class EmbeddingMixin(TransformerMixin):
    """Adds ``transform`` to a clusterer that defines ``_embed(X)``."""

    def transform(self, X: Any) -> np.ndarray:
        """Embedding of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_embedding)
        """
        check_is_fitted(self)
        rows = read_rows(self, X, reset=False)
        with torch.inference_mode():
            return np.concatenate(
                [self._embed(rows[i : i + _CHUNK]) for i in range(0, len(rows), _CHUNK)]
            )

    def _embed(self, X: np.ndarray) -> np.ndarray:
        raise TypeError(f"{type(self).__name__} must define _embed")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Networks compute in single precision, whatever they are given.
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        raise TypeError(f"{type(self).__name__} must define _n_features_out")
