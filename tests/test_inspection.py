"""Looking into an answer: the worth of any partition, what clusters are like, other partitions."""

import pickle
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from asterism import Asterism, load
from asterism.exceptions import DataError
from asterism.functional.contrasts import cluster_moments, numeric_contrasts
from asterism.functional.decisions import expected_ari
from asterism.functional.scaling import fit_common_scaling
from asterism.functional.validity import expected_agreement, noise_apart
from asterism.methods.asterism import inspection, sampling
from asterism.methods.asterism.inspection import InspectionMixin


def blobs(n_each=20, n_features=2, seed=0):
    """Three round clusters, of which the last two lie close together."""
    chance = np.random.default_rng(seed)
    centers = np.zeros((3, n_features))
    centers[:, 0] = [0, 20, 26]
    labels = np.repeat([0, 1, 2], n_each)
    return centers[labels] + chance.normal(size=(3 * n_each, n_features)), labels


class DistanceReader:
    """Stands for the network: rows belong together when they are near."""

    contexts: ClassVar[list] = []

    def __init__(self, rows):
        self.similarity = np.exp(-(cdist(rows, rows) ** 2))
        self.counts = np.array([0.1, 0.5, 0.4])

    @classmethod
    def read_many(cls, network, contexts):
        cls.contexts += contexts
        return [cls(rows) for rows in contexts]


class Inspected(InspectionMixin, BaseEstimator):
    """Just enough of an estimator, whose fit believes what it is told."""

    _parameter_constraints: ClassVar[dict] = {}

    def __init__(self, context_size=512, scaling="standard", random_state=None):
        self.context_size = context_size
        self.scaling = scaling
        self.tails, self.views = "pull", "one"
        self.random_state = random_state

    def _load_weights(self):
        self.loaded = True

    def _on_device(self):
        return None

    def fit(self, X, labels, rows=None):
        self.context_indices_ = np.arange(len(X)) if rows is None else rows
        self.labels_, self.n_clusters_ = labels, int(labels.max()) + 1
        self.context_labels_ = labels[self.context_indices_]
        self.similarity_ = DistanceReader(X[self.context_indices_] / 8).similarity
        self.similarity_ = self.similarity_.astype(np.float32)
        self.confidence_, self.overall_confidence_ = np.full(len(X), 0.75), 0.5
        self.k_posterior_ = np.array([0, 0.1, 0.1, 0.8])
        self._describe_clusters(X)
        return self


def common(X):
    """Rows as they are read without scaling: centred, and divided by one number."""
    offset, factor = fit_common_scaling(X, "none")
    return (X - offset) * factor


@pytest.fixture
def reader(monkeypatch):
    monkeypatch.setattr(DistanceReader, "contexts", [])
    monkeypatch.setattr(inspection, "ContextReader", DistanceReader)
    return DistanceReader


# --- expected agreement ---------------------------------------------------------------------


def test_one_cluster_is_worth_the_belief_in_it():
    P = np.full((6, 6), 0.9)
    assert expected_agreement(P, np.zeros(6, dtype=int), 0.7) == 0.7
    assert expected_agreement(P, np.arange(6) % 2, 1.0) == 0.0


def test_several_clusters_are_judged_by_what_holds_if_there_are_several():
    chance = np.random.default_rng(0)
    labels = chance.integers(3, size=12)
    several = np.clip((labels[:, None] == labels) * 0.8 + 0.1, 0, 1)
    np.fill_diagonal(several, 1)
    mixed = 0.3 + 0.7 * several  # one cluster with probability 0.3
    assert expected_agreement(mixed, labels, 0.3) == pytest.approx(
        0.7 * expected_ari(several, labels)
    )
    assert expected_agreement(several, labels) == pytest.approx(expected_ari(several, labels))


def test_noise_is_made_of_singletons():
    labels = np.array([3, -1, 3, 8, -1])
    apart = noise_apart(labels, labels == -1)
    assert sorted(np.bincount(apart)) == [1, 1, 1, 2]
    assert apart[0] == apart[2]
    assert sorted(set(apart)) == [0, 1, 2, 3]


# --- score_partition ------------------------------------------------------------------------


