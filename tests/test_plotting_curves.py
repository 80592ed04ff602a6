"""Curves of training, confusion matrices and beliefs over K."""

import numpy as np
import pytest

from asterism.exceptions import DataError
from asterism.plotting import plot_confusion, plot_history, plot_k_posterior
from asterism.plotting.diagnostics import matched_confusion
from asterism.plotting.training import running_mean


def render(ax):
    ax.figure.canvas.draw()


def test_running_mean_shrinks_at_the_start_and_is_cut_at_the_end():
    values = np.array([1.0, 2.0, 6.0, 10.0, 3.0])
    assert running_mean(values, 3) == pytest.approx([1, 3, 6, 19 / 3, 6.5])
    assert running_mean(values, 99) == pytest.approx([1, 3, 22 / 5, 22 / 5, 22 / 5])
    assert running_mean(values, 1) == pytest.approx(values)


def test_running_mean_skips_what_is_not_finite():
    assert running_mean(np.array([1.0, np.inf, 3.0]), 3) == pytest.approx([1, 2, 3])
    assert np.isnan(running_mean(np.array([1.0, np.nan, 3.0]), 1)[1])


def test_history_has_a_faint_raw_line_and_a_bold_smooth_one():
    history = [{"step": 10 * i, "loss": 1.0 + i % 2} for i in range(100)]
    raw, smooth = plot_history(history).get_lines()
    assert raw.get_alpha() < 1
    assert np.ptp(smooth.get_ydata()[5:-5]) < np.ptp(raw.get_ydata())
    assert raw.get_xdata()[-1] == 990
    assert len(plot_history(history, smooth=1).get_lines()) == 1


@pytest.mark.parametrize(
    ("losses", "scale"),
    [([100.0, 1.0], "log"), ([50.0, 1.0], "linear"), ([100.0, -1.0], "linear"), ([1.0], "linear")],
)
def test_scale_is_logarithmic_over_decades_of_positive_values(losses, scale):
    assert plot_history([{"loss": loss} for loss in losses]).get_yscale() == scale


def test_records_may_lack_keys_and_steps():
    history = [{"loss": 1.0}, {"loss": 2.0, "score": 0.5}, {"score": None}]
    ax = plot_history(history, keys=("loss", "score"))
    assert [list(line.get_xdata()) for line in ax.get_lines()] == [[0, 1], [1]]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["loss", "score"]
    assert ax.get_xlabel() == "record"


def test_an_unknown_key_is_answered_with_the_known_ones():
    with pytest.raises(DataError, match="'elbo'; the records hold loss, step"):
        plot_history([{"step": 0, "loss": 1.0}], keys=["elbo"])


@pytest.mark.parametrize("arguments", [{"history": []}, {"keys": ()}, {"smooth": 0}])
def test_bad_history_is_refused(arguments):
    given = {"history": [{"loss": 1.0}]} | arguments
    with pytest.raises(DataError):
        plot_history(given.pop("history"), **given)


def test_confusion_puts_matched_clusters_on_the_diagonal():
    truth = np.repeat([0, 1, 2], [3, 4, 5])
    predicted = np.array([2] * 3 + [0] * 3 + [9] + [1] * 4 + [-1])
    counts, classes, clusters, accuracy = matched_confusion(truth, predicted)
    assert clusters.tolist() == [2, 0, 1, 9, -1]
    assert counts.tolist() == [[3, 0, 0, 0, 0], [0, 3, 0, 1, 0], [0, 0, 4, 0, 1]]
    assert classes.tolist() == [0, 1, 2]
    assert accuracy == pytest.approx(10 / 12)


def test_confusion_matching_is_the_best_overall_not_greedy():
    # Greedy would take 6 for class 0 and leave 0 for class 1: 6 rows instead of 5 + 5.
    truth = np.repeat([0, 1], [11, 5])
    predicted = np.array([0] * 6 + [1] * 5 + [0] * 5)
    assert matched_confusion(truth, predicted)[3] == pytest.approx(10 / 16)


def test_noise_is_never_matched():
    counts, _, clusters, accuracy = matched_confusion([0, 0, 0], [-1, -1, 4])
    assert (clusters.tolist(), accuracy) == ([4, -1], pytest.approx(1 / 3))
    assert matched_confusion([0, 1], [-1, -1])[3] == 0.0
    assert counts.tolist() == [[1, 2]]


def test_confusion_shows_counts_and_names():
    ax = plot_confusion([0, 0, 1], [1, 1, 0], class_names=["$cat$_", "dog"])
    render(ax)
    assert [text.get_text() for text in ax.texts] == ["2", "1"]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["$cat$_", "dog"]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1", "0"]


def test_large_confusion_is_drawn_without_numbers():
    ax = plot_confusion(np.arange(60), np.arange(60))
    render(ax)
    assert not ax.texts
    assert len(ax.get_xticklabels()) <= 30


def test_confusion_refuses_other_lengths_and_names():
    with pytest.raises(DataError, match="2 entries for 3 rows"):
        plot_confusion([0, 0, 1], [0, 1])
    with pytest.raises(DataError, match="1 names for 2"):
        plot_confusion([0, 1], [0, 1], class_names=["a"])


def test_posterior_over_k_reads_mappings_and_arrays_alike():
    both = [
        [(round(b.get_x() + 0.4), b.get_height()) for b in plot_k_posterior(given).patches]
        for given in ({4: 0.5, 2: 0.5}, [0, 0, 0.5, 0, 0.5, 0, 0])
    ]
    assert both[0] == both[1] == [(2, 0.5), (3, 0.0), (4, 0.5)]


def test_the_true_k_is_in_view_even_outside_the_support():
    ax = plot_k_posterior({3: 1.0}, truth=7)
    low, high = ax.get_xlim()
    assert low < 3 < 7 < high
    assert ax.get_legend().get_texts()[0].get_text() == "truth: 7"


@pytest.mark.parametrize("bad", [{}, [0.0, 0.0], [-0.1, 1.1], [0.9, 0.9], [np.nan, 1.0]])
def test_bad_posterior_is_refused(bad):
    with pytest.raises(DataError, match="nonnegative"):
        plot_k_posterior(bad)
