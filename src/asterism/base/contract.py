"""The contract every method keeps: scikit-learn's, wholly, and a little more.

A subclass writes

    ``_fit(X, y, seed)``            learns; sets attributes that describe the clusters
    ``_log_responsibilities(X)``    log-probability of each cluster for each row, (N, K)

and names in ``_per_cluster`` the attributes whose first axis runs over clusters, as far as it has
them, and in ``_cluster_numbers`` those that hold numbers of clusters. The base does the rest:
checks parameters and rows, puts the clusters in order of decreasing size, empty ones last, and
gives ``fit``, ``predict``, ``fit_predict``, ``predict_proba``, ``score``, ``save``, ``load``.

Prediction is per point: it conditions on what ``fit`` stored and on nothing else, so a row gets the
same answer alone, in any order and in any company. A row of log-responsibilities that is −inf
throughout belongs to no cluster and is labelled −1.
"""

import copy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from torch import nn

from asterism import __version__
from asterism._validation import check_parameters, draw_seed, read_rows, validated_fit
from asterism.base import persistence
from asterism.exceptions import AsterismWarning, WeightsError, tell
from asterism.functional.assignments import by_decreasing_size, simplified_silhouette
from asterism.io.weights import read_weights, write_weights
from asterism.training.surroundings import undisturbed

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
    _cluster_numbers: ClassVar[tuple[str, ...]] = ()
    _chunk: ClassVar[int] = 1 << 15  # rows assigned at once, so that memory stays flat
    _kept: ClassVar[tuple[str, ...]] = ()  # fitted attributes that outlive a new fit
    _unsaved: ClassVar[tuple[str, ...]] = ()  # parameters that no file can hold
    _parts: ClassVar[Mapping[str, "type[Clusterer]"]] = {}  # fitted attributes that are estimators
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
        return self._fit_rows(X, y)

    @undisturbed
    def predict(self, X: Any) -> np.ndarray:
        """Cluster of each row, given the fitted clusters; -1 where the row belongs to none.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), int64
        """
        check_is_fitted(self)
        rows = read_rows(self, X, reset=False)
        # Labels a chunk at a time: (N, K) is never held.
        return np.concatenate([self._hard(part) for part in self._chunks(rows)])

    @available_if(_is_soft)
    @undisturbed
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each cluster for each row; rows sum to one.

        A row that belongs to no cluster has zeros.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
        """
        check_is_fitted(self)
        rows = read_rows(self, X, reset=False)
        return np.concatenate([normalised(part) for part in self._chunks(rows)])

    @undisturbed
    def score(self, X: Any, y: Any = None) -> float:
        """How good the fitted clusters are for ``X``, larger is better; ``y`` is ignored.

        The mean log-likelihood a point where the method has a density; for k-means on an embedding
        minus the mean squared distance to the nearest centre there; otherwise the mean simplified
        silhouette (b - a) / max(a, b), with a and b the distances to the centre of the row's own
        cluster and to the nearest other.
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
        parameters = persistence.collect_parameters(self)
        card = {
            "method": type(self).__name__,
            "parameters": parameters,
            "version": __version__,
            "command": command,
            **persistence.left_out(self),
            "seed": parameters.get("random_state"),
            **extra,
            "state": values,
        }
        return write_weights(path, arrays, card)

    @classmethod
    def load(cls: type[Self], path: str | Path, **overrides: Any) -> Self:
        """Read what :meth:`save` wrote; runs no code from the file.

        Parameters
        ----------
        path : path
            With or without the ending.
        **overrides
            Constructor parameters to change, for example ``device="cpu"``.
        """
        arrays, card = read_weights(path)
        if card["method"] != cls.__name__:
            raise WeightsError(
                f"{path} holds {card['method']!r}, not {cls.__name__}; asterism.load(path) takes "
                "the class from the file"
            )
        return cls._restore(arrays, card, path)._loaded_with(overrides, card, path)

    # --- inside -------------------------------------------------------------------------------

    def _fit_rows(self: Self, X: Any, y: Any, **known: Any) -> Self:
        """What ``fit`` does; a subclass may tell its ``_fit`` more than rows and labels."""
        self._forget()
        rows = read_rows(self, X, reset=True)
        self._fit(rows, y, draw_seed(self.random_state), **known)
        self._settle(rows)
        return self

    @classmethod
    @undisturbed
    def _restore(
        cls: type[Self], arrays: dict[str, np.ndarray], card: dict[str, Any], path: str | Path
    ) -> Self:
        with persistence.as_weights_error(f"the card's parameters do not fit {cls.__name__}"):
            estimator = cls(**persistence.restore_parameters(card["parameters"]))
        with persistence.as_weights_error(f"the card's state does not fit {cls.__name__}"):
            state = dict(card.get("state", {}))
            for name, part in cls._parts.items():
                own = persistence.arrays_under(name, arrays)
                setattr(estimator, name, part._restore(own, state.pop(name), path))
            persistence.restore_state(estimator, arrays, state)
            if any(key.startswith(persistence.MODULE) for key in arrays):
                estimator.module_ = persistence.restore_module(estimator._make_module, arrays)
        return estimator

    def _loaded_with(
        self: Self, overrides: dict[str, Any], card: dict[str, Any], path: str | Path
    ) -> Self:
        """The same with other parameters, of which those that no file holds are asked for."""
        self.set_params(**overrides)
        check_parameters(self)
        if "encoder" in card:
            tell(
                f"{path} holds the encoder of a table too, which load leaves out, so that predict "
                "takes encoded columns: asterism.pipeline.TableModel.load(path) takes tables",
                AsterismWarning,
            )
        for name in card.get("not_saved", ()):
            if getattr(self, name) is None:
                tell(
                    f"{path} was saved without its {name}: pass load(path, {name}=...)",
                    AsterismWarning,
                )
        return self

    def _make_module(self) -> nn.Module:
        raise WeightsError(f"{type(self).__name__} has no network to fill")

    def _forget(self) -> None:
        """Drop what an earlier fit learnt, so that nothing of it survives or is mistaken."""
        for name in [name for name in vars(self) if name.endswith("_") and name[0] != "_"]:
            if name not in self._kept:
                delattr(self, name)

    def _settle(self, X: np.ndarray) -> None:
        """Label the rows and order clusters by decreasing size.

        Clusters that own no row come last, stay part of the model, and are never answered.
        """
        self.labels_, order = by_decreasing_size(self._fitted_labels(X))
        self.n_clusters_ = len(order)
        self._reorder(order)

    def _reorder(self, order: np.ndarray) -> None:
        """Let cluster ``order[k]`` of the fit become cluster k; those not named follow."""
        described = [name for name in self._per_cluster if hasattr(self, name)]
        if not described:
            return
        empty = np.setdiff1d(np.arange(len(getattr(self, described[0]))), order)
        order = np.concatenate([order, empty])
        for name in described:
            setattr(self, name, getattr(self, name)[order])
        for name in self._cluster_numbers:
            setattr(self, name, np.argsort(order)[getattr(self, name)])

    def _fitted_labels(self, X: np.ndarray) -> np.ndarray:
        """Labels of the rows of ``fit``, before the clusters are put in order."""
        return np.concatenate([self._hard(part) for part in self._chunks(X)])

    def _chunks(self, X: np.ndarray) -> Iterator[np.ndarray]:
        """Log-responsibilities for the clusters that own rows, a chunk of rows at a time."""
        for start in range(0, len(X), self._chunk):
            log_r = self._log_responsibilities(X[start : start + self._chunk])
            yield log_r[:, : getattr(self, "n_clusters_", None)]

    @staticmethod
    def _hard(log_r: np.ndarray) -> np.ndarray:
        if log_r.shape[1] == 0:
            return np.full(len(log_r), -1, dtype=np.int64)
        labels = log_r.argmax(axis=1).astype(np.int64)
        labels[np.isneginf(log_r.max(axis=1))] = -1
        return labels

    def _score(self, X: np.ndarray) -> float:
        labels = np.concatenate([self._hard(part) for part in self._chunks(X)])
        return simplified_silhouette(X, labels)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "labels_")

    def __getstate__(self) -> dict[str, Any]:
        """Pickle modules on the CPU, so that a machine without the accelerator can read them."""
        state = dict(super().__getstate__())
        for name, value in state.items():
            if isinstance(value, nn.Module) and _device_of(value) != "cpu":
                state[name] = copy.deepcopy(value).cpu()
        return state


def normalised(log_r: np.ndarray) -> np.ndarray:
    """Probabilities whose rows sum to one; a row that is −inf throughout becomes zeros."""
    largest = log_r.max(axis=1, keepdims=True, initial=-np.inf)
    probability = np.exp(log_r - np.where(np.isneginf(largest), 0.0, largest))
    total = probability.sum(axis=1, keepdims=True)
    return np.divide(probability, total, out=np.zeros_like(probability), where=total > 0)


def _device_of(module: nn.Module) -> str:
    parameter = next(module.parameters(), None)
    return "cpu" if parameter is None else parameter.device.type


class EmbeddingMixin(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Adds ``transform`` to a clusterer that defines ``_embed(X)`` and ``_n_features_out``."""

    @undisturbed
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
                [self._embed(rows[i : i + self._chunk]) for i in range(0, len(rows), self._chunk)]
            )

    _chunk: ClassVar[int]

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
