"""Amortised maximum likelihood: one forward pass writes down a mixture of Gaussians.

    θ = f(X; φ) = {π_k, μ_k, σ_k},   φ trained to maximise  E_X [ (1/N) Σ_i log p(x_i; θ) ]
    r_ik ∝ π_k N(x_i; μ_k, diag σ_k²)

Optionally followed by rounds of expectation maximisation that start from θ.

Lee, Lee, Kim, Kosiorek, Choi & Teh, "Set Transformer: a framework for attention-based
permutation-invariant neural networks", ICML 2019, section 5.3.
"""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from asterism._validation import StrOptions, at_least, check_rows
from asterism.base import AmortizedClusterer
from asterism.base.mixture import MixtureMixin
from asterism.exceptions import DataError
from asterism.functional.mixtures import Mixture, reduce_mixture
from asterism.functional.sets import SetBatch
from asterism.nn.set_transformer import SetTransformer
from asterism.priors import GaussianMixturePrior
from asterism.training import TrainingPlan

__all__ = ["SetTransformerMixture"]


class SetTransformerMixture(MixtureMixin, AmortizedClusterer):
    """Mixture of Gaussians by one pass of a Set Transformer.

    The shipped network was trained on two-dimensional mixtures of four Gaussians. Data of more
    columns are projected on their two leading principal axes, and all data are moved to the place
    and scale of the training prior by one recorded affine map.

    Parameters
    ----------
    n_clusters : int or "auto", default="auto"
        Number of clusters. "auto" takes what the weights were trained for; a smaller number merges
        components of the network's mixture, nearest pair first.
    refine : {None, "em"}, default=None
        Follow the network by expectation maximisation.
    n_em : int, default=1
        Rounds of it.
    weights : str or path, default="default"
        Name of shipped weights, or a file.
    scaling : {"auto", "local", "global", "none"}, default="auto"
        "local" makes the clusters as wide as those of training, by a rough guess of them, "global"
        the whole table. "auto" begins with the guess, or with the whole table where weights tell no
        width, as the default ones; clusters at most 1000 of the rows at several multiples of it,
        and takes the one whose clusters are best described by Gaussians (ICL); with fewer than 50
        rows it keeps to where it began. "none" hands the data over as they are.
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
    means_, scales_ : ndarray of shape (n_clusters, n_network_dimensions)
        Centres and standard deviations, in the network's coordinates
        ``(X - origin_) @ projection_``.
    origin_, projection_ : ndarray
        The affine map.
    module_ : torch.nn.Module
        The network.

    References
    ----------
    Lee et al., "Set Transformer", ICML 2019.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from asterism import SetTransformerMixture
    >>> X, _ = make_blobs(300, centers=4, cluster_std=0.5, random_state=1)
    >>> SetTransformerMixture(refine="em").fit(X).n_clusters_
    4
    """

    _module_class: ClassVar[type[nn.Module]] = SetTransformer
    _default_weights: ClassVar[str] = "set-transformer-mog"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **AmortizedClusterer._parameter_constraints,
        **MixtureMixin._parameter_constraints,
        "n_clusters": [at_least(1), StrOptions({"auto"})],
    }

    def __init__(
        self,
        n_clusters: int | str = "auto",
        *,
        refine: str | None = None,
        n_em: int = 1,
        weights: str | Path = "default",
        scaling: str = "auto",
        device: str = "auto",
        random_state: Any = None,
        verbose: int | bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.refine = refine
        self.n_em = n_em
        self.weights = weights
        self.scaling = scaling
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def _architecture(self, prior: Any) -> dict[str, Any]:
        n_components = getattr(prior, "n_clusters", 4)
        if self.n_clusters != "auto":
            n_components = int(self.n_clusters)
        return {"dim": getattr(prior, "dim", 2), "n_components": n_components}

    def _default_prior(self) -> GaussianMixturePrior:
        return GaussianMixturePrior(
            n_clusters=4 if self.n_clusters == "auto" else int(self.n_clusters)
        )

    def _default_plan(self) -> TrainingPlan:
        return TrainingPlan(
            steps=50_000, lr=1e-3, schedule="cosine", warmup=0.02, clip=10.0, ema=0.999
        )

    def _check_set(self, X: np.ndarray) -> None:
        capacity = int(self.architecture_["n_components"])
        if self.n_clusters == "auto":
            return
        wanted = int(self.n_clusters)
        if wanted > capacity:
            raise DataError(
                f"n_clusters={wanted}, but the weights {str(self.weights)!r} were trained for "
                f"{capacity}: ask for at most {capacity}, or train your own with "
                f"SetTransformerMixture(n_clusters={wanted}).pretrain()"
            )
        check_rows(len(X), wanted)

    @property
    def _trial_settings(self) -> dict[str, Any]:
        return {"refine": None}

    def _infer(self, batch: SetBatch, seed: int) -> list[dict[str, np.ndarray]]:
        capacity = int(self.architecture_["n_components"])
        wanted = capacity if self.n_clusters == "auto" else int(self.n_clusters)
        mixture = Mixture(*(part.cpu().double() for part in self.module_(batch.x, batch.keep)))
        if wanted < capacity:
            reduced = [
                reduce_mixture(Mixture(*parts), wanted) for parts in zip(*mixture, strict=True)
            ]
            mixture = Mixture(*(torch.stack(parts) for parts in zip(*reduced, strict=True)))
        refined = self._refined(batch.x, mixture, batch.keep)
        log_weights, means, scales = (part.numpy() for part in refined)
        return [
            {"weights_": np.exp(log_weights[b]), "means_": means[b], "scales_": scales[b]}
            for b in range(len(batch))
        ]
