"""The covariance that clusters have in common, and coordinates in which it is round."""

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal, multivariate_t
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.preprocessing import StandardScaler

from asterism import AutoKMeans, DeepDPM
from asterism.functional import pooling
from asterism.functional.niw import NormalWishart, label_statistics
from asterism.functional.pooling import (
    MEAN_STRENGTHS,
    STRENGTHS,
    pool_covariance,
    turned,
    whitener,
)
from asterism.functional.widths import round_evidences
from conftest import LIGHT

QUICK = {**LIGHT["deepdpm"], "random_state": 0}


def alike(n_clusters=12, dim=6, n=900, seed=0):
    """Long clusters of one shape, and their covariance."""
    chance = np.random.default_rng(seed)
    root = chance.normal(size=(dim, dim)) * np.geomspace(1, 0.3, dim)
    labels = chance.integers(n_clusters, size=n)
    means = 5 * chance.normal(size=(n_clusters, dim)) @ root
    return means[labels] + chance.normal(size=(n, dim)) @ root, labels, root.T @ root


def pooled(X, **settings):
    rest = {"alpha": 10.0, **settings}
    return pool_covariance(X, len(X), 0.005 * X.var(axis=0), **rest)


# --- pooling ----------------------------------------------------------------------------------


def test_clusters_of_one_shape_are_found_with_their_covariance():
    X, labels, covariance = alike()
    found = pooled(X)
    assert adjusted_rand_score(labels, found.labels) > 0.95
    assert found.shape.strength >= 100
    white = whitener(covariance)
    np.testing.assert_allclose(white.T @ found.shape.covariance @ white, np.eye(6), atol=0.3)


def test_clusters_of_different_shapes_lend_each_other_little():
    chance = np.random.default_rng(0)
    roots = chance.normal(size=(4, 3, 3)) * np.array([1, 4, 0.3, 2])[:, None, None]
    labels = np.repeat(np.arange(4), 300)
    means = 25 * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    X = means[labels] + np.einsum("ni,nij->nj", chance.normal(size=(1200, 3)), roots[labels])
    assert pooled(X).shape.strength <= 5


@pytest.mark.parametrize("n", [1, 4, 300])
def test_one_cloud_is_one_cluster(n):
    X = np.random.default_rng(n).normal(size=(n, 3))
    found = pool_covariance(X, n, np.ones(3), alpha=10.0)
    assert found.labels.max() == 0
    assert (np.linalg.eigvalsh(found.shape.covariance) > 0).all()


def test_number_of_clusters_and_strength_may_be_limited():
    X, _, _ = alike()
    assert pooled(X, max_clusters=3).labels.max() < 3
    assert pooled(X, strengths=(7.0,)).shape.strength == 7


def test_evidence_is_that_of_the_prior_with_a_full_scale():
    """Of one row it is Student's t, whose scale is the pooled covariance's."""
    X, _, covariance = alike(n=40)
    white, dim, strength = whitener(covariance), 6, STRENGTHS[2]
    stats = label_statistics(torch.from_numpy(X), torch.arange(40), 40, "full")
    mean = torch.from_numpy(X.mean(axis=0) @ white)
    scale = torch.full((dim,), strength, dtype=torch.float64)
    prior = NormalWishart(mean, scale, 0.05, dim + 1 + strength)
    found = prior.log_evidence(turned(stats, torch.from_numpy(white))) + np.linalg.slogdet(white)[1]
    freedom = dim + 1 + strength - dim + 1
    shape = strength * covariance * (1 + 1 / 0.05) / freedom
    expected = multivariate_t(X.mean(axis=0), shape, df=freedom).logpdf(X)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-8)


def test_evidences_of_all_strengths_are_those_of_the_priors():
    X, labels, _ = alike()
    stats = label_statistics(torch.from_numpy(X), torch.from_numpy(labels), 12, "full")
    strengths, kappas = (torch.tensor(v, dtype=torch.float64) for v in (STRENGTHS, MEAN_STRENGTHS))
    found = round_evidences(stats, strengths, kappas)
    assert found.shape == (len(STRENGTHS), len(MEAN_STRENGTHS), 12)
    center = torch.zeros(6).double()
    for some, m in zip(found, STRENGTHS, strict=True):
        for evidence, kappa in zip(some, MEAN_STRENGTHS, strict=True):
            prior = NormalWishart(center, torch.full_like(center, m), kappa, 7 + m)
            torch.testing.assert_close(evidence, prior.log_evidence(stats))


