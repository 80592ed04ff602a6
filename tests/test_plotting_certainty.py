"""Pictures of what a method is sure of: similarities of rows, reliability."""

import numpy as np
import pytest

from asterism.exceptions import DataError
from asterism.plotting import cluster_color, plot_reliability, plot_similarity
from asterism.plotting.certainty import reliability, similarity_order


def render(ax):
    ax.figure.canvas.draw()


def pairs(labels, inside=0.9, outside=0.1, seed=0):
    """Similarity of rows that are together where their labels are, with a little noise."""
    noise = np.random.default_rng(seed).uniform(-0.05, 0.05, (len(labels), len(labels)))
    P = np.where(labels[:, None] == labels, inside, outside) + (noise + noise.T) / 2
    np.fill_diagonal(P, 1)
    return P


def test_rows_are_ordered_by_cluster_with_noise_last():
    labels = np.array([2, -1, 0, 2, 0, -1, 5])
    order = similarity_order(pairs(labels), labels)
    assert labels[order].tolist() == [0, 0, 2, 2, 5, -1, -1]
    assert sorted(order) == list(range(7))


def test_parts_of_a_cluster_are_neighbours():
    parts = np.array([0, 1, 0, 1, 0, 1, 0, 1, 2, 2])
    labels = (parts == 2).astype(int)
    order = similarity_order(pairs(parts, outside=0.5), labels)
    assert np.abs(np.diff(parts[order[:8]])).sum() == 1
    # Without labels the whole table is one tree.
    assert (np.diff(parts[similarity_order(pairs(parts))]) != 0).sum() == 2


def test_similarity_is_drawn_in_order_with_frames_and_names():
    from matplotlib.colors import to_rgb

    labels = np.random.default_rng(0).permutation(np.repeat([0, 1, -1], [6, 3, 2]))
    P = pairs(labels)
    ax = plot_similarity(P, labels)
    render(ax)
    order = similarity_order(P, labels)
    np.testing.assert_allclose(ax.images[0].get_array(), P[np.ix_(order, order)])
    assert [text.get_text() for text in ax.get_yticklabels()] == ["0", "1", "noise"]
    assert ax.get_yticks() == pytest.approx([3, 7.5, 10])
    frames = [patch for patch in ax.patches if not patch.get_fill()]
    assert [frame.get_width() for frame in frames] == [6, 3, 2]
    assert frames[1].get_edgecolor()[:3] == pytest.approx(to_rgb(cluster_color(1)))
    assert ax.get_xlabel() == "11 rows, by cluster"


def test_similarity_of_an_estimator_is_that_of_its_context():
    class Fitted:
        similarity_ = pairs(np.array([0, 0, 1]))
        context_labels_ = np.array([0, 0, 1])
        context_indices_ = np.array([1, 3, 4])
        labels_ = np.array([1, 0, 1, 0, 1])

        def get_params(self):
            return {}

    def sizes(ax):
        return [patch.get_height() for patch in ax.patches if not patch.get_fill()]

    assert sizes(plot_similarity(Fitted())) == [2, 1]
    assert sizes(plot_similarity(Fitted(), [0, 0, 0, 1, 1])) == [1, 2]
    assert sizes(plot_similarity(Fitted(), [0, 1, 2])) == [1, 1, 1]
    Fitted.similarity_ = Fitted.similarity_[:0]
    with pytest.raises(DataError, match=r"got \(0, 3\)"):
        plot_similarity(Fitted())
    del Fitted.similarity_
    with pytest.raises(DataError, match="Fitted has no similarity_: fit it first"):
        plot_similarity(Fitted())


@pytest.mark.parametrize("n_rows", [1, 2, 3, 200])
def test_any_number_of_clusters_is_drawn(n_rows):
    labels = np.arange(n_rows)
    ax = plot_similarity(pairs(labels), labels)
    render(ax)
    assert 1 <= len(ax.get_yticks()) <= 50
    render(plot_similarity(pairs(labels)))


def test_equal_rows_and_certain_ones_are_drawn():
    for P in (np.ones((9, 9)), np.eye(9)):
        render(plot_similarity(P, np.zeros(9, dtype=int)))


@pytest.mark.parametrize(
    ("matrix", "labels", "message"),
    [
        (np.zeros((2, 3)), None, r"\(2, 3\)"),
        (np.zeros(3), None, r"\(3,\)"),
        (np.full((2, 2), 1.5), None, r"\[0, 1\]"),
        (np.full((2, 2), np.nan), None, "NaN"),
        (np.eye(2), [0, 1, 1], "3 entries for 2 rows"),
        (np.eye(2), ["a", "b"], "vector of integers"),
    ],
)
def test_bad_similarities_are_refused(matrix, labels, message):
    with pytest.raises(DataError, match=message):
        plot_similarity(matrix, labels)


def test_reliability_bins_are_of_equal_width_and_empty_ones_left_out():
    found = reliability([0.0, 0.05, 0.95, 1.0, 0.55], [0, 1, 1, 1, 0], 10)
    assert found.counts.tolist() == [2, 1, 2]
    assert found.predicted == pytest.approx([0.025, 0.55, 0.975])
    assert found.happened == pytest.approx([0.5, 0, 1])
    assert found.centers == pytest.approx([0.05, 0.55, 0.95])
    assert found.error == pytest.approx((2 * 0.475 + 0.55 + 2 * 0.025) / 5)


def test_reliability_agrees_with_the_pair_calibration():
    from asterism.metrics import pair_calibration

    labels = np.random.default_rng(1).integers(3, size=30)
    P = pairs(labels, 0.7, 0.2)
    above = np.triu_indices(30, 1)
    together = (labels[:, None] == labels)[above]
    error = pair_calibration(labels, P).expected_calibration_error
    assert reliability(P[above], together).error == pytest.approx(error)


def test_reliability_shows_points_counts_and_the_error():
    ax = plot_reliability([0.1, 0.1, 0.1, 0.9], [0, 0, 1, 1], n_bins=2)
    render(ax)
    diagonal, line = ax.get_lines()[:2]
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata()) == [0, 1]
    assert line.get_xydata() == pytest.approx(np.array([[0.1, 1 / 3], [0.9, 1]]))
    assert [text.get_text() for text in ax.texts] == ["3", "1"]
    tall, low = ax.patches
    assert tall.get_height() == pytest.approx(3 * low.get_height())
    assert tall.get_y() + tall.get_height() < 0
    assert min(ax.get_yticks()) == 0
    assert ax.get_title(loc="left") == "expected calibration error 0.200"


def test_reliability_of_a_score_may_be_negative():
    ax = plot_reliability([0.1, 0.9], [-0.3, 0.8])
    render(ax)
    assert ax.get_ylim()[0] < -0.3 - 0.06
    assert max(patch.get_y() + patch.get_height() for patch in ax.patches) < -0.3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"predicted": [0.5]}, "1 entries and happened 2"),
        ({"predicted": [], "happened": []}, "0 entries"),
        ({"predicted": [0.5, 1.5]}, r"\[0, 1\]"),
        ({"predicted": [0.5, np.nan]}, r"\[0, 1\]"),
        ({"happened": [0, np.nan]}, "NaN"),
        ({"n_bins": 0}, "n_bins"),
    ],
)
def test_bad_reliability_is_refused(arguments, message):
    with pytest.raises(DataError, match=message):
        plot_reliability(**({"predicted": [0.2, 0.4], "happened": [0, 1]} | arguments))
