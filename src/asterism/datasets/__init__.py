"""Data to cluster: toys drawn on the spot, and loaders of benchmark sets and suites.

Benchmark data are not part of this package. A loader looks for the user's own file, then in the
folder named by the environment variable ``ASTERISM_DATA``, then in the cache, and downloads the
sets whose public address and checksum are known; see :func:`load_dataset`.
"""

from asterism.datasets.catalogue import DatasetInfo, dataset_info, dataset_names
from asterism.datasets.dataset import Dataset, Suite
from asterism.datasets.generic import load_dataset
from asterism.datasets.images import (
    load_coil20,
    load_deepdpm_embeddings,
    load_fashion_mnist,
    load_mnist,
    load_omniglot,
    load_stickfigures,
    load_usps,
)
from asterism.datasets.suites import load_clustering_suite, load_highdim_suite, load_tabular_suite
from asterism.datasets.synthetic import load_toy, toy_names
from asterism.datasets.text import (
    frequent_term_tfidf,
    load_newsgroups,
    load_rcv1_sample,
    load_reuters,
)

__all__ = [
    "Dataset",
    "DatasetInfo",
    "Suite",
    "dataset_info",
    "dataset_names",
    "frequent_term_tfidf",
    "load_clustering_suite",
    "load_coil20",
    "load_dataset",
    "load_deepdpm_embeddings",
    "load_fashion_mnist",
    "load_highdim_suite",
    "load_mnist",
    "load_newsgroups",
    "load_omniglot",
    "load_rcv1_sample",
    "load_reuters",
    "load_stickfigures",
    "load_tabular_suite",
    "load_toy",
    "load_usps",
    "toy_names",
]
