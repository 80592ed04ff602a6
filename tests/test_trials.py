"""Scales that are tried, and the likelihood by which one is chosen."""

import warnings

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from asterism import ACP, CCP, DAC, NCP, RecurrentMixture, SetTransformerMixture
from asterism.functional.icl import completed_likelihood, rounding_variance

TOUCHING = make_blobs(400, centers=5, random_state=1)  # the guess takes them for one
APART = make_blobs(300, centers=4, cluster_std=0.5, random_state=1)
ALL = {
    "dac": DAC(),
    "recurrent": RecurrentMixture(),
    "set-transformer": SetTransformerMixture(),
    "ncp": NCP(n_samples=2, max_points=60),
    "ccp": CCP(n_threads=5, n_samples=2, max_points=60),
    "acp": ACP(n_threads=5, n_samples=2, max_points=60),
}


def tries(estimator, X, start="local"):
    """How the scale of a fit differs from the guess, in powers of three halves."""
    estimator = clone(estimator)
    guess = estimator.set_params(scaling=start).fit(X).projection_
    chosen = estimator.set_params(scaling="auto").fit(X).projection_
    ratio = np.linalg.norm(chosen) / np.linalg.norm(guess)
    np.testing.assert_allclose(chosen, guess * ratio)
    return np.log(ratio) / np.log(1.5)


@pytest.mark.parametrize("dim", [1, 3])
def test_completed_likelihood_follows_its_formula(dim):
    chance = np.random.default_rng(0)
    labels = np.repeat([4, 0, 2], [20, 30, 1])  # numbers do not matter; one row alone
    x = 5 + chance.normal(size=(51, dim)) + labels[:, None]
    apart = np.linalg.norm(x - np.median(x, axis=0), axis=1)
    floor = 1e-4 * x[apart <= np.quantile(apart, 0.9)].var(axis=0).mean() * np.eye(dim)
    wanted = 0.0
    for k in (0, 2, 4):
        rows = x[labels == k]
        covariance = np.atleast_2d(np.cov(rows.T, bias=True)) if len(rows) > 1 else 0.0
        density = multivariate_normal(rows.mean(axis=0), covariance + floor)
        wanted += density.logpdf(rows).sum() + len(rows) * np.log(len(rows) / 51)
    wanted -= (3 * (1 + dim + dim * (dim + 1) / 2) - 1) / 2 * np.log(51)
    assert completed_likelihood(x, labels) == pytest.approx(wanted, rel=1e-9)
    constant = np.column_stack([x, np.full(51, 0.1)])  # whose variance is that of rounding
    assert completed_likelihood(constant, labels) == pytest.approx(wanted, rel=1e-9)


def test_equal_rows_have_no_likelihood():
    for value in (1.0, 0.1):
        assert completed_likelihood(np.full((9, 2), value), np.arange(9) % 2) == -np.inf


def test_clusters_that_touch_are_told_apart():
    X, y = TOUCHING
    model = DAC(scaling="local").fit(X)
    assert model.n_clusters_ == 1
    model.set_params(scaling="auto").fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.8
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("name", ALL)
def test_a_wrong_guess_is_mended(name, monkeypatch):
    """As if clusters had been three times as wide in training, so that the table is too wide."""
    X, y = APART[0][:120], APART[1][:120]
    align = type(ALL[name])._align

    def widened(self, rows):
        align(self, rows)
        self.projection_ = self.projection_ * (3 if self.scaling != "none" else 1)

    monkeypatch.setattr(type(ALL[name]), "_align", widened)
    # The weights of the Set Transformer do not tell a width.
    start = "global" if name == "set-transformer" else "local"
    power = tries(ALL[name], X, start)
    assert -5 <= round(power) <= -1
    assert round(power) == pytest.approx(power, abs=1e-6)
    found = [clone(ALL[name]).set_params(scaling=s, random_state=0) for s in ("auto", start)]
    mended, wrong = (adjusted_rand_score(y, model.fit(X).labels_) for model in found)
    assert mended > wrong


@pytest.mark.parametrize(("centers", "seed"), [(2, 2), (3, 1), (3, 3)])
def test_whole_numbers_are_not_clusters(centers, seed):
    X, y = make_blobs(300, centers=centers, random_state=seed)
    X = X.round()
    assert adjusted_rand_score(y, DAC(scaling="local").fit(X).labels_) < 0.5
    assert adjusted_rand_score(y, DAC().fit(X).labels_) > 0.85


