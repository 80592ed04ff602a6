"""Distributions over labelled data sets, from which amortised clusterers learn."""

from asterism.functional.sets import DatasetPrior, SetBatch
from asterism.priors.mixtures import GaussianMixturePrior
from asterism.priors.tabular import TabularPrior

__all__ = ["DatasetPrior", "GaussianMixturePrior", "SetBatch", "TabularPrior"]
