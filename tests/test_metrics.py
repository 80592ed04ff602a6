"""Clustering scores: hand-computed cases, scikit-learn as the oracle, invariances, edge cases."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from asterism.exceptions import DataError
from asterism.metrics import (
    adjusted_rand_index,
    best_over_references,
    cluster_count_error,
    clustering_accuracy,
    clustering_scores,
    match_clusters,
    normalized_mutual_information,
    representative_accuracy,
)

labellings = st.integers(1, 25).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 4), min_size=n, max_size=n)] * 2)
)


def labels_of_table(table):
    """Labels (y_true, y_pred) whose contingency table, clusters in rows, is the one given."""
    table = np.asarray(table)
    clusters, classes = np.indices(table.shape)
    repeats = table.ravel()
    return classes.ravel().repeat(repeats), clusters.ravel().repeat(repeats)


class TestClusteringAccuracy:
    def test_contingency_table_worked_by_hand(self):
        y_true, y_pred = labels_of_table([(4, 1, 1), (2, 0, 5), (1, 5, 2)])
        assert clustering_accuracy(y_true, y_pred) == 14 / 21
        assert match_clusters(y_true, y_pred) == {0: 0, 1: 2, 2: 1}

    @given(labellings)
    def test_equals_search_over_all_matchings(self, pair):
        y_true, y_pred = map(np.asarray, pair)
        best = max(
            np.mean(np.take(matching, y_pred) == y_true) for matching in permutations(range(5))
        )
        assert clustering_accuracy(y_true, y_pred) == pytest.approx(best)

    @given(labellings, st.permutations(range(5)), st.randoms())
    def test_renaming_clusters_and_reordering_points_change_nothing(self, pair, names, random):
        y_true, y_pred = map(np.asarray, pair)
        order = list(range(len(y_true)))
        random.shuffle(order)
        expected = clustering_scores(y_true, y_pred)
        assert clustering_scores(y_true[order], np.take(names, y_pred)[order]) == pytest.approx(
            expected
        )

    def test_clusters_left_over_are_wrong(self):
        y_true, y_pred = [0, 0, 0, 0, 1, 1], [0, 0, 1, 2, 3, 3]
        assert clustering_accuracy(y_true, y_pred) == 4 / 6
        assert match_clusters(y_true, y_pred) == {0: 0, 3: 1}

    def test_fewer_clusters_than_classes(self):
        assert clustering_accuracy([0, 1, 2, 2], [0, 0, 0, 0]) == 0.5

    def test_noise_is_wrong_and_unmatched(self):
        y_true, y_pred = ["a", "a", "b", "b"], [0, 0, -1, -1]
        assert clustering_accuracy(y_true, y_pred) == 0.5
        assert match_clusters(y_true, y_pred) == {0: "a"}

    def test_everything_noise_scores_zero(self):
        assert clustering_accuracy([0, 1], [-1, -1]) == 0.0
        assert match_clusters([0, 1], [-1, -1]) == {}

    def test_matching_without_overlap_completes_the_bijection(self):
        assert match_clusters([0, 0, 0, 1], [0, 0, 1, 0]) == {0: 0, 1: 1}


class TestRepresentativeAccuracy:
    # Eleven points, three clusters; the clusters take the labels 1, 3 and 2.
    rows = np.array(
        [
            (0.6, 0.2, 0.2, 2),
            (0.1, 0.4, 0.5, 1),
            (0.8, 0.1, 0.1, 1),
            (0.3, 0.6, 0.1, 3),
            (0.1, 0.75, 0.15, 2),
            (0.7, 0.1, 0.2, 1),
            (0.2, 0.1, 0.7, 2),
            (0.05, 0.05, 0.9, 2),
            (0.7, 0.2, 0.1, 3),
            (0.1, 0.8, 0.1, 3),
            (0.1, 0.6, 0.3, 1),
        ]
    )

    def test_worked_example(self):
        assert representative_accuracy(self.rows[:, 3].astype(int), self.rows[:, :3]) == 6 / 11

    def test_representatives_come_from_the_validation_pair(self):
        q = [[0.9, 0.1], [0.8, 0.2], [0.1, 0.9]]
        assert representative_accuracy([0, 0, 1], q) == 1.0
        swapped = representative_accuracy(
            [0, 0, 1], q, y_val=[1, 0], responsibilities_val=[[0.7, 0.3], [0.3, 0.7]]
        )
        assert swapped == 0.0

    def test_two_clusters_may_take_the_same_class(self):
        q = [[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.05, 0.05, 0.9]]
        assert representative_accuracy([4, 4, 7], q) == 1.0

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"y_val": [0]}, "together"),
            ({"responsibilities_val": [[0.5, 0.5]]}, "together"),
            ({"y_val": [0], "responsibilities_val": [[1.0]]}, "2 clusters but"),
            ({"y_val": [0, 1], "responsibilities_val": [[0.5, 0.5]]}, "same length"),
        ],
    )
    def test_incomplete_validation_pair_is_refused(self, options, message):
        with pytest.raises(DataError, match=message):
            representative_accuracy([0, 1], [[0.6, 0.4], [0.4, 0.6]], **options)


class TestScores:
    @given(labellings)
    def test_equal_scikit_learn(self, pair):
        y_true, y_pred = pair
        for average in ("arithmetic", "geometric"):
            assert normalized_mutual_information(y_true, y_pred, average=average) == pytest.approx(
                normalized_mutual_info_score(y_true, y_pred, average_method=average)
            )
        assert adjusted_rand_index(y_true, y_pred) == pytest.approx(
            adjusted_rand_score(y_true, y_pred)
        )

    def test_geometric_mean_by_hand(self):
        # H(T) = log 2, H(C) = 1.5 log 2, I = log 2.
        y_true, y_pred = [0, 0, 1, 1], [0, 0, 1, 2]
        geometric = normalized_mutual_information(y_true, y_pred, average="geometric")
        assert geometric == pytest.approx(1 / np.sqrt(1.5))
        assert normalized_mutual_information(y_true, y_pred) == pytest.approx(1 / 1.25)

    def test_unknown_average_is_refused(self):
        with pytest.raises(DataError, match="'harmonic'"):
            normalized_mutual_information([0], [0], average="harmonic")

    def test_count_error_does_not_count_noise(self):
        assert cluster_count_error([0, 0, 1, 2], [-1, 0, 1, 1]) == 1
        assert cluster_count_error([0, 0, 1, 2], [-1, -1, -1, -1]) == 3
        assert cluster_count_error([0, 0, 0], [0, 1, 2]) == 2

    def test_minus_one_in_the_truth_is_a_class_unless_ignored(self):
        y_true, y_pred = [-1, 0, 1], [0, 0, 1]
        assert cluster_count_error(y_true, y_pred) == 1
        assert clustering_scores(y_true, y_pred, ignore=-1)["k_error"] == 0

    def test_one_cluster_and_one_class_agree(self):
        assert clustering_scores([3, 3, 3], [0, 0, 0]) == {
            "acc": 1.0,
            "nmi": 1.0,
            "nmi_geometric": 1.0,
            "ari": 1.0,
            "k_true": 1,
            "k_pred": 1,
            "k_error": 0,
        }

    def test_ignoring_equals_removing(self):
        y_true = np.array([0, 0, 1, 1, 8, 9, 9])
        y_pred = np.array([0, 0, 0, 1, 1, 2, 3])
        kept = y_true < 8
        assert clustering_scores(y_true, y_pred, ignore=[8, 9]) == clustering_scores(
            y_true[kept], y_pred[kept]
        )

    def test_ignoring_every_point_is_refused(self):
        with pytest.raises(DataError, match="leaves no point"):
            clustering_scores([0, 0], [0, 1], ignore=0)

    def test_best_over_references_takes_each_score_at_its_best(self):
        fine, coarse = [0, 0, 1, 1, 2, 2], [0, 0, 0, 0, 1, 1]
        y_pred = [0, 0, 1, 1, 1, 1]
        best = best_over_references([fine, coarse], y_pred)
        single = [clustering_scores(reference, y_pred) for reference in (fine, coarse)]
        for name in ("acc", "nmi", "nmi_geometric", "ari"):
            assert best[name] == max(score[name] for score in single)
        assert (best["k_true"], best["k_pred"], best["k_error"]) == (2, 2, 0)

    def test_no_reference_is_refused(self):
        with pytest.raises(DataError, match="at least one labelling"):
            best_over_references([], [0])


@pytest.mark.parametrize(
    "metric",
    [
        clustering_accuracy,
        match_clusters,
        normalized_mutual_information,
        adjusted_rand_index,
        cluster_count_error,
        clustering_scores,
    ],
)
class TestInvalidLabels:
    @pytest.mark.parametrize(
        ("y_true", "y_pred", "message"),
        [
            ([0, 1], [0], "same length"),
            ([], [], "y_true is empty"),
            ([[0, 1]], [0, 1], r"y_true must have one label.*\(1, 2\)"),
            ([0, 1], [0.0, np.nan], "y_pred has 1 missing labels, the first at position 1"),
            (np.array([None, "a"], dtype=object), [0, 1], "y_true has 1 missing"),
            (np.array([1, "a"], dtype=object), [0, 1], "mixed types"),
        ],
    )
    def test_refused_with_the_reason(self, metric, y_true, y_pred, message):
        with pytest.raises(DataError, match=message):
            metric(y_true, y_pred)
