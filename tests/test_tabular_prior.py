"""The prior over tables from which the default network learns."""

import numpy as np
import pytest
import torch
from scipy.spatial.distance import pdist

from asterism.functional.sets import DatasetPrior
from asterism.priors import TabularPrior
from asterism.priors.columns import express, principal_scores, shear, strays
from asterism.priors.divisions import copied, crossed, unions
from asterism.priors.kinds import kinds
from asterism.priors.layouts import overlapping, place, scattered
from asterism.priors.shapes import SHAPES
from asterism.priors.tabular import _likeliest_cloud, draw_sizes
from asterism.priors.windings import strokes


def chance(seed=0):
    return np.random.default_rng(seed)


def test_draws_are_finite_labelled_and_a_function_of_the_seed():
    prior = TabularPrior(n_points=(40, 90))
    assert isinstance(prior, DatasetPrior)
    for seed in range(12):
        batch = prior.sample(6, torch.Generator().manual_seed(seed))
        again = prior.sample(6, torch.Generator().manual_seed(seed))
        assert torch.equal(batch.x, again.x)
        assert torch.equal(batch.labels, again.labels)
        assert torch.isfinite(batch.x).all()
        assert 40 <= batch.x.shape[1] <= 90
        for labels in batch.labels:
            used = labels[labels >= 0].unique()
            assert used.tolist() == list(range(len(used)))


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("dim", [1, 2, 7])
def test_shapes_are_centred_and_of_about_unit_spread(name, dim):
    x = SHAPES[name](4000, dim, chance())
    assert x.shape == (4000, dim)
    assert np.abs(x.mean(axis=0)).max() < 0.75
    assert 0.3 < np.sqrt(np.mean(x**2)) < 2


@pytest.mark.parametrize("dim", [1, 2, 10, 60])
@pytest.mark.parametrize("separation", [2.5, 8.0])
def test_neighbours_are_apart_as_asked_whatever_the_dimension(dim, separation):
    moments = np.stack([np.eye(dim)] * 6)
    centers = place(moments, separation, 0.2, np.eye(dim), chance())
    distance = np.linalg.norm(centers[:, None] - centers[None], axis=-1)
    np.fill_diagonal(distance, np.inf)
    nearest = distance.min(axis=1)
    assert nearest.min() >= 0.89 * separation
    assert np.median(nearest) < 2.5 * separation


def test_separation_sets_the_overlap():
    def error(separation):
        shares = []
        for seed in range(20):
            x, labels = scattered(np.array([150, 150]), 5, separation, chance(seed))
            means = np.stack([x[labels == k].mean(axis=0) for k in (0, 1)])
            nearest = np.linalg.norm(x[:, None] - means, axis=-1).argmin(axis=1)
            shares.append(np.mean(nearest != labels))
        return np.mean(shares)

    assert error(2.2) > 0.05
    assert error(12.0) < 0.03


@pytest.mark.parametrize("separation", [(1.0, 2.0), (3.0, 4.0), (6.0, 12.0)])
def test_separations_stay_within_what_is_asked(separation, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "asterism.priors.tabular.scattered",
        lambda sizes, dim, delta, c: asked.append(delta) or scattered(sizes, dim, delta, c),
    )
    prior = TabularPrior(separation=separation, families=("scattered",))
    for seed in range(40):
        prior.draw(200, chance(seed))
    asked = np.array(asked)
    assert asked.min() >= separation[0] * 0.999
    assert np.mean(asked > separation[1] * 1.001) < 0.3  # some are further apart by intent


def test_numbers_of_clusters_fall_smoothly():
    prior, c = TabularPrior(families=("scattered",)), chance()
    drawn = np.bincount([prior._draw_count(400, c) for _ in range(20_000)], minlength=41) / 20_000
    assert drawn[1] == pytest.approx(0.09, abs=0.01)
    k = np.arange(2, 41)
    expected = (k + 1.0) ** -1.8
    np.testing.assert_allclose(drawn[2:], 0.91 * expected / expected.sum(), atol=0.012)


def test_small_and_overlapping_draws():
    for families in (("overlapping",), ("crowds",), ("scattered", "overlapping")):
        for n in (3, 7, 60):
            x, labels = TabularPrior(families=families).draw(n, chance(n))
            assert len(x) == len(labels) == n


