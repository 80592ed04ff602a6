"""Files in and out: tables, encoders, weights."""

from asterism.io.encoder import TableEncoder
from asterism.io.pretrained import RemoteWeights, find_weights, pretrained_names, register_weights
from asterism.io.tables import as_frame, attach_labels, read_table, write_table
from asterism.io.weights import read_card, read_weights, write_weights

__all__ = [
    "RemoteWeights",
    "TableEncoder",
    "as_frame",
    "attach_labels",
    "find_weights",
    "pretrained_names",
    "read_card",
    "read_table",
    "read_weights",
    "register_weights",
    "write_table",
    "write_weights",
]
