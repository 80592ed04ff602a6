"""asterism: clustering with neural networks.

Two ideas: networks that learned *how to cluster* on endless synthetic data sets, so that a new one
costs a few forward passes; and deep clustering of one data set, representation and clusters
together. All methods are scikit-learn estimators.

Names are imported when first used, so that ``import asterism`` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asterism.io.pretrained import pretrained_names
    from asterism.methods.ae_kmeans import AEKMeans
    from asterism.methods.asterism import Asterism
    from asterism.methods.baselines.density import HDBSCAN
    from asterism.methods.baselines.kmeans import AutoKMeans
    from asterism.methods.baselines.linkage import AutoAgglomerative, AutoSpectral
    from asterism.methods.baselines.mixtures import AutoGaussianMixture, BayesianMixture
    from asterism.methods.ccp import ACP, CCP
    from asterism.methods.dac import DAC
    from asterism.methods.ncp import NCP
    from asterism.methods.nonparametric.ae_deepdpm import AEDeepDPM
    from asterism.methods.nonparametric.deepdpm import DeepDPM
    from asterism.methods.nonparametric.dp_means import DPMeans
    from asterism.methods.nonparametric.movb import MoVB
    from asterism.methods.nonparametric.sampler import DPSampler
    from asterism.methods.recurrent import RecurrentMixture
    from asterism.methods.registry import get_method
    from asterism.methods.set_transformer import SetTransformerMixture
    from asterism.pipeline import cluster_file, cluster_table, load

__version__ = "0.1.0.dev0"

_PUBLIC = {
    "ACP": "asterism.methods.ccp",
    "AEDeepDPM": "asterism.methods.nonparametric.ae_deepdpm",
    "AEKMeans": "asterism.methods.ae_kmeans",
    "Asterism": "asterism.methods.asterism",
    "AutoAgglomerative": "asterism.methods.baselines.linkage",
    "AutoGaussianMixture": "asterism.methods.baselines.mixtures",
    "AutoKMeans": "asterism.methods.baselines.kmeans",
    "AutoSpectral": "asterism.methods.baselines.linkage",
    "BayesianMixture": "asterism.methods.baselines.mixtures",
    "CCP": "asterism.methods.ccp",
    "DAC": "asterism.methods.dac",
    "DPMeans": "asterism.methods.nonparametric.dp_means",
    "DPSampler": "asterism.methods.nonparametric.sampler",
    "DeepDPM": "asterism.methods.nonparametric.deepdpm",
    "HDBSCAN": "asterism.methods.baselines.density",
    "MoVB": "asterism.methods.nonparametric.movb",
    "NCP": "asterism.methods.ncp",
    "RecurrentMixture": "asterism.methods.recurrent",
    "SetTransformerMixture": "asterism.methods.set_transformer",
    "cluster_file": "asterism.pipeline",
    "cluster_table": "asterism.pipeline",
    "load": "asterism.pipeline",
    "get_method": "asterism.methods.registry",
    "pretrained_names": "asterism.io.pretrained",
}

__all__ = ["__version__", *sorted(_PUBLIC)]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'asterism' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
