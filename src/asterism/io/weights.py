"""Trained weights on disk: tensors in ``name.safetensors``, everything else in ``name.json``.

The card (JSON) names the method, its parameters, the library's version, the command and seed that
made the weights, and the SHA-256 of the tensor file. Reading parses JSON and raw arrays only, so a
weights file can never run code. Anything damaged, truncated, foreign or newer is refused with one
:class:`~asterism.exceptions.WeightsError` that says which.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from asterism.exceptions import OutputError, WeightsError
from asterism.io.files import replacing

__all__ = ["FORMAT", "read_card", "read_weights", "sha256_of", "weight_paths", "write_weights"]

FORMAT = 1
"""Version of this layout; files of a later version are refused."""

_REQUIRED: dict[str, type] = {"method": str, "parameters": dict, "version": str}
_OPTIONAL: dict[str, type] = {"state": dict, "encoder": dict}


def weight_paths(path: str | Path) -> tuple[Path, Path]:
    """Tensor file and card that belong to ``path``, which may name either, or their stem."""
    path = Path(path).expanduser()
    stem = path.with_suffix("") if path.suffix in {".safetensors", ".json"} else path
    return stem.with_name(stem.name + ".safetensors"), stem.with_name(stem.name + ".json")


def sha256_of(content: bytes) -> str:
    """Hexadecimal SHA-256."""
    return hashlib.sha256(content).hexdigest()


def write_weights(
    path: str | Path, tensors: Mapping[str, np.ndarray], card: Mapping[str, Any]
) -> Path:
    """Write both files; each appears whole or not at all.

    Returns
    -------
    Path
        The tensor file.
    """
    from safetensors.numpy import save

    tensor_path, card_path = weight_paths(path)
    content = save({name: np.ascontiguousarray(value) for name, value in tensors.items()})
    full = {"format": FORMAT, **card, "sha256": sha256_of(content)}
    # Serialised before anything is written, so that a card that cannot be leaves no orphan.
    text = json.dumps(full, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        tensor_path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{tensor_path} cannot be written: {error.strerror}") from error
    for destination, data in ((tensor_path, content), (card_path, text.encode())):
        with replacing(destination) as file:
            file.write(data)
    return tensor_path


def read_card(path: str | Path) -> dict[str, Any]:
    """Card of a weights file, checked for form and version."""
    tensor_path, card_path = weight_paths(path)
    if not card_path.exists():
        if tensor_path.exists():
            raise WeightsError(
                f"no weights card at {card_path}; {tensor_path.name} is there without it: put "
                "both files in one folder"
            )
        raise WeightsError(
            f"no weights card at {card_path}, and no {tensor_path.name} beside it: check the path"
        )
    try:
        card = json.loads(card_path.read_bytes())
    except ValueError as error:
        raise WeightsError(f"the card {card_path} is damaged: not valid JSON ({error})") from error
    if not isinstance(card, dict) or "format" not in card or "sha256" not in card:
        raise WeightsError(f"{card_path} is not the card of asterism weights")
    if not isinstance(card["format"], int) or card["format"] < 1:
        raise WeightsError(f"the card {card_path} is damaged: format is {card['format']!r}")
    if card["format"] > FORMAT:
        raise WeightsError(
            f"{card_path} has format {card['format']}, newer than the {FORMAT} this version of "
            "asterism reads: pip install --upgrade asterism"
        )
    for name in _REQUIRED:
        if name not in card:
            raise WeightsError(f"the card {card_path} is damaged: it lacks {name!r}")
    for name, kind in (_REQUIRED | _OPTIONAL).items():
        if name in card and not isinstance(card[name], kind):
            raise WeightsError(
                f"the card {card_path} is damaged: {name!r} holds a {type(card[name]).__name__}"
            )
    return card


def read_weights(path: str | Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Tensors and card, after the checksum has been compared."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    tensor_path, _ = weight_paths(path)
    card = read_card(path)
    if not tensor_path.exists():
        raise WeightsError(f"no tensor file at {tensor_path}, though its card is there")
    content = tensor_path.read_bytes()
    found = sha256_of(content)
    if found != card["sha256"]:
        raise WeightsError(
            f"{tensor_path} is damaged or is not the file its card describes: SHA-256 "
            f"{found[:12]}…, expected {str(card['sha256'])[:12]}…; fetch or train it again"
        )
    try:
        return load(content), card
    except (SafetensorError, ValueError, KeyError) as error:
        raise WeightsError(f"{tensor_path} is not a safetensors file: {error}") from error
