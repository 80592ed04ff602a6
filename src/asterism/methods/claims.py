"""How data sets are filtered, and what is kept of it: the inference of :class:`asterism.DAC`.

    views     each set from several sides, ``functional.turns``; the believed one is described
    passes    of one view, ``functional.filtering``, until nothing is left
    claims    of one pass: the network's, read once or more often, ``nn.looking``

Passes that took too few rows are given up; those left are clusters, merged if fewer are wanted.
"""

from collections.abc import Callable
from typing import Any, ClassVar, cast

import numpy as np
import torch
from torch import Tensor

from asterism._validation import StrOptions, at_least
from asterism.base import AmortizedClusterer
from asterism.functional.filtering import (
    Claim,
    FilteringPath,
    draw_indices,
    filter_sets,
    group_moments,
)
from asterism.functional.mixtures import Mixture, merge_components, pool_components
from asterism.functional.sets import SetBatch, thin_sets
from asterism.functional.turns import axis_turns, filter_views
from asterism.methods.passes import PassesMixin
from asterism.nn.densities import GaussianDensity
from asterism.nn.looking import look

__all__ = ["ClaimsMixin"]


class ClaimsMixin(PassesMixin):
    """Filters padded batches of data sets; list it before the base class."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PassesMixin._parameter_constraints,
        "n_clusters": [at_least(1), StrOptions({"auto"})],
        "looks": [at_least(1)],
        "views": [at_least(1)],
        "max_iter": [at_least(1)],
        "min_cluster_size": [at_least(1)],
        "context_size": [at_least(2), None],
        "reassign": ["boolean"],
    }

    n_clusters: int | str
    looks: int
    views: int
    max_iter: int
    min_cluster_size: int
    context_size: int | None
    reassign: bool
    view_: int
    projection_: np.ndarray

    _dim: Any

    @property
    def _readings(self) -> int:
        return self.views

    def _infer(self, batch: SetBatch, seed: int) -> list[dict[str, Any]]:
        # Every data set has a generator of its own: its answer does not depend on the others.
        chances = [torch.Generator().manual_seed(seed) for _ in range(len(batch))]
        context, places = thin_sets(batch, self.context_size, chances)
        sizes = batch.sizes.tolist()

        def read(x: Tensor, keep: Tensor, numbers: list[int]) -> tuple[Tensor, list[FilteringPath]]:
            features, claim = self._features(x), self._claims([chances[b] for b in numbers])
            return features, filter_sets(claim, features, keep, max_iter=self.max_iter)

        def count(path: FilteringPath, number: int) -> np.ndarray:
            kept = self._large_passes(path, sizes[number])
            return torch.where(torch.isin(path.labels, kept), path.labels, -1).numpy()

        turns = axis_turns(batch.x.shape[-1], self.views)
        wanted = None if self.n_clusters == "auto" else int(self.n_clusters)
        answers = []
        for b, view in enumerate(filter_views(read, count, context, self.views, wanted)):
            x = turns.turn(view.number, batch.x[b, batch.keep[b]].cpu().double())
            clusters = self._describe(view.path, view.features, x, places[b])
            record = self._record(view.path, places[b], len(x))
            answers.append(clusters | record | {"view_": view.number})
        return answers

    def _claims(self, chances: list[torch.Generator]) -> Callable[[Tensor, Tensor, Tensor], Claim]:
        """What names a cluster of each set, anchors drawn by the set's own generator."""
        network = self._network

        def claim(rows: Tensor, left: Tensor, sets: Tensor) -> Claim:
            anchor = None
            if network.anchored:
                anchor = draw_indices(left, [chances[b] for b in sets.tolist()])
            seen = look(network, rows, left, anchor, looks=self.looks)
            return Claim(seen.logits, anchor, {"contexts": seen.contexts, "memory": seen.memory})

        return claim

    def _accept(self, answer: dict[str, Any]) -> None:
        AmortizedClusterer._accept(cast("AmortizedClusterer", self), answer)
        # From here on the network's coordinates are those of the view.
        turns, columns = axis_turns(self._dim, self.views), torch.from_numpy(self.projection_)
        self.projection_ = turns.turn(self.view_, columns).numpy()

    def _large_passes(self, path: FilteringPath, n_rows: int) -> Tensor:
        """Passes that took enough rows; n_rows is the number of those outside the context too."""
        sizes = torch.bincount(path.labels[path.labels >= 0], minlength=len(path.passes))
        least = self.min_cluster_size * len(path.labels) / n_rows
        return torch.nonzero(sizes >= min(least, int(sizes.max()))).flatten()

    def _describe(
        self, path: FilteringPath, features: Tensor, x: Tensor, places: Tensor
    ) -> dict[str, Any]:
        """The clusters, from what happened to the rows x[places] of the context."""
        passes, kept = path.passes, self._large_passes(path, len(x))
        contexts = torch.stack([step.kept["contexts"] for step in passes])
        observed = group_moments(x[places], path.labels, kept)
        wanted = len(kept) if self.n_clusters == "auto" else int(self.n_clusters)
        clusters = merge_components(observed, wanted)
        answer = {
            "pass_numbers_": kept.numpy(),
            "pass_clusters_": clusters.numpy(),
            "pass_weights_": observed.log_weights.exp().numpy(),
            "pass_contexts_": contexts[kept].numpy(),
            "pass_memory_": torch.stack([passes[k].kept["memory"] for k in kept]).numpy(),
            "pass_rows_": torch.stack([features[passes[k].anchor] for k in kept]).numpy(),
            "reading_": "mixture" if self.refine else "densities" if self.reassign else "passes",
            "weights_": pool_components(observed, clusters).log_weights.exp().numpy(),
        }
        density = self._network.density
        if isinstance(density, GaussianDensity):
            parameters = density.parameters_of(contexts[:, -1].to(density.head.weight.device))
            means, scales = (part.cpu().double() for part in parameters)
            answer["path_centers_"] = means.numpy()
            theta = Mixture(observed.log_weights, means[kept], scales[kept])
            # Refinement starts from the rows that were taken, not from what was said of them.
            theta = pool_components(observed if self.refine else theta, clusters)
            theta = self._refined(x, theta)
            answer["weights_"] = theta.log_weights.exp().numpy()
            answer["means_"], answer["scales_"] = theta.means.numpy(), theta.scales.numpy()
        return answer
