"""Known labels, must-links and cannot-links."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from asterism.exceptions import DataError
from asterism.functional.constraints import (
    choose_constrained,
    make_constraints,
    merge_groups,
)
from asterism.functional.decisions import choose_partition, expected_ari
from asterism.functional.guidance import constrain_similarity


def together(labels):
    labels = np.asarray(labels)
    return labels[:, None] == labels


def random_similarity(n, seed):
    P = np.random.default_rng(seed).uniform(0.02, 0.98, (n, n))
    P = (P + P.T) / 2
    np.fill_diagonal(P, 1)
    return P


def overlapping(sizes, seed, gap=2.5):
    """Pair probabilities by a kernel of overlapping blobs, and the truth."""
    chance = np.random.default_rng(seed)
    truth = np.repeat(np.arange(len(sizes)), sizes)
    x = gap * chance.standard_normal((len(sizes), 2))[truth]
    x += chance.standard_normal((len(truth), 2))
    squared = ((x[:, None] - x) ** 2).sum(axis=-1)
    return 0.02 + 0.96 * np.exp(-squared / 4), truth


@st.composite
def problems(draw):
    """Random P with constraints that a hidden partition satisfies."""
    n = draw(st.integers(4, 24))
    seed = draw(st.integers(0, 10_000))
    chance = np.random.default_rng(seed)
    truth = chance.integers(draw(st.integers(2, 5)), size=n)
    pairs = chance.integers(n, size=(draw(st.integers(0, 20)), 2))
    same = truth[pairs[:, 0]] == truth[pairs[:, 1]]
    labels = np.where(chance.random(n) < draw(st.sampled_from([0, 0.3])), truth, -1)
    must, cannot = pairs[same], pairs[~same]
    return random_similarity(n, seed), truth, labels, must, cannot


def assert_honoured(found, labels, must, cannot):
    assert (found[must[:, 0]] == found[must[:, 1]]).all()
    assert (found[cannot[:, 0]] != found[cannot[:, 1]]).all()
    known = labels >= 0
    assert (together(found[known]) == together(labels[known])).all()


# --- making constraints -----------------------------------------------------------------------


def test_links_are_closed_transitively():
    made = make_constraints(7, must_link=[(5, 1), (1, 3)], cannot_link=[(3, 0), (0, 5)])
    assert made.groups.tolist() == [0, 1, 2, 1, 3, 1, 4]
    assert made.apart.tolist() == [[0, 1]]


def test_labels_say_what_their_pairs_would():
    labels = np.array([2, -1, 0, 2, 0, 1])
    known = [(i, j) for i in range(6) for j in range(i) if min(labels[i], labels[j]) >= 0]
    pairs = make_constraints(
        6,
        must_link=[p for p in known if labels[p[0]] == labels[p[1]]],
        cannot_link=[p for p in known if labels[p[0]] != labels[p[1]]],
    )
    made = make_constraints(6, labels)
    assert (made.groups == pairs.groups).all()
    assert (made.apart == pairs.apart).all()


@pytest.mark.parametrize(
    "nothing", [{}, {"labels": [-1, -1, -1]}, {"labels": [-1, 4, -1]}, {"must_link": [(1, 1)]}]
)
def test_nothing_known_is_no_constraint(nothing):
    assert make_constraints(3, **nothing) is None


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"must_link": [(0, 1), (1, 2)], "cannot_link": [(0, 2)]}, "rows 0 and 2 must be apart"),
        ({"cannot_link": [(3, 3)]}, "rows 3 and 3 must be apart"),
        ({"labels": [0, 1, -1, -1, -1], "must_link": [(0, 1)]}, "rows 0 and 1 must be apart"),
        ({"must_link": [(0, 5)]}, "must_link names row 5, but rows are numbered 0 to 4"),
        ({"cannot_link": [(-1, 2)]}, "cannot_link names row -1"),
        ({"cannot_link": [(0, 1, 2)]}, r"pairs of row numbers, got shape \(1, 3\)"),
        ({"must_link": [(0.0, 1.5)]}, "pairs of row numbers.*float64"),
        ({"labels": [0, 1]}, r"labels have shape \(2,\)"),
        ({"labels": [0, 1, -2, 0, 0]}, "least -2"),
        ({"labels": [0.0, 1, -1, 0, 0]}, "float64"),
    ],
)
def test_wrong_constraints_are_refused(wrong, message):
    with pytest.raises(DataError, match=message):
        make_constraints(5, **wrong)


# --- what they say about P --------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(problems())
def test_constrained_similarity_is_a_similarity_that_knows(problem):
    P, _, labels, must, cannot = problem
    made = make_constraints(len(P), labels, must, cannot)
    if made is None:
        return
    result = constrain_similarity(P, made)
    assert result == pytest.approx(result.T)
    assert (result >= 0).all()
    assert (result <= 1).all()
    assert (result[must[:, 0], must[:, 1]] == 1).all()
    assert (result[cannot[:, 0], cannot[:, 1]] == 0).all()


@settings(max_examples=25, deadline=None)
@given(problems(), st.randoms())
def test_permuting_rows_permutes_the_similarity(problem, random):
    P, _, labels, must, cannot = problem
    n = len(P)
    order = np.array(random.sample(range(n), n))
    place = np.argsort(order)
    made = make_constraints(n, labels, must, cannot)
    moved = make_constraints(n, labels[order], place[must], place[cannot])
    if made is None:
        assert moved is None
        return
    assert (together(moved.groups) == together(made.groups[order])).all()
    expected = constrain_similarity(P, made)[np.ix_(order, order)]
    assert constrain_similarity(P[np.ix_(order, order)], moved) == pytest.approx(expected)


def test_rows_learn_from_the_labelled_rows_they_resemble():
    truth = np.repeat([0, 1], 5)
    P = np.where(together(truth), 0.8, 0.4)
    np.fill_diagonal(P, 1)
    labels = np.full(10, -1)
    labels[[0, 5]] = 0, 1
    result = constrain_similarity(P, make_constraints(10, labels))
    assert result[1, 2] > P[1, 2]  # both near the first class
    assert result[1, 6] < P[1, 6]  # near different classes
    far = P.copy()
    far[9, :9] = far[:9, 9] = 0
    far[8, 9] = far[9, 8] = 0.7
    unmoved = constrain_similarity(far, make_constraints(10, labels))
    assert unmoved[8, 9] == pytest.approx(0.7, abs=0.01)  # 9 resembles no labelled row


def test_learning_from_labels_beats_clamping_the_known_pairs():
    gains = []
    for seed in range(12):
        P, truth = overlapping((40, 30, 30, 20), seed)
        chance = np.random.default_rng(seed)
        labels = np.full(len(truth), -1)
        for k in range(4):
            labels[chance.choice(np.flatnonzero(truth == k), 4, replace=False)] = k
        made = make_constraints(len(truth), labels)
        sign = (np.eye(len(made.forbidden)) - made.forbidden)[made.groups][:, made.groups]
        clamped = np.where(sign == 0, P, sign > 0)
        scores = [
            adjusted_rand_score(truth, choose_constrained(similarity, made))
            for similarity in (constrain_similarity(P, made), clamped)
        ]
        gains.append(scores[0] - scores[1])
    assert np.mean(gains) > 0.02


# --- choosing a partition ---------------------------------------------------------------------


def test_merging_groups_averages():
    P, groups = random_similarity(6, 0), np.array([0, 1, 0, 2, 1, 1])
    Q, sizes = merge_groups(P, groups)
    assert sizes.tolist() == [2, 3, 1]
    assert Q[0, 1] == pytest.approx(P[np.ix_([0, 2], [1, 4, 5])].mean())
    assert pytest.approx(Q.T) == Q


@settings(max_examples=60, deadline=None)
@given(problems())
def test_constraints_are_always_honoured(problem):
    P, _, labels, must, cannot = problem
    made = make_constraints(len(P), labels, must, cannot)
    if made is None:
        return
    for similarity in (P, constrain_similarity(P, made)):
        assert_honoured(choose_constrained(similarity, made), labels, must, cannot)
    most = len(made.forbidden)
    found = choose_constrained(P, made, most)
    assert_honoured(found, labels, must, cannot)
    assert len(np.unique(found)) == most


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_two_clusters_are_found_whatever_the_cannot_links_allow(seed):
    chance = np.random.default_rng(seed)
    truth = chance.integers(2, size=16)
    pairs = chance.integers(16, size=(24, 2))
    cannot = pairs[truth[pairs[:, 0]] != truth[pairs[:, 1]]]
    made = make_constraints(16, cannot_link=cannot)
    if made is None:
        return
    found = choose_constrained(random_similarity(16, seed), made, 2)
    assert len(np.unique(found)) == 2
    assert_honoured(found, np.full(16, -1), np.zeros((0, 2), int), cannot)


@pytest.mark.parametrize("count", [3, 4, 9])
def test_a_number_of_clusters_is_honoured_exactly(count):
    P, truth = overlapping((20, 20, 20), 0)
    labels = np.where(np.arange(60) % 7 == 0, truth, -1)
    made = make_constraints(60, labels)
    assert len(np.unique(choose_constrained(P, made, count))) == count
    assert len(np.unique(choose_constrained(P, made, np.int64(count)))) == count
    assert 5 <= len(np.unique(choose_constrained(P, made, (5, 6)))) <= 6


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (2, "n_clusters=2 is too few.* is 3"),
        ((1, 2), r"n_clusters=\(1, 2\) is too few.* is 3"),
        (8, "n_clusters=8 cannot be had of the 7 groups"),
        (0, "n_clusters=0 cannot be had"),
        ((4, 3), r"n_clusters=\(4, 3\)"),
    ],
)
def test_impossible_numbers_are_refused(asked, message):
    made = make_constraints(8, labels=[0, 1, 2, 2, -1, -1, -1, -1])
    with pytest.raises(DataError, match=message):
        choose_constrained(random_similarity(8, 0), made, asked)


def test_with_next_to_nothing_known_the_choice_is_the_free_one():
    P, _ = overlapping((30, 30, 30), 1)
    free = choose_partition(P)
    pair = np.flatnonzero(free == free[0])[:2]
    found = choose_constrained(P, make_constraints(90, must_link=[pair]))
    assert expected_ari(P, found) > expected_ari(P, free) - 0.005


def test_one_cluster_is_an_answer_unless_something_is_apart():
    P = np.full((20, 20), 0.97)
    counts = np.array([0.9, 0.05, 0.05])
    assert choose_constrained(P, make_constraints(20, must_link=[(0, 1)]), counts=counts).max() == 0
    made = make_constraints(20, cannot_link=[(0, 1)])
    assert choose_constrained(P, made, counts=counts).max() >= 1


def test_the_belief_over_the_number_of_clusters_is_heard():
    P, _ = overlapping((20, 20, 20, 20), 3)
    made = make_constraints(80, cannot_link=[(0, 79)])
    few = choose_constrained(P, made, counts=np.array([0, 1.0, 0, 0, 0, 0]), count_weight=1)
    many = choose_constrained(P, made, counts=np.array([0, 0, 0, 0, 1.0, 0]), count_weight=1)
    assert few.max() + 1 == 2
    assert many.max() + 1 == 5


def test_truth_told_raises_the_score():
    P, truth = overlapping((40, 40, 40), 5)
    labels = np.where(np.arange(120) % 6 == 0, truth, -1)
    made = make_constraints(120, labels)
    told = choose_constrained(constrain_similarity(P, made), made)
    rest = labels < 0  # the rows that were not told count
    free = choose_partition(P)
    assert adjusted_rand_score(truth[rest], told[rest]) > adjusted_rand_score(
        truth[rest], free[rest]
    )
