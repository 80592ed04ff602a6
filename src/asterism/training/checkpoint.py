"""Files that survive a kill at any moment.

A checkpoint is written beside its final name, flushed to the disk, and moved over it in one
operation of the file system: whoever looks finds the old one or the new one, whole. It is read with
torch's restricted loader, which builds tensors and plain containers and runs no code.
"""

from pathlib import Path
from typing import Any

import torch

from asterism.exceptions import TrainingError
from asterism.io.files import replacing, sweep

__all__ = ["load_checkpoint", "save_checkpoint"]


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Replace the checkpoint at ``path`` by ``state``, or leave it untouched."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, durable=True) as file:
        torch.save(state, file)
    sweep(path)


def load_checkpoint(path: Path) -> dict[str, Any] | None:
    """Read the checkpoint at ``path``; None when there is none yet."""
    if not path.exists():
        return None
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise TrainingError(
            f"checkpoint {path} cannot be read ({error.__class__.__name__}); delete it to start "
            "again from the first step"
        ) from error
    if not isinstance(state, dict) or "fingerprint" not in state:
        raise TrainingError(f"checkpoint {path} is not that of a training run; delete or move it")
    return state
