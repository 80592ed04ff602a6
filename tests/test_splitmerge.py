"""The nets that assign rows to clusters and to their halves, as clusters split and merge."""

import numpy as np
import pytest
import torch

from asterism.nn.splitmerge import SplitMergeBatch, SplitMergeNet


@pytest.fixture
def net():
    torch.manual_seed(0)
    return SplitMergeNet(3, 4, width=16)


def test_split_replaces_a_cluster_by_two_that_differ_as_the_halves_do(net):
    x = torch.randn(1, 200, 3)
    odds = 4 * x[..., 0]
    directions = net.plan_split(x, torch.ones(1, 200, dtype=torch.bool), odds)
    before = net(x[0])
    net.split(torch.tensor([1]), directions)
    after = net(x[0])
    assert net.n_clusters == 5
    said = after[:, 3] - after[:, 4]  # the new ones come last
    torch.testing.assert_close(said, net.halve(x[0], directions.expand(200, -1)), atol=1e-4, rtol=0)
    assert torch.corrcoef(torch.stack([said, odds[0]]))[0, 1] > 0.9
    # Those that stay compare with each other as before.
    torch.testing.assert_close(after[:, 0] - after[:, 1], before[:, 0] - before[:, 2])


def test_merge_keeps_the_larger_ones_output_and_drop_forgets(net):
    x = torch.randn(9, 3)
    before = net(x)
    net.merge(torch.tensor([[0, 2]]), torch.tensor([2]))
    assert net.n_clusters == 3
    after = net(x)  # clusters 1, 3 and the merged one
    torch.testing.assert_close(after[:, 2] - after[:, 0], before[:, 2] - before[:, 1])
    net.drop(torch.tensor([0]))
    torch.testing.assert_close(net(x)[:, 1] - net(x)[:, 0], after[:, 2] - after[:, 1])


def test_permute_moves_everything_a_cluster_has(net):
    net.means, net.halves = torch.randn(4, 3), torch.randn(4, 2, 3)
    x, order = torch.randn(5, 3), torch.tensor([2, 0, 3, 1])
    log_r, parts, means = net(x), net.parts(x.expand(4, 5, 3)), net.means
    net.permute(order)
    torch.testing.assert_close(net(x), log_r[:, order])
    torch.testing.assert_close(net.parts(x.expand(4, 5, 3)), parts[order])
    torch.testing.assert_close(net.means, means[order])


def test_small_nets_see_their_own_cluster_only(net):
    members = torch.randn(4, 7, 3)
    other = members.clone()
    other[2] += 1
    changed = (net.parts(members) != net.parts(other)).flatten(1).any(dim=1)
    assert changed.tolist() == [False, False, True, False]


@pytest.mark.parametrize("kl", ["forward", "reverse"])
def test_loss_vanishes_where_the_net_is_the_e_step(kl):
    net = SplitMergeNet(2, 2, width=4, kl=kl)
    with torch.no_grad():
        net.weight.zero_()
    net.means, net.whiteners = torch.zeros(2, 2), torch.eye(2).expand(2, 2, 2)
    x = torch.randn(6, 2)
    net.log_weights = torch.tensor([0.5, 0.5]).log()
    assert net.loss(SplitMergeBatch(x)).item() == pytest.approx(0, abs=1e-6)
    net.log_weights = torch.tensor([0.9, 0.1]).log()
    target, own = np.array([0.9, 0.1]), np.array([0.5, 0.5])
    pair = (target, own) if kl == "forward" else (own, target)
    expected = float((pair[0] * np.log(pair[0] / pair[1])).sum())
    assert net.loss(SplitMergeBatch(x)).item() == pytest.approx(expected, abs=1e-3)


def test_halves_loss_reaches_every_small_net(net):
    net.halves = torch.randn(4, 2, 3)
    net.means, net.whiteners = torch.randn(4, 3), torch.eye(3).expand(4, 3, 3)
    net.loss(SplitMergeBatch(torch.randn(8, 3), torch.randn(4, 6, 3))).backward()
    for part in net.sub:
        assert (part.grad.flatten(1).abs().sum(dim=1) > 0).all()


@pytest.mark.parametrize("kl", ["forward", "reverse"])
def test_targets_found_beforehand_are_those_found_on_the_way(kl):
    torch.manual_seed(0)
    net = SplitMergeNet(3, 4, width=16, kl=kl)
    net.means = 100 * torch.randn(4, 3)  # so far apart that most weights are none
    net.whiteners = torch.eye(3).expand(4, 3, 3)
    x = net.means.repeat(5, 1) + torch.randn(20, 3)
    told = net.targets(x)
    torch.testing.assert_close(told.exp().sum(dim=1), torch.ones(20))
    assert (told.exp() >= torch.finfo(torch.float32).tiny).all()
    batch = SplitMergeBatch(x, targets=told)
    torch.testing.assert_close(net.loss(batch), net.loss(SplitMergeBatch(x)))
    assert net.loss(SplitMergeBatch(x, targets=told.roll(1, dims=1))) > net.loss(batch)
