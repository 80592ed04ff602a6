"""The default estimator: contexts, knowledge, large tables, many data sets, invariances."""

import json
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import reference_predictions
from asterism import Asterism, load
from asterism.exceptions import DataError
from asterism.functional.affinities import assess, cluster_affinity, consensus, isolation
from asterism.functional.contexts import choose_context, spanned_axes, turn
from asterism.functional.nearest import nearest_distances
from asterism.methods.asterism import deciding, estimator, sampling


def blobs(n=300, centers=4, dim=3, seed=0, spread=0.6):
    return make_blobs(n, dim, centers=centers, cluster_std=spread, random_state=seed)


@pytest.fixture(scope="module")
def fitted():
    X, y = blobs()
    return Asterism(random_state=0).fit(X), X, y


# --- what it finds --------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [1, 2, 8, 60])
@pytest.mark.parametrize("centers", [2, 4])
def test_clear_blobs_are_found_in_any_dimension(dim, centers):
    X = np.random.default_rng(centers).standard_normal((200, dim))
    y = np.arange(200) % centers
    X[:, 0] += 14.0 * y * (1 if dim == 1 else np.sqrt(dim) / 2)
    model = Asterism(scaling="none", random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.95


def test_what_fit_leaves(fitted):
    model, X, y = fitted
    n = len(X)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    assert model.n_clusters_ == model.labels_.max() + 1
    assert model.k_posterior_.shape == (41,)
    assert model.k_posterior_.sum() == pytest.approx(1)
    assert model.k_posterior_[0] == 0
    assert model.similarity_.shape == (n, n)
    np.testing.assert_array_equal(model.similarity_, model.similarity_.T)
    np.testing.assert_array_equal(model.similarity_.diagonal(), 1)
    for scores in (model.confidence_, model.outlier_score_):
        assert scores.shape == (n,)
        assert ((scores >= 0) & (scores <= 1 + 1e-9)).all()
    assert 0 < model.overall_confidence_ <= 1
    np.testing.assert_array_equal(model.context_indices_, np.arange(n))
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_classical_partitions_may_stand_for_election(monkeypatch):
    X, y = blobs()
    seen = []
    chosen = deciding.choose_partition

    def spy(*arguments, candidates, **options):
        seen.append(len(candidates))
        return chosen(*arguments, candidates=candidates, **options)

    monkeypatch.setattr(deciding, "choose_partition", spy)
    model = Asterism(candidates="classical", random_state=0).fit(X)
    Asterism(random_state=0).fit(X)
    assert seen[0] > 10
    assert seen[1] == 0
    assert adjusted_rand_score(y, model.labels_) > 0.95


def test_a_stray_row_is_the_outlier():
    X, _ = blobs()
    X = np.vstack([X, [[60.0, -60.0, 60.0]]])
    model = Asterism(random_state=0).fit(X)
    assert model.outlier_score_.argmax() == len(X) - 1
    assert np.median(model.outlier_score_) < 0.2


# --- number of clusters ---------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 7, 20])
def test_a_number_of_clusters_is_honoured_exactly(count):
    X, _ = blobs(120)
    model = Asterism(n_clusters=count, random_state=0).fit(X)
    assert model.n_clusters_ == count == len(np.unique(model.labels_))
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("limits", [(5, 6), [6, 9], (1, 2), (2, 2)])
def test_a_range_is_honoured(limits):
    X, _ = blobs(120)
    model = Asterism(n_clusters=limits).fit(X)
    assert limits[0] <= model.n_clusters_ <= limits[1]
    assert model.k_posterior_[limits[0] : limits[1] + 1].sum() == pytest.approx(1)


@pytest.mark.parametrize("wrong", [0, (3, 2), (0, 2), (2,), (1, 2, 3), "many", 2.5, True])
def test_a_wrong_number_is_refused(wrong):
    with pytest.raises(ValueError, match="n_clusters"):
        Asterism(n_clusters=wrong).fit(blobs(30)[0])


def test_more_clusters_than_rows_are_refused():
    with pytest.raises(DataError, match="n_samples=30 should be >= n_clusters=40"):
        Asterism(n_clusters=(40, 50)).fit(blobs(30)[0])
    with pytest.raises(DataError, match="raise context_size"):
        Asterism(n_clusters=20, context_size=16).fit(blobs(30)[0])


# --- invariances ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_order_of_rows_order_scale_and_place_of_columns_do_not_matter(seed):
    chance = np.random.default_rng(seed)
    X, _ = blobs(150, dim=5, seed=seed, spread=1.5)
    model = Asterism(random_state=0).fit(X)
    rows, columns = chance.permutation(len(X)), chance.permutation(5)
    other = Asterism(random_state=0).fit((X * chance.uniform(0.1, 50, 5) + 30)[rows][:, columns])
    np.testing.assert_allclose(other.similarity_, model.similarity_[np.ix_(rows, rows)], atol=2e-2)
    np.testing.assert_allclose(other.k_posterior_, model.k_posterior_, atol=1e-2)
    assert adjusted_rand_score(other.labels_, model.labels_[rows]) > 0.99


def test_without_scaling_a_rotation_does_not_matter():
    X, _ = blobs(150, dim=4, spread=1.2)
    rotation, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))
    first = Asterism(scaling="none").fit(X)
    second = Asterism(scaling="none").fit(X @ rotation)
    np.testing.assert_allclose(first.similarity_, second.similarity_, atol=2e-2)


