"""Multi-layer perceptrons of one width: D → width × n_hidden → n_out, PReLU between the layers."""

from torch import nn

__all__ = ["perceptron"]


def perceptron(
    n_in: int, width: int, n_hidden: int, n_out: int, *, bias: bool = True
) -> nn.Sequential:
    """``n_hidden`` layers of one width, then a linear one, which may have no ``bias``.

    >>> [layer for layer in perceptron(2, 8, 1, 3)]
    [Linear(in_features=2, out_features=8, bias=True), PReLU(num_parameters=1), \
Linear(in_features=8, out_features=3, bias=True)]
    """
    layers: list[nn.Module] = []
    for i in range(n_hidden):
        layers += [nn.Linear(n_in if i == 0 else width, width), nn.PReLU()]
    return nn.Sequential(*layers, nn.Linear(width, n_out, bias=bias))
