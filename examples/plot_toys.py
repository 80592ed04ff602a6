"""
Methods side by side on toys
============================

Every method that needs no number of clusters, on every toy data set. The number in a corner is the
adjusted Rand index against the labels the toy was drawn with, and K the number of clusters found.

No method wins everywhere, and the picture shows why. The mixtures, k-means and Ward's agglomeration
look for round or elliptic clouds, and cover a curve with many of them. HDBSCAN follows curves; so
does spectral clustering once K is right, which is the hard part. The shipped Set Transformer knows
mixtures of four round Gaussians and nothing else: its column shows what such a network does with
data sets unlike those it was trained on. On the last row there is nothing to find, and one cluster
is the right answer; methods that choose K by the silhouette cannot give it, since a silhouette
needs two clusters.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import StandardScaler

from asterism.datasets import load_toy, toy_names
from asterism.methods.registry import methods
from asterism.metrics import adjusted_rand_index
from asterism.plotting import cluster_color

# %%
# The registry says which methods find the number of clusters themselves. Their parameters are the
# defaults.

chosen = [method for method in methods() if not method.needs_k]
print(", ".join(method.name for method in chosen))

# %%
# One row a toy, one column a method. The columns are scaled first, as the command line does it.

toys = toy_names()
figure, grid = plt.subplots(len(toys), len(chosen), figsize=(11, 15), layout="constrained")
figure.get_layout_engine().set(w_pad=0.03, h_pad=0.03, wspace=0, hspace=0)
seconds = dict.fromkeys((method.name for method in chosen), 0.0)
for axes, toy in zip(grid, toys, strict=True):
    X, y = load_toy(toy, 300, random_state=1, return_X_y=True)
    X = StandardScaler().fit_transform(X)
    for ax, method in zip(axes, chosen, strict=True):
        start = time.perf_counter()
        model = method.load()(random_state=0).fit(X)
        seconds[method.name] += time.perf_counter() - start
        colors = [cluster_color(label) for label in model.labels_]
        ax.scatter(*X.T, s=5, c=colors, linewidths=0)
        corner = {"transform": ax.transAxes, "fontsize": 8, "va": "bottom"}
        index = round(adjusted_rand_index(y, model.labels_), 2) + 0.0  # no -0.00
        ax.text(0.97, 0.02, f"{index:.2f}", ha="right", **corner)
        ax.text(0.03, 0.02, f"K = {model.n_clusters_}", ha="left", color="0.4", **corner)
        low, high = X.min(axis=0), X.max(axis=0)
        margin = 0.08 * (high - low)
        ax.set(xlim=(low[0] - margin[0], high[0] + margin[0]), xticks=[], yticks=[])
        ax.set_ylim(low[1] - 3 * margin[1], high[1] + margin[1])
        ax.spines[:].set_color("0.8")
    axes[0].set_ylabel(toy.replace("_", " "))
for ax, method in zip(grid[0], chosen, strict=True):
    ax.set_title(method.name, fontsize=10)

# %%
# What it cost, in milliseconds a data set. The first fit of the Set Transformer also reads its
# weights from the disk.

for name, total in seconds.items():
    print(f"{name:16s} {1000 * total / len(toys):6.0f} ms")

# %%
# Labels of one toy are a convention too: in ``noisy_blobs`` a tenth of the points is background,
# labelled -1. A method that fills its noise, as HDBSCAN does by default, cannot reach an index of 1
# there.

X, y = load_toy("noisy_blobs", 300, random_state=1, return_X_y=True)
print(f"{np.mean(y == -1):.0%} of the points are background")
