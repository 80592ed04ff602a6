"""DeepDPM: clusters that split and merge, as its users see them."""

import itertools

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import asterism
from asterism import DeepDPM
from asterism.exceptions import DataError
from asterism.plotting import plot_split_merge
from conftest import LIGHT

QUICK = {**LIGHT["deepdpm"], "random_state": 0}
LONGER = {**QUICK, "epoch_steps": 20}  # where rows must be where the mixture has them


def clouds(n=600, centers=6, dim=3, seed=4):
    return make_blobs(n, dim, centers=centers, cluster_std=0.5, random_state=seed)


# --- growth -----------------------------------------------------------------------------------


def test_growth_ends_on_merges_and_tells_every_move():
    X, _ = clouds()
    model = DeepDPM(**QUICK).fit(X)
    moves = model.split_merge_history_
    rounds = [move["move"] for move in moves if move["move"] != "drop"]
    assert rounds == ["split", "merge"] * (len(rounds) // 2)
    assert moves[-1]["move"] != "split"
    assert moves[-1]["n_after"] == model.n_clusters_
    for before, after in itertools.pairwise(moves):
        assert after["n_before"] == before["n_after"]


# --- the estimator ----------------------------------------------------------------------------


@pytest.mark.parametrize("init_n_clusters", [1, 3, 20])
def test_number_found_does_not_depend_on_the_start(init_n_clusters):
    X, y = clouds()
    model = DeepDPM(init_n_clusters, **QUICK).fit(X)
    assert model.n_clusters_ == 6
    assert adjusted_rand_score(y, model.labels_) > 0.99


@pytest.mark.parametrize("search", ["nets", "em"])
@pytest.mark.parametrize("covariance", ["full", "diagonal", "isotropic"])
def test_searches_and_covariances(search, covariance):
    X, y = clouds()
    # The small nets need their steps to find halves by themselves.
    model = DeepDPM(search=search, covariance=covariance, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    assert model.covariances_.shape[1:] == ((3, 3) if covariance == "full" else (3,))


@pytest.mark.parametrize("scaling", ["none", "standard", "rows"])
def test_units_do_not_matter(scaling):
    X, _ = clouds()
    X = X + 30 if scaling == "rows" else X
    one, other = (DeepDPM(scaling=scaling, **QUICK).fit(part) for part in (X, 1e6 * X))
    assert one.n_clusters_ == other.n_clusters_
    assert adjusted_rand_score(one.labels_, other.labels_) == 1


def test_one_gaussian_is_one_cluster():
    X = np.random.default_rng(0).normal(size=(500, 4))
    model = DeepDPM(**QUICK).fit(X)
    assert model.n_clusters_ == 1
    assert model.predict_proba(X[:3]).tolist() == [[1.0], [1.0], [1.0]]


def test_more_rows_do_not_mean_more_clusters_unless_asked():
    """A ring, far from Gaussian: the plain model cuts it up further as rows are added."""
    chance = np.random.default_rng(0)
    angle = chance.uniform(0, 2 * np.pi, 12_000)
    ring = np.column_stack([np.cos(angle), np.sin(angle)]) * 3 + chance.normal(0, 0.4, (12_000, 2))

    def found(n, **settings):
        return DeepDPM(1, prior="data", **settings, **QUICK).fit(ring[:n]).n_clusters_

    plain = {"parsimony": 0, "coarsening": None}
    assert found(12_000, **plain) > found(100, **plain)
    assert found(12_000) <= found(100)
    assert found(12_000, parsimony=0, coarsening=100) < found(12_000, **plain)


def test_parsimony_leaves_parts_of_clusters_together_that_evidence_parts():
    """Two rings that are far apart, each of which evidence alone cuts up."""
    chance = np.random.default_rng(0)
    angle = chance.uniform(0, 2 * np.pi, 3000)
    ring = np.column_stack([np.cos(angle), np.sin(angle)]) + chance.normal(0, 0.2, (3000, 2))
    y = np.arange(3000) % 2
    X = ring + 40 * y[:, None]
    plain, parsimonious = (DeepDPM(parsimony=f, **QUICK).fit(X) for f in (0, 0.2))
    assert plain.n_clusters_ > parsimonious.n_clusters_ == 2
    assert adjusted_rand_score(y, parsimonious.labels_) == 1
    assert (parsimonious.split_ratios_ < 0).all()


@pytest.mark.parametrize("columns", [3, 12])
def test_groups_that_are_far_apart_do_not_hide_the_clusters_within(columns):
    X = np.random.default_rng(0).standard_normal((1200, columns))
    y = np.arange(4).repeat(300)
    X[:, 0] += 100 * (y // 2)
    X[:, 1] += 7 * (y % 2)
    model = DeepDPM(**QUICK).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.99


def test_many_small_clusters_in_many_columns_are_told_apart():
    chance = np.random.default_rng(0)
    y = np.arange(40).repeat(40)
    X = 1.2 * chance.standard_normal((40, 24))[y] + chance.standard_normal((1600, 24))
    model = DeepDPM(**QUICK).fit(X)
    assert abs(model.n_clusters_ - 40) <= 2
    assert adjusted_rand_score(y, model.labels_) > 0.85


def test_almost_no_evidence_splits_nothing():
    X, _ = clouds(300)
    assert DeepDPM(1, coarsening=0.01, **QUICK).fit(X).n_clusters_ == 1


def test_mixture_is_told_in_the_users_units_and_scores_them():
    X, _ = clouds(dim=2)
    X = X * [1.0, 100.0] + 7
    model = DeepDPM(scaling="standard", **LONGER).fit(X)
    for k in range(model.n_clusters_):
        own = X[model.labels_ == k]
        np.testing.assert_allclose(model.means_[k], own.mean(axis=0), rtol=0.05, atol=0.1)
        np.testing.assert_allclose(np.diag(model.covariances_[k]), own.var(axis=0), rtol=0.6)
    assert model.weights_.sum() == pytest.approx(1, abs=1e-6)
    again = DeepDPM(scaling="standard", **LONGER).fit(X / 10)
    assert again.score(X / 10) == pytest.approx(model.score(X) + 2 * np.log(10), abs=0.05)


@pytest.mark.parametrize("mean_strength", [None, 0.01])
def test_split_scales_say_where_the_next_cluster_would_come_from(mean_strength):
    X, _ = clouds(n=60, centers=3)
    settings = {"init_n_clusters": 1, "mean_strength": mean_strength, **QUICK}
    model = DeepDPM(prior_scale=3000.0, **settings).fit(X)
    assert model.n_clusters_ == 1
    assert model.split_ratios_[0] < 0
    finer, coarser = (
        DeepDPM(prior_scale=factor * model.split_scales_[0], **settings).fit(X).n_clusters_
        for factor in (0.9, 2.0)
    )
    assert finer > 1
    assert coarser == 1


def test_wide_small_tables_get_simpler_covariances():
    X = np.random.default_rng(0).normal(size=(700, 25))
    shapes = [
        DeepDPM(prior="data", **QUICK).fit(part).covariances_.shape[1:]
        for part in (X[:, :10], X[:600, :10], X)
    ]
    assert shapes == [(10, 10), (10,), (25,)]


def test_outliers_of_the_start_are_no_clusters():
    X, y = make_blobs(300, centers=4, cluster_std=0.3, center_box=(-6, 6), random_state=3)
    X = np.r_[X, [[60.0, 60.0]]]
    model = DeepDPM(8, min_rows=5, **LONGER).fit(X)
    assert np.bincount(model.labels_).min() >= 5
    assert adjusted_rand_score(y, model.labels_[:-1]) > 0.95
    assert model.covariance_ == "full"


def test_many_columns_do_not_forbid_small_halves():
    centers = 4 * np.eye(40)[:3]
    X, y = make_blobs([30] * 3, centers=centers, cluster_std=0.3, random_state=0)
    model = DeepDPM(1, **QUICK).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1


def test_max_clusters_takes_the_splits_that_pay_most():
    chance = np.random.default_rng(0)
    cloud = chance.normal([40, 0], size=(300, 2))
    group, _ = make_blobs(300, centers=[[0, 0], [0, 9]], cluster_std=0.5, random_state=0)
    for X in (np.concatenate([cloud, group]), np.concatenate([group, cloud])):
        model = DeepDPM(2, max_clusters=3, **QUICK).fit(X)
        assert model.n_clusters_ == 3
        assert sorted(np.bincount(model.labels_)) == [150, 150, 300]
    assert DeepDPM(1, max_clusters=1, **QUICK).fit(X).n_clusters_ == 1
    with pytest.raises(DataError, match="init_n_clusters=4 is more than max_clusters=3"):
        DeepDPM(4, max_clusters=3).fit(X)


def test_far_rows_do_not_hide_the_cut_between_clusters():
    X, y = make_blobs([150, 150], centers=[[0, 0], [6.5, 0]], random_state=0)
    X = np.concatenate([X, [[40.0, 40.0], [41.0, 40.0]]])
    for seed in range(3):
        model = DeepDPM(1, min_rows=5, epoch_steps=20, random_state=seed).fit(X)
        assert model.n_clusters_ >= 2
        assert adjusted_rand_score(y, model.labels_[:300]) > 0.9


@pytest.mark.parametrize("settings", [{"prior": "data"}, {"init_n_clusters": 20}, {}], ids=str)
def test_rows_that_count_for_nothing_are_one_cluster(settings):
    X, _ = clouds()
    assert DeepDPM(coarsening=0.01, **settings, **QUICK).fit(X).n_clusters_ == 1


def test_prior_of_the_authors_is_in_the_rows_own_units():
    X, _ = clouds()
    X = X + 30
    settings = {"prior": "reference", "scaling": "rows", **QUICK}
    one = DeepDPM(parsimony=0, **settings).fit(X)
    assert one.n_clusters_ == 6
    assert one.factor_.tolist() == [1, 1, 1]
    stretched = DeepDPM(prior="reference", **QUICK).fit(1e-3 * X)
    assert stretched.n_clusters_ < DeepDPM(prior="reference", **QUICK).fit(X).n_clusters_
    moved = DeepDPM(prior="reference", **QUICK).fit(X + 1e7)
    assert moved.n_clusters_ > 1


@pytest.mark.parametrize(
    "settings",
    [
        {"acceptance": "random"},
        {"kl": "reverse"},
        {"n_neighbors": 3},
        {"concentration": 1000.0},
        {"mean_strength": 1e-4},
        {"hidden_dim": 16},
        {"batch_size": 10_000},
        {"degrees_of_freedom": 9},
    ],
    ids=str,
)
def test_settings_that_should_not_change_a_clear_answer(settings):
    X, y = clouds()
    model = DeepDPM(**{**QUICK, "patience": 2, **settings}).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    if "hidden_dim" in settings:
        assert model.module_.hidden.out_features == model.module_.sub[0].shape[1] == 16


def test_small_halves_are_not_made():
    X, _ = make_blobs([200, 12], centers=[[0, 0], [30, 0]], cluster_std=0.5, random_state=0)
    assert DeepDPM(1, min_rows=5, **QUICK).fit(X).n_clusters_ == 2
    assert DeepDPM(1, min_rows=20, **QUICK).fit(X).n_clusters_ == 1


@pytest.mark.parametrize(("smallest", "most"), [(100, 6), (101, 5), (250, 2), (400, 1)])
def test_no_cluster_is_smaller_than_asked_however_a_fit_begins(smallest, most):
    X, _ = clouds()  # six of a hundred rows
    sizes = np.bincount(DeepDPM(min_rows=smallest, **QUICK).fit(X).labels_)
    assert 1 <= len(sizes) <= most
    assert sizes.min() >= smallest


def test_scores_of_rows_tell_outliers_and_have_the_score_for_their_mean():
    X, _ = clouds()
    model = DeepDPM(**QUICK).fit(X)
    scores = model.score_samples(X)
    assert scores.mean() == pytest.approx(model.score(X))
    assert model.score_samples(X[:1] + 50)[0] < scores.min()
    wide = np.hstack([X, 0.1 * np.random.default_rng(0).normal(size=(len(X), 40))])
    reduced = DeepDPM(**QUICK).fit(wide)
    assert reduced.axes_.shape == (43, 8)  # the fewest that are tried: forty columns are noise
    np.testing.assert_allclose(reduced.score_samples(wide[7:9]), reduced.score_samples(wide)[7:9])


def test_a_fitted_model_reads_rows_as_it_was_fitted():
    X, _ = clouds()
    model = DeepDPM(**QUICK).fit(X)
    model.set_params(scaling="rows")
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_the_scale_of_the_authors_prior_may_be_another():
    X, _ = clouds()
    fits = [
        DeepDPM(prior="reference", prior_scale=scale, **QUICK).fit(X)
        for scale in (None, 0.005, 500.0)
    ]
    np.testing.assert_array_equal(fits[0].labels_, fits[1].labels_)
    assert fits[2].n_clusters_ < fits[0].n_clusters_


def test_no_rounds_leave_the_start_without_a_word(recwarn):
    model = DeepDPM(3, **{**QUICK, "max_rounds": 0}).fit(clouds()[0])
    assert model.n_clusters_ == 3
    assert model.split_merge_history_ == []
    assert not [warning for warning in recwarn if warning.category is ConvergenceWarning]


def test_rows_beyond_all_bounds_get_an_answer():
    X, _ = clouds()
    model = DeepDPM(**QUICK).fit(X)
    far = np.array([[1e60, 0.0, 0.0], [-1e45, 1e45, 0.0]])
    np.testing.assert_allclose(model.predict_proba(far).sum(axis=1), 1)
    assert np.isfinite(model.score(far))


def test_saved_model_answers_alike(tmp_path):
    X, _ = clouds()
    model = DeepDPM(**QUICK).fit(X)
    model.save(tmp_path / "model")
    again = asterism.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.score(X) == model.score(X)
    assert again.split_merge_history_ == model.split_merge_history_


def test_net_imitates_the_mixture_it_scores_by():
    X, _ = clouds(n=2000)
    model = DeepDPM(random_state=0).fit(X)
    x = torch.from_numpy(model._single(X))
    log_r = torch.log_softmax(model.module_.mixture_log_prob(x), dim=1)
    assert (log_r.argmax(dim=1).numpy() == model.labels_).mean() > 0.99


def test_too_few_degrees_of_freedom_are_refused():
    X, _ = clouds()
    with pytest.raises(DataError, match="at least the 3 columns"):
        DeepDPM(prior="data", degrees_of_freedom=2).fit(X)
    with pytest.raises(DataError, match="must be above 4, one more than the 3 axes"):
        DeepDPM(degrees_of_freedom=4).fit(X)
    assert DeepDPM(degrees_of_freedom=40, **QUICK).fit(X).n_clusters_ == 6


def test_unsettled_fit_warns():
    with pytest.warns(ConvergenceWarning, match="max_rounds=1"):
        DeepDPM(**{**QUICK, "max_rounds": 1}).fit(clouds()[0])


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize(
    "X",
    [
        np.repeat(np.random.default_rng(0).normal(size=(4, 3)), 30, axis=0),
        np.column_stack([np.random.default_rng(0).normal(size=(50, 2)), np.ones(50)]),
        np.random.default_rng(0).normal(size=(10, 60)),
        np.ones((20, 2)),
    ],
    ids=["duplicates", "constant column", "more columns than rows", "all rows equal"],
)
def test_degenerate_rows(X, covariance):
    for n_components in ("auto", None):
        model = DeepDPM(covariance=covariance, n_components=n_components, **QUICK).fit(X)
        assert np.isfinite(model.predict_proba(X)).all()
        assert np.isfinite(model.covariances_).all()
        assert np.isfinite(model.score(X))
        if model.covariances_.ndim == 3:
            assert (np.linalg.eigvalsh(model.covariances_) > 0).all()
        else:
            assert (model.covariances_ > 0).all()


# --- the picture ------------------------------------------------------------------------------


def test_moves_are_drawn_round_by_round():
    model = DeepDPM(1, **QUICK).fit(clouds()[0])
    counts, ratios = plot_split_merge(model, n_true=6)
    assert all(tick == int(tick) for tick in counts.get_yticks())
    moved = sum(move["n_after"] != move["n_before"] for move in model.split_merge_history_)
    filled = [
        part for part in counts.collections if part.get_label() in ("splits", "merges", "drops")
    ]
    assert sum(len(part.get_offsets()) for part in filled) == moved
    assert sum(len(part.get_offsets()) for part in counts.collections) == len(
        model.split_merge_history_
    )
    assert ratios.get_yscale() == "symlog"


def test_drops_are_drawn_where_there_are_any():
    move = {"move": "drop", "n_before": 3, "n_after": 2, "best_log_ratio": None}
    counts, ratios = plot_split_merge([move, {**move, "move": "merge", "n_before": 2}])
    labels = [part.get_label() for part in counts.collections]
    assert labels == ["no merge", "drops"]
    assert counts.collections[-1].get_offsets().tolist() == [[1, 2]]
    assert ratios.get_xlabel() == "move"


def test_a_fit_that_never_moved_is_drawn_in_whole_clusters_and_hollow_marks():
    move = {"move": "split", "n_before": 10, "n_after": 10, "best_log_ratio": -14.0}
    counts, ratios = plot_split_merge([move, {**move, "move": "merge", "best_log_ratio": -300.0}])
    counts.figure.canvas.draw()
    low, high = counts.get_ylim()
    assert [tick for tick in counts.get_yticks() if low < tick < high] == [10]
    assert [part.get_label() for part in counts.collections] == ["no split", "no merge"]
    faces = [part.get_facecolor()[0] for part in ratios.collections if len(part.get_offsets())]
    assert all(face.tolist() == [1, 1, 1, 1] for face in faces)
    assert len([tick for tick in ratios.get_yticks() if -300 <= tick <= -10]) >= 2


@pytest.mark.parametrize(
    ("history", "told"),
    [([], "empty"), ([{"move": "split"}], "lacks n_before"), ([{"move": "jump"}], "lacks")],
)
def test_a_history_that_is_none_is_refused(history, told):
    with pytest.raises(DataError, match=told):
        plot_split_merge(history)