# --- contexts and large tables --------------------------------------------------------------------


def test_rows_beyond_the_context_are_read_against_it():
    X, y = blobs(600)
    model = Asterism(context_size=128, random_state=0).fit(X)
    assert len(model.context_indices_) == 128
    assert adjusted_rand_score(y, model.labels_) > 0.95
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(model.labels_[model.context_indices_], model.context_labels_)


def test_a_large_table_goes_through_contexts_and_references(monkeypatch):
    monkeypatch.setattr(sampling, "POOL", 400)
    monkeypatch.setattr(estimator, "_REFERENCES", 200)
    X, y = blobs(1500)
    model = Asterism(context_size=100, random_state=0).fit(X)
    assert 200 <= len(model.reference_rows_) <= 300
    assert adjusted_rand_score(y, model.labels_) > 0.95
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1, rtol=1e-5)
    stray = model.predict_proba([[60.0, 60.0, 60.0]])
    assert np.isfinite(stray).all()
    again = Asterism(context_size=100, random_state=0).fit(X)
    np.testing.assert_array_equal(again.labels_, model.labels_)


def test_a_large_table_keeps_number_links_classes_and_rare_clusters(monkeypatch):
    monkeypatch.setattr(sampling, "POOL", 400)
    monkeypatch.setattr(estimator, "_REFERENCES", 100)
    X, _ = blobs(1500)
    assert Asterism(30, context_size=100, random_state=0).fit(X).n_clusters_ == 30
    same, apart = [(5, 700), (9, 1100)], [(20, 21), (3, 1400)]
    model = Asterism(context_size=100, random_state=0)
    labels = model.fit_predict(X, must_link=same, cannot_link=apart)
    assert all(labels[i] == labels[j] for i, j in same)
    assert all(labels[i] != labels[j] for i, j in apart)
    known = np.where(np.arange(1500) < 60, np.arange(1500) % 2, -1)  # classes against the blobs
    labels = model.fit_predict(X, known)
    assert len(set(labels[:60:2])) == len(set(labels[1:60:2])) == 1
    assert labels[0] != labels[1]
    X[:6] = 60 + 0.1 * np.vstack([np.eye(3), -np.eye(3)])  # each as far from its neighbours
    assert (model.fit_predict(X)[:6] == model.labels_[0]).all()
    assert (model.labels_ == model.labels_[0]).sum() == 6
    assert np.ptp(model.outlier_score_[:6]) < 0.1


def test_rows_much_nearer_than_others_are_known_again():
    X, _ = make_blobs(500, 1, centers=5, random_state=0)
    model = Asterism(8, random_state=0).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("change", [lambda X: X + 1e8, lambda X: 1e60 * X, lambda X: 1e-30 * X])
@pytest.mark.parametrize("scaling", ["none", "standard"])
def test_place_and_size_do_not_matter(change, scaling):
    X, _ = blobs(120)
    model = Asterism(scaling=scaling, random_state=0)
    assert adjusted_rand_score(model.fit_predict(X), model.fit_predict(change(X))) > 0.99


