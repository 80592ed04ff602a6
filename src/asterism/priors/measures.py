"""How wide the data sets of a prior are, and where: what user data are moved to.

spread    root of the mean over data sets of the variance of a coordinate
center    "median" where the data sets have theirs at zero, else "mean"
scale     median over data sets of :func:`asterism.functional.alignment.group_scale`
spreads   least and largest root mean square deviation of a data set
"""

from typing import Any

import numpy as np
import torch

from asterism.functional.alignment import group_scale
from asterism.functional.sets import DatasetPrior, SetBatch

__all__ = ["measure_prior"]

_BATCHES, _SOME = 16, 8  # batches, whose sizes differ, and data sets of each looked at one by one
_ZERO = 0.05  # of the spread: a median this small is meant to be zero


def measure_prior(prior: DatasetPrior) -> tuple[float, dict[str, Any]]:
    """The spread, and a dictionary of the rest; without "scale" where that is not defined.

    >>> from asterism.priors import ClusterMixturePrior, RestaurantMixturePrior
    >>> spread, place = measure_prior(ClusterMixturePrior(max_clusters=1))
    >>> round(spread, 2), place["center"], round(place["scale"], 2)
    (0.25, 'mean', 0.21)
    >>> measure_prior(RestaurantMixturePrior())[1]["center"]
    'median'
    """
    generator = torch.Generator().manual_seed(0)
    batches = [prior.sample(_BATCHES, generator) for _ in range(_BATCHES)]
    spread = float(torch.stack([_variance(batch) for batch in batches]).mean().sqrt())
    sets = [
        x[own].double().numpy()
        for batch in batches
        for x, own in zip(batch.x[:_SOME], batch.keep[:_SOME], strict=True)
        if own.sum() > 1
    ]
    if not sets:
        return spread, {"center": "mean"}
    off = np.mean([np.abs(np.median(x, axis=0)).mean() for x in sets])
    place: dict[str, Any] = {"center": "median" if off < _ZERO * spread else "mean"}
    scales = np.array([group_scale(x) for x in sets])
    spreads = np.sqrt([x.var(axis=0).mean() for x in sets])
    if np.median(scales) > 0:
        place["scale"] = float(np.median(scales))
        place["spreads"] = [float(spreads.min()), float(spreads.max())]
    return spread, place


def _variance(batch: SetBatch) -> torch.Tensor:
    """Mean over data sets and coordinates of the variance."""
    keep = batch.keep.unsqueeze(-1)
    count = keep.sum(dim=1, keepdim=True)
    mean = (batch.x * keep).sum(dim=1, keepdim=True) / count
    return (((batch.x - mean).square() * keep).sum(dim=1, keepdim=True) / count).mean()
