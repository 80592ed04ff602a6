"""The variational bound against its definition, and what memoised inference promises."""

import math

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from asterism import MoVB
from asterism.exceptions import DataError
from asterism.functional.niw import COVARIANCES, NormalWishart, gather_statistics
from asterism.functional.variational import (
    expected_log_weights,
    log_sticks,
    pair_entropies,
    variational_bound,
)
from asterism.methods.nonparametric.births import GrowingMemo

ALPHA = 1.7


def prior(dim=2, covariance="full"):
    scale = torch.linspace(0.5, 1.0, dim).double()
    return NormalWishart(torch.zeros(dim).double(), scale, kappa=0.3, covariance=covariance)


def four(n=400, seed=0):
    return make_blobs(n, centers=4, cluster_std=0.5, center_box=(-8, 8), random_state=seed)


def memo(X, *, batches=3, covariance="full", most=50, k=1):
    parts = torch.from_numpy(X).chunk(batches)
    state = GrowingMemo(list(parts), prior(X.shape[1], covariance), ALPHA, 0, 5, most)
    chance = torch.Generator().manual_seed(0)
    state.start([torch.randint(k, (len(part),), generator=chance) for part in parts])
    return state


# --- the bound --------------------------------------------------------------------------------


def test_sticks_are_beta_integrals():
    n = torch.tensor([5.0, 2.5, 1.0]).double()
    chance = np.random.default_rng(0)
    after = np.array([3.5, 1.0, 0.0])
    v = chance.beta(1 + n.numpy(), ALPHA + after, size=(200_000, 3))
    log_pi = np.log(v) + np.c_[np.zeros(len(v)), np.log1p(-v).cumsum(axis=1)[:, :-1]]
    np.testing.assert_allclose(expected_log_weights(n, ALPHA), log_pi.mean(axis=0), atol=0.01)
    exact = sum(
        math.lgamma(1 + a)
        + math.lgamma(ALPHA + b)
        - math.lgamma(1 + a + ALPHA + b)
        - (math.lgamma(1) + math.lgamma(ALPHA) - math.lgamma(1 + ALPHA))
        for a, b in zip(n.tolist(), after.tolist(), strict=True)
    )
    assert log_sticks(n, ALPHA).item() == pytest.approx(exact)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_expected_log_density_is_the_mean_over_the_posterior(covariance):
    x = torch.randn(40, 3, generator=torch.Generator().manual_seed(1)).double()
    p = prior(3, covariance)
    stats = gather_statistics(x, torch.ones(40, 1), covariance)
    density, correction = p.expected(stats)
    many = gather_statistics(x, torch.ones(40, 1).expand(40, 20_000), covariance)
    drawn = p.draw(many, np.random.default_rng(0)).log_prob(x[:5])
    np.testing.assert_allclose(
        (density.log_prob(x[:5]) + correction).squeeze(1), drawn.mean(dim=1), atol=0.02
    )


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_no_other_responsibilities_raise_the_bound(covariance):
    X, _ = four(60)
    x = torch.from_numpy(X)
    state = memo(X, batches=1, covariance=covariance, k=4)
    for _ in range(60):
        state.lap()

    def bound(r):
        stats = gather_statistics(x, r, covariance)
        return float(variational_bound(stats, -torch.xlogy(r, r), state.prior, ALPHA))

    r = state.responsibilities(x)
    best = bound(r)
    assert best == pytest.approx(state.bound, abs=1e-3)
    chance = torch.Generator().manual_seed(3)
    for _ in range(20):
        moved = torch.softmax(
            r.clamp_min(1e-12).log() + 0.3 * torch.randn(r.shape, generator=chance), 1
        )
        assert bound(moved.double()) <= best + 1e-6


def test_bound_of_one_cluster_is_its_evidence_and_that_of_a_stick():
    x = torch.randn(8, 2, generator=torch.Generator().manual_seed(0)).double()
    stats = gather_statistics(x, torch.ones(8, 1), "full")
    alone = float(variational_bound(stats, torch.zeros(1).double(), prior(), ALPHA))
    # E v over Beta(1, α) to the power of the rows: all of them in the first piece of the stick.
    stick = sum(math.log((i + 1) / (i + 1 + ALPHA)) for i in range(8))
    assert alone == pytest.approx(float(prior().log_evidence(stats)) + stick)


def test_entropy_of_a_union_is_less():
    r = torch.softmax(torch.randn(30, 3, generator=torch.Generator().manual_seed(0)), 1).double()
    first, second = torch.tensor([0]), torch.tensor([2])
    single = -torch.xlogy(r, r).sum(dim=0)
    both = r[:, 0] + r[:, 2]
    union = pair_entropies(r, first, second)
    assert union.item() == pytest.approx(-(both * both.log()).sum().item())
    assert union.item() < single[0] + single[2]


