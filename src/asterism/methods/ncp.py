"""A network trained beforehand seats the rows one by one, as guests in a restaurant of clusters.

    q(c | X) = Π_n q(c_n | c_<n, X)          exact and normalised, for a given order of the rows
    q̄(c)     = mean of q(c | X) over several random orders
    ĉ        = the partition of the largest q̄ among those that a search finds
    r_ik     ∝ exp f(G_k, 0), row i joining cluster k of ĉ as one row more, after all others

The last is worked out for each row by itself, in double precision, so that a row gets the same
answer in any company; see :mod:`asterism.functional.sequential` for q.

Pakman, Wang, Mitelut, Lee & Paninski, "Neural clustering processes", ICML 2020.
"""

import copy
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from asterism._validation import StrOptions, at_least, resolve_device
from asterism.base import AmortizedClusterer
from asterism.base.posterior import PosteriorMixin
from asterism.functional.assignments import by_decreasing_size
from asterism.functional.clusterwise import log_mean_exp
from asterism.functional.contexts import Context
from asterism.functional.decoding import Partitions, sample_partitions, search_partitions
from asterism.functional.partitions import likeliest_first
from asterism.functional.sequential import order_log_probs, random_orders
from asterism.functional.sets import SetBatch, pad_sets, size_sorted_chunks
from asterism.nn.ncp import NCPScorer, NeuralClusteringProcess
from asterism.priors import RestaurantMixturePrior
from asterism.training import TrainingPlan

__all__ = ["NCP"]

_STEPS = 1 << 18  # rows times threads that a decoding holds: 128 MB at the published width
_TIE = 1e-9  # log-responsibilities no further apart are equal


