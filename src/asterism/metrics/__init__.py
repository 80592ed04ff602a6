"""Scores of a clustering, a mixture, an embedding and pair probabilities; stability over seeds."""

from asterism.metrics.accuracy import (
    clustering_accuracy,
    match_clusters,
    representative_accuracy,
)
from asterism.metrics.calibration import PairCalibration, pair_calibration
from asterism.metrics.embedding import knn_error
from asterism.metrics.likelihood import mean_log_likelihood, oracle_log_likelihood
from asterism.metrics.scores import (
    ClusteringScores,
    adjusted_rand_index,
    best_over_references,
    cluster_count_error,
    clustering_scores,
    normalized_mutual_information,
)
from asterism.metrics.stability import Stability, stability

__all__ = [
    "ClusteringScores",
    "PairCalibration",
    "Stability",
    "adjusted_rand_index",
    "best_over_references",
    "cluster_count_error",
    "clustering_accuracy",
    "clustering_scores",
    "knn_error",
    "match_clusters",
    "mean_log_likelihood",
    "normalized_mutual_information",
    "oracle_log_likelihood",
    "pair_calibration",
    "representative_accuracy",
    "stability",
]
