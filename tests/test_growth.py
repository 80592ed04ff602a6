"""A network and the evidence by turns: how clusters grow in number and shrink."""

import numpy as np
import torch

from asterism.functional.niw import NormalWishart
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
