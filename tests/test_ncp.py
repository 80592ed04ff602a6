"""The neural clustering process: exact probabilities, fast sums, and partitions found by them."""

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from asterism import NCP
from asterism.exceptions import DataError
from asterism.functional.decoding import sample_partitions, search_partitions
from asterism.functional.partitions import by_appearance, likeliest_first
from asterism.functional.sequential import order_log_probs, random_orders, step_log_probs
from asterism.functional.sets import SetBatch, pad_sets
from asterism.nn.ncp import NeuralClusteringProcess
from asterism.priors import RestaurantMixturePrior
from asterism.training import TrainingPlan


def chance(seed=0):
    return torch.Generator().manual_seed(seed)


def network(seed=0, **sizes):
    """Untrained, in double precision, with last layers wide enough for uneven probabilities."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        net = NeuralClusteringProcess(
            **{"hidden": 12, "h_dim": 7, "u_dim": 5, "g_dim": 9, **sizes}
        ).double()
        for parameter in net.parameters():
            parameter.data *= 2.5 if parameter.ndim == 2 else 1
    return net


def points(*shape, seed=0):
    return 2 * torch.randn(*shape, generator=chance(seed), dtype=torch.float64)


def whole(x):
    return torch.ones(x.shape[:2], dtype=torch.bool)


def set_partitions(n):
    """All partitions of n points, numbered by first appearance, (Bell(n), n)."""
    rows = [[0]]
    for _ in range(n - 1):
        rows = [[*row, k] for row in rows for k in range(max(row) + 2)]
    return torch.tensor(rows)


def one_by_one(net, x, labels):
    """Log q of one partition by the formulas as published, a step at a time."""
    total = 0.0
    h = net.h(x)
    for n in range(1, len(x)):
        K = int(labels[:n].max()) + 1
        H = [h[:n][labels[:n] == k].sum(dim=0) for k in range(K)]
        U = net.u(x[n + 1 :]).sum(dim=0)
        logits = []
        for k in range(K + 1):
            joined = [H[j] + h[n] if j == k else H[j] for j in range(K)]
            joined += [h[n]] if k == K else []
            G = torch.stack([net.g(sums) for sums in joined]).sum(dim=0)
            logits.append(net.f(torch.cat([G, U])))
        total += torch.cat(logits).log_softmax(dim=0)[labels[n]]
    return total


# --- the network ----------------------------------------------------------------------------------


def test_published_sizes():
    assert sum(p.numel() for p in NeuralClusteringProcess(2).parameters()) == 495_506


@pytest.mark.parametrize("n", [1, 2, 4, 6])
def test_probabilities_of_all_partitions_sum_to_one(n):
    partitions = set_partitions(n)
    x = points(1, n, 2).expand(len(partitions), -1, -1)
    probability = network().log_prob(x, whole(x), partitions).exp().detach()
    assert float(probability.sum()) == pytest.approx(1, abs=1e-12)
    if n == 6:
        assert len(partitions) == 203
        assert float(probability.max() / probability.min()) > 100  # not merely a uniform draw


def test_all_steps_at_once_agree_with_one_by_one():
    net, x = network(), points(3, 6, 2)
    labels = torch.stack([torch.randint(4, (6,), generator=chance(b)) for b in range(3)])
    labels[0], labels[1] = 3, torch.arange(6)  # one cluster, and as many as points
    expected = [one_by_one(net, x[b], by_appearance(labels[b])) for b in range(3)]
    torch.testing.assert_close(net.log_prob(x, whole(x), labels), torch.stack(expected))


def test_padding_changes_nothing_wherever_it_stands():
    net, x = network(), points(3, 8, 2)
    labels = torch.randint(3, (3, 8), generator=chance())
    keep = torch.rand(3, 8, generator=chance(1)) < 0.6
    found = net.log_prob(torch.where(keep[..., None], x, 1e3), keep, labels)
    for b in range(3):
        own = x[b, keep[b]][None]
        alone = net.log_prob(own, whole(own), labels[b, keep[b]][None])
        torch.testing.assert_close(found[b], alone[0])


def test_names_of_clusters_do_not_matter():
    net, x = network(), points(1, 7, 2)
    labels = torch.tensor([[0, 1, 0, 2, 2, 1, 0]])
    renamed = torch.tensor([5, 0, 3])[labels]
    torch.testing.assert_close(
        net.log_prob(x, whole(x), renamed), net.log_prob(x, whole(x), labels)
    )


def test_order_among_the_assigned_and_among_the_unassigned_does_not_matter():
    """Every step sees a set of sets behind it, and a set before it."""
    net, x, labels = network(), points(1, 7, 2), torch.tensor([[0, 1, 0, 1, 0, 2, 1]])

    def fourth_step(order):
        scorer = net.scorer()
        named = by_appearance(labels[:, order])
        return step_log_probs(scorer, scorer.encode(x[:, order]), named, whole(x))[0, 3]

    plain = fourth_step([0, 1, 2, 3, 4, 5, 6])
    assert abs(float(plain.detach())) > 1e-3
    for order in ([2, 1, 0, 3, 4, 5, 6], [1, 2, 0, 3, 4, 5, 6], [0, 1, 2, 3, 6, 4, 5]):
        torch.testing.assert_close(fourth_step(order), plain)
    assert not torch.isclose(fourth_step([0, 1, 4, 3, 2, 5, 6]), plain)  # another set behind


def test_gradients_reach_every_parameter():
    net = network()
    batch = SetBatch(points(4, 9, 2), whole(points(4, 9, 2)), torch.arange(9).expand(4, -1) % 3)
    net.loss(batch, chance()).backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_gradients_ignore_padding():
    net, x = network(), points(2, 5, 2)
    labels = torch.tensor([[0, 1, 0, 1, 2], [0, 0, 0, 0, 0]])
    grads = []
    for extra in (0, 3):
        net.zero_grad()
        keep = torch.arange(5 + extra).expand(2, -1) < 5
        padded = torch.cat([x, torch.full((2, extra, 2), 1e3, dtype=x.dtype)], dim=1)
        named = torch.cat([labels, torch.full((2, extra), -1)], dim=1)
        net.log_prob(padded, keep, named).sum().backward()
        grads.append(torch.cat([p.grad.flatten() for p in net.parameters()]))
    torch.testing.assert_close(*grads)


def test_loss_is_the_mean_over_data_sets_and_orders():
    net, sets = network(n_orders=3), [points(4, 2), points(7, 2, seed=1)]
    batch = pad_sets(sets)
    labels = torch.where(batch.keep, torch.arange(7) % 2, -1)
    batch = SetBatch(batch.x, batch.keep, labels)
    orders = random_orders(batch.keep, 3, chance(5))
    each = [
        -order_log_probs(net.scorer(), x, labels[b, : len(x)][None], orders[b, :, : len(x)])
        for b, x in enumerate(sets)
    ]
    found = net.loss(batch, chance(5)).detach()
    assert float(found) == pytest.approx(float(torch.cat(each).detach().mean()))
    with pytest.raises(DataError, match="labels=None"):
        net.loss(SetBatch(batch.x, batch.keep))
    with pytest.raises(ValueError, match="n_orders=0"):
        NeuralClusteringProcess(n_orders=0)


# --- decoding -------------------------------------------------------------------------------------


def ragged():
    """Three data sets of different sizes, with orders."""
    batch = pad_sets([points(n, 2, seed=n) for n in (5, 9, 2)])
    return batch, random_orders(batch.keep, 6, chance())


def test_log_probabilities_of_samples_and_beams_are_exact():
    net = network()
    batch, orders = ragged()
    drawn = sample_partitions(net.scorer(), batch.x, batch.keep, orders, chance())
    beams = search_partitions(net.scorer(), batch.x, batch.keep, orders, width=3)
    for b, size in enumerate(batch.sizes):
        x = batch.x[b, :size]
        for found, repeat in ((drawn, 1), (beams, 3)):
            assert found.log_probs.dtype == torch.float64
            assert (found.labels[b, :, size:] == -1).all()
            labels = found.labels[b, :, :size]
            assert torch.equal(by_appearance(labels), labels)
            for s in (found.log_probs[b] > -torch.inf).nonzero().flatten():
                order = orders[b, s // repeat, :size][None]
                exact = order_log_probs(net.scorer(), x, labels[s][None], order)
                torch.testing.assert_close(found.log_probs[b, s], exact[0, 0])
    # Two points have two partitions, whatever the width.
    assert (beams.log_probs[2].view(6, 3) > -torch.inf).sum(dim=1).tolist() == [2] * 6
    torch.testing.assert_close(beams.log_probs[2].view(6, 3).logsumexp(1), torch.zeros(6).double())


def test_samples_come_as_often_as_they_should():
    net, x, n = network(), points(1, 4, 2), 4000
    order = torch.arange(4).expand(1, n, -1)
    drawn = sample_partitions(net.scorer(), x, whole(x), order, chance()).labels[0]
    every = set_partitions(4)
    exact = order_log_probs(net.scorer(), x[0], every, order[0, :1]).exp().flatten()
    share = (drawn[None] == every[:, None]).all(dim=-1).double().mean(dim=1)
    # Five standard deviations of a share.
    bound = 5 * (exact * (1 - exact) / n).sqrt() + 1e-3
    assert ((share - exact).abs() < bound).all()


def test_a_wide_beam_finds_the_likeliest_partition_and_any_beam_at_least_the_greedy_one():
    every = set_partitions(5)
    for seed in range(3):
        net, x = network(seed), points(1, 5, 2, seed=seed)
        order = random_orders(whole(x), 1, chance(seed))
        exact = order_log_probs(net.scorer(), x[0], every, order[0]).flatten()
        args = (net.scorer(), x, whole(x), order)
        greedy, narrow, wide = (search_partitions(*args, width=w) for w in (1, 2, 52))
        assert narrow.log_probs[0, 0] >= greedy.log_probs[0, 0] - 1e-12  # rounding
        torch.testing.assert_close(wide.log_probs[0].sort().values, exact.sort().values)
        assert torch.equal(wide.labels[0, 0], every[exact.argmax()])


def test_greedy_takes_the_likeliest_step_each_time():
    net, x = network(3), points(1, 5, 2)
    labels = torch.zeros(1, 1, dtype=torch.long)
    for n in range(1, 5):
        longer = [torch.cat([labels, torch.tensor([[k]])], 1) for k in range(labels.max() + 2)]
        tails = [set_partitions(5) for _ in longer]
        # q(c_1 … c_n) is the sum over all that may follow.
        xs = x.expand(len(tails[0]), -1, -1)
        log_q = net.log_prob(xs, whole(xs), tails[0])
        mass = [log_q[(tails[0][:, : n + 1] == own).all(1)].logsumexp(0) for own in longer]
        labels = longer[int(torch.stack(mass).argmax())]
    order = torch.arange(5)[None, None]
    assert torch.equal(search_partitions(net.scorer(), x, whole(x), order).labels[0], labels)


def test_same_generator_same_samples_and_the_global_one_is_left_alone():
    net = network()
    batch, orders = ragged()
    state = torch.get_rng_state()
    first, second, third = (
        sample_partitions(net.scorer(), batch.x, batch.keep, orders, chance(seed)).labels
        for seed in (1, 1, 2)
    )
    assert torch.equal(first, second)
    assert not torch.equal(first, third)
    assert torch.equal(torch.get_rng_state(), state)


def test_likely_partitions_leave_out_the_impossible():
    labels = torch.tensor([[0, 0], [0, 1], [0, 0]])
    found, log_probs = likeliest_first(labels, torch.tensor([-4.0, -torch.inf, -2.0]))
    assert found.tolist() == [[0, 0]]
    assert log_probs.tolist() == [-2.0]


# --- the estimator --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Tiny network that has learnt what clusters far apart look like."""
    model = NCP(random_state=0).pretrain(
        RestaurantMixturePrior(n_points=(5, 30), max_clusters=4),
        plan=TrainingPlan(steps=120, lr=6e-3, schedule="cosine", clip=10.0, log_every=10),
        batch_size=16,
        hidden=24,
        h_dim=24,
        u_dim=24,
        g_dim=24,
    )
    path = model.save(tmp_path_factory.mktemp("ncp") / "tiny")
    return model.history_, path


