"""Plausible partitions drawn from pair probabilities."""

import time

import numpy as np
import pytest

from asterism.exceptions import DataError
from asterism.functional.samples import partition_scores, sample_partitions


def together(labels):
    return (labels[..., :, None] == labels[..., None, :]).astype(float)


def believed(partitions):
    """Pair probabilities of somebody who holds these partitions equally likely."""
    return 0.98 * together(np.asarray(partitions)).mean(axis=0) + 0.01


def correlation(P, labels):
    pairs = np.triu_indices(len(P), 1)
    return np.corrcoef(P[pairs], together(labels).mean(axis=0)[pairs])[0, 1]


BLOCKS = np.repeat([0, 1, 2], 15)


def ambiguous_rows():
    chance = np.random.default_rng(0)
    partitions = np.tile(BLOCKS, (400, 1))
    for row, stays in ((0, 0.5), (1, 0.7), (15, 0.5), (16, 0.6), (30, 0.9)):
        partitions[chance.random(400) > stays, row] = (BLOCKS[row] + 1) % 3
    return believed(partitions)


def ambiguous_merge():
    return believed([BLOCKS, np.minimum(BLOCKS, 1)])


def ambiguous_block():
    """Six rows that belong with the first cluster, the second, or to themselves."""
    partitions = np.tile(BLOCKS, (10, 1))
    partitions[5:8, :6], partitions[8:, :6] = 1, 3
    return believed(partitions)


@pytest.mark.parametrize("make", [ambiguous_rows, ambiguous_merge, ambiguous_block])
@pytest.mark.parametrize("seed", range(3))
def test_pair_frequencies_resemble_the_probabilities(make, seed):
    P = make()
    labels, _ = sample_partitions(P, 40, seed)
    assert correlation(P, labels) > 0.97
    assert np.abs(together(labels).mean(axis=0) - P).mean() < 0.06


def test_clusters_that_may_be_one_are_one_as_often_as_not():
    labels, _ = sample_partitions(ambiguous_merge(), 40, seed=0)
    counts = np.bincount(labels.max(axis=1) + 1, minlength=4)
    assert counts[2] + counts[3] >= 36
    assert 14 <= counts[2] <= 26


def test_a_certain_matrix_gives_one_partition_always():
    order = np.random.default_rng(0).permutation(45)
    truth = BLOCKS[order]
    labels, scores = sample_partitions(together(truth), 15, seed=3)
    assert (labels == labels[0]).all()
    assert (together(labels[0]) == together(truth)).all()
    assert np.ptp(scores) == 0


def test_a_nearly_certain_cluster_does_not_shatter():
    P = np.where(together(BLOCKS) > 0, 0.95, 0.02)
    labels, _ = sample_partitions(P, 40, seed=0)
    assert np.isin(labels.max(axis=1) + 1, [2, 3, 4]).all()


def test_the_seed_fixes_everything_and_the_global_generator_is_left_alone():
    P = ambiguous_rows()
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    first, second = sample_partitions(P, 8, 1), sample_partitions(P, 8, 1)
    assert (first[0] == second[0]).all()
    assert (first[1] == second[1]).all()
    assert (sample_partitions(P, 8, 2)[0] != first[0]).any()
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002


def test_the_given_matrix_is_left_alone():
    P = ambiguous_rows()
    kept = P.copy()
    sample_partitions(P, 3, 0)
    assert (kept == P).all()


def test_labels_are_numbered_by_first_appearance():
    labels, _ = sample_partitions(ambiguous_rows(), 10, 0)
    for row in labels:
        assert (np.diff(np.maximum.accumulate(row), prepend=-1) <= 1).all()


def test_a_belief_over_the_number_of_clusters_is_heard():
    P = ambiguous_merge()
    two, three = np.array([0, 1.0, 0]), np.array([0, 0, 1.0])
    k_two = sample_partitions(P, 30, 0, two)[0].max(axis=1) + 1
    k_three = sample_partitions(P, 30, 0, three)[0].max(axis=1) + 1
    assert (k_two == 2).mean() > (k_three == 2).mean()


def test_the_score_is_the_composite_likelihood():
    chance = np.random.default_rng(0)
    P = chance.uniform(0.1, 0.9, (6, 6))
    P = (P + P.T) / 2
    labels = np.array([[0, 0, 1, 1, 2, 0]])
    terms = [
        np.log(P[i, j] if labels[0, i] == labels[0, j] else 1 - P[i, j])
        for i in range(6)
        for j in range(i)
    ]
    assert partition_scores(P, labels) == pytest.approx(2 / 5 * sum(terms))
    counts = np.array([0.1, 0.2, 0.7])
    assert partition_scores(P, labels, counts) == pytest.approx(2 / 5 * sum(terms) + np.log(0.7))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_small_matrices(n):
    labels, scores = sample_partitions(np.full((n, n), 0.7), 4, 0)
    assert labels.shape == (4, n)
    assert np.isfinite(scores).all()


def test_no_samples_are_refused():
    with pytest.raises(DataError, match="n_samples=0"):
        sample_partitions(np.eye(3), 0, 0)


def test_five_hundred_rows_take_seconds():
    truth = np.repeat(np.arange(8), 64)
    noise = np.random.default_rng(0).normal(size=(512, 512))
    P = 1 / (1 + np.exp(-np.where(together(truth) > 0, 3.0, -3.0) - (noise + noise.T) / 2))
    start = time.process_time()
    labels, _ = sample_partitions(P, 20, 0)
    assert time.process_time() - start < 10
    assert correlation(P, labels) > 0.9
