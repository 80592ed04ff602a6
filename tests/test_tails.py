"""Columns with heavy tails, pulled in by what their middle tells, and let out again."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from asterism import Asterism
from asterism.functional.tails import find_tails
from asterism.methods.asterism import sampling
from asterism.methods.asterism.clouds import Clouds


def blobs(centers):
    return make_blobs(300, 3, centers=centers, cluster_std=0.6, random_state=0)


def test_columns_with_heavy_tails_are_pulled_in_row_by_row():
    X, _ = blobs(3)
    wild = np.exp(3 * np.random.default_rng(0).standard_normal((len(X), 2)))  # as amounts of money
    X = np.hstack([X, wild])
    pulled, kept = (Asterism(tails=tails, random_state=0).fit(X) for tails in ("pull", "keep"))
    assert pulled.tails_[0].astype(bool).tolist() == [False] * 3 + [True] * 2
    assert kept.tails_ is None
    rows = pulled._coordinates.scale(X)
    as_before = kept._coordinates.scale(X)
    np.testing.assert_allclose(rows[:, :3], as_before[:, :3])
    np.testing.assert_allclose(rows[:, 3:].std(axis=0), 1, rtol=1e-4)
    assert (np.abs(rows[:, 3:]).max(axis=0) < 0.8 * np.abs(as_before[:, 3:]).max(axis=0)).all()
    np.testing.assert_array_equal(pulled.predict(X[::-1]), pulled.labels_[::-1])
    again = pickle.loads(pickle.dumps(pulled))
    np.testing.assert_array_equal(again.predict(X), pulled.labels_)


@pytest.mark.parametrize("size", [1e3, 1e6, 1e9])
def test_a_few_enormous_cells_hide_no_clusters(size):
    X, y = blobs(4)
    X[:3, 1] = size * np.array([1, -1, 3])
    model = Asterism(random_state=0).fit(X)
    assert adjusted_rand_score(y[3:], model.labels_[3:]) > 0.95
    np.testing.assert_array_equal(model.predict(X[::-1]), model.labels_[::-1])


def test_enormous_cells_that_a_large_table_s_sample_lacks(monkeypatch):
    monkeypatch.setattr(sampling, "POOL", 100)
    X = np.random.default_rng(0).standard_normal((5000, 2)) + 9 * (np.arange(5000) % 2)[:, None]
    X[:2, 1] = 1e6
    for scaling in ("standard", "none"):
        sample = sampling.draw_sample(X, scaling, "pull", 64, np.random.RandomState(0))
        assert not np.isin([0, 1], sample.pool[sample.common]).any()
        assert (sample.coordinates.tails.pinch > 0).tolist() == [False, True]
        middle = sample.coordinates.scale(X[2:])[:, 1]
        far = sample.coordinates.scale(X[:2])[:, 1]
        assert (far < 16 * middle.std()).all()
        assert (far > middle.max()).all()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_rounding_is_not_pulled_out(kind):
    X, y = blobs(3)
    tenth = kind(0.1) * np.ones(len(X), dtype=kind)
    nearly = np.where(np.arange(len(X)) % 3, tenth * 3, tenth + tenth + tenth).astype(kind)
    nearly[::50] = 1
    model = Asterism(random_state=0).fit(np.c_[X, nearly])
    near = np.arange(len(X)) % 50 > 0
    assert np.ptp(model._coordinates.scale(np.c_[X, nearly])[near, 3]) < 1e-4
    assert adjusted_rand_score(y[near], model.labels_[near]) > 0.95


@pytest.mark.parametrize("n_far", [0, 5])
def test_letting_out_undoes_pulling_in_and_keeps_densities(n_far):
    chance = np.random.default_rng(0)
    x = np.c_[chance.standard_t(2, 4000), chance.standard_normal(4000)]
    x[:n_far, 0] = 1e5  # enough to set the deviation, which is then not asked
    x -= x.mean(axis=0)
    tails = find_tails(x)
    assert (tails.pinch > 0).tolist() == [True, False]
    assert np.isfinite(tails.most).tolist() == [n_far > 0, False]
    farthest = (tails.most / np.maximum(tails.pinch, 1e-300))[0]
    beyond = np.abs(x[:, 0] - tails.centre[0]) > farthest
    assert beyond[:n_far].all()
    assert beyond.mean() < 0.01
    assert np.unique(tails.pull(x[:n_far])[:, 0]).size == min(n_far, 1)
    x = x[~beyond]
    pulled = tails.pull(x)
    again, thinned = tails.release(pulled)
    np.testing.assert_allclose(again, x, atol=1e-9)
    step = 1e-6
    slope = (tails.release(pulled + np.array([step, 0]))[0] - again)[:, 0] / step
    np.testing.assert_allclose(thinned, np.log(slope), atol=1e-4)
    plain = Clouds(np.zeros(1), np.zeros((1, 2)), np.ones(1))
    np.testing.assert_allclose(
        plain._replace(tails=tails).log_joint(pulled)[:, 0], plain.log_joint(x)[:, 0] + thinned
    )
