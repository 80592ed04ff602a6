"""Deep amortised clustering: a network that finds one cluster, asked again and again.

    until nothing is left:  (ℓ, θ) = f(points left);  points with ℓ > 0 are a cluster and leave

The network is told nothing of the number of clusters and keeps what it learned on few when there
are many. ``fit`` stores of every pass the inducing rows the network read the points through, so
that a new row can be put to the same passes by itself:

    r_k(x) ∝ m_k(x) Π_{j<k} (1 − m_j(x)),   m_k = sigmoid(ℓ_k),   label = first k with ℓ_k(x) > 0

and what no pass claims is shared out by the densities π_k p(x; θ_k).

Lee, Lee & Teh, "Deep amortized clustering", 2019.
"""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor, nn

from asterism._validation import StrOptions, at_least, check_rows, draw_seed, resolve_device
from asterism.base import AmortizedClusterer
from asterism.base.mixture import MixtureMixin
from asterism.exceptions import DataError
from asterism.functional.filtering import (
    Claim,
    FilteringPath,
    draw_index,
    filter_sets,
    group_moments,
    read_claims,
    sum_by_group,
)
from asterism.functional.mixtures import Mixture, merge_components, pool_components
from asterism.functional.sets import SetBatch, thin_sets
from asterism.nn.densities import ConditionalDensity, GaussianDensity
from asterism.nn.filtering import FilteringNetwork, StoredPasses
from asterism.priors.clusters import ClusterMixturePrior
from asterism.training import TrainingPlan

__all__ = ["DAC", "FilteringStep"]

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


