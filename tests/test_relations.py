"""What two rows are to each other, and the quick looks that it is made of."""

import numpy as np
import pytest
import torch
from scipy.sparse.csgraph import connected_components
from sklearn.metrics import adjusted_rand_score

from asterism.datasets import load_toy
from asterism.functional.facts import STEPS
from asterism.functional.probes import (
    local_metric,
    minimax_paths,
    nearest_centers,
    pieces,
    principal_axes,
    quick_groups,
    quick_kmeans,
    walk_legs,
    walk_powers,
)
from asterism.functional.relations import (
    COUNTS,
    N_FACTS,
    PAIR_FEATURES,
    ROW_FEATURES,
    _median,
    cross_features,
    describe,
)
from asterism.functional.sets import SetBatch
from asterism.nn.pairwise import relate
from asterism.priors.shapes import SHAPES, random_rotation


def chance(seed=0):
    return np.random.default_rng(seed)


def batch_of(x):
    x = torch.as_tensor(x, dtype=torch.float32)
    return SetBatch(x, torch.ones(x.shape[:2], dtype=torch.bool))


def test_walks_that_begin_elsewhere_are_powers_too():
    step, first = (torch.from_numpy(chance().dirichlet(np.ones(8), n)) for n in (8, 3))
    powers = walk_powers(step[None], 32)
    assert len(powers) == 6
    legs = walk_legs(powers[:-1], (4, 32))
    for t, walk in ((4, first @ legs[0]), (32, first @ legs[0] @ legs[1])):
        torch.testing.assert_close(walk[0], first @ torch.linalg.matrix_power(step, t - 1))


