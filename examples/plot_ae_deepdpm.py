"""
Features that learn from clusters
=================================

:class:`~asterism.AEDeepDPM` trains an autoencoder, clusters its codes without being told how many
clusters there are, draws the codes to what was found, and clusters again.
"""

# sphinx_gallery_thumbnail_number = 1
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from asterism import AEDeepDPM, DeepDPM
from asterism.metrics import clustering_scores
from asterism.plotting import plot_clusters, plot_history

# %%
# The 1797 small digits of scikit-learn, 8 × 8 pixels. A network for them may be small.

X, y = load_digits(return_X_y=True)
settings = {"hidden_dims": (128, 128), "latent_dim": 8, "max_steps": 1500, "tol": 0}
model = AEDeepDPM(**settings, n_alternations=3, alternation_steps=300, random_state=0).fit(X)

for turn, labels in enumerate(model.labels_path_):
    scores = clustering_scores(y, labels)
    print(f"turn {turn}: {labels.max() + 1} clusters, NMI {scores['nmi']:.3f}")

# %%
# Codes before and after, on their two leading axes. The first are those of the two-step method: the
# same autoencoder, clustered once. Afterwards clusters are tighter, for better or worse: what was
# taken for a cluster is made one.

first = AEDeepDPM(**settings, n_alternations=0, random_state=0).fit(X)
figure, axes = plt.subplots(1, 2, figsize=(12, 4.8), layout="constrained")
for ax, one, title in zip(axes, (first, model), ("two steps", "end to end"), strict=True):
    flat = PCA(2).fit_transform(one.transform(X))
    plot_clusters(flat, one.labels_, projection="none", ax=ax)
    ax.set_title(f"{title}: {one.n_clusters_} clusters")
plt.show()

# %%
# The loss over the steps: it jumps where a turn begins, as the distance to the centres is added.

figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
plot_history(model.history_, ax=ax)
plt.show()

# %%
# An encoder of one's own
# -----------------------
# Features trained elsewhere are handed over as they are, here principal axes.

pca = PCA(10).fit(X)
given = DeepDPM(encoder=pca, random_state=0).fit(X)
scores = clustering_scores(y, given.labels_)
print(f"on ten principal axes: {given.n_clusters_} clusters, NMI {scores['nmi']:.3f}")
print("sizes", np.bincount(given.labels_))