class DAC(MixtureMixin, AmortizedClusterer):
    """Deep amortised clustering: finds clusters one by one, and their number.

    The shipped network was trained on two-dimensional mixtures of up to four Gaussians. Data of
    more columns are projected on their leading principal axes, and all data are moved to the place
    and scale of the training prior by one recorded affine map.

    Parameters
    ----------
    n_clusters : int or "auto", default="auto"
        Number of clusters. "auto" leaves it to the network. A number merges clusters, the nearest
        pair first, until so many are left; where the network finds fewer, they stay, with a
        warning.
    max_iter : int, default=50
        Most passes. Rows left over afterwards go to the likeliest cluster; ``n_leftover_`` counts
        them.
    min_cluster_size : int, default=1
        Clusters of fewer rows are dissolved, and their rows read anew against the others.
    context_size : int or None, default=None
        Most rows that the network filters; of larger data a random sample, and the other rows are
        assigned as ``predict`` would. With ``reassign=True`` that costs little, see the notes.
    reassign : bool, default=False
        Assign all rows by the densities of the clusters, one E-step, instead of by the passes.
    refine : {None, "em"}, default=None
        Follow the network by expectation maximisation; weights with Gaussian densities only.
    n_em : int, default=5
        Rounds of it.
    weights : str or path, default="default"
        Name of shipped weights, or a file.
    scaling : {"auto", "local", "global", "none"}, default="auto"
        "local" makes the clusters as wide as those of training, by a rough guess of them, "global"
        the whole table; "auto" is the former where it can be had. "none" hands the data over as
        they are.
    device : str, default="auto"
        Where to compute: "auto", "cpu", "cuda", "cuda:1", ...
    random_state : int, RandomState or None, default=None
        Seed of ``pretrain``, of the rows that ``context_size`` leaves, and of the anchors of
        weights trained with ``loss="anchored"``; else ``fit`` draws nothing.
    verbose : bool or int, default=False
        Show a progress bar while pre-training.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row, 0 the largest.
    n_clusters_ : int
        Number of clusters.
    weights_ : ndarray of shape (n_clusters,)
        Share of the rows taken by each cluster.
    means_, scales_ : ndarray of shape (n_clusters, n_network_dimensions)
        Centres and standard deviations, in the network's coordinates
        ``(X - origin_) @ projection_``; only of weights with Gaussian densities.
    filtering_path_ : list of FilteringStep
        What happened in every pass.
    raw_labels_ : ndarray of shape (n_samples,)
        The pass that took each row, before clusters were dissolved, merged, reassigned or refined;
        -1 for rows left over and for those outside the context.
    n_passes_, n_leftover_ : int
        Passes made (``n_iter_`` is the same), and rows of the context that none of them took.
    pass_clusters_ : ndarray of shape (n_kept_passes,)
        Cluster of each pass that was kept.
    origin_, projection_ : ndarray
        The affine map.
    module_ : torch.nn.Module
        The network.

    Notes
    -----
    The architecture is chosen in ``pretrain``: ``loss="anchored"``, ``density="maf"`` or ``"vae"``,
    ``encoder="conv"``; see :class:`asterism.nn.filtering.FilteringNetwork`.

    A fitted model keeps the inducing rows of every pass: 128 KiB each at the published sizes.

    ``context_size=150, reassign=True`` is meant for many data sets or large ones: the work of the
    network no longer grows with the rows, and a row costs K densities. Clusters of which the sample
    has few rows may be missed.

    References
    ----------
    Lee, Lee & Teh, "Deep amortized clustering", 2019.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from asterism import DAC
    >>> X, _ = make_blobs(300, centers=4, cluster_std=0.5, random_state=1)
    >>> model = DAC().fit(X)
    >>> model.n_clusters_, [len(step.indices) for step in model.filtering_path_][:2]
    (4, [300, 225])
    """

    _module_class: ClassVar[type[nn.Module]] = FilteringNetwork
    _default_weights: ClassVar[str] = "dac-mog"
    _cluster_numbers: ClassVar[tuple[str, ...]] = ("pass_clusters_",)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **AmortizedClusterer._parameter_constraints,
        **MixtureMixin._parameter_constraints,
        "n_clusters": [at_least(1), StrOptions({"auto"})],
        "max_iter": [at_least(1)],
        "min_cluster_size": [at_least(1)],
        "context_size": [at_least(2), None],
        "reassign": ["boolean"],
    }

    def __init__(
        self,
        n_clusters: int | str = "auto",
        *,
        max_iter: int = 50,
        min_cluster_size: int = 1,
        context_size: int | None = None,
        reassign: bool = False,
        refine: str | None = None,
        n_em: int = 5,
        weights: str | Path = "default",
        scaling: str = "auto",
        device: str = "auto",
        random_state: Any = None,
        verbose: int | bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.max_iter = max_iter
        self.min_cluster_size = min_cluster_size
        self.context_size = context_size
        self.reassign = reassign
        self.refine = refine
        self.n_em = n_em
        self.weights = weights
        self.scaling = scaling
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    # --- training -----------------------------------------------------------------------------

    def _architecture(self, prior: Any) -> dict[str, Any]:
        return {"dim": getattr(prior, "dim", 2)}

    def _default_prior(self) -> ClusterMixturePrior:
        return ClusterMixturePrior()

    def _default_plan(self) -> TrainingPlan:
        return TrainingPlan(steps=20_000, lr=5e-4, schedule="cosine", clip=10.0)

    # --- filtering ----------------------------------------------------------------------------

    def _check_set(self, X: np.ndarray) -> None:
        density = self._network.density
        if self.refine == "em" and not isinstance(density, GaussianDensity):
            raise DataError(
                f"refine='em' moves Gaussians, and weights={str(self.weights)!r} have none: use "
                "refine=None"
            )
        if self.reassign and density is None:
            raise DataError(
                f"reassign=True needs densities, and weights={str(self.weights)!r} have none: use "
                "reassign=False"
            )
        if self.n_clusters != "auto":
            check_rows(len(X), int(self.n_clusters))
            if self.context_size is not None and int(self.n_clusters) > self.context_size:
                raise DataError(
                    f"n_clusters={self.n_clusters} is more than the {self.context_size} rows read "
                    "together: raise context_size"
                )

    def _infer(self, batch: SetBatch) -> list[dict[str, Any]]:
        network, seed = self._network, draw_seed(self.random_state)
        # Every data set has a generator of its own: its answer does not depend on the others.
        chances = [torch.Generator().manual_seed(seed) for _ in range(len(batch))]

        def claim(rows: Tensor, left: Tensor, sets: Tensor) -> Claim:
            anchor = None
            if network.anchored:
                chosen = [chances[b] for b in sets.tolist()]
                anchor = torch.stack([draw_index(*pair) for pair in zip(left, chosen, strict=True)])
            reading = network.remember(rows, left, anchor)
            kept = {"context": reading.context, "memory": reading.memory}
            return Claim(reading.logits, anchor, kept)

        context, places = thin_sets(batch, self.context_size, chances)
        features = self._features(context.x)
        paths = filter_sets(claim, features, context.keep, max_iter=self.max_iter)
        sizes = batch.keep.sum(dim=1).tolist()
        return [
            self._describe(path, features[b, keep].cpu(), context.x[b, keep].cpu().double())
            | self._record(path, places[b], sizes[b])
            for b, (path, keep) in enumerate(zip(paths, context.keep, strict=True))
        ]

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

    def _describe(self, path: FilteringPath, features: Tensor, x: Tensor) -> dict[str, Any]:
        """The clusters, from what happened to the rows of the context."""
        passes = path.passes
        sizes = torch.bincount(path.labels[path.labels >= 0], minlength=len(passes))
        kept = torch.nonzero(sizes >= min(self.min_cluster_size, int(sizes.max()))).flatten()
        contexts = torch.stack([step.kept["context"] for step in passes])
        observed = group_moments(x, path.labels, kept)
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
            parameters = density.parameters_of(contexts.to(density.head.weight.device))
            means, scales = (part.cpu().double() for part in parameters)
            answer["path_centers_"] = means.numpy()
            theta = Mixture(observed.log_weights, means[kept], scales[kept])
            # Refinement starts from the rows that were taken, not from what was said of them.
            theta = pool_components(observed if self.refine else theta, clusters)
            theta = self._refined(x, theta)
            answer["weights_"] = theta.log_weights.exp().numpy()
            answer["means_"], answer["scales_"] = theta.means.numpy(), theta.scales.numpy()
        return answer

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

    # --- reading rows -------------------------------------------------------------------------

    def _fitted_labels(self, X: np.ndarray) -> np.ndarray:
        """By the passes, as they went; what they left over or gave up is read like a new row."""
        if self.reading_ != "passes":
            return super()._fitted_labels(X)
        cluster_of = np.full(self.n_passes_ + 1, -1)  # the last entry serves -1
        cluster_of[self.pass_numbers_] = self.pass_clusters_
        labels = cluster_of[self.raw_labels_]
        rest = np.flatnonzero(labels < 0)
        if len(rest):
            labels[rest] = super()._fitted_labels(X[rest])
        return labels

    def _settle(self, X: np.ndarray) -> None:
        super()._settle(X)
        if self.n_clusters != "auto" and self.n_clusters_ < int(self.n_clusters):
            warnings.warn(
                f"n_clusters={self.n_clusters}, but the network finds {self.n_clusters_}, and "
                "clusters are merged, never split",
                ConvergenceWarning,  # as scikit-learn's k-means has it
                stacklevel=5,
            )

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
            return AmortizedClusterer._score(self, X)
        total = sum(float(self._joint(x).logsumexp(dim=-1).sum()) for x in self._portions(X))
        return total / len(X)

    def _portions(self, X: np.ndarray) -> Iterator[Tensor]:
        """Rows for the network, so many at once as fit the memory with all passes."""
        self._on_device()
        x = torch.as_tensor(self._brought_near(X), dtype=torch.float32)
        reads = _IMAGES if self._network.reads_images else _READS
        portion = max(1, reads // len(self.pass_clusters_))
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
        contexts = torch.from_numpy(self.pass_contexts_).to(x)
        density = cast("ConditionalDensity", self._network.density)
        log_p = density.log_prob(x.expand(len(contexts), -1, -1), contexts) * density.nats
        return log_p.cpu().double().mT + torch.from_numpy(self.pass_weights_).log()

    @property
    def _network(self) -> FilteringNetwork:
        return cast("FilteringNetwork", self.module_)
