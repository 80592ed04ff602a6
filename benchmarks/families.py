"""Three families of labelled data sets unlike anything the network was trained on.

    directions   x ~ von Mises-Fisher(μ_k, κ) on the sphere, as unit-norm embeddings of texts;
                 the μ_k share a common direction, as those of real embeddings do
    counts       π ~ Dirichlet(s θ_k),  x ~ Multinomial(length, π),  as words of documents; raw or
                 square-rooted; θ_k, the topics, are Dirichlet draws around one base distribution
    margins      u = Φ(z), z ~ N(0, R_k);  x_j = F⁻¹_kj(u_j) with gamma, beta or lognormal F_kj,
                 then the same smooth map of sines for all clusters

    family(sizes, chance) -> x (N, d),      draw(family, seed) -> x (N, d), labels (N,)

Every data set has 150-400 rows, K uniform on 1 … 12 and a difficulty of its own. One whose labels
nine nearest neighbours, given all the true labels, do not find again is thrown away: nobody could
label it. The prior of the network does much the same. As a reference, ``draw`` knows that prior as
one family more, with its own numbers of clusters and rows of noise, -1.

Mardia & Jupp, "Directional statistics", 2000; Minka, "Estimating a Dirichlet distribution", 2000;
Nelsen, "An introduction to copulas", 2006.
"""

from collections.abc import Callable

import numpy as np
from scipy.stats import beta, gamma, norm, vonmises_fisher
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from asterism.priors import TabularPrior

__all__ = ["FAMILIES", "PRIOR", "draw"]

PRIOR = "own prior"
ROWS, MOST_CLUSTERS, LEAST_ROWS = (150, 400), 12, 6
RECOVERABLE = 0.75

Family = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def directions(sizes: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    dim = log_uniform(8, 256, chance)
    common = unit(chance.standard_normal(dim)) * chance.uniform(0, 1.5)
    centers = unit(common + unit(chance.standard_normal((len(sizes), dim))))
    length = chance.uniform(0.25, 0.9)  # of the mean of a cluster, the usual estimate of κ
    concentration = length * (dim - length**2) / (1 - length**2)
    parts = [
        vonmises_fisher(center, concentration).rvs(int(size), random_state=chance)
        for center, size in zip(centers, sizes, strict=True)
    ]
    return np.concatenate(parts)


def counts(sizes: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    words = log_uniform(10, 200, chance)
    base = chance.dirichlet(np.full(words, chance.choice([0.5, 2.0, 10.0])))
    sharpness = np.exp(chance.uniform(np.log(3), np.log(300)))
    topics = chance.dirichlet(sharpness * base + 1e-2, len(sizes))
    burstiness = np.exp(chance.uniform(np.log(20), np.log(1000)))
    typical, spread = np.exp(chance.uniform(np.log(30), np.log(1000))), chance.uniform(0, 0.6)
    rows = []
    for topic in np.repeat(topics, sizes, axis=0):
        length = 5 + chance.poisson(typical * np.exp(spread * chance.standard_normal()))
        rows.append(chance.multinomial(length, chance.dirichlet(burstiness * topic + 1e-3)))
    x = np.array(rows, dtype=np.float64)
    return np.sqrt(x) if chance.random() < 0.5 else x


def margins(sizes: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    dim = log_uniform(2, 30, chance)
    kinds = chance.integers(3, size=dim)
    contrast = chance.uniform(0.5, 2.5)
    levels = contrast * chance.standard_normal((len(sizes), dim))
    freedom = dim + int(chance.integers(1, 20))
    parts = []
    for level, size in zip(levels, sizes, strict=True):
        mixed = chance.standard_normal((freedom, dim))
        z = chance.standard_normal((int(size), freedom)) @ mixed / np.linalg.norm(mixed, axis=0)
        u = np.clip(norm.cdf(z), 1e-6, 1 - 1e-6)
        parts.append(
            np.stack([quantile(kind, u[:, j], level[j]) for j, kind in enumerate(kinds)], axis=1)
        )
    x = StandardScaler().fit_transform(np.concatenate(parts))
    waves = chance.standard_normal((dim, dim)) / np.sqrt(dim) * chance.uniform(0.5, 1.5)
    bent = np.sin(x @ waves + chance.uniform(0, 2 * np.pi, dim))
    return x + chance.uniform(0, 0.8) * bent @ (chance.standard_normal((dim, dim)) / np.sqrt(dim))


def quantile(kind: int, u: np.ndarray, level: float) -> np.ndarray:
    """Quantiles of the margin of a cluster, which moves up and changes its shape with its level."""
    if kind == 0:
        return gamma.ppf(u, 4 * np.exp(0.6 * level))
    if kind == 1:
        return beta.ppf(u, 3 * np.exp(0.5 * level), 3 * np.exp(-0.5 * level))
    return np.exp(0.35 * (level + norm.ppf(u)))


FAMILIES: dict[str, Family] = {family.__name__: family for family in (directions, counts, margins)}


def draw(family: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """One data set, rows in random order."""
    if family == PRIOR:
        chance = np.random.default_rng([len(FAMILIES), seed])
        return TabularPrior().draw(int(chance.integers(*ROWS, endpoint=True)), chance)
    chance = np.random.default_rng([list(FAMILIES).index(family), seed])
    n, n_clusters = (
        int(chance.integers(*ROWS, endpoint=True)),
        int(chance.integers(1, MOST_CLUSTERS + 1)),
    )
    for _ in range(100):
        weights = chance.dirichlet(np.full(n_clusters, chance.choice([1.0, 3.0, 30.0])))
        sizes = LEAST_ROWS + chance.multinomial(n - LEAST_ROWS * n_clusters, weights)
        x, labels = FAMILIES[family](sizes, chance), np.repeat(np.arange(n_clusters), sizes)
        if n_clusters == 1 or neighbour_accuracy(x, labels) >= RECOVERABLE:
            break
    order = chance.permutation(n)
    return x[order], labels[order]


def neighbour_accuracy(x: np.ndarray, labels: np.ndarray, n_neighbors: int = 9) -> float:
    """Share of rows whose label is that of most of their nearest neighbours, itself left out."""
    rows = StandardScaler().fit_transform(x)
    nearest = NearestNeighbors(n_neighbors=n_neighbors).fit(rows).kneighbors(return_distance=False)
    votes = np.eye(labels.max() + 1)[labels[nearest]].sum(axis=1)
    return float((votes.argmax(axis=1) == labels).mean())


def log_uniform(low: int, high: int, chance: np.random.Generator) -> int:
    return int(np.exp(chance.uniform(np.log(low), np.log(high + 1))))


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
