"""
A table with mixed columns
==========================

From a CSV file with numbers, categories and empty cells to clusters, with the evidence for the
number of clusters and a comparison with known classes. The stars are invented; see
``examples/make_stars.py``.
"""

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import pandas as pd

from asterism import cluster_table
from asterism.plotting import cluster_color, plot_clusters, plot_confusion

# %%
# The file names its rows in the column ``star`` and tells their kind, which is kept out of the
# clustering. (The path is relative: run this script in the folder ``examples``.)

stars = pd.read_csv("stars.csv")
stars.head()

# %%
# The default method is k-means with the number of clusters chosen by the silhouette. The notes say
# what was done to each column.

result = cluster_table(stars, id_column="star", label_column="kind")
print(result.n_clusters, "clusters of", result.sizes, "rows")
for note in result.model.encoder.notes_:
    print("-", note)

# %%
# The silhouette of every number tried. The largest decides.

silhouettes = result.model.estimator.silhouettes_
figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.plot(list(silhouettes), list(silhouettes.values()), "o-", color="0.4", markersize=4)
best = result.n_clusters
ax.plot(best, silhouettes[best], "o", color=cluster_color(4), markersize=9)
ax.set(xlabel="number of clusters", ylabel="mean silhouette", xticks=list(silhouettes))
ax.spines[["top", "right"]].set_visible(False)

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
# The table that comes out is the one that went in, with two columns more.

result.frame.head()

# %%
# Typical values of each cluster, in the units of the file.

columns = ["colour_index", "magnitude", "rotation_days"]
result.frame.groupby("cluster")[columns].median().round(2)

# %%
# Other methods see the same table differently. A category becomes a few columns that take two
# values only, so the rows with equal categories lie on a plane of their own. To methods that model
# densities each such plane is a cluster: they split the populations by spectral class and by what
# was missing. Neither answer is wrong; look before you believe one.

for method in ("kmeans", "agglomerative", "gmm", "bayesian-gmm", "hdbscan"):
    other = cluster_table(stars, method, id_column="star", label_column="kind")
    print(f"{method:14s} {other.n_clusters:3d} clusters, ARI {other.scores['ari']:.3f}")

# %%
# Without the category and the column with gaps only numbers remain, and the methods come close to
# each other.

for method in ("kmeans", "agglomerative", "gmm", "bayesian-gmm", "hdbscan"):
    other = cluster_table(
        stars,
        method,
        id_column="star",
        label_column="kind",
        drop=["spectral_class", "rotation_days"],
    )
    print(f"{method:14s} {other.n_clusters:3d} clusters, ARI {other.scores['ari']:.3f}")
