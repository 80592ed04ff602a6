"""Iterative filtering, the network that answers it, and the loss it learns from."""

import pytest
import torch
from torch.nn import functional as F

from asterism.functional.filtering import (
    Claim,
    draw_indices,
    equal_rows,
    filter_sets,
    first_claim,
    read_claims,
    stick_breaking,
)
from asterism.functional.sets import SetBatch, pad_sets
from asterism.nn.attention import MAB, Condition, ISABStack
from asterism.nn.filtering import FilteringNetwork, StoredPasses

TINY = {"width": 8, "heads": 2, "n_inducing": 3, "depth": 2}
IMAGES = {
    "density": "vae",
    "encoder": "conv",
    "encoder_options": {"widths": (8, 8, 8)},
    "density_options": {"latent_dim": 4, "widths": (8, 8, 8), "n_transforms": 1, "hidden": 8},
}
NETWORKS = {
    "min": (2, {}),
    "anchored": (2, {"loss": "anchored"}),
    "tied, normalised": (2, {"tied": True, "layer_norm": True}),
    "maf": (2, {"density": "maf", "density_options": {"hidden": (8, 8)}}),
    "released maf": (2, {"density": "maf", "density_options": {"faithful": True}}),
    "no density": (3, {"density": "none"}),
    "images": (225, IMAGES),
    "anchored images": (225, {**IMAGES, "loss": "anchored"}),
}


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def build(name, **options):
    dim, own = NETWORKS[name]
    with torch.random.fork_rng():
        torch.manual_seed(3)
        network = FilteringNetwork(dim, **{**TINY, **own, **options})
        with torch.no_grad():
            network.claim.weight.mul_(10)  # an untrained network hardly tells points apart
    return network


def labelled(name, sizes=(9, 14), seed=0):
    """Padded batch whose clusters are numbered 0, 1, 2, the second data set lacking 1."""
    dim = NETWORKS[name][0]
    sets = [draw(n, dim, seed=seed + n) for n in sizes]
    sets = [x.sigmoid() if dim > 100 else x for x in sets]
    batch = pad_sets(sets)
    labels = torch.arange(batch.x.shape[1]).expand(len(sets), -1) % 3
    labels = torch.where(torch.tensor([[False], [True]]) & (labels == 1), 0, labels)
    return SetBatch(batch.x, batch.keep, torch.where(batch.keep, labels, -1))


def anchors(name, batch):
    return torch.zeros(len(batch), dtype=torch.long) + 2 if "anchored" in name else None


# --- the stack ------------------------------------------------------------------------------------