def test_evidences_of_clusters_without_full_rank_are_those_of_the_prior():
    """One row, two equal rows, and fewer rows than columns, all far from the middle."""
    X = 1e3 * np.random.default_rng(0).normal(size=(6, 6))
    X[2] = X[1]
    labels = torch.tensor([0, 1, 1, 2, 2, 2])
    stats = label_statistics(torch.from_numpy(X), labels, 3, "full").times(0.3)
    found = round_evidences(
        stats, torch.tensor([5.0]).double(), torch.tensor([0.2], dtype=torch.float64)
    )
    prior = NormalWishart(torch.zeros(6).double(), torch.full((6,), 5.0).double(), 0.2, 12.0)
    torch.testing.assert_close(found[0, 0], prior.log_evidence(stats))


@pytest.mark.parametrize("kappa", MEAN_STRENGTHS[:-1])
def test_how_far_apart_clusters_lie_is_learnt(kappa):
    chance = np.random.default_rng(1)
    means = chance.normal(size=(20, 30)) / np.sqrt(kappa)
    labels = np.arange(20).repeat(40)
    found = pooled(means[labels] + chance.normal(size=(800, 30)))
    assert adjusted_rand_score(labels, found.labels) > 0.85  # of Ward, who begins a fit
    assert found.shape.mean_strength == kappa


def test_many_columns_tell_clusters_apart_that_hardly_differ_in_each():
    """Five deviations in twenty columns: means of any place would cost more than they earn."""
    chance = np.random.default_rng(102)
    means = 5 / np.sqrt(40) * chance.standard_normal((10, 20))
    labels = chance.integers(10, size=600)
    X = means[labels] + chance.standard_normal((600, 20))
    model = DeepDPM(n_components=None, **QUICK).fit(X)
    vague = DeepDPM(n_components=None, mean_strength=0.05, **QUICK).fit(X)
    assert model.mean_strength_ >= 0.5
    told = adjusted_rand_score(labels, model.labels_)
    assert told > adjusted_rand_score(labels, vague.labels_) + 0.2


def test_axes_along_which_clusters_do_not_differ_are_left_out():
    """Ten centres span nine axes of forty; along the others there is noise alone."""
    chance = np.random.default_rng(3)
    means = chance.standard_normal((10, 40)) * 5 / np.sqrt(80)
    labels = chance.choice(10, size=600, p=chance.dirichlet(np.full(10, 5.0)))
    X = means[labels] + chance.standard_normal((600, 40))
    model = DeepDPM(**QUICK).fit(X)
    assert 8 <= model.axes_.shape[1] < 32
    assert adjusted_rand_score(labels, model.labels_) > 0.6
    every = DeepDPM(n_components=32, **QUICK).fit(X)
    assert every.axes_.shape[1] == 32
    assert adjusted_rand_score(labels, every.labels_) < 0.3


@pytest.mark.parametrize("share", [0.0025, 0.05])
def test_a_flag_that_few_rows_have_hides_no_clusters(share):
    chance = np.random.default_rng(5)
    labels = chance.integers(5, size=400)
    X = (3 * chance.normal(size=(5, 6)))[labels] + chance.normal(size=(400, 6))
    flag = np.arange(400) < share * 400
    plain = DeepDPM(**QUICK).fit(X)
    flagged = DeepDPM(**QUICK).fit(np.c_[X[:, :2], flag, X[:, 2:]])
    assert adjusted_rand_score(labels, plain.labels_) > 0.9
    assert adjusted_rand_score(labels, flagged.labels_) > 0.9
    assert flagged.axes_[2].tolist() == [0] * 6
    assert (np.linalg.eigvalsh(flagged.covariances_) > 0).all()
    assert np.isfinite(flagged.score_samples(np.c_[X[:, :2], flag, X[:, 2:]])).all()


