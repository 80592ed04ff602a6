"""The network that reads relations and says which rows belong together."""

import numpy as np
import pytest
import torch

from asterism.functional.relations import (
    cross_features,
    describe,
)
from asterism.nn.pairwise import (
    MAX_COUNT,
    PairNetwork,
    pair_targets,
    relate,
    relations_of,
    shares_of,
)
from asterism.priors import TabularPrior


def chance(seed=0):
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def relations():
    batch = TabularPrior(n_points=(40, 40)).sample(3, torch.Generator().manual_seed(3))
    return relate(batch)


def test_permuting_rows_permutes_the_answer(relations):
    network = PairNetwork(width=16, heads=2, n_blocks=2).double()
    relations = relations._replace(pairs=relations.pairs.double(), tokens=relations.tokens.double())
    order = torch.randperm(40, generator=torch.Generator().manual_seed(1))
    logits = network(relations)
    shuffled = network(
        relations._replace(
            pairs=relations.pairs[:, :, order][..., order], tokens=relations.tokens[:, order]
        )
    )
    torch.testing.assert_close(shuffled, logits[:, order][:, :, order])
    torch.testing.assert_close(logits, logits.mT, rtol=1e-4, atol=1e-4)


def test_reading_without_gradients_is_the_same(relations):
    network = PairNetwork(width=16, heads=2, n_blocks=2)
    reading = network.read(relations)
    with torch.no_grad():
        again = network.read(relations)
        first = network.read(relations, n_judged=35)
        against = network.read(relations, reading.states)
    close = {"rtol": 1e-4, "atol": 1e-4}
    torch.testing.assert_close(again.logits, reading.logits, **close)
    torch.testing.assert_close(again.counts, reading.counts, **close)
    torch.testing.assert_close(first.logits, reading.logits[:, :35], **close)
    torch.testing.assert_close(against.logits, reading.logits, **close)


def test_rows_are_read_in_parts_as_at_once():
    """Each pair is judged once, and parts are written over each other."""
    batch = TabularPrior(n_points=(60, 60)).sample(2, torch.Generator().manual_seed(5))
    context, features = describe(batch.x.double())
    crossed = cross_features(context, batch.x[:, 10:50].double())
    network = PairNetwork(width=16, heads=2, n_blocks=2).double()
    with torch.no_grad():
        whole = network.read(relations_of(features, context, 60))
        parts = network.read(relations_of(features, context, 25))  # the last has ten
        against = network.read(relations_of(crossed, context, 40), whole.states)
        in_turn = network.read(relations_of(crossed, context, 17), whole.states)
    torch.testing.assert_close(parts.logits, whole.logits)
    torch.testing.assert_close(parts.counts, whole.counts)
    torch.testing.assert_close(parts.states[-1], whole.states[-1])
    torch.testing.assert_close(in_turn.logits, against.logits)


def test_parts_are_refused_in_training():
    batch = TabularPrior(n_points=(60, 60)).sample(2, torch.Generator().manual_seed(5))
    context, features = describe(batch.x)
    network = PairNetwork(width=16, heads=2, n_blocks=2)
    with pytest.raises(ValueError, match="3 parts"):
        network.read(relations_of(features, context, 25))
    with torch.no_grad(), pytest.raises(ValueError, match="n_judged"):
        network.read(relations_of(features, context, 25), n_judged=35)


def test_contexts_that_stand_alone_have_the_same_features_and_no_others():
    batch = TabularPrior(n_points=(60, 60)).sample(2, torch.Generator().manual_seed(5))
    (context, features), (alone, own) = describe(batch.x), describe(batch.x, alone=True)
    assert torch.equal(own.maps.features(), features.maps.features())
    assert torch.equal(alone.facts, context.facts)
    with pytest.raises(ValueError, match="described alone"):
        cross_features(alone, batch.x)


