"""Pictures of posteriors and of filtering: what is drawn, for ordinary data and at the edges."""

from itertools import pairwise
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from asterism.exceptions import DataError
from asterism.functional.posterior import coassignment, count_posterior
from asterism.plotting import cluster_color, plot_k_posterior
from asterism.plotting.certainty import similarity_order
from asterism.plotting.filtering import plot_filtering
from asterism.plotting.posterior import (
    plot_coassignment,
    plot_confidence,
    plot_posterior_samples,
    similarity_shown,
)

SAMPLES = np.array([[0, 0, 1, 1, 2], [1, 1, 0, 0, 2], [0, 0, 0, 0, 1], [0, 0, 1, 1, 1]])
LABELS = np.array([0, 0, 1, 1, 2])
X = np.array([[0.0, 0.0], [0.0, 1.0], [5.0, 5.0], [5.0, 6.0], [9.0, 0.0]])


class Fitted:
    """What a posterior method keeps."""

    partitions_ = SAMPLES
    labels_ = np.array([1, 1, 0, 0, 2])

    def get_params(self):
        return {}


def render(axes):
    np.ravel(axes)[0].figure.canvas.draw()


def looks(ax):
    """Colour of every point drawn in the first scatters, the rings left out."""
    found = {}
    for collection in ax.collections:
        colors = collection.get_facecolors()
        for point, color in zip(collection.get_offsets(), colors, strict=len(colors) > 0):
            found[tuple(np.asarray(point).tolist())] = color
    return found


def ringed(ax):
    return {tuple(p) for p in np.asarray(ax.collections[-1].get_offsets()).tolist()}


# --- pairs ---------------------------------------------------------------------------------


def test_coassignment_is_drawn_by_cluster():
    ax = plot_coassignment(SAMPLES, LABELS)
    render(ax)
    P = coassignment(SAMPLES)
    order = similarity_order(P, LABELS)
    np.testing.assert_allclose(ax.images[0].get_array(), P[np.ix_(order, order)])
    assert [text.get_text() for text in ax.get_yticklabels()] == ["0", "1", "2"]
    assert ax.get_xlabel() == "5 rows, by cluster"


def test_weights_of_partitions_count():
    weights = [1, 0, 0, 0]
    drawn = plot_coassignment(SAMPLES, LABELS, weights=weights).images[0].get_array()
    np.testing.assert_array_equal(drawn, LABELS[:, None] == LABELS)


def test_an_estimator_brings_draws_and_labels():
    def sizes(ax):
        return [patch.get_height() for patch in ax.patches if not patch.get_fill()]

    assert sizes(plot_coassignment(Fitted())) == [2, 2, 1]
    assert sizes(plot_coassignment(Fitted(), [0, 0, 0, 1, 1])) == [3, 2]
    axes = Figure().subplots()
    assert plot_coassignment(Fitted(), ax=axes) is axes


def test_an_estimator_of_pair_probabilities_is_drawn_too():
    class Pairs(Fitted):
        partitions_ = None
        similarity_ = coassignment(SAMPLES)
        context_labels_ = LABELS
        context_indices_ = np.arange(5)

    drawn = plot_coassignment(Pairs()).images[0].get_array()
    np.testing.assert_allclose(drawn, plot_coassignment(SAMPLES, LABELS).images[0].get_array())
    del Pairs.similarity_
    with pytest.raises(DataError, match="Pairs has no similarity_: fit it first"):
        plot_coassignment(Pairs())


def test_of_many_rows_some_of_every_cluster_are_drawn():
    labels = np.repeat([0, 1, 2], [3000, 900, 3])
    samples = np.stack([labels, np.minimum(labels, 1)])
    P, rows = similarity_shown(samples, labels, max_rows=100)
    assert P.shape == (len(rows), len(rows))
    assert len(rows) <= 100
    assert set(labels[rows]) == {0, 1, 2}
    together = samples[:, rows, None] == samples[:, None, rows]
    np.testing.assert_array_equal(P, together.mean(axis=0))
    ax = plot_coassignment(samples, labels, max_rows=100)
    assert ax.get_xlabel() == f"{len(rows)} of 3,903 rows, by cluster"
    assert plot_coassignment(samples, max_rows=50).images[0].get_array().shape == (50, 50)


def test_counts_of_draws_are_what_the_bars_show():
    bars = plot_k_posterior(count_posterior(SAMPLES)).patches
    assert [(round(b.get_center()[0]), b.get_height()) for b in bars] == [(2, 0.5), (3, 0.5)]