def test_equal_rows():
    model = Asterism(3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="only 1 distinct"):
        assert model.fit(np.ones((20, 2))).n_clusters_ == 1
    assert Asterism(context_size=64).fit(np.ones((200, 2))).n_clusters_ == 1
    X = np.vstack([blobs(40)[0]] * 2)
    with pytest.raises(DataError, match="rows 0 and 40 must be apart"):
        model.fit(X, cannot_link=[(0, 40)])


def test_numbers_of_numpy_are_numbers():
    X, _ = blobs(60)
    assert [Asterism(k).fit(X).n_clusters_ for k in np.arange(2, 5)] == [2, 3, 4]


def test_more_columns_than_rows():
    chance = np.random.default_rng(0)
    X = chance.standard_normal((60, 900))
    X[:30, :100] += 2.5
    model = Asterism(random_state=0).fit(X)
    assert adjusted_rand_score(np.arange(60) < 30, model.labels_) > 0.9
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.predict(chance.standard_normal((2, 900))).shape == (2,)


def test_a_context_covers_rare_clusters_and_what_is_fixed():
    X = np.random.default_rng(0).standard_normal((5000, 2))
    X[7] = [80, 80]
    chosen = choose_context(X, 64, 0, fixed=np.array([3, 11]))
    assert len(chosen) == 64 == len(np.unique(chosen))
    assert {3, 7, 11} <= set(chosen)
    assert len(np.unique(choose_context(np.ones((100, 2)), 40, 0))) == 40


@pytest.mark.parametrize("seed", range(3))
def test_neither_an_extreme_row_nor_a_larger_cluster_hides_the_rare_ones(seed):
    X = np.random.default_rng(0).standard_normal((20_000, 3))
    X[0] = 1e6
    X[1:101] += [30, 0, 0]
    X[101:106] += [0, 30, 0]
    X[106:111] += [0, 0, 30]
    chosen = choose_context(X, 512, seed)
    assert np.isin(np.arange(101, 106), chosen).sum() >= 4
    assert np.isin(np.arange(106, 111), chosen).sum() >= 4
    assert np.isin(np.arange(1, 101), chosen).sum() < 40


def test_rows_that_fill_gaps_are_not_drawn_at_random():
    X = np.random.default_rng(0).standard_normal((2000, 2))
    common = np.arange(2000) < 1000
    assert (choose_context(X, 400, 0, common=common) >= 1000).sum() <= 50


def test_nearest_distances_are_those_of_a_slow_search():
    chance = np.random.default_rng(0)
    X, references = (
        1e3 * chance.choice([-1, 1], (n, 1)) + chance.normal(size=(n, 3)) for n in (40, 9)
    )
    slow = np.sort(np.linalg.norm(X[:, None] - references, axis=2), axis=1)[:, :4]
    np.testing.assert_allclose(nearest_distances(X, references, 4), slow, rtol=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_rare_clusters_of_a_large_table_are_read_with_company(seed):
    X = np.random.default_rng(0).standard_normal((60_000, 3))
    rare = np.arange(12) * 5000  # of the 20 000 rows drawn at random about four
    X[rare] = [30, 30, 30] + 0.1 * X[rare]
    chance = np.random.RandomState(seed)
    sample = sampling.draw_sample(X, "standard", "pull", 512, chance, n_contexts=3)
    read = [np.isin(sample.pool[places], rare).sum() for places in sample.chosen]
    assert min(read) >= 4
    assert np.mean(read) >= 6


def test_turned_rows_keep_their_distances():
    X = np.random.default_rng(0).standard_normal((6, 40))
    axes = spanned_axes(X)
    turned = turn(X, axes)
    np.testing.assert_allclose(turned @ turned.T, X @ X.T, atol=1e-9)
    other = np.random.default_rng(1).standard_normal((1, 40))
    before = np.linalg.norm(X - other, axis=1)
    np.testing.assert_allclose(np.linalg.norm(turned - turn(other, axes), axis=1), before)


# --- many, saved, pickled -------------------------------------------------------------------------


def test_fit_many_is_fit_for_each():
    sets = [blobs(n, dim=dim, seed=n)[0] for n, dim in ((60, 2), (90, 5), (60, 4), (300, 3))]
    together = Asterism(context_size=128, random_state=0).fit_many(sets)
    for X, model in zip(sets, together, strict=True):
        alone = Asterism(context_size=128, random_state=0).fit(X)
        assert adjusted_rand_score(model.labels_, alone.labels_) > 0.99
        np.testing.assert_allclose(model.k_posterior_, alone.k_posterior_, atol=1e-3)
        np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_saved_pickled_and_cloned(fitted, tmp_path):
    model = fitted[0]
    new = blobs(seed=1)[0]
    model.save(tmp_path / "model")
    for other in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict(new), model.predict(new))
        np.testing.assert_array_equal(other.labels_, model.labels_)
    assert not hasattr(clone(model), "labels_")


