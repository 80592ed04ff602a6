"""
What the default believes
=========================

:class:`~asterism.Asterism` is a network that was trained on synthetic tables. It says of every two
rows how likely they share a cluster, and how likely each number of clusters is. The clusters follow
from these beliefs; here are the beliefs themselves, on toys and on a table.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

from asterism import Asterism
from asterism.datasets import load_toy, toy_names
from asterism.metrics import adjusted_rand_index
from asterism.plotting import cluster_color, plot_similarity

# %%
# Toys
# ----
# Nothing is given but the points. Above, the clusters found and their adjusted Rand index with the
# labels the toy was drawn with; below, the belief over the number of clusters, with the true number
# dark. The network never saw these toys, but its prior has clouds, curves and noise like theirs.

MOST = 10
found = {}
figure, grid = plt.subplots(
    4, 5, figsize=(11, 8.6), layout="constrained", height_ratios=(3, 1.1, 3, 1.1)
)
for place, name in enumerate(toy_names()):
    points, below = grid[2 * (place // 5) :, place % 5][:2]
    X, y = load_toy(name, 300, random_state=1, return_X_y=True)
    found[name] = model = Asterism(random_state=0).fit(X)
    points.scatter(*X.T, s=6, c=[cluster_color(k) for k in model.labels_], linewidths=0)
    index = round(adjusted_rand_index(y, model.labels_), 2) + 0.0  # no -0.00
    points.set_title(f"{name.replace('_', ' ')}: {index:.2f}", fontsize=10)
    points.set(xticks=[], yticks=[])
    points.spines[:].set_color("0.85")
    belief = np.append(model.k_posterior_[1:MOST], model.k_posterior_[MOST:].sum())
    colors = [cluster_color(0) if k == y.max() + 1 else "0.8" for k in range(1, MOST + 1)]
    below.bar(range(1, MOST + 1), belief, color=colors)
    below.set(ylim=(0, 1), yticks=[], xticks=(1, 5, 10))
    below.set_xticklabels(("1", "5", "10+"), fontsize=8)
    below.spines[["top", "left", "right"]].set_visible(False)

# %%
# The last one is a square without any structure, for which one cluster is the right answer. Where
# the network errs, as on the spirals, its belief is spread over many numbers. How sure it is
# differs from toy to toy, and so should your trust:

for name, model in found.items():
    k = model.n_clusters_
    print(
        f"{name:15s} K = {k:2d} with probability {model.k_posterior_[k]:.2f}, "
        f"expected ARI {model.overall_confidence_:.2f}"
    )

# %%
# Which rows belong together
# --------------------------
# One dot a pair of rows, dark where the network is sure that they share a cluster. Rows are ordered
# by cluster; shades between two blocks are pairs it cannot decide.

figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
for ax, name in zip(axes, ("varied", "moons", "rings_and_blob"), strict=True):
    plot_similarity(found[name], ax=ax)
    ax.set_title(name.replace("_", " "), fontsize=10)
for ax in figure.axes[3:-1]:  # one scale will do
    ax.remove()

# %%
# Other partitions that these beliefs allow. ``samples`` draws them; taken together, pairs share a
# cluster about as often as the picture above says.

model = found["rings_and_blob"]
X, _ = load_toy("rings_and_blob", 300, random_state=1, return_X_y=True)
partitions, _ = model.samples(5)
figure, axes = plt.subplots(1, 5, figsize=(11, 2.4), layout="constrained")
for ax, labels in zip(axes, partitions, strict=True):
    ax.scatter(*X.T, s=6, c=[cluster_color(k) for k in labels], linewidths=0)
    ax.set_title(f"K = {labels.max() + 1}", fontsize=10)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_color("0.85")

# %%
# A table
# -------
# 178 wines of three growers, 13 chemical measurements. ``explain`` says what sets each cluster
# apart from the other rows: the mean inside and elsewhere, and their difference in standard
# deviations.

wine = load_wine(as_frame=True)
model = Asterism(random_state=0).fit(wine.data)
print(f"ARI with the growers: {adjusted_rand_index(wine.target, model.labels_):.2f}", end="\n\n")
print(model.explain(top=4))

# %%
# In a notebook, or on this page, it is a table.

model.explain(top=3)

# %%
# How good would other answers be? ``score_partition`` is the adjusted Rand index the network
# expects of any labels. It ranks k-means with 2 to 8 centres here, without having seen the growers.

from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler

scaled = StandardScaler().fit_transform(wine.data)
candidates = [KMeans(k, n_init=10, random_state=0).fit_predict(scaled) for k in range(2, 9)]
expected = model.score_partition(wine.data, candidates)
true = [adjusted_rand_index(wine.target, labels) for labels in candidates]
figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.plot(range(2, 9), expected, "o-", color=cluster_color(0), label="expected by the network")
ax.plot(range(2, 9), true, "o--", color="0.5", label="with the growers")
ax.set(xlabel="centres of k-means", ylabel="adjusted Rand index", ylim=(0, 1))
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
