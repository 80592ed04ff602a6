"""Named weights: small ones inside the package, others fetched once and checked.

A name is looked for among the files shipped in ``asterism/weights``, then among the registered
remote ones, which are kept in a cache directory: ``ASTERISM_CACHE``, or the user's cache folder.
"""

import os
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from asterism.exceptions import MissingExtraError, WeightsError
from asterism.io.files import cache_directory
from asterism.io.weights import weight_paths

__all__ = ["RemoteWeights", "find_weights", "pretrained_names", "register_weights"]


@dataclass(frozen=True)
class RemoteWeights:
    """Where a pair of files is published, and the SHA-256 of each."""

    url: str
    """Address of the tensor file; the card lies beside it as ``.json``."""
    sha256: str
    card_sha256: str


_REMOTE: dict[str, RemoteWeights] = {}


def register_weights(name: str, remote: RemoteWeights) -> None:
    """Make ``name`` known to :func:`find_weights`; fetched when first asked for."""
    _REMOTE[name] = remote


def _package_directory() -> Path:
    return Path(str(resources.files("asterism") / "weights"))


def pretrained_names() -> list[str]:
    """Names :func:`find_weights` knows."""
    shipped = {card.stem for card in _package_directory().glob("*.json")}
    return sorted(shipped | set(_REMOTE))


def find_weights(name: str | os.PathLike[str]) -> Path:
    """Path of the tensor file for a name, or for a path the user gives.

    A path has a directory part or ends in ``.safetensors``.
    """
    text = os.fspath(name)
    separators = {os.sep, os.altsep or os.sep}
    is_path = not isinstance(name, str) or any(mark in text for mark in separators)
    if is_path or text.endswith((".safetensors", ".json")):
        tensors, _ = weight_paths(text)
        if not tensors.exists():
            raise WeightsError(
                f"no weights file at {tensors}: check the path, or give one of the names "
                f"{', '.join(pretrained_names()) or '(none)'}"
            )
        return tensors
    shipped, card = weight_paths(_package_directory() / text)
    if card.exists():
        return shipped
    if text in _REMOTE:
        return _fetch(text, _REMOTE[text])
    own, card = weight_paths(text)
    if own.exists() and card.exists():
        return own
    raise WeightsError(
        f"no weights are named {text!r}; known: {', '.join(pretrained_names()) or 'none'}. "
        "For a file of your own give its path, for example ./model.safetensors"
    )


def _fetch(name: str, remote: RemoteWeights) -> Path:
    try:
        import pooch
    except ImportError as error:
        raise MissingExtraError("pooch", "data", f"fetching the weights {name!r}") from error
    card_url = remote.url.removesuffix(".safetensors") + ".json"
    pair = ((remote.url, remote.sha256, ".safetensors"), (card_url, remote.card_sha256, ".json"))
    try:
        fetched = [
            pooch.retrieve(
                url, f"sha256:{digest}", fname=name + suffix, path=cache_directory("weights")
            )
            for url, digest, suffix in pair
        ]
    except Exception as error:
        raise WeightsError(f"the weights {name!r} could not be fetched: {error}") from error
    return Path(fetched[0])
