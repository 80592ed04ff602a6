"""Random data sets: their laws and their labels."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from asterism.exceptions import DataError
from asterism.priors import (
    PRIORS,
    ClusterMixturePrior,
    DatasetPrior,
    GaussianMixturePrior,
    ImageSetPrior,
    RestaurantMixturePrior,
    TabularPrior,
    WarpedMixturePrior,
    split_classes,
)
from asterism.priors.measures import measure_prior
from asterism.priors.partitions import (
    count_law,
    dirichlet,
    restaurant_labels,
    thinned_dirichlet,
    uniform_dirichlet,
    without_gaps,
)
from asterism.priors.warped import rotate, thick_ellipse


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def collection(n=90, n_classes=9):
    """Images whose first pixel tells the class, and whose second tells the image."""
    classes = np.arange(n) % n_classes
    images = np.zeros((n, 2, 3))
    images[:, 0, 0], images[:, 0, 1] = classes / 10, np.arange(n) / n
    return images, classes


PRIOR = {
    "mixture": GaussianMixturePrior(n_clusters=6, n_points=(20, 40)),
    "mog": ClusterMixturePrior(max_clusters=6, n_points=(20, 40), dim=3),
    "mog, uniform": ClusterMixturePrior(n_points=(20, 40), partition="uniform"),
    "warped": WarpedMixturePrior(n_points=(20, 40), max_clusters=6),
    "restaurant": RestaurantMixturePrior(n_points=(20, 40), max_clusters=4),
    "images": ImageSetPrior(*collection(), n_points=(20, 40), max_clusters=6),
}


# --- what every prior keeps -----------------------------------------------------------------------


@pytest.mark.parametrize("name", PRIOR)
def test_a_batch_is_a_function_of_the_generator(name):
    prior = PRIOR[name]
    state = torch.get_rng_state()
    batch, again = prior.sample(8, seeded()), prior.sample(8, seeded())
    other = prior.sample(8, seeded(1))
    assert isinstance(prior, DatasetPrior)
    assert torch.equal(batch.x, again.x)
    assert torch.equal(batch.labels, again.labels)
    assert batch.x.shape != other.x.shape or not torch.equal(batch.x, other.x)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("name", PRIOR)
def test_labels_have_no_gaps_and_batches_the_promised_shape(name):
    prior = PRIOR[name]
    for seed in range(5):
        batch = prior.sample(16, seeded(seed))
        assert batch.x.dtype == torch.float32
        assert batch.x.shape[2] == prior.dim
        assert 20 <= batch.x.shape[1] <= 40
        assert batch.keep.all()
        for labels in batch.labels:
            assert labels.unique().tolist() == list(range(int(labels.max()) + 1))


@pytest.mark.parametrize("name", ["mixture", "mog", "restaurant"])
def test_the_truth_is_numbered_as_the_labels_are(name):
    prior = replace(PRIOR[name], n_points=(400, 400))
    batch = prior.sample(16, seeded())
    member = batch.labels[..., None].expand(-1, -1, prior.dim)
    residual = (batch.x - batch.truth.means.gather(1, member)) / batch.truth.scales.gather(
        1, member
    )
    assert residual.mean().item() == pytest.approx(0, abs=0.03)
    assert residual.std().item() == pytest.approx(1, abs=0.03)
    shares = torch.nn.functional.one_hot(batch.labels, batch.truth.means.shape[1]).float().mean(1)
    assert (shares - batch.truth.log_weights.exp()).abs().max() < 0.12
    assert torch.isfinite(batch.truth.log_weights).all()


def test_priors_are_found_by_name():
    assert set(PRIORS) == {"mixture", "mog", "warped", "restaurant", "tabular", "images"}
    for name, cls in PRIORS.items():
        prior = PRIOR["images"] if name == "images" else cls()
        assert isinstance(prior, DatasetPrior)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: ClusterMixturePrior(n_points=(5, 2)), ValueError, r"n_points=\(5, 2\)"),
        (lambda: ClusterMixturePrior(n_points=(5.0, 9)), ValueError, r"n_points=\(5.0, 9\)"),
        (lambda: ClusterMixturePrior(n_points=7), ValueError, "n_points=7"),
        (lambda: ClusterMixturePrior(max_clusters=0), ValueError, "max_clusters=0"),
        (lambda: ClusterMixturePrior(max_clusters=2.5), TypeError, "max_clusters=2.5"),
        (lambda: ClusterMixturePrior(dim=True), TypeError, "dim=True"),
        (lambda: ClusterMixturePrior(scale="wide"), TypeError, "scale='wide'"),
        (lambda: ClusterMixturePrior(scale=math.nan), ValueError, "scale=nan"),
        (lambda: ClusterMixturePrior(partition="even"), ValueError, "partition='even'"),
        (lambda: WarpedMixturePrior(thickness=-1), ValueError, "thickness=-1"),
        (lambda: RestaurantMixturePrior(alpha=0), ValueError, "alpha=0"),
        (lambda: RestaurantMixturePrior(alpha=50.0), ValueError, "too seldom"),
        (lambda: GaussianMixturePrior(box=math.inf), ValueError, "box=inf"),
    ],
)
def test_bad_settings_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


# --- partitions -----------------------------------------------------------------------------------


def test_renumbering_keeps_the_partition_and_tells_where_clusters_came_from():
    labels = torch.randint(0, 9, (50, 6), generator=seeded())
    new, order = without_gaps(labels, 9)
    assert torch.equal(order.gather(1, new), labels)
    assert torch.equal(order.sort(dim=1).values, torch.arange(9).expand(50, -1))
    for row in new:
        assert row.unique().tolist() == list(range(int(row.max()) + 1))


def test_weights_sum_to_one_and_have_the_moments_of_dirichlet():
    weights = dirichlet((20_000, 4), 2.0, seeded())
    torch.testing.assert_close(weights.sum(1), torch.ones(20_000))
    # Var = (1/K)(1 − 1/K) / (Kα + 1)
    assert weights.mean(0).sub(0.25).abs().max() < 0.005
    assert weights.var(0).sub(0.1875 / 9).abs().max() < 0.001


def test_thinning_keeps_the_first_and_half_of_the_others():
    weights = thinned_dirichlet(20_000, 5, 1.0, seeded())
    torch.testing.assert_close(weights.sum(1), torch.ones(20_000))
    assert (weights[:, 0] > 0).all()
    share = (weights[:, 1:] > 0).float().mean(0)
    assert share.sub(0.5).abs().max() < 0.015
    count = (weights > 0).sum(1).bincount(minlength=6)[1:] / 20_000
    expected = torch.tensor([math.comb(4, k) / 16 for k in range(5)])
    assert (count - expected).abs().max() < 0.015


def test_uniform_counts_are_uniform():
    weights = uniform_dirichlet(20_000, (2, 5), 1.0, seeded())
    torch.testing.assert_close(weights.sum(1), torch.ones(20_000))
    count = (weights > 0).sum(1).bincount(minlength=6) / 20_000
    expected = torch.tensor([0, 0, 0.25, 0.25, 0.25, 0.25])
    assert (count - expected).abs().max() < 0.015


def test_restaurant_draws_every_partition_with_its_exact_probability():
    n, alpha, draws = 4, 0.7, 40_000
    labels = restaurant_labels(draws, n, alpha, n, seeded())
    found = Counter(map(tuple, labels.tolist()))
    assert len(found) == 15  # Bell number
    rising = math.prod(alpha + i for i in range(n))
    total = 0.0
    for partition, count in found.items():
        sizes = np.bincount(partition)
        exact = alpha ** len(sizes) * math.prod(math.factorial(s - 1) for s in sizes) / rising
        assert count / draws == pytest.approx(exact, abs=4 * math.sqrt(exact / draws))
        total += exact
    assert total == pytest.approx(1)


def test_the_number_of_clusters_follows_the_law_given_the_cap():
    n, alpha, cap, draws = 12, 1.5, 3, 20_000
    # Stirling numbers of the first kind: P(K = k) = αᵏ |s(n, k)| / α(α + 1) … (α + n − 1)
    stirling = np.zeros((n + 1, n + 1))
    stirling[0, 0] = 1
    for i in range(1, n + 1):
        for k in range(1, i + 1):
            stirling[i, k] = stirling[i - 1, k - 1] + (i - 1) * stirling[i - 1, k]
    exact = alpha ** np.arange(n + 1) * stirling[n] / math.prod(alpha + i for i in range(n))
    np.testing.assert_allclose(count_law(n, alpha, n), exact, rtol=1e-9)
    labels = restaurant_labels(draws, n, alpha, cap, seeded())
    found = (labels.amax(1) + 1).bincount(minlength=cap + 1) / draws
    capped = exact[: cap + 1] / exact[: cap + 1].sum()
    assert np.abs(found.numpy() - capped).max() < 0.015


@pytest.mark.parametrize(("n", "expected"), [(20, 2.96), (50, 3.60), (200, 4.56)])
def test_restaurants_have_the_expected_number_of_clusters(n, expected):
    labels = restaurant_labels(4000, n, 0.7, n, seeded())
    assert (labels.amax(1) + 1).double().mean().item() == pytest.approx(expected, abs=0.09)
    assert (labels[:, 0] == 0).all()


# --- single priors --------------------------------------------------------------------------------


def test_cluster_mixtures_have_the_published_moments():
    truth = ClusterMixturePrior(n_points=(5, 5)).sample(4000, seeded()).truth
    assert truth.means.std().item() == pytest.approx(3, rel=0.02)
    assert truth.scales.log().mean().item() == pytest.approx(math.log(0.25), abs=0.005)
    assert truth.scales.log().std().item() == pytest.approx(0.1, rel=0.02)


def test_sizes_span_the_range():
    prior = ClusterMixturePrior(n_points=(3, 6))
    sizes = {prior.sample(1, seeded(seed)).x.shape[1] for seed in range(60)}
    assert sizes == {3, 4, 5, 6}


def test_warped_points_lie_along_the_normal_of_their_ellipse():
    angle = torch.rand(200, 1, generator=seeded()) * 6
    axes = torch.tensor([3.0, 0.5]).expand(200, 2)
    on, off = (thick_ellipse(angle, axes, torch.full((200, 1), e)) for e in (0.0, 0.01))
    torch.testing.assert_close((on / axes).square().sum(1), torch.ones(200))
    torch.testing.assert_close((off - on).norm(dim=1), torch.full((200,), 0.01), atol=1e-5, rtol=0)
    tangent = torch.cat([-3.0 * angle.sin(), 0.5 * angle.cos()], dim=1)
    assert ((off - on) * tangent).sum(1).abs().max() < 1e-4


def test_rotation_turns():
    x = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    turned = rotate(x, torch.tensor([math.pi / 2, math.pi]))
    torch.testing.assert_close(turned, torch.tensor([[0.0, 1.0], [0.0, -2.0]]), atol=1e-6, rtol=0)


def test_warped_shifts_stop_growing_at_four_clusters():
    # Cluster centres spread with the shift; ellipses have semi-axes of deviation two.
    spread = []
    for most in (1, 4, 12):
        batch = WarpedMixturePrior(max_clusters=most, n_points=(50, 50)).sample(1500, seeded())
        spread.append(batch.x[:, 0].std().item())
    ellipse = 2.0
    assert spread[0] == pytest.approx(math.hypot(1, ellipse / math.sqrt(2)), rel=0.1)
    assert spread[1] == pytest.approx(math.hypot(4, ellipse / math.sqrt(2)), rel=0.06)
    assert spread[2] == pytest.approx(spread[1], rel=0.06)


def test_the_median_is_moved_to_zero_with_the_truth():
    plain, moved = (
        RestaurantMixturePrior(centred=flag).sample(6, seeded()) for flag in (False, True)
    )
    assert moved.x.median(dim=1).values.abs().max() == 0
    shift = plain.x - moved.x
    torch.testing.assert_close(shift, shift[:, :1].expand_as(shift), atol=1e-4, rtol=0)
    torch.testing.assert_close(
        plain.truth.means - moved.truth.means, shift[:, :12], atol=1e-4, rtol=0
    )


def test_images_of_a_cluster_are_of_one_class_and_do_not_repeat():
    images, labels = collection()
    prior = ImageSetPrior(images, labels, max_clusters=4, n_points=(30, 30))
    assert prior.dim == 6
    batch = prior.sample(20, seeded())
    for x, y in zip(batch.x, batch.labels, strict=True):
        shown = [x[y == k, 0].unique() for k in range(int(y.max()) + 1)]
        assert all(len(found) == 1 for found in shown)
        assert len({float(found) for found in shown}) == len(shown)
        for k in range(len(shown)):
            # Classes have ten images: each is shown as often as any other, up to one.
            count = x[y == k, 1].unique(return_counts=True)[1]
            assert len(count) == min(10, int((y == k).sum()))
            assert count.max() - count.min() <= 1 or len(count) < 10


def test_images_may_be_bytes_or_binarised():
    images, labels = collection()
    plain = ImageSetPrior(images, labels, n_points=(30, 30)).sample(4, seeded())
    bytes_ = (images * 255).round().astype(np.uint8)
    coarse = ImageSetPrior(bytes_, labels, n_points=(30, 30)).sample(4, seeded())
    assert (plain.x - coarse.x).abs().max() <= 0.5 / 255 + 1e-6
    many = ImageSetPrior(images, labels, n_points=(30, 30), binarise=True)
    drawn = torch.stack([many.sample(4, seeded()).x, many.sample(4, seeded(1)).x])
    assert set(drawn.unique().tolist()) == {0.0, 1.0}


def test_images_are_drawn_only_from_the_classes_named():
    images, labels = collection()
    training, test = split_classes(labels, seed=3)
    assert not set(training) & set(test)
    assert set(training) | set(test) == set(range(9))
    assert split_classes(labels, seed=3) == (training, test)
    assert any(split_classes(labels, seed=s) != (training, test) for s in range(5))
    batch = ImageSetPrior(images, labels, test, n_points=(30, 30)).sample(30, seeded())
    shown = {round(10 * float(value)) for value in batch.x[..., 0].unique()}
    assert shown == set(test)


def test_the_record_of_images_tells_collections_apart():
    images, labels = collection()
    first = repr(ImageSetPrior(images, labels))
    assert first == repr(ImageSetPrior(images.copy(), labels.copy()))
    assert first != repr(ImageSetPrior(1 - images, labels))
    assert len(first) < 300


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"images": np.zeros(9)}, r"images of shape \(9,\)"),
        ({"labels": np.zeros(5)}, r"labels of shape \(5,\)"),
        ({"images": np.full((90, 4), 2.0)}, "from 2.0 to 2.0"),
        ({"images": np.full((90, 4), np.nan)}, "from nan to nan"),
        ({"max_clusters": 10}, "max_clusters=10, but there are 9 classes"),
        ({"classes": (0, 1, 2, 77)}, "only those of labels"),
        ({"classes": (0, 1, 1, 2)}, "name each once"),
    ],
)
def test_bad_images_are_refused(change, message):
    images, labels = collection()
    with pytest.raises(DataError, match=message):
        ImageSetPrior(**{"images": images, "labels": labels, **change})


def test_data_sets_of_many_widths_and_sizes_are_measured():
    spread, place = measure_prior(TabularPrior(n_points=(48, 96), max_columns=5))
    assert 0.1 < spread < 2
    low, high = place["spreads"]
    assert 0 < low <= high
    sizes = [len(x) for x in measured_sizes()]
    assert len(set(sizes)) > 4  # the width of a cluster depends on the number of points a little


def measured_sizes():
    """Data sets that are looked at when a prior is measured."""

    class Watched(ClusterMixturePrior):
        def sample(self, batch_size, generator):
            batch = super().sample(batch_size, generator)
            seen.append(batch.x[0])
            return batch

    seen = []
    measure_prior(Watched(n_points=(20, 60)))
    return seen