def test_rounding_is_counted_as_width():
    chance = np.random.default_rng(0)
    x = np.column_stack([chance.normal(size=200).round(), chance.normal(size=200)])
    together, points = np.zeros(200, int), np.unique(x[:, 0], return_inverse=True)[1]
    lost = np.diag(rounding_variance(x))
    np.testing.assert_allclose(lost, [[1 / 12, 0], [0, 0]])
    assert completed_likelihood(x, together) < completed_likelihood(x, points)
    assert completed_likelihood(x, together, lost) > completed_likelihood(x, points, lost)


def test_whole_numbers_in_three_columns_are_one_cluster_too():
    X = np.random.default_rng(0).normal(size=(400, 3)).round()  # turned to principal axes
    assert DAC(scaling="local").fit(X).n_clusters_ > 5
    assert DAC().fit(X).n_clusters_ == 1


@pytest.mark.parametrize("constant", [[], [0.1]])
def test_one_column_is_scaled_too(constant):
    X = np.random.default_rng(0).normal(size=(300, 1))
    X = np.column_stack([X, *(np.full(300, value) for value in constant)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert DAC(scaling="global").fit(X).n_clusters_ > 1
        assert DAC().fit(X).n_clusters_ == 1


def test_a_far_row_does_not_hide_the_clusters():
    X, y = make_blobs(400, centers=4, cluster_std=0.5, random_state=1)
    X, y = np.concatenate([X, [[1e4, 1e4]]]), np.append(y, 4)
    merged = np.where(y == 3, 2, y)
    assert completed_likelihood(X, y) > completed_likelihood(X, merged)


@pytest.mark.parametrize("n_clusters", [3, 8])
def test_a_number_of_clusters_is_reached_at_some_scale(n_clusters):
    assert DAC(n_clusters).fit(TOUCHING[0]).n_clusters_ == n_clusters


def test_the_least_size_of_clusters_is_not_that_of_a_sample():
    X, _ = make_blobs(2500, centers=6, cluster_std=0.6, random_state=2)
    model = DAC(weights="dac-mog-quick", random_state=0)
    one, large = (clone(model).set_params(min_cluster_size=m).fit(X) for m in (1, 500))
    np.testing.assert_array_equal(one.projection_, large.projection_)


def test_one_gaussian_stays_one_cluster():
    X = np.random.default_rng(0).normal(size=(400, 2))
    assert DAC().fit(X).n_clusters_ == 1
    assert tries(DAC(), X) <= 0.01


@pytest.mark.parametrize("change", [lambda X: 1e6 * X + 3e6, lambda X: 1e-6 * X])
def test_units_do_not_matter(change):
    X, _ = TOUCHING
    np.testing.assert_array_equal(DAC().fit(change(X)).labels_, DAC().fit(X).labels_)


def test_many_data_sets_have_the_scales_they_have_alone():
    sets = [TOUCHING[0], APART[0], APART[0][:30], np.column_stack([APART[0][:, 0]] * 2)]
    model = DAC(weights="dac-mog-quick", random_state=0)
    for twin, X in zip(model.fit_many(sets), sets, strict=True):
        alone = DAC(weights="dac-mog-quick", random_state=0).fit(X)
        np.testing.assert_array_equal(twin.projection_, alone.projection_)
        np.testing.assert_array_equal(twin.labels_, alone.labels_)


def test_few_rows_and_bent_clusters_keep_the_guess():
    assert tries(DAC(weights="dac-mog-quick"), TOUCHING[0][:49]) == 0
    assert tries(DAC(weights="dac-mog-quick", context_size=40, random_state=0), TOUCHING[0]) == 0
    assert tries(DAC(weights="dac-warped"), TOUCHING[0]) == 0


def test_trials_end_early_and_are_cheap(monkeypatch):
    seen = []
    infer = DAC._infer

    def counted(self, batch, seed):
        seen.append((self.looks, self.views, batch.x.shape[1]))
        return infer(self, batch, seed)

    monkeypatch.setattr(DAC, "_infer", counted)
    X = np.random.default_rng(0).normal(size=(1500, 2))
    model = DAC(weights="dac-mog-quick", looks=2, views=2, random_state=0).fit(X)
    assert model.n_clusters_ == 1
    # Once at the guess, twice below it, twice above it.
    assert seen == [(1, 1, 1000)] * 5 + [(2, 2, 1500)]
    assert (model.looks, model.views) == (2, 2)
