"""Other views of the same rows, and what the network believes after them."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.datasets import make_blobs

from asterism import Asterism
from asterism.functional.views import other_views, ranked, whitened
from asterism.methods.asterism.opinions import Belief, _stated


def rows(n=60, dim=4, seed=0):
    chance = np.random.default_rng(seed)
    return chance.standard_normal((n, dim)) @ chance.standard_normal((dim, dim))


def test_ranks_know_nothing_of_monotone_maps():
    X = rows()
    np.testing.assert_allclose(ranked(np.exp(X)), ranked(X))
    np.testing.assert_allclose(ranked(X).std(axis=0), 1)


def test_axes_are_evened_out_as_asked():
    X = rows()
    values = np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1]
    for power in (0.5, 1.0):
        found = np.cov(whitened(X, power).T, bias=True)
        expected = (values ** (1 - power))[: len(found)]
        np.testing.assert_allclose(found, np.diag(expected), atol=1e-9)


def test_views_move_with_rows_and_not_with_columns():
    X, order = rows(), np.random.default_rng(1).permutation(60)
    for view, moved, turned in zip(
        other_views(X), other_views(X[order]), other_views(X[:, ::-1]), strict=True
    ):
        np.testing.assert_allclose(pdist(moved), pdist(view[order]), atol=1e-4)
        np.testing.assert_allclose(pdist(turned), pdist(view), atol=1e-4)


@pytest.mark.parametrize("X", [np.zeros((5, 3)), np.eye(4)[:, :1], np.ones((3, 1)), rows(5, 30)])
def test_flat_narrow_and_wide_tables_have_views(X):
    for view in other_views(X):
        assert view.shape[0] == len(X)
        assert view.shape[1] >= 1
        assert np.isfinite(view).all()


def test_sure_is_nine_tenths():
    blocks = np.kron(np.eye(2), np.ones((10, 10)))
    for doubt, single, sure in ((0.01, 0.0, True), (0.3, 0.0, False), (0.01, 0.5, False)):
        P = single + (1 - single) * ((1 - doubt) * blocks + doubt * 0.5)
        counts = np.array([single, 1 - single])
        assert Belief(P, counts).sure is sure
    assert Belief(np.ones((9, 9)), np.array([0.95, 0.05])).sure


def test_views_are_read_where_there_is_doubt():
    clear, _ = make_blobs(120, centers=3, cluster_std=0.3, random_state=0)
    doubtful, _ = make_blobs(120, n_features=6, centers=3, cluster_std=5.0, random_state=0)
    for X, differs in ((clear, False), (doubtful, True)):
        answers = [Asterism(views=views, random_state=0).fit(X) for views in ("auto", "one", "all")]
        auto, one, every = (model.similarity_ for model in answers)
        assert np.array_equal(auto, every if differs else one)
        assert not np.allclose(one, every)


def test_a_partition_is_judged_by_the_same_belief():
    X, _ = make_blobs(120, n_features=6, centers=3, cluster_std=5.0, random_state=0)
    model = Asterism(random_state=0).fit(X)
    score = model.score_partition(X, model.labels_)
    assert score == pytest.approx(model.overall_confidence_, abs=1e-5)


def test_what_is_stated_lies_beyond_the_mean_of_beliefs():
    first = Belief(np.array([[1.0, 0.9], [0.9, 1.0]]), np.array([0.1, 0.9]))
    pooled = Belief(np.array([[1.0, 0.6], [0.6, 1.0]]), np.array([0.4, 0.6]))
    stated = _stated(first, pooled)
    assert 0.6 < stated.similarity[0, 1] < 0.9
    assert stated.similarity[0, 0] == 1
    assert stated.counts.sum() == pytest.approx(1)
    assert 0.1 < stated.counts[0] < 0.4
