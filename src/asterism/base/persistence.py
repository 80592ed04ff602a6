"""An estimator as arrays and JSON, and back, without pickle.

Saved are the constructor's parameters and every public fitted attribute (``name_``):

    numeric arrays   tensors ``attribute/<name>``
    the torch module tensors ``module_/<key>`` of its state; the class knows how to build it
    a fitted estimator within   its arrays under ``<name>/``, its parameters and values in JSON
    strings, numbers, lists, tuples, dictionaries, None   JSON
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import nn

from asterism._validation import seeded
from asterism.exceptions import AsterismWarning, WeightsError, tell

__all__ = [
    "arrays_under",
    "as_weights_error",
    "collect_parameters",
    "collect_state",
    "left_out",
    "restore_module",
    "restore_parameters",
    "restore_state",
]

_ARRAY = "attribute/"
MODULE = "module_/"


@contextmanager
def as_weights_error(what: str) -> Iterator[None]:
    """Whatever a wrong card makes go wrong is the card's fault, and said to be."""
    try:
        yield
    except WeightsError:
        raise
    except (AttributeError, KeyError, MemoryError, RuntimeError, TypeError, ValueError) as error:
        raise WeightsError(f"{what}: {error}") from error


def collect_parameters(estimator: BaseEstimator) -> dict[str, Any]:
    """Constructor parameters in JSON's types."""
    parameters = {}
    for name, value in estimator.get_params(deep=False).items():
        if name == "random_state" and not isinstance(value, int | np.integer | None):
            tell(
                "random_state is a generator and is saved as None; pass an integer to keep it",
                AsterismWarning,
            )
            value = None
        if name in getattr(estimator, "_unsaved", ()) and value is not None:
            tell(
                f"{name} is not saved with the model: keep it, and pass it to "
                f"load(path, {name}=...)",
                AsterismWarning,
            )
            value = None
        parameters[name] = _plain(value, name)
    return parameters


def left_out(estimator: BaseEstimator) -> dict[str, list[str]]:
    """What the card tells of parameters that no file can hold."""
    unsaved = getattr(estimator, "_unsaved", ())
    names = [name for name in unsaved if getattr(estimator, name) is not None]
    return {"not_saved": names} if names else {}


def collect_state(estimator: BaseEstimator) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and JSON-able values of all fitted attributes."""
    arrays: dict[str, np.ndarray] = {}
    values: dict[str, Any] = {}
    for name, value in sorted(vars(estimator).items()):
        if not name.endswith("_") or name.startswith("_"):
            continue
        if isinstance(value, nn.Module):
            state = value.state_dict()
            arrays |= {f"{name}/{key}": part.cpu().numpy() for key, part in state.items()}
        elif isinstance(value, BaseEstimator):
            inner, state = collect_state(value)
            arrays |= {f"{name}/{key}": array for key, array in inner.items()}
            values[name] = {"parameters": collect_parameters(value), "state": state}
        elif isinstance(value, np.ndarray) and value.dtype != object:
            arrays[_ARRAY + name] = value
        elif isinstance(value, np.ndarray):
            values[name] = {"strings": [str(entry) for entry in value]}
        else:
            values[name] = _plain(value, name)
    return arrays, values


def restore_state(
    estimator: BaseEstimator, arrays: dict[str, np.ndarray], values: dict[str, Any]
) -> None:
    """Set the fitted attributes of :func:`collect_state`, all but the module."""
    found = {key.removeprefix(_ARRAY): a for key, a in arrays.items() if key.startswith(_ARRAY)}
    found |= {name: _rich(value) for name, value in values.items()}
    for name, value in found.items():
        if isinstance(getattr(estimator, name, None), BaseEstimator):
            raise WeightsError(f"the card names {name!r} twice, once as an estimator")
        setattr(estimator, _fitted_name(name), value)


def arrays_under(name: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays of the estimator kept as the attribute ``name``."""
    first = f"{name}/"
    return {k.removeprefix(first): array for k, array in arrays.items() if k.startswith(first)}


def restore_module(make: Callable[[], nn.Module], arrays: dict[str, np.ndarray]) -> nn.Module:
    """Build a module and fill it with the stored tensors."""
    with seeded(0):  # initial weights are drawn, though never used
        module = make()
    state = {
        key.removeprefix(MODULE): torch.from_numpy(np.array(array))
        for key, array in arrays.items()
        if key.startswith(MODULE)
    }
    for key, tensor in state.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise WeightsError(f"the tensor {key} holds numbers that are not finite")
    try:
        module.load_state_dict(state)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise WeightsError(f"the tensors do not fit {type(module).__name__}: {reason}") from error
    return module.eval()


def _fitted_name(name: str) -> str:
    """A card sets fitted attributes, and nothing else of an estimator."""
    if not name.isidentifier() or not name.endswith("_") or name.startswith("_"):
        raise WeightsError(f"the card names {name!r}, which is no fitted attribute")
    return name


def _plain(value: Any, name: str) -> Any:
    """Value in JSON's types; what JSON lacks is tagged, see :func:`_rich`."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Path):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple):
        return {"tuple": [_plain(entry, name) for entry in value]}
    if isinstance(value, list):
        return [_plain(entry, name) for entry in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _plain(entry, name) for key, entry in value.items()}
    if isinstance(value, dict):
        return {"items": [[_plain(k, name), _plain(v, name)] for k, v in value.items()]}
    raise WeightsError(f"{name}={value!r} of type {type(value).__name__} cannot be saved")


def _rich(value: Any) -> Any:
    """Undo :func:`_plain`: tuples, dictionaries with other keys than strings, arrays of strings."""
    if isinstance(value, list):
        return [_rich(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"strings"}:
        return np.asarray(value["strings"], dtype=object)
    if set(value) == {"tuple"}:
        return tuple(_rich(entry) for entry in value["tuple"])
    if set(value) == {"items"}:
        return {_rich(key): _rich(entry) for key, entry in value["items"]}
    return {key: _rich(entry) for key, entry in value.items()}


def restore_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """Undo :func:`collect_parameters`."""
    return {name: _rich(value) for name, value in parameters.items()}
