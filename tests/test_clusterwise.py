"""Clusterwise processes: the bound and its gradient, sampling, probabilities."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from asterism.functional.clusterwise import (
    importance_bound,
    log_mean_exp,
    normal_log_prob,
    partition_steps,
    random_times,
)
from asterism.functional.partitions import unique_partitions
from asterism.functional.sets import SetBatch
from asterism.nn import clusterwise_sampling
from asterism.nn.clusterwise import ClusterwiseNetwork
from asterism.nn.clusterwise_sampling import (
    cluster_contexts,
    grow_partitions,
    ordered_log_probability,
    partition_log_probability,
)

ATTENTION = ["none", "anchored", "shared"]
ALL = pytest.mark.parametrize("attention", ATTENTION)


def chance(seed=0):
    return torch.Generator().manual_seed(seed)


def tiny(attention="none", *, seed=0, ignore_latent=False):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = ClusterwiseNetwork(
            2, attention, width=8, latent_dim=3, heads=2, n_inducing=4, n_draws=4
        ).double()
        # Larger weights than usual, so that decisions differ from point to point.
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.mul_(1.5)
            if ignore_latent:
                network.join_first.weight[:, 8:11] = 0
    return network


def two_sets():
    """Two padded data sets with partitions of their own; the second ends with a lone point."""
    x = torch.randn(2, 9, 2, generator=chance(3), dtype=torch.float64)
    keep = torch.arange(9) < torch.tensor([[9], [6]])
    labels = torch.tensor([[0, 1, 1, 2, 0, 2, 2, 0, 1], [0, 1, 0, 0, 0, 2, -1, -1, -1]])
    return SetBatch(torch.where(keep[..., None], x, 0.0), keep, labels)


def steps_of(batch, seed=0):
    return partition_steps(batch.labels, random_times(batch.keep.shape, chance(seed)))


def noise_for(steps, draws=4, seed=1):
    shape = (len(steps.owner), draws, 3)
    return torch.randn(shape, generator=chance(seed), dtype=torch.float64)


# --- the bound ------------------------------------------------------------------------------------


def reference_bound(network, x, order, anchors, noise):
    """Bounds of the steps of one data set (N, D), point by point and draw by draw."""
    attention = network.attention
    e = network.encode_point(x)
    if attention == "shared":
        e = network.context(e[None])[0]

    def pool(name, rows):
        if not len(rows):
            return torch.zeros(8, dtype=x.dtype)
        if attention == "none":
            return rows.mean(dim=0)
        return network.pool[name].pool(rows[None])[0, 0]

    G = torch.zeros(8, dtype=x.dtype)
    bounds = []
    for k, anchor in enumerate(anchors):
        left = [i for i in range(len(x)) if order[i] >= k]
        others = [i for i in left if i != anchor]
        codes = e
        if attention == "anchored":
            codes = torch.zeros_like(e)
            codes[left] = network.context(e[left][None])[0]
        pooled = codes if attention == "anchored" else network.map_unassigned(codes)
        A = codes[anchor]
        if attention == "anchored":
            met = network.meet_anchor(codes[left][None], A[None, None])[0]
            U = pool("unassigned", met)
        else:
            U = pool("unassigned", pooled[others])
        joining = [i for i in others if order[i] == k]
        staying = [i for i in others if order[i] > k]
        U_in, U_out = pool("joining", pooled[joining]), pool("others", pooled[staying])
        p_mean, p_log = network.prior_net(torch.cat([A, U, G])).chunk(2)
        q_mean, q_log = network.posterior_net(torch.cat([A, U_in, U_out, G])).chunk(2)
        p = torch.distributions.Normal(p_mean, p_log.exp())
        q = torch.distributions.Normal(q_mean, q_log.exp())
        weights = []
        for epsilon in noise[k]:
            z = q_mean + q_log.exp() * epsilon
            weight = p.log_prob(z).sum() - q.log_prob(z).sum()
            for i in others:
                inputs = torch.cat([codes[i], z, A, U, G])
                first = F.linear(inputs, network.join_first.weight, network.join_first.bias)
                chance_to_join = torch.sigmoid(network.join_rest(first))[0]
                weight = weight + (chance_to_join if i in joining else 1 - chance_to_join).log()
            weights.append(weight)
        bounds.append(torch.stack(weights).logsumexp(0) - math.log(len(weights)))
        members = [i for i in left if order[i] == k]
        h = network.map_member(e[members])
        G = G + network.map_cluster(pool("members", h))
    return bounds


@ALL
def test_bound_is_that_of_a_slow_loop(attention):
    network, batch = tiny(attention), two_sets()
    steps = steps_of(batch)
    noise = noise_for(steps)
    found = network.step_bounds(batch.x, batch.keep, steps, noise)
    expected = []
    for b in range(2):
        n = int(batch.sizes[b])
        mine = steps.owner == b
        order = torch.zeros(n, dtype=torch.long)
        for row, k in zip(steps.member[mine], steps.number[mine], strict=True):
            order[row[:n]] = k
        assigned = steps.member[mine].any(dim=0)[:n]
        order[~assigned] = int(mine.sum())  # the lone point whose step is left out
        anchors = steps.anchor[mine].tolist()
        expected += reference_bound(network, batch.x[b, :n], order, anchors, noise[mine])
    torch.testing.assert_close(found, torch.stack(expected))


def test_loss_is_minus_the_sum_over_steps_and_mean_over_data_sets():
    network, batch = tiny().float(), two_sets()
    batch = SetBatch(batch.x.float(), batch.keep, batch.labels)
    drawn = chance(5)
    steps = partition_steps(batch.labels, random_times(batch.keep.shape, drawn))
    noise = torch.randn(len(steps.owner), 4, 3, generator=drawn)
    expected = -network.step_bounds(batch.x, batch.keep, steps, noise).sum() / 2
    torch.testing.assert_close(network.loss(batch, chance(5)), expected)
    with pytest.raises(ValueError, match="true partition"):
        network.loss(SetBatch(batch.x, batch.keep))


def test_a_lone_last_point_is_no_step():
    times = torch.arange(4.0)[None]
    assert len(partition_steps(torch.tensor([[0, 0, 0, 1]]), times).owner) == 1
    assert len(partition_steps(torch.tensor([[1, 0, 0, 0]]), times).owner) == 2
    assert len(partition_steps(torch.tensor([[0]]), torch.zeros(1, 1)).owner) == 0


def test_anchors_are_uniform_and_clusters_come_by_size():
    labels = torch.tensor([[0, 0, 0, 1, -1]]).expand(8000, -1)
    steps = partition_steps(labels, random_times(labels.shape, chance()))
    first = steps.number == 0
    assert (steps.open[first].sum(dim=1) == 4).all()
    share = steps.anchor[first].bincount(minlength=5) / 8000
    np.testing.assert_allclose(share, [0.25, 0.25, 0.25, 0.25, 0], atol=0.025)
    assert steps.member.gather(1, steps.anchor[:, None]).all()


@ALL
def test_bound_rises_with_the_number_of_draws(attention):
    network, batch = tiny(attention), two_sets()
    steps = steps_of(batch)
    noise = noise_for(steps, 12)
    means = []
    for draws in (1, 3, 12):
        # The mean over groups of the same draws: the larger group wins, by Jensen's inequality.
        with torch.no_grad():
            found = [
                network.step_bounds(batch.x, batch.keep, steps, part)
                for part in noise.split(draws, dim=1)
            ]
        means.append(torch.stack(found).mean(dim=0))
    assert (means[0] < means[1]).all()
    assert (means[1] < means[2]).all()


# --- the gradient ---------------------------------------------------------------------------------


@ALL
def test_gradient_of_the_model_is_that_of_the_bound(attention):
    network, batch = tiny(attention), two_sets()
    steps = steps_of(batch)
    own = [*network.prior_net.parameters(), *network.join_rest.parameters()]
    own += [network.join_first.weight, network.join_first.bias]
    loss = network.step_bounds(batch.x, batch.keep, steps, noise_for(steps)).sum()
    found = torch.autograd.grad(loss, own)
    clusterwise = "asterism.nn.clusterwise.importance_bound"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clusterwise, lambda log_weights, z: log_mean_exp(log_weights))
        plain = network.step_bounds(batch.x, batch.keep, steps, noise_for(steps)).sum()
    torch.testing.assert_close(loss, plain)
    for one, other in zip(found, torch.autograd.grad(plain, own), strict=True):
        torch.testing.assert_close(one, other)


def test_gradient_of_the_posterior_is_unbiased_and_less_noisy():
    """p(z) = N(0, 1), p(x | z) = N(x; z, 1) at x = 1, q(z) = N(m, s): many bounds of 8 draws."""
    noise = torch.randn(40_000, 8, 1, generator=chance(), dtype=torch.float64)
    each = {}
    for kind in ("plain", "double"):
        m = torch.full((40_000, 1, 1), 0.2, dtype=torch.float64, requires_grad=True)
        log_s = torch.full((40_000, 1, 1), -0.1, dtype=torch.float64, requires_grad=True)
        z = m + log_s.exp() * noise
        zero = torch.zeros((), dtype=torch.float64)
        log_joint = normal_log_prob(z, zero, zero) + normal_log_prob(z, zero + 1, zero)
        if kind == "plain":
            bound = log_mean_exp(log_joint - normal_log_prob(z, m, log_s))
        else:
            log_q = normal_log_prob(z, m.detach(), log_s.detach())
            bound = importance_bound(log_joint - log_q, z)
        each[kind] = torch.autograd.grad(bound.sum(), (m, log_s))
    for plain, double in zip(each["plain"], each["double"], strict=True):
        error = (plain.var() / len(plain) + double.var() / len(double)).sqrt()
        assert abs(plain.mean() - double.mean()) < 4 * error
        assert abs(double.mean()) > 10 * double.std() / 200  # there is something to be unbiased for
        assert double.var() < plain.var()


@ALL
def test_gradients_reach_every_parameter(attention):
    network, batch = tiny(attention), two_sets()
    steps = steps_of(batch)
    network.step_bounds(batch.x, batch.keep, steps, noise_for(steps)).sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


# --- symmetries -----------------------------------------------------------------------------------


@ALL
def test_order_of_points_and_padding_do_not_matter(attention):
    network, batch = tiny(attention), two_sets()
    times = random_times(batch.keep.shape, chance())
    steps = partition_steps(batch.labels, times)
    noise = noise_for(steps)
    expected = network.step_bounds(batch.x, batch.keep, steps, noise)
    order = torch.randperm(9, generator=chance(2))
    shuffled = partition_steps(batch.labels[:, order], times[:, order])
    found = network.step_bounds(batch.x[:, order], batch.keep[:, order], shuffled, noise)
    torch.testing.assert_close(found, expected)
    x = F.pad(batch.x, (0, 0, 0, 3), value=50.0)
    padded = partition_steps(F.pad(batch.labels, (0, 3), value=-1), F.pad(times, (0, 3)))
    found = network.step_bounds(x, F.pad(batch.keep, (0, 3)), padded, noise)
    torch.testing.assert_close(found, expected)


@ALL
def test_probability_does_not_depend_on_the_order_of_points(attention):
    network = tiny(attention, ignore_latent=True)
    x = torch.randn(1, 12, 2, generator=chance(), dtype=torch.float64)
    labels = torch.tensor([[0, 1, 0, 2, 1, 1, 0, 0, 2, 3, 1, 0]])
    order = torch.randperm(12, generator=chance(1))
    found = ordered_log_probability(network, network.encode(x), labels, chance(), n_draws=1)
    shuffled = ordered_log_probability(
        network, network.encode(x[:, order]), labels[:, order], chance(), n_draws=1
    )
    torch.testing.assert_close(found, shuffled)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clusterwise_sampling, "_ROWS", 1)
        piecewise = ordered_log_probability(network, network.encode(x), labels, chance(), n_draws=1)
    torch.testing.assert_close(found, piecewise)


# --- probabilities --------------------------------------------------------------------------------


def ordered_partitions(n):
    """All labellings of n points by 0 … K − 1, every number used."""
    every = itertools.product(range(n), repeat=n)
    return torch.tensor([row for row in every if set(row) == set(range(max(row) + 1))])


@ALL
@pytest.mark.parametrize("n_points", [1, 4, 5])
def test_probabilities_of_all_ordered_partitions_sum_to_one(attention, n_points):
    network = tiny(attention, ignore_latent=True)
    codes = network.encode(torch.randn(1, n_points, 2, generator=chance(), dtype=torch.float64))
    order = ordered_partitions(n_points)
    assert len(order) == {1: 1, 4: 75, 5: 541}[n_points]
    found = ordered_log_probability(network, codes, order, chance(), n_draws=1)
    assert float(found.logsumexp(dim=0)) == pytest.approx(0, abs=1e-6)
    assert float(found.max() - found.min()) > 1 or n_points == 1


def test_probability_of_a_partition_sums_over_the_orders_of_its_clusters():
    network = tiny(ignore_latent=True)
    codes = network.encode(torch.randn(1, 4, 2, generator=chance(), dtype=torch.float64))
    order = ordered_partitions(4)
    each = ordered_log_probability(network, codes, order, chance(), n_draws=1)
    partitions, which = unique_partitions(order)
    assert len(partitions) == 15
    expected = torch.zeros(15, dtype=torch.float64).index_add(0, which, each.exp())
    found = partition_log_probability(
        network, codes, partitions, chance(), n_orders=1000, n_anchors=1, n_draws=1
    )
    torch.testing.assert_close(found.exp(), expected, rtol=0.1, atol=2e-3)


@ALL
def test_samples_are_as_frequent_as_they_are_probable(attention):
    network = tiny(attention, seed=2)
    codes = network.encode(torch.randn(1, 3, 2, generator=chance(), dtype=torch.float64))
    grown = grow_partitions(network, codes, 6000, chance(), draw="sample")
    partitions, which = unique_partitions(grown.labels)
    share = which.bincount() / 6000
    log_q = partition_log_probability(
        network, codes, partitions, chance(), n_orders=100, n_anchors=None, n_draws=1000
    )
    assert len(partitions) == 5
    assert float(log_q.exp().sum()) == pytest.approx(1, abs=0.03)
    np.testing.assert_allclose(log_q.exp(), share, atol=0.03)


# --- sampling -------------------------------------------------------------------------------------


class Oracle(ClusterwiseNetwork):
    """Lets a point join if it lies on the anchor's side of the line."""

    def encode(self, x, keep=None):
        codes = super().encode(x, keep)
        side = x[..., :1].floor()
        return codes._replace(points=torch.cat([side, codes.points[..., 1:]], dim=-1))

    def join_logits(self, stage, context):
        same = stage.points[..., 0] == stage.anchor[:, None, 0]
        return torch.where(same[stage.candidate], 20.0, -20.0)[:, None]


