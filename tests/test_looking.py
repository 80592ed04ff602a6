"""Second looks at what a filtering network has claimed."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from asterism import DAC
from asterism.functional.sets import pad_sets
from asterism.nn import looking
from asterism.nn.filtering import StoredPasses
from asterism.nn.looking import look
from asterism.priors import ClusterMixturePrior, benchmark_batches


def crowd():
    """Sets of up to twelve clusters that overlap, of 260 points and more."""
    prior = ClusterMixturePrior(max_clusters=12, n_points=(421, 421), center_scale=1.0)
    batch = prior.sample(24, torch.Generator().manual_seed(0))
    return pad_sets([x[: 260 + 7 * i] for i, x in enumerate(batch.x)])


@pytest.fixture(params=["dac-mog", "dac-mog-small"])
def network(request):
    """Shipped ones, of both losses."""
    return DAC.from_pretrained(request.param).module_.eval()


def anchors(network):
    return torch.arange(3, 27) if network.anchored else None


@torch.no_grad()
def test_one_look_is_a_reading(network):
    batch, anchor = crowd(), anchors(network)
    seen, reading = (
        look(network, batch.x, batch.keep, anchor),
        network.remember(batch.x, batch.keep, anchor),
    )
    assert torch.equal(seen.logits[batch.keep], reading.logits[batch.keep])
    assert seen.logits[~batch.keep].isneginf().all()
    assert torch.equal(seen.contexts[:, 0], reading.context)
    assert torch.equal(seen.memory[:, 0], reading.memory)


@torch.no_grad()
def test_a_second_look_reads_what_the_first_has_claimed(network):
    batch, anchor = crowd(), anchors(network)
    first, both = (look(network, batch.x, batch.keep, anchor, looks=n) for n in (1, 2))
    narrowed = 0
    for b in range(len(batch)):
        claimed = first.logits[b] > 0
        own = None
        if anchor is not None:
            claimed[anchor[b]] = True
            own = claimed[: anchor[b]].sum()[None]
        again = network.remember(batch.x[b, claimed][None], None, own)
        logits = again.logits[0]
        least = max(5, 0.05 * claimed.sum())
        expected = first.logits[b].clone()
        context = first.contexts[b, 0]
        if min((logits > 1).sum(), (logits < -1).sum()) >= least:
            narrowed += 1
            expected[claimed] = torch.minimum(expected[claimed], logits)
            context = again.context[0]
        torch.testing.assert_close(both.logits[b], expected, rtol=1e-3, atol=1e-3)
        torch.testing.assert_close(both.contexts[b, 1], context, rtol=1e-4, atol=1e-4)
    assert narrowed  # else nothing was tested


@pytest.fixture
def every_look_counts(monkeypatch):
    """Whatever a look leaves out; with the shipped rule few of them count."""
    monkeypatch.setattr(looking, "_SURE", 0.0)
    monkeypatch.setattr(looking, "_FEWEST", 1)
    monkeypatch.setattr(looking, "_SHARE", 0.0)


@pytest.mark.usefixtures("every_look_counts")
@torch.no_grad()
def test_rows_are_recalled_by_all_looks(network):
    batch, anchor = crowd(), anchors(network)
    seen = look(network, batch.x, batch.keep, anchor, looks=2)
    narrowed = (seen.contexts[:, 0] != seen.contexts[:, 1]).any(dim=1).nonzero().flatten().tolist()
    assert narrowed
    for b in narrowed:
        rows, logits = batch.x[b, batch.keep[b]], seen.logits[b, batch.keep[b]]
        row = rows[None, 0 if anchor is None else anchor[b]]
        passes = StoredPasses(seen.contexts[[b]], seen.memory[[b]], row, torch.zeros(1) > 0)
        read, claimed = network.read(rows, passes)[:, 0], logits > 0
        torch.testing.assert_close(read[claimed], logits[claimed], rtol=1e-2, atol=1e-2)
        clear = logits.abs() > 0.05
        assert torch.equal((read > 0)[clear], claimed[clear])


@pytest.mark.usefixtures("every_look_counts")
@torch.no_grad()
def test_looks_do_not_depend_on_padding_or_order(network):
    batch, anchor = crowd(), anchors(network)
    together = look(network, batch.x, batch.keep, anchor, looks=2)
    narrowed = (together.contexts[:, 0] != together.contexts[:, 1]).any(dim=1)
    assert narrowed.any()
    for b in narrowed.nonzero().flatten().tolist():
        x, keep = batch.x[[b], : batch.sizes[b]], torch.ones(1, int(batch.sizes[b])) > 0
        own = None if anchor is None else anchor[[b]]
        alone = look(network, x, keep, own, looks=2)
        torch.testing.assert_close(
            alone.logits, together.logits[[b], : batch.sizes[b]], rtol=1e-2, atol=1e-2
        )
        turned = None if own is None else x.shape[1] - 1 - own
        flipped = look(network, x.flip(1), keep, turned, looks=2)
        torch.testing.assert_close(flipped.logits.flip(1), alone.logits, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize(
    ("weights", "seed", "batch", "index"),
    [("dac-mog", 12, 1, 9), ("dac-mog-anchored", 4, 0, 3), ("dac-warped", 4, 0, 3)],
)
def test_the_estimator_reads_new_rows_by_all_looks(weights, seed, batch, index, tmp_path):
    """Data sets on which second looks count."""
    *_, drawn = benchmark_batches("clustering", seed=seed, n_batches=batch + 1)
    X = drawn.x[index].numpy()
    asked = DAC(looks=2, weights=weights, scaling="none", random_state=0)
    model = asked.fit_many([drawn.x[0].numpy(), X])[1]
    assert (model.pass_contexts_[:, 0] != model.pass_contexts_[:, 1]).any()
    assert (model.predict(X) == model.labels_).mean() > 0.999
    np.testing.assert_array_equal(model.predict(X[::-7]), model.predict(X)[::-7])
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    np.testing.assert_array_equal(clone(asked).fit(X).labels_, model.labels_)
    again = DAC.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_a_second_look_parts_clusters_that_a_crowd_hides():
    """A data set of seven clusters, two of which a network that looks once takes for one."""
    *_, batch = benchmark_batches("clustering", seed=12, n_batches=2)
    X, y = batch.x[9].numpy(), batch.labels[9].numpy()
    once, twice = (DAC(looks=looks, scaling="none").fit(X) for looks in (1, 2))
    assert (once.n_clusters_, twice.n_clusters_, len(np.unique(y))) == (6, 7, 7)
    assert adjusted_rand_score(y, twice.labels_) > adjusted_rand_score(y, once.labels_)
