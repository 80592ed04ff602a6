"""Rows read by the passes that a filtering left: what a fitted :class:`asterism.DAC` knows.

Of every pass that was kept there are

    pass_contexts_, pass_memory_   the cluster's vector, and the inducing rows, of each look at it
    pass_rows_                     the row it surely took
    pass_clusters_, pass_weights_  the cluster it is part of, and its share of the rows

A row is put to all passes by itself: the first that claims it names the cluster, and what no pass
claims is shared out by the densities, if there are any. ``reading_`` is "passes", "densities"
(those alone) or "mixture" (the refined Gaussians).
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from asterism._validation import resolve_device
from asterism.base import AmortizedClusterer
from asterism.base.mixture import MixtureMixin
from asterism.functional.filtering import FilteringPath, read_claims, sum_by_group
from asterism.nn.densities import ConditionalDensity
from asterism.nn.filtering import FilteringNetwork, StoredPasses

__all__ = ["FilteringStep", "PassesMixin"]

_READS, _IMAGES = 1 << 16, 1 << 12  # rows, or images, times passes read at once: memory stays flat


class FilteringStep(NamedTuple):
    """One pass of the filtering.

    ``indices`` are the rows then left, ``probabilities`` how surely each belongs to the cluster of
    the pass, ``taken`` those it got, ``forced`` whether it got a row against its probability, and
    ``center`` the mean the network gave the cluster, in its coordinates, if it gives one.
    """

    indices: np.ndarray
    probabilities: np.ndarray
    taken: np.ndarray
    forced: bool
    center: np.ndarray | None


class PassesMixin(MixtureMixin):
    """Reads rows by stored passes; list it before the base class."""

    device: str
    module_: nn.Module
    raw_labels_: np.ndarray
    n_passes_: int
    path_indices_: np.ndarray
    path_logits_: np.ndarray
    path_sizes_: np.ndarray
    path_forced_: np.ndarray
    path_centers_: np.ndarray
    pass_numbers_: np.ndarray
    pass_clusters_: np.ndarray
    pass_weights_: np.ndarray
    pass_contexts_: np.ndarray
    pass_memory_: np.ndarray
    pass_rows_: np.ndarray
    reading_: str

    _on_device: Any
    _brought_near: Any

    @property
    def filtering_path_(self) -> list[FilteringStep]:
        """Every pass of the filtering, in order."""
        ends = np.cumsum(self.path_sizes_)
        steps = []
        for number, (start, end) in enumerate(zip(ends - self.path_sizes_, ends, strict=True)):
            indices = self.path_indices_[start:end]
            probabilities = torch.from_numpy(self.path_logits_[start:end]).sigmoid().numpy()
            taken = self.raw_labels_[indices] == number
            center = self.path_centers_[number] if hasattr(self, "path_centers_") else None
            forced = bool(self.path_forced_[number])
            steps.append(FilteringStep(indices, probabilities, taken, forced, center))
        return steps

    @property
    def has_density(self) -> bool:
        """Whether ``score`` is a mean log-likelihood, in the network's coordinates.

        That of weights with ``density="vae"`` is a lower bound of one.
        """
        density = self._network.density
        return density is not None and not density.is_bound

    def _record(self, path: FilteringPath, places: Tensor, n_rows: int) -> dict[str, Any]:
        """What became of each row; those of the context are at ``places``."""
        labels = torch.full((n_rows,), -1)
        labels[places] = path.labels
        passes = path.passes
        return {
            "raw_labels_": labels.numpy(),
            "n_passes_": len(passes),
            "n_iter_": len(passes),  # the name that goes with max_iter
            "n_leftover_": int((path.labels < 0).sum()),
            "path_indices_": places[torch.cat([step.indices for step in passes])].numpy(),
            "path_logits_": torch.cat([step.logits for step in passes]).numpy(),
            "path_sizes_": np.array([len(step.indices) for step in passes]),
            "path_forced_": np.array([step.forced for step in passes]),
        }

    def _fitted_labels(self, X: np.ndarray) -> np.ndarray:
        """By the passes, as they went; what they left over or gave up is read like a new row."""
        if self.reading_ != "passes":
            return self._read_labels(X)
        cluster_of = np.full(self.n_passes_ + 1, -1)  # the last entry serves -1
        cluster_of[self.pass_numbers_] = self.pass_clusters_
        labels = cluster_of[self.raw_labels_]
        rest = np.flatnonzero(labels < 0)
        if len(rest):
            labels[rest] = self._read_labels(X[rest])
        return labels

    def _read_labels(self, X: np.ndarray) -> np.ndarray:
        """As new rows."""
        return AmortizedClusterer._fitted_labels(cast("AmortizedClusterer", self), X)

    def _log_responsibilities(self, X: np.ndarray) -> np.ndarray:
        if self.reading_ == "mixture":
            return super()._log_responsibilities(X)
        clusters, n_clusters = torch.from_numpy(self.pass_clusters_), len(self.weights_)
        parts = []
        for x in self._portions(X):
            shares = None
            if self._network.density is not None:
                joint = sum_by_group(self._joint(x), clusters, n_clusters)
                shares = torch.log_softmax(joint, dim=-1)
            if self.reading_ == "passes" or shares is None:
                shares = read_claims(self._logits(x), clusters, n_clusters, shares)
            parts.append(shares)
        return torch.cat(parts).numpy()

    def _score(self, X: np.ndarray) -> float:
        """Mean log-likelihood a row, in the network's coordinates, where there are densities."""
        if self.reading_ == "mixture":
            return super()._score(X)
        if self._network.density is None:
            return AmortizedClusterer._score(cast("AmortizedClusterer", self), X)
        total = sum(float(self._joint(x).logsumexp(dim=-1).sum()) for x in self._portions(X))
        return total / len(X)

    def _portions(self, X: np.ndarray) -> Iterator[Tensor]:
        """Rows for the network, so many at once as fit the memory with all passes."""
        self._on_device()
        x = torch.as_tensor(self._brought_near(X), dtype=torch.float32)
        reads = _IMAGES if self._network.reads_images else _READS
        portion = max(1, reads // int(np.prod(self.pass_contexts_.shape[:2])))
        yield from x.to(resolve_device(self.device)).split(portion)

    def _features(self, x: Tensor) -> Tensor:
        """What the network sees of rows (B, N, D), a part at a time where they are images."""
        if not self._network.reads_images:
            return self._network.features(x)
        parts = [self._network.features(part) for part in x.flatten(end_dim=1).split(_IMAGES)]
        return torch.cat(parts).unflatten(0, x.shape[:2])

    @torch.inference_mode()
    def _logits(self, x: Tensor) -> Tensor:
        """Logits (n, P) of rows (n, D) in all passes, each row by itself."""
        forced = self.path_forced_[self.pass_numbers_]
        stored = (self.pass_contexts_, self.pass_memory_, self.pass_rows_, forced)
        passes = StoredPasses(*(torch.from_numpy(part).to(x.device) for part in stored))
        return self._network.read(self._features(x[None])[0], passes).cpu().double()

    @torch.inference_mode()
    def _joint(self, x: Tensor) -> Tensor:
        """Log π_k + log p(x; θ_k) of rows (n, D) for all passes, (n, P)."""
        contexts = torch.from_numpy(self.pass_contexts_[:, -1]).to(x)
        density = cast("ConditionalDensity", self._network.density)
        log_p = density.log_prob(x.expand(len(contexts), -1, -1), contexts) * density.nats
        return log_p.cpu().double().mT + torch.from_numpy(self.pass_weights_).log()

    @property
    def _network(self) -> FilteringNetwork:
        return cast("FilteringNetwork", self.module_)
