"""The prior over tables, the pair features and the network that reads them."""

import numpy as np
import pytest
import torch
from scipy.sparse.csgraph import connected_components
from sklearn.metrics import adjusted_rand_score

from asterism.datasets import load_toy
from asterism.functional.probes import (
    local_metric,
    minimax_paths,
    pieces,
    principal_axes,
    quick_kmeans,
)
from asterism.functional.relations import (
    COUNTS,
    N_FACTS,
    PAIR_FEATURES,
    ROW_FEATURES,
    STEPS,
    cross_features,
    describe,
)
from asterism.functional.sets import DatasetPrior, SetBatch
from asterism.nn.pairwise import (
    MAX_COUNT,
    PairNetwork,
    Relations,
    pair_targets,
    relate,
    shares_of,
    tokens_of,
)
from asterism.priors import TabularPrior
from asterism.priors.layouts import overlapping, place, scattered
from asterism.priors.shapes import SHAPES, random_rotation
from asterism.priors.tabular import draw_sizes


def chance(seed=0):
    return np.random.default_rng(seed)


def batch_of(x):
    x = torch.as_tensor(x, dtype=torch.float32)
    return SetBatch(x, torch.ones(x.shape[:2], dtype=torch.bool))


# --- prior ----------------------------------------------------------------------------------------


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
    for families in (("overlapping",), ("scattered", "overlapping")):
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


def test_sizes_sum_and_none_is_tiny():
    for seed in range(20):
        sizes = draw_sizes(100, 12, chance(seed))
        assert sizes.sum() == 100
        assert sizes.min() >= 4


# --- pair features --------------------------------------------------------------------------------


def test_minimax_paths_agree_with_floyd_and_warshall():
    weights = torch.rand(3, 15, 15, generator=torch.Generator().manual_seed(0))
    weights = (weights + weights.mT) * (1 - torch.eye(15))
    expected = weights.clone()
    for k in range(15):
        through = torch.maximum(expected[:, :, k, None], expected[:, None, k, :])
        expected = torch.minimum(expected, through)
    torch.testing.assert_close(minimax_paths(weights), expected)


def test_pieces_are_the_connected_components_that_are_large_enough():
    x = torch.from_numpy(chance(1).standard_normal((3, 60, 2)))
    steps = torch.cdist(x, x)
    longest = torch.tensor([[0.3, 0.5], [0.4, 0.6], [0.2, 5.0]])
    number, share = pieces(minimax_paths(steps), longest, least=4)
    for b in range(3):
        for t in range(2):
            _, label = connected_components((steps[b] <= longest[b, t]).numpy())
            sizes = np.bincount(label)
            assert number[b, t].item() == pytest.approx((sizes >= 4).sum())
            assert share[b, t].item() == pytest.approx(sizes[sizes >= 4].sum() / 60)


@pytest.mark.parametrize("shape", [(30, 4), (5, 12)])
def test_principal_axes_are_those_of_the_singular_values(shape):
    x = torch.from_numpy(chance(2).standard_normal((2, *shape)))
    values, vectors = principal_axes(x)
    _, singular, right = torch.linalg.svd(x, full_matrices=False)
    torch.testing.assert_close(values, singular.square())
    torch.testing.assert_close((vectors.mT * right).sum(dim=-1).abs(), torch.ones_like(values))


