"""
Methods side by side on toys
============================

Ten methods that need no number of clusters, on every toy data set. The number in the right corner
is the adjusted Rand index against the labels the toy was drawn with, and K the number of clusters
found.

No method wins everywhere, and the pictures show why. The mixtures, k-means and Ward's agglomeration
look for round or elliptic clouds, and cover a curve with many of them; so does DeepDPM, a mixture
too. HDBSCAN follows curves; so does spectral clustering once K is right, which is the hard part.
The three columns on the left are networks trained on synthetic data sets. That of the default,
``asterism``, has learned from clouds, curves and noise of many kinds. ``dac`` and the Set
Transformer know mixtures of Gaussians with axes along the columns, the latter four of them and
never more: their columns show what a network does with data sets unlike those it was trained on.
"""

import time

import matplotlib.pyplot as plt
from sklearn.preprocessing import StandardScaler

from asterism.datasets import load_toy, toy_names
from asterism.methods.registry import get_method, methods
from asterism.metrics import adjusted_rand_index
from asterism.plotting import cluster_color

# %%
# Networks, a deep mixture, and what else a table is given to; the registry tells of more methods
# that find K themselves. Their parameters are the defaults.

names = ["asterism", "dac", "set-transformer", "deepdpm", "kmeans", "gmm", "bayesian-gmm"]
chosen = [get_method(name) for name in [*names, "hdbscan", "spectral", "agglomerative"]]
others = [method.name for method in methods() if not method.needs_k and method not in chosen]
print("not shown:", ", ".join(others))

# %%
# One row a toy, one column a method. The features are scaled first, as the command line does it.

seconds = dict.fromkeys((method.name for method in chosen), 0.0)


def compare(toys):
    """Draw what every method makes of these toys, and add up the time it takes."""
    size = (1.57 * len(chosen), 1.52 * len(toys))
    figure, grid = plt.subplots(len(toys), len(chosen), figsize=size, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.03, h_pad=0.03, wspace=0, hspace=0)
    for axes, toy in zip(grid, toys, strict=True):
        X, y = load_toy(toy, 300, random_state=1, return_X_y=True)
        X = StandardScaler().fit_transform(X)
        for ax, method in zip(axes, chosen, strict=True):
            start = time.perf_counter()
            model = method.load()(random_state=0).fit(X)
            seconds[method.name] += time.perf_counter() - start
            draw(ax, X, y, model)
        axes[0].set_ylabel(toy.replace("_", " "))
    for ax, method in zip(grid[0], chosen, strict=True):
        ax.set_title(method.name, fontsize=10)


def draw(ax, X, y, model):
    """Points by cluster, the number of clusters and the index."""
    ax.scatter(*X.T, s=5, c=[cluster_color(label) for label in model.labels_], linewidths=0)
    index = round(adjusted_rand_index(y, model.labels_), 2) + 0.0  # no -0.00
    corner = {"transform": ax.transAxes, "fontsize": 8, "va": "bottom"}
    ax.text(0.97, 0.02, f"{index:.2f}", ha="right", **corner)
    ax.text(0.03, 0.02, f"K = {model.n_clusters_}", ha="left", color="0.4", **corner)
    ax.margins(0.08)
    low, high = ax.get_ylim()
    ax.set_ylim(low - 0.12 * (high - low), high)  # room for the numbers
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_color("0.8")


compare(toy_names()[:5])

# %%
# Clouds, so far. In ``noisy_blobs`` a tenth of the points is background, labelled -1; a method that
# gives every point to a cluster cannot reach an index of 1 there. Now curves, and a square without
# any structure, for which one cluster is the right answer. Methods that choose K by the silhouette
# or by the eigengap cannot give it: they start at two. What ``asterism`` believed of each toy is
# shown in :doc:`plot_default`.

compare(toy_names()[5:])

# %%
# What it cost, in milliseconds a data set. The first fit of a network also reads its weights from
# the disk.

for name, total in seconds.items():
    print(f"{name:16s} {1000 * total / len(toy_names()):6.0f} ms")
