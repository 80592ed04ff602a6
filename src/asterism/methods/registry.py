"""The table of methods: the command line, the docs and the benchmarks read it and nothing else.

A row names a class without importing it, so that listing the methods costs nothing.
"""

import difflib
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from asterism.exceptions import UnknownMethodError

if TYPE_CHECKING:
    from asterism.base import Clusterer

__all__ = [
    "DEFAULT_METHOD",
    "Method",
    "get_method",
    "method_names",
    "method_of_class",
    "methods",
    "register",
]


@dataclass(frozen=True)
class Method:
    """One row of the table.

    Parameters
    ----------
    name : str
        What users type.
    target : str
        ``"module:Class"``.
    family : str
        Where the docs put it.
    summary : str
        One line.
    needs_k : bool
        Whether the number of clusters must be given.
    takes_k : bool
        Whether it may be given.
    takes_range : bool
        Whether a lowest and a highest number may be given.
    finds_k : bool
        Whether it is found when not given; otherwise the weights fix it.
    soft : bool
        Whether there are probabilities.
    on_tables : tuple of (str, value)
        Parameters on rows that come encoded from a table, where the encoder has scaled them and a
        second scaling would blow up its flags and rare categories.
    uses_labels : bool
        Whether ``y`` is used where it is known, if asked.
    details : bool
        Whether each row comes with a confidence and an outlier score.
    posterior : bool
        Whether partitions can be sampled.
    """

    name: str
    target: str
    family: str
    summary: str
    needs_k: bool = False
    takes_k: bool = True
    takes_range: bool = False
    on_tables: tuple[tuple[str, object], ...] = ()
    finds_k: bool = True
    soft: bool = True
    uses_labels: bool = False
    details: bool = False
    posterior: bool = False

    @property
    def count(self) -> str:
        """Where the number of clusters comes from, in words."""
        if self.needs_k:
            return "given"
        if not self.finds_k:
            return "fixed by the weights, or fewer given"
        return "found or given" if self.takes_k else "found"

    @property
    def class_name(self) -> str:
        """Name of the estimator's class."""
        return self.target.partition(":")[2]

    def load(self) -> "type[Clusterer]":
        """Import the estimator's class."""
        module, _, name = self.target.partition(":")
        return getattr(import_module(module), name)


DEFAULT_METHOD = "asterism"
"""What runs when no method is named: one that finds the number of clusters."""

_METHODS: dict[str, Method] = {}


def register(method: Method) -> Method:
    """Add a row, or replace the one of the same name."""
    _METHODS[method.name] = method
    return method


def methods() -> list[Method]:
    """All rows, in order of registration."""
    return list(_METHODS.values())


def method_names() -> list[str]:
    """Names of all methods."""
    return list(_METHODS)


def get_method(name: str) -> Method:
    """Row of this name.

    >>> get_method("kmeans").class_name
    'AutoKMeans'
    """
    if name not in _METHODS:
        close = difflib.get_close_matches(name.lower(), _METHODS, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise UnknownMethodError(f"no method is named {name!r}; {hint}known: {', '.join(_METHODS)}")
    return _METHODS[name]


def method_of_class(class_name: str) -> Method:
    """Row whose estimator has this class name, as it stands in a weights card."""
    for method in _METHODS.values():
        if method.class_name == class_name:
            return method
    raise UnknownMethodError(f"no method has the class {class_name!r}")


_BASELINES = "asterism.methods.baselines"

register(
    Method(
        "asterism",
        "asterism.methods.asterism:Asterism",
        "amortised",
        "pre-trained network reads the table; K found",
        takes_range=True,
        on_tables=(("scaling", "none"),),
        uses_labels=True,
        details=True,
        posterior=True,
    )
)
register(
    Method(
        "set-transformer",
        "asterism.methods.set_transformer:SetTransformerMixture",
        "amortised",
        "mixture of K Gaussians in one pass; K is that of the weights (4) or fewer",
        finds_k=False,
    )
)
register(
    Method(
        "dac",
        "asterism.methods.dac:DAC",
        "amortised",
        "finds clusters one by one, by a network trained on Gaussian ones; K found",
    )
)
register(
    Method(
        "recurrent",
        "asterism.methods.recurrent:RecurrentMixture",
        "amortised",
        "writes Gaussians down until it stops; fails beyond the K of its training",
    )
)
register(
    Method(
        "ncp",
        "asterism.methods.ncp:NCP",
        "amortised",
        "exact posterior over partitions, row by row; for hundreds of rows",
        takes_k=False,
        posterior=True,
    )
)
register(
    Method(
        "ccp",
        "asterism.methods.ccp:CCP",
        "amortised",
        "posterior over partitions, cluster by cluster",
        takes_k=False,
        posterior=True,
    )
)
register(
    Method(
        "acp",
        "asterism.methods.ccp:ACP",
        "amortised",
        "the same with attention between the rows",
        takes_k=False,
        posterior=True,
    )
)
register(
    Method(
        "ae-kmeans",
        "asterism.methods.ae_kmeans:AEKMeans",
        "embedded",
        "k-means on the codes of an autoencoder",
        needs_k=True,
        finds_k=False,
    )
)
register(
    Method(
        "deepdpm",
        "asterism.methods.nonparametric.deepdpm:DeepDPM",
        "nonparametric",
        "Gaussians that split and merge, assigned by a network; K found",
        takes_k=False,
    )
)
register(
    Method(
        "ae-deepdpm",
        "asterism.methods.nonparametric.ae_deepdpm:AEDeepDPM",
        "nonparametric",
        "DeepDPM on the codes of an autoencoder, both learning by turns; K found",
        takes_k=False,
    )
)
register(
    Method(
        "dp-sampler",
        "asterism.methods.nonparametric.sampler:DPSampler",
        "nonparametric",
        "samples the posterior of a Dirichlet process mixture of Gaussians",
        takes_k=False,
        posterior=True,
    )
)
register(
    Method(
        "movb",
        "asterism.methods.nonparametric.movb:MoVB",
        "nonparametric",
        "variational Dirichlet process mixture with births and merges, batch by batch",
        takes_k=False,
    )
)
register(
    Method(
        "dp-means",
        "asterism.methods.nonparametric.dp_means:DPMeans",
        "nonparametric",
        "k-means with a price for each cluster",
        takes_k=False,
    )
)
register(
    Method(
        "kmeans",
        f"{_BASELINES}.kmeans:AutoKMeans",
        "baseline",
        "k-means, K by the silhouette",
    )
)
register(
    Method(
        "gmm",
        f"{_BASELINES}.mixtures:AutoGaussianMixture",
        "baseline",
        "Gaussian mixture, K by BIC",
    )
)
register(
    Method(
        "bayesian-gmm",
        f"{_BASELINES}.mixtures:BayesianMixture",
        "baseline",
        "variational Dirichlet-process mixture of Gaussians",
        takes_k=False,
    )
)
register(
    Method(
        "hdbscan",
        f"{_BASELINES}.density:HDBSCAN",
        "baseline",
        "density modes that last; noise filled or kept",
        takes_k=False,
        soft=False,
    )
)
register(
    Method(
        "spectral",
        f"{_BASELINES}.linkage:AutoSpectral",
        "baseline",
        "spectral clustering of a neighbour graph, K by the eigengap",
        soft=False,
    )
)
register(
    Method(
        "agglomerative",
        f"{_BASELINES}.linkage:AutoAgglomerative",
        "baseline",
        "Ward's agglomeration, K by the silhouette",
        soft=False,
    )
)
