"""How well a batch of data sets could be clustered by one who knew their true components.

    π_k = n_k / N                                    shares of the true labels
    ℓ = (1/N) Σ_i log Σ_k π_k N(x_i; μ_k, σ_k)       oracle log-likelihood a point
    y*_i = argmax_k π_k N(x_i; μ_k, σ_k)             oracle labels

No method that knows less should beat y* by more than chance; a likelihood may be larger than ℓ,
since true parameters are those of the population, not of the sample.
"""

import torch
from torch import Tensor

from asterism.functional.mixtures import Mixture, joint_log_prob, log_likelihood
from asterism.functional.sets import SetBatch

__all__ = ["oracle_labels", "oracle_log_likelihood", "oracle_mixture"]


def oracle_mixture(batch: SetBatch) -> Mixture:
    """True components, in double precision, weighed by the shares of their points.

    A component without points has the log-weight −∞.
    """
    if batch.truth is None or batch.labels is None:
        raise ValueError("the oracle needs a batch with truth and labels: this prior has none")
    truth = Mixture(*(part.double() for part in batch.truth))
    known = batch.keep & (batch.labels >= 0)
    counts = torch.zeros_like(truth.log_weights)
    counts.scatter_add_(1, batch.labels.clamp_min(0), known.double())
    return truth._replace(log_weights=(counts / counts.sum(dim=1, keepdim=True)).log())


def oracle_log_likelihood(batch: SetBatch) -> Tensor:
    """Mean log-likelihood a point of each data set, (B,).

    Examples
    --------
    >>> x, labels = torch.tensor([[[-5.0], [5.0]]]), torch.tensor([[0, 1]])
    >>> truth = Mixture(torch.zeros(1, 2), torch.tensor([[[-5.0], [5.0]]]), torch.ones(1, 2, 1))
    >>> batch = SetBatch(x, torch.ones(1, 2, dtype=torch.bool), labels, truth)
    >>> oracle_log_likelihood(batch)
    tensor([-1.6121], dtype=torch.float64)
    """
    log_p = log_likelihood(batch.x.double(), oracle_mixture(batch))
    return torch.where(batch.keep, log_p, 0.0).sum(dim=1) / batch.sizes


def oracle_labels(batch: SetBatch) -> Tensor:
    """Likeliest true component of each point, (B, N), −1 for padding."""
    joint = joint_log_prob(batch.x.double(), oracle_mixture(batch))
    return torch.where(batch.keep, joint.argmax(dim=2), -1)
