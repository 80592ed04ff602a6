"""The Set Transformer that writes down one cluster after the other and learns when to stop.

    encoder  H = ISAB_m × L of the points
    slots    I_1 learned,  I_{k+1} = PMA_1(I_1 … I_k)      known before any point is read
    pass k   S = SAB × L' of MAB(I_1 … I_k, H), then linear → (stop v, logit π, μ, raw σ) a slot
             v_k = mean of v over the k slots,   π = softmax over the k slots,   σ = softplus
    going on c_k = Π_{i ≤ k} sigmoid(v_i)                  probability of more than k clusters

Trained on labelled data sets of K clusters, K ≤ K_max:

    loss = mean_{k = 1 … K_max} BCE(c_k, 1[k < K]) − (1/N) Σ_i log p(x_i; pass K)

and read with the first k at which c_k < ½. Since row j of MAB(I_1 … I_k, H) depends on no other
slot, the points are read once for all passes; only the small SABs run once for each k.

The decoder has met no more than K_max slots, and does not count beyond: this is the baseline that
filtering one cluster at a time was made to beat.

Lee, Lee & Teh, "Deep amortized clustering", 2019 (the adaptive Set Transformer among its
baselines); Lee et al., "Set Transformer", ICML 2019.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from asterism.functional.mixtures import Mixture, log_likelihood
from asterism.functional.sets import SetBatch
from asterism.nn.attention import MAB, PMA, SAB, ISABStack

__all__ = ["RecurrentSetTransformer"]

_GUARD = 1e-10
"""Smallest probability whose logarithm is taken."""


class RecurrentSetTransformer(nn.Module):
    """Map (B, N, D) sets to mixtures of as many Gaussians as the network finds.

    ``max_clusters`` is the largest number of clusters it is trained on.
    """

    def __init__(
        self,
        dim: int = 2,
        max_clusters: int = 4,
        *,
        width: int = 128,
        heads: int = 4,
        n_inducing: int = 32,
        encoder_blocks: int = 4,
        decoder_blocks: int = 2,
        layer_norm: bool = False,
    ) -> None:
        super().__init__()
        self.dim = dim
        self.max_clusters = max_clusters
        self.encoder = ISABStack(
            dim, width, heads, n_inducing, encoder_blocks, layer_norm=layer_norm
        )
        self.first = nn.Parameter(torch.empty(1, width))
        nn.init.xavier_uniform_(self.first)
        self.grow = PMA(width, width, heads, 1, layer_norm=layer_norm)
        self.gather = MAB(width, width, width, heads, layer_norm=layer_norm)
        self.decoder = nn.ModuleList(
            SAB(width, width, heads, layer_norm=layer_norm) for _ in range(decoder_blocks)
        )
        self.head = nn.Linear(width, 2 + 2 * dim)

    def forward(self, x: Tensor, keep: Tensor | None = None, *, n_slots: int) -> Mixture:
        """Mixture of exactly ``n_slots`` components; ``keep`` (B, N) is False for padding."""
        return self._decode(self._read(x, keep, n_slots))[1]

    def loss(self, batch: SetBatch) -> Tensor:
        """Cross-entropy of going on minus the mean log-likelihood of the points, over data sets."""
        count = self._true_counts(batch)  # (B,)
        read = self._read(batch.x, batch.keep, self.max_clusters)  # (B, K, C)
        slot = torch.arange(self.max_clusters, device=read.device)
        # All passes at once: pass k sees the slots up to k, and those beyond are never looked at.
        seen = (slot <= slot[:, None]).repeat(len(read), 1)  # (B K, K)
        stop, mixtures = self._decode(read.repeat_interleave(self.max_clusters, dim=0), seen)
        log_c = F.logsigmoid(stop.view(len(read), -1)).cumsum(dim=1)  # (B, K)
        goes_on = slot + 1 < count[:, None]
        cross_entropy = -torch.where(goes_on, log_c, _log_complement(log_c)).mean()
        right = torch.arange(len(read), device=read.device) * self.max_clusters + count - 1
        log_p = log_likelihood(batch.x, Mixture(*(part[right] for part in mixtures)))
        fit = torch.where(batch.keep, log_p, 0.0).sum(dim=1) / batch.sizes
        return cross_entropy - fit.mean()

    @torch.no_grad()
    def unroll(
        self, x: Tensor, keep: Tensor | None = None, *, max_slots: int = 50
    ) -> tuple[Mixture, Tensor, Tensor]:
        """Add slots until the network stops.

        Returns
        -------
        mixture : Mixture
            Of as many components as the longest answer; those beyond a data set's own count have
            log-weight −∞.
        count : Tensor of shape (B,)
            Components of each data set.
        stopped : Tensor of shape (B,)
            False where the network would have gone on beyond ``max_slots``.
        """
        read = self._read(x, keep, max_slots)
        count = torch.full((len(x),), max_slots, device=x.device)
        stopped = torch.zeros(len(x), dtype=torch.bool, device=x.device)
        answer = Mixture(
            read.new_full((len(x), max_slots), -math.inf),
            read.new_zeros(len(x), max_slots, self.dim),
            read.new_ones(len(x), max_slots, self.dim),
        )
        going = torch.arange(len(x), device=x.device)  # data sets that are not finished
        log_c = read.new_zeros(len(x))
        for k in range(1, max_slots + 1):
            stop, mixture = self._decode(read[going, :k])
            log_c[going] += F.logsigmoid(stop)
            ends = log_c[going] < -math.log(2)
            done = torch.ones_like(ends) if k == max_slots else ends
            for whole, part in zip(answer, mixture, strict=True):
                whole[going[done], :k] = part[done]
            count[going[done]] = k
            stopped[going[ends]] = True
            going = going[~done]
            if not len(going):
                break
        return Mixture(*(part[:, :k] for part in answer)), count, stopped

    def _slots(self, n_slots: int) -> Tensor:
        """Queries I_1 … I_n, (n, C)."""
        rows: Tensor = self.first
        while len(rows) < n_slots:
            rows = torch.cat([rows, self.grow(rows[None])[0]])
        return rows

    def _read(self, x: Tensor, keep: Tensor | None, n_slots: int) -> Tensor:
        """What each slot finds in the points, (B, n, C)."""
        return self.gather(self._slots(n_slots).expand(len(x), -1, -1), self.encoder(x, keep), keep)

    def _decode(self, rows: Tensor, seen: Tensor | None = None) -> tuple[Tensor, Mixture]:
        """Mean stop logit (B,) and mixture of slots (B, K, C), of which ``seen`` (B, K) count."""
        for block in self.decoder:
            rows = block(rows, seen)
        sizes = [1, 1, self.dim, self.dim]
        stop, weight, means, raw = self.head(rows).split(sizes, dim=-1)
        stop, weight = stop.squeeze(-1), weight.squeeze(-1)
        if seen is None:
            seen = torch.ones_like(stop, dtype=torch.bool)
        mean_stop = torch.where(seen, stop, 0.0).sum(dim=1) / seen.sum(dim=1)
        log_weights = torch.log_softmax(weight.masked_fill(~seen, -math.inf), dim=1)
        return mean_stop, Mixture(log_weights, means, F.softplus(raw) + 1e-5)

    def _true_counts(self, batch: SetBatch) -> Tensor:
        """Number of true clusters of each data set, (B,)."""
        if batch.labels is None:
            raise ValueError("the loss needs labels, from which the network learns when to stop")
        count = torch.where(batch.keep, batch.labels, -1).amax(dim=1) + 1
        if int(count.max()) > self.max_clusters or int(count.min()) < 1:
            raise ValueError(
                f"a data set of {int(count.min())} to {int(count.max())} clusters, but the network "
                f"is built for 1 to max_clusters={self.max_clusters}: build a larger one, or "
                "lower that of the prior"
            )
        return count


def _log_complement(log_c: Tensor) -> Tensor:
    """log(1 − c) from log c, finite at c = 1."""
    return torch.log(-torch.expm1(log_c.clamp_max(-_GUARD)))
