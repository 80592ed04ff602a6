"""One set of rows seen from several sides, and which of the answers to believe.

A network that knows no symmetry reads rows differently when their axes are reflected or exchanged,
though the prior that it was trained on may treat all axes, and both their ends, alike:

    view v      s_v · x[order_v],   signs and order of the axes, those of view 0 as they were;
                2^D D! in all; further ones begin anew, for readers that draw chances

Answers differ where clusters are hard to tell apart. A network that takes them one by one rather
misses one than makes one up, so of four views or more the number believed is not the middle one but

    K = the largest number that at least m of V views reach,   m = max(2, ⌈V/3⌉), at most V

and of the views that find K clusters that one which is most like all others: of the largest mean
ARI with them. Where the views still to come cannot change K, they need not be looked at: of eight
that agree six are enough, of sixteen eleven. If a number of clusters is wanted, one view that
reaches it is.
"""

import math
from collections.abc import Callable, Sequence
from itertools import islice, permutations
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from asterism.functional.comparisons import adjusted_rand
from asterism.functional.filtering import FilteringPath
from asterism.functional.sets import SetBatch

__all__ = [
    "AxisTurns",
    "View",
    "axis_turns",
    "believed_view",
    "count_turns",
    "filter_views",
    "is_settled",
]

_REFLECTED = 16  # last axes at most: as many reflections as anybody has time for


class AxisTurns(NamedTuple):
    """Order (V, D) and signs (V, D) of the axes in V views."""

    orders: Tensor
    signs: Tensor

    def turn(self, view: int, x: Tensor) -> Tensor:
        """Rows (..., D) in a view, the same where it is the first."""
        if view == 0:
            return x
        return x[..., self.orders[view].to(x.device)] * self.signs[view].to(x)


def count_turns(dim: int) -> int:
    """How many views there are of so many axes."""
    return 2**dim * math.factorial(dim)


def axis_turns(dim: int, n_views: int) -> AxisTurns:
    """The first views: all reflections, then those of exchanged axes, then these again.

    >>> turns = axis_turns(2, 8)
    >>> [turns.turn(view, torch.tensor([2, 3])).tolist() for view in (0, 1, 4, 7)]
    [[2, 3], [2, -3], [3, 2], [-3, -2]]
    """
    reflected = min(dim, _REFLECTED)
    number = torch.tensor([view % count_turns(dim) for view in range(n_views)])
    bits = number[:, None] >> torch.arange(reflected - 1, -1, -1) & 1
    signs = torch.ones(n_views, dim)
    signs[:, dim - reflected :] -= 2.0 * bits
    place = number >> reflected
    orders = list(islice(permutations(range(dim)), int(place.max()) + 1))
    return AxisTurns(torch.tensor(orders)[place], signs)


class View(NamedTuple):
    """One set from one side: its number, its features (N, F), how it was filtered, its clusters."""

    number: int
    features: Tensor
    path: FilteringPath
    labels: np.ndarray


def filter_views(
    read: Callable[[Tensor, Tensor, list[int]], tuple[Tensor, list[FilteringPath]]],
    count: Callable[[FilteringPath, int], np.ndarray],
    batch: SetBatch,
    n_views: int,
    wanted: int | None = None,
) -> list[View]:
    """The believed view of every set of a batch.

    Parameters
    ----------
    read : callable
        ``read(x (b, N, D), keep (b, N), sets)`` gives features (b, N, F) and paths of the sets of
        these numbers.
    count : callable
        ``count(path, set)`` gives labels (N,) of the clusters that count, -1 elsewhere.
    batch : SetBatch
    n_views : int
        Most views of a set.
    wanted : int, optional
        Number of clusters beyond which more make no difference.
    """
    turns = axis_turns(batch.x.shape[-1], n_views)
    views: list[list[View]] = [[] for _ in range(len(batch))]
    waiting = list(range(len(batch)))
    x, keep = batch.x, batch.keep
    for number in range(n_views):
        features, paths = read(turns.turn(number, x), keep, waiting)
        for b, rows, own, path in zip(waiting, features, keep, paths, strict=True):
            views[b].append(View(number, rows[own].cpu(), path, count(path, b)))
        waiting = [b for b in waiting if not is_settled(_answers(views[b]), n_views, wanted)]
        if not waiting:
            break
        x, keep = batch.x[waiting], batch.keep[waiting]
    return [own[believed_view(_answers(own), n_views, wanted)] for own in views]


def is_settled(answers: Sequence[np.ndarray], n_views: int, wanted: int | None = None) -> bool:
    """Whether the number of clusters is known before all views are.

    >>> one, two = np.zeros(6, int), np.repeat([0, 1], 3)
    >>> is_settled([two, two, two], 4), is_settled([one, two, one], 4)
    (True, False)
    """
    missing, enough = n_views - len(answers), _enough(n_views, wanted)
    counts = _counts(answers, wanted)
    believed = np.sort(counts)[-enough] if len(counts) >= enough else 0
    return believed == wanted or int((counts > believed).sum()) + missing < enough


def believed_view(answers: Sequence[np.ndarray], n_views: int, wanted: int | None = None) -> int:
    """Which of the answers is believed: labels (N,), those of -1 of no cluster.

    ``n_views`` is how many answers there would be if they were not settled before.

    >>> one, two, three = np.zeros(6, int), np.repeat([0, 1], 3), np.repeat([0, 1, 2], 2)
    >>> believed_view([one, two, two, three], 4), believed_view([three, two, three, one], 4)
    (1, 0)
    >>> believed_view([one, two, two, three], 4, wanted=3)
    3
    """
    counts = _counts(answers, wanted)
    best = np.flatnonzero(counts == np.sort(counts)[-_enough(n_views, wanted)])
    if len(best) == 1:
        return int(best[0])
    numbered = np.stack([np.unique(labels, return_inverse=True)[1] for labels in answers])
    likeness = [adjusted_rand(numbered[view], numbered).mean() for view in best]
    return int(best[np.argmax(likeness)])


def _enough(n_views: int, wanted: int | None) -> int:
    """Views that must reach a number for it to be believed."""
    return 1 if wanted is not None else min(n_views, max(2, -(-n_views // 3)))


def _counts(answers: Sequence[np.ndarray], wanted: int | None) -> np.ndarray:
    """Clusters of each answer, as far as they matter."""
    counts = np.array([len(np.unique(labels[labels >= 0])) for labels in answers])
    return counts if wanted is None else np.minimum(counts, wanted)


def _answers(views: Sequence[View]) -> list[np.ndarray]:
    return [view.labels for view in views]
