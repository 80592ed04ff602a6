"""Sampled partitions: every summary against its definition."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score, rand_score

from asterism.exceptions import DataError
from asterism.functional import comparisons
from asterism.functional.comparisons import (
    adjusted_rand,
    binder_loss,
    by_appearance,
    cluster_counts,
    contingency_tables,
    renumbered_like,
    variation_of_information,
)
from asterism.functional.posterior import (
    central_partition,
    coassignment,
    count_posterior,
    credible_ball,
    distinct_partitions,
    expected_losses,
    row_confidence,
)


def draws(n_samples=12, n_rows=15, n_clusters=4, seed=0):
    return np.random.default_rng(seed).integers(n_clusters, size=(n_samples, n_rows))


def uneven(n_samples, seed=1):
    weights = np.random.default_rng(seed).uniform(size=n_samples)
    weights[0] = 0
    return weights


def entropy(*labels):
    _, counts = np.unique(np.stack(labels), axis=1, return_counts=True)
    p = counts / counts.sum()
    return -(p * np.log2(p)).sum()


# --- one partition and many ----------------------------------------------------------------


@pytest.mark.parametrize("n_clusters", [1, 4, 15])
def test_distances_are_their_definitions(n_clusters):
    own, others = draws(1, seed=3)[0], draws(n_clusters=n_clusters)
    vi = [2 * entropy(own, c) - entropy(own) - entropy(c) for c in others]
    np.testing.assert_allclose(variation_of_information(own, others), vi, atol=1e-12)
    np.testing.assert_allclose(binder_loss(own, others), [1 - rand_score(own, c) for c in others])
    expected = [adjusted_rand_score(own, c) for c in others]
    np.testing.assert_allclose(adjusted_rand(own, others), expected, atol=1e-12)


def test_trivial_partitions_agree_with_themselves_and_not_with_each_other():
    together, apart = np.zeros(6, dtype=int), np.arange(6)
    both = np.stack([together, apart])
    assert adjusted_rand(together, both).tolist() == [1, 0]
    assert adjusted_rand(apart, both).tolist() == [0, 1]
    assert variation_of_information(apart, both) == pytest.approx([np.log2(6), 0])
    assert binder_loss(together, both).tolist() == [0, 1]
    for distance in (variation_of_information, binder_loss):
        assert distance([0], [[0]]).tolist() == [0]


def test_tables_are_the_same_dense_and_compact_and_in_pieces(monkeypatch):
    # 150 x 150 cells for 150 rows are kept as a list; labels with fewer names as a table.
    own = np.random.default_rng(0).permutation(150)
    others = draws(5, 150, 150)
    sparse = variation_of_information(own, others)
    assert [len(m[0]) for _, m, _ in contingency_tables(own, others)] == [150] * 5
    vi = [2 * entropy(own, c) - entropy(own) - entropy(c) for c in others]
    np.testing.assert_allclose(sparse, vi, atol=1e-12)
    own, others = own % 3, others % 4
    whole = row_confidence(own, others), adjusted_rand(own, others)
    assert len(list(contingency_tables(own, others))) == 1
    monkeypatch.setattr(comparisons, "_ENTRIES", 300)
    assert len(list(contingency_tables(own, others))) == 3
    np.testing.assert_allclose(row_confidence(own, others), whole[0])
    np.testing.assert_allclose(adjusted_rand(own, others), whole[1])


def test_renumbering_is_the_best_matching_and_keeps_the_partition():
    reference = np.repeat([0, 1, 2], [4, 3, 2])
    labels = np.array([1, 1, 1, 0, 0, 0, 0, 3, 2])
    renamed = renumbered_like(labels, reference)
    assert renamed[:7].tolist() == [0, 0, 0, 1, 1, 1, 1]
    assert sorted(renamed[7:]) == [2, 3]
    assert (renamed == reference).sum() == 7
    np.testing.assert_array_equal(by_appearance(renamed[None]), by_appearance(labels[None]))
    # Fewer clusters than the reference, and gaps in the numbers.
    assert renumbered_like([4, 4, 4, 4, 4], [1, 1, 0, 0, 0]).tolist() == [0] * 5


def test_equal_partitions_become_equal_rows():
    assert by_appearance([[3, 3, 1, 0], [0, 0, 2, 1]]).tolist() == [[0, 0, 1, 2]] * 2
    assert by_appearance([[3, 3, 1, 0]]).dtype == np.int32
    labels = draws(50, 8, 3)
    found, weights = distinct_partitions(labels, np.arange(50.0))
    names = [tuple(row) for row in by_appearance(labels)]
    assert len({tuple(row) for row in found}) == len(found) == len(set(names))
    for row, weight in zip(found, weights, strict=True):
        own = [s for s, name in enumerate(names) if name == tuple(row)]
        assert weight == pytest.approx(sum(own) / np.arange(50).sum())
    assert (np.diff(weights) <= 1e-12).all()
    assert cluster_counts(labels).tolist() == [len(set(row)) for row in labels.tolist()]


# --- pairs, counts, rows -------------------------------------------------------------------


@pytest.mark.parametrize("weights", [None, uneven(12)])
def test_coassignment_is_the_mean_over_samples(weights, monkeypatch):
    labels = draws()
    together = labels[:, :, None] == labels[:, None, :]
    expected = np.average(together, axis=0, weights=weights)
    P = coassignment(labels, weights)
    assert P.dtype == np.float32
    np.testing.assert_allclose(P, expected, atol=1e-6)
    monkeypatch.setattr("asterism.functional.posterior._COLUMNS", 6)
    monkeypatch.setattr("asterism.functional.posterior._BLOCK", 4)
    np.testing.assert_allclose(coassignment(labels, weights), expected, atol=1e-6)


def test_equal_weights_give_exact_frequencies():
    labels = draws(10, 30)
    P = coassignment(labels)
    together = (labels[:, :, None] == labels[:, None, :]).sum(axis=0)
    np.testing.assert_array_equal(P, (together / 10).astype(np.float32))
    assert np.array_equal(P, P.T)


@pytest.mark.parametrize("weights", [None, uneven(12)])
def test_count_posterior_is_indexed_by_k(weights):
    labels = draws(n_rows=5)
    k = np.array([len(set(row)) for row in labels.tolist()])
    w = np.ones(12) if weights is None else weights
    expected = [w[k == i].sum() / w.sum() for i in range(k.max() + 1)]
    np.testing.assert_allclose(count_posterior(labels, weights), expected)


@pytest.mark.parametrize("weights", [None, uneven(12)])
@pytest.mark.parametrize("measure", ["overlap", "mates"])
def test_confidence_is_the_mean_over_sampled_clusters(measure, weights):
    own, others = draws(1, seed=4)[0], draws()
    own[0] = 4  # a row by itself
    expected = np.zeros((12, 15))
    for s, partition in enumerate(others):
        for i in range(15):
            ours = set(np.flatnonzero(own == own[i]))
            theirs = set(np.flatnonzero(partition == partition[i]))
            if measure == "overlap":
                expected[s, i] = len(ours & theirs) / len(ours | theirs)
            elif len(ours) == 1:
                expected[s, i] = len(theirs) == 1
            else:
                expected[s, i] = (len(ours & theirs) - 1) / (len(ours) - 1)
    found = row_confidence(own, others, weights, measure=measure)
    np.testing.assert_allclose(found, np.average(expected, axis=0, weights=weights))


def test_mates_do_not_mind_merges_but_the_overlap_does():
    own, merged = [0, 0, 1, 1], [[0, 0, 0, 0]]
    assert row_confidence(own, merged, measure="mates").tolist() == [1] * 4
    assert row_confidence(own, merged).tolist() == [0.5] * 4


# --- one answer and its ball ---------------------------------------------------------------


@pytest.mark.parametrize("weights", [None, uneven(12)])
@pytest.mark.parametrize(
    ("loss", "distance"), [("vi", variation_of_information), ("binder", binder_loss)]
)
def test_central_partition_minimises_the_expected_loss(loss, distance, weights):
    labels = draws(n_rows=7, n_clusters=3)
    risks = [np.average(distance(c, labels), weights=weights) for c in labels]
    np.testing.assert_allclose(expected_losses(labels, labels, weights, loss=loss), risks)
    best = central_partition(labels, weights, loss=loss)
    assert np.average(distance(best, labels), weights=weights) == pytest.approx(min(risks))
    assert best.tolist() in by_appearance(labels).tolist()


def test_equal_risks_are_settled_by_weight():
    assert central_partition([[0, 0], [0, 1], [0, 1]]).tolist() == [0, 1]
    assert central_partition([[0, 1], [0, 0]], [0.4, 0.6]).tolist() == [0, 0]


@pytest.mark.parametrize("level", [0.01, 0.3, 0.5, 0.9, 1.0])
def test_credible_ball_is_the_smallest_of_its_level(level):
    labels, weights = draws(200, 6, 3), uneven(200)
    center = by_appearance(labels[:1])[0]
    ball = credible_ball(center, labels, weights, level=level)
    distances = variation_of_information(center, labels)
    w = weights / weights.sum()
    assert ball.mass == pytest.approx(w[distances <= ball.radius + 1e-9].sum())
    assert ball.mass >= level - 1e-9
    assert w[distances < ball.radius - 1e-9].sum() < level  # no smaller radius would do
    assert ball.radius == pytest.approx(ball.distances.max())
    assert (np.diff(ball.distances) >= -1e-9).all()
    np.testing.assert_allclose(
        ball.distances, variation_of_information(center, ball.partitions), atol=1e-12
    )
    inside = {tuple(row) for row in by_appearance(labels[distances <= ball.radius + 1e-9])}
    assert {tuple(row) for row in ball.partitions} == inside


def test_bounds_are_the_farthest_of_few_many_and_any_clusters():
    center = np.repeat([0, 1], 4)
    one, near = np.zeros(8, dtype=int), np.array([0, 0, 0, 0, 0, 1, 1, 1])
    six, also = np.array([0, 1, 2, 3, 4, 4, 5, 5]), np.array([0, 0, 1, 1, 2, 3, 4, 5])
    ball = credible_ball(center, [center, one, near, six, also], level=1)
    assert ball.upper.tolist() == [one.tolist()]
    assert ball.lower.tolist() == [six.tolist(), also.tolist()]
    far = variation_of_information(center, [one, near, six])
    assert far[2] == pytest.approx(ball.radius)
    assert ball.horizontal.tolist() == [six.tolist(), also.tolist()]
    assert ball.n_clusters.tolist() == [2, 2, 1, 6, 6]


def test_a_ball_may_be_about_a_partition_never_drawn():
    ball = credible_ball([2, 2, 0], [[0, 1, 1]] * 3, level=0.5)
    assert ball.center.tolist() == [0, 0, 1]
    assert (ball.partitions.tolist(), ball.mass) == ([[0, 1, 1]], pytest.approx(1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: coassignment([0, 1]), r"\(samples, rows\).*\(2,\)"),
        (lambda: coassignment([[0.5, 1.0]]), "whole numbers"),
        (lambda: coassignment(np.zeros((0, 3), dtype=int)), r"\(0, 3\)"),
        (lambda: coassignment([[0, -1]]), "got -1 to 0"),
        (lambda: coassignment([[0, 2]]), "0 to 1; got 0 to 2"),
        (lambda: coassignment([[0, 1]], [0.0]), "not all zero"),
        (lambda: coassignment([[0, 1]], [np.nan]), "nonnegative"),
        (lambda: coassignment([[0, 1]], [1.0, 1.0]), r"shape \(2,\)"),
        (lambda: adjusted_rand([0, 1], [[0, 1, 1]]), r"\(2,\) for partitions of 3 rows"),
        (lambda: row_confidence([0, 1], [[0, 1]], measure="x"), "measure='x'"),
        (lambda: central_partition([[0, 1]], loss="ari"), "loss='ari'"),
        (lambda: credible_ball([0, 1], [[0, 1]], level=0), "level=0 "),
        (lambda: credible_ball([0, 1], [[0, 1]], level=1.5), "level=1.5"),
    ],
)
def test_bad_input_is_refused_with_its_value(call, message):
    with pytest.raises(DataError, match=message):
        call()


def test_a_large_table_costs_linear_memory():
    import tracemalloc

    n = 100_000
    labels = np.tile(np.arange(n, dtype=np.int32) % 7, (4, 1))
    labels[1:, : n // 2] = 0
    tracemalloc.start()
    row_confidence(labels[0], labels)
    adjusted_rand(labels[0], labels)
    credible_ball(labels[0], labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200 * n