# --- laps and moves ---------------------------------------------------------------------------


@pytest.mark.parametrize("batches", [1, 4])
def test_laps_and_moves_never_lower_the_bound(batches):
    X, y = four()
    state = memo(X, batches=batches)
    state.run(200, 1e-4, 2)
    bounds = np.array(state.bounds)
    assert (np.diff(bounds) > -1e-6 * abs(bounds[-1])).all()
    labels = state.responsibilities(torch.from_numpy(X)).argmax(dim=1)
    assert adjusted_rand_score(y, labels) > 0.95


def test_memory_of_batches_adds_up():
    X, _ = four()
    state = memo(X, batches=5)
    state.run(40, 1e-4, 2)
    r = state.responsibilities(torch.from_numpy(X))
    whole = gather_statistics(torch.from_numpy(X), r, "full")
    np.testing.assert_allclose(whole.n, state.stats.n, atol=0.05)
    assert float(state.stats.n.sum()) == pytest.approx(len(X))


@pytest.mark.parametrize("seed", range(4))
def test_moves_before_anything_has_settled_do_not_lower_the_bound(seed):
    X, _ = make_blobs(600, centers=6, cluster_std=1.0, center_box=(-7, 7), random_state=seed)
    state = memo(X, batches=6)
    state.lap()
    bounds, kinds = [state.bound], set()
    for _ in range(4):
        kinds |= {"birth"} if state.birth() else set()
        bounds.append(state.bound)
        assert float(state.stats.n.sum()) == pytest.approx(len(X), abs=1e-6)
        state.lap()
        bounds.append(state.bound)
        kinds |= {"merge"} if state.merge() else set()
        bounds.append(state.bound)
    assert (np.diff(bounds) > -1e-6).all()
    assert "birth" in kinds


def test_merges_mend_a_start_with_too_many():
    X, y = four()
    state = memo(X)
    state.start(
        [torch.from_numpy(y * 3 + np.arange(len(y)) % 3)[i] for i in torch.arange(400).chunk(3)]
    )
    assert state.n_clusters == 12
    for _ in range(15):
        state.lap()
        state.merge()
    assert state.n_clusters == 4


# --- the estimator ----------------------------------------------------------------------------


@pytest.mark.parametrize("covariance", [*COVARIANCES, "auto"])
@pytest.mark.parametrize("batch_size", [100, 10_000])
def test_clear_clusters_are_found(covariance, batch_size):
    X, y = four()
    model = MoVB(covariance=covariance, batch_size=batch_size, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    assert model.n_clusters_ == 4


def test_one_gaussian_is_one_cluster_and_units_do_not_matter():
    X = np.random.default_rng(0).normal(size=(500, 3))
    assert MoVB(random_state=0).fit(X).n_clusters_ == 1
    X, _ = four()
    one, other = MoVB(random_state=0).fit(X), MoVB(random_state=0).fit(1000 * X + 7)
    np.testing.assert_array_equal(one.labels_, other.labels_)


@pytest.mark.parametrize(("most", "found"), [(2, {2}), (3, {2, 3}), (4, {3, 4}), (6, {4})])
def test_number_of_clusters_is_capped_and_used(most, found):
    assert MoVB(max_clusters=most, random_state=0).fit(four()[0]).n_clusters_ in found
    with pytest.raises(DataError, match="init_n_clusters=9 is more than max_clusters"):
        MoVB(9, max_clusters=most).fit(four()[0])


def test_few_distinct_rows_are_told_apart():
    X = np.repeat(10 * np.eye(3), 100, axis=0)
    assert MoVB(random_state=0).fit(X).n_clusters_ == 3


def test_small_clusters_are_not_born():
    X, _ = make_blobs([1500] * 4, centers=four()[0][:4] * 3, cluster_std=0.4, random_state=0)
    chance = np.random.default_rng(0).standard_t(2, size=(800, 2))
    for smallest, rows in ((600, X), (40, chance)):
        model = MoVB(min_rows=smallest, random_state=0).fit(rows)
        assert np.bincount(model.labels_).min() >= 0.8 * smallest  # soft counts, hard labels
    assert MoVB(min_rows=600, random_state=0).fit(X).n_clusters_ >= 2


def test_unfinished_fit_warns():
    with pytest.warns(ConvergenceWarning, match="max_laps=1"):
        MoVB(max_laps=1, random_state=0).fit(four()[0])
