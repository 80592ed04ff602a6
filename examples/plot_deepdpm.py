"""
Clusters that split and merge
=============================

:class:`~asterism.DeepDPM` does not try one number of clusters after the other. It begins somewhere,
splits a cluster where two are worth it, merges two where one does, and lets a network follow.
"""

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np

from asterism import DeepDPM
from asterism.metrics import adjusted_rand_index
from asterism.plotting import plot_clusters, plot_split_merge

# %%
# Fifteen Gaussians of different shape, as in the paper's own toy: means on a grid, 10,000 rows.

chance = np.random.default_rng(0)
grid = np.array([[x, y] for x in (-5, 0, 5) for y in (-5, -3, 0, 3, 5)], dtype=float)
shape = 0.5 * np.eye(2) + chance.uniform(-0.3, 0.2, (15, 2, 2))
truth = chance.integers(15, size=10_000)
X = grid[truth] + np.einsum("nij,nj->ni", shape[truth], chance.normal(size=(10_000, 2)))

model = DeepDPM(init_n_clusters=1, random_state=0).fit(X)
print(
    f"{model.n_clusters_} clusters after {len(model.split_merge_history_)} moves tried,",
    f"ARI {adjusted_rand_index(truth, model.labels_):.3f}",
)
figure, ax = plt.subplots(figsize=(6, 5.2), layout="constrained")
plot_clusters(X, model.labels_, projection="none", ax=ax)
plt.show()

# %%
# How it got there, from a single cluster: splits double the number until they no longer pay; every
# second round looks for clusters to merge. The lower panel has the log-ratio of the best move
# tried: above zero it is made.

plot_split_merge(model, n_true=15, figure=plt.figure(figsize=(7.4, 4.6), layout="constrained"))
plt.show()

# %%
# The other way round
# -------------------
# Beginning with fifty, clusters merge instead, and the answer is about the same.

many = DeepDPM(init_n_clusters=50, random_state=0).fit(X)
plot_split_merge(many, n_true=15, figure=plt.figure(figsize=(7.4, 4.6), layout="constrained"))
plt.show()
agreement = adjusted_rand_index(model.labels_, many.labels_)
print(f"{many.n_clusters_} clusters, ARI between the two {agreement:.3f}")

# %%
# The knob
# --------
# ``parsimony`` says what one more cluster must bring: that share of what clusters bring on the
# average. Gaussians come out the same up to 0.3. Skewed clouds do not: no number of Gaussians is
# quite right, and evidence alone, at nought, cuts them up.

corner = 8 * chance.integers(2, size=(2500, 2))
skewed = corner + np.exp(chance.normal(0, 0.6, (2500, 2)))
shares = [0, 0.05, 0.1, 0.2, 0.3, 0.5]
figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for rows, name, number in ((X[::4], "Gaussians", 15), (skewed, "skewed clouds", 4)):
    found = [
        DeepDPM(parsimony=share, epoch_steps=25, random_state=0).fit(rows).n_clusters_
        for share in shares
    ]
    (line,) = ax.plot(shares, found, "o-", label=name)
    ax.axhline(number, color=line.get_color(), linestyle=":")
ax.set(xlabel="parsimony", ylabel="clusters found", ylim=(0, None))
ax.legend(frameon=False)
plt.show()

# %%
# Every fit says how far each of its clusters is from being split: ``split_ratios_`` is the
# log-ratio of the best split that was not made, less what it would have to bring.

print(np.round(model.split_ratios_, 1))
