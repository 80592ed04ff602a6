"""Frozen benchmarks: the same data sets for everybody, from a name and a seed.

    name              batches × data sets   N uniform on [⌊0.3 N_max⌋, N_max)   K at most
    filtering         100 × 10              N_max = 1000                        4
    clustering        100 × 10              N_max = 3000                        12
    image-filtering   100 × 10              N_max = 100                         4
    image-clustering  100 × 10              N_max = 300                         12

Filtering asks for what a network was trained on, clustering for more clusters and points than it
has seen. Each batch has one N and is a function of its number and the seed alone, so that part of a
benchmark is a part of the whole one.

Lee, Lee & Teh, "Deep amortized clustering", 2019, and the code published with it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from asterism.functional.sets import SetBatch
from asterism.priors.clusters import ClusterMixturePrior
from asterism.priors.warped import WarpedMixturePrior

__all__ = ["BENCHMARKS", "Benchmark", "benchmark_batches"]

_STREAM = 0x62656E63
"""First part of every seed, so that no batch of a training run is ever one of a benchmark."""


@dataclass(frozen=True)
class Benchmark:
    """How many data sets, of how many points and clusters at the most."""

    max_points: int
    max_clusters: int
    n_batches: int = 100
    batch_size: int = 10

    @property
    def n_points(self) -> tuple[int, int]:
        """Fewest and most points of a data set, both included."""
        return 3 * self.max_points // 10, self.max_points - 1


BENCHMARKS: dict[str, Benchmark] = {
    "filtering": Benchmark(max_points=1000, max_clusters=4),
    "clustering": Benchmark(max_points=3000, max_clusters=12),
    "image-filtering": Benchmark(max_points=100, max_clusters=4),
    "image-clustering": Benchmark(max_points=300, max_clusters=12),
}

_NAMED: dict[str, Any] = {"mog": ClusterMixturePrior(), "warped": WarpedMixturePrior()}


def benchmark_batches(
    name: str, prior: Any = "mog", *, seed: int = 0, n_batches: int | None = None
) -> Iterator[SetBatch]:
    """Batches of a benchmark, one after the other.

    Parameters
    ----------
    name : str
        One of ``BENCHMARKS``.
    prior : {"mog", "warped"} or prior
        What the data sets are drawn from; a prior given keeps all its settings but ``n_points``
        and ``max_clusters``.
    seed : int
        Another seed, other data sets.
    n_batches : int, optional
        Only the first ones.

    Examples
    --------
    >>> from asterism.priors import benchmark_batches
    >>> batch = next(benchmark_batches("clustering", "warped"))
    >>> len(batch), 900 <= batch.x.shape[1] < 3000
    (10, True)
    """
    if name not in BENCHMARKS:
        raise ValueError(f"name={name!r} is not one of {', '.join(BENCHMARKS)}")
    if isinstance(prior, str) and prior not in _NAMED:
        raise ValueError(f"prior={prior!r} is neither a prior nor one of {', '.join(_NAMED)}")
    if seed < 0:
        raise ValueError(f"seed={seed} must not be negative")
    asked = BENCHMARKS[name]
    chosen = _NAMED[prior] if isinstance(prior, str) else prior
    frozen = replace(chosen, n_points=asked.n_points, max_clusters=asked.max_clusters)
    count = asked.n_batches if n_batches is None else min(n_batches, asked.n_batches)
    return (frozen.sample(asked.batch_size, _generator(seed, i)) for i in range(count))


def _generator(seed: int, index: int) -> torch.Generator:
    (state,) = np.random.SeedSequence((_STREAM, seed, index)).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(state) >> 1)
