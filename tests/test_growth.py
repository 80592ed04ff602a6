"""A network and the evidence by turns: how clusters grow in number and shrink."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from asterism import DeepDPM
from asterism.functional.niw import NormalWishart, label_statistics
from asterism.functional.pooling import pool_covariance
from asterism.functional.returns import equal_gain
from asterism.methods.nonparametric.growth import Growth
from asterism.methods.nonparametric.learning import Schedule, _Rows
from asterism.nn.splitmerge import SplitMergeNet


def begun(n_rows=60, n_clusters=3):
    """A fit of rows that has just begun with clusters of equal size."""
    x = torch.randn(n_rows, 2, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    growth = Growth(
        x,
        SplitMergeNet(2, n_clusters, width=8),
        NormalWishart(torch.zeros(2).double(), torch.ones(2).double()),
        1.0,
        Schedule(epoch_steps=1),
        seed=0,
    )
    growth.start(np.arange(n_rows) % n_clusters)
    return growth


def test_batches_tell_the_e_step_where_rows_come_again():
    growth = begun()
    often, once = (_Rows(growth, 10, steps, seed=0)(3) for steps in (6, 5))
    torch.testing.assert_close(often.targets, growth.module.targets(often.rows))
    assert once.targets is None
    assert torch.equal(often.rows, once.rows)


def test_small_nets_of_many_clusters_see_fewer_rows_each():
    assert _Rows(begun(), 10, 1, seed=0)(0).members.shape == (3, 64, 2)
    assert _Rows(begun(200, 100), 10, 1, seed=0)(0).members.shape == (100, 20, 2)
    assert _Rows(begun(600, 300), 10, 1, seed=0)(0).members.shape == (300, 8, 2)


def test_clusters_emptied_by_the_net_are_dropped_and_told():
    growth = begun()
    with torch.no_grad():
        growth.module.bias[1] = -1e4
    growth._look()
    growth._merge(1)
    dropped, merged = growth.moves
    assert (dropped["move"], dropped["n_before"], dropped["n_after"]) == ("drop", 3, 2)
    assert (dropped["tried"], dropped["accepted"], dropped["best_log_ratio"]) == (1, 1, None)
    assert (merged["move"], merged["n_before"]) == ("merge", 2)
    assert merged["n_after"] == growth.module.n_clusters
    assert len(growth.stats.n) == growth.module.n_clusters


def test_a_split_of_which_a_half_is_dropped_was_in_vain():
    growth = begun()
    with torch.no_grad():
        growth.module.bias[1] = -1e4
    growth._look()
    growth.born = torch.tensor([7, 7, -1])
    growth.labels = torch.arange(60) % 3 // 2 * 2  # none in the second
    assert growth._drop_small(1)
    assert growth.strikes.tolist() == [1, 0]
    assert growth.barred.tolist() == [True, False]
    assert growth.born.tolist() == [7, -1]
    assert not growth._drop_small(1)


def test_pieces_of_the_start_that_are_dropped_were_no_splits():
    growth = begun()
    growth.labels = torch.arange(60) % 3 // 2 * 2
    assert growth._drop_small(1)
    assert growth.strikes.tolist() == [0, 0]
    assert not growth.barred.any()


def test_a_round_that_only_drops_has_moved(monkeypatch):
    growth = begun()
    monkeypatch.setattr(growth, "_accept", lambda ratio: torch.zeros_like(ratio, dtype=bool))
    assert not growth._merge(1)
    growth.labels = torch.arange(60) % 3 // 2 * 2
    assert growth._merge(3)
    assert [(move["round"], move["move"]) for move in growth.moves] == [
        (1, "merge"),
        (3, "drop"),
        (3, "merge"),
    ]


def test_merged_pieces_of_the_start_may_split_again():
    """Only halves that are merged again were split in vain."""
    growth = begun(90, 6)
    growth.labels = torch.arange(90) % 6
    growth._merge(1)
    assert growth.module.n_clusters == 3
    assert growth.strikes.tolist() == [0, 0, 0]
    growth.labels = torch.arange(90) % 3
    growth._merge(3)  # two of three alike, which are of no split
    assert growth.module.n_clusters == 2
    assert growth.strikes.tolist() == [0, 0]
    assert not growth.barred.any()


def test_what_was_split_in_vain_is_spared_once_and_after_the_second_time_for_good(monkeypatch):
    growth = begun(90, 2)
    for vain in (1, 2):
        growth.born = torch.tensor([7, 7])
        growth._merge(2 * vain - 1)  # halves of one split, alike
        assert growth.module.n_clusters == 1
        assert growth.strikes.tolist() == [vain]
        assert growth.barred.tolist() == [True]
        growth._split(2 * vain)
        assert growth.moves[-1]["tried"] == 0
        monkeypatch.setattr(growth, "_accept", lambda ratio: torch.ones_like(ratio, dtype=bool))
        growth._split(2 * vain + 2)  # no longer spared, and split whatever the evidence
        assert growth.moves[-1]["tried"] == (1 if vain == 1 else 0)
        monkeypatch.undo()


# --- what one cluster more must bring -----------------------------------------------------------


def parsimonious(X, labels, parsimony=0.2, zeta=1.0, **settings):
    """A fit that has just begun with clusters, under a prior that suits them."""
    x = torch.from_numpy(X).float()
    prior = NormalWishart(x.mean(dim=0).double(), torch.ones(x.shape[1]).double(), **settings)
    schedule = Schedule(epoch_steps=1, search="em", parsimony=parsimony, zeta=zeta)
    n_clusters = labels.max() + 1
    growth = Growth(x, SplitMergeNet(x.shape[1], n_clusters, width=4), prior, 1.0, schedule, seed=0)
    growth.start(labels)
    growth.labels = torch.from_numpy(labels)  # whatever the net says of them
    return growth


def three(apart=12.0, split=4.5, seed=0, n=1200):
    """Three round clusters far apart, of which the last is one of two halves not so far."""
    chance = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    halves = chance.integers(2, size=n)
    X = chance.standard_normal((n, 2)) + apart * np.array([[0, 0], [1, 0], [0, 1]])[labels]
    X[:, 0] += np.where(labels == 2, split * halves, 0)
    return X, labels, np.where(labels == 2, 2 + halves, labels)


@pytest.mark.parametrize("zeta", [1.0, 0.25])
@pytest.mark.parametrize(
    "settings",
    [{}, {"covariance": "diagonal"}, {"covariance": "isotropic", "columns": 1.5}],
    ids=str,
)
def test_a_split_must_bring_what_makes_one_cluster_more_worth_as_much(zeta, settings):
    X, labels, _ = three()
    growth = parsimonious(X, labels, zeta=zeta, **settings)
    kind = settings.get("covariance", "full")

    def evidence(labels):
        k = labels.max() + 1
        stats = label_statistics(growth.x, torch.from_numpy(labels), k, kind).times(zeta)
        return float((torch.lgamma(stats.n) + growth.prior.log_evidence(stats)).sum())

    gain = evidence(labels) - evidence(np.zeros_like(labels))
    assert growth._gain(growth.stats) == (pytest.approx(gain), 3)
    room = {"n_rows": len(X) * zeta, "n_axes": settings.get("columns", 2), "parsimony": 0.2}
    price = equal_gain(gain, 3, 4, **room) - gain
    assert price > 0
    one = growth._beyond_price(torch.tensor([price + 1.0]))
    torch.testing.assert_close(one, torch.tensor([1.0]), rtol=0, atol=0.01)
    # The larger is made first; the other then has more clusters, which have gained more, beside it.
    later = equal_gain(gain + 2 * price, 4, 5, **room) - gain - 2 * price
    two = growth._beyond_price(torch.tensor([price, 2 * price]))
    expected = torch.tensor([price - later, price])
    torch.testing.assert_close(two, expected, rtol=1e-4, atol=0.01)


def test_parsimony_decides_on_a_split_that_evidence_would_make():
    X, labels, _ = three()
    for parsimony, made in ((0.0, True), (0.4, False)):
        growth = parsimonious(X, labels, parsimony)
        assert growth._split(0) == made
        assert growth.module.n_clusters == (4 if made else 3)
        assert (growth.moves[-1]["best_log_ratio"] > 0) == made


def test_parsimony_decides_on_a_merge_that_evidence_would_not_make():
    X, _, finer = three()
    for parsimony, made in ((0.0, False), (0.4, True)):
        growth = parsimonious(X, finer, parsimony)
        assert growth._merge(1) == made
        assert growth.module.n_clusters == (3 if made else 4)
        assert (growth.moves[-1]["best_log_ratio"] > 0) == made


def test_within_max_clusters_the_better_split_is_made(monkeypatch):
    """The second of two splits has a lower price, but only once the first is made."""
    chance = np.random.default_rng(0)
    labels = np.arange(4000) % 2
    growth = parsimonious(chance.standard_normal((4000, 2)) + 20 * labels[:, None], labels)
    growth.schedule = replace(growth.schedule, max_clusters=3)
    monkeypatch.setattr(growth, "_split_ratios", lambda *_: torch.tensor([546.0, 556.0]))
    monkeypatch.setattr(growth, "_gain", lambda *_: (20_000.0, 2))
    beyond = growth._beyond_price(torch.tensor([546.0, 556.0]))
    assert beyond[0] > beyond[1] > 0
    chosen: list[int] = []
    split = growth.module.split
    monkeypatch.setattr(
        growth.module, "split", lambda which, to: (chosen.extend(which.tolist()), split(which, to))
    )
    assert growth._split(0)
    assert chosen == [1]


def test_empty_clusters_are_none():
    X, labels, _ = three()
    growth = parsimonious(X, labels)
    stats = label_statistics(growth.x, growth.labels, 5, "full")
    assert growth._gain(stats) == (pytest.approx(growth._gain(growth.stats)[0]), 3)


@pytest.mark.parametrize("n", [240, 6000])
@pytest.mark.parametrize("columns", [3, 45])
@pytest.mark.parametrize("settings", [{}, {"coarsening": 80}, {"scaling": "standard"}], ids=str)
def test_gain_in_the_coordinates_of_the_net_is_that_in_which_the_prior_was_found(
    settings, columns, n
):
    chance = np.random.default_rng(0)
    means = 9 * chance.standard_normal((3, columns))
    X = chance.standard_normal((n, columns)) + means[np.arange(n) % 3]
    model = DeepDPM(n_components=3, **settings)
    x, prior, labels, single = model._begin(X, None, 0)
    net = SplitMergeNet(x.shape[1], 3, width=4)
    schedule = replace(model._schedule(prior), epoch_steps=1)
    growth = Growth(torch.from_numpy(x), net, prior, 10.0, schedule, 0, single=single)
    growth.start(labels)
    rows = model._scaled(X) @ np.linalg.qr(model.axes_)[0]
    rows -= rows.mean(axis=0)
    steady = 0.005 * rows.var(axis=0)
    found = pool_covariance(rows, n * model.row_weight_, steady, alpha=10.0, parsimony=0.2)
    assert labels.max() == found.labels.max() == 2
    stats = label_statistics(growth.x, torch.from_numpy(labels), 3, "full")
    assert growth._gain(stats)[0] == pytest.approx(found.gain, rel=0.02)


@pytest.mark.parametrize("scale", [None, 0.01, 100.0])
def test_a_single_cluster_has_gained_nothing(scale):
    X = np.random.default_rng(0).standard_normal((300, 2)) * [1, 30] + [0, 1e5]
    model = DeepDPM(prior_scale=scale)
    x, prior, labels, single = model._begin(X, None, 0)
    assert labels.max() == 0
    net, schedule = SplitMergeNet(2, 1, width=4), replace(model._schedule(prior), epoch_steps=1)
    growth = Growth(torch.from_numpy(x), net, prior, 10.0, schedule, 0, single=single)
    growth.start(labels)
    assert growth._gain(growth.stats) == (pytest.approx(0, abs=1e-3), 1)
    assert growth._beyond_price(torch.tensor([5.0])).tolist() == [5.0]
