"""DeepDPM: a network learns the E-step of a mixture whose clusters split and merge.

    model     x | z = k ~ N(μ_k, Σ_k), (μ_k, Σ_k) ~ normal-inverse-Wishart, z ~ Dirichlet process(α)
    net       log r(x), trained towards r^E_k ∝ π_k N(x; μ_k, Σ_k)
    M-step    most probable μ_k, Σ_k under weights r(x_i);  π_k = (Σ_i r_ik + α/K) / (N + α)
    moves     by the log-ratio of evidences, ``functional.splits``; how, ``nonparametric.growth``

Evidence grows with N, and no real cluster is exactly Gaussian: with enough rows every one of them
is cut up. So one more cluster must bring a part of what those there bring on the average, f =
``parsimony``, see ``functional.returns``, and their number no longer grows with that of the rows.
And in moves, statistics of N rows count for ζ = c / N of themselves where there are more than c =
``coarsening``, so that what is faint does not add up.

How wide clusters are and how far apart is learnt from the rows first, and is what the prior expects
(``nonparametric.expectations``); wide rows are clustered along their leading axes, and wide rows of
unit length, such as embeddings, by their direction (``nonparametric.coordinates``).

Ronen, Finder & Freifeld, "DeepDPM: deep clustering with an unknown number of clusters", CVPR 2022;
Miller & Dunson, "Robust Bayesian inference via coarsening", JASA 2019.
"""

import copy
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import nn
from tqdm import tqdm

from asterism._validation import (
    Interval,
    Real,
    StrOptions,
    at_least,
    seeded,
)
from asterism.base import DeepClusterer
from asterism.exceptions import tell
from asterism.functional.niw import NormalWishart
from asterism.functional.splits import effective_columns
from asterism.methods.nonparametric.encoding import EncoderMixin
from asterism.methods.nonparametric.expectations import ExpectationMixin
from asterism.methods.nonparametric.growth import Growth
from asterism.methods.nonparametric.learning import Schedule
from asterism.nn.splitmerge import KL_DIRECTIONS, SplitMergeNet

__all__ = ["DeepDPM"]

_ENTRIES = 1 << 22
_LEAST_ROWS = 5


