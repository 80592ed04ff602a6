"""Networks trained beforehand grow one whole cluster at a time: CCP, and ACP with attention.

    q(s_1 … s_K | X) = Π_k (1/n_k) Σ_{a ∈ s_k} E_z Π_i Bernoulli(b_i; p(i joins a | z, s_<k, X))
    ŝ     = the partition of the largest estimated probability among those that a search finds
    r_ik  ∝ p_ik Π_{j<k} (1 − p_ij),   p_ik = p(i joins a_k | z_k, s_<k, X) at the steps to ŝ

The last is worked out for each row by itself, in double precision, so that a row gets the same
answer in any company. See :mod:`asterism.nn.clusterwise` for the network, and
:mod:`asterism.nn.clusterwise_sampling` for the search and the probabilities.

Pakman, Wang, Mitelut, Lee & Paninski, "Neural clustering processes", ICML 2020 (CCP). Wang, Lee,
Basu, Lee, Teh, Paninski & Pakman, "Amortized probabilistic detection of communities in graphs",
2020 (ACP).
"""

import copy
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from asterism._validation import StrOptions, at_least, resolve_device
from asterism.base import AmortizedClusterer
from asterism.base.posterior import PosteriorMixin
from asterism.functional.contexts import Context
from asterism.functional.filtering import stick_breaking
from asterism.functional.partitions import unique_partitions
from asterism.functional.sets import SetBatch
from asterism.nn.clusterwise import ClusterwiseNetwork, Codes
from asterism.nn.clusterwise_sampling import (
    cluster_contexts,
    grow_partitions,
    partition_log_probability,
)
from asterism.priors import RestaurantMixturePrior
from asterism.training import TrainingPlan

__all__ = ["ACP", "CCP"]

_ROWS = 1 << 15  # rows times clusters judged at once: 32 MB a layer at the published width


