"""Partitions chosen from pair probabilities."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score, mutual_info_score

from asterism.functional.decisions import (
    choose_partition,
    expected_ari,
    expected_vi,
    refine_partition,
    restrict_counts,
    similarity_tree,
    tree_scores,
)
from asterism.functional.hierarchy import cut_tree


def together(labels):
    labels = np.asarray(labels)
    return (labels[:, None] == labels[None]).astype(float)


def blurred(labels, sure=0.9, seed=0):
    """Pair probabilities of somebody who is rather sure of these labels."""
    noise = 0.1 * np.random.default_rng(seed).standard_normal((len(labels), len(labels)))
    P = np.clip(np.where(together(labels) > 0, sure, 1 - sure) + (noise + noise.T) / 2, 0.01, 0.99)
    np.fill_diagonal(P, 1)
    return P


def test_for_a_certain_partition_the_expectation_is_the_index_itself():
    chance = np.random.default_rng(0)
    truth, other = chance.integers(3, size=40), chance.integers(4, size=40)
    assert expected_ari(together(truth), other) == pytest.approx(adjusted_rand_score(truth, other))
    entropy = [-np.sum(p * np.log2(p)) for p in (np.bincount(x) / 40 for x in (truth, other))]
    vi = sum(entropy) - 2 * mutual_info_score(truth, other) / np.log(2)
    assert expected_vi(together(truth), other) == pytest.approx(vi)


@pytest.mark.parametrize("rule", ["ari", "vi", "mixed"])
@pytest.mark.parametrize("sizes", [(30, 30), (50, 5, 20), (10,) * 8])
def test_clear_clusters_are_found(rule, sizes):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    found = choose_partition(blurred(labels), rule=rule)
    assert adjusted_rand_score(labels, found) == 1


@pytest.mark.parametrize("rule", ["ari", "vi", "mixed"])
def test_one_cluster_is_an_answer(rule):
    assert choose_partition(np.full((20, 20), 0.97), rule=rule).max() == 0


@pytest.mark.parametrize("count", [1, 2, 3, 7, 20])
def test_a_number_of_clusters_is_honoured_exactly(count):
    labels = np.repeat(np.arange(4), 10)
    found = choose_partition(blurred(labels, 0.7), count)
    assert len(np.unique(found)) == count
    low, high = 5, 6
    ranged = choose_partition(blurred(labels, 0.7), (low, high))
    assert low <= len(np.unique(ranged)) <= high


def partitions(n):
    """All of them, clusters numbered by first appearance."""
    found = [[0]]
    for _ in range(n - 1):
        found = [[*labels, k] for labels in found for k in range(max(labels) + 2)]
    return [np.array(labels) for labels in found]


def test_the_choice_is_near_the_best_of_all_partitions():
    for seed in range(5):
        P = blurred([0, 0, 0, 1, 1, 2], sure=0.7, seed=seed)
        best = max(expected_ari(P, labels) for labels in partitions(6))
        assert expected_ari(P, choose_partition(P)) == pytest.approx(best, abs=0.02)


def test_other_candidates_count_if_they_score_better_and_have_a_wanted_number():
    better = 0
    for seed in range(20):
        noise = np.random.default_rng(seed).uniform(0.2, 0.8, (7, 7))
        P = (noise + noise.T) / 2  # no structure: the tree leads astray
        np.fill_diagonal(P, 1)
        best = max(partitions(7), key=lambda labels: expected_ari(P, labels))
        alone = choose_partition(P, n_refined=1)
        told = choose_partition(P, n_refined=1, candidates=[7 * best, np.arange(7)])
        assert expected_ari(P, told) == pytest.approx(expected_ari(P, best))
        better += expected_ari(P, told) > expected_ari(P, alone) + 1e-9
    assert better
    assert len(np.unique(choose_partition(P, 6, candidates=[best]))) == 6


def test_scores_along_the_tree_are_those_of_its_cuts():
    P = blurred(np.repeat([0, 1, 2], [12, 8, 5]), 0.7)
    tree = similarity_tree(P)
    expected = [expected_ari(P, cut_tree(tree, k)) for k in range(1, 26)]
    np.testing.assert_allclose(tree_scores(tree, P), expected, atol=1e-9)


@pytest.mark.parametrize("limits", [(1,), (2,), (3, 5), (6, 6), (7, 9), (40,)])
def test_belief_is_restricted_to_limits_and_never_lost(limits):
    counts = np.array([0.5, 0.3, 0.2, 0.0, 0.0, 0.0])
    belief = restrict_counts(counts, *limits)
    assert belief.sum() == pytest.approx(1)
    low, high = limits[0], limits[-1] if len(limits) == 2 else 6
    outside = [k for k in range(1, 7) if not min(low, 6) <= k <= high]
    assert all(belief[k - 1] == 0 for k in outside)


def test_refinement_mends_misplaced_rows():
    labels = np.repeat([0, 1, 2], 20)
    P = blurred(labels)
    wrong = labels.copy()
    wrong[[0, 25, 50]] = [1, 2, 0]
    mended = refine_partition(P, wrong)
    assert adjusted_rand_score(labels, mended) == 1
    assert expected_ari(P, mended) > expected_ari(P, wrong)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rule": "guess"}, "rule='guess'"),
        ({"n_clusters": 9}, "n_clusters=9 cannot be had of 5 rows"),
        ({"n_clusters": (3, 2)}, r"n_clusters=\(3, 2\)"),
    ],
)
def test_bad_requests_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        choose_partition(np.eye(5), **options)
