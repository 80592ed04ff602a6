"""The nearest of some reference rows, in single precision and linear time.

    argmin_j ‖x − r_j‖² = argmin_j (½ ‖r_j‖² − x · r_j)

A block of rows against all references is one matrix product that stays in the cache.
"""

import numpy as np
import torch

__all__ = ["depth_among", "nearest_rows", "reference_gaps"]

_BLOCK = 1024


def nearest_rows(X: np.ndarray, references: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Index (Q,) of the nearest reference (R, D) of each row (Q, D), and its distance (Q,).

    >>> index, distance = nearest_rows(np.array([[0.9, 0.0]]), np.eye(2))
    >>> int(index[0]), round(float(distance[0]), 6)
    (0, 0.1)
    """
    rows = torch.from_numpy(np.ascontiguousarray(X, dtype=np.float32))
    others = torch.from_numpy(np.ascontiguousarray(references, dtype=np.float32))
    half = others.square().sum(dim=1) / 2
    found = [
        torch.addmm(half, part, others.T, alpha=-1).argmin(dim=1) for part in rows.split(_BLOCK)
    ]
    index = torch.cat(found) if found else torch.zeros(0, dtype=torch.long)
    return index.numpy(), (rows - others[index]).norm(dim=1).numpy()


def depth_among(X: np.ndarray, references: np.ndarray, rank: int) -> np.ndarray:
    """Distance (Q,) of each row (Q, D) to the ``rank``-th nearest reference (R, D), or the last.

    >>> depth_among(np.zeros((1, 1)), np.array([[3.0], [1.0], [2.0]]), 2).tolist()
    [2.0]
    """
    rows = torch.from_numpy(np.ascontiguousarray(X, dtype=np.float32))
    others = torch.from_numpy(np.ascontiguousarray(references, dtype=np.float32))
    rank = min(rank, len(others))
    found = []
    for part in rows.split(_BLOCK):
        near = torch.addmm(others.square().sum(dim=1), part, others.T, alpha=-2)
        last = near.topk(rank, dim=1, largest=False).indices[:, -1]
        found.append((part - others[last]).norm(dim=1))
    return torch.cat(found).numpy()


def reference_gaps(references: np.ndarray) -> np.ndarray:
    """Log distance (R,) of each reference to the nearest other one that differs from it."""
    rows = torch.from_numpy(np.ascontiguousarray(references, dtype=np.float32))
    nearest = []
    for part in rows.split(_BLOCK):
        distance = torch.cdist(part, rows, compute_mode="donot_use_mm_for_euclid_dist")
        nearest.append(torch.where(distance > 0, distance, torch.inf).amin(dim=1))
    found = torch.cat(nearest)
    found = torch.where(found.isfinite(), found, 1.0)  # all references are one
    return found.log().numpy()