# --- rows ----------------------------------------------------------------------------------


def test_confidences_are_ranked_within_their_cluster_noise_last():
    confidence = np.array([0.2, 0.9, 0.5, 0.7, 0.4])
    ax = plot_confidence(confidence, [1, 0, 1, 0, -1])
    render(ax)
    values = [patch.get_data().values.tolist() for patch in ax.patches]
    assert values == [[0.9, 0.7], [0.5, 0.2], [0.4]]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["0  (2)", "1  (2)", "noise  (1)"]
    assert [text.get_text() for text in ax.texts] == ["0.80", "0.35", "0.40", "mean"]
    assert ax.patches[1].get_facecolor()[:3] == pytest.approx(to_rgb(cluster_color(1)))
    assert ax.get_lines()[0].get_xdata()[0] == pytest.approx(confidence.mean())
    assert ax.get_title(loc="left") == "mean of all rows 0.54"
    # Blocks lie below each other, and the first is at the top.
    edges = [patch.get_data().edges for patch in ax.patches]
    assert all(a[-1] < b[0] for a, b in pairwise(edges))
    assert ax.get_ylim()[0] > ax.get_ylim()[1]


def test_many_rows_are_thinned_to_what_can_be_seen():
    confidence = np.linspace(0, 1, 50_001)
    (patch,) = plot_confidence(confidence, np.zeros(50_001, dtype=int)).patches
    values, edges, _ = patch.get_data()
    assert len(values) <= 1000
    assert edges[-1] == 50_001
    np.testing.assert_allclose(values, 1 - (edges[:-1] + edges[1:]) / 2 / 50_001, atol=1e-3)


def test_responsibilities_and_axes_will_do():
    axes = Figure().subplots()
    assert plot_confidence([[0.9, 0.1], [0.3, 0.7]], [0, 1], ax=axes) is axes
    assert [patch.get_data().values.item() for patch in axes.patches] == [0.9, 0.7]


@pytest.mark.parametrize("n_clusters", [1, 40, 200])
def test_any_number_of_clusters_has_its_block(n_clusters):
    labels = np.arange(400) % n_clusters
    ax = plot_confidence(np.ones(400), labels)
    render(ax)
    assert len(ax.patches) == n_clusters
    assert len(ax.get_yticks()) <= 31


# --- partitions ----------------------------------------------------------------------------


def test_distinct_partitions_are_shown_most_frequent_first():
    axes = plot_posterior_samples(X, SAMPLES, [-1.0, -3.0, -5.5, -4.0])
    render(axes)
    # Of the two that were drawn once the likelier comes first; equal draws share their mean.
    titles = [(ax.get_title(loc="left"), ax.get_title(loc="right")) for ax in axes]
    assert titles == [
        ("K = 3, 50%", "log p = −2.0"),
        ("K = 2, 25%", "log p = −4.0"),
        ("K = 2, 25%", "log p = −5.5"),
    ]


def test_every_panel_shows_every_row_in_its_place():
    axes = plot_posterior_samples(X, SAMPLES, feature_names=["a", "b"])
    for ax in axes:
        assert set(looks(ax)) >= {tuple(row) for row in X.tolist()}
        assert ax.get_xlim() == axes[0].get_xlim()
        assert ax.get_ylim() == axes[0].get_ylim()
        assert ax.get_title(loc="right") == ""
    assert (axes[0].get_xlabel(), axes[0].get_ylabel()) == ("a", "b")
    assert not any(ax.get_xlabel() for ax in axes[1:])


def test_colours_follow_the_reference_and_rows_elsewhere_are_ringed():
    axes = plot_posterior_samples(X, SAMPLES, labels=LABELS)
    for ax, renamed in zip(axes, ([0, 0, 1, 1, 2], None, [0, 0, 1, 1, 1]), strict=True):
        if renamed is None:  # two clusters of two that are one: either name is as good
            assert len(ringed(ax)) == 2
            continue
        for row, k in zip(X.tolist(), renamed, strict=True):
            assert looks(ax)[tuple(row)][:3] == pytest.approx(to_rgb(cluster_color(k)))
        elsewhere = np.flatnonzero(np.array(renamed) != LABELS)
        assert ringed(ax) == {tuple(row) for row in X[elsewhere].tolist()}


