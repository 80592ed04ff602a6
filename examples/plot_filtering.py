"""
Clusters peeled off one by one
==============================

:class:`~asterism.DAC` asks its network for one cluster, takes its points away, and asks again about
the rest. The network has never seen more than four clusters at once; that does not matter, since it
only ever looks for one.
"""

# sphinx_gallery_thumbnail_number = 1
import matplotlib.pyplot as plt
import torch
from sklearn.datasets import make_blobs

from asterism import DAC, RecurrentMixture
from asterism.metrics import adjusted_rand_index
from asterism.plotting import plot_clusters, plot_filtering
from asterism.priors import ClusterMixturePrior

# %%
# A data set of the kind the network was trained on, but for the number of clusters.

prior = ClusterMixturePrior(max_clusters=9, n_points=(900, 900), partition="uniform")
batch = prior.sample(20, torch.Generator().manual_seed(0))
number = next(b for b, labels in enumerate(batch.labels) if len(labels.unique()) == 8)
X, truth = batch.x[number].numpy(), batch.labels[number].numpy()
model = DAC(scaling="none").fit(X)
print(
    f"{model.n_clusters_} clusters in {model.n_passes_} passes,",
    f"ARI {adjusted_rand_index(truth, model.labels_):.3f}",
)

# %%
# Every panel is one pass: the deeper the colour, the surer the network is that the point belongs to
# the cluster it has chosen. Points with a dark outline are taken, and have left in the next panel.

figure = plt.figure(figsize=(10.7, 8.1), layout="constrained")
plot_filtering(X, model.filtering_path_, figure=figure)
plt.show()

# %%
# The baseline
# ------------
# A network that has to write all clusters into one answer was trained on the same data, and stops
# at the numbers it knows.

recurrent = RecurrentMixture(scaling="none").fit(X)
figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
for ax, name, found in [(axes[0], "DAC", model), (axes[1], "recurrent", recurrent)]:
    plot_clusters(X, found.labels_, projection="none", ax=ax)
    ari = adjusted_rand_index(truth, found.labels_)
    ax.set_title(f"{name}: {found.n_clusters_} clusters, ARI {ari:.2f}")
plt.show()

# %%
# Data of your own
# ----------------
# Rows from elsewhere are first moved to the place and scale of the training data. ``"global"``
# makes the whole table as wide as those of training, and takes a single cluster for many;
# ``"local"`` does so with the clusters, by a guess that takes clusters that touch for one. The
# default, ``"auto"``, tries several scales, and keeps the one whose clusters Gaussians describe
# best.

one = torch.randn(400, 2, generator=torch.Generator().manual_seed(1)).numpy()
five, _ = make_blobs(400, centers=5, random_state=1)
for name, rows in {"one Gaussian": one, "five that touch": five}.items():
    for scaling in ("global", "local", "auto"):
        found = DAC(scaling=scaling).fit(rows)
        print(f"{name}, scaling={scaling!r}: {found.n_clusters_} clusters")
