"""
K-means on pixels and on learnt codes
=====================================

:class:`~asterism.AEKMeans` trains an autoencoder on the rows, then runs k-means on its codes. The
digits of scikit-learn are small (1797 images of 8 x 8 pixels), which suits a demonstration and is
little for a network to learn from.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from asterism import AEKMeans, AutoKMeans
from asterism.metrics import clustering_scores, knn_error
from asterism.plotting import plot_clusters, plot_embedding, plot_history

X, y = load_digits(return_X_y=True)

# %%
# Both are told that there are ten clusters. The networks are small, so that this page is built in
# seconds; their default layers are those of the literature (500, 500, 2000). Three seeds show how
# much depends on chance.

pixels = [AutoKMeans(10, random_state=seed).fit(X) for seed in range(3)]
codes = [
    AEKMeans(
        10,
        hidden_dims=(128, 128),
        latent_dim=10,
        max_steps=1000,
        tol=0,
        batch_size=128,
        scaling="minmax",
        random_state=seed,
    ).fit(X)
    for seed in range(3)
]
for name, models in (("pixels", pixels), ("codes", codes)):
    scores = [clustering_scores(y, model.labels_) for model in models]
    for metric in ("acc", "nmi", "ari"):
        values = " ".join(f"{score[metric]:.3f}" for score in scores)
        print(f"k-means on {name:6s}  {metric.upper()}  {values}")

# %%
# On these small images the pixels win. An autoencoder keeps what helps to rebuild an image, which
# need not be what tells digits apart, and with 64 pixels there is little to compress. For the much
# larger images of MNIST the literature reports the opposite.
#
# An embedding can also be judged by its neighbourhoods: the error of a vote among the nearest
# training images.

train, test = np.arange(0, len(X), 2), np.arange(1, len(X), 2)
for name, Z in (("pixels", X), ("codes", codes[0].transform(X))):
    print(name, knn_error(Z[train], y[train], Z[test], y[test], n_neighbors=(3, 5, 10)))

# %%
# Points are coloured by cluster and placed by t-SNE, once from the pixels and once from the codes.
# Clusters are numbered by size, so equal colours on the two sides need not be the same digit.

figure, axes = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
plot_clusters(X, pixels[0].labels_, projection="tsne", max_points=800, ax=axes[0])
plot_embedding(codes[0].transform(X), codes[0].labels_, "tsne", max_points=800, ax=axes[1])
for ax, title in zip(axes, ("k-means on pixels", "k-means on codes"), strict=True):
    ax.set_title(title, loc="left")
    ax.set(xticks=[], yticks=[], xlabel="", ylabel="")
    ax.get_legend().remove()

# %%
# The learning curve. ``history_`` holds one record for each hundredth of ``max_steps``.

figure, ax = plt.subplots(figsize=(7.4, 3.4), layout="constrained")
plot_history(codes[0].history_, ax=ax)
ax.spines[["top", "right"]].set_visible(False)
ax.set_ylabel("reconstruction error")

# %%
# Images nearest to each centre, one row a cluster.

Z = codes[0].transform(X)
nearest = [np.argsort(((Z - center) ** 2).sum(axis=1))[:12] for center in codes[0].cluster_centers_]
figure, axes = plt.subplots(10, 12, figsize=(6.4, 5.4))
figure.subplots_adjust(wspace=0.1, hspace=0.1, left=0.08, right=1, bottom=0, top=1)
for row, images in zip(axes, nearest, strict=True):
    for ax, index in zip(row, images, strict=True):
        ax.imshow(X[index].reshape(8, 8), cmap="gray_r", interpolation="nearest")
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_color("0.9")
for k, row in enumerate(axes):
    row[0].set_ylabel(str(k), rotation=0, va="center", labelpad=10)
