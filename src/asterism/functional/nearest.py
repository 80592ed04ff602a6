"""The nearest of some reference rows, and how far they are, in single precision and linear time.

    argmin_j ‖x − r_j‖² = argmin_j (½ ‖r_j‖² − x · r_j)

A block of rows against all references is one matrix product that stays in the cache.
"""

import numpy as np
import torch

__all__ = ["nearest_distances", "nearest_rows", "reference_gaps"]

_BLOCK = 1024
_SPARE = 4  # references ranked beyond those wanted, since products tell near ties only roughly


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


def nearest_distances(X: np.ndarray, references: np.ndarray, count: int) -> np.ndarray:
    """Distances (Q, count) of each row (Q, D) to the nearest references (R, D), R ≥ count.

    >>> nearest_distances(np.zeros((1, 1)), np.array([[3.0], [1.0], [2.0]]), 2).tolist()
    [[1.0, 2.0]]
    """
    center = references.mean(axis=0)  # small numbers, so that products are exact enough to rank
    rows = torch.from_numpy(np.ascontiguousarray(X - center, dtype=np.float32))
    others = torch.from_numpy(np.ascontiguousarray(references - center, dtype=np.float32))
    half = others.square().sum(dim=1) / 2
    candidates = min(count + _SPARE, len(others))
    found = []
    for part in rows.split(_BLOCK):
        ranked = torch.addmm(half, part, others.T, alpha=-1)
        index = ranked.topk(candidates, dim=1, largest=False).indices
        found.append((part[:, None] - others[index]).norm(dim=2).sort(dim=1).values[:, :count])
    return torch.cat(found).numpy() if found else np.zeros((0, count), dtype=np.float32)


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
