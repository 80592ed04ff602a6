"""The sampler against exact enumeration, and k-means with a price."""

import numpy as np
import pytest
import torch
from scipy.stats import wishart
from sklearn.cluster import DBSCAN
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from asterism import AutoKMeans, DPMeans, DPSampler
from asterism.exceptions import DataError
from asterism.functional.comparisons import by_appearance
from asterism.functional.niw import COVARIANCES, NormalWishart, gather_statistics
from asterism.methods.nonparametric.chain import Chain
from asterism.metrics import stability

ALPHA = 0.7


def prior(covariance="full"):
    center, scale = torch.ones(1).double(), torch.full((1,), 0.3).double()
    return NormalWishart(center, scale, kappa=0.2, covariance=covariance)


def every_partition(n):
    """All partitions of n rows, clusters numbered by first appearance."""
    grown = [()]
    for _ in range(n):
        grown = [(*c, k) for c in grown for k in range(max(c, default=-1) + 2)]
    return grown


def exact_posterior(x, p):
    scores = {}
    for partition in every_partition(len(x)):
        member = torch.nn.functional.one_hot(torch.tensor(partition)).double()
        stats = gather_statistics(x, member, p.covariance)
        log_p = torch.lgamma(stats.n) + p.log_evidence(stats)
        scores[partition] = float(log_p.sum() + len(stats.n) * np.log(ALPHA))
    values = np.exp(np.array(list(scores.values())) - max(scores.values()))
    return dict(zip(scores, values / values.sum(), strict=True))


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_chain_visits_partitions_as_often_as_their_posterior_says(covariance, monkeypatch):
    x = torch.tensor([[0.0], [0.3], [2.0], [2.2], [5.0]]).double()
    p = prior(covariance)
    exact = exact_posterior(x, p)
    chain = Chain(x, p, ALPHA, torch.zeros(5).long(), np.random.default_rng(0))
    # Halves are a function of the rows alone, so that each set of them need be searched only once.
    search, known = chain._odds, {}

    def remembered(rows):
        key = tuple(rows.tolist())
        if key not in known:
            known[key] = search(rows)
        return known[key]

    monkeypatch.setattr(chain, "_odds", remembered)
    visits = []
    for _ in range(2500):
        chain.sweep()
        chain.move()
        chain.move()
        visits.append(chain.labels.numpy())
    seen = dict.fromkeys(exact, 0.0)
    for partition in by_appearance(np.stack(visits)):
        seen[tuple(partition.tolist())] += 1 / len(visits)
    distance = sum(abs(seen[c] - exact[c]) for c in exact) / 2
    # A chain of independent draws of this length would have 0.03.
    assert distance < 0.08
    wrong = 0.5 * sum(abs(1 / len(exact) - probability) for probability in exact.values())
    assert wrong > 0.4


def test_posterior_tells_probabilities_up_to_a_constant():
    x = torch.tensor([[0.0], [0.3], [2.0], [5.0]]).double()
    exact = exact_posterior(x, prior())
    scores = {
        c: Chain(x, prior(), ALPHA, torch.tensor(c), np.random.default_rng(0)).log_posterior
        for c in exact
    }
    constants = [np.log(exact[c]) - scores[c] for c in exact]
    np.testing.assert_allclose(constants, constants[0])


def test_covariances_are_drawn_as_scipy_draws_them():
    chance = np.random.default_rng(0)
    x = torch.from_numpy(chance.normal(size=(7, 3)) @ [[1, 0, 0], [0.8, 0.5, 0], [0.3, 0, 2]])
    p = NormalWishart(torch.zeros(3).double(), torch.ones(3).double(), kappa=0.5)
    stats = gather_statistics(x, torch.ones(7, 4000).double(), "full")  # 4000 times one cluster
    drawn = p.draw(stats, chance)
    precision = drawn.whitener.mT @ drawn.whitener
    psi = p._psi(stats.at(0)).numpy()
    expected = wishart(p.nu + 7, np.linalg.inv(psi))
    scale = np.sqrt(np.outer(np.diag(expected.mean()), np.diag(expected.mean())))
    np.testing.assert_allclose(precision.mean(dim=0), expected.mean(), atol=0.03 * scale.max())
    np.testing.assert_allclose(precision.var(dim=0), expected.var(), rtol=0.15)
    center = stats.total[0] / (p.kappa + 7)
    covariance = psi / ((p.kappa + 7) * (p.nu + 7 - 4))
    np.testing.assert_allclose(drawn.mean.mean(dim=0), center, atol=0.03)
    np.testing.assert_allclose(np.cov(drawn.mean.T), covariance, atol=0.08 * covariance.max())