def test_overlapping_clouds_are_one_heap_with_labels_that_are_worth_something():
    sizes = np.array([150, 150])
    for dim in (1, 3, 40):
        x, labels = overlapping(sizes, dim, 2.5, chance(dim))
        assert x.shape == (300, dim)
        means = np.stack([x[labels == k].mean(axis=0) for k in (0, 1)])
        nearest = np.linalg.norm(x[:, None] - means, axis=-1).argmin(axis=1)
        assert np.mean(nearest == labels) > 0.75


def test_a_crowd_is_many_round_clouds_side_by_side():
    prior, found = TabularPrior(families=("crowds",)), []
    for seed in range(30):
        _, labels = prior.draw(400, chance(seed))
        sizes = np.bincount(labels)
        found.append(len(sizes))
        assert sizes.min() > 0
    assert min(found) >= 6
    assert 40 < max(found) <= 50  # eight rows each, and no more than 60
    assert TabularPrior(families=("crowds",), max_clusters=8).draw(400, chance())[1].max() < 12


def test_few_clouds_that_overlap_or_one_by_itself():
    prior = TabularPrior(families=("overlapping",))
    found = [prior.draw(200, chance(seed))[1].max() + 1 for seed in range(60)]
    assert {1, 2, 3} <= set(found) <= {1, 2, 3, 4, 5}


def test_strays_are_rows_of_the_same_columns_within_or_beyond_the_others():
    x = chance().standard_normal((300, 3)) * [1.0, 5.0, 0.1] + 7
    wide = 0
    for seed in range(20):
        rows = strays(x, 40, chance(seed))
        assert rows.shape == (40, 3)
        far = np.abs(rows - x.mean(axis=0)) / x.std(axis=0)
        assert far.max() < 30
        wide += far.max() > 5
    assert 2 <= wide <= 18


def test_strokes_keep_clear_of_each_other_and_are_filled():
    for seed in range(12):
        sizes = np.array([80, 30, 120, 50])
        parts = strokes(sizes, 0.02, chance(seed))
        assert [len(part) for part in parts] == sizes.tolist()
        for k, part in enumerate(parts):
            assert np.isfinite(part).all()
            for other in parts[:k]:
                assert np.linalg.norm(part[:, None] - other, axis=-1).min() > 0.25


def test_kinds_are_told_by_neighbours_where_centres_say_little():
    near, centred = [], []
    for seed in range(15):
        x, labels = kinds(np.array([80, 80, 80]), 30, 3.0, chance(seed))
        assert x.shape == (240, 30)
        assert np.bincount(labels).tolist() == [80, 80, 80]
        distance = np.linalg.norm(x[:, None] - x[None], axis=-1)
        np.fill_diagonal(distance, np.inf)
        near.append(np.mean(labels[distance.argmin(axis=1)] == labels))
        means = np.stack([x[labels == k].mean(axis=0) for k in range(3)])
        nearest = np.linalg.norm(x[:, None] - means, axis=-1).argmin(axis=1)
        centred.append(np.mean(nearest == labels))
    assert np.mean(near) > np.mean(centred) + 0.05
    assert np.mean(near) > 0.8


def test_principal_scores_are_uncorrelated_and_fall():
    x = chance().standard_normal((200, 6)) @ chance(1).standard_normal((6, 6))
    scores = principal_scores(x, 4)
    covariance = np.cov(scores.T)
    assert scores.shape == (200, 4)
    assert (np.diff(np.diag(covariance)) < 0).all()
    assert np.abs(covariance - np.diag(np.diag(covariance))).max() < 1e-9


def test_naming_the_largest_cluster_for_all_rows_is_no_finding():
    labels = (np.arange(200) < 30).astype(int)
    blind = chance().standard_normal((200, 5))
    assert not TabularPrior()._recoverable(blind, labels)
    assert TabularPrior()._recoverable(blind + 9 * labels[:, None], labels)


def test_a_shear_stretches_all_clusters_alike():
    c = chance(7)
    labels = np.repeat([0, 1], 200)
    x = c.standard_normal((400, 4))
    x[:, 0] += 9 * labels
    sheared = shear(x, c)
    first, second = (np.cov(sheared[labels == k].T) for k in (0, 1))
    np.testing.assert_allclose(first, second, atol=0.5 * np.abs(first).max())
    assert np.linalg.cond(first) > 3


def test_columns_that_tell_of_few_causes_are_correlated():
    c = chance(3)
    causes = c.standard_normal((500, 3))
    columns = express(causes, 30, c)
    assert columns.shape == (500, 30)
    np.testing.assert_allclose(columns.std(axis=0), 1, atol=0.2)
    values = np.linalg.eigvalsh(np.corrcoef(columns.T))[::-1]
    assert values[:3].sum() > 0.5 * values.sum()
    assert values[3] < 0.5 * values[2]


