"""
A mixture in one forward pass
=============================

A :class:`~asterism.SetTransformerMixture` reads all points of a data set at once and writes down a
mixture of Gaussians. Nothing is optimised on the data. Here it meets data sets drawn from the prior
it was trained on, so that the true mixture, and its likelihood, are known.
"""

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.patches import Ellipse

from asterism import SetTransformerMixture
from asterism.metrics import adjusted_rand_index, oracle_log_likelihood
from asterism.plotting import cluster_color
from asterism.priors import GaussianMixturePrior

# %%
# Eight data sets, in one padded batch. ``truth`` holds the mixtures they came from.

prior = GaussianMixturePrior(n_clusters=4, n_points=(300, 300))
batch = prior.sample(8, torch.Generator().manual_seed(3))
datasets = [points.numpy() for points in batch.x]
print(len(batch), "data sets of", datasets[0].shape)


# %%
# One pass, and one pass followed by ten rounds of expectation maximisation that start from it. The
# data come from the prior, so they need no alignment: ``scaling="none"``.


def draw(ax, X, model, title):
    """Points by cluster, and ellipses of one and two standard deviations."""
    ax.scatter(*X.T, s=8, c=[cluster_color(k) for k in model.labels_], linewidths=0, alpha=0.6)
    for k, (mean, scale) in enumerate(zip(model.means_, model.scales_, strict=True)):
        for width in (2, 4):
            ax.add_patch(
                Ellipse(mean, *(width * scale), fill=False, color=cluster_color(k), linewidth=1.3)
            )
    ax.set(xlim=(-5, 5), ylim=(-5, 5), aspect="equal", xticks=[], yticks=[])
    ax.set_title(title, fontsize=10)


X, labels = datasets[0], batch.labels[0].numpy()
_, means, scales = (part[0].numpy() for part in batch.truth)
true_weights = batch.truth.log_weights[0].exp().numpy()
oracle = oracle_log_likelihood(X, labels, means, scales, true_weights)
figure, axes = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained")
for ax, name, parameters in [
    (axes[0], "one pass", {}),
    (axes[1], "one pass, then 10 rounds of EM", {"refine": "em", "n_em": 10}),
]:
    model = SetTransformerMixture(scaling="none", **parameters).fit(X)
    found = model.score(X)
    draw(ax, X, model, f"{name}\nlog-likelihood {found:.3f}, truth {oracle:.3f}")
    print(f"{name}: ARI {adjusted_rand_index(labels, model.labels_):.3f}")

# %%
# EM may end above the likelihood of the truth: it fits these very points, and the truth does not.

# %%
# Many data sets at once
# ----------------------
# ``fit_many`` sends padded batches through the network and returns one fitted estimator for each
# data set. Sizes and numbers of columns may differ.

models = SetTransformerMixture(scaling="none", refine="em").fit_many(datasets)
figure, axes = plt.subplots(2, 4, figsize=(11, 6), layout="constrained")
for ax, points, truth, model in zip(axes.flat, datasets, batch.labels, models, strict=True):
    draw(ax, points, model, f"ARI {adjusted_rand_index(truth.numpy(), model.labels_):.2f}")

# %%
# Clusters are drawn uniformly in a square, so now and then two of them overlap. No method could
# tell such a pair apart, and the index is below 1 for the true mixture as well.

indices = []
for points, truth, log_weights, centres in zip(
    datasets, batch.labels, *batch.truth[:2], strict=True
):
    distance = ((points[:, None] - centres.numpy()) ** 2).sum(axis=2) / prior.scale**2
    best = (log_weights.numpy() - distance / 2).argmax(axis=1)
    indices.append(adjusted_rand_index(truth.numpy(), best))
print("ARI of the true mixtures:", np.round(indices, 2))
