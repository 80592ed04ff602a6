"""Pictures: what is drawn, for ordinary data and at the edges."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from asterism.exceptions import DataError, MissingExtraError
from asterism.plotting import (
    cluster_color,
    new_axes,
    plot_clusters,
    plot_confusion,
    plot_embedding,
    plot_history,
    plot_k_posterior,
    plot_reliability,
    plot_similarity,
)
from asterism.plotting.certainty import reliability, similarity_order
from asterism.plotting.diagnostics import matched_confusion
from asterism.plotting.projection import stratified_subsample
from asterism.plotting.style import cluster_marker
from asterism.plotting.training import running_mean


def blobs(n_clusters, n_features, n_each=20, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(n_clusters), n_each)
    return rng.normal(size=(n_clusters, n_features))[labels] * 10 + rng.normal(
        size=(len(labels), n_features)
    ), labels


def drawn(ax):
    """Every point drawn on the axes, (n, 2)."""
    return np.concatenate([np.asarray(c.get_offsets()) for c in ax.collections])


def render(ax):
    ax.figure.canvas.draw()


def test_importing_plotting_loads_neither_matplotlib_nor_torch():
    code = "import asterism.plotting, sys; print({'matplotlib', 'torch'} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"


def test_missing_matplotlib_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"asterism\[plot\]"):
        new_axes()


def test_new_figures_are_unknown_to_pyplot():
    from matplotlib import pyplot

    before = pyplot.get_fignums()
    plot_clusters(np.eye(2), [0, 1])
    assert pyplot.get_fignums() == before


def test_every_function_draws_on_the_axes_given():
    axes = Figure().subplots(3, 2).ravel()
    assert plot_clusters(np.eye(2), [0, 1], ax=axes[0]) is axes[0]
    assert plot_history([{"loss": 1.0}], ax=axes[1]) is axes[1]
    assert plot_confusion([0, 1], [0, 1], ax=axes[2]) is axes[2]
    assert plot_k_posterior([0, 1.0], ax=axes[3]) is axes[3]
    assert plot_similarity(np.eye(2), [0, 1], ax=axes[4]) is axes[4]
    assert plot_reliability([0.5], [1], ax=axes[5]) is axes[5]


def test_sixty_clusters_have_sixty_looks_and_noise_is_grey():
    looks = {(cluster_color(k), cluster_marker(k)) for k in range(60)}
    assert len(looks) == 60
    assert len({cluster_color(k) for k in range(30)}) == 30
    red, green, blue = (cluster_color(-1)[i : i + 2] for i in (1, 3, 5))
    assert red == green == blue


# --- scatter -------------------------------------------------------------------------------


def test_two_features_are_drawn_as_they_are():
    X, labels = blobs(3, 2)
    ax = plot_clusters(X, labels, feature_names=["a", "b"])
    points = drawn(ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("a", "b")
    assert sorted(map(tuple, points)) == sorted(map(tuple, X))


def test_each_point_has_the_colour_of_its_cluster():
    from matplotlib.colors import to_rgb

    X, labels = blobs(2, 2)
    scatter = plot_clusters(X, labels).collections[0]
    label_of = {tuple(row): k for row, k in zip(X, labels, strict=True)}
    for point, color in zip(scatter.get_offsets(), scatter.get_facecolors(), strict=True):
        assert color[:3] == pytest.approx(to_rgb(cluster_color(label_of[tuple(point)])))


def test_many_features_are_projected_on_principal_components():
    # All variance along two axes in the ratio 9 : 1.
    X = np.zeros((4, 5))
    X[:2, 1], X[2:, 3] = [3, -3], [1, -1]
    ax = plot_clusters(X, [0, 0, 1, 1])
    assert ax.get_xlabel() == "PC 1 (90% of variance)"
    assert ax.get_ylabel() == "PC 2 (10% of variance)"
    assert np.abs(drawn(ax)).max(axis=0) == pytest.approx([3, 1])


def test_centers_are_projected_with_the_points():
    X, labels = blobs(3, 6)
    centers = np.array([X[labels == k].mean(axis=0) for k in range(3)])
    ax = plot_clusters(X, labels, centers=centers)
    *scatters, crosses = ax.collections
    points, marks = drawn(ax)[: len(X)], np.asarray(crosses.get_offsets())
    assert len(scatters) == 1
    assert marks.mean(axis=0) == pytest.approx(points.mean(axis=0), abs=1e-9)


def test_one_feature_is_a_histogram_over_a_strip():
    values = np.array([[0.0], [0.1], [0.2], [5.0]])
    ax = plot_clusters(values, [0, 0, 0, 1], feature_names=["age"])
    assert sum(bar.get_height() for bar in ax.patches) == 4
    points = drawn(ax)
    assert sorted(points[:, 0]) == pytest.approx([0, 0.1, 0.2, 5])
    assert (points[:, 1] < 0).all()
    assert min(ax.get_yticks()) >= 0


def test_less_certain_points_are_fainter_and_smaller():
    X = np.array([[0.0, 0.0], [1.0, 1.0]])
    scatter = plot_clusters(X, [0, 0], probability=[1.0, 0.5]).collections[0]
    certain = int(np.flatnonzero(scatter.get_offsets()[:, 0] == 0)[0])
    alpha, size = scatter.get_facecolors()[:, 3], scatter.get_sizes()
    assert alpha[certain] > alpha[1 - certain]
    assert size[certain] > size[1 - certain]


def test_responsibilities_count_by_their_greatest():
    X, labels = blobs(2, 2, n_each=2)
    responsibilities = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.0, 1.0]])
    both = [
        plot_clusters(X, labels, probability=p).collections[0].get_sizes()
        for p in (responsibilities, responsibilities.max(axis=1))
    ]
    assert np.array_equal(*both)


def test_legend_tells_sizes_with_noise_last():
    X = np.arange(12.0).reshape(6, 2)
    texts = plot_clusters(X, [0, -1, 0, 3, -1, 0]).get_legend().get_texts()
    assert [text.get_text() for text in texts] == ["0  (3)", "3  (1)", "noise  (2)"]


@pytest.mark.parametrize(("n_clusters", "has_legend"), [(12, True), (13, False), (60, False)])
def test_many_clusters_are_numbered_instead_of_listed(n_clusters, has_legend):
    X, labels = blobs(n_clusters, 2, n_each=3)
    ax = plot_clusters(X, labels)
    assert (ax.get_legend() is not None) == has_legend
    numbers = [text.get_text() for text in ax.texts]
    assert numbers == ([] if has_legend else [str(k) for k in range(n_clusters)])


def test_dollars_and_markup_in_names_are_plain_text():
    ax = plot_clusters(np.eye(2), [0, 1], feature_names=["$\\frac$", "<b>$x_$"])
    render(ax)  # a formula would raise here
    assert ax.get_xlabel() == "$\\frac$"


def test_large_data_are_thinned_and_rasterised():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 3))
    labels = np.zeros(len(X), dtype=int)
    labels[:4] = 1
    ax = plot_clusters(X, labels, max_points=1000)
    assert 900 <= len(drawn(ax)) <= 1000
    assert all(c.get_rasterized() for c in ax.collections)
    assert ax.get_legend().get_texts()[0].get_text() == "0  (99,996)"


@pytest.mark.parametrize("max_points", [10, 100, 999])
def test_subsample_keeps_rare_clusters_and_its_bound(max_points):
    labels = np.repeat([-1, 0, 1, 2, 3], [1, 1, 8, 490, 500])
    rows = stratified_subsample(labels, max_points)
    assert len(rows) <= max_points
    assert len(np.unique(rows)) == len(rows)
    assert set(labels[rows]) == {-1, 0, 1, 2, 3}
    assert np.array_equal(rows, stratified_subsample(labels, max_points))


def test_subsample_with_more_clusters_than_points_keeps_one_of_each():
    assert len(stratified_subsample(np.repeat(np.arange(50), 3), 10)) == 50


@pytest.mark.parametrize(
    "X",
    [
        np.zeros((1, 1)),
        np.zeros((1, 2)),
        np.zeros((1, 100)),
        np.zeros((2, 5)),
        np.ones((50, 1)),
        np.ones((50, 30)),
        np.random.default_rng(0).normal(size=(50, 100)),
        np.random.default_rng(0).normal(size=(3, 100)),
    ],
    ids=lambda X: str(X.shape),
)
@pytest.mark.parametrize("label", [0, -1, 7])
def test_edge_cases_are_drawn(X, label):
    ax = plot_clusters(X, np.full(len(X), label), probability=np.ones(len(X)))
    render(ax)
    assert np.isfinite(drawn(ax)).all()
    assert len(drawn(ax)) == len(X)


@pytest.mark.parametrize("n_rows", [2, 3, 5, 40])
def test_tsne_draws_any_number_of_rows(n_rows):
    X = np.random.default_rng(0).normal(size=(n_rows, 60))
    ax = plot_embedding(X, np.zeros(n_rows, dtype=int), "tsne")
    assert drawn(ax).shape == (n_rows, 2)
    assert ax.get_xlabel().startswith("t-SNE" if n_rows >= 4 else "PC")


def test_embedding_of_two_dimensions_is_not_projected():
    X, labels = blobs(2, 2)
    ax = plot_embedding(X, labels, "tsne")
    assert ax.get_ylabel() == "latent 2"
    assert drawn(ax).sum() == pytest.approx(X.sum())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": [0, 1, 2]}, "3 entries for 2 rows"),
        ({"labels": [0.5, 1.5]}, "vector of integers"),
        ({"labels": ["a", "b"]}, "vector of integers"),
        ({"X": [[0.0, np.nan], [1, 1]]}, "NaN"),
        ({"X": [0.0, 1.0]}, r"\(2,\)"),
        ({"X": np.zeros((0, 2)), "labels": []}, "at least one"),
        ({"probability": [0.5, 1.5]}, r"\[0, 1\]"),
        ({"probability": [0.5, np.nan]}, r"\[0, 1\]"),
        ({"probability": [0.5]}, r"shape \(2,\)"),
        ({"projection": "umap"}, "'umap'"),
        ({"feature_names": ["a"]}, "1 names for 2 features"),
        ({"centers": [[0.0]]}, "centers must have shape"),
        ({"projection": "tsne", "centers": [[0.0, 0.0]]}, "t-SNE cannot place"),
        ({"max_points": 0}, "max_points"),
    ],
)
def test_bad_input_is_refused_with_its_value(arguments, message):
    given = {"X": np.eye(2), "labels": [0, 1]} | arguments
    with pytest.raises(DataError, match=message):
        plot_clusters(given.pop("X"), given.pop("labels"), **given)


# --- history -------------------------------------------------------------------------------


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


# --- diagnostics ---------------------------------------------------------------------------


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


# --- certainty -----------------------------------------------------------------------------


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
