"""A context read once by the pair network, and any further rows read against it.

    ContextReader.read_many(network, [rows, …])    several contexts, those of one size as a batch
    reader.similarity, reader.counts, reader.gaps  what the network says of the context
    reader.partitions                              quick classical partitions of it
    reader.read(rows)                              the same for new rows, each by itself

Rows are numbers of comparable columns; arrays go in and arrays come out.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from asterism.functional.relations import Context, cross_features, describe, prepared
from asterism.nn.pairwise import PairNetwork, relations_of

__all__ = ["ContextReader", "RowReading"]

_TWIN = 1e-5  # rows nearer than that, in units of the data's spread, are one and the same
_PAIRS = 1 << 21  # most pairs of rows in a batch: bounds the memory
_KEPT = 31 * 2**20  # bytes, just below what glibc's allocator always gives back to the system


class RowReading(NamedTuple):
    """What the network says of rows towards a context."""

    similarity: np.ndarray  # (Q, N) probability of sharing a cluster
    gaps: np.ndarray  # (Q,) log distance to the fifth neighbour, in units of the median distance
    twins: np.ndarray  # (Q,) row of the context that equals this one, or −1


class ContextReader:
    """One context, read."""

    def __init__(
        self,
        network: PairNetwork,
        context: Context,
        states: list[Tensor],
        similarity: np.ndarray,
        counts: np.ndarray,
        gaps: np.ndarray,
    ) -> None:
        self.network = network
        self._context = context
        self._states = states
        self.similarity = similarity  # (N, N), symmetric, one on the diagonal
        self.counts = counts  # (MAX_COUNT,) probabilities of K = 1, 2, …
        self.gaps = gaps  # (N,)

    @classmethod
    @torch.inference_mode()
    def read_many(
        cls, network: PairNetwork, contexts: Sequence[np.ndarray]
    ) -> "list[ContextReader]":
        """Read contexts (N_i, D_i); those of equal N at once."""
        device = device_of(network)
        # Freeing a large piece makes the allocator keep what is freed later, up to twice its size:
        # pages had anew for every part of every map would take a tenth of the time.
        torch.empty(_KEPT, dtype=torch.uint8)
        readers: dict[int, ContextReader] = {}
        for chunk in _equal_chunks([len(rows) for rows in contexts]):
            width = max(contexts[i].shape[1] for i in chunk)
            x = np.zeros((len(chunk), len(contexts[chunk[0]]), width), dtype=np.float32)
            for place, i in enumerate(chunk):
                x[place, :, : contexts[i].shape[1]] = contexts[i]
            context, features = describe(torch.from_numpy(x).to(device))
            reading = network.read(relations_of(features, context))
            gaps = features.gaps.double().cpu().numpy()
            logits = (reading.logits + reading.logits.mT).double() / 2
            similarity = torch.sigmoid(logits).cpu().numpy()
            counts = torch.softmax(reading.counts.double(), dim=-1).cpu().numpy()
            for place, i in enumerate(chunk):
                np.fill_diagonal(similarity[place], 1.0)
                own = slice(place, place + 1)
                readers[i] = cls(
                    network,
                    _part(context, own),
                    [state[own] for state in reading.states],
                    similarity[place],
                    counts[place],
                    gaps[place],
                )
        return [readers[i] for i in range(len(contexts))]

    def is_of(self, network: nn.Module) -> bool:
        """Whether it was read by this very network, which has not been moved since."""
        return network is self.network and self._context.x.device == device_of(network)

    @property
    def partitions(self) -> np.ndarray:
        """Quick classical partitions (M, N) of the context, which the network has seen too."""
        return self._context.labels[0].T.cpu().numpy()

    @property
    def own(self) -> RowReading:
        """The context's rows as :meth:`read` would read them."""
        return RowReading(self.similarity, self.gaps, np.arange(len(self.gaps)))

    @torch.inference_mode()
    def read(self, rows: np.ndarray) -> RowReading:
        """Read rows (Q, D) against the context."""
        x = torch.as_tensor(rows, dtype=torch.float32, device=self._context.x.device)[None]
        x = torch.nn.functional.pad(x, (0, self._context.x.shape[2] - x.shape[2]))
        self._context = prepared(self._context)
        features = cross_features(self._context, x)
        relations = relations_of(features, self._context)
        logits = self.network.read(relations, self._states).logits[0]
        similarity = torch.sigmoid(logits.double()).cpu().numpy()
        place = features.nearest[0]
        standing = ((x - self._context.center) / self._context.size)[0]
        same = (standing - self._context.x[0, place]).abs().amax(dim=1) <= _TWIN
        twins = torch.where(same, place, -1).cpu().numpy()
        known = np.flatnonzero(twins >= 0)
        gaps = features.gaps[0].double().cpu().numpy()
        similarity[known], gaps[known] = self.similarity[twins[known]], self.gaps[twins[known]]
        return RowReading(similarity, gaps, twins)


def device_of(network: nn.Module) -> torch.device:
    """Where a network is."""
    return next(network.parameters()).device


def _part(context: Context, own: slice) -> Context:
    """One data set of a batch of contexts."""
    parts: dict[str, Any] = {
        name: value[own] if isinstance(value, Tensor) else tuple(part[own] for part in value)
        for name, value in context._asdict().items()
    }
    return Context(**parts)


def _equal_chunks(sizes: Sequence[int]) -> list[list[int]]:
    """Indices of contexts of one size, as many together as memory allows."""
    chunks = []
    for size in sorted(set(sizes)):
        same = [i for i, n in enumerate(sizes) if n == size]
        most = max(1, _PAIRS // size**2)
        chunks += [same[start : start + most] for start in range(0, len(same), most)]
    return chunks