# --- pure parts -----------------------------------------------------------------------------------


def test_a_row_of_the_context_keeps_its_cluster():
    P = np.array([[1.0, 0.2, 0.9], [0.1, 0.3, 0.2]])
    labels = np.array([0, 0, 1])
    found = assess(P, np.zeros(2), np.array([0, -1]), labels, np.zeros(2))
    np.testing.assert_array_equal(found.labels, [0, 0])
    assert cluster_affinity(P, labels)[0].argmax() == 1
    np.testing.assert_allclose(found.membership.sum(axis=1), 1)


def test_isolation_grows_with_distance():
    scores = isolation(np.log([1.0, 3.0, 9.0]), np.zeros(3))
    assert (np.diff(scores) > 0).all()


def test_consensus_averages_opinions():
    P = np.full((2, 2), 0.2)
    sure = np.array([[1.0, 0.0], [1.0, 0.0]])
    np.testing.assert_allclose(consensus(P, [sure]), [[1, 0.6], [0.6, 1]])


# --- drift ----------------------------------------------------------------------------------------


def test_the_shipped_weights_say_what_they_said():
    kept = json.loads(reference_predictions.PATH.read_text())
    assert kept["weights"] == reference_predictions.checksum(), "new weights: write the file anew"
    for name, now in reference_predictions.answers().items():
        before = kept["answers"][name]
        np.testing.assert_allclose(now["k_posterior"], before["k_posterior"], atol=5e-3)
        np.testing.assert_allclose(now["similarity"], before["similarity"], atol=5e-3)
        assert now["confidence"] == pytest.approx(before["confidence"], abs=5e-3)
        assert adjusted_rand_score(now["labels"], before["labels"]) > 0.95, name


def test_assessment_of_rows_is_that_of_the_fit_and_of_predict_proba():
    X, _ = make_blobs(300, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    model = Asterism(random_state=0).fit(X)
    found = model.assess(X)
    np.testing.assert_array_equal(found.labels, model.labels_)
    np.testing.assert_allclose(found.membership, model.predict_proba(X), rtol=1e-5)
    np.testing.assert_allclose(found.confidence, model.confidence_, rtol=1e-4)
    new = model.assess([[0.0, 0.5], [500.0, -500.0]])
    assert new.outlier[1] > 0.9 > new.outlier[0]


def test_twice_the_rows_are_read_before_one_cluster_is_said():
    X = np.random.default_rng(0).uniform(size=(600, 3))
    model = Asterism(context_size=256, random_state=0).fit(X)
    assert model.n_clusters_ == 1
    assert len(model.context_indices_) == 512
    assert np.array_equal(model.predict(X), model.labels_)
    (twin,) = Asterism(context_size=256, random_state=0).fit_many([X])
    assert len(twin.context_indices_) == 512
    for options in ({"views": "one"}, {"n_clusters": 1}, {"n_clusters": 3}):
        other = Asterism(**{"context_size": 256, "random_state": 0} | options).fit(X)
        assert len(other.context_indices_) == 256
    assert len(Asterism(context_size=350, random_state=0).fit(X).context_indices_) == 600


def test_no_more_clusters_are_believed_in_than_there_are_rows():
    for n in (2, 3, 5):
        X = np.arange(2.0 * n).reshape(n, 2) ** 2
        belief = Asterism(random_state=0).fit(X).k_posterior_
        assert belief[n + 1 :].max() == 0
        assert belief.sum() == pytest.approx(1)