def test_the_score_is_the_expected_agreement_under_the_networks_pairs(reader):
    X, labels = blobs()
    score = Inspected(scaling="none").score_partition(X, labels)
    assert isinstance(score, float)
    P = reader(common(X)).similarity
    assert score == pytest.approx(expected_agreement(P, labels, 0.1), abs=1e-4)


def test_several_partitions_are_ranked_at_once(reader):
    X, labels = blobs()
    shuffled = np.random.default_rng(1).permutation(labels)
    one, noise = np.zeros(60, dtype=int), np.full(60, -1)
    scores = Inspected().score_partition(X, [labels, np.minimum(labels, 1), shuffled, one, noise])
    assert scores.shape == (5,)
    assert scores[:2].min() > 0.25
    assert abs(scores[2]) < 0.1
    assert scores[3:].tolist() == [0.1, 0.0]
    assert len(reader.contexts) == 1
    assert Inspected().score_partition(X, labels) == scores[0]


def test_names_of_clusters_do_not_matter(reader):
    X, labels = blobs()
    names = np.array(["b", "c", "a"])[labels]
    scores = [Inspected().score_partition(X, given) for given in (labels, 7 * labels + 3, names)]
    assert len(set(scores)) == 1


def test_noise_counts_as_singletons(reader):
    X, labels = blobs()
    noisy = np.where(np.arange(60) % 20 < 2, -1, labels)
    apart = np.where(noisy < 0, 10 + np.arange(60), noisy)
    assert Inspected().score_partition(X, noisy) == Inspected().score_partition(X, apart)
    assert Inspected().score_partition(X, noisy) < Inspected().score_partition(X, labels)


@pytest.mark.parametrize("random_state", [None, 5, np.random.RandomState(5)])
def test_large_tables_are_judged_on_the_same_sample_at_every_call(reader, random_state):
    X, labels = blobs(n_each=100)
    model = Inspected(context_size=40, random_state=random_state)
    assert model.score_partition(X, labels) == model.score_partition(X, labels)
    first, second = reader.contexts
    assert first.shape == (40, 2)
    np.testing.assert_array_equal(first, second)


def test_random_state_chooses_the_sample(reader):
    X, labels = blobs(n_each=100)
    for seed in (1, 2):
        Inspected(context_size=40, random_state=seed).score_partition(X, labels)
    assert not np.array_equal(*reader.contexts)


def test_a_pool_is_taken_of_huge_tables(reader, monkeypatch):
    monkeypatch.setattr(sampling, "POOL", 100)
    X, labels = blobs(n_each=100)
    scores = Inspected(context_size=40, scaling="none").score_partition(X, [labels, labels[::-1]])
    np.testing.assert_allclose(scores[0], scores[1], atol=0.2)
    assert cdist(reader.contexts[0], common(X)).min(axis=1).max() < 1e-5


def test_more_columns_than_rows_are_turned_without_changing_distances(reader):
    X, labels = blobs(n_each=5, n_features=40)
    Inspected(scaling="none").score_partition(X, labels)
    (rows,) = reader.contexts
    assert rows.shape[1] <= 16
    scaled = common(X)
    np.testing.assert_allclose(cdist(rows, rows), cdist(scaled, scaled), rtol=1e-4, atol=1e-4)


def test_scoring_leaves_a_fit_alone(reader):
    X, labels = blobs()
    model = Inspected().fit(X, labels)
    model.n_features_in_ = 2
    before = dict(vars(model))
    model.score_partition(pd.DataFrame(np.hstack([X, X]), columns=list("abcd")), labels)
    assert vars(model) == before  # nor were weights loaded: those of the fit are there
    assert model.labels_ is labels


def test_weights_are_loaded_where_there_is_no_fit(reader):
    model = Inspected()
    model.score_partition(*blobs())
    assert model.loaded


@pytest.mark.parametrize(
    ("X", "labels", "message"),
    [
        (np.eye(3), [0, 1], r"labels has shape \(2,\) for 3 rows"),
        (np.eye(3), [[0], [1], [2]], r"labels has shape \(3, 1\) for 3 rows"),
        (np.eye(3), np.zeros((0, 3)), r"labels has shape \(0, 3\)"),
        (np.eye(3), 0, r"labels has shape \(\)"),
        (np.eye(3), [[0, 1, 1], [0, 1]], "differ in length"),
        (np.eye(3), [0.0, np.nan, 1.0], "missing labels, the first at position 1"),
        (np.eye(3), [[0, 0, 0], [0, None, 1]], r"labels\[1\] has 1 missing"),
        ([[1.0, 2.0]], [0], "give more rows"),
        ([[1.0], [np.nan]], [0, 0], "X contains NaN"),
    ],
)
def test_bad_partitions_are_refused(reader, X, labels, message):
    with pytest.raises(DataError, match=message):
        Inspected().score_partition(X, labels)
    assert not reader.contexts