class CCP(PosteriorMixin, AmortizedClusterer):
    """Clusterwise clustering process: partitions grown cluster by cluster, K found.

    A few dozen threads grow partitions side by side, each in about K passes of the network; of
    these and of the partitions drawn from the posterior the most probable one is kept.

    Parameters
    ----------
    n_threads : int, default=50
        Partitions grown in search of the most probable one.
    draw : {"mean", "sample"}, default="mean"
        What the search takes for the latent variable of a step, and who joins: its mean, and those
        who probably do, so that threads differ by their random anchors; or draws of both.
    n_draws : int, default=5
        Latents drawn for each step whose probability is estimated.
    n_samples : int, default=100
        Partitions drawn from the posterior.
    max_points : int, default=500
        Most rows read together. Of a larger table so many are chosen at random.
    weights : str or path, default="default"
        Name of shipped weights, or a file.
    scaling : {"auto", "local", "global", "none"}, default="auto"
        "local" makes the clusters as wide as those of training, by a rough guess of them, "global"
        the whole table. "auto" begins with the guess, clusters at most 200 of the rows at several
        multiples of it, and takes the one whose clusters are best described by Gaussians (ICL);
        with fewer than 50 rows it keeps to the guess. "none" hands the data over as they are.
    device : str, default="auto"
        Where to compute: "auto", "cpu", "cuda", "cuda:1", ...
    random_state : int, RandomState or None, default=None
        Seed of the anchors, the latents, the rows chosen, the samples and of ``pretrain``.
    verbose : bool or int, default=False
        Show a progress bar while pre-training.

    Attributes
    ----------
    labels_ : ndarray of shape (n_rows,)
        Cluster of each row, 0 the largest, as ``predict`` has it: each row passes by the clusters
        of the partition found, and a few at their borders may leave the one they were counted in.
    n_clusters_ : int
        Clusters that own at least one row.
    context_indices_, context_labels_ : ndarray of shape (n_context,)
        Rows read together, and the partition found of them.
    context_rows_ : ndarray of shape (n_context, n_network_dimensions)
        Those rows in the network's coordinates ``(X - origin_) @ projection_``.
    nearest_ : ndarray of shape (n_rows,)
        For each row the place of the nearest of the context, which it follows in ``partitions_``.
    log_probability_ : float
        Estimated log-probability of the partition, whatever the order of its clusters.
    n_passes_ : int
        Passes of the network that the search took.
    cluster_steps_ : ndarray of shape (n_clusters,)
        The step at which each cluster was grown.
    cluster_contexts_, cluster_memories_ : ndarray
        What the network knew at these steps, by which further rows are judged.
    partitions_, log_probabilities_, k_posterior_, confidence_, overall_confidence_, coassignment_
        See :class:`asterism.base.posterior.PosteriorMixin`. Log-probabilities are estimates, low on
        average by Jensen's inequality and, from about six clusters on, uncertain by several nats;
        they concern the context's rows.
    origin_, projection_ : ndarray
        The affine map.
    module_ : torch.nn.Module
        The network.

    See Also
    --------
    ACP : The same with attention.
    NCP : Partitions grown row by row, with exact probabilities.

    References
    ----------
    Pakman, Wang, Mitelut, Lee & Paninski, "Neural clustering processes", ICML 2020.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from asterism import CCP
    >>> X, _ = make_blobs(60, centers=3, cluster_std=0.5, random_state=1)
    >>> model = CCP(n_samples=10, random_state=0).fit(X)
    >>> model.n_clusters_
    3
    >>> labels, log_probability = model.samples(5)
    >>> labels.shape, log_probability.shape
    ((5, 60), (5,))
    """

    _module_class: ClassVar[type[nn.Module]] = ClusterwiseNetwork
    _default_weights: ClassVar[str] = "ccp-mog"
    _attention: ClassVar[str] = "none"
    _per_cluster: ClassVar[tuple[str, ...]] = (
        "cluster_steps_",
        "cluster_contexts_",
        "cluster_memories_",
    )
    _cluster_numbers: ClassVar[tuple[str, ...]] = ("context_labels_",)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **AmortizedClusterer._parameter_constraints,
        **PosteriorMixin._parameter_constraints,
        "n_threads": [at_least(1)],
        "draw": [StrOptions({"mean", "sample"})],
        "n_draws": [at_least(1)],
        "max_points": [at_least(2)],
    }

    def __init__(
        self,
        *,
        n_threads: int = 50,
        draw: str = "mean",
        n_draws: int = 5,
        n_samples: int = 100,
        max_points: int = 500,
        weights: str | Path = "default",
        scaling: str = "auto",
        device: str = "auto",
        random_state: Any = None,
        verbose: int | bool = False,
    ) -> None:
        self.n_threads = n_threads
        self.draw = draw
        self.n_draws = n_draws
        self.n_samples = n_samples
        self.max_points = max_points
        self.weights = weights
        self.scaling = scaling
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    # --- training -----------------------------------------------------------------------------

    def _architecture(self, prior: Any) -> dict[str, Any]:
        return {"dim": getattr(prior, "dim", 2), "attention": self._attention}

    def _default_prior(self) -> RestaurantMixturePrior:
        return RestaurantMixturePrior()

    def _default_plan(self) -> TrainingPlan:
        return TrainingPlan(steps=10_000, lr=1e-4, weight_decay=0.01)

    # --- fit ----------------------------------------------------------------------------------

    @property
    def _trial_rows(self) -> int:
        return min(200, self.max_points)

    @property
    def _trial_settings(self) -> dict[str, Any]:
        return {"n_threads": min(10, self.n_threads), "n_samples": 1, "n_draws": 1}

    def _infer(self, batch: SetBatch, seed: int) -> list[dict[str, Any]]:
        # Every data set has a generator of its own: its answer does not depend on the others.
        return [
            self._search(x[keep], torch.Generator().manual_seed(seed))
            for x, keep in zip(batch.x, batch.keep, strict=True)
        ]

    def _search(self, x: Tensor, chance: torch.Generator) -> dict[str, Any]:
        """Grow partitions of rows (N, D) and draw some, and describe the most probable of all."""
        network = self._network
        context = Context.draw(x, self.max_points, chance)
        codes = network.encode(context.rows[None])
        grown = grow_partitions(network, codes, self.n_threads, chance, draw=self.draw)
        drawn = grow_partitions(network, codes, self.n_samples, chance, draw="sample")
        found, which = unique_partitions(torch.cat([grown.labels, drawn.labels]))
        log_q = self._estimate(codes, found, chance)
        partitions = drawn.labels.int().cpu().numpy()[:, context.nearest]
        n_passes = grown.n_passes
        best = int((which == log_q.argmax()).nonzero()[0, 0])
        if best >= self.n_threads:
            grown, best = drawn, best - self.n_threads
        labels = grown.labels[best]
        n_steps = int(labels.max()) + 1
        contexts, memories = cluster_contexts(
            network, codes, labels, grown.anchors[best, :n_steps], grown.latents[best, :n_steps]
        )
        return {
            "context_indices_": context.indices,
            "context_rows_": context.rows.cpu().numpy(),
            "context_labels_": labels.cpu().numpy(),
            "nearest_": context.nearest,
            "log_probability_": float(log_q.max()),
            "n_passes_": n_passes,
            "partitions_": partitions,
            "log_probabilities_": log_q[which[self.n_threads :]].cpu().numpy(),
            "cluster_steps_": np.arange(n_steps),
            "cluster_contexts_": contexts.cpu().numpy(),
            "cluster_memories_": memories.cpu().numpy(),
        }

    def _estimate(self, codes: Codes, labels: Tensor, chance: torch.Generator) -> Tensor:
        return partition_log_probability(self._network, codes, labels, chance, n_draws=self.n_draws)

    # --- after fit ----------------------------------------------------------------------------

    @torch.inference_mode()
    def _log_responsibilities(self, X: np.ndarray) -> np.ndarray:
        # In double precision: single rows and many must come out the same.
        network = copy.deepcopy(self._network).cpu().double()
        order = np.argsort(self.cluster_steps_)
        contexts, memories = (
            torch.from_numpy(part[order]).double()
            for part in (self.cluster_contexts_, self.cluster_memories_)
        )
        rows = torch.from_numpy(self._aligned(X)).double()
        logits = [
            network.new_point_logits(part, contexts, memories if memories.shape[1] else None)
            for part in rows.split(max(1, _ROWS // len(order)))
        ]
        log_p, _ = stick_breaking(torch.cat(logits))
        # Nobody is left over: what no step takes is shared out as the rest is.
        return log_p.log_softmax(dim=1)[:, self.cluster_steps_].numpy()

    @torch.inference_mode()
    def _sample_partitions(self, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        chance = torch.Generator().manual_seed(seed)
        context = torch.from_numpy(self.context_rows_).to(resolve_device(self.device))
        codes = self._network.encode(context[None])
        grown = grow_partitions(self._network, codes, n, chance, draw="sample")
        found, which = unique_partitions(grown.labels)
        log_q = self._estimate(codes, found, chance)[which]
        return grown.labels.int().cpu().numpy()[:, self.nearest_], log_q.cpu().numpy()

    @property
    def _network(self) -> Any:
        return self._on_device()


class ACP(CCP):
    """Attentive clustering process: :class:`CCP` whose points look at each other before joining.

    At every step the unassigned points attend to each other and to the anchor, where CCP has means;
    a pass costs about twice as much. For the variant that attends once, to the whole data set,
    train with ``pretrain(attention="shared")``.

    Parameters, attributes and methods are those of :class:`CCP`.

    References
    ----------
    Wang, Lee, Basu, Lee, Teh, Paninski & Pakman, "Amortized probabilistic detection of communities
    in graphs", 2020; first versions under the title "Attentive clustering processes".

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from asterism import ACP
    >>> X, _ = make_blobs(60, centers=3, cluster_std=0.5, random_state=1)
    >>> ACP(n_samples=10, random_state=0).fit(X).predict_proba(X).shape
    (60, 3)
    """

    _default_weights: ClassVar[str] = "acp-mog"
    _attention: ClassVar[str] = "anchored"