class DeepDPM(EncoderMixin, ExpectationMixin, DeepClusterer):
    """Gaussian clusters of unknown number, assigned by a network that grows and shrinks with it.

    Parameters
    ----------
    init_n_clusters : int or "auto", default="auto"
        Clusters to begin with, by k-means. "auto" begins with those among which the covariance was
        pooled or, with another prior, with one for every fifty rows and at most fifty. It alone
        takes a skewed cloud of few rows for one cluster. Beginning with one works where a cut in
        two pays at every step, which it does not among many clusters that form one cloud.
    encoder : transformer, torch.nn.Module, callable or None, default=None
        Trained already, it turns rows into the features that are clustered: anything with
        ``transform``, a network that takes float32 rows, or a function of an array. It is used as
        it is, shared by clones and not saved with the model; see :class:`~asterism.AEDeepDPM` for
        features that learn from the clusters. Scores of different encoders cannot be compared.
    max_clusters : int or None, default=None
        Never split beyond this number.
    prior : {"pooled", "data", "reference"}, default="pooled"
        What clusters are expected to be like. "pooled": as wide, as like each other and as far
        apart as the rows say that they are; see :mod:`asterism.functional.pooling`. "data": a part
        of the variance of all rows, column by column, and hardly alike, as is "pooled" where
        covariances are not full. "reference" is the authors': 0.005 on the diagonal whatever the
        units, meant for ``scaling="rows"``, and κ₀ = 1e-4.
    prior_scale : float or None, default=None
        How wide clusters are expected to be: as a multiple of the pooled covariance, as a part of
        the variance of all rows with ``prior="data"``, or in place of the authors' 0.005; None is
        1, 0.05 and 0.005. Larger, and clusters are taken for one; smaller, and they fall into
        pieces or, with few rows for the columns, cannot pay for the misfit. See ``split_scales_``.
    parsimony : float, default=0.2
        The knob for K where clusters run into each other: the share of what clusters bring on the
        average, in log evidence, that one more must bring; less where they are far apart. Lower,
        and there are more clusters. 0 is the plain model, which cuts clusters that are not Gaussian
        into more pieces the more rows there are. Clusters that are well apart stay so, but not such
        as have few of the rows (of K that are as far from each other each needs about
        ``parsimony / K`` of them), or lie within groups that are farther apart by many times. Less
        is asked where rows are directions, see ``length_`` and :mod:`asterism.functional.returns`.
    coarsening : float or None, default=4000
        What all rows together count for at most, in rows. Lower, and faint clusters are taken for
        one. None lets all rows count.
    n_components : int, "auto" or None, default="auto"
        Leading principal axes along which rows are clustered, if they have more columns. "auto"
        is, with a pooled prior, the number along which the evidence for clusters is largest: 8, 12,
        16, 24 or 32, at most a fifth of the rows, or all columns where they are fewer; with others
        it is None, all columns. Of up to 32 columns it also leaves out flags: those of two values,
        or in which nine tenths of the rows are equal. None takes minutes with a pooled prior and
        hundreds of columns.
    covariance : {"auto", "full", "diagonal", "isotropic"}, default="auto"
        Of a cluster; "auto" is full with a pooled prior. With others it is full where there are ten
        rows for every entry of a covariance and mean (650 in ten columns), else diagonal, and
        isotropic beyond 20 columns. Evidence of isotropic clusters counts columns that vary
        together within clusters only once.
    concentration : float, default=10.0
        Mass α of the process. A hundred times more moves the threshold by five nats only.
    mean_strength : float or None, default=None
        κ₀, the rows that the prior of a mean is worth: means vary 1/κ₀ times as much as the rows of
        a cluster. None is found with the pooled covariance, from 0.01 to 2, and multiplied by
        ``prior_scale``; 1e-4 with the authors' prior; and ``prior_scale`` with ``prior="data"``, so
        that means are expected about as far apart as rows are.
    degrees_of_freedom : float or None, default=None
        ν₀ of the prior, at least the number of columns, and more than one above it with a pooled
        prior. None is found with the pooled covariance; with another prior it is two more than the
        columns.
    scaling : {"none", "standard", "rows"}, default="none"
        "none" centres the rows and divides all columns by one number; "standard" brings columns to
        unit deviation; "rows" brings rows to unit length, as the authors do.
    kl : {"forward", "reverse"}, default="forward"
        What the net minimises: KL(E-step ‖ net) as in the authors' code, or KL(net ‖ E-step) as in
        the paper.
    search : {"both", "nets", "em"}, default="both"
        Where a cluster's halves come from: its own small net, expectation maximisation of two
        Gaussians, or the better of the two.
    n_neighbors : int or None, default=None
        Merges are tried with so many nearest clusters, three in the paper; None tries all pairs.
    acceptance : {"greedy", "random"}, default="greedy"
        Moves that pay, or any by chance, as in a Metropolis-Hastings sampler if ``parsimony=0``.
    min_rows : int or None, default=None
        Rows of the smallest cluster; None is five, and at least one more than the columns where
        covariances are full and not pooled. No cluster counts for less than one row, so that of
        many rows it has 1 / ``row_weight_`` at least. Smaller ones are given to others.
    hidden_dim : int, default=50
        Width of the net's hidden layer, and of each small net's.
    lr, batch_size : float, int, default=2e-3, 1024
        Adam's learning rate and rows a step.
    epoch_steps, n_epochs : int, default=50, 3
        Steps between M-steps, and M-steps between moves.
    max_rounds, patience : int, default=60, 2
        Most rounds; and split and merge rounds without a move after which the fit ends.
    device : str, default="auto"
        Where to compute: "auto", "cpu", "cuda", ...
    random_state : int, RandomState or None, default=None
        Fixes everything.
    verbose : bool or int, default=False
        Show a progress bar.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row, 0 the largest.
    n_clusters_ : int
    weights_, means_, covariances_ : ndarray of shape (K,), (K, D), (K, D, D) or (K, D)
        The mixture, in the user's units, or those of the encoder's features (of rows of unit length
        with ``scaling="rows"``). Of more than 128 columns the variances alone, with a pooled prior
        or where they were reduced.
    axes_ : ndarray of shape (D, q) or None
        From centred and scaled columns to those that the net reads, in which clusters are about
        round; not of unit length. None where the columns are read as they are.
    noise_ : float
        Variance of scaled rows in every direction that the axes leave out.
    covariance_ : str
        Kind of the covariances, where "auto" has chosen it.
    mean_strength_, degrees_of_freedom_ : float
        κ₀ and ν₀ of the prior, where they were found.
    length_ : float or None
        Where rows are directions, of unit length and pointing to all sides, as embeddings are, and
        were reduced: what their parts along the axes are brought to, in centred rows divided by one
        number. ``means_`` and ``covariances_`` are those of the rows so brought to one length, and
        clusters have widths of their own, see :mod:`asterism.functional.widths`. None where rows
        are no directions; ``scaling="rows"`` makes them so where lengths mean nothing.
    lengths_ : ndarray of shape (2, 2) or None
        Mean and deviation of the lengths of directions along the axes, and outside.
    row_weight_ : float
        What each row counted for in moves, after ``coarsening``.
    split_merge_history_ : list of dict
        Every move: ``round``, ``step``, ``move`` ("split", "merge", or "drop" of clusters too
        small), how many were ``tried`` and ``accepted``, ``best_log_ratio`` of those tried, beyond
        what ``parsimony`` asks or allows (None where there is none), and K in ``n_before`` and
        ``n_after``.
    split_ratios_ : ndarray of shape (K,)
        Log-ratio of the best split of each cluster that was not made, less what ``parsimony`` asks:
        how far it is from one. −inf where a half would have too few rows. Searched once more after
        the fit, and above zero where that finds what the rounds did not, rows that the net has
        moved since, or more than ``max_clusters``.
    split_scales_ : ndarray of shape (K,)
        Nearest ``prior_scale`` at which it would be made, what it must bring being the same; NaN if
        none within a factor of 10,000.
    converged_ : bool
        Whether moves came to an end before ``max_rounds``, or none were asked for.
    history_ : list of dict
        Loss over the steps.
    module_ : torch.nn.Module
        The net.

    References
    ----------
    Ronen, Finder & Freifeld, "DeepDPM: deep clustering with an unknown number of clusters", CVPR
    2022, https://arxiv.org/abs/2203.14309.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from asterism import DeepDPM
    >>> X, _ = make_blobs(600, centers=4, cluster_std=0.5, random_state=3)
    >>> DeepDPM(random_state=0).fit(X).n_clusters_
    4
    """

    module_: SplitMergeNet

    _module_class: ClassVar[type[nn.Module]] = SplitMergeNet
    _per_cluster: ClassVar[tuple[str, ...]] = (
        "weights_",
        "means_",
        "covariances_",
        "split_ratios_",
        "split_scales_",
    )
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DeepClusterer._parameter_constraints,
        **ExpectationMixin._parameter_constraints,
        **EncoderMixin._parameter_constraints,
        "kl": [StrOptions(set(KL_DIRECTIONS))],
        "search": [StrOptions({"both", "nets", "em"})],
        "n_neighbors": [at_least(1), None],
        "acceptance": [StrOptions({"greedy", "random"})],
        "min_rows": [at_least(1), None],
        "hidden_dim": [at_least(1)],
        "lr": [Interval(Real, 0, None, closed="neither")],
        "batch_size": [at_least(1)],
        "epoch_steps": [at_least(1)],
        "n_epochs": [at_least(1)],
        "max_rounds": [at_least(0)],
        "patience": [at_least(1)],
    }

    def __init__(
        self,
        init_n_clusters: int | str = "auto",
        *,
        encoder: Any = None,
        max_clusters: int | None = None,
        prior: str = "pooled",
        prior_scale: float | None = None,
        parsimony: float = 0.2,
        coarsening: float | None = 4000,
        n_components: int | str | None = "auto",
        covariance: str = "auto",
        concentration: float = 10.0,
        mean_strength: float | None = None,
        degrees_of_freedom: float | None = None,
        scaling: str = "none",
        kl: str = "forward",
        search: str = "both",
        n_neighbors: int | None = None,
        acceptance: str = "greedy",
        min_rows: int | None = None,
        hidden_dim: int = 50,
        lr: float = 2e-3,
        batch_size: int = 1024,
        epoch_steps: int = 50,
        n_epochs: int = 3,
        max_rounds: int = 60,
        patience: int = 2,
        device: str = "auto",
        random_state: Any = None,
        verbose: int | bool = False,
    ) -> None:
        self.init_n_clusters = init_n_clusters
        self.encoder = encoder
        self.max_clusters = max_clusters
        self.prior = prior
        self.prior_scale = prior_scale
        self.parsimony = parsimony
        self.coarsening = coarsening
        self.n_components = n_components
        self.covariance = covariance
        self.concentration = concentration
        self.mean_strength = mean_strength
        self.degrees_of_freedom = degrees_of_freedom
        self.scaling = scaling
        self.kl = kl
        self.search = search
        self.n_neighbors = n_neighbors
        self.acceptance = acceptance
        self.min_rows = min_rows
        self.hidden_dim = hidden_dim
        self.lr = lr
        self.batch_size = batch_size
        self.epoch_steps = epoch_steps
        self.n_epochs = n_epochs
        self.max_rounds = max_rounds
        self.patience = patience
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    # --- fit ----------------------------------------------------------------------------------

    def _fit(self, X: np.ndarray, y: Any, seed: int, start: np.ndarray | None = None) -> None:
        self.first_count(len(X))  # refused before any work
        X = self._fit_features(X)
        scaled, prior, start, single = self._begin(X, start, seed)
        self.mean_strength_, self.degrees_of_freedom_ = prior.kappa, prior.nu
        x, n_clusters = torch.from_numpy(scaled), int(start.max()) + 1
        if prior.covariance == "isotropic":
            prior = replace(prior, columns=effective_columns(x, torch.from_numpy(start)))
        self.architecture_ = {
            "dim": scaled.shape[1],
            "n_clusters": n_clusters,
            "width": self.hidden_dim,
            "sub_width": self.hidden_dim,
            "covariance": prior.covariance,
            "kl": self.kl,
        }
        with seeded(seed), tqdm(desc="moves", disable=not self.verbose) as bar:
            self.module_ = SplitMergeNet(**self.architecture_)
            growth = Growth(
                x,
                self._net,
                prior,
                self.concentration,
                self._schedule(prior),
                seed,
                single=single,
                report=lambda move: _show(bar, move),
            )
            growth.start(start)
            settled = growth.run()
            factors = np.geomspace(1e-4, 1e4, 81)
            factors = factors[np.argsort(np.abs(np.log(factors)), kind="stable")]
            self.split_ratios_, first = growth.best_splits(
                [self._rescaled(prior, factor) for factor in factors]
            )
        scales = np.where(first >= 0, factors[first], np.nan)
        self.split_scales_ = scales * self._scale
        self.history_, self.split_merge_history_ = growth.losses, growth.moves
        self.architecture_["n_clusters"] = self.module_.n_clusters
        self.weights_ = growth.log_weights.exp().numpy()
        self.means_, self.covariances_ = self._describe(growth.densities)
        self.converged_ = settled or self.max_rounds == 0
        if not self.converged_:
            tell(
                f"clusters still split and merged after max_rounds={self.max_rounds}: raise it, or "
                "look at split_merge_history_",
                ConvergenceWarning,
            )

    def _schedule(self, prior: NormalWishart) -> Schedule:
        lent = prior.covariance != "full" or self._pools  # by columns or other clusters
        least = _LEAST_ROWS if lent else max(_LEAST_ROWS, prior.dim + 1)
        return Schedule(
            lr=self.lr,
            batch_size=self.batch_size,
            epoch_steps=self.epoch_steps,
            epochs=self.n_epochs,
            max_rounds=self.max_rounds,
            patience=self.patience,
            search=self.search,
            n_neighbors=self.n_neighbors,
            acceptance=self.acceptance,
            smallest=least if self.min_rows is None else self.min_rows,
            max_clusters=self.max_clusters,
            zeta=self.row_weight_,
            parsimony=self.parsimony,
            n_axes=self._told_apart_along(prior.dim),
        )

    def _reorder(self, order: np.ndarray) -> None:
        super()._reorder(order)
        empty = np.setdiff1d(np.arange(self.module_.n_clusters), order)
        self.module_.permute(torch.from_numpy(np.concatenate([order, empty])))

    @property
    def _net(self) -> SplitMergeNet:
        self._on_device()
        return self.module_

    # --- prediction ---------------------------------------------------------------------------

    def _log_responsibilities(self, X: np.ndarray) -> np.ndarray:
        net = self._exact_net()
        rows = torch.from_numpy(self._clipped(self._features(X)))
        with torch.inference_mode():
            return net(rows.to(net.bias)).cpu().numpy()

    def _log_density(self, X: np.ndarray) -> np.ndarray:
        """Of each row, or of its features."""
        net, X = self._exact_net(), self._features(X)
        # Rows whose distances, and what the axes leave out of them, are held at once.
        size = max(1, _ENTRIES // max(net.means.numel(), X.shape[1]))
        found = []
        for start in range(0, len(X), size):
            part = X[start : start + size]
            rows = torch.from_numpy(self._clipped(part)).to(net.bias)
            with torch.inference_mode():
                joint = net.mixture_log_prob(rows)
            found.append(joint.logsumexp(dim=1).cpu().numpy() + self._log_volume(part))
        return np.concatenate(found)

    def _exact_net(self) -> SplitMergeNet:
        """In double precision, so that a row's answer does not depend on the rows beside it."""
        net = copy.deepcopy(self._net)
        return net.to(torch.float32 if net.bias.device.type == "mps" else torch.float64)


def _show(bar: "tqdm[Any]", move: dict[str, Any]) -> None:
    bar.set_postfix(clusters=move["n_after"])
    bar.update()