class NCP(PosteriorMixin, AmortizedClusterer):
    """Neural clustering process: partitions drawn from a learnt posterior, K found.

    Parameters
    ----------
    decode : {"beam", "greedy", "sample"}, default="beam"
        How likely partitions are looked for: a beam search, the likeliest step each time, or the
        ``n_samples`` random ones.
    beam_width : int, default=8
        Prefixes that a beam search keeps; also how many partitions, whatever the search, are
        compared under all orders.
    n_orders : int, default=4
        Random orders of the rows to search in, and over which probabilities are averaged.
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
        Seed of the orders, the rows chosen, the samples and of ``pretrain``.
    verbose : bool or int, default=False
        Show a progress bar while pre-training.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row, 0 the largest, as ``predict`` has it: each row looks at the clusters of
        the partition found, and a few at their borders may leave the one they were counted in.
    n_clusters_ : int
        Clusters that own at least one row.
    context_indices_, context_labels_ : ndarray of shape (n_context,)
        Rows read together, and the partition found of them.
    context_rows_ : ndarray of shape (n_context, n_network_dimensions)
        Those rows in the network's coordinates ``(X - origin_) @ projection_``.
    nearest_ : ndarray of shape (n_rows,)
        For each row the place of the nearest of the context, which it follows in ``partitions_``.
    log_probability_ : float
        Log of the mean probability of the partition over orders.
    order_deviation_ : float
        Standard deviation of its log-probability over orders; a perfect network would have none.
    cluster_sums_ : ndarray of shape (n_clusters, n_code)
        Codes of the context's rows, summed over each cluster; one without rows comes last.
    cluster_ranks_ : ndarray of shape (n_clusters,)
        Place of each cluster by its size in the context; of two that suit a row equally well the
        larger takes it.
    partitions_, log_probabilities_, k_posterior_, confidence_, overall_confidence_, coassignment_
        See :class:`asterism.base.posterior.PosteriorMixin`. Log-probabilities are exact, each under
        the random order its partition was drawn in, and concern the context's rows.
    origin_, projection_ : ndarray
        The affine map.
    module_ : torch.nn.Module
        The network.

    Notes
    -----
    The network sums over rows, and is at home with as many as it was trained on.

    References
    ----------
    Pakman, Wang, Mitelut, Lee & Paninski, "Neural clustering processes", ICML 2020.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from asterism import NCP
    >>> X, _ = make_blobs(60, centers=3, cluster_std=0.5, random_state=1)
    >>> model = NCP(random_state=0).fit(X)
    >>> model.n_clusters_, int(model.k_posterior_.argmax())
    (3, 3)
    >>> labels, log_probability = model.samples(5)
    >>> labels.shape, log_probability.shape
    ((5, 60), (5,))
    """

    _module_class: ClassVar[type[nn.Module]] = NeuralClusteringProcess
    _default_weights: ClassVar[str] = "ncp-mog"
    _per_cluster: ClassVar[tuple[str, ...]] = ("cluster_sums_", "cluster_ranks_")
    _cluster_numbers: ClassVar[tuple[str, ...]] = ("context_labels_",)
    _chunk: ClassVar[int] = 4096
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **AmortizedClusterer._parameter_constraints,
        **PosteriorMixin._parameter_constraints,
        "decode": [StrOptions({"beam", "greedy", "sample"})],
        "beam_width": [at_least(1)],
        "n_orders": [at_least(1)],
        "max_points": [at_least(2)],
    }

    def __init__(
        self,
        *,
        decode: str = "beam",
        beam_width: int = 8,
        n_orders: int = 4,
        n_samples: int = 100,
        max_points: int = 500,
        weights: str | Path = "default",
        scaling: str = "auto",
        device: str = "auto",
        random_state: Any = None,
        verbose: int | bool = False,
    ) -> None:
        self.decode = decode
        self.beam_width = beam_width
        self.n_orders = n_orders
        self.n_samples = n_samples
        self.max_points = max_points
        self.weights = weights
        self.scaling = scaling
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    # --- training -----------------------------------------------------------------------------

    def _architecture(self, prior: Any) -> dict[str, Any]:
        return {"dim": getattr(prior, "dim", 2)}

    def _default_prior(self) -> RestaurantMixturePrior:
        return RestaurantMixturePrior(n_points=(5, 99))

    def _default_plan(self) -> TrainingPlan:
        # As published, but for the step half-way down, to 5e-5 at iteration 1200.
        return TrainingPlan(
            steps=3500, lr=1e-4, weight_decay=0.01, schedule="drop", drop_at=2200 / 3500
        )

    # --- fit ----------------------------------------------------------------------------------

    @property
    def _trial_rows(self) -> int:
        return min(200, self.max_points)

    @property
    def _trial_settings(self) -> dict[str, Any]:
        return {"decode": "greedy"}

    def _infer(self, batch: SetBatch, seed: int) -> list[dict[str, Any]]:
        # Every data set has a generator of its own: its answer does not depend on the others.
        tasks = [
            _Task.of(x[keep], self.max_points, self.n_orders, seed)
            for x, keep in zip(batch.x, batch.keep, strict=True)
        ]
        scorer = self._network.scorer()
        if self.decode == "sample":
            found = [_draw(scorer, task.rows, self.n_samples, task.chance) for task in tasks]
        else:
            found = _search(scorer, tasks, self.beam_width if self.decode == "beam" else 1)
        answers = []
        for task, partitions in zip(tasks, found, strict=True):
            likely, _ = likeliest_first(*partitions)
            answer = self._conclude(scorer, task, likely[: self.beam_width])
            if self.decode == "sample":
                answer["partitions_"] = partitions.labels.int().numpy()[:, task.context.nearest]
                answer["log_probabilities_"] = partitions.log_probs.numpy()
            answers.append(answer)
        return answers

    def _conclude(self, scorer: NCPScorer, task: "_Task", candidates: Tensor) -> dict[str, Any]:
        """The partition, of (P, N) candidates, that is likeliest over all orders."""
        rows = task.rows
        log_q = order_log_probs(scorer, rows, candidates.to(rows.device), task.orders)  # (P, O)
        mean = log_mean_exp(log_q)
        best = int(mean.argmax())
        labels, _ = by_decreasing_size(candidates[best].numpy())
        member = nn.functional.one_hot(torch.from_numpy(labels)).double()
        join = self._judge().encode(rows.cpu().double()).join
        return {
            "context_indices_": task.context.indices,
            "context_rows_": rows.cpu().numpy(),
            "context_labels_": labels,
            "nearest_": task.context.nearest,
            "cluster_sums_": (member.T @ join).numpy(),
            "cluster_ranks_": np.arange(member.shape[1]),
            "log_probability_": float(mean[best]),
            "order_deviation_": float(log_q[best].std(correction=0)),
        }

    # --- after fit ----------------------------------------------------------------------------

    @torch.inference_mode()
    def _log_responsibilities(self, X: np.ndarray) -> np.ndarray:
        judge = self._judge()
        join = judge.encode(torch.from_numpy(self._aligned(X))).join  # (Q, C)
        sums = torch.from_numpy(self.cluster_sums_)  # (K, C)
        states = judge.state(sums)
        others = states.sum(dim=0) - states
        logits = judge.score(others + judge.state(sums + join.unsqueeze(1)))  # (Q, K)
        # A network of straight pieces finds two parts of one group equally good for a row: then the
        # larger shall take it, not the one that rounding favours.
        return logits.log_softmax(dim=1).numpy() - _TIE * self.cluster_ranks_

    @torch.inference_mode()
    def _sample_partitions(self, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        context = torch.from_numpy(self.context_rows_).to(resolve_device(self.device))
        chance = torch.Generator().manual_seed(seed)
        drawn = _draw(self._network.scorer(), context, n, chance)
        return drawn.labels.int().numpy()[:, self.nearest_], drawn.log_probs.numpy()

    @property
    def _network(self) -> Any:
        return self._on_device()

    def _judge(self) -> NCPScorer:
        """The maps in double precision: single rows and many must come out the same."""
        return copy.deepcopy(self._network).cpu().double().scorer()


class _Task(NamedTuple):
    """One data set: the rows read together, the orders to read them in, and its own chance."""

    context: Context
    orders: Tensor  # (O, N)
    chance: torch.Generator

    @property
    def rows(self) -> Tensor:
        """The context's rows, (N, D)."""
        return self.context.rows

    @classmethod
    def of(cls, x: Tensor, max_points: int, n_orders: int, seed: int) -> "_Task":
        """Choose at most ``max_points`` of the rows ``x``, and random orders of them."""
        chance = torch.Generator().manual_seed(seed)
        context = Context.draw(x, max_points, chance)
        everything = torch.ones(1, len(context.rows), dtype=torch.bool)
        return cls(context, random_orders(everything, n_orders, chance)[0].to(x.device), chance)


def _search(scorer: NCPScorer, tasks: list[_Task], width: int) -> list[Partitions]:
    """Partitions (S, N_b) of each data set by beam search, and their log-probabilities (S,)."""
    found: dict[int, Partitions] = {}
    sizes, n_orders = [len(task.rows) for task in tasks], len(tasks[0].orders)
    for chunk in size_sorted_chunks(sizes, _STEPS // (n_orders * width)):
        batch = pad_sets([tasks[i].rows for i in chunk])
        rest = torch.arange(batch.x.shape[1], device=batch.x.device).repeat(n_orders, 1)
        orders = [torch.cat([tasks[i].orders, rest[:, sizes[i] :]], dim=1) for i in chunk]
        drawn = search_partitions(scorer, batch.x, batch.keep, torch.stack(orders), width)
        for place, i in enumerate(chunk):
            found[i] = Partitions(drawn.labels[place, :, : sizes[i]], drawn.log_probs[place])
    return [found[i] for i in range(len(tasks))]


def _draw(scorer: NCPScorer, context: Tensor, n: int, chance: torch.Generator) -> Partitions:
    """Draw n partitions of one data set (N, D), (n, N), each in an order of its own."""
    x, keep = context[None], torch.ones(1, len(context), dtype=torch.bool, device=context.device)
    most = max(1, _STEPS // len(context))
    parts = [
        sample_partitions(scorer, x, keep, random_orders(keep, size, chance), chance)
        for size in (min(most, n - start) for start in range(0, n, most))
    ]
    return Partitions(
        torch.cat([part.labels[0] for part in parts]),
        torch.cat([part.log_probs[0] for part in parts]),
    )