# --- moments --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_moments_agree_with_the_direct_formula_across_chunks(monkeypatch, dtype):
    monkeypatch.setattr("asterism.functional.contrasts._CELLS", 21)  # seven rows at once
    chance = np.random.default_rng(0)
    X = (chance.normal(size=(100, 3)) * [1, 100, 1e-3] + [1000, -5, 0]).astype(dtype)
    labels = np.sort(chance.integers(-1, 4, size=100))  # the first chunks miss most clusters
    moments = cluster_moments(X, labels, 5)
    exact = X.astype(np.float64)
    np.testing.assert_allclose(moments.mean, exact.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(moments.deviation, exact.std(axis=0), rtol=1e-9)
    for k in range(4):
        np.testing.assert_allclose(moments.cluster_mean[k], exact[labels == k].mean(axis=0))
        assert moments.cluster_count[k] == (labels == k).sum()
    assert moments.cluster_count[4] == 0


def test_effects_of_an_empty_cluster_and_of_constant_columns_are_none():
    X = np.array([[0.1, 1.0], [0.1, 1.0], [0.1, 3.0]])
    found = numeric_contrasts(["a", "b"], cluster_moments(X, np.array([0, 0, 1]), 3))
    assert [[c.feature for c in each] for each in found] == [["b"], ["b"], []]
    assert found[1][0].outside == pytest.approx(1.0)
    assert found[1][0].effect == pytest.approx(2 / X[:, 1].std())


# --- explain --------------------------------------------------------------------------------


def test_explain_tells_what_differs_in_the_units_of_the_user():
    X, labels = blobs()
    X = X * [1, 1000] + [5, 0]
    explanation = Inspected().fit(X, labels).explain(top=1)
    assert [entry.cluster for entry in explanation] == [0, 1, 2]
    assert [entry.size for entry in explanation] == [20, 20, 20]
    first = explanation[0]
    (contrast,) = first.contrasts
    assert contrast.feature == "x0"
    assert contrast.inside == pytest.approx(X[:20, 0].mean())
    assert contrast.outside == pytest.approx(X[20:, 0].mean())
    assert contrast.effect == pytest.approx((contrast.inside - contrast.outside) / X[:, 0].std())
    assert (first.share, first.confidence) == (pytest.approx(1 / 3), pytest.approx(0.75))


def test_prototypes_are_the_rows_of_the_context_most_like_their_cluster():
    X, labels = blobs()
    rows = np.arange(0, 60, 2)
    model = Inspected().fit(X, labels, rows)
    for k in range(3):
        own = rows[labels[rows] == k]
        similar = np.exp(-(cdist(X[own], X[own]) ** 2) / 64).mean(axis=1)
        assert model.prototypes_[k].tolist() == own[np.argsort(-similar)][:3].tolist()


def test_prototypes_of_small_clusters_are_padded_and_not_told():
    X = np.array([[0.0], [0.1], [0.2], [0.3], [9.0]])
    model = Inspected().fit(X, np.array([0, 0, 0, 0, 1]))
    assert model.prototypes_[1].tolist() == [4, -1, -1]
    assert model.explain()[1].prototypes == (4,)


def test_a_row_that_was_moved_elsewhere_is_no_prototype():
    X, labels = blobs()
    model = Inspected().fit(X, labels)
    typical = model.prototypes_[0, 0]
    model.labels_ = labels.copy()
    model.labels_[typical] = 1
    model._describe_clusters(X)
    assert typical not in model.prototypes_


def test_the_text_is_a_table():
    X, labels = blobs()
    text = str(Inspected().fit(X * [1, 1e-3], labels).explain())
    lines = text.splitlines()
    assert lines[0] == "3 clusters of 60 rows; expected adjusted Rand index 0.50"
    assert lines[2].startswith("cluster 0: 20 rows (33.3%), confidence 0.75, typical rows ")
    assert lines[3].split() == ["column", "inside", "elsewhere", "effect"]
    assert lines[4].split()[0] == "x0"
    assert len(lines[3]) == len(lines[4])
    assert float(lines[4].split()[-1]) == pytest.approx(-23 / X[:, 0].std(), abs=0.1)


def test_clusters_that_nothing_sets_apart_say_so():
    X = np.random.default_rng(0).normal(size=(30, 2))
    explanation = Inspected().fit(X, np.zeros(30, dtype=int)).explain()
    assert explanation[0].contrasts == ()
    assert "no column sets it apart" in str(explanation)
    assert repr(explanation).startswith("1 cluster of 30 rows;")


def test_names_of_columns_are_used_and_escaped_in_html():
    X, labels = blobs()
    model = Inspected().fit(X, labels)
    model.feature_names_in_ = np.array(["<b>length</b>" + "x" * 60, "width"], dtype=object)
    explanation = model.explain()
    page = explanation._repr_html_()
    assert "&lt;b&gt;length" in page
    assert "<b>" not in page
    assert page.count("<tr>") == 4
    assert max(map(len, str(explanation).splitlines())) < 90


@pytest.mark.parametrize("top", [0, -1, 2.5, True, "all"])
def test_bad_top_is_refused(top):
    with pytest.raises(DataError, match="top="):
        Inspected().fit(*blobs()).explain(top)


def test_explaining_nothing_is_refused():
    with pytest.raises(NotFittedError):
        Inspected().explain()


# --- the estimator --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    X, _ = blobs(n_each=30, n_features=3)
    table = pd.DataFrame(X, columns=["length", "width", "height"])
    return Asterism(n_clusters=3, random_state=0).fit(table), table


def test_the_estimator_explains_itself(fitted):
    model, table = fitted
    explanation = model.explain()
    assert [entry.size for entry in explanation] == np.bincount(model.labels_).tolist()
    for entry in explanation:
        inside = table[model.labels_ == entry.cluster].mean()
        assert "length" in {contrast.feature for contrast in entry.contrasts}
        for contrast in entry.contrasts:
            assert contrast.inside == pytest.approx(inside[contrast.feature])
        assert {model.labels_[row] for row in entry.prototypes} == {entry.cluster}


def test_explanations_survive_saving_and_pickling(fitted, tmp_path):
    model, _ = fitted
    model.save(tmp_path / "model")
    for twin in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert twin.explain() == model.explain()


def test_clusters_of_many_tables_are_explained(fitted):
    model, table = fitted
    first, second = model.fit_many([table, table.iloc[:60]])
    assert first.explain() == model.explain()
    assert sum(entry.size for entry in second.explain()) == 60


def test_a_sample_explains_a_larger_table():
    X, _ = blobs(n_each=100)
    model = Asterism(n_clusters=3, context_size=64, random_state=0).fit(X)
    assert set(model.prototypes_.ravel()) <= set(model.context_indices_) | {-1}
    assert model.cluster_sizes_.sum() == 300
    for k in range(3):
        np.testing.assert_allclose(model.cluster_means_[k], X[model.labels_ == k].mean(axis=0))


def test_the_network_prefers_the_truth_to_chance(fitted):
    model, table = fitted
    truth = np.repeat([0, 1, 2], 30)
    chance = np.random.default_rng(0)
    random = [chance.permutation(truth) for _ in range(5)]
    scores = Asterism().score_partition(table, [truth, *random])
    assert scores[0] > scores[1:].max() + 0.2
    assert scores.max() <= 1
    before = {name: value for name, value in vars(model).items() if name != "_reader"}
    assert model.score_partition(table.to_numpy(), truth) == scores[0]
    assert {name: value for name, value in vars(model).items() if name != "_reader"} == before


def test_partitions_are_drawn_from_what_the_network_believes(fitted):
    model, _ = fitted
    labels, log_probability = model.samples(20)
    assert labels.shape == (20, 90)
    assert log_probability.shape == (20,)
    together = np.mean([each[:, None] == each for each in labels], axis=0)
    assert np.abs(together - model.similarity_).mean() < 0.15
    np.testing.assert_array_equal(model.samples(20)[0], labels)
    with pytest.raises(DataError, match="n=0"):
        model.samples(0)