def test_names_of_the_reference_do_not_matter_to_rings():
    axes = plot_posterior_samples(X, [[2, 2, 0, 0, 1]], labels=[1, 1, 0, 0, 4])
    assert ringed(axes[0]) == set()
    axes = plot_posterior_samples(X, [[2, 2, 0, 0, 1]], labels=[1, 1, 0, 0, -1])
    assert ringed(axes[0]) == set()


@pytest.mark.parametrize(
    ("n_shown", "shape"),
    [(1, (1, 1)), (3, (1, 3)), (4, (1, 4)), (5, (2, 3)), (8, (2, 4)), (9, (3, 3))],
)
def test_panels_fill_their_grid(n_shown, shape):
    samples = np.random.default_rng(0).integers(5, size=(50, 5))
    axes = plot_posterior_samples(X, samples, n_shown=n_shown)
    render(axes)
    assert axes.shape == (n_shown,)
    grid = axes[0].get_subplotspec().get_gridspec()
    assert (grid.nrows, grid.ncols) == shape
    assert sum(ax.get_visible() for ax in axes[0].figure.axes) == n_shown


@pytest.mark.parametrize("dim", [1, 2, 7])
def test_any_number_of_features_is_placed(dim):
    rows = np.random.default_rng(0).normal(size=(5, dim))
    axes = plot_posterior_samples(rows, SAMPLES, n_shown=2)
    render(axes)
    points = np.array(list(looks(axes[0])))
    assert np.isfinite(points).all()
    if dim < 3:
        assert sorted(points[:5, 0]) == pytest.approx(sorted(rows[:, 0]))


def test_large_tables_are_thinned():
    labels = np.repeat([0, 1], [19_990, 10])
    rows = np.random.default_rng(0).normal(size=(20_000, 2))
    axes = plot_posterior_samples(rows, [labels, 1 - labels], max_points=200)
    assert len(axes) == 1
    assert 100 <= len(looks(axes[0])) <= 200


# --- filtering -----------------------------------------------------------------------------


class Step(NamedTuple):
    """As a method may have it, with a field of its own."""

    indices: np.ndarray
    probabilities: np.ndarray
    taken: np.ndarray
    forced: bool
    center: np.ndarray | None = None


def steps(kind=Step):
    return [
        kind(
            np.arange(5), np.array([0.9, 0.8, 0.1, 0.3, 0.0]), np.array([1, 1, 0, 0, 0]) > 0, False
        ),
        kind(np.array([2, 3, 4]), np.array([0.9, 0.6, 0.2]), np.array([True, True, False]), False),
        kind(np.array([4]), np.array([0.4]), np.array([True]), True),
    ]


def as_mapping(*values):
    return dict(zip(Step._fields, values, strict=False))


def as_object(*values):
    return SimpleNamespace(**as_mapping(*values))


@pytest.mark.parametrize("kind", [Step, as_mapping, as_object])
def test_a_panel_a_step_and_one_for_the_result(kind):
    axes = plot_filtering(X, steps(kind))
    render(axes)
    assert [ax.get_title(loc="left") for ax in axes] == [
        "step 1",
        "step 2",
        "step 3 (forced)",
        "all steps",
    ]
    assert [ax.get_title(loc="right") for ax in axes] == [
        "2 of 5 rows",
        "2 of 3 rows",
        "1 of 1 row",
        "3 clusters",
    ]


def test_gone_rows_are_faint_and_taken_ones_on_top():
    gone, left, taken = plot_filtering(X, steps())[1].collections

    def rows(collection):
        return {tuple(p) for p in np.asarray(collection.get_offsets()).tolist()}

    assert rows(gone) == {tuple(row) for row in X[:2].tolist()}
    assert rows(taken) == {tuple(row) for row in X[2:4].tolist()}
    assert rows(left) == {tuple(X[4].tolist())}
    assert (gone.get_facecolors()[:, 3] < 0.3).all()
    assert gone.get_facecolors()[0, :3] == pytest.approx(to_rgb(cluster_color(0)))
    assert taken.get_linewidths()[0] > left.get_linewidths()[0]


