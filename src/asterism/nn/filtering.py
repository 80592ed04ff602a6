"""The filtering network of DAC: reads a set, answers with one cluster of it.

    H  = ISAB_m × L (X)                      every point learns where it lies in the set
    c  = PMA_1(H)                            one row describes one cluster
    ℓ  = W · ISAB_m × L (MAB(H, c))          logits: ℓ_i > 0 says that x_i belongs to it
    p(x; c)                                  density of the cluster (:mod:`asterism.nn.densities`)

Which cluster it is, the network chooses itself (``loss="min"``) or an anchor point tells it
(``loss="anchored"``): then X is replaced by MAB(X, x_a). With true labels y, t_ij = 1[y_i = j] and
n_j = Σ_i t_ij, the cost of taking the answer for cluster j is

    cost_j = (1/N) Σ_i BCE(ℓ_i, t_ij) − (1/n_j) Σ_{i: y_i = j} log p(x_i; c)
    min        mean over data sets of  min_{j: n_j > 0} cost_j
    anchored   mean over data sets of  cost_{y_a},  a uniform over the labelled points

As BCE(ℓ, t) = softplus(ℓ) − tℓ, all clusters cost one pass over the points. Points of label −1
belong to no cluster and should be claimed by none.

Lee, Lee & Teh, "Deep amortized clustering", 2019.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from asterism.functional.filtering import equal_rows
from asterism.functional.sets import SetBatch
from asterism.nn.attention import PMA, Condition, ISABStack
from asterism.nn.densities import ConditionalDensity, GaussianDensity, MaskedFlow
from asterism.nn.image_densities import ConvolutionalEncoder, VariationalDensity

__all__ = ["FilteringNetwork", "LossTerms", "Reading", "StoredPasses"]

DENSITIES = ("gaussian", "maf", "none", "vae")
ENCODERS = ("none", "conv")
LOSSES = ("min", "anchored")

FORCED = 1e-6
"""Least logit of a row that belongs to a cluster whatever the network says."""


class Reading(NamedTuple):
    """One cluster of each set, and what it takes to read further rows against the same sets.

    ``memory`` (B, 2 · depth, n_inducing, width) holds the inducing rows of both stacks.
    """

    logits: Tensor
    context: Tensor
    memory: Tensor


class StoredPasses(NamedTuple):
    """P passes of L looks over one set: contexts (P, L, C) and memory (P, L, 2 · depth, m, C).

    A row belongs to the cluster of a pass if all looks say so, see ``nn.looking``. ``rows`` (P, F)
    are the anchors': where ``forced`` (P,), the anchor belongs to it whatever its logit.
    """

    contexts: Tensor
    memory: Tensor
    rows: Tensor
    forced: Tensor


class LossTerms(NamedTuple):
    """Both parts of the cost of every data set, (B,) each; the density's is zero without one."""

    membership: Tensor
    density: Tensor


