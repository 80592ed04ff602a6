"""Data sets seen from several sides, and which answer is believed."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from asterism import DAC
from asterism.exceptions import DataError
from asterism.functional.turns import axis_turns, believed_view, count_turns, is_settled
from asterism.priors import benchmark_batches


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_all_views_differ_and_keep_distances(dim):
    turns = axis_turns(dim, count_turns(dim))
    axes = torch.stack([turns.turn(v, torch.eye(dim)) for v in range(count_turns(dim))])
    assert torch.equal(axes[0], torch.eye(dim))
    assert torch.equal(axes @ axes.mT, torch.eye(dim).expand_as(axes))
    assert len({tuple(view.flatten().tolist()) for view in axes}) == count_turns(dim)


def test_views_of_many_axes_can_be_had():
    turns = axis_turns(100, 9)
    x = torch.randn(4, 100, generator=torch.Generator().manual_seed(0))
    views = {tuple(turns.turn(v, x).flatten().tolist()) for v in range(9)}
    assert len(views) == 9


def parted(count):
    """Twelve rows in so many runs."""
    return np.arange(12) * count // 12


@pytest.mark.parametrize(
    ("counts", "believed"),
    [
        ([5], 5),
        ([4, 6], 4),  # both reach it
        ([4, 6, 6], 6),
        ([4, 4, 4, 6], 4),  # one alone may have made it up
        ([4, 4, 5, 6], 5),  # two reach five
        ([4, 4, 4, 4, 4, 4, 6, 6], 4),  # a third of eight is three
        ([4, 4, 4, 4, 4, 6, 6, 6], 6),
    ],
)
def test_the_number_is_the_largest_that_enough_views_reach(counts, believed):
    answers = [parted(count) for count in counts]
    assert counts[believed_view(answers, len(counts))] == believed
    assert counts[::-1][believed_view(answers[::-1], len(counts))] == believed


@pytest.mark.parametrize("n_views", range(1, 9))
def test_views_that_could_not_change_the_number_are_left_out(n_views):
    """Whatever is found, in whatever order."""
    chance = np.random.default_rng(n_views)
    shortest = n_views
    for _ in range(200):
        answers = [parted(count) for count in chance.choice([3, 4, 5], n_views, p=[0.2, 0.6, 0.2])]
        n_read = next(n for n in range(1, n_views + 1) if is_settled(answers[:n], n_views))
        shortest = min(shortest, n_read)
        early = answers[believed_view(answers[:n_read], n_views)]
        assert early.max() == answers[believed_view(answers, n_views)].max()
    assert shortest == {1: 1, 2: 2, 3: 2, 4: 3, 5: 4, 6: 5, 7: 5, 8: 6}[n_views]


def test_of_equal_numbers_the_answer_most_like_the_others_is_taken():
    odd = np.repeat([0, 1], [2, 10])
    like = np.repeat([0, 1], 6)
    assert believed_view([odd, like, 1 - like, np.repeat([0, 1], [5, 7])], 4) == 1


def test_rows_of_no_cluster_count_for_none():
    rest = np.where(np.arange(12) < 2, -1, parted(3))
    assert believed_view([parted(3), rest, parted(3)], 3) == 0
    assert believed_view([np.where(parted(4) == 0, -1, parted(4)), parted(3), parted(4)], 3) != 2


def crowded():
    """Data sets among which those of many views differ from those of one."""
    batch = next(iter(benchmark_batches("clustering", seed=7, n_batches=1)))
    return [x[:900].numpy() for x in batch.x]


@pytest.mark.parametrize("weights", ["dac-mog-small", "dac-mog-quick"])
def test_a_view_of_the_estimator_is_what_it_finds_in_turned_rows(weights):
    asked = DAC(views=4, weights=weights, scaling="none", random_state=0)
    sets = crowded()
    models = asked.fit_many(sets)
    assert len({model.view_ for model in models}) > 1
    signs = axis_turns(2, 4).signs.numpy()
    anchored = asked.fit(sets[0]).module_.anchored
    for X, model in zip(sets, models, strict=True):
        np.testing.assert_array_equal(model.projection_, np.diag(signs[model.view_]))
        if not anchored:  # views have anchors of their own
            alone = DAC(weights=weights, scaling="none").fit(X * signs[model.view_])
            np.testing.assert_array_equal(alone.labels_, model.labels_)


@pytest.mark.parametrize("weights", ["dac-mog-small", "dac-mog"])
def test_new_rows_are_read_in_the_view_that_is_believed(weights, tmp_path):
    asked = DAC(views=4, weights=weights, scaling="none", random_state=0)
    sets = crowded()
    models = asked.fit_many(sets)
    X, model = next(pair for pair in zip(sets, models, strict=True) if pair[1].view_ > 0)
    assert (model.predict(X) == model.labels_).mean() > 0.999
    np.testing.assert_array_equal(model.predict(X[::-7]), model.predict(X)[::-7])
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    np.testing.assert_array_equal(clone(asked).fit(X).labels_, model.labels_)
    centred = np.stack([X[model.labels_ == k].mean(axis=0) for k in range(model.n_clusters_)])
    np.testing.assert_allclose(model.means_, centred @ model.projection_, atol=0.3)
    again = DAC.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.view_ == model.view_


def test_fitting_again_begins_with_the_axes_as_they_are():
    X = crowded()[0]
    model = DAC(views=4, weights="dac-mog-quick", random_state=0)
    first = model.fit(X).projection_
    np.testing.assert_array_equal(model.fit(X).projection_, first)
    model.set_params(views=1).fit(X)
    assert model.view_ == 0


def test_views_find_clusters_that_one_view_takes_for_one():
    """A data set of six clusters, two of which overlap."""
    *_, batch = benchmark_batches("clustering", seed=7, n_batches=1)
    X, y = batch.x[7].numpy(), batch.labels[7].numpy()
    one, four = (DAC(looks=2, views=views, scaling="none").fit(X) for views in (1, 4))
    assert (one.n_clusters_, four.n_clusters_, len(np.unique(y))) == (5, 6, 6)
    assert adjusted_rand_score(y, four.labels_) > adjusted_rand_score(y, one.labels_)


def test_small_clusters_that_are_dissolved_do_not_count():
    X = crowded()[3]
    model = DAC(views=4, weights="dac-mog-quick", min_cluster_size=40, random_state=0).fit(X)
    assert np.bincount(model.raw_labels_[model.raw_labels_ >= 0])[model.pass_numbers_].min() >= 40


def test_more_views_than_there_are_and_views_of_images_are_refused():
    with pytest.raises(DataError, match="views=9, but there are only 8 of 2 axes"):
        DAC(views=9).fit(crowded()[0])
    with pytest.raises(DataError, match=r"views=2 exchange axes.*read images: use views=1"):
        DAC(views=2, weights="dac-omniglot").fit(np.zeros((5, 784)))
