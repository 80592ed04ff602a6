"""The default: one network reads a table and says which rows belong together, K unknown.

    P_ij = probability that rows i and j share a cluster, by a network trained on synthetic tables
    p(K) = its belief over the number of clusters
    ĉ    = the partition of the largest expected score under both
    r_ik ∝ mean of P_ij over the rows j of cluster k

The network reads at most ``context_size`` rows together. Of a larger table it reads a sample that
covers rare regions, and then every other row by itself, by its relations to that sample. Beyond
20 000 rows only references are read so, and the others follow the nearest reference.
"""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from asterism._validation import Integral, Interval, StrOptions, at_least, check_rows
from asterism.base import AmortizedClusterer
from asterism.functional.contexts import choose_context
from asterism.functional.decisions import RULES, choose_partition, expected_ari
from asterism.functional.relations import Context, cross_features, describe
from asterism.functional.scaling import fit_scaling
from asterism.nn.pairwise import PairNetwork, Relations, relate, tokens_of
from asterism.priors import TabularPrior
from asterism.training import PriorSource, TrainingPlan

__all__ = ["Asterism"]

_DIRECT = 20_000  # most rows that are all read by the network
_REFERENCES = 4096


class Asterism(AmortizedClusterer):
    """Clusters a table with a pre-trained network; the number of clusters is found.

    Parameters
    ----------
    n_clusters : int, (int, int) or "auto", default="auto"
        Number of clusters, honoured exactly; or the lowest and highest number to choose from.
    rule : {"ari", "vi", "mixed"}, default="ari"
        What the partition should do best by, in expectation; see
        :mod:`asterism.functional.decisions`.
    context_size : int, default=512
        Most rows the network reads together.
    weights : str or path, default="default"
        Name of shipped weights, or a file.
    scaling : {"standard", "none"}, default="standard"
        Whether columns are brought to unit deviation first.
    device : str, default="auto"
        Where to compute: "auto", "cpu", "cuda", ...
    random_state : int, RandomState or None, default=None
        Fixes which rows of a large table make the context.
    verbose : bool or int, default=False
        Show a progress bar while pre-training.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row, 0 the largest.
    n_clusters_ : int
    k_posterior_ : ndarray of shape (31,)
        Probability of each number of clusters; the index is K.
    confidence_ : ndarray of shape (n_samples,)
        For each row, the expected overlap (Jaccard) of its cluster with the true one.
    overall_confidence_ : float
        Expected adjusted Rand index of the partition.
    outlier_score_ : ndarray of shape (n_samples,)
        0 for rows as close to their neighbours as is usual in their cluster, towards 1 for rows
        far from all.
    context_indices_ : ndarray of shape (n_context,)
        Rows that the network read together.
    similarity_ : ndarray of shape (n_context, n_context)
        Probability that two of them share a cluster.
    module_ : torch.nn.Module
        The network.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from asterism import Asterism
    >>> X, y = make_blobs(300, centers=3, cluster_std=0.5, random_state=0)
    >>> Asterism(random_state=0).fit(X).n_clusters_
    3
    """

    _module_class: ClassVar[type[nn.Module]] = PairNetwork
    _default_weights: ClassVar[str] = "asterism"
    _chunk: ClassVar[int] = 512
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **AmortizedClusterer._parameter_constraints,
        "n_clusters": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), tuple],
        "rule": [StrOptions(set(RULES))],
        "context_size": [at_least(16)],
        "scaling": [StrOptions({"standard", "none"})],
    }

    def __init__(
        self,
        n_clusters: int | tuple[int, int] | str = "auto",
        *,
        rule: str = "ari",
        context_size: int = 512,
        weights: str | Path = "default",
        scaling: str = "standard",
        device: str = "auto",
        random_state: Any = None,
        verbose: int | bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.rule = rule
        self.context_size = context_size
        self.weights = weights
        self.scaling = scaling
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    # --- training -----------------------------------------------------------------------------

    def _architecture(self, prior: Any) -> dict[str, Any]:
        return {}

    def _default_prior(self) -> TabularPrior:
        return TabularPrior()

    def _default_plan(self) -> TrainingPlan:
        return TrainingPlan(
            steps=20_000, optimizer="adamw", weight_decay=0.01, schedule="cosine", clip=1, ema=0.999
        )

    def _source(self, prior: Any, batch_size: int, seed: int) -> PriorSource:
        return PriorSource(prior, batch_size, seed, relate)

    # --- inference ----------------------------------------------------------------------------

    def _fit(self, X: np.ndarray, y: Any, seed: int) -> None:
        self._load_weights()
        asked = None if self.n_clusters == "auto" else self.n_clusters
        if asked is not None:
            check_rows(len(X), asked if isinstance(asked, int) else asked[0])
        self.offset_, self.factor_ = fit_scaling(X, self.scaling)
        scaled = (X - self.offset_) * self.factor_
        self.context_indices_ = choose_context(scaled, self.context_size, seed)
        self.context_rows_ = scaled[self.context_indices_].astype(np.float32)
        P, counts = self._read_context()
        labels = choose_partition(P, asked, rule=self.rule, counts=counts)  # type: ignore[arg-type]
        self.similarity_ = P.astype(np.float32)
        self.k_posterior_ = np.concatenate([[0.0], counts])
        self.overall_confidence_ = expected_ari(P, labels)
        self.context_labels_ = labels

    @torch.inference_mode()
    def _read_context(self) -> tuple[np.ndarray, np.ndarray]:
        """Pair probabilities of the context and the belief over K; keeps what new rows need."""
        module: Any = self._on_device()
        x = torch.from_numpy(self.context_rows_)[None].to(next(module.parameters()).device)
        context, features = describe(x)
        reading = module.read(Relations(features.pairs, tokens_of(features, context)))
        self._memory: tuple[Context, list[torch.Tensor]] = (context, reading.states)
        P = torch.sigmoid((reading.logits[0] + reading.logits[0].T).double() / 2).cpu().numpy()
        np.fill_diagonal(P, 1.0)
        return P, torch.softmax(reading.counts[0].double(), dim=-1).cpu().numpy()

    @torch.inference_mode()
    def _log_responsibilities(self, X: np.ndarray) -> np.ndarray:
        module: Any = self._on_device()
        if not hasattr(self, "_memory"):
            self._read_context()
        context, memory = self._memory
        scaled = torch.as_tensor((X - self.offset_) * self.factor_, dtype=torch.float32)
        features = cross_features(context, scaled[None].to(context.x.device))
        logits = module.read(Relations(features.pairs, tokens_of(features, context)), memory).logits
        P = torch.sigmoid(logits[0]).cpu().numpy()
        member = np.eye(int(self.context_labels_.max()) + 1, dtype=np.float32)[self.context_labels_]
        affinity = P @ (member / member.sum(axis=0))
        return np.log(np.maximum(affinity / affinity.sum(axis=1, keepdims=True), 1e-30))

    def _reorder(self, order: np.ndarray) -> None:
        position = np.full(int(self.context_labels_.max()) + 1, -1)
        position[order] = np.arange(len(order))
        self.context_labels_ = position[self.context_labels_]