def test_a_flag_that_nearly_tells_a_cluster_hides_no_others():
    X, labels = make_blobs(400, 4, centers=3, random_state=0)
    flag = (labels == 0) ^ (np.random.default_rng(0).random(400) < 0.1)
    rows = np.c_[StandardScaler().fit_transform(X), 2.0 * flag - 1]
    read = {how: DeepDPM(n_components=how, **QUICK).fit(rows) for how in ("auto", None)}
    assert adjusted_rand_score(labels, read["auto"].labels_) > 0.99
    assert adjusted_rand_score(labels, read[None].labels_) < 0.9
    assert read["auto"].axes_.shape == (5, 4)


def test_a_table_of_flags_alone_is_read_as_it_is():
    X = np.random.default_rng(6).random((200, 4)) < 0.04
    model = DeepDPM(**QUICK).fit(X.astype(float))
    assert (np.abs(model.axes_).sum(axis=1) > 0).all()


# --- coordinates ------------------------------------------------------------------------------


def test_many_columns_are_clustered_along_their_leading_axes():
    X, y = load_digits(return_X_y=True)
    model = DeepDPM(random_state=0).fit(X)
    assert model.axes_.shape == (64, 32)
    assert model.means_.shape == (model.n_clusters_, 64)
    assert (np.linalg.eigvalsh(model.covariances_) > 0).all()
    told = AutoKMeans(10, random_state=0).fit(X)
    scores = [normalized_mutual_info_score(y, fit.labels_) for fit in (model, told)]
    assert scores[0] > scores[1] + 0.05
    for k in range(3):
        own = X[model.labels_ == k]
        np.testing.assert_allclose(model.means_[k], own.mean(axis=0), atol=1.0)


@pytest.mark.parametrize("n_components", [1, 3, None])
def test_columns_are_reduced_as_asked(n_components):
    X, y = make_blobs(400, 5, centers=3, random_state=1)
    model = DeepDPM(n_components=n_components, **QUICK).fit(X)
    assert model.axes_.shape == (5, n_components or 5)
    if n_components != 1:
        assert adjusted_rand_score(y, model.labels_) > 0.95
    again = DeepDPM(n_components=n_components, prior="data", **QUICK).fit(X)
    assert (again.axes_ is None) == (n_components is None)


def test_units_of_the_columns_hardly_matter():
    X, labels, _ = alike()
    found = [DeepDPM(**QUICK).fit(X * units).labels_ for units in (1.0, [1, 5, 1, 0.2, 1, 1])]
    assert adjusted_rand_score(*found) > 0.9
    assert adjusted_rand_score(labels, found[0]) > 0.95


@pytest.mark.parametrize("reduced", [False, True])
def test_score_is_a_density_of_the_rows(reduced):
    chance = np.random.default_rng(0)
    root = chance.normal(size=(8, 8))
    if reduced:  # noise of the same size all around three axes
        axes = np.linalg.qr(chance.normal(size=(8, 8)))[0]
        root = np.diag([3.0, 2.0, 2.0, *[0.5] * 5]) @ axes
    X = chance.normal(size=(3000, 8)) @ root + 5
    model = DeepDPM(n_components=3 if reduced else None, **QUICK).fit(X)
    assert model.n_clusters_ == 1
    expected = multivariate_normal(X.mean(axis=0), np.cov(X.T)).logpdf(X).mean()
    assert model.score(X) == pytest.approx(expected, abs=0.05)
    np.testing.assert_allclose(np.diag(model.covariances_[0]), X.var(axis=0), rtol=0.15)


def test_reduced_models_come_back_from_their_file(tmp_path):
    X, _ = load_digits(return_X_y=True)
    model = DeepDPM(**QUICK).fit(X[:600])
    model.save(tmp_path / "model")
    again = DeepDPM.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.score(X) == pytest.approx(model.score(X))


