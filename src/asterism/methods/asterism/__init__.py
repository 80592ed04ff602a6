"""The default method: a pre-trained network that clusters any table, K unknown."""

from asterism.methods.asterism.estimator import Asterism

__all__ = ["Asterism"]
