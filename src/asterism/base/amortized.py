"""Methods whose network was trained beforehand on endless synthetic data sets.

``fit`` is inference: the weights are loaded, the user's rows are moved to the place, scale and
dimension the network knows (a recorded affine map), and the network reads them once. A subclass
writes

    ``_module_class``               the network, whose ``loss(SetBatch)`` training minimises
    ``_architecture(prior)``        keyword arguments of the network for a prior
    ``_default_prior()``            the prior ``pretrain`` draws from when none is given
    ``_check_set(X)``               refuses rows that cannot be clustered as asked
    ``_infer(batch, seed)``         fitted attributes of each data set of a padded batch
    ``_log_responsibilities(X)``    as for every method, from those attributes
    ``_sample_partitions(n, seed)`` only where the model has a posterior over partitions
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from torch import nn

from asterism._validation import (
    StrOptions,
    check_parameters,
    draw_seed,
    read_rows,
    resolve_device,
    seeded,
)
from asterism.base import persistence
from asterism.base.alignment import check_place
from asterism.base.contract import Clusterer
from asterism.base.network import NetworkMixin
from asterism.base.trials import TrialsMixin, make_twin
from asterism.exceptions import DataError, WeightsError
from asterism.functional.sets import DatasetPrior, SetBatch, pad_sets, size_sorted_chunks
from asterism.io.pretrained import find_weights
from asterism.io.weights import read_weights, weight_paths
from asterism.priors.measures import measure_prior
from asterism.training import PriorSource, TrainingPlan, train
from asterism.training.checkpoint import load_checkpoint
from asterism.training.distributed import own_device, world_size
from asterism.training.surroundings import undisturbed

__all__ = ["AmortizedClusterer"]

Self = TypeVar("Self", bound="AmortizedClusterer")

Inference = dict[str, np.ndarray]

_PLAIN = (bool, int, float, str, tuple, type(None), np.generic, Path)
"""Kinds of parameters that estimators may share."""

_TRAINED = ("module_", "architecture_", "spread_", "place_", "history_", "network_")
"""Fitted attributes that belong to the network, not to a data set."""

_FRESH = 0x5A5A5A5A
"""Turns the seed of ``fit`` into another."""


class AmortizedClusterer(TrialsMixin, NetworkMixin, Clusterer):
    """Clusters a data set in a few forward passes of a network trained beforehand."""

    _default_weights: ClassVar[str]
    _kept: ClassVar[tuple[str, ...]] = _TRAINED
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Clusterer._parameter_constraints,
        **NetworkMixin._parameter_constraints,
        "weights": [str, Path],
        "scaling": [StrOptions({"auto", "local", "global", "none"})],
    }

    weights: str | Path
    scaling: str

    @property
    def has_density(self) -> bool:
        """Whether ``score`` is a mean log-likelihood, in the network's coordinates."""
        return False

    # --- what a subclass writes ---------------------------------------------------------------

    def _architecture(self, prior: Any) -> dict[str, Any]:
        raise TypeError(f"{type(self).__name__} must define _architecture")

    def _default_prior(self) -> DatasetPrior:
        raise TypeError(f"{type(self).__name__} must define _default_prior")

    def _check_set(self, X: np.ndarray) -> None:
        """Refuse rows the network cannot cluster as asked; by default it can cluster all."""

    @property
    def _readings(self) -> int:
        """How often rows are read, each time kept: batches are so many times smaller."""
        return 1

    def _infer(self, batch: SetBatch, seed: int) -> list[Inference]:
        raise TypeError(f"{type(self).__name__} must define _infer")

    # --- training -----------------------------------------------------------------------------

    @undisturbed
    def pretrain(
        self: Self,
        prior: DatasetPrior | None = None,
        *,
        plan: TrainingPlan | None = None,
        batch_size: int = 10,
        run_dir: str | Path | None = None,
        start: str | Path | None = None,
        **architecture: Any,
    ) -> Self:
        """Train the network on data sets drawn from a prior.

        Parameters
        ----------
        prior : DatasetPrior, optional
            Anything with ``sample(batch_size, generator) -> SetBatch``; the published prior of
            the method by default.
        plan : TrainingPlan, optional
            Steps, learning rate, schedule; the published ones by default.
        batch_size : int
            Data sets a step.
        run_dir : path, optional
            Keep checkpoints there; run again with the same arguments to resume. Under ``torchrun``
            the processes share the work; then ``random_state`` must be an integer.
        start : str or path, optional
            Weights to go on from instead of random ones, to learn another prior for instance; the
            network is theirs, and takes no overrides.
        **architecture
            Overrides of the network's sizes.

        Returns
        -------
        self
            With trained weights, ready for ``fit``. They belong to this object: ``clone`` forgets
            them, as it forgets all that is fitted; ``save`` them and pass ``weights=path``.
        """
        check_parameters(self)
        if batch_size < 1:
            raise DataError(f"batch_size={batch_size}: a step needs at least one data set")
        prior = self._default_prior() if prior is None else prior
        plan = self._default_plan() if plan is None else plan
        seed = self._training_seed(run_dir)
        spread, place = measure_prior(prior)
        if start is None:
            architecture = self._architecture(prior) | architecture
            with seeded(seed):
                module = self._module_class(**architecture)
        else:
            module, begun = self._begun(start, architecture)
            architecture = begun
        module = module.to(own_device(resolve_device(self.device)))
        history = train(
            module,
            self._source(prior, batch_size, seed),
            plan,
            seed=seed,
            run_dir=run_dir,
            identity={
                "method": type(self).__name__,
                "architecture": architecture,
                "prior": prior,
                "batch_size": batch_size,
                **({} if start is None else {"start": str(start)}),
            },
            distributed=True,
            verbose=bool(self.verbose),
            description=f"training {type(self).__name__}",
        )
        # All at once and only now: a run that fails leaves the estimator as it was.
        self._forget()  # clusters found by another network
        self.module_, self.architecture_ = module, architecture
        self.spread_, self.place_ = spread, place
        self.history_, self.network_ = history, str(self.weights)
        return self

    def _begun(
        self, start: str | Path, overrides: dict[str, Any]
    ) -> tuple[nn.Module, dict[str, Any]]:
        """Network and architecture of the weights to go on from."""
        if overrides:
            raise DataError(f"{', '.join(overrides)}: the network is that of start={str(start)!r}")
        donor = clone(self).set_params(weights=start)
        donor._load_weights()
        return donor.module_.train(), donor.architecture_

    def _training_seed(self, run_dir: str | Path | None) -> int:
        """Seed of a run: given, or that of the run to be continued, or a fresh one."""
        if self.random_state is None:
            if world_size() > 1:
                raise DataError("random_state=None: several processes need one seed, an integer")
            found = None if run_dir is None else load_checkpoint(Path(run_dir) / "checkpoint.pt")
            if found is not None:
                return int(found["fingerprint"]["seed"])
        return draw_seed(self.random_state)

    def _default_plan(self) -> TrainingPlan:
        return TrainingPlan(steps=50_000)

    def _source(self, prior: DatasetPrior, batch_size: int, seed: int) -> PriorSource:
        """Where training batches come from; a subclass may prepare them in the workers."""
        return PriorSource(prior, batch_size, seed)

    @classmethod
    @undisturbed
    def from_pretrained(cls: type[Self], name: str | Path, **parameters: Any) -> Self:
        """Estimator with the weights of this name or path loaded.

        Parameters
        ----------
        name : str or path
            A name listed by :func:`asterism.pretrained_names`, or a file.
        **parameters
            Constructor parameters.
        """
        estimator = cls(weights=name, **parameters)
        check_parameters(estimator)
        estimator._load_weights()
        return estimator

    # --- inference ----------------------------------------------------------------------------

    def _fit(self, X: np.ndarray, y: Any, seed: int) -> None:
        self._load_weights()
        self._prepare(X)
        self._try_scales([self], [X], seed)
        (answer,) = self._read([self._aligned(X)], seed)
        self._accept(answer)

    def _prepare(self, X: np.ndarray) -> None:
        """Refuse rows that cannot be clustered as asked; choose the map to the network's place."""
        self._check_set(X)
        self._align(X)

    @undisturbed
    def fit_many(self: Self, datasets: Iterable[Any], *, max_points: int = 50_000) -> list[Self]:
        """Cluster many data sets, as padded batches sorted by size.

        Parameters
        ----------
        datasets : iterable of array-like of shape (n_samples_i, n_features_i)
            Sizes and numbers of columns may differ.
        max_points : int
            Rows a batch, padding included: bounds the memory.

        Returns
        -------
        list
            One fitted estimator a data set, in the order given, sharing the network.
        """
        check_parameters(self)
        if getattr(datasets, "ndim", 3) < 3:
            raise DataError(
                f"fit_many takes a list of data sets, got one of shape {tuple(datasets.shape)}: "  # type: ignore[attr-defined]
                "fit(X) clusters one, fit_many([X]) a list of one"
            )
        self._load_weights()
        fitted: list[Self] = []
        rows: list[np.ndarray] = []
        # A clone looks up its parameters anew, which shows among thousands of small data sets.
        plain = all(isinstance(value, _PLAIN) for value in self.get_params(deep=False).values())
        first = self._unfitted()
        for number, data in enumerate(datasets):
            twin = make_twin(first) if plain else self._unfitted()
            try:
                rows.append(read_rows(twin, data, reset=True))
                twin._prepare(rows[-1])
            except (ValueError, TypeError) as error:
                raise DataError(f"data set {number} of fit_many: {error}") from error
            fitted.append(twin)
        seed = draw_seed(self.random_state)  # one for all: batches make no difference
        most = max(1, max_points // self._readings)
        for chunk in size_sorted_chunks([len(x) for x in rows], most):
            twins, own = [fitted[i] for i in chunk], [rows[i] for i in chunk]
            self._try_scales(twins, own, seed)
            self._fit_together(twins, own, seed)
        return fitted

    def _unfitted(self: Self) -> Self:
        """A clone with the same network."""
        twin = clone(self)
        for name in _TRAINED:
            if hasattr(self, name):
                setattr(twin, name, getattr(self, name))
        return twin

    def _fit_together(self: Self, fitted: list[Self], rows: list[np.ndarray], seed: int) -> None:
        """Fit estimators to as many data sets, which the network reads at once."""
        aligned = [twin._aligned(x) for twin, x in zip(fitted, rows, strict=True)]
        for twin, x, answer in zip(fitted, rows, self._read(aligned, seed), strict=True):
            twin._accept(answer)
            twin._settle(x)

    @available_if(lambda self: hasattr(self, "_sample_partitions"))
    @undisturbed
    def samples(self, n: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Partitions drawn from the posterior, with their log-probabilities.

        Parameters
        ----------
        n : int, default=1
            How many.

        Returns
        -------
        labels : ndarray of shape (n, n_rows)
            One partition a row, of the rows of ``fit``; :class:`asterism.Asterism` gives those of
            the rows ``context_indices_`` that it reads together.
        log_probability : ndarray of shape (n,)
            Larger for likelier partitions; a method need not normalise it.

        Notes
        -----
        What ``fit`` was told, a number of clusters, labels or links, does not bind the samples.

        The draws are fresh, others than those that ``fit`` may have kept in ``partitions_``. With
        an integer ``random_state`` two calls give the same.
        """
        check_is_fitted(self)
        if not isinstance(n, int | np.integer) or n < 1:
            raise DataError(f"n={n}: ask for a whole number of partitions, one or more")
        return self._sample_partitions(n, draw_seed(self.random_state) ^ _FRESH)

    # --- inside -------------------------------------------------------------------------------

    @classmethod
    @undisturbed
    def _restore(
        cls: type[Self], arrays: dict[str, np.ndarray], card: dict[str, Any], path: str | Path
    ) -> Self:
        estimator = super()._restore(arrays, card, path)
        # The network came from this file, and a clone must find it there, from any folder.
        estimator.weights = estimator.network_ = str(weight_paths(path)[0].resolve())
        return estimator

    def _load_weights(self) -> None:
        """Make the network of the parameter ``weights`` ours, unless it is already."""
        if hasattr(self, "module_") and self.network_ == str(self.weights):
            return
        name = self._default_weights if self.weights == "default" else self.weights
        arrays, card = read_weights(find_weights(name))
        if card["method"] not in {cls.__name__ for cls in type(self).__mro__}:
            raise WeightsError(
                f"weights={str(self.weights)!r} were trained for {card['method']}, not "
                f"{type(self).__name__}"
            )
        network = {key: card.get("state", {}).get(key) for key in ("architecture_", "spread_")}
        if None in network.values():
            raise WeightsError(f"the card of weights={str(self.weights)!r} describes no network")
        with persistence.as_weights_error(f"the card of weights={str(self.weights)!r}"):
            place = card["state"].get("place_", {})
            check_place(network["spread_"], place)
            persistence.restore_state(self, {}, network)
            self.spread_, self.place_ = float(self.spread_), dict(place)
            self.module_ = persistence.restore_module(self._make_module, arrays)
        self.network_ = str(self.weights)
        self.__dict__.pop("history_", None)  # the curve of weights that are gone

    @torch.inference_mode()
    def _read(self, aligned: list[np.ndarray], seed: int) -> list[Inference]:
        """Let the network read several data sets at once."""
        self._on_device()
        for x in aligned:
            self._check_near(x)
        sets = [torch.as_tensor(x, dtype=torch.float32) for x in aligned]
        return self._infer(pad_sets(sets).to(resolve_device(self.device)), seed)

    def _accept(self, answer: Inference) -> None:
        for name, value in answer.items():
            setattr(self, name, value)
