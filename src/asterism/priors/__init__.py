"""Distributions over labelled data sets, from which amortised clusterers learn."""

from asterism.functional.sets import DatasetPrior, SetBatch
from asterism.priors.benchmarks import BENCHMARKS, Benchmark, benchmark_batches
from asterism.priors.clusters import ClusterMixturePrior
from asterism.priors.images import ImageSetPrior, split_classes
from asterism.priors.mixtures import GaussianMixturePrior
from asterism.priors.restaurant import RestaurantMixturePrior
from asterism.priors.tabular import TabularPrior
from asterism.priors.warped import WarpedMixturePrior

__all__ = [
    "BENCHMARKS",
    "PRIORS",
    "Benchmark",
    "ClusterMixturePrior",
    "DatasetPrior",
    "GaussianMixturePrior",
    "ImageSetPrior",
    "RestaurantMixturePrior",
    "SetBatch",
    "TabularPrior",
    "WarpedMixturePrior",
    "benchmark_batches",
    "split_classes",
]

PRIORS: dict[str, type] = {
    "mixture": GaussianMixturePrior,
    "mog": ClusterMixturePrior,
    "warped": WarpedMixturePrior,
    "restaurant": RestaurantMixturePrior,
    "tabular": TabularPrior,
    "images": ImageSetPrior,
}
"""Priors by name; all but "images", which needs a collection, have published defaults."""
