"""From a table to a table with clusters, and a model that treats new rows the same way."""

from asterism.pipeline.choosing import check_choices, make_estimator
from asterism.pipeline.clustering import TableClustering, cluster_table
from asterism.pipeline.evaluation import Evaluation, evaluate, summarise
from asterism.pipeline.files import (
    FileClustering,
    FilePrediction,
    cluster_file,
    is_large,
    predict_file,
)
from asterism.pipeline.models import Assignment, TableModel, count_rows, load

__all__ = [
    "Assignment",
    "Evaluation",
    "FileClustering",
    "FilePrediction",
    "TableClustering",
    "TableModel",
    "check_choices",
    "cluster_file",
    "cluster_table",
    "count_rows",
    "evaluate",
    "is_large",
    "load",
    "make_estimator",
    "predict_file",
    "summarise",
]