@pytest.mark.parametrize("more", ["constant", "dependent", "turned", "nearly turned"])
def test_columns_that_say_nothing_new_hide_nothing(more):
    X, y = make_blobs(400, 3, centers=4, cluster_std=0.5, random_state=3)
    chance = np.random.default_rng(0)
    turn = chance.normal(size=(3, 60))
    wide = {
        "constant": np.column_stack([X, np.full((400, 10), 0.1)]),
        "dependent": np.column_stack([X, X @ turn[:, :10]]),
        "turned": X @ turn,
        "nearly turned": X @ turn + 1e-6 * chance.normal(size=(400, 60)),
    }[more]
    assert adjusted_rand_score(y, DeepDPM(**QUICK).fit(wide).labels_) == 1


@pytest.mark.parametrize("shape", [(30, 200), (40, 30), (12, 3)])
def test_noise_in_many_columns_is_one_cluster(shape):
    for seed in range(3):
        X = np.random.default_rng(seed).normal(size=shape)
        assert DeepDPM(**QUICK).fit(X).n_clusters_ == 1


@pytest.mark.parametrize("scaling", ["none", "rows", "standard"])
def test_rows_that_are_all_equal_are_one_cluster(scaling):
    for X in (np.full((50, 3), 0.1), np.full((100, 5), np.pi * 1e9), np.ones((9, 40)) / 3):
        assert DeepDPM(scaling=scaling, **QUICK).fit(X).n_clusters_ == 1


def test_the_less_rows_count_for_the_fewer_clusters():
    X = np.random.default_rng(0).normal(size=(2000, 3))
    for counted in (2000, 100, 10, 1, 0.01):
        found = pool_covariance(X, counted, 0.005 * X.var(axis=0), alpha=10.0)
        assert found.labels.max() == 0


@pytest.mark.parametrize("settings", [{}, {"prior": "data"}], ids=str)
def test_rows_count_in_full_up_to_some_number(settings):
    X = np.random.default_rng(0).standard_normal((200, 3))

    def weight(coarsening):
        model = DeepDPM(epoch_steps=1, n_epochs=1, max_rounds=0, coarsening=coarsening, **settings)
        return model.fit(X).row_weight_

    assert [weight(c) for c in (None, 300, 200, 50)] == [1, 1, 1, 0.25]


@pytest.mark.parametrize("dim", [10, 20, 40])
def test_a_skewed_cloud_is_one_cluster_as_far_as_it_can_be_told(dim):
    for seed in range(3):
        X = np.exp(np.random.default_rng(seed).standard_normal((600, dim)) / 2)
        assert pooled(X).gain > 0 or dim == 40
        found = pooled(X, parsimony=0.2)
        assert found.labels.max() == found.gain == 0
        if dim == 10:
            assert DeepDPM(**QUICK).fit(X).n_clusters_ == 1


def test_parsimony_asks_more_of_further_clusters():
    X = load_digits().data / 16
    X = X - X.mean(axis=0)
    X = X @ np.linalg.svd(X, full_matrices=False)[2][:16].T
    plain, parsimonious = pooled(X), pooled(X, parsimony=0.2)
    assert parsimonious.labels.max() < plain.labels.max()
    assert 0 < parsimonious.gain < plain.gain
    np.testing.assert_array_equal(parsimonious.single.covariance, plain.single.covariance)


def test_a_quick_look_sees_less_of_the_same(monkeypatch):
    x = np.random.default_rng(0).standard_normal((400, 3)) + 20 * np.eye(3)[np.arange(400) % 3]
    looked, evidences = {False: [], True: []}, pooling._evidences

    def look(quick):
        def counting(W, stats, *rest):
            looked[quick].append(len(stats.n))
            return evidences(W, stats, *rest)

        monkeypatch.setattr(pooling, "_evidences", counting)
        return pool_covariance(x, 400, np.ones(3), alpha=1.0, quick=quick)

    thorough, quick = look(False), look(True)
    np.testing.assert_array_equal(quick.labels, thorough.labels)
    assert thorough.gain == quick.gain > 0
    assert len(looked[True]) < len(looked[False])


@pytest.mark.parametrize("coarsening", [4000, None])
def test_large_tables_are_pooled_through_a_sample_that_tells_no_more_than_it_is(coarsening):
    X, y = make_blobs(9000, 4, centers=7, random_state=2)
    model = DeepDPM(coarsening=coarsening, **QUICK).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.97
    assert model.split_merge_history_[0]["n_before"] <= 8
