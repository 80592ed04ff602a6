"""Data sets of images: every cluster is a class of some labelled collection.

    N ~ Unif{lowest … highest}, one a batch
    π ~ thinned Dirichlet(α 1_K), α = 5;  y_i ~ Categorical(π)
    K_max distinct classes, drawn evenly, stand for the clusters; the images of a cluster are drawn
    from its class without replacement, and all over again where the class has too few

Pixels are in [0, 1]. Binarised images are drawn anew each time, Bernoulli(pixel). A network that
shall cluster classes it has never seen trains on some classes and is tested on others: see
``split_classes``.

Lee, Lee & Teh, "Deep amortized clustering", 2019.
"""

import zlib
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from asterism.exceptions import DataError
from asterism.functional.sets import SetBatch
from asterism.priors.common import check_numbers, check_sizes, draw_size
from asterism.priors.partitions import draw_labels, thinned_dirichlet, without_gaps

__all__ = ["ImageSetPrior", "split_classes"]


@dataclass(frozen=True, eq=False)
class ImageSetPrior:
    """Sets of images of one to ``max_clusters`` classes.

    Parameters
    ----------
    images : array of shape (n, pixels) or (n, height, width)
        Floats in [0, 1], or bytes, which are divided by 255.
    labels : array of shape (n,)
        Class of each image.
    classes : tuple, optional
        Classes to draw from; by default all.
    max_clusters : int
        Largest number of clusters.
    n_points : (int, int)
        Fewest and most images a data set.
    concentration : float
        α of the Dirichlet distribution of the weights.
    binarise : bool
        Draw every pixel from the Bernoulli distribution of its value.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from asterism.priors import ImageSetPrior
    >>> images = np.linspace(0, 1, 60 * 9).reshape(60, 3, 3)
    >>> prior = ImageSetPrior(images, np.arange(60) % 6, n_points=(20, 20))
    >>> prior.sample(2, torch.Generator().manual_seed(0)).x.shape
    torch.Size([2, 20, 9])
    """

    images: NDArray[np.floating | np.uint8] = field(repr=False)
    labels: NDArray[np.generic] = field(repr=False)
    classes: tuple[int | str, ...] | None = None
    max_clusters: int = 4
    n_points: tuple[int, int] = (30, 99)
    concentration: float = 5.0
    binarise: bool = False
    checksum: int = field(init=False)
    """Tells one collection from another where the settings are recorded."""

    def __post_init__(self) -> None:
        check_sizes(self.n_points)
        check_numbers(self, whole=("max_clusters",), real=("concentration",))
        images, labels = np.ascontiguousarray(self.images), np.asarray(self.labels)
        _check_images(images, labels)
        known, number = np.unique(labels, return_inverse=True)
        classes = tuple((known if self.classes is None else np.asarray(self.classes)).tolist())
        if len(set(classes)) < len(classes) or not set(classes) <= set(known.tolist()):
            raise DataError(f"classes={self.classes}: name each once, and only those of labels")
        if len(classes) < self.max_clusters:
            raise DataError(
                f"max_clusters={self.max_clusters}, but there are {len(classes)} classes to draw "
                "from: ask for fewer clusters"
            )
        checksum = zlib.crc32(images.data, zlib.crc32(number.astype(np.int64).data))
        for name, value in {
            "images": images.reshape(len(images), -1),
            "labels": labels,
            "classes": classes,
            "checksum": checksum,
        }.items():
            object.__setattr__(self, name, value)

    @property
    def dim(self) -> int:
        """Pixels of an image."""
        return int(self.images.shape[1])

    @cached_property
    def _members(self) -> list[Tensor]:
        """Numbers of the images of each class."""
        classes = self.classes or ()
        return [torch.from_numpy(np.flatnonzero(self.labels == name)) for name in classes]

    def sample(self, batch_size: int, generator: torch.Generator) -> SetBatch:
        """Draw ``batch_size`` data sets of one common size, with their labels."""
        n_points = draw_size(self.n_points, generator)
        weights = thinned_dirichlet(batch_size, self.max_clusters, self.concentration, generator)
        labels = draw_labels(weights, n_points, generator)
        labels, _ = without_gaps(labels, self.max_clusters)
        chosen = torch.empty(batch_size, n_points, dtype=torch.int64)
        for row, cluster in zip(chosen, labels, strict=True):
            drawn = torch.randperm(len(self._members), generator=generator)[: self.max_clusters]
            for k in range(int(cluster.max()) + 1):
                own = cluster == k
                row[own] = _cycle(self._members[int(drawn[k])], int(own.sum()), generator)
        x = torch.from_numpy(self.images[chosen.numpy()])
        x = x / 255 if x.dtype == torch.uint8 else x.float()
        if self.binarise:
            x = (torch.rand(x.shape, generator=generator) < x).float()
        return SetBatch(x, torch.ones(labels.shape, dtype=torch.bool), labels)


def split_classes(
    labels: ArrayLike, *, test_share: float = 0.5, seed: int = 0
) -> tuple[tuple[int | str, ...], tuple[int | str, ...]]:
    """Disjoint classes to train on and to test on, at least one each.

    Examples
    --------
    >>> training, test = split_classes([0, 1, 2, 3, 3], test_share=0.25)
    >>> len(training), len(test), sorted(training + test)
    (3, 1, [0, 1, 2, 3])
    """
    names = np.unique(np.asarray(labels)).tolist()
    if not 0 < test_share < 1:
        raise ValueError(f"test_share={test_share} must lie between 0 and 1")
    if len(names) < 2:
        raise DataError(f"labels hold {len(names)} class: two disjoint parts need at least two")
    n_test = min(max(round(test_share * len(names)), 1), len(names) - 1)
    order = torch.randperm(len(names), generator=torch.Generator().manual_seed(seed)).tolist()
    test, training = sorted(order[:n_test]), sorted(order[n_test:])
    return tuple(names[i] for i in training), tuple(names[i] for i in test)


def _cycle(members: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """``count`` members in random order, none a second time before all were drawn."""
    order = members[torch.randperm(len(members), generator=generator)]
    return order.repeat(-(-count // len(order)))[:count]


def _check_images(images: NDArray[np.generic], labels: NDArray[np.generic]) -> None:
    if images.ndim < 2 or images.size == 0:
        raise DataError(
            f"images of shape {images.shape}: give (n, pixels) or (n, height, width), n at least 1"
        )
    if labels.shape != (len(images),):
        raise DataError(
            f"labels of shape {labels.shape}: give one for each of {len(images)} images"
        )
    if images.dtype == np.uint8:
        return
    if images.dtype.kind != "f" or not (images.min() >= 0 and images.max() <= 1):
        raise DataError(
            f"images of type {images.dtype} from {images.min()} to {images.max()}: give bytes, or "
            "floats from 0 to 1"
        )
