"""Mixture likelihoods, neighbours in an embedding, and calibration of pair probabilities."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KNeighborsClassifier

from asterism.exceptions import DataError
from asterism.metrics import (
    knn_error,
    mean_log_likelihood,
    oracle_log_likelihood,
    pair_calibration,
)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


class TestLikelihood:
    means = np.array([[0.0, 1.0], [5.0, -2.0], [1.0, 1.0]])
    scales = np.array([[1.0, 0.5], [2.0, 0.1], [0.3, 3.0]])
    weights = np.array([0.2, 0.5, 0.3])

    def test_equals_the_definition(self, rng):
        x = rng.normal(size=(20, 2))
        density = sum(
            weight * multivariate_normal(mean, np.diag(scale**2)).pdf(x)
            for weight, mean, scale in zip(self.weights, self.means, self.scales, strict=True)
        )
        ours = mean_log_likelihood(x, self.weights, self.means, self.scales)
        assert ours == pytest.approx(np.log(density).mean())

    def test_equals_scikit_learn_score(self, rng):
        x = rng.normal(size=(200, 3))
        model = GaussianMixture(3, covariance_type="diag", random_state=0).fit(x)
        scales = np.sqrt(model.covariances_)
        ours = mean_log_likelihood(x, model.weights_, model.means_, scales)
        assert ours == pytest.approx(model.score(x))

    def test_one_scale_per_component_is_spherical(self, rng):
        x = rng.normal(size=(5, 2))
        full = np.repeat([[0.5], [2.0], [1.0]], 2, axis=1)
        spherical = mean_log_likelihood(x, self.weights, self.means, [0.5, 2.0, 1.0])
        assert spherical == mean_log_likelihood(x, self.weights, self.means, full)

    def test_far_points_do_not_underflow(self):
        value = mean_log_likelihood([[1e4]], [0.5, 0.5], [[0.0], [1.0]], [[1.0], [1.0]])
        assert value == pytest.approx(-0.5 * 9999**2, rel=1e-6)

    def test_component_of_no_weight_adds_nothing(self):
        x = [[0.3], [0.1]]
        with_empty = mean_log_likelihood(x, [1.0, 0.0], [[0.0], [0.3]], [[1.0], [0.1]])
        assert with_empty == pytest.approx(mean_log_likelihood(x, [1.0], [[0.0]], [[1.0]]))

    def test_oracle_uses_label_frequencies_unless_weights_are_given(self, rng):
        labels = np.array([0, 0, 0, 1, 2, 2])
        x = self.means[labels] + self.scales[labels] * rng.normal(size=(6, 2))
        parameters = self.means, self.scales
        assert oracle_log_likelihood(x, labels, *parameters) == pytest.approx(
            mean_log_likelihood(x, [3 / 6, 1 / 6, 2 / 6], *parameters)
        )
        assert oracle_log_likelihood(x, labels, *parameters, self.weights) == pytest.approx(
            mean_log_likelihood(x, self.weights, *parameters)
        )

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"x": [[0.0]]}, "1 features but means has 2"),
            ({"x": [[np.nan, 0.0]]}, "NaN"),
            ({"x": [0.0, 1.0]}, "2-D"),
            ({"weights": [0.5, 0.5]}, r"shape \(3,\)"),
            ({"weights": [0.5, 0.5, 0.5]}, "summing to one"),
            ({"weights": [1.5, -0.5, 0.0]}, "probabilities"),
            ({"scales": np.zeros((3, 2))}, "positive"),
            ({"scales": np.ones((2, 3))}, r"got \(2, 3\)"),
        ],
    )
    def test_impossible_mixtures_are_refused(self, change, message):
        arguments = {
            "x": [[0.0, 0.0]],
            "weights": self.weights,
            "means": self.means,
            "scales": self.scales,
        }
        with pytest.raises(DataError, match=message):
            mean_log_likelihood(**(arguments | change))

    @pytest.mark.parametrize(
        ("labels", "message"),
        [([-1, 0], r"0\.\.2"), ([0, 3], r"0\.\.2"), ([0], "same length"), ([0.5, 1], "integers")],
    )
    def test_oracle_refuses_foreign_labels(self, labels, message):
        with pytest.raises(DataError, match=message):
            oracle_log_likelihood([[0.0, 0.0]] * 2, labels, self.means, self.scales)


class TestKnnError:
    def test_equals_scikit_learn_classifier(self, rng):
        y_train, y_test = rng.integers(3, size=80), rng.integers(3, size=40)
        z_train = y_train[:, None] + rng.normal(size=(80, 2))
        z_test = y_test[:, None] + rng.normal(size=(40, 2))
        errors = knn_error(z_train, y_train, z_test, y_test)
        assert list(errors) == [3, 5, 10]
        for k, error in errors.items():
            classifier = KNeighborsClassifier(k).fit(z_train, y_train)
            assert error == pytest.approx(1 - classifier.score(z_test, y_test))

    def test_one_number_of_neighbours_and_named_classes(self):
        errors = knn_error([[0.0], [9.0]], ["a", "b"], [[1.0]], ["a"], n_neighbors=np.int64(1))
        assert errors == {1: 0.0}

    def test_class_unseen_in_training_is_always_wrong(self):
        assert knn_error([[0.0], [1.0]], [0, 1], [[0.0]], [2], n_neighbors=1) == {1: 1.0}

    @pytest.mark.parametrize("n_neighbors", [0, 3, (), (1, 3)])
    def test_impossible_neighbour_counts_are_refused(self, n_neighbors):
        with pytest.raises(DataError, match=r"1\.\.2"):
            knn_error([[0.0], [1.0]], [0, 1], [[0.0]], [0], n_neighbors=n_neighbors)

    def test_different_spaces_are_refused(self):
        with pytest.raises(DataError, match="1 features but z_test has 2"):
            knn_error([[0.0]], [0], [[0.0, 1.0]], [0], n_neighbors=1)


class TestPairCalibration:
    def test_scores_equal_scikit_learn(self, rng):
        y = rng.integers(3, size=30)
        matrix = rng.uniform(0.05, 0.95, size=(30, 30))
        upper = np.triu_indices(30, k=1)
        together = y[upper[0]] == y[upper[1]]
        result = pair_calibration(y, matrix)
        assert result.brier_score == pytest.approx(brier_score_loss(together, matrix[upper]))
        assert result.log_score == pytest.approx(-log_loss(together, matrix[upper]))
        assert result.counts.sum() == 30 * 29 / 2

    def test_bins_by_hand(self):
        # Pairs (0,1): 0.95 and together; (0,2): 0.0 and apart; (1,2): 1.0 and apart.
        matrix = np.array([[1.0, 0.95, 0.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
        result = pair_calibration(["a", "a", "b"], matrix, n_bins=4)
        np.testing.assert_array_equal(result.counts, [1, 0, 0, 2])
        np.testing.assert_allclose(result.mean_predicted, [0.0, np.nan, np.nan, 0.975])
        np.testing.assert_allclose(result.observed, [0.0, np.nan, np.nan, 0.5])
        np.testing.assert_allclose(result.bin_edges, [0, 0.25, 0.5, 0.75, 1])
        assert result.expected_calibration_error == pytest.approx(2 / 3 * 0.475)
        assert np.isfinite(result.log_score)

    def test_truth_is_perfectly_calibrated(self, rng):
        y = rng.integers(4, size=25)
        result = pair_calibration(y, y[:, None] == y)
        assert result.expected_calibration_error == result.brier_score == result.log_score == 0

    def test_sampled_pairs_lie_above_the_diagonal(self):
        n = 12
        matrix = np.full((n, n), np.nan)  # reading on or below the diagonal would raise
        matrix[np.triu_indices(n, k=1)] = 0.5
        for max_pairs in (1, 30, 65):
            result = pair_calibration(range(n), matrix, max_pairs=max_pairs, random_state=1)
            assert result.counts.sum() == max_pairs

    @pytest.mark.parametrize("n", [3, 4, 50])
    def test_every_pair_number_has_its_own_pair(self, n, monkeypatch):
        from asterism.metrics import calibration

        n_pairs = n * (n - 1) // 2
        monkeypatch.setattr(
            calibration, "sample_without_replacement", lambda *_, **__: np.arange(n_pairs)
        )
        rows, columns = calibration._pairs(n, n_pairs - 1, 0)
        assert set(zip(rows, columns, strict=True)) == set(zip(*np.triu_indices(n, 1), strict=True))

    def test_sampling_approximates_all_pairs_and_repeats_with_its_seed(self, rng):
        y = rng.integers(3, size=300)
        matrix = rng.uniform(size=(300, 300))
        everything = pair_calibration(y, matrix)
        sample = pair_calibration(y, matrix, max_pairs=10_000, random_state=3)
        again = pair_calibration(y, matrix, max_pairs=10_000, random_state=3)
        assert sample.brier_score == pytest.approx(everything.brier_score, abs=0.02)
        assert sample.brier_score == again.brier_score

    @pytest.mark.parametrize(
        ("y", "matrix", "options", "message"),
        [
            ([0, 1], np.eye(3), {}, r"\(3, 3\) for 2 labels"),
            ([0], np.eye(1), {}, "at least 2"),
            ([0, 1], np.full((2, 2), 1.5), {}, "outside"),
            ([0, 1], np.full((2, 2), np.nan), {}, "NaN"),
            ([0, 1], np.eye(2), {"n_bins": 0}, "positive"),
            ([0, 1], np.eye(2), {"max_pairs": 0}, "positive"),
        ],
    )
    def test_impossible_input_is_refused(self, y, matrix, options, message):
        with pytest.raises(DataError, match=message):
            pair_calibration(y, matrix, **options)
