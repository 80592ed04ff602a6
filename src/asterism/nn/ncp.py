"""The neural clustering process: a normalised distribution over partitions of a data set.

    q(c | x) = Π_n softmax_k f(G_k, U)[c_n]      see :mod:`asterism.functional.sequential`

    h, u   points     D → 128 × 4 → 256
    g      clusters   256 → 128 × 5 → 512
    f      totals     512 + 256 → 128 × 5 → 1, the last without bias
    loss   mean over data sets and random orders of −log q(c | x)

Every map is a perceptron with PReLU between its layers, all poolings are sums. Sums of N terms grow
with N, so a network is at home with the sizes it was trained on.

The last layer of h, g and u is linear, the first of g and f is, and between them stands a sum: the
two make one matrix, 128 × 128, and no vector of 256 or 512 is ever formed. The result is the same,
at half the work.

Pakman, Wang, Mitelut, Lee & Paninski, "Neural clustering processes", ICML 2020.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from asterism.exceptions import DataError
from asterism.functional.partitions import by_appearance
from asterism.functional.sequential import Codes, in_order, random_orders, step_log_probs
from asterism.functional.sets import SetBatch
from asterism.nn.perceptron import perceptron

__all__ = ["NCPScorer", "NeuralClusteringProcess"]


class NeuralClusteringProcess(nn.Module):
    """Score partitions of (B, N, D) sets, one point after another.

    Parameters
    ----------
    dim : int
        Coordinates of a point.
    hidden : int
        Width of all hidden layers.
    h_dim, u_dim, g_dim : int
        Sizes of a point's code in its cluster, of its code while it waits, and of a cluster's code.
    n_orders : int
        Random orders of each data set in a step of training.

    Examples
    --------
    >>> network = NeuralClusteringProcess(dim=2, hidden=8)
    >>> x, keep = torch.zeros(1, 1, 2), torch.ones(1, 1, dtype=torch.bool)
    >>> network.log_prob(x, keep, torch.tensor([[0]])).exp()  # a point is a cluster
    tensor([1.], grad_fn=<ExpBackward0>)
    """

    def __init__(
        self,
        dim: int = 2,
        *,
        hidden: int = 128,
        h_dim: int = 256,
        u_dim: int = 256,
        g_dim: int = 512,
        n_orders: int = 2,
    ) -> None:
        super().__init__()
        if n_orders < 1:
            raise ValueError(f"n_orders={n_orders}: training reads a data set at least once")
        self.dim = dim
        self.n_orders = n_orders
        self.h = perceptron(dim, hidden, 4, h_dim)
        self.u = perceptron(dim, hidden, 4, u_dim)
        self.g = perceptron(h_dim, hidden, 5, g_dim)
        self.f = perceptron(g_dim + u_dim, hidden, 5, 1, bias=False)

    def scorer(self) -> "NCPScorer":
        """The maps with the weights as they are now, matrices between sums joined."""
        return NCPScorer(self)

    def log_prob(self, x: Tensor, keep: Tensor, labels: Tensor) -> Tensor:
        """Log q(c | x), (B,), of partitions (B, N), read in the order the points (B, N, D) have."""
        scorer = self.scorer()
        named = by_appearance(torch.where(keep, labels, -1))
        return step_log_probs(scorer, scorer.encode(x), named, keep).sum(dim=1)

    def loss(self, batch: SetBatch, generator: torch.Generator | None = None) -> Tensor:
        """Mean over data sets and ``n_orders`` random orders of each of −log q(c | x), in nats.

        Orders come from torch's global generator by default, which the training loop seeds.
        """
        if batch.labels is None:
            raise DataError("labels=None: a neural clustering process learns from known clusters")
        orders = random_orders(batch.keep, self.n_orders, generator)
        scorer = self.scorer()
        known = torch.where(batch.keep, batch.labels, -1)
        codes, keep, labels = (
            Codes(*(in_order(part, orders).flatten(0, 1) for part in scorer.encode(batch.x))),
            in_order(batch.keep, orders).flatten(0, 1),
            in_order(known, orders).flatten(0, 1),
        )
        log_q = step_log_probs(scorer, codes, by_appearance(labels), keep)
        return -log_q.sum(dim=1).mean()


class NCPScorer:
    """The maps of a network's present weights; a :class:`PartitionScorer`."""

    def __init__(self, network: NeuralClusteringProcess) -> None:
        self._net = network
        g_first, f_first = _linear(network.g, 0), _linear(network.f, 0)
        g_dim = _linear(network.g, -1).out_features
        self._bias = g_first.bias, f_first.bias
        self._join = _composed(g_first.weight, _linear(network.h, -1))
        self._wait = _composed(f_first.weight[:, g_dim:], _linear(network.u, -1))
        self._state = _composed(f_first.weight[:, :g_dim], _linear(network.g, -1))

    def encode(self, x: Tensor) -> Codes:
        """Codes of points (..., D): h as g begins with it, u as f does."""
        h, u = self._net.h[:-1](x), self._net.u[:-1](x)
        return Codes(F.linear(h, *self._join), F.linear(u, *self._wait))

    def state(self, sums: Tensor) -> Tensor:
        """The map g, up to its first linear layer and on to the first of f."""
        return F.linear(self._net.g[1:-1](sums + self._bias[0]), *self._state)

    def score(self, totals: Tensor) -> Tensor:
        """The map f, after its first linear layer."""
        return self._net.f[1:](totals + self._bias[1]).squeeze(-1)


def _linear(perceptron: nn.Sequential, place: int) -> nn.Linear:
    layer = perceptron[place]
    if not isinstance(layer, nn.Linear):
        raise TypeError(f"layer {place} is {type(layer).__name__}, not linear")
    return layer


def _composed(outer: Tensor, inner: nn.Linear) -> tuple[Tensor, Tensor]:
    """Weight and bias of the linear layer ``inner`` followed by the matrix ``outer``."""
    return outer @ inner.weight, outer @ inner.bias
