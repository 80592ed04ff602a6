"""Pictures of clusterings, and a one-page HTML report.

Every function takes plain arrays and returns the matplotlib ``Axes`` it drew on, those of small
multiples an array of them. Nothing here knows of estimators, save that one may be passed in place
of what it holds: ``similarity_``, ``partitions_`` or ``split_merge_history_``. matplotlib
(``pip install 'asterism[plot]'``) is imported on the first call.
"""

from asterism.plotting.certainty import plot_reliability, plot_similarity
from asterism.plotting.diagnostics import plot_confusion, plot_k_posterior
from asterism.plotting.filtering import plot_filtering
from asterism.plotting.moves import plot_split_merge
from asterism.plotting.posterior import (
    plot_coassignment,
    plot_confidence,
    plot_posterior_samples,
    similarity_shown,
)
from asterism.plotting.report import write_report
from asterism.plotting.scatter import plot_clusters, plot_embedding
from asterism.plotting.style import cluster_color, new_axes
from asterism.plotting.summaries import (
    ClusterSummary,
    Contrast,
    contrasts,
    prototypes,
    summarise_clusters,
)
from asterism.plotting.training import plot_history

__all__ = [
    "ClusterSummary",
    "Contrast",
    "cluster_color",
    "contrasts",
    "new_axes",
    "plot_clusters",
    "plot_coassignment",
    "plot_confidence",
    "plot_confusion",
    "plot_embedding",
    "plot_filtering",
    "plot_history",
    "plot_k_posterior",
    "plot_posterior_samples",
    "plot_reliability",
    "plot_similarity",
    "plot_split_merge",
    "prototypes",
    "similarity_shown",
    "summarise_clusters",
    "write_report",
]
