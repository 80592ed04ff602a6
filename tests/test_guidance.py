"""What labelled rows tell of the others: the grain of pairs, and the number of clusters."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from asterism import Asterism
from asterism.functional.guidance import counts_given_classes, recalibrate


def similarity(n, seed):
    P = np.random.default_rng(seed).uniform(0.05, 0.95, (n, n))
    P = (P + P.T) / 2
    np.fill_diagonal(P, 1)
    return P


def some(y, n_labels, classes, seed=0):
    """Classes of a few rows, -1 elsewhere."""
    known = np.full(len(y), -1)
    chance = np.random.default_rng(seed)
    for code in classes:
        known[chance.choice(np.flatnonzero(y == code), n_labels, replace=False)] = code
    return known


def test_without_pairs_of_known_class_nothing_changes():
    P = similarity(8, 0)
    for known in (np.full(8, -1), np.where(np.arange(8) == 3, 0, -1)):
        np.testing.assert_array_equal(recalibrate(P, known, np.eye(8)), P)


def test_order_of_pairs_is_kept_and_rows_may_come_in_any_order():
    P, known = similarity(12, 1), np.array([0, 0, 1, 1, 2, 0, -1, -1, -1, -1, -1, -1])
    found = recalibrate(P, known, np.eye(12))  # all at one distance
    np.testing.assert_allclose(found, found.T)
    off = ~np.eye(12, dtype=bool)
    assert (np.diff(found[off][np.argsort(P[off])]) >= 0).all()
    order = np.random.default_rng(0).permutation(12)
    moved = recalibrate(P[np.ix_(order, order)], known[order], np.eye(12)[order])
    np.testing.assert_allclose(moved, found[np.ix_(order, order)], rtol=1e-5)


@pytest.mark.parametrize(("classes", "sign"), [([0] * 6, 1), (range(6), -1)])
def test_what_is_known_of_some_pairs_moves_all(classes, sign):
    P = np.full((20, 20), 0.5)
    known = np.full(20, -1)
    known[:6] = classes
    assert sign * (recalibrate(P, known, np.eye(20))[10, 11] - 0.5) > 0.2


def test_distances_tell_where_the_pairs_look_alike():
    rows = np.r_[np.linspace(0, 1, 10), np.linspace(4, 5, 10)][:, None]
    y = np.repeat([0, 1], 10)
    found = recalibrate(np.full((20, 20), 0.7), np.where(np.arange(20) % 2, y, -1), rows)
    assert found[0, 2] > 0.7 > found[0, 12]


def test_more_labels_say_more_of_the_number():
    flat = np.full(10, 0.1)
    beliefs = [counts_given_classes(flat, 3, m)[2] for m in (0, 3, 10, 100)]
    assert beliefs == sorted(beliefs)
    assert beliefs[0] == pytest.approx(0.1)
    np.testing.assert_array_equal(counts_given_classes(flat, 0, 0), flat)
    assert counts_given_classes(flat, 3, 10**6)[9] > 0  # never beyond doubt


def test_classes_nobody_labelled_are_found_all_the_same():
    X, y = make_blobs(300, centers=5, cluster_std=0.5, random_state=3)
    found = Asterism(random_state=0).fit(X, some(y, 20, [0, 1]))
    assert found.n_clusters_ == 5
    assert adjusted_rand_score(y, found.labels_) > 0.95


def test_labels_tell_the_grain():
    chance = np.random.default_rng(0)
    pair, part = np.repeat([0, 1], 100), np.arange(200) % 2
    X = np.c_[8.0 * pair + 4.0 * part, np.zeros(200)] + 0.7 * chance.standard_normal((200, 2))
    assert Asterism(random_state=0).fit(X).n_clusters_ > 2
    found = Asterism(random_state=0).fit(X, some(pair, 8, [0, 1]))
    assert found.n_clusters_ == 2
    assert adjusted_rand_score(pair, found.labels_) > 0.9