@pytest.mark.parametrize("covariance", ["diagonal", "isotropic"])
def test_variances_are_drawn_about_their_posterior_mean(covariance):
    chance = np.random.default_rng(0)
    x = torch.from_numpy(chance.normal(size=(12, 2)) * 2 + 3)
    p = NormalWishart(torch.zeros(2).double(), torch.ones(2).double(), covariance=covariance)
    stats = gather_statistics(x, torch.ones(12, 4000).double(), covariance)
    precision = p.draw(stats, chance).whitener.square().mean(dim=0)
    width = 1 if covariance == "diagonal" else 2
    expected = ((p.nu - 1) + 12 * width) / p._psi(stats.at(0))
    np.testing.assert_allclose(precision, expected.expand(2), rtol=0.05)


def test_sampler_finds_clusters_from_one_and_from_too_many():
    X, y = make_blobs(300, 3, centers=5, cluster_std=0.5, random_state=1)
    for start in (1, 20):
        model = DPSampler(10, n_burn=60, init_n_clusters=start, random_state=0).fit(X)
        assert model.k_posterior_.argmax() == 5
        assert adjusted_rand_score(y, model.labels_) > 0.99
        assert set(model.acceptance_) == {"split", "merge"}


def test_sampler_scores_in_the_users_units():
    X, _ = make_blobs(200, 2, centers=3, cluster_std=0.5, random_state=1)
    one, other = (DPSampler(5, n_burn=20, random_state=0).fit(part) for part in (X, 10 * X))
    assert one.score(X) == pytest.approx(other.score(10 * X) + 2 * np.log(10), abs=1e-6)


def test_price_of_a_cluster_sets_their_number():
    X, y = make_blobs(300, 2, centers=5, cluster_std=0.4, random_state=3)
    found = [DPMeans(penalty).fit(X).n_clusters_ for penalty in (0.01, 0.2, 20.0)]
    assert found[0] > found[1] > found[2] == 1
    assert adjusted_rand_score(y, DPMeans(0.2).fit(X).labels_) > 0.95
    assert DPMeans(0.01, max_clusters=3).fit(X).n_clusters_ <= 3


def test_price_depends_on_no_order_of_the_rows():
    X, _ = make_blobs(200, 2, centers=4, random_state=0)
    order = np.random.default_rng(0).permutation(200)
    one, other = DPMeans().fit(X).labels_, DPMeans().fit(X[order]).labels_
    assert adjusted_rand_score(one[order], other) == 1


def test_stability_counts_clusters_and_compares_fits():
    X, _ = make_blobs(120, 2, centers=3, cluster_std=0.3, random_state=0)
    found = stability(AutoKMeans(3, n_init=1), X, n_fits=3)
    assert found.counts == {3: 1.0}
    assert found.labels.shape == (3, 120)
    assert 0 < found.agreement <= 1
    wavering = stability(AutoKMeans(9, n_init=1), X, n_fits=3)
    assert wavering.agreement < found.agreement


def test_stability_refuses_what_it_cannot_compare():
    X = np.zeros((4, 1))
    with pytest.raises(DataError, match="at least two"):
        stability(DPMeans(), X, n_fits=1)
    with pytest.raises(DataError, match="no parameter random_state"):
        stability(DBSCAN(), X)


def test_price_warns_where_rounds_run_out():
    X = np.random.default_rng(0).normal(size=(300, 2))
    with pytest.warns(ConvergenceWarning, match="max_iter=20"):
        model = DPMeans(1e-4, max_iter=20).fit(X)
    apart = ((X[:, None] - model.cluster_centers_) ** 2).sum(axis=2).min(axis=1)
    assert model.inertia_ == pytest.approx(apart.sum())
