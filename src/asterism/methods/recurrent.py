"""A mixture of Gaussians written down cluster by cluster until the network says stop.

    K = smallest k with c_k < ½,   θ = {π_j, μ_j, σ_j}_{j ≤ K} = pass K of the network
    r_ik ∝ π_k N(x_i; μ_k, diag σ_k²)

c_k is the probability of more than k clusters; see :mod:`asterism.nn.recurrent`. The network is
trained on data sets of few clusters and does not count beyond them: the baseline of deep amortised
clustering, which filters one cluster at a time instead.

Lee, Lee & Teh, "Deep amortized clustering", 2019.
"""

from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from torch import nn

from asterism._validation import StrOptions, at_least, check_rows
from asterism.base import AmortizedClusterer
from asterism.base.mixture import MixtureMixin
from asterism.exceptions import tell
from asterism.functional.sets import SetBatch
from asterism.nn.recurrent import RecurrentSetTransformer
from asterism.priors import ClusterMixturePrior
from asterism.training import TrainingPlan

__all__ = ["RecurrentMixture"]


class RecurrentMixture(MixtureMixin, AmortizedClusterer):
    """Mixture of Gaussians by a Set Transformer that adds components until it stops.

    Data of more columns than the network knows are projected on their leading principal axes, and
    all data are moved to the place and scale of the training prior by one recorded affine map.

    Parameters
    ----------
    n_clusters : int or "auto", default="auto"
        Number of components. "auto" lets the network stop; a number is used as it is, with a
        warning where some of the components own no row.
    max_slots : int, default=50
        Where "auto" ends if the network does not stop.
    refine : {None, "em"}, default=None
        Follow the network by expectation maximisation.
    n_em : int, default=1
        Rounds of it.
    weights : str or path, default="default"
        Name of shipped weights, or a file.
    scaling : {"auto", "local", "global", "none"}, default="auto"
        "local" makes the clusters as wide as those of training, by a rough guess of them, "global"
        the whole table. "auto" begins with the guess, clusters at most 1000 of the rows at several
        multiples of it, and takes the one whose clusters are best described by Gaussians (ICL);
        with fewer than 50 rows it keeps to the guess. "none" hands the data over as they are.
    device : str, default="auto"
        Where to compute: "auto", "cpu", "cuda", "cuda:1", ...
    random_state : int, RandomState or None, default=None
        Seed of ``pretrain``; ``fit`` draws nothing.
    verbose : bool or int, default=False
        Show a progress bar while pre-training.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row, 0 the largest.
    n_clusters_ : int
        Clusters that own at least one row.
    weights_ : ndarray of shape (n_components,)
        Mixture weights π; components that own no row come last.
    means_, scales_ : ndarray of shape (n_components, n_network_dimensions)
        Centres and standard deviations, in the network's coordinates
        ``(X - origin_) @ projection_``.
    stopped_ : bool
        Whether the network stopped by itself; False where ``n_clusters`` was given.
    notes_ : list of str
        Only if there is something to tell: that columns were projected, or that the network did
        not stop, and so failed.
    origin_, projection_ : ndarray
        The affine map.
    module_ : torch.nn.Module
        The network.

    References
    ----------
    Lee, Lee & Teh, "Deep amortized clustering", 2019.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from asterism import RecurrentMixture
    >>> X, _ = make_blobs(300, centers=4, cluster_std=0.5, random_state=1)
    >>> model = RecurrentMixture().fit(X)
    >>> model.n_clusters_, model.means_.shape
    (4, (4, 2))
    """

    _module_class: ClassVar[type[nn.Module]] = RecurrentSetTransformer
    _default_weights: ClassVar[str] = "recurrent-mog"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **AmortizedClusterer._parameter_constraints,
        **MixtureMixin._parameter_constraints,
        "n_clusters": [at_least(1), StrOptions({"auto"})],
        "max_slots": [at_least(1)],
    }

    def __init__(
        self,
        n_clusters: int | str = "auto",
        *,
        max_slots: int = 50,
        refine: str | None = None,
        n_em: int = 1,
        weights: str | Path = "default",
        scaling: str = "auto",
        device: str = "auto",
        random_state: Any = None,
        verbose: int | bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.max_slots = max_slots
        self.refine = refine
        self.n_em = n_em
        self.weights = weights
        self.scaling = scaling
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def _architecture(self, prior: Any) -> dict[str, Any]:
        most = getattr(prior, "max_clusters", getattr(prior, "n_clusters", 4))
        return {"dim": getattr(prior, "dim", 2), "max_clusters": most}

    def _default_prior(self) -> ClusterMixturePrior:
        return ClusterMixturePrior()

    def _default_plan(self) -> TrainingPlan:
        return TrainingPlan(steps=20_000, lr=5e-4, schedule="cosine", warmup=0.01, clip=10.0)

    def _check_set(self, X: np.ndarray) -> None:
        if self.n_clusters != "auto":
            check_rows(len(X), int(self.n_clusters))

    @property
    def _trial_settings(self) -> dict[str, Any]:
        return {"refine": None}

    def _infer(self, batch: SetBatch, seed: int) -> list[dict[str, Any]]:
        network = cast("RecurrentSetTransformer", self.module_)
        if self.n_clusters == "auto":
            found, counts, stops = network.unroll(batch.x, batch.keep, max_slots=self.max_slots)
            count, stopped = counts.tolist(), stops.tolist()
        else:
            found = network(batch.x, batch.keep, n_slots=int(self.n_clusters))
            count, stopped = [int(self.n_clusters)] * len(batch), [False] * len(batch)
        refined = self._refined(batch.x, found, batch.keep)
        log_weights, means, scales = (part.numpy() for part in refined)
        return [
            {
                "weights_": np.exp(log_weights[b, :k]),
                "means_": means[b, :k],
                "scales_": scales[b, :k],
                "stopped_": stopped[b],
            }
            for b, k in enumerate(count)
        ]

    def _settle(self, X: np.ndarray) -> None:
        super()._settle(X)
        if self.n_clusters != "auto" and self.n_clusters_ < int(self.n_clusters):
            tell(
                f"n_clusters={self.n_clusters}, but only {self.n_clusters_} components own a row",
                ConvergenceWarning,  # as scikit-learn's k-means has it
            )

    def _accept(self, answer: dict[str, Any]) -> None:
        super()._accept(answer)
        if self.n_clusters == "auto" and not self.stopped_:
            told = f"the network did not stop within max_slots={self.max_slots}: do not trust it"
            self.notes_ = [*getattr(self, "notes_", []), told]
