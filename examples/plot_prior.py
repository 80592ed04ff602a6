"""
What the default network was trained on
=======================================

The network behind :class:`~asterism.Asterism` has never seen a real table. It was trained on draws
from :class:`~asterism.priors.TabularPrior`: data sets whose number of rows, columns and clusters,
overlap, shapes, imbalance, noise and kinds of columns are drawn anew every time. What it takes for
a cluster is what these pictures take for one.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

from asterism.plotting import cluster_color
from asterism.priors import TabularPrior

# %%
# Forty-eight draws, on their first two principal axes (a single column is spread out at random).
# Points that belong to no cluster are grey. Clusters that overlap here may be apart in the other
# columns; draws whose clusters neither a nearest-neighbour rule with the true labels nor round
# Gaussians around the true means find again were thrown away.

prior = TabularPrior()
chance = np.random.default_rng(2)
figure, grid = plt.subplots(8, 6, figsize=(10, 13), layout="constrained")
for ax in grid.flat:
    n = int(np.exp(chance.uniform(np.log(80), np.log(500))))
    X, labels = prior.draw(n, chance)
    if X.shape[1] > 1:
        points = PCA(2).fit_transform(X)
    else:
        points = np.column_stack([X, chance.uniform(-1, 1, n)])
    ax.scatter(*points.T, s=3, c=[cluster_color(label) for label in labels], linewidths=0)
    ax.set_title(f"K = {labels.max() + 1}, {n} x {X.shape[1]}", fontsize=8)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_color("0.85")

# %%
# How hard a data set is does not depend on how many columns or clusters it has: the separation of
# neighbouring clusters is drawn first. The share of rows whose nine nearest neighbours vote for
# another cluster, a measure of overlap, has about the same distribution for few and many columns.

from sklearn.neighbors import KNeighborsClassifier


def confusion(X, labels):
    """Share of the rows that nine neighbours would put elsewhere."""
    known = labels >= 0
    model = KNeighborsClassifier(10).fit(X[known], labels[known])
    return np.mean(model.predict(X[known]) != labels[known])


by_width = {"1 column": [], "2 to 9": [], "10 and more": []}
for _ in range(240):
    X, labels = prior.draw(200, chance)
    if labels.max() > 0:
        width = X.shape[1]
        name = "1 column" if width == 1 else "2 to 9" if width < 10 else "10 and more"
        by_width[name].append(confusion(X, labels))

figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.boxplot(list(by_width.values()), orientation="horizontal", tick_labels=list(by_width))
ax.set(xlabel="share of rows that their neighbours contradict", ylabel="columns of the draw")