def test_features_ignore_scale_place_rotation_and_empty_columns():
    x = torch.randn(2, 60, 5, generator=torch.Generator().manual_seed(0)).double()
    x[:, :30] += 4
    rotation = torch.from_numpy(random_rotation(5, chance()))
    moved = torch.nn.functional.pad(1000 * x @ rotation + 7, (0, 3))
    (context, features), (other, again) = describe(x), describe(moved)
    first, second = features.pairs, again.pairs
    assert first.shape == (2, 60, 60, len(PAIR_FEATURES))
    assert features.rows.shape == (2, 60, len(ROW_FEATURES))
    assert context.facts.shape == (2, N_FACTS)
    torch.testing.assert_close(features.rows, again.rows, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(context.facts, other.facts, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(first, second, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(first, first.transpose(1, 2), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    "make",
    [
        lambda c: c.standard_normal((200, 50)),
        lambda c: np.r_[c.standard_normal((40, 4)), 6 + c.standard_normal((40, 4))],
        lambda c: c.standard_normal((25, 60)),
        lambda c: c.standard_normal((300, 1)),
    ],
)
def test_rows_in_another_order_have_the_same_features_in_single_precision(make):
    c = chance(5)
    x = make(c)
    order = c.permutation(len(x))
    context, features = describe(torch.from_numpy(x[None]).float())
    other, permuted = describe(torch.from_numpy(x[order][None]).float())
    close = {"atol": 0.05, "rtol": 0.0}
    torch.testing.assert_close(other.facts, context.facts, **close)
    torch.testing.assert_close(permuted.rows, features.rows[:, order], **close)
    again = features.pairs[:, order][:, :, order]
    assert ((permuted.pairs - again).abs() > 0.05).float().mean() < 1e-3
    crossed = cross_features(context, torch.from_numpy(x[None, :5]).float())
    torch.testing.assert_close(crossed.rows, features.rows[:, :5], atol=0.1, rtol=0.0)


def test_rows_at_equal_distance_are_neighbours_together():
    c = chance(6)
    x = c.integers(3, size=(100, 3)).astype(float)
    order = c.permutation(100)
    first, second = (describe(torch.from_numpy(rows[None]).float())[1] for rows in (x, x[order]))
    plain = [PAIR_FEATURES.index(name) for name in ("shared", "walk_8", "walk_512", "path")]
    again = first.pairs[:, order][:, :, order]
    torch.testing.assert_close(second.pairs[..., plain], again[..., plain], atol=0.02, rtol=0.0)


def test_pieces_are_counted_among_different_rows():
    x = np.r_[chance().standard_normal((150, 2)), 9 + chance(1).standard_normal((150, 2))]
    context, _ = describe(torch.from_numpy(np.round(x / 0.5)[None] * 0.5).float())
    first = N_FACTS - 2 - 8 - 8 - 3 - 2 * len(STEPS)  # sizes, moments, spectrum, traces come after
    number = context.facts[0, first : first + len(STEPS)].exp()
    assert 2 in number.round().tolist()


def test_features_tell_rings_apart_where_distance_does_not():
    angle = torch.linspace(0, 2 * np.pi, 101)[:-1]
    circle = torch.stack([angle.cos(), angle.sin()], dim=1)
    x = torch.cat([circle, 4 * circle])[None]
    labels = torch.arange(200) // 100
    same = labels[:, None] == labels[None]
    features = describe(x)[1].pairs[0]
    path = features[..., PAIR_FEATURES.index("path")]
    off = ~torch.eye(200, dtype=torch.bool)
    assert path[same & off].max() < path[~same].min()
    distance = features[..., PAIR_FEATURES.index("distance")]
    assert distance[same].max() > distance[~same].min()


@pytest.mark.parametrize("name", ["spirals", "rings_and_blob"])
def test_long_walks_tell_long_clusters_apart(name):
    toy = load_toy(name, 500, random_state=0)
    context, _ = describe(torch.from_numpy(toy.X[None]).float())
    partitions = [name for name in ROW_FEATURES if name.startswith("silhouette_")]
    found = context.labels[0, :, partitions.index("silhouette_diffuse_3")].numpy()
    assert adjusted_rand_score(toy.y, found) == 1


def test_odd_tables_have_finite_features():
    zeros = torch.zeros(1, 20, 3)
    doubled = torch.randn(1, 10, 2).repeat(1, 4, 1)
    tiny = torch.randn(1, 3, 2)
    for x in (zeros, doubled, tiny, 1e8 * tiny):
        relations = relate(batch_of(x))
        assert torch.isfinite(relations.pairs).all()
        assert torch.isfinite(relations.tokens).all()


def test_the_local_metric_makes_clusters_of_one_shape_round():
    generator = torch.Generator().manual_seed(0)
    stretch = torch.tensor([8.0, 0.5])
    x = torch.randn(1, 200, 2, generator=generator) * stretch
    x[0, 100:, 1] += 6
    order = torch.cdist(x, x).topk(11, largest=False).indices[..., 1:]
    near = torch.zeros(1, 200, 200).scatter_(2, order, 1.0)
    image = x @ local_metric(x, near)
    steps = x[0, order[0]] - x[0, :, None]
    scatter = torch.einsum("nki,nkj->ij", steps, steps) / 2000
    whitened = torch.linalg.inv(image[0].mT @ x[0] @ torch.linalg.inv(x[0].mT @ x[0]))
    torch.testing.assert_close(whitened.mT @ whitened, scatter, rtol=0.06, atol=0.1)
    spread = image[0, :100].std(dim=0)
    assert spread.max() / spread.min() < 0.5 * stretch.max() / stretch.min()


def test_the_local_metric_bears_tight_clusters_far_apart():
    c = chance(8)
    x = np.repeat(c.standard_normal((4, 3)), 20, axis=0) * [1.0, 1.0, 0.0]
    x[:, :2] += 1e-5 * c.standard_normal((80, 2))
    context, features = describe(torch.from_numpy(x[None]).float())
    assert torch.isfinite(context.affine).all()
    assert torch.isfinite(features.pairs).all()


def test_quick_kmeans_finds_blobs():
    centers = 20 * torch.eye(4)
    x = torch.cat([center + torch.randn(25, 4) for center in centers])[None]
    found = quick_kmeans(x, torch.cdist(x, x), COUNTS)
    assert found.centers.shape == (1, sum(COUNTS), 4)
    assert found.silhouettes.mean(dim=1).argmax() == COUNTS.index(4)
    assert (found.inertia.diff() < 0).all()
    labels = found.labels[0, :, COUNTS.index(4)]
    assert labels.unique().numel() == 4
    for k in range(4):
        assert labels[25 * k : 25 * k + 25].unique().numel() == 1


# --- network --------------------------------------------------------------------------------------


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
            pairs=relations.pairs[:, order][:, :, order], tokens=relations.tokens[:, order]
        )
    )
    torch.testing.assert_close(shuffled, logits[:, order][:, :, order])
    torch.testing.assert_close(logits, logits.mT, rtol=1e-4, atol=1e-4)


def test_a_row_of_the_context_is_read_alone_as_among_the_others():
    batch = TabularPrior(n_points=(60, 60)).sample(2, torch.Generator().manual_seed(5))
    x = batch.x.double()
    context, features = describe(x)
    crossed = cross_features(context, x)
    off = ~torch.eye(60, dtype=torch.bool)
    close = {"rtol": 1e-4, "atol": 1e-4}
    torch.testing.assert_close(crossed.pairs[:, off], features.pairs[:, off], **close)
    torch.testing.assert_close(crossed.rows, features.rows, **close)
    one = cross_features(context, x[:, 7:8])
    torch.testing.assert_close(one.pairs, crossed.pairs[:, 7:8])
    network = PairNetwork(width=16, heads=2, n_blocks=2).double()

    def read(features, memory=None):
        return network.read(Relations(features.pairs, tokens_of(features, context)), memory)

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
