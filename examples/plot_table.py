"""
A table with mixed columns
==========================

From a CSV file with numbers, categories and empty cells to clusters, with the belief over the
number of clusters and a comparison with known classes. The stars are invented; see
``examples/make_stars.py``.
"""

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import pandas as pd

from asterism import cluster_table
from asterism.plotting import plot_clusters, plot_confusion, plot_k_posterior

# %%
# The file names its rows in the column ``star`` and tells their kind, which is kept out of the
# clustering. (The path is relative: run this script in the folder ``examples``.)

stars = pd.read_csv("stars.csv")
stars.head()

# %%
# The default method, :class:`~asterism.Asterism`, finds the number of clusters. The letters of
# ``spectral_class`` are left out at first. The notes say what was done to each column.

result = cluster_table(stars, id_column="star", label_column="kind", drop=["spectral_class"])
print(result.n_clusters, "clusters of", result.sizes, "rows")
for note in result.model.encoder.notes_:
    print("-", note)

# %%
# What it believes of the number of clusters, and the adjusted Rand index it expects of its answer,
# before any label was looked at.

estimator = result.model.estimator
figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
plot_k_posterior(estimator.k_posterior_, ax=ax)
ax.spines[["top", "right"]].set_visible(False)
print(f"expected ARI {estimator.overall_confidence_:.2f}, found {result.scores['ari']:.2f}")

# %%
# The clusters in the plane of the two leading principal components, and the known kinds against
# the clusters.

figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
plot_clusters(
    result.X,
    result.labels,
    probability=result.probability,
    feature_names=result.model.encoder.feature_names_,
    ax=axes[0],
)
axes[0].spines[["top", "right"]].set_visible(False)
plot_confusion(stars["kind"], result.labels, ax=axes[1])

# %%
# The table that comes out is the one that went in, with two columns more; ``details=True`` adds a
# confidence and an outlier score.

result.frame.head()

# %%
# Typical values of each cluster, in the units of the file.

columns = ["colour_index", "magnitude", "rotation_days"]
result.frame.groupby("cluster")[columns].median().round(2)

# %%
# The whole table, by several methods. A category becomes a few columns that take two values only,
# so the rows with equal categories lie on a plane of their own. To methods that look at densities
# or neighbours each such plane may be a cluster: they split the populations by spectral class and
# by what was missing. Neither answer is wrong; look before you believe one.

methods = ("asterism", "kmeans", "agglomerative", "gmm", "bayesian-gmm", "hdbscan")
for method in methods:
    other = cluster_table(stars, method, id_column="star", label_column="kind")
    print(f"{method:14s} {other.n_clusters:3d} clusters, ARI {other.scores['ari']:.3f}")

# %%
# Without the category and the column with gaps only numbers remain, and the methods come close to
# each other.

for method in methods:
    other = cluster_table(
        stars,
        method,
        id_column="star",
        label_column="kind",
        drop=["spectral_class", "rotation_days"],
    )
    print(f"{method:14s} {other.n_clusters:3d} clusters, ARI {other.scores['ari']:.3f}")
