"""Data sets seen from several sides, and which answer is believed."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from asterism import DAC
from asterism.exceptions import DataError
from asterism.functional import turns
from asterism.functional.filtering import draw_indices
from asterism.functional.turns import axis_turns, believed_view, count_turns, is_settled
from asterism.methods import claims
from asterism.priors import benchmark_batches


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_all_views_differ_and_keep_distances(dim):
    views = axis_turns(dim, count_turns(dim))
    axes = torch.stack([views.turn(v, torch.eye(dim)) for v in range(count_turns(dim))])
    assert torch.equal(axes[0], torch.eye(dim))
    assert torch.equal(axes @ axes.mT, torch.eye(dim).expand_as(axes))
    assert len({tuple(view.flatten().tolist()) for view in axes}) == count_turns(dim)


def test_views_of_many_axes_can_be_had():
    views = axis_turns(100, 9)
    x = torch.randn(4, 100, generator=torch.Generator().manual_seed(0))
    assert len({tuple(views.turn(v, x).flatten().tolist()) for v in range(9)}) == 9


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
    rest = np.where(parted(3) == 0, -1, parted(3))  # two clusters
    assert believed_view([rest, parted(2), parted(2)], 3) == 1  # the first is less like the others
    assert believed_view([rest, parted(3), parted(3)], 3) == 1
    assert believed_view([parted(3), rest, rest], 3) != 0


def test_a_number_that_is_wanted_is_believed_of_one_view():
    answers = [parted(count) for count in (4, 4, 4, 6, 5, 4, 4, 4)]
    assert believed_view(answers, 8) != 3
    assert believed_view(answers, 8, wanted=6) == 3
    assert believed_view(answers, 8, wanted=9) == 3  # the most there are
    assert believed_view(answers, 8, wanted=5) in (3, 4)
    assert [is_settled(answers[:n], 8, wanted=6) for n in (3, 4)] == [False, True]
    assert is_settled(answers[:1], 8, wanted=4)


def crowded():
    """Rows of several clusters that overlap."""
    batch = next(iter(benchmark_batches("clustering", seed=7, n_batches=1)))
    return batch.x[0, :300].numpy()


@pytest.fixture(params=[2, 5])
def believed(request, monkeypatch):
    """Whatever the answers, this view is believed: axes reflected, and exchanged too."""
    monkeypatch.setattr(turns, "is_settled", lambda answers, n_views, _: len(answers) == n_views)
    monkeypatch.setattr(
        turns, "believed_view", lambda answers, n_views, _: request.param % len(answers)
    )
    return request.param


@pytest.mark.parametrize("looks", [1, 2])
def test_the_answer_is_what_the_network_finds_in_turned_rows(believed, looks):
    X = crowded()
    turned = axis_turns(2, 8).turn(believed, torch.from_numpy(X)).numpy()
    model = DAC(views=8, looks=looks, scaling="none").fit(X)
    alone = DAC(looks=looks, scaling="none").fit(turned)
    assert (model.view_, alone.view_) == (believed, 0)
    np.testing.assert_array_equal(model.labels_, alone.labels_)
    np.testing.assert_allclose(X @ model.projection_, turned, atol=1e-6)
    assert not np.allclose(X, turned)


@pytest.mark.parametrize(
    ("weights", "options"),
    [
        ("dac-mog", {}),
        ("dac-mog-small", {"scaling": "none"}),
        ("dac-mog-quick", {"reassign": True}),
        ("dac-mog-quick", {"refine": "em"}),
        ("dac-mog-quick", {"context_size": 200}),
        ("dac-mog-quick", {"n_clusters": 2}),
    ],
)
def test_new_rows_are_read_in_the_view_that_is_believed(believed, weights, options, tmp_path):
    X = crowded()
    asked = DAC(views=8, weights=weights, random_state=0).set_params(**options)
    other, model = asked.fit_many([X[:150], X])
    assert other.view_ == model.view_ == believed
    assert (model.predict(X) == model.labels_).mean() > 0.99
    np.testing.assert_array_equal(model.predict(X[::-7]), model.predict(X)[::-7])
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    np.testing.assert_array_equal(clone(asked).fit(X).labels_, model.labels_)
    own = np.stack([X[model.labels_ == k].mean(axis=0) for k in range(model.n_clusters_)])
    placed = (own - model.origin_) @ model.projection_
    np.testing.assert_allclose(model.means_, placed, atol=0.8)
    again = DAC.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.view_ == believed


def test_fitting_again_begins_with_the_axes_as_they_are(believed):
    X = crowded()
    model = DAC(views=8, weights="dac-mog-quick", scaling="none", random_state=0)
    first = model.fit(X).projection_
    np.testing.assert_array_equal(model.fit(X).projection_, first)
    assert not np.array_equal(first, np.eye(2))


def test_views_find_clusters_that_one_view_takes_for_one():
    """A data set of six clusters, two of which overlap."""
    *_, batch = benchmark_batches("clustering", seed=7, n_batches=1)
    X, y = batch.x[7].numpy(), batch.labels[7].numpy()
    one, four = (DAC(looks=2, views=views, scaling="none").fit(X) for views in (1, 4))
    assert (one.n_clusters_, four.n_clusters_, len(np.unique(y))) == (5, 6, 6)
    assert adjusted_rand_score(y, four.labels_) > adjusted_rand_score(y, one.labels_)


@pytest.mark.parametrize("least", [1, 40])
def test_clusters_that_are_dissolved_do_not_count(least, monkeypatch):
    asked = []
    monkeypatch.setattr(turns, "believed_view", lambda answers, *_: asked.append(answers) or 0)
    model = DAC(views=4, weights="dac-mog-quick", min_cluster_size=least, scaling="local")
    model.fit(crowded())
    (answers,) = asked
    smallest = min(np.unique(a[a >= 0], return_counts=True)[1].min() for a in answers)
    assert (smallest >= 40) == (least == 40)


def test_a_number_of_clusters_is_taken_from_the_view_that_reaches_it():
    """Views of a set of six overlapping clusters find five of them, or six."""
    *_, batch = benchmark_batches("clustering", seed=7, n_batches=1)
    X = batch.x[7].numpy()
    with pytest.warns(ConvergenceWarning, match="finds 5"):
        DAC(6, looks=2, scaling="none").fit(X)
    assert DAC(6, looks=2, views=8, scaling="none").fit(X).n_clusters_ == 6


def test_more_views_than_there_are_and_views_of_images_are_refused():
    with pytest.raises(DataError, match=r"views=9, but there are only 8 of 2 axes.*: use so"):
        DAC(views=9).fit(crowded())
    with pytest.raises(DataError, match=r"views=2 exchange axes.*read images: use views=1"):
        DAC(views=2, weights="dac-omniglot").fit(np.zeros((5, 784)))


def test_views_beyond_all_turns_begin_anew_with_other_anchors(monkeypatch):
    views = axis_turns(2, 16)
    assert torch.equal(views.orders[8:], views.orders[:8])
    assert torch.equal(views.signs[8:], views.signs[:8])
    X, first = crowded(), []

    def kept(left, chances):
        anchor = draw_indices(left, chances)
        if left.shape[1] == len(X):  # the first pass of a view
            first.append(int(anchor))
        return anchor

    monkeypatch.setattr(claims, "draw_indices", kept)
    monkeypatch.setattr(turns, "is_settled", lambda *_: False)
    model = DAC(weights="dac-mog-quick", views=16, scaling="none", random_state=0).fit(X)
    assert len(first) == 16
    assert first[8:] != first[:8]
    np.testing.assert_array_equal(model.predict(X), model.labels_)
