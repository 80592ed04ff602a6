"""One set of rows seen from several sides, and which of the answers to believe.

A network that knows no symmetry reads rows differently when their axes are reflected or exchanged,
though a prior that treats all axes alike says nothing of it:

    view v      s_v · x[order_v],   signs and order of the axes, those of view 0 as they were;
                2^D D! views in all

Answers differ where clusters are hard to tell apart. A network that takes them one by one rather
misses one than makes one up, so the number believed is not the middle one but

    K = the largest number that at least m of V views reach,   m = max(2, V/3), at most V

and of the views that find K clusters that one which is most like all others: of the largest mean
ARI with them.
"""

import math
from collections.abc import Sequence
from itertools import islice, permutations
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from asterism.functional.comparisons import adjusted_rand

__all__ = ["AxisTurns", "axis_turns", "believed_view", "count_turns"]

_REFLECTED = 16  # last axes at most: as many reflections as anybody has time for


class AxisTurns(NamedTuple):
    """Order (V, D) and signs (V, D) of the axes in V views."""

    orders: Tensor
    signs: Tensor

    def turn(self, view: int, x: Tensor) -> Tensor:
        """Rows (..., D) in a view."""
        return x[..., self.orders[view].to(x.device)] * self.signs[view].to(x)


def count_turns(dim: int) -> int:
    """How many views there are of so many axes."""
    return 2**dim * math.factorial(dim)


def axis_turns(dim: int, n_views: int) -> AxisTurns:
    """The first views: all reflections, then those of exchanged axes.

    >>> turns = axis_turns(2, 8)
    >>> [turns.turn(view, torch.tensor([2, 3])).tolist() for view in (0, 1, 4, 7)]
    [[2, 3], [2, -3], [3, 2], [-3, -2]]
    """
    number, reflected = torch.arange(n_views), min(dim, _REFLECTED)
    bits = number[:, None] >> torch.arange(reflected - 1, -1, -1) & 1
    signs = torch.ones(n_views, dim)
    signs[:, dim - reflected :] -= 2.0 * bits
    place = number >> reflected
    orders = list(islice(permutations(range(dim)), int(place[-1]) + 1))
    return AxisTurns(torch.tensor(orders)[place], signs)


def believed_view(answers: Sequence[np.ndarray]) -> int:
    """Number of the view whose labels (N,) are believed; those of -1 are of no cluster.

    >>> one, two, three = np.zeros(6, int), np.repeat([0, 1], 3), np.repeat([0, 1, 2], 2)
    >>> believed_view([one, two, two, three]), believed_view([three, two, three, one])
    (1, 0)
    """
    counts = np.array([len(np.unique(labels[labels >= 0])) for labels in answers])
    enough = min(len(answers), max(2, -(-len(answers) // 3)))
    wanted = np.flatnonzero(counts == np.sort(counts)[-enough])
    if len(wanted) == 1:
        return int(wanted[0])
    numbered = np.stack([np.unique(labels, return_inverse=True)[1] for labels in answers])
    likeness = [adjusted_rand(numbered[view], numbered).mean() for view in wanted]
    return int(wanted[np.argmax(likeness)])
