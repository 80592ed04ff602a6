"""The Set Transformer that adds clusters until it stops."""

import math
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import check_estimator

from asterism import RecurrentMixture
from asterism.functional.mixtures import log_likelihood
from asterism.functional.sets import SetBatch, pad_sets
from asterism.nn.recurrent import RecurrentSetTransformer
from asterism.priors import ClusterMixturePrior
from asterism.training import PriorSource, TrainingPlan, train

PRIOR = ClusterMixturePrior(n_points=(30, 60))
SMALL = {"width": 16, "heads": 2, "n_inducing": 4, "encoder_blocks": 2}


def network(seed=0, **sizes):
    torch.manual_seed(seed)
    return RecurrentSetTransformer(**{**SMALL, **sizes})


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def batch_of(n=4, seed=0):
    return PRIOR.sample(n, torch.Generator().manual_seed(seed))


def pulled(net, stop):
    """The same network, with a stop logit of its own; large goes on."""
    with torch.no_grad():
        net.head.weight[0] = 0
        net.head.bias[0] = stop
    return net


# --- network --------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [False, True])
def test_order_and_padding_do_not_matter(norm):
    net = network(layer_norm=norm)
    sets = [draw(n, 2, seed=n) for n in (5, 9)]
    batch = pad_sets(sets)
    together = net(batch.x, batch.keep, n_slots=6)
    unrolled, counts, _ = net.unroll(batch.x, batch.keep, max_slots=7)
    for b, points in enumerate(sets):
        alone = net(points[None], n_slots=6)
        shuffled = net(points.flip(0)[None], n_slots=6)
        for part, same, other in zip(together, alone, shuffled, strict=True):
            torch.testing.assert_close(part[b], same[0], rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(other, same, rtol=1e-4, atol=1e-5)
        single, count, _ = net.unroll(points[None], max_slots=7)
        assert count[0] == counts[b]
        for part, same in zip(unrolled, single, strict=True):
            torch.testing.assert_close(part[b, : count[0]], same[0], rtol=1e-4, atol=1e-5)


def test_padding_does_not_change_the_loss():
    net = network()
    batch = batch_of()
    grown = SetBatch(
        torch.cat([batch.x, 100 * draw(4, 6, 2)], dim=1),
        torch.cat([batch.keep, torch.zeros(4, 6, dtype=torch.bool)], dim=1),
        torch.cat([batch.labels, torch.full((4, 6), -1)], dim=1),
    )
    torch.testing.assert_close(net.loss(grown), net.loss(batch), rtol=1e-4, atol=1e-5)


def test_the_loss_is_the_published_one_pass_by_pass():
    net = network()
    batch = batch_of(6)
    read = net._read(batch.x, batch.keep, 4)
    slots = net._slots(4)
    expected = []
    for b in range(6):
        count = int(batch.labels[b].max()) + 1
        going_on, terms = 1.0, []
        for k in range(1, 5):
            # The reference runs the whole decoder again with k slots.
            rows = net.gather(slots[None, :k], net.encoder(batch.x[b : b + 1]))
            torch.testing.assert_close(rows[0], read[b, :k], rtol=1e-4, atol=1e-5)
            for block in net.decoder:
                rows = block(rows)
            going_on = going_on * torch.sigmoid(net.head(rows)[0, :, 0].mean())
            target = torch.tensor(float(k < count))
            terms.append(torch.nn.functional.binary_cross_entropy(going_on, target))
        mixture = net(batch.x[b : b + 1], n_slots=count)
        fit = log_likelihood(batch.x[b : b + 1], mixture).mean()
        expected.append(sum(terms) / 4 - fit)
    torch.testing.assert_close(net.loss(batch), sum(expected) / 6, rtol=1e-4, atol=1e-4)


def test_slots_grow_from_those_before_them():
    net = network()
    torch.testing.assert_close(net._slots(5)[:3], net._slots(3))
    torch.testing.assert_close(net._slots(4)[3:], net.grow(net._slots(3)[None])[0])


def test_gradients_reach_every_parameter():
    net = network()
    net.loss(batch_of(8)).backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("stop", [-60.0, 60.0])
def test_the_loss_stays_finite_when_the_network_is_certain(stop):
    net = pulled(network(), stop)
    loss = net.loss(batch_of())
    loss.backward()
    assert torch.isfinite(loss)
    assert all(torch.isfinite(parameter.grad).all() for parameter in net.parameters())


def test_it_stops_where_going_on_is_less_likely_than_not():
    x = draw(3, 20, 2)
    # c_k = pᵏ with p = sigmoid(v): the first k with pᵏ < ½.
    for p, expected in [(0.4, 1), (0.6, 2), (0.75, 3), (0.9, 7)]:
        net = pulled(network(), math.log(p / (1 - p)))
        mixture, count, stopped = net.unroll(x)
        assert count.tolist() == [expected] * 3
        assert stopped.all()
        assert mixture.means.shape == (3, expected, 2)
        for part, exact in zip(mixture, net(x, n_slots=expected), strict=True):
            torch.testing.assert_close(part, exact, rtol=1e-4, atol=1e-5)


def test_it_ends_at_the_last_slot_and_says_so():
    _, count, stopped = pulled(network(), 20.0).unroll(draw(3, 20, 2), max_slots=5)
    assert count.tolist() == [5, 5, 5]
    assert not stopped.any()


def test_finished_data_sets_leave_the_batch():
    net = network()
    seen = []
    decode = net._decode

    def counted(rows, seen_slots=None):
        seen.append(len(rows))
        # Data set b of three ends at pass b + 1: all left go on but the first.
        stop = torch.where(torch.arange(len(rows)) == 0, -9.0, 9.0)
        return stop, decode(rows, seen_slots)[1]

    net._decode = counted
    mixture, count, stopped = net.unroll(draw(3, 20, 2), max_slots=10)
    assert seen == [3, 2, 1]
    assert count.tolist() == [1, 2, 3]
    assert stopped.all()
    assert torch.isfinite(mixture.log_weights).sum(dim=1).tolist() == [1, 2, 3]
    torch.testing.assert_close(mixture.log_weights.exp().sum(dim=1), torch.ones(3))


def test_more_clusters_than_slots_are_refused():
    batch = ClusterMixturePrior(max_clusters=12).sample(8, torch.Generator().manual_seed(0))
    with pytest.raises(ValueError, match="max_clusters=4"):
        network().loss(batch)
    with pytest.raises(ValueError, match="labels"):
        network().loss(SetBatch(batch.x, batch.keep))


# --- estimator ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A small network after a few seconds, and the losses on the way."""
    model = RecurrentMixture(random_state=0)
    plan = TrainingPlan(steps=200, lr=2e-3, schedule="cosine", clip=10.0, log_every=20)
    model.pretrain(PRIOR, plan=plan, batch_size=8, **{**SMALL, "width": 32, "n_inducing": 8})
    path = model.save(tmp_path_factory.mktemp("weights") / "recurrent")
    return path, [record["loss"] for record in model.history_]


def test_training_lowers_the_loss(trained):
    losses = trained[1]
    assert losses[-1] < losses[0] - 2


def test_it_finds_clusters_and_stops(trained):
    batch = batch_of(20, seed=5)
    models = RecurrentMixture(weights=trained[0], scaling="none", refine="em", n_em=5).fit_many(
        batch.x.numpy()
    )
    scores = [adjusted_rand_score(y, m.labels_) for y, m in zip(batch.labels, models, strict=True)]
    assert np.mean(scores) > 0.4
    assert all(model.stopped_ is True for model in models)
    for model in models:
        assert len(model.weights_) == len(model.means_) >= model.n_clusters_
        assert model.weights_.sum() == pytest.approx(1)
        assert not hasattr(model, "notes_")
    alone = RecurrentMixture(weights=trained[0], scaling="none", refine="em", n_em=5)
    assert np.array_equal(alone.fit(batch.x[3].numpy()).labels_, models[3].labels_)


def test_a_number_given_is_used(trained):
    X = batch_of(1).x[0].numpy()
    for k in (1, 3, 7):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model = RecurrentMixture(k, weights=trained[0], max_slots=2).fit(X)
        assert [w.filename for w in told] == [__file__] * (model.n_clusters_ < k)
        assert model.means_.shape == (k, 2)
        assert model.n_clusters_ <= k
        assert model.stopped_ is False
    with pytest.raises(ValueError, match=r"n_samples=2 should be >= n_clusters=3"):
        RecurrentMixture(3, weights=trained[0]).fit(X[:2])


def test_it_tells_when_it_did_not_stop(trained):
    X = np.random.default_rng(0).normal(size=(60, 5))
    model = RecurrentMixture(weights=trained[0], max_slots=3)
    model._load_weights()
    pulled(model.module_, 20.0)
    model.fit(X)
    assert model.stopped_ is False
    assert len(model.means_) == 3
    assert "principal axes" in model.notes_[0]
    assert "did not stop within max_slots=3" in model.notes_[1]


def test_it_is_saved_and_read_again(trained, tmp_path):
    X = batch_of(1).x[0].numpy()
    model = RecurrentMixture(weights=trained[0]).fit(X)
    again = RecurrentMixture.load(model.save(tmp_path / "model"))
    assert again.stopped_ is model.stopped_
    np.testing.assert_array_equal(again.predict(X), model.labels_)
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X))
    assert math.isfinite(again.score(X))


@pytest.mark.filterwarnings("ignore")
def test_it_keeps_scikit_learns_contract(trained):
    # So little training needs the help of expectation maximisation.
    check_estimator(RecurrentMixture(weights=trained[0], refine="em", n_em=20))
    assert clone(RecurrentMixture(max_slots=8)).max_slots == 8


def test_the_same_seed_trains_the_same_network():
    def losses():
        net = network(3)
        return train(net, PriorSource(PRIOR, 4, 1), TrainingPlan(steps=3, log_every=1), seed=1)

    assert [r["loss"] for r in losses()] == [r["loss"] for r in losses()]