@pytest.mark.parametrize("tied", [False, True])
def test_a_stack_reads_rows_again_as_it_read_them_first(tied):
    stack = ISABStack(3, 8, 2, 4, depth=3, tied=tied)
    x, keep = draw(2, 9, 3), torch.arange(9).expand(2, -1) < torch.tensor([[9], [6]])
    out, memory = stack.remember(x, keep)
    torch.testing.assert_close(out, stack(x, keep))
    assert [part.shape for part in memory] == [(2, 4, 8)] * 3
    torch.testing.assert_close(stack.recall(x, memory), out)
    alone = torch.cat([stack.recall(x[:, i : i + 1], memory) for i in range(9)], dim=1)
    torch.testing.assert_close(alone, out, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(stack(x[1:, :6])[0], out[1, :6], rtol=1e-4, atol=1e-5)


def test_tying_leaves_two_blocks():
    sizes = [
        sum(p.numel() for p in ISABStack(8, 8, 2, 4, depth=4, tied=tied).parameters())
        for tied in (False, True)
    ]
    assert sizes[0] == 2 * sizes[1]
    with pytest.raises(ValueError, match="depth=0"):
        ISABStack(8, 8, 2, 4, depth=0)


def test_condition_is_attention_to_one_row():
    mab, cheap = MAB(3, 5, 8, 2), Condition(3, 5, 8)
    cheap.query, cheap.feed = mab.query, mab.feed
    with torch.no_grad():
        cheap.value.weight.copy_(mab.key_value.weight[8:])
        cheap.value.bias.copy_(mab.key_value.bias[8:])
    x, y = draw(2, 4, 3), draw(2, 5, seed=1)
    torch.testing.assert_close(cheap(x, y), mab(x, y[:, None]))


# --- the network ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NETWORKS)
def test_order_and_padding_do_not_matter(name):
    network, batch = build(name).eval(), labelled(name)
    anchor = anchors(name, batch)
    logits, context = network.step(batch.x, batch.keep, anchor)
    assert logits.std() > 1e-4
    for b, size in enumerate(batch.sizes.tolist()):
        x, own = batch.x[b : b + 1, :size], None if anchor is None else anchor[:1]
        alone, same = network.step(x, None, own)
        torch.testing.assert_close(alone[0], logits[b, :size], rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(same[0], context[b], rtol=1e-3, atol=1e-4)
        flipped, _ = network.step(x.flip(1), None, None if own is None else size - 1 - own)
        torch.testing.assert_close(flipped.flip(1), alone, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_reach_every_parameter(name):
    network = build(name)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network.loss(labelled(name)).backward()
    for parameter_name, parameter in network.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.abs().sum() > 0, parameter_name


@pytest.mark.parametrize("name", ["min", "anchored", "images"])
def test_rows_are_recalled_as_they_were_read(name):
    network, batch = build(name).eval(), labelled(name)
    features, anchor = network.features(batch.x), anchors(name, batch)
    logits, context, memory = network.remember(features, batch.keep, anchor)
    torch.testing.assert_close(
        (logits, context), network.step(batch.x, batch.keep, anchor), rtol=1e-4, atol=1e-5
    )
    row = None if anchor is None else features[:, 2]
    recalled = network.recall(features[:, 4:6], context, memory, row)
    torch.testing.assert_close(recalled, logits[:, 4:6], rtol=1e-3, atol=1e-4)
    rows = features[:1, 2].expand(2, -1)
    passes = StoredPasses(
        context[:1].expand(2, 1, -1),
        memory[:1].expand(2, 1, -1, -1, -1),
        rows,
        torch.tensor([0, 1]) > 0,
    )
    read = network.read(features[0], passes)
    torch.testing.assert_close(read[:, 0], logits[0], rtol=1e-3, atol=1e-4)
    assert read[2, 1] > 0  # forced in
    others = torch.arange(len(read)) != 2
    torch.testing.assert_close(read[others, 1], read[others, 0])


def slow_costs(logits, log_p, labels):
    """Both parts of the cost of every cluster of one data set, straight from the formula."""
    for j in labels.unique().tolist():
        target = (labels == j).float()
        membership = F.binary_cross_entropy_with_logits(logits, target)
        yield membership, -log_p[labels == j].mean()


@pytest.mark.parametrize("name", ["min", "anchored", "maf", "no density"])
def test_loss_is_the_formula(name):
    network, batch = build(name), labelled(name)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        found = network.terms(batch)
        torch.manual_seed(0)
        index = torch.multinomial(batch.keep.float(), 1).squeeze(1)
        torch.manual_seed(0)
        loss = network.loss(batch)
    total = 0.0
    for b, size in enumerate(batch.sizes.tolist()):
        x, labels = batch.x[b : b + 1, :size], batch.labels[b, :size]
        own = index[b : b + 1] if name == "anchored" else None
        logits, context = network.step(x, None, own)
        log_p = torch.zeros(size)
        if network.density is not None:
            log_p = network.density.log_prob(x, context)[0]
        costs = list(slow_costs(logits[0], log_p, labels))
        place = labels.unique().tolist()
        expected = (
            costs[place.index(labels[index[b]].item())]
            if name == "anchored"
            else min(costs, key=lambda pair: (pair[0] + pair[1]).item())
        )
        torch.testing.assert_close(found.membership[b], expected[0], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(found.density[b], expected[1], rtol=1e-4, atol=1e-5)
        total += (expected[0] + expected[1]) / len(batch)
    torch.testing.assert_close(loss, total, rtol=1e-4, atol=1e-5)


def test_points_of_no_cluster_should_be_claimed_by_none():
    network, batch = build("no density"), labelled("no density", sizes=(9, 9))
    labels = torch.where(batch.labels == 2, -1, batch.labels)
    logits, _ = network.step(batch.x, batch.keep)
    found = network.terms(SetBatch(batch.x, batch.keep, labels)).membership
    for b in range(2):
        targets = [(labels[b] == j).float() for j in labels[b].unique().tolist() if j >= 0]
        expected = min(F.binary_cross_entropy_with_logits(logits[b], t) for t in targets)
        torch.testing.assert_close(found[b], expected, rtol=1e-4, atol=1e-5)


def test_bad_networks_are_refused():
    with pytest.raises(ValueError, match="loss='max' is not one of min, anchored"):
        FilteringNetwork(2, loss="max")
    with pytest.raises(ValueError, match="dim=10 is not 1 channel"):
        FilteringNetwork(10, encoder="conv")
    with pytest.raises(ValueError, match="needs an anchor"):
        build("anchored").step(draw(1, 4, 2))
    with pytest.raises(ValueError, match="learns from labels"):
        build("min").loss(pad_sets([draw(4, 2)]))


# --- filtering ------------------------------------------------------------------------------------


def undecided(batch):
    """Network that claims about half of the points, none of which lies on the border."""
    network = build("min").eval()
    with torch.no_grad():
        logits = network.step(batch.x, batch.keep)[0][batch.keep].sort().values
        middle = len(logits) // 2
        network.claim.bias -= (logits[middle - 1] + logits[middle]) / 2
    return network


def by_network(network):
    def claim(rows, left, sets):
        logits, context, _ = network.remember(rows, left)
        return Claim(logits, None, {"context": context})

    return claim


def by_bands(rows, left, sets):
    """Claims the points within one of the smallest."""
    value = torch.where(left, rows[..., 0], torch.inf)
    return Claim(1 - (value - value.amin(dim=1, keepdim=True)), None, {"smallest": value.amin(1)})


def test_bands_are_taken_one_by_one():
    sets = [torch.tensor([[5.0], [0.0], [5.5], [0.2]]), torch.tensor([[3.0], [3.1]])]
    batch = pad_sets(sets)
    first, second = filter_sets(by_bands, batch.x, batch.keep)
    assert first.labels.tolist() == [1, 0, 1, 0]
    assert second.labels.tolist() == [0, 0]
    assert [step.indices.tolist() for step in first.passes] == [[0, 1, 2, 3], [0, 2]]
    assert first.passes[0].taken.tolist() == [False, True, False, True]
    assert [step.kept["smallest"].item() for step in first.passes] == [0, 5]
    assert not any(step.forced for step in first.passes)
    assert len(second.passes) == 1


def test_the_batch_shrinks_as_points_and_sets_are_done():
    shapes = []

    def watched(rows, left, sets):
        shapes.append((tuple(left.shape), sets.tolist()))
        return by_bands(rows, left, sets)

    sets = [torch.tensor([[0.0], [0.1]]), torch.tensor([[0.0], [9.0], [0.0], [4.0]])]
    batch = pad_sets(sets)
    filter_sets(watched, batch.x, batch.keep)
    assert shapes == [((2, 4), [0, 1]), ((1, 2), [1]), ((1, 1), [1])]


@torch.no_grad()
def test_compaction_equals_masking():
    batch = labelled("min", sizes=(20, 30))
    claim = by_network(undecided(batch))
    paths = filter_sets(claim, batch.x, batch.keep, max_iter=4)
    left = batch.keep.clone()
    for number in range(4):
        expected = claim(batch.x, left, None)
        for b, path in enumerate(paths):
            if number < len(path.passes):
                step = path.passes[number]
                assert step.indices.tolist() == left[b].nonzero().flatten().tolist()
                torch.testing.assert_close(
                    (step.kept["context"], step.logits),
                    (expected.kept["context"][b], expected.logits[b, left[b]]),
                    rtol=1e-3,
                    atol=1e-4,
                )
                left[b, step.indices[step.taken]] = False
    assert min(len(path.passes) for path in paths) > 1


@torch.no_grad()
def test_filtering_does_not_depend_on_company_or_order():
    batch = labelled("min", sizes=(20, 30))
    claim = by_network(undecided(batch))
    together = filter_sets(claim, batch.x, batch.keep)
    for b, size in enumerate(batch.sizes.tolist()):
        x, keep = batch.x[b : b + 1, :size], torch.ones(1, size) > 0
        (alone,) = filter_sets(claim, x, keep)
        (turned,) = filter_sets(claim, x.flip(1), keep)
        assert alone.labels.max() > 0
        assert torch.equal(together[b].labels, alone.labels)
        assert torch.equal(turned.labels.flip(0), alone.labels)


def test_every_pass_makes_progress_even_if_nothing_is_claimed():
    def shy(rows, left, sets):
        return Claim(-1 - rows[..., 0].abs(), None, {})

    x = torch.tensor([[[3.0], [1.0], [2.0], [1.0]]])
    (path,) = filter_sets(shy, x, torch.ones(1, 4) > 0)
    assert path.labels.tolist() == [2, 0, 1, 0]  # equals come along
    assert all(step.forced for step in path.passes)
    assert [step.anchor for step in path.passes] == [1, 2, 0]


def test_an_anchor_is_taken_whatever_its_logit():
    def last(rows, left, sets):
        anchor = left.sum(dim=1) - 1
        return Claim(torch.where(rows[..., 0] > 2, 1.0, -1.0), anchor, {})

    (path,) = filter_sets(last, torch.tensor([[[3.0], [1.0], [4.0], [0.0]]]), torch.ones(1, 4) > 0)
    assert path.labels.tolist() == [0, 1, 0, 0]
    assert [step.forced for step in path.passes] == [True, True]


def test_leftovers_are_seen():
    def shy(rows, left, sets):
        return Claim(-rows[..., 0], None, {})

    (path,) = filter_sets(
        shy, 1 + torch.arange(5.0)[None, :, None], torch.ones(1, 5) > 0, max_iter=2
    )
    assert path.labels.tolist() == [0, 1, -1, -1, -1]


def test_what_is_not_a_number_still_ends():
    def broken(rows, left, sets):
        return Claim(torch.full(left.shape, torch.nan), None, {})

    (path,) = filter_sets(broken, torch.arange(3.0)[None, :, None], torch.ones(1, 3) > 0)
    assert sorted(path.labels.tolist()) == [0, 1, 2]


def test_anchors_are_drawn_evenly_from_what_is_left():
    left = torch.tensor([True, False, True, True])
    chance = torch.Generator().manual_seed(0)
    drawn = draw_indices(left.expand(300, -1), [chance] * 300)
    counts = torch.bincount(drawn, minlength=4)
    assert counts[1] == 0
    assert counts[[0, 2, 3]].min() > 70


def test_equal_rows_but_for_rounding():
    rows = torch.tensor([[100.0, 1.0], [100.0 + 1e-5, 1.0], [100.1, 1.0]])
    assert equal_rows(rows, rows[0]).tolist() == [True, True, False]
    assert not equal_rows(rows, torch.full((2,), torch.nan)).any()


# --- reading --------------------------------------------------------------------------------------


def test_sticks_break_to_one():
    logits = 5 * draw(7, 4).double()
    log_p, log_rest = stick_breaking(logits)
    m = logits.sigmoid()
    torch.testing.assert_close(log_p[:, 2].exp(), m[:, 2] * (1 - m[:, 0]) * (1 - m[:, 1]))
    torch.testing.assert_close(
        log_p.exp().sum(dim=1) + log_rest.exp(), torch.ones(7, dtype=torch.float64)
    )


def test_sticks_break_in_logs():
    log_p, log_rest = stick_breaking(torch.tensor([[-800.0, -900.0], [900.0, 900.0]]))
    torch.testing.assert_close(log_p, torch.tensor([[-800.0, -900.0], [0.0, -900.0]]))
    torch.testing.assert_close(log_rest, torch.tensor([0.0, -1800.0]))
    torch.testing.assert_close(
        stick_breaking(torch.tensor([torch.inf, 0.0]))[0], torch.tensor([0.0, -torch.inf])
    )


def test_the_label_is_the_first_claim_and_the_likeliest_cluster():
    logits = draw(200, 4).double()
    clusters = torch.tensor([0, 1, 0, 2])
    mixture = torch.log_softmax(draw(200, 3, seed=1).double(), dim=1)
    log_r = read_claims(logits, clusters, 3, mixture)
    torch.testing.assert_close(log_r.exp().sum(dim=1), torch.ones(200, dtype=torch.float64))
    first = first_claim(logits)
    claimed = first >= 0
    assert 0 < claimed.sum() < 200
    assert torch.equal(log_r.argmax(dim=1)[claimed], clusters[first[claimed]])
    # Far from all claims only the densities speak.
    far = read_claims(torch.full((200, 4), -50.0).double(), clusters, 3, mixture)
    torch.testing.assert_close(far, mixture)