def test_clouds_of_other_size_are_told_apart_where_centres_are_not():
    c = chance(4)
    labels = np.repeat([0, 1], 150)
    x = c.standard_normal((300, 60)) * np.where(labels, 1.6, 1.0)[:, None]
    assert np.mean(_likeliest_cloud(x, labels) == labels) > 0.95


def test_rows_that_set_a_centre_do_not_vouch_for_it():
    c = chance(5)
    x, labels = c.standard_normal((60, 80)), np.arange(60) % 3
    assert np.mean(_likeliest_cloud(x, labels) == labels) < 0.6
    centers = np.stack([x[labels == k].mean(axis=0) for k in range(3)])
    nearest = np.linalg.norm(x[:, None] - centers, axis=-1).argmin(axis=1)
    assert np.mean(nearest == labels) > 0.85


def test_sizes_sum_and_none_is_tiny():
    for seed in range(20):
        sizes = draw_sizes(100, 12, chance(seed))
        assert sizes.sum() == 100
        assert sizes.min() >= 4


def test_unions_join_neighbours_and_leave_at_least_two():
    c = chance()
    centers = np.array([[0.0, 0.0], [1.0, 0.0], [20.0, 0.0], [21.0, 0.0], [0.0, 40.0]])
    labels = np.arange(200) % 5
    x = centers[labels] + 0.1 * c.standard_normal((200, 2))
    seen = set()
    for seed in range(30):
        classes = unions(x, labels, chance(seed))
        assert sorted(set(classes)) == list(range(classes.max() + 1))
        together = [len(set(labels[classes == k])) for k in range(classes.max() + 1)]
        assert sum(together) == 5  # whole clusters
        if classes.max() == 2:
            assert classes[0] == classes[1]
            assert classes[2] == classes[3]
        seen.add(int(classes.max()) + 1)
    assert seen == {2, 3, 4}
    two = np.arange(20) % 2
    assert unions(x[:20], two, c) is two


@pytest.mark.parametrize("n_clusters", [2, 8])
def test_groups_that_cross_clusters_are_nearer_to_each_other_than_these(n_clusters):
    labels = np.arange(1600) % n_clusters
    for seed in range(10):
        c = chance(seed)
        centers = 6 * c.standard_normal((n_clusters, 4))
        x = centers[labels] + 0.2 * c.standard_normal((1600, 4))
        shift = crossed(x, labels, c) - x
        groups, group = np.unique(shift.round(6), axis=0, return_inverse=True)
        assert 2 <= len(groups) <= 4
        nearest = pdist(np.stack([x[labels == k].mean(axis=0) for k in range(n_clusters)])).min()
        assert 0.29 * nearest < pdist(groups).max() < 1.01 * nearest
        table = np.histogram2d(labels, group, (n_clusters, len(groups)))[0] / len(x)
        alone = table.sum(axis=1, keepdims=True) * table.sum(axis=0)
        assert np.abs(table - alone).max() < 0.03  # no word of the clusters
    assert crossed(x, np.zeros(1600, dtype=int), chance()) is x


def test_copies_are_of_rows_that_are_there():
    whole = 0
    for seed in range(40):
        rows = copied(101, chance(seed))
        times = np.bincount(rows)
        assert len(rows) == 101
        assert times.min() >= 1
        assert 25 <= len(times) <= 96
        whole += len(set(times[:-1])) == 1
    assert 10 <= whole <= 30


def test_copies_are_copies_of_whole_rows_with_their_labels(monkeypatch):
    prior = TabularPrior(n_points=(120, 120))
    laid_out = []

    def attempt(self, n, _):
        laid_out.append(n)
        return np.arange(n)[:, None] * 1.0, np.arange(n) % 3

    monkeypatch.setattr(TabularPrior, "_attempt", attempt)
    monkeypatch.setattr(TabularPrior, "_recoverable", lambda *_: True)
    copies = 0
    for seed in range(200):
        x, labels = prior.draw(120, chance(seed))
        assert np.array_equal(x[:, 0] % 3, labels)
        assert sorted(set(x[:, 0])) == list(range(laid_out[-1]))
        copies += laid_out[-1] < 120
    assert 2 <= copies <= 25  # one in twenty
    laid_out.clear()
    for seed in range(60):
        prior.draw(80, chance(seed))
    assert set(laid_out) == {80}  # few rows are left as they are
