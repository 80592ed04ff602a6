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
from asterism.plotting.projection import stratified_subsample
from asterism.plotting.style import cluster_marker


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
