"""At which scale a network reads a table: several are tried, and the best one stays.

The scale guessed by ``base.alignment`` takes clusters that run into each other for one, and makes
the table too narrow for a network that knows clusters of one width. So with ``scaling="auto"`` some
rows, of fifty or more, are clustered at

    f = (3/2)^j of the guessed scale,   j = 0, −1, … −5, then 1, 2, … 5

and the scale is taken whose partition has the largest integrated completed likelihood, in
coordinates that do not change with it; see :mod:`asterism.functional.icl`. If a number of clusters
is wanted, partitions that come nearer to it go first. The guess comes before all others, so it
stays where another is no better. Each way ends when two trials in a row are no better than the
best: far too wide a table falls apart into ever more pieces, each of which costs a pass.

This is for networks whose clusters are Gaussians. A subclass may say otherwise, and what a trial
leaves out:

    ``_trial_rows``         most rows of a trial
    ``_trial_settings``     parameters that differ from those of the fit
    ``_finds_gaussians``    whether Gaussians are what the network takes for clusters
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from asterism.base.alignment import AlignmentMixin
from asterism.functional.contexts import some_rows
from asterism.functional.icl import completed_likelihood, rounding_variance

__all__ = ["TrialsMixin", "make_twin"]

Self = TypeVar("Self", bound="TrialsMixin")

_RATIO = 1.5
_WAYS = ((0, -1, -2, -3, -4, -5), (1, 2, 3, 4, 5))
_PATIENCE = 2
_FEWEST = 50
"""Rows below which a likelihood tells too little, and the guess stays."""


class TrialsMixin(AlignmentMixin):
    """Chooses the scale of a table by clustering it at several."""

    projection_: np.ndarray

    _read: Any
    _accept: Any
    _fitted_labels: Any

    # --- what a subclass may write --------------------------------------------------------------

    @property
    def _trial_rows(self) -> int:
        return 1000

    @property
    def _trial_settings(self) -> dict[str, Any]:
        return {}

    @property
    def _finds_gaussians(self) -> bool:
        return True

    # --- inside ---------------------------------------------------------------------------------

    def _try_scales(
        self: Self, fitted: Sequence[Self], rows: Sequence[np.ndarray], seed: int
    ) -> None:
        """Choose the scales of estimators whose maps are guesses, each for its own rows (N, D)."""
        if self.scaling != "auto" or not self._finds_gaussians:
            return
        tables = [
            _Table(twin, some_rows(X, self._trial_rows, seed=0))
            for twin, X in zip(fitted, rows, strict=True)
            if min(len(X), self._trial_rows) >= _FEWEST
        ]
        reader = self._on_trial()
        for way in _WAYS:
            going = tables
            for power in way:
                trials = [table.trial(power) for table in going]
                aligned = [trial._aligned(t.rows) for trial, t in zip(trials, going, strict=True)]
                answers = reader._read(aligned, seed) if going else []
                for table, trial, answer in zip(going, trials, answers, strict=True):
                    trial._accept(answer)
                    table.judge(power, trial._fitted_labels(table.rows))
                going = [table for table in going if table.waited < _PATIENCE]
            for table in tables:
                table.waited = 0
        for table in tables:
            table.owner.projection_ = table.owner.projection_ * _RATIO**table.best

    def _on_trial(self: Self) -> Self:
        """The same with the settings of a trial."""
        trial = make_twin(self)
        vars(trial).update(self._trial_settings)
        return trial


class _Table:
    """Rows (n, D) of a table, and how trials with them went."""

    def __init__(self, owner: Any, rows: np.ndarray) -> None:
        self.owner, self.rows = owner, rows
        self.place = owner._aligned(rows)  # the same for all trials
        matrix = owner.projection_
        self.rounding = matrix.T * rounding_variance(rows) @ matrix
        wanted = getattr(owner, "n_clusters", "auto")
        self.wanted = 0 if isinstance(wanted, str) else int(wanted)
        self.best, self.most, self.waited = 0, (-1, -np.inf), 0

    def trial(self, power: int) -> Any:
        """An estimator of another scale."""
        made = self.owner._on_trial()
        made.projection_ = self.owner.projection_ * _RATIO**power
        return made

    def judge(self, power: int, labels: np.ndarray) -> None:
        """Compare the partition of a trial with the best before."""
        reached = min(len(np.unique(labels)), self.wanted)
        value = (reached, completed_likelihood(self.place, labels, self.rounding))
        if value > self.most:
            self.best, self.most, self.waited = power, value, 0
        else:
            self.waited += 1


def make_twin(estimator: Any) -> Any:
    """Another estimator with the same parameters and fitted attributes."""
    twin = object.__new__(type(estimator))
    vars(twin).update(vars(estimator))
    return twin