@pytest.mark.parametrize("draw", ["mean", "sample"])
def test_passes_grow_with_clusters_and_not_with_points(draw):
    network = Oracle(width=8, latent_dim=3)
    for n_points, n_clusters in [(30, 3), (3000, 3), (30, 6)]:
        x = torch.arange(n_points * 2).reshape(1, -1, 2) % (2 * n_clusters) / 2.0
        grown = grow_partitions(network, network.encode(x), 7, chance(), draw=draw)
        assert grown.n_passes == n_clusters
        truth = unique_partitions(x[..., 0].long())[0]
        assert torch.equal(unique_partitions(grown.labels)[0], truth)


@ALL
@pytest.mark.parametrize("draw", ["mean", "sample"])
def test_growing_ends_and_covers_every_row(attention, draw, monkeypatch):
    network = tiny(attention).float()
    codes = network.encode(torch.randn(1, 25, 2, generator=chance()))
    grown = grow_partitions(network, codes, 8, chance(1), draw=draw)
    again = grow_partitions(network, codes, 8, chance(1), draw=draw)
    for one, other in zip(grown[:3], again[:3], strict=True):
        assert torch.equal(one, other)
    other = grow_partitions(network, codes, 8, chance(2), draw=draw)
    assert other.anchors.shape != grown.anchors.shape or not torch.equal(
        other.anchors, grown.anchors
    )
    counts = grown.labels.amax(dim=1) + 1
    assert (grown.labels >= 0).all()
    assert grown.n_passes == grown.anchors.shape[1] == int(counts.max())
    for labels, anchors, count in zip(grown.labels, grown.anchors, counts, strict=True):
        assert (anchors[:count] >= 0).all()
        assert (anchors[count:] == -1).all()
        assert labels[anchors[:count]].tolist() == list(range(count))
    monkeypatch.setattr(clusterwise_sampling, "_ROWS", 50)
    split = grow_partitions(network, codes, 8, chance(1), draw=draw)
    assert (split.labels >= 0).all()
    assert split.n_passes > grown.n_passes


