"""
Many plausible partitions
=========================

Two clusters that touch may be one. :class:`~asterism.NCP` answers with a distribution over
partitions, from which samples are drawn with their exact probabilities.
"""

# sphinx_gallery_thumbnail_number = 1
import matplotlib.pyplot as plt
import numpy as np

from asterism import ACP, NCP
from asterism.plotting import (
    plot_coassignment,
    plot_confidence,
    plot_k_posterior,
    plot_posterior_samples,
)

# %%
# A cluster far from the others, and two that overlap, at the scale of the training data: clusters
# have a standard deviation of one.

rng = np.random.default_rng(0)
X = np.concatenate(
    [rng.normal(centre, 1.0, size=(30, 2)) for centre in [(-9, 3), (3.0, -2), (6.2, -2)]]
)
model = NCP(scaling="none", random_state=0).fit(X)
print("probability of each number of clusters:", np.round(model.k_posterior_, 2))

# %%
# Distinct samples, the most frequent first. Points that are elsewhere than in the answer have a
# ring.

figure = plt.figure(figsize=(8.1, 5.5), layout="constrained")
plot_posterior_samples(
    X, model.partitions_, model.log_probabilities_, labels=model.labels_, figure=figure
)
plt.show()

# %%
# The share of samples in which two points are together, ordered by cluster, beside how surely each
# point belongs where it was put.

figure, axes = plt.subplots(1, 3, figsize=(14, 4.2), layout="constrained")
plot_coassignment(model, ax=axes[0])
plot_confidence(model.confidence_, model.labels_, ax=axes[1])
plot_k_posterior(model.k_posterior_, ax=axes[2])
plt.show()

# %%
# Partitions near the answer that together hold nine tenths of the posterior, and how far they
# reach.

ball = model.credible_set(0.9)
print(f"{len(ball.partitions)} partitions, at most {ball.radius:.2f} bits from the answer")

# %%
# A whole cluster at a time
# -------------------------
# :class:`~asterism.ACP` needs about as many passes as there are clusters. Its probabilities are
# estimates, and its latent variable has to stand for all that the points of a cluster share.

other = ACP(scaling="none", random_state=0).fit(X)
print(
    f"{other.n_clusters_} clusters in {other.n_passes_} passes;",
    "probability of each number:",
    np.round(other.k_posterior_, 2),
)
