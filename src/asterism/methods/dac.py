"""Deep amortised clustering: a network that finds one cluster, asked again and again.

    until nothing is left:  (ℓ, θ) = f(points left);  points with ℓ > 0 are a cluster and leave

The network is told nothing of the number of clusters and keeps what it learned on few when there
are many. ``fit`` stores of every pass the inducing rows the network read the points through, so
that a new row can be put to the same passes by itself:

    r_k(x) ∝ m_k(x) Π_{j<k} (1 − m_j(x)),   m_k = sigmoid(ℓ_k),   label = first k with ℓ_k(x) > 0

and what no pass claims is shared out by the densities π_k p(x; θ_k).

Lee, Lee & Teh, "Deep amortized clustering", 2019.
"""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from torch import nn

from asterism._validation import StrOptions, at_least, check_rows
from asterism.base import AmortizedClusterer
from asterism.exceptions import DataError, tell
from asterism.functional.turns import count_turns
from asterism.methods.claims import ClaimsMixin
from asterism.methods.passes import FilteringStep
from asterism.nn.densities import GaussianDensity
from asterism.nn.filtering import FilteringNetwork
from asterism.priors.clusters import ClusterMixturePrior
from asterism.training import TrainingPlan

__all__ = ["DAC", "FilteringStep"]


class DAC(ClaimsMixin, AmortizedClusterer):
    """Deep amortised clustering: finds clusters one by one, and their number.

    The shipped network was trained on two-dimensional mixtures of up to four Gaussians, about round
    and about of one width. Data of more columns are projected on their leading principal axes, and
    all data are moved to the place and scale of the training prior by one recorded affine map.
    Columns of different units are to be standardised first, as the command line does.

    Parameters
    ----------
    n_clusters : int or "auto", default="auto"
        Number of clusters. "auto" leaves it to the network. A number merges clusters, the nearest
        pair first, until so many are left; where the network finds fewer at all scales tried, they
        stay, with a warning.
    looks : int, default=1
        How often the network reads each cluster: once in the whole set, as published, and then what
        it has claimed by itself. With 2, Gaussian clusters that overlap are told apart more often,
        above all among more of them than the network was trained on. The rule by which a look
        counts was chosen on such clusters; of bent ones (``dac-warped``) it may make too many. The
        passes take half to once as much time again, and ``predict`` reads the looks that count.
    views : int, default=1
        How many times the data are filtered, each time with other axes reflected and exchanged: 8
        at most in two dimensions, but any number with weights trained with ``loss="anchored"``,
        whose views then begin anew with other anchors. Believed is the largest number of clusters
        that two views reach, or a third of them if that is more: of two views the smaller number,
        of three the middle one; four or more find clusters that one view misses. With
        ``n_clusters`` given one view that reaches it is enough. See
        :mod:`asterism.functional.turns`. Meant for weights whose prior treats all axes alike, as
        those of all shipped ones do. ``fit`` takes as many times as long, three quarters of that
        where all agree; ``predict`` is as before.
    max_iter : int, default=50
        Most passes. Rows left over afterwards go to the likeliest cluster, with a warning;
        ``n_leftover_`` counts them.
    min_cluster_size : int, default=1
        Clusters of fewer rows are dissolved, and their rows read anew against the others. With
        ``context_size`` the size is estimated from the sample.
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
        the whole table. "auto" begins with the guess, clusters at most 1000 of the rows at several
        multiples of it, and takes the one whose clusters are best described by Gaussians (ICL).
        With fewer than 50 rows, and with weights whose densities are not Gaussian, it keeps to the
        guess. "none" hands the data over as they are.
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
        Share of the rows, or of the sample, taken by each cluster.
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
    view_ : int
        Number of the view that is believed, 0 that of the axes as they are.
    origin_, projection_ : ndarray
        The affine map, to the axes of that view.
    module_ : torch.nn.Module
        The network.

    Notes
    -----
    The architecture is chosen in ``pretrain``: ``loss="anchored"``, ``density="maf"`` or ``"vae"``,
    ``encoder="conv"``; see :class:`asterism.nn.filtering.FilteringNetwork`.

    A fitted model keeps the inducing rows of every look of every pass: 128 KiB each at the
    published sizes.

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
        **ClaimsMixin._parameter_constraints,
        "n_clusters": [at_least(1), StrOptions({"auto"})],
    }

    def __init__(
        self,
        n_clusters: int | str = "auto",
        *,
        looks: int = 1,
        views: int = 1,
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
        self.looks = looks
        self.views = views
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

    # --- what can be asked ----------------------------------------------------------------------

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
        if self.views > 1 and self._network.reads_images:
            raise DataError(
                f"views={self.views} exchange axes, and weights={str(self.weights)!r} read images: "
                "use views=1"
            )
        if self.views > count_turns(self._dim) and not self._network.anchored:
            raise DataError(
                f"views={self.views}, but there are only {count_turns(self._dim)} of "
                f"{self._dim} axes: use so many or fewer, or weights trained with "
                "loss='anchored', whose further views differ by their anchors"
            )
        if self.n_clusters != "auto":
            check_rows(len(X), int(self.n_clusters))
            if self.context_size is not None and int(self.n_clusters) > self.context_size:
                raise DataError(
                    f"n_clusters={self.n_clusters} is more than the {self.context_size} rows read "
                    "together: raise context_size"
                )

    @property
    def _trial_rows(self) -> int:
        most = super()._trial_rows
        return most if self.context_size is None else min(most, self.context_size)

    @property
    def _trial_settings(self) -> dict[str, Any]:
        # Of a sample the least size would be another, and few rows that are left make no scale.
        once = {"looks": 1, "views": 1, "min_cluster_size": 1}
        return {**once, "reassign": False, "refine": None}

    @property
    def _finds_gaussians(self) -> bool:
        network = self._network
        return isinstance(network.density, GaussianDensity) and not network.reads_images

    def _settle(self, X: np.ndarray) -> None:
        super()._settle(X)
        if self.n_leftover_:
            tell(
                f"{self.n_leftover_} rows were left over after max_iter={self.max_iter} passes and "
                "go to the likeliest cluster: raise it, or try another scaling",
                ConvergenceWarning,
            )
        if self.n_clusters != "auto" and self.n_clusters_ < int(self.n_clusters):
            tell(
                f"n_clusters={self.n_clusters}, but the network finds {self.n_clusters_}, and "
                "clusters are merged, never split",
                ConvergenceWarning,  # as scikit-learn's k-means has it
            )