@ALL
def test_stored_clusters_judge_a_row_as_the_step_did(attention):
    network = tiny(attention)
    x = torch.randn(12, 2, generator=chance(), dtype=torch.float64)
    labels = torch.tensor([0, 1, 0, 2, 1, 1, 0, 0, 2, 2, 1, 0])
    anchors = torch.tensor([6, 1, 9])
    latents = torch.randn(3, 3, generator=chance(1), dtype=torch.float64)
    codes = network.encode(x[None])
    contexts, memory = cluster_contexts(network, codes, labels, anchors, latents)
    memory = memory if memory.shape[1] else None
    with torch.no_grad():
        logits = network.new_point_logits(x, contexts, memory)
        alone = torch.cat([network.new_point_logits(row[None], contexts, memory) for row in x])
        torch.testing.assert_close(alone, logits)
        G = torch.zeros(1, 8, dtype=torch.float64)
        for k in range(3):
            owner, every = torch.zeros(1, dtype=torch.long), torch.arange(12)[None]
            is_open, member = labels[None] >= k, labels[None] == k
            stage = network.stage(codes, owner, every, is_open, anchors[[k]], G)
            context = network.join_context(stage, latents[None, [k]])
            expected = network.join_logits(stage, context)[:, 0]
            torch.testing.assert_close(logits[stage.candidate[0], k], expected)
            G = G + network.encode_cluster(codes.members, member)


def test_unknown_attention_is_refused():
    with pytest.raises(ValueError, match="attention='all'"):
        ClusterwiseNetwork(attention="all")