def test_a_row_of_the_context_is_read_alone_as_among_the_others():
    batch = TabularPrior(n_points=(60, 60)).sample(2, torch.Generator().manual_seed(5))
    x = batch.x.double()
    context, features = describe(x)
    crossed = cross_features(context, x)
    off = ~torch.eye(60, dtype=torch.bool)
    close = {"rtol": 1e-4, "atol": 1e-4}
    torch.testing.assert_close(
        crossed.maps.features()[..., off], features.maps.features()[..., off], **close
    )
    torch.testing.assert_close(crossed.rows, features.rows, **close)
    one = cross_features(context, x[:, 7:8])
    torch.testing.assert_close(one.maps.features(), crossed.maps.features()[:, :, 7:8])
    network = PairNetwork(width=16, heads=2, n_blocks=2).double()

    @torch.no_grad()
    def read(features, memory=None):
        return network.read(relations_of(features, context), memory)

    reading = read(features)
    assert reading.counts.shape == (2, MAX_COUNT)
    again = read(crossed, reading.states).logits
    assert (again - reading.logits)[:, off].abs().median() < 0.1 * reading.logits.std()
    torch.testing.assert_close(read(one, reading.states).logits, again[:, 7:8])


def test_gradients_reach_every_parameter(relations):
    network = PairNetwork(width=16, heads=2, n_blocks=2)
    network.loss(relations).backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad.abs().sum() > 0, name


def test_the_first_rows_are_judged_as_among_all(relations):
    network = PairNetwork(width=16, heads=2, n_blocks=2)
    some = network.read(relations, n_judged=7).logits
    torch.testing.assert_close(some, network(relations)[:, :7])


def test_a_few_rows_count_clusters_as_all_do():
    labels = torch.from_numpy(chance().permutation(np.repeat(np.arange(30), 10)))[None]
    logits = 16.0 * (labels[:, :, None] == labels[:, None]) - 8
    for rows in (48, 300):
        assert shares_of(logits[:, :rows])[0, 0].exp().item() == pytest.approx(30, rel=0.02)


def test_weights_of_pairs_leave_noise_out_and_favour_small_clusters():
    labels = torch.tensor([[0] * 12 + [1] * 3 + [-1] * 2])
    same, weights = pair_targets(labels)
    assert weights.sum().item() == pytest.approx(1)
    assert weights[0, 15:].abs().sum() == weights[0, :, 15:].abs().sum() == 0
    assert weights[0].diagonal().abs().sum() == 0
    assert weights[0, 12, 13] > weights[0, 0, 13] > weights[0, 0, 1]
    assert same[0, 0, 1] == 1
    assert same[0, 0, 13] == 0
    assert pair_targets(labels, 5)[1].shape == (1, 5, 17)


def test_loss_is_the_log_score_of_pairs_and_count(relations):
    class Fixed(PairNetwork):
        answer, single = 0.0, 0

        def read(self, relations, memory=None, n_judged=None):
            reading = super().read(relations, memory, n_judged)
            counts = torch.zeros_like(reading.counts)
            counts[:, 0] = self.single
            return reading._replace(
                logits=torch.full_like(reading.logits, self.answer), counts=counts
            )

    network = Fixed(width=8, heads=2, n_blocks=1, count_weight=0.5)
    expected = np.log(2) + 0.5 * np.log(MAX_COUNT)
    assert network.loss(relations).item() == pytest.approx(expected, rel=1e-5)
    labels = relations.labels.clone()
    labels[labels >= 0] = 0  # all in one cluster: sure of it is right, the more so the surer
    losses = []
    for network.answer, network.single in ((0.0, 0), (2.0, 0), (2.0, 3), (8.0, 3)):
        losses.append(network.loss(relations._replace(labels=labels)).item())
    assert losses == sorted(losses, reverse=True)
    assert len(set(losses)) == 4
    with pytest.raises(ValueError, match="needs labels"):
        network.loss(relations._replace(labels=None))
