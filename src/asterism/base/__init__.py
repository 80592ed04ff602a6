"""The estimator contract, once: scikit-learn's habits over networks."""

from asterism.base.amortized import AmortizedClusterer
from asterism.base.contract import Clusterer, EmbeddingMixin
from asterism.base.deep import DeepClusterer
from asterism.base.embedded import EmbeddedClusterer
from asterism.base.posterior import PosteriorMixin

__all__ = [
    "AmortizedClusterer",
    "Clusterer",
    "DeepClusterer",
    "EmbeddedClusterer",
    "EmbeddingMixin",
    "PosteriorMixin",
]