def test_minimax_paths_agree_with_floyd_and_warshall():
    weights = torch.rand(3, 15, 15, generator=torch.Generator().manual_seed(0))
    weights = (weights + weights.mT) * (1 - torch.eye(15))
    expected = weights.clone()
    for k in range(15):
        through = torch.maximum(expected[:, :, k, None], expected[:, None, k, :])
        expected = torch.minimum(expected, through)
    torch.testing.assert_close(minimax_paths(weights), expected)
    assert minimax_paths(torch.ones(2, 1, 1)).tolist() == [[[0.0]], [[0.0]]]


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
    first, second = features.maps.features(), again.maps.features()
    assert first.shape == (2, len(PAIR_FEATURES), 60, 60)
    assert features.rows.shape == (2, 60, len(ROW_FEATURES))
    assert context.facts.shape == (2, N_FACTS)
    torch.testing.assert_close(features.rows, again.rows, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(context.facts, other.facts, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(first, second, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(first, first.mT, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    "make",
    [
        lambda c: c.standard_normal((200, 50)),
        lambda c: np.r_[c.standard_normal((40, 4)), 6 + c.standard_normal((40, 4))],
        lambda c: c.standard_normal((26, 60)),  # no margin so near a limit that rounding decides
        lambda c: c.standard_normal((300, 1)),
        lambda c: c.standard_normal((12, 3)),
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
    again = features.maps.features()[:, :, order][..., order]
    assert ((permuted.maps.features() - again).abs() > 0.05).float().mean() < 1e-3
    crossed = cross_features(context, torch.from_numpy(x[None, :5]).float())
    torch.testing.assert_close(crossed.rows, features.rows[:, :5], atol=0.1, rtol=0.0)


def test_rows_at_equal_distance_are_neighbours_together():
    c = chance(6)
    x = c.integers(3, size=(100, 3)).astype(float)
    order = c.permutation(100)
    first, second = (describe(torch.from_numpy(rows[None]).float())[1] for rows in (x, x[order]))
    plain = [PAIR_FEATURES.index(name) for name in ("shared", "walk_8", "walk_512", "path")]
    again = first.maps.features()[:, plain][:, :, order][..., order]
    torch.testing.assert_close(second.maps.features()[:, plain], again, atol=0.02, rtol=0.0)


def test_pieces_are_counted_among_different_rows():
    x = np.r_[chance().standard_normal((150, 2)), 9 + chance(1).standard_normal((150, 2))]
    context, _ = describe(torch.from_numpy(np.round(x / 0.5)[None] * 0.5).float())
    first = N_FACTS - 2 - 8 - 8 - 3 - 2 * len(STEPS)  # sizes, moments, spectrum, traces come after
    number = context.facts[0, first : first + len(STEPS)].exp()
    assert 2 in number.round().tolist()


def test_short_steps_tell_the_cores_of_clouds_that_have_merged():
    c = chance(3)
    one = SHAPES["peaked"](500, 2, c)
    two = SHAPES["peaked"](500, 2, c)
    two[:250, 0] += 1.5
    context, _ = describe(torch.from_numpy(np.stack([one, two])).float())
    first = N_FACTS - 2 - 8 - 8 - 3 - 2 * len(STEPS) + STEPS.index(0.5)
    np.testing.assert_allclose(context.facts[:, first].exp(), [1, 2], atol=1e-3)


def test_features_tell_rings_apart_where_distance_does_not():
    angle = torch.linspace(0, 2 * np.pi, 101)[:-1]
    circle = torch.stack([angle.cos(), angle.sin()], dim=1)
    x = torch.cat([circle, 4 * circle])[None]
    labels = torch.arange(200) // 100
    same = labels[:, None] == labels[None]
    features = describe(x)[1].maps.features()[0]
    path = features[PAIR_FEATURES.index("path")]
    off = ~torch.eye(200, dtype=torch.bool)
    assert path[same & off].max() < path[~same].min()
    distance = features[PAIR_FEATURES.index("distance")]
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
    assert torch.isfinite(features.maps.features()).all()


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


def test_margins_are_places_along_the_line_of_two_centres():
    x = torch.tensor([[0.0], [0.5], [1.0], [9.0], [10.0], [11.0]])[None]
    far = torch.nn.functional.pad(x, (0, 30)) + 0.001 * torch.randn(1, 6, 31)
    _, _, margins = nearest_centers(x, torch.tensor([[[0.5], [10.0]]]), (2,))
    expected = 1 - 2 * torch.tensor([-0.5, 0.0, 0.5, 1.0, 0.0, -1.0]) / 9.5
    torch.testing.assert_close(margins[0, :, 0], expected)
    groups = quick_groups(torch.cdist(far, far).square(), (2,))
    torch.testing.assert_close(groups.margins[0, :, 0], expected, atol=0.02, rtol=0.0)


@pytest.mark.parametrize("dim", [1, 10, 100])
def test_margins_of_one_gaussian_hardly_depend_on_its_dimension(dim):
    """Halves of a Gaussian lie 2.65 of their deviations apart, whatever other axes there are."""
    x = torch.randn(1, 2000, dim, generator=torch.Generator().manual_seed(0))
    x[..., 0] *= 3
    found = quick_kmeans(x, torch.cdist(x, x), (2,))
    apart = 2 / (1 - found.margins).square().mean().sqrt()
    assert apart.item() == pytest.approx(2.65, abs=0.25)
    if dim == 100:
        assert found.silhouettes.mean() < 0.1


def test_leading_axes_part_what_single_rows_cannot_seed():
    x = torch.randn(8, 400, 128, generator=torch.Generator().manual_seed(1))
    labels = np.arange(400) % 2
    x[..., 0] += 2.8 * torch.from_numpy(labels)
    context, _ = describe(x)
    partitions = [name for name in ROW_FEATURES if name.startswith("margin_")]

    def found(name):
        answers = context.labels[..., partitions.index(f"margin_{name}")]
        return np.mean([adjusted_rand_score(labels, answer) for answer in answers])

    assert found("leading_2") > found("same_2") + 0.1


@pytest.mark.parametrize("n", [5, 6])
def test_the_median_is_that_of_torch(n):
    values = torch.rand(3, n, n, generator=torch.Generator().manual_seed(n))
    torch.testing.assert_close(_median(values), values.flatten(1).median(dim=1).values)


def test_far_clusters_are_seen_alike_from_both_sides():
    x = torch.randn(1, 60, 5, generator=torch.Generator().manual_seed(0))
    x[:, :30] += 1000
    pairs = describe(x)[1].maps.features()
    assert torch.equal(pairs[:, 7], pairs[:, 7].mT)
    assert torch.equal(pairs[:, 8], pairs[:, 8].mT)


def test_features_stand_in_the_order_of_their_names():
    x = torch.from_numpy(chance().standard_normal((1, 50, 3)))
    context, features = describe(x)
    pairs = dict(zip(PAIR_FEATURES, features.maps.features()[0], strict=True))
    distance = torch.cdist(x, x)[0]
    off = ~torch.eye(50, dtype=torch.bool)
    expected = (distance / distance.flatten().median()).log()
    torch.testing.assert_close(pairs["distance"][off], expected[off], atol=1e-6, rtol=0.0)
    names = [name.removeprefix("silhouette_") for name in ROW_FEATURES if "silhouette_" in name]
    for name, labels in zip(names, context.labels[0].T, strict=True):
        same = (labels[:, None] == labels[None]).to(x.dtype)
        assert torch.equal(pairs[name], same)
    scale = distance.topk(11, largest=False).values[:, -1]
    local = (distance / (scale[:, None] * scale[None]).sqrt()).log()
    torch.testing.assert_close(pairs["local"][off], local[off], atol=1e-6, rtol=0.0)