class FilteringNetwork(nn.Module):
    """Map sets (B, N, dim) to logits (B, N) and context (B, width) of one of their clusters.

    Parameters
    ----------
    dim : int
        Entries of a point.
    width, heads, n_inducing, depth : int
        Sizes of each of the two stacks.
    tied : bool
        Share the weights of blocks 2 … depth of a stack, as the code released with DAC does.
    layer_norm : bool
        Normalise after each residual.
    loss : {"min", "anchored"}
        Who chooses the cluster: the network, or an anchor point.
    density : {"gaussian", "maf", "vae", "none"}
        How a cluster is described.
    encoder : {"none", "conv"}
        "conv" reads points as square images.
    density_options, encoder_options : dict, optional
        Further arguments of the density and the encoder.

    Examples
    --------
    >>> network = FilteringNetwork(dim=2, width=16, n_inducing=4)
    >>> logits, context = network.step(torch.randn(3, 10, 2))
    >>> logits.shape, context.shape
    (torch.Size([3, 10]), torch.Size([3, 16]))
    """

    def __init__(
        self,
        dim: int = 2,
        *,
        width: int = 128,
        heads: int = 4,
        n_inducing: int = 32,
        depth: int = 4,
        tied: bool = False,
        layer_norm: bool = False,
        loss: str = "min",
        density: str = "gaussian",
        encoder: str = "none",
        density_options: dict[str, Any] | None = None,
        encoder_options: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        for name, value, known in (
            ("loss", loss, LOSSES),
            ("density", density, DENSITIES),
            ("encoder", encoder, ENCODERS),
        ):
            if value not in known:
                raise ValueError(f"{name}={value!r} is not one of {', '.join(known)}")
        self.dim, self.depth, self.anchored = dim, depth, loss == "anchored"
        self.reads_images = encoder == "conv" or density == "vae"
        self.encoder: nn.Module = nn.Identity()
        rows = dim
        if encoder == "conv":
            self.encoder = ConvolutionalEncoder(**_image_shape(dim, encoder_options))
            rows = self.encoder.out_dim
        self.told_anchor = (
            Condition(rows, rows, width, layer_norm=layer_norm) if self.anchored else None
        )
        shape = {"heads": heads, "n_inducing": n_inducing, "depth": depth}
        self.reading = ISABStack(
            width if self.anchored else rows, width, **shape, tied=tied, layer_norm=layer_norm
        )
        self.pool = PMA(width, width, heads, 1, layer_norm=layer_norm)
        self.told_cluster = Condition(width, width, width, layer_norm=layer_norm)
        self.claiming = ISABStack(width, width, **shape, tied=tied, layer_norm=layer_norm)
        self.claim = nn.Linear(width, 1)
        self.density = _make_density(density, dim, width, density_options or {})

    # --- one cluster --------------------------------------------------------------------------

    def features(self, x: Tensor) -> Tensor:
        """What the stacks see of each point, (B, N, F): the point itself, or an image's code."""
        return self.encoder(x)

    def step(
        self, x: Tensor, keep: Tensor | None = None, anchor: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Logits (B, N) and context (B, width) of one cluster; ``anchor`` (B,) is an index."""
        features = self.features(x)
        h = self.reading(self._begin(features, _row_at(features, anchor)), keep)
        context = self.pool(h, keep).squeeze(1)
        h = self.claiming(self.told_cluster(h, context), keep)
        return self.claim(h).squeeze(-1), context

    def remember(
        self, features: Tensor, keep: Tensor | None = None, anchor: Tensor | None = None
    ) -> Reading:
        """The same from features, with what :meth:`recall` needs."""
        h, first = self.reading.remember(self._begin(features, _row_at(features, anchor)), keep)
        context = self.pool(h, keep).squeeze(1)
        h, second = self.claiming.remember(self.told_cluster(h, context), keep)
        memory = torch.stack([*first, *second], dim=1)
        return Reading(self.claim(h).squeeze(-1), context, memory)

    def recall(
        self, features: Tensor, context: Tensor, memory: Tensor, anchor: Tensor | None = None
    ) -> Tensor:
        """Logits (B, N') of rows (B, N', F), each by itself; ``anchor`` (B, F) is a row here."""
        blocks: Sequence[Tensor] = memory.unbind(dim=1)
        h = self.reading.recall(self._begin(features, anchor), blocks[: self.depth])
        h = self.claiming.recall(self.told_cluster(h, context), blocks[self.depth :])
        return self.claim(h).squeeze(-1)

    def read(self, features: Tensor, passes: StoredPasses) -> Tensor:
        """Logits (n, P) of rows (n, F), each by itself, in all passes."""
        contexts = passes.contexts
        fresh = torch.ones(contexts.shape[:2], dtype=torch.bool, device=contexts.device)
        fresh[:, 1:] = (contexts[:, 1:] != contexts[:, :-1]).any(dim=-1)
        which, look = fresh.nonzero(as_tuple=True)  # one that is the same again says the same
        said = self.recall(
            features.expand(len(which), -1, -1),
            contexts[which, look],
            passes.memory[which, look],
            passes.rows[which] if self.anchored else None,
        )
        logits = said.new_full((*fresh.shape, len(features)), torch.inf)
        logits[which, look] = said
        logits = logits.amin(dim=1)
        for k in torch.nonzero(passes.forced).flatten().tolist():
            belongs = equal_rows(features, passes.rows[k])
            logits[k] = torch.where(belongs, logits[k].clamp_min(FORCED), logits[k])
        return logits.mT

    def _begin(self, features: Tensor, anchor: Tensor | None) -> Tensor:
        if self.told_anchor is None:
            return features
        if anchor is None:
            raise ValueError("a network trained with loss='anchored' needs an anchor")
        return self.told_anchor(features, anchor)

    # --- training -----------------------------------------------------------------------------

    def loss(self, batch: SetBatch) -> Tensor:
        """Mean over data sets of the cost of the cluster chosen."""
        terms = self.terms(batch)
        return (terms.membership + terms.density).mean()

    def terms(self, batch: SetBatch) -> LossTerms:
        """Both parts of the cost, one of the order of nats, the other soon near zero."""
        if batch.labels is None:
            raise ValueError("the filtering network learns from labels, and the batch has none")
        labels = torch.where(batch.keep, batch.labels, -1)
        known = labels >= 0
        anchor = _draw(known) if self.anchored else None
        logits, context = self.step(batch.x, batch.keep, anchor)
        index, weight = labels.clamp_min(0), known.to(logits.dtype)
        n_clusters = int(labels.max()) + 1

        def of_clusters(values: Tensor) -> Tensor:
            """Sum over the points of each cluster, (B, K)."""
            total = values.new_zeros(len(values), n_clusters)
            return total.scatter_add(1, index, values * weight)

        count = of_clusters(weight)
        claimed = (F.softplus(logits) * batch.keep).sum(dim=1, keepdim=True)
        membership = (claimed - of_clusters(logits)) / batch.sizes.unsqueeze(1)
        surprise = torch.zeros_like(membership)
        if self.density is not None:
            log_p = self.density.log_prob(batch.x, context)
            surprise = -of_clusters(log_p) / count.clamp_min(1)
        if anchor is None:
            cost = torch.where(count > 0, membership + surprise, torch.inf)
            chosen = cost.detach().argmin(dim=1, keepdim=True)
        else:
            chosen = index.gather(1, anchor.unsqueeze(1))
        return LossTerms(*(part.gather(1, chosen).squeeze(1) for part in (membership, surprise)))


def _row_at(rows: Tensor, index: Tensor | None) -> Tensor | None:
    """Row ``index`` (B,) of each set (B, N, F): (B, F)."""
    return None if index is None else rows[torch.arange(len(rows), device=rows.device), index]


def _draw(usable: Tensor) -> Tensor:
    """One usable index a set (B,), uniform, from the generator the training loop seeds."""
    return torch.multinomial(usable.float(), 1).squeeze(1)


def _image_shape(dim: int, options: dict[str, Any] | None) -> dict[str, Any]:
    """Arguments of an image module, the side taken from the number of entries."""
    options = dict(options or {})
    channels = options.setdefault("channels", 1)
    side = options.setdefault("side", round((dim / channels) ** 0.5))
    if channels * side**2 != dim:
        raise ValueError(f"dim={dim} is not {channels} channel(s) of a square image")
    return options


def _make_density(
    name: str, dim: int, width: int, options: dict[str, Any]
) -> ConditionalDensity | None:
    if name == "gaussian":
        return GaussianDensity(dim, width, **options)
    if name == "maf":
        return MaskedFlow(dim, width, **options)
    if name == "vae":
        return VariationalDensity(width, **_image_shape(dim, options))
    return None