def three_groups(n=60):
    return make_blobs(n, centers=[[-15, 0], [10, 12], [12, -14]], random_state=0)


def test_training_lowers_the_loss(trained):
    losses = [record["loss"] for record in trained[0]]
    assert np.mean(losses[-3:]) < 0.5 * losses[0]


@pytest.mark.parametrize("decode", ["greedy", "beam", "sample"])
def test_groups_far_apart_are_found(trained, decode):
    X, y = three_groups()
    model = NCP(decode=decode, weights=trained[1], n_samples=20, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.8
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert adjusted_rand_score(model.context_labels_, model.labels_) > 0.8
    assert len(model.cluster_sums_) == model.context_labels_.max() + 1
    assert model.log_probability_ <= 0 <= model.order_deviation_
    assert model.partitions_.shape == (20, 60)
    assert (model.log_probabilities_ <= 0).all()
    again = NCP(decode=decode, weights=trained[1], n_samples=20, random_state=0).fit(X)
    np.testing.assert_array_equal(again.labels_, model.labels_)
    np.testing.assert_array_equal(again.partitions_, model.partitions_)


def test_samples_have_the_probability_they_say(trained):
    X, _ = three_groups(12)
    model = NCP(weights=trained[1], n_orders=2, n_samples=5, random_state=0).fit(X)
    labels, log_probability = model.samples(400)
    # Whatever their orders, a partition's share is near the mean of its probability over orders.
    _, which, count = np.unique(labels, axis=0, return_inverse=True, return_counts=True)
    most = int(count.argmax())
    mean = np.exp(log_probability[which.ravel() == most]).mean()
    assert mean == pytest.approx(count[most] / 400, abs=0.15)


def test_a_large_table_is_read_through_some_of_its_rows(trained):
    X, y = three_groups(400)
    model = NCP(weights=trained[1], max_points=40, n_samples=5, random_state=0).fit(X)
    assert model.context_indices_.shape == model.context_labels_.shape == (40,)
    np.testing.assert_array_equal(model.nearest_[model.context_indices_], np.arange(40))
    assert adjusted_rand_score(y, model.labels_) > 0.8
    assert model.partitions_.shape == (5, 400)


def test_many_data_sets_at_once_are_clustered_as_each_alone(trained):
    sets = [three_groups(n)[0] for n in (20, 35, 8)]
    model = NCP(weights=trained[1], n_samples=3, random_state=0)
    for X, together in zip(sets, model.fit_many(sets), strict=True):
        alone = NCP(weights=trained[1], n_samples=3, random_state=0).fit(X)
        np.testing.assert_array_equal(together.labels_, alone.labels_)
        assert together.log_probability_ == pytest.approx(alone.log_probability_, abs=1e-3)


def test_of_two_equal_clusters_the_larger_takes_a_row(trained):
    """Whichever comes first: the two halves of a group may be equally good to the last digit."""
    model = NCP(weights=trained[1], n_samples=3, random_state=0).fit(three_groups()[0])
    model.cluster_sums_ = np.repeat(model.cluster_sums_[:1], 2, axis=0)
    model.n_clusters_ = 2
    for ranks in ([0, 1], [1, 0]):
        model.cluster_ranks_ = np.array(ranks)
        assert (model.predict(three_groups()[0]) == ranks.index(0)).all()


def test_rows_are_predicted_alone_as_in_company(trained):
    model = NCP(weights=trained[1], n_samples=3, random_state=0).fit(three_groups()[0])
    new = make_blobs(50, centers=3, random_state=1)[0]
    whole_table = model.predict_proba(new)
    alone = np.concatenate([model.predict_proba(row[None]) for row in new])
    np.testing.assert_allclose(alone, whole_table, rtol=1e-9, atol=1e-12)
