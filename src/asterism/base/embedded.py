"""Methods that cluster the codes of an autoencoder trained on the same rows.

    minimise  mean_i |x_i − g(f(x_i))|² / D,       z_i = f(x_i)

A subclass calls ``_pretrain`` in its ``_fit`` and finds the codes by ``_codes``; ``_train`` goes on
with any objective of the autoencoder and a batch of scaled rows.
"""

import copy
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from asterism._validation import Interval, LayerSizes, Real, StrOptions, at_least, seeded
from asterism.base.contract import EmbeddingMixin
from asterism.base.deep import DeepClusterer
from asterism.functional.scaling import SCALINGS, fit_scaling
from asterism.nn.autoencoder import Autoencoder
from asterism.training import ArraySource, TrainingPlan, train
from asterism.training.history import Record

__all__ = ["EmbeddedClusterer", "has_levelled"]

_WARMUP_STEPS = 200


class EmbeddedClusterer(EmbeddingMixin, DeepClusterer):
    """Trains the autoencoder every embedded method begins with."""

    _module_class: ClassVar[type[nn.Module]] = Autoencoder
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **DeepClusterer._parameter_constraints,
        "latent_dim": [at_least(1), None],
        "hidden_dims": [LayerSizes()],
        "max_steps": [at_least(0)],
        "tol": [Interval(Real, 0, 1, closed="left")],
        "batch_size": [at_least(1)],
        "lr": [Interval(Real, 0, None, closed="neither")],
        "scaling": [StrOptions(set(SCALINGS))],
    }

    module_: Autoencoder
    latent_dim: int | None
    hidden_dims: Sequence[int]
    max_steps: int
    tol: float
    batch_size: int
    lr: float
    scaling: str

    def _pretrain(self, X: np.ndarray, seed: int) -> None:
        """Learn to reconstruct the rows."""
        self.offset_, self.factor_ = fit_scaling(X, self.scaling)
        self.architecture_ = {
            "dim": X.shape[1],
            "hidden_dims": tuple(self.hidden_dims),
            "latent_dim": self.latent_dim or min(10, X.shape[1]),
        }
        with seeded(seed):
            self.module_ = Autoencoder(**self.architecture_)
        self.history_ = self._train(
            X, Autoencoder.loss, self.max_steps, self.tol, seed, "autoencoder"
        )
        self.n_iter_ = self.history_[-1]["step"] if self.history_ else 0

    def _train(
        self,
        X: np.ndarray,
        objective: Callable[[Any, Tensor], Tensor],
        steps: int,
        tol: float,
        seed: int,
        description: str,
    ) -> list[Record]:
        """Minimise the objective, until it has levelled or the steps are used up."""
        self._on_device()
        return train(
            self.module_,
            ArraySource(self._scaled(X), self.batch_size, seed),
            TrainingPlan(
                steps=steps,
                lr=self.lr,
                schedule="cosine",
                warmup=min(0.1, _WARMUP_STEPS / max(steps, 1)),
                log_every=max(1, steps // 100),
            ),
            objective=objective,
            seed=seed,
            verbose=bool(self.verbose),
            description=description,
            should_stop=lambda records: has_levelled(records, tol),
        )

    def _scaled(self, X: np.ndarray) -> Tensor:
        return self._tensor((X - self.offset_) * self.factor_)

    @torch.inference_mode()
    def _codes(self, X: np.ndarray, chunk: int = 4096) -> np.ndarray:
        self._on_device()
        encoder = copy.deepcopy(self.module_.encoder)
        # In double precision a row's code does not depend on the rows it is encoded with.
        precision = torch.float32 if self._scaled(X[:1]).device.type == "mps" else torch.float64
        encoder.to(precision)
        parts = (self._scaled(X[i : i + chunk]).to(precision) for i in range(0, len(X), chunk))
        return torch.cat([encoder(part).float().cpu() for part in parts]).numpy()

    def _embed(self, X: np.ndarray) -> np.ndarray:
        return self._codes(X)

    @property
    def _n_features_out(self) -> int:
        return int(self.architecture_["latent_dim"])


def has_levelled(records: list[Record], tol: float, window: int = 10) -> bool:
    """Whether the loss fell by less than the fraction ``tol`` between the last two windows."""
    if tol == 0 or len(records) < 2 * window:
        return False
    before = np.mean([record["loss"] for record in records[-2 * window : -window]])
    latest = np.mean([record["loss"] for record in records[-window:]])
    return bool(latest > (1 - tol) * before)