def test_depth_of_colour_is_the_probability():
    _, left, taken = plot_filtering(X, steps())[0].collections
    hue = np.array(to_rgb(cluster_color(0)))
    probability = dict(zip(map(tuple, X.tolist()), [0.9, 0.8, 0.1, 0.3, 0.0], strict=True))
    for collection in (left, taken):
        offsets = np.asarray(collection.get_offsets()).tolist()
        for point, color in zip(offsets, collection.get_facecolors(), strict=True):
            paleness = (color[:3] - hue) / (1 - hue)
            assert paleness == pytest.approx(0.85 * (1 - probability[tuple(point)]), abs=1e-6)


def test_the_result_has_the_colours_of_the_steps():
    shown = looks(plot_filtering(X, steps())[-1])
    for row, k in zip(X.tolist(), [0, 0, 1, 1, 2], strict=True):
        assert shown[tuple(row)][:3] == pytest.approx(to_rgb(cluster_color(k)))


def test_steps_left_out_and_rows_left_over_are_told():
    axes = plot_filtering(X, steps()[:2], max_steps=1)
    assert [ax.get_title(loc="left") for ax in axes] == ["step 1", "… 1 more"]
    assert axes[-1].get_title(loc="right") == "2 clusters, 1 left"
    render(axes)


@pytest.mark.parametrize("dim", [1, 2, 6])
def test_filtering_of_any_size_is_drawn(dim):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3000, dim))
    p = rng.uniform(size=3000)
    path = [Step(np.arange(3000), p, p > 0.5, False)]
    axes = plot_filtering(rows, path, max_points=300)
    render(axes)
    assert sum(len(c.get_offsets()) for c in axes[0].collections) <= 300


# --- bad input -----------------------------------------------------------------------------


def changed(**values):
    return [steps()[0]._replace(**values)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plot_coassignment(np.zeros(3, dtype=int)), r"\(samples, rows\).*\(3,\)"),
        (lambda: plot_coassignment(SAMPLES, [0, 1]), "2 entries for 5 rows"),
        (lambda: plot_coassignment(SAMPLES, max_rows=0), "max_rows"),
        (lambda: plot_coassignment(SAMPLES - 1), "got -1 to 1"),
        (lambda: plot_confidence(None, [0, 1]), "confidence is None"),
        (lambda: plot_confidence([0.5], [0, 1]), r"shape \(2,\)"),
        (lambda: plot_confidence([0.5, 1.5], [0, 1]), r"\[0, 1\]"),
        (lambda: plot_posterior_samples(X[:4], SAMPLES), "5 rows, but X has 4"),
        (lambda: plot_posterior_samples(X, SAMPLES, [0.0]), r"4 numbers.*\(1,\)"),
        (lambda: plot_posterior_samples(X, SAMPLES, [0, 0, 0, np.nan]), "NaN"),
        (lambda: plot_posterior_samples(X, SAMPLES, n_shown=0), "n_shown"),
        (lambda: plot_posterior_samples(X, SAMPLES, max_points=True), "max_points"),
        (lambda: plot_posterior_samples(X, SAMPLES, projection="umap"), "'umap'"),
        (lambda: plot_posterior_samples(X, SAMPLES, labels=[0]), "1 entries for 5 rows"),
        (lambda: plot_filtering(X, []), "steps is empty"),
        (
            lambda: plot_filtering(X, [{"indices": [0]}]),
            "lacks probabilities, taken: a step",
        ),
        (lambda: plot_filtering(X, [(1, 2, 3)]), "step 1 lacks"),
        (lambda: plot_filtering(X[:3], steps()), "0 to 4, but X has 3 rows"),
        (lambda: plot_filtering(X, changed(taken=[True])), r"\(1,\) for 5 rows left"),
        (lambda: plot_filtering(X, changed(probabilities=[2.0] * 5)), "probabilities of step 1"),
        (lambda: plot_filtering(X, changed(probabilities=None)), "step 1 lacks probabilities"),
        (lambda: plot_filtering(X, changed(indices=[0.5] * 5)), "row numbers"),
        (lambda: plot_filtering(X, steps(), max_steps=0), "max_steps"),
    ],
)
def test_bad_input_is_refused_with_its_value(call, message):
    with pytest.raises(DataError, match=message):
        call()


def test_panels_may_be_drawn_on_a_figure_of_ones_own():
    for draw in (
        lambda figure: plot_filtering(X, steps(), figure=figure),
        lambda figure: plot_posterior_samples(X, SAMPLES, figure=figure),
    ):
        figure = Figure(figsize=(7, 5))
        axes = draw(figure)
        assert all(ax.figure is figure for ax in axes)
        assert figure.get_size_inches().tolist() == [7, 5]
