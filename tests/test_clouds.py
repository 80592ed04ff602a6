"""Clusters drawn again as Gaussian clouds, where the network agrees."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, multivariate_t
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score

from asterism import Asterism
from asterism.functional.gaussians import fit_round, gaussian_log_prob, round_log_prob
from asterism.functional.students import fit_tailed, tailed_log_prob
from asterism.functional.tails import find_tails
from asterism.methods.asterism.clouds import Clouds, draw_clouds


def two_clouds(n=2000, dim=24, apart=3.0, seed=0):
    """Two round clouds whose border a few rows do not show."""
    chance = np.random.default_rng(seed)
    labels = chance.integers(2, size=n)
    x = chance.standard_normal((n, dim))
    x += apart / np.sqrt(dim) * labels[:, None]  # along no column, so that none grows long
    return x, labels


def two_peaks(n=1000, dim=32, apart=1.0, seed=0):
    """Two clouds that are dense at the centre and reach far: a direction and a normal radius."""
    chance = np.random.default_rng(seed)
    labels = chance.integers(2, size=n)
    x = chance.standard_normal((n, dim))
    x *= chance.standard_normal((n, 1)) / np.linalg.norm(x, axis=1, keepdims=True)
    x[:, 0] += apart * labels
    return x, labels


def always(labels):
    return 1.0


def test_densities_are_those_of_scipy():
    chance = np.random.default_rng(0)
    x, means = chance.standard_normal((5, 3)), chance.standard_normal((2, 3))
    covariance = np.cov(chance.standard_normal((3, 20)))
    factor = np.linalg.cholesky(np.linalg.inv(covariance))
    for found, cov in (
        (gaussian_log_prob(x, means, np.stack([factor] * 2)), covariance),
        (round_log_prob(x, means, np.full(2, 0.5)), 4 * np.eye(3)),
    ):
        expected = [multivariate_normal(mean, cov).logpdf(x) for mean in means]
        np.testing.assert_allclose(found, np.transpose(expected))


def test_round_clouds_are_those_of_k_means():
    from sklearn.cluster import KMeans

    x, _ = make_blobs(3000, centers=[[0, 0, 0], [3, 0, 0], [0, 3, 0]], random_state=0)
    start = np.eye(3)
    means, deviation = fit_round(np.float32(x) + 50, start + 50, soft=False, floor=1e-6)
    model = KMeans(3, init=start, n_init=1, tol=0).fit(x)
    np.testing.assert_allclose(means - 50, model.cluster_centers_, atol=0.02)
    assert deviation == pytest.approx(np.sqrt(model.inertia_ / x.size), rel=1e-3)


def test_soft_round_clouds_are_not_pushed_apart():
    """Where clouds overlap, k-means puts its centres too far out and its deviation too low."""
    chance = np.random.default_rng(0)
    truth = np.repeat([-1.0, 1.0], 4000)
    x = chance.standard_normal((8000, 1)) + truth[:, None]
    means, deviation = fit_round(x, np.array([[-0.5], [0.5]]), soft=True, floor=1e-6, n_steps=500)
    np.testing.assert_allclose(np.sort(means.ravel()), [-1, 1], atol=0.15)
    assert deviation == pytest.approx(1, abs=0.08)
    means, deviation = fit_round(x, np.array([[-0.5], [0.5]]), soft=False, floor=1e-6)
    assert np.abs(means).min() > 1.1
    assert deviation < 0.9


@pytest.mark.parametrize("soft", [True, False])
def test_round_clouds_of_equal_rows(soft):
    flat, least = fit_round(np.zeros((9, 2)), np.zeros((2, 2)), soft=soft, floor=0.25)
    assert least == 0.5
    assert np.isfinite(flat).all()


def test_a_cluster_told_by_one_of_many_columns_is_kept():
    """Soft shares drift to any long axis: here one as good as forty others."""
    truth = np.arange(400) % 2
    x = np.random.default_rng(0).standard_normal((400, 40))
    x[:, 0] += 8 * truth
    x /= x.std(axis=0)
    clouds = draw_clouds(x, x, truth, lambda labels: 0.6 * adjusted_rand_score(truth, labels))
    assert adjusted_rand_score(truth, clouds.responsibilities(x).argmax(axis=1)) > 0.9


def test_densities_with_tails_are_those_of_scipy():
    chance = np.random.default_rng(0)
    x, means = chance.standard_normal((6, 4)) + 90, chance.standard_normal((3, 4)) + 90
    factors = np.array([0.5, 1.0, 4.0])
    expected = [
        multivariate_t(mean, np.eye(4) / factor**2, df=2.5).logpdf(x)
        for mean, factor in zip(means, factors, strict=True)
    ]
    found = tailed_log_prob(x, means, factors, 2.5)
    np.testing.assert_allclose(found, np.transpose(expected))


def test_tails_are_as_heavy_as_the_rows_say():
    chance = np.random.default_rng(0)
    truth = np.arange(4000) % 2
    for freedom, low, high in ((1.5, 1.0, 2.2), (6.0, 4.0, 8.5), (np.inf, 30.0, 64.0)):
        scale = (
            np.sqrt(chance.chisquare(freedom, 4000) / freedom) if freedom < 99 else np.ones(4000)
        )
        x = chance.standard_normal((4000, 3)) / scale[:, None] + 12 * truth[:, None]
        means, found, nu = fit_tailed(x, np.array([[-2.0] * 3, [15.0] * 3]), floor=1e-6)
        np.testing.assert_allclose(means, [[0] * 3, [12] * 3], atol=0.2)
        assert found == pytest.approx(1, abs=0.1)
        assert low <= nu <= high


def test_clouds_with_tails_find_peaks_that_k_means_does_not():
    """From labels of which a third are wrong, as good as the true centres."""
    x, truth = two_peaks(apart=0.2)
    begun = np.where(np.random.default_rng(1).random(200) < 0.35, 1 - truth[:200], truth[:200])
    clouds = draw_clouds(x, x[:200], begun, always)
    assert clouds.freedom is not None
    means = np.stack([x[:200][begun == k].mean(axis=0) for k in (0, 1)])
    k_means, _ = fit_round(x, means, soft=False, floor=1e-6)

    def agreement(centers):
        distance = np.linalg.norm(x[:, None] - centers, axis=-1)
        return adjusted_rand_score(truth, distance.argmin(axis=1))

    assert agreement(clouds.means) > agreement(np.eye(2, 32, k=-1) * 0.2) - 0.02
    assert agreement(k_means) < agreement(clouds.means) - 0.2


def test_columns_are_let_out_for_clouds_with_tails(tmp_path):
    x, truth = two_peaks()
    model = Asterism(2, random_state=0).fit(x)
    assert model.cloud_tails_.shape == (4, 32)
    assert adjusted_rand_score(truth, model.labels_) > 0.8
    model.save(tmp_path / "model")
    again = Asterism.load(tmp_path / "model")
    np.testing.assert_allclose(again.predict_proba(x), model.predict_proba(x), atol=1e-6)
    assert Asterism(2, tails="keep", random_state=0).fit(x).cloud_tails_ is None


def test_models_saved_before_clouds_had_tails_still_predict():
    x, _ = two_clouds(600, 8, 4.0)
    model = Asterism(2, random_state=0).fit(x)
    expected = model.predict_proba(x)
    assert model.cloud_freedom_ is None
    del model.cloud_freedom_, model.cloud_tails_
    np.testing.assert_array_equal(model.predict_proba(x), expected)


def test_a_few_cells_far_out_do_not_hide_clouds():
    chance = np.random.default_rng(0)
    truth = np.arange(2000) % 2
    x = 0.02 * chance.standard_normal((2000, 4)) + truth[:, None]
    x[chance.choice(2000, 8, replace=False), chance.integers(4, size=8)] = 1e4
    x -= x.mean(axis=0)
    tails = find_tails(x)
    clouds = draw_clouds(tails.pull(x), tails.pull(x), truth, always, tails)
    assert clouds.tails is not None
    assert 1 / clouds.factors[0] < 0.1
    assert np.isfinite(clouds.responsibilities(np.full((1, 4), 1e30))).all()


def test_all_rows_draw_the_border_better_than_a_few():
    x, truth = two_clouds()
    few = truth[:100].copy()
    few[np.random.default_rng(1).choice(100, 15, replace=False)] ^= 1
    clouds = draw_clouds(x, x[:100], few, always)
    assert clouds.factors.shape == (2,)
    begun = np.stack([x[:100][few == k].mean(axis=0) for k in (0, 1)])
    nearest = np.linalg.norm(x[:, None] - begun, axis=-1).argmin(axis=1)
    drawn = clouds.responsibilities(x).argmax(axis=1)
    assert adjusted_rand_score(truth, drawn) > adjusted_rand_score(truth, nearest) + 0.05


def test_clouds_of_different_size_have_covariances_of_their_own():
    x, truth = make_blobs(
        [300, 300], centers=[[0, 0], [4, 0]], cluster_std=[0.3, 2.0], random_state=0
    )
    clouds = draw_clouds(x, x, truth, always)
    assert clouds.factors.shape == (2, 2, 2)
    assert np.linalg.det(clouds.factors[0]) > 5 * np.linalg.det(clouds.factors[1])
    np.testing.assert_allclose(clouds.responsibilities(x).sum(axis=1), 1)


def test_the_criterion_is_that_of_scikit_learn():
    from sklearn.mixture import GaussianMixture

    x, _ = make_blobs(200, centers=3, random_state=0)
    model = GaussianMixture(3, random_state=0).fit(x)
    clouds = Clouds(np.log(model.weights_), model.means_, model.precisions_cholesky_)
    assert clouds.criterion(x) == pytest.approx(model.bic(x))


def test_clouds_that_the_network_does_not_know_again_are_refused():
    x, truth = make_moons(400, noise=0.05, random_state=0)
    assert draw_clouds(x, x, truth, lambda labels: adjusted_rand_score(truth, labels)) is None
    assert draw_clouds(x, x, np.zeros(400, dtype=int), always) is None


@pytest.mark.parametrize("dim", [1, 3, 60])
def test_flat_and_repeated_rows_do_no_harm(dim):
    x = np.repeat(np.arange(8.0) // 4, 30)[:, None] * np.ones(dim)
    x[:, 1:] = 0.0
    clouds = draw_clouds(x, x, (x[:, 0] > 0).astype(int), always)
    assert np.isfinite(clouds.responsibilities(x)).all()


def test_the_estimator_draws_clouds_and_leaves_other_shapes_alone(tmp_path):
    x, truth = two_clouds(1200, 16, 3.5)
    model = Asterism(2, random_state=0).fit(x)
    plain = Asterism(2, refine=None, random_state=0).fit(x)
    assert model.cloud_means_.shape == (2, 16)
    assert not hasattr(plain, "cloud_means_")
    assert adjusted_rand_score(truth, model.labels_) >= adjusted_rand_score(truth, plain.labels_)
    np.testing.assert_array_equal(model.predict(x), model.labels_)
    np.testing.assert_array_equal(model.context_labels_, model.labels_[model.context_indices_])
    model.save(tmp_path / "model")
    again = Asterism.load(tmp_path / "model")
    np.testing.assert_allclose(again.predict_proba(x), model.predict_proba(x), atol=1e-6)
    moons, _ = make_moons(300, noise=0.04, random_state=0)
    assert not hasattr(Asterism(2, random_state=0).fit(moons), "cloud_means_")


def test_a_second_fit_forgets_the_clouds_of_the_first():
    model = Asterism(random_state=0).fit(make_blobs(200, centers=3, random_state=0)[0])
    assert hasattr(model, "cloud_means_")
    model.fit(make_moons(300, noise=0.04, random_state=0)[0])
    assert not hasattr(model, "cloud_means_")


def test_labels_are_kept_to_and_not_redrawn():
    x, truth = make_blobs(120, centers=3, random_state=0)
    known = np.where(np.arange(120) < 30, truth, -1)
    assert not hasattr(Asterism(random_state=0).fit(x, known), "cloud_means_")


def test_wide_tables_are_drawn_in_the_dimensions_of_the_context():
    chance = np.random.default_rng(0)
    truth = np.arange(150) % 3
    x = chance.standard_normal((150, 400)) + 1.5 * chance.standard_normal((3, 400))[truth]
    model = Asterism(context_size=60, random_state=0).fit(x)
    assert adjusted_rand_score(truth, model.labels_) > 0.95
    assert model.cloud_means_.shape == (3, model.axes_.shape[1])
    np.testing.assert_array_equal(model.predict(x), model.labels_)


def test_many_and_large_tables_are_drawn_too(monkeypatch):
    x, truth = two_clouds(900, 8, 4.0)
    (many,) = Asterism(2, random_state=0).fit_many([x])
    one = Asterism(2, random_state=0).fit(x)
    np.testing.assert_array_equal(many.labels_, one.labels_)
    np.testing.assert_allclose(many.cloud_means_, one.cloud_means_)
    monkeypatch.setattr("asterism.methods.asterism.sampling.POOL", 600)
    monkeypatch.setattr("asterism.methods.asterism.estimator._REFERENCES", 300)
    large = Asterism(2, context_size=100, random_state=0).fit(x)
    assert large.reference_membership_.shape[1] == len(large.cloud_means_) == 2
    assert adjusted_rand_score(truth, large.labels_) > 0.85
    np.testing.assert_array_equal(large.predict(x), large.labels_)
