"""Properties every set network has, and the mathematics it stands on."""

import itertools
import math

import numpy as np
import pytest
import torch
from sklearn.mixture import GaussianMixture

from asterism.functional.alignment import apply_alignment, fit_alignment, group_scale
from asterism.functional.mixtures import (
    Mixture,
    em_step,
    joint_log_prob,
    log_likelihood,
    log_responsibilities,
    merge_components,
    pool_components,
    reduce_mixture,
)
from asterism.functional.sets import SetBatch, pad_sets, thin_sets
from asterism.nn.attention import ISAB, MAB, PMA, SAB
from asterism.nn.set_transformer import SetTransformer
from asterism.priors import DatasetPrior, GaussianMixturePrior

BLOCKS = {
    "SAB": lambda norm: SAB(3, 8, 2, layer_norm=norm),
    "ISAB": lambda norm: ISAB(3, 8, 2, n_inducing=4, layer_norm=norm),
    "PMA": lambda norm: PMA(3, 8, 2, n_seeds=5, layer_norm=norm),
}
NETWORKS = {"SetTransformer": lambda: SetTransformer(width=16, heads=2, n_inducing=4)}


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_respect_order_and_padding(name, norm):
    block = BLOCKS[name](norm)
    x = draw(2, 7, 3)
    out = block(x)
    order = torch.randperm(7, generator=torch.Generator().manual_seed(1))
    expected = out if name == "PMA" else out[:, order]
    torch.testing.assert_close(block(x[:, order]), expected, rtol=1e-4, atol=1e-5)
    padded = torch.cat([x, 100 * draw(2, 4, 3, seed=2)], dim=1)
    keep = torch.arange(11).expand(2, -1) < 7
    found = block(padded, keep)
    torch.testing.assert_close(found if name == "PMA" else found[:, :7], out, rtol=1e-4, atol=1e-5)


def test_attention_is_the_published_formula():
    mab = MAB(3, 5, 8, 2)
    x, y = draw(1, 4, 3), draw(1, 6, 5, seed=1)
    q = x @ mab.query.weight.T + mab.query.bias
    k, v = (y @ mab.key_value.weight.T + mab.key_value.bias).chunk(2, dim=-1)
    heads = []
    for j in range(2):
        part = slice(4 * j, 4 * j + 4)
        # The scale is the root of the full width, 8, not of a head's.
        attention = torch.softmax(q[..., part] @ k[..., part].mT / math.sqrt(8), dim=-1)
        heads.append(attention @ v[..., part])
    o = q + torch.cat(heads, dim=-1)
    expected = o + torch.relu(o @ mab.feed.weight.T + mab.feed.bias)
    torch.testing.assert_close(mab(x, y), expected, rtol=1e-5, atol=1e-6)


def test_a_query_without_keys_gathers_nothing():
    mab = MAB(3, 3, 8, 2)
    x = draw(1, 4, 3)
    o = mab.query(x)
    expected = o + torch.relu(mab.feed(o))
    found = mab(x, x, torch.zeros(1, 4, dtype=torch.bool))
    torch.testing.assert_close(found, expected)
    assert torch.isfinite(found).all()


def test_heads_must_divide_the_width():
    with pytest.raises(ValueError, match="heads=3 must divide width=8"):
        MAB(2, 2, 8, 3)


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_ignore_order_and_padding(name):
    network = NETWORKS[name]()
    sets = [draw(n, 2, seed=n) for n in (5, 9)]
    batch = pad_sets(sets)
    together = network(batch.x, batch.keep)
    for b, points in enumerate(sets):
        alone = network(points[None])
        shuffled = network(points.flip(0)[None])
        for part, same, other in zip(together, alone, shuffled, strict=True):
            torch.testing.assert_close(part[b], same[0], rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(other, same, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_reach_every_parameter(name):
    network = NETWORKS[name]()
    prior = GaussianMixturePrior(n_points=(30, 30))
    network.loss(prior.sample(4, torch.Generator().manual_seed(0))).backward()
    for parameter_name, parameter in network.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.abs().sum() > 0, parameter_name


def test_loss_weighs_every_data_set_alike():
    network = NETWORKS["SetTransformer"]()
    sets = [draw(5, 2), draw(20, 2, seed=1)]
    each = [network.loss(pad_sets([points])) for points in sets]
    torch.testing.assert_close(network.loss(pad_sets(sets)), sum(each) / 2)


# --- mixtures -------------------------------------------------------------------------------------


def mixture(seed=0, k=3, d=2, batch=()):
    weights = torch.softmax(draw(*batch, k, seed=seed).double(), dim=-1)
    means = 3 * draw(*batch, k, d, seed=seed + 1).double()
    return Mixture(weights.log(), means, draw(*batch, k, d, seed=seed + 2).double().abs() + 0.2)


def test_log_prob_agrees_with_torch_distributions():
    theta = mixture(batch=(2,))
    x = 3 * draw(2, 7, 2).double() + 1000
    theta = theta._replace(means=theta.means + 1000)  # far from the origin, where squares cancel
    normal = torch.distributions.Normal(theta.means[:, None], theta.scales[:, None])
    expected = theta.log_weights[:, None] + normal.log_prob(x[:, :, None]).sum(-1)
    torch.testing.assert_close(joint_log_prob(x, theta), expected)
    torch.testing.assert_close(log_likelihood(x, theta), expected.logsumexp(-1))
    total = log_responsibilities(x, theta).exp().sum(-1)
    torch.testing.assert_close(total, torch.ones_like(total))


def test_em_step_agrees_with_scikit_learn():
    x = torch.cat([draw(40, 2), draw(60, 2, seed=1) + 4]).double()
    theta = mixture(k=2)
    model = GaussianMixture(
        2,
        covariance_type="diag",
        reg_covar=0,
        max_iter=1,
        weights_init=theta.log_weights.exp().numpy(),
        means_init=theta.means.numpy(),
        precisions_init=(theta.scales**-2).numpy(),
    )
    with pytest.warns(match="did not converge"):
        model.fit(x.numpy())
    found = em_step(x, theta)
    np.testing.assert_allclose(found.log_weights.exp(), model.weights_, rtol=1e-6)
    np.testing.assert_allclose(found.means, model.means_, rtol=1e-6)
    np.testing.assert_allclose(found.scales**2, model.covariances_, rtol=1e-6)


def test_em_never_lowers_the_likelihood_and_ignores_padding():
    x = torch.cat([draw(40, 2), draw(60, 2, seed=1) + 4]).double()
    theta = mixture(k=3)
    before = log_likelihood(x, theta).mean()
    for _ in range(5):
        padded = torch.cat([x, 50 + draw(10, 2).double()])
        keep = torch.arange(110) < 100
        torch.testing.assert_close(em_step(padded, theta, keep), em_step(x, theta))
        theta = em_step(x, theta)
        after = log_likelihood(x, theta).mean()
        assert after >= before - 1e-9
        before = after


def test_an_unused_component_keeps_its_place():
    theta = Mixture(torch.tensor([0.5, 0.5]).log(), torch.tensor([[0.0], [1e4]]), torch.ones(2, 1))
    found = em_step(draw(20, 1), theta)
    assert found.means[1] == 1e4
    assert torch.isfinite(torch.cat([part.flatten() for part in found])).all()


def test_reduction_merges_the_nearest_pair_and_keeps_the_moments():
    theta = Mixture(
        torch.tensor([0.25, 0.25, 0.5]).log(),
        torch.tensor([[0.0], [1.0], [10.0]]),
        torch.tensor([[1.0], [1.0], [2.0]]),
    )
    found = reduce_mixture(theta, 2)
    order = found.means.flatten().argsort()
    torch.testing.assert_close(found.log_weights.exp()[order], torch.tensor([0.5, 0.5]))
    torch.testing.assert_close(found.means.flatten()[order], torch.tensor([0.5, 10.0]))
    # Variance of the merged pair: within (1) plus between (0.25).
    torch.testing.assert_close(found.scales.flatten()[order] ** 2, torch.tensor([1.25, 4.0]))
    assert reduce_mixture(theta, 1).means.item() == pytest.approx(5.25)


def test_groups_are_merged_as_single_pairs_would_be():
    weights = torch.softmax(draw(9).double(), dim=0)
    theta = Mixture(weights.log(), 3 * draw(9, 2).double(), draw(9, 2, seed=1).double().abs() + 0.2)
    parts = [([k], weights[k], theta.means[k], theta.scales[k].square()) for k in range(9)]

    def merged(one, other):
        (a, v, m, s), (b, w, n, t) = one, other
        mean = (v * m + w * n) / (v + w)
        second = (v * (s + m**2) + w * (t + n**2)) / (v + w)
        return a + b, v + w, mean, second - mean**2

    def cost(pair):
        joint = merged(*pair)
        return float(joint[1] * joint[3].log().sum() - sum(p[1] * p[3].log().sum() for p in pair))

    for n in range(9, 0, -1):
        groups = merge_components(theta, n)
        assert sorted(map(sorted, (p[0] for p in parts))) == [
            (groups == g).nonzero().flatten().tolist() for g in range(n)
        ]
        found = pool_components(theta, groups)
        for names, weight, mean, variance in parts:
            g = groups[names[0]]
            torch.testing.assert_close(found.log_weights[g].exp(), weight)
            torch.testing.assert_close(found.means[g], mean)
            torch.testing.assert_close(found.scales[g].square(), variance)
        pairs = itertools.combinations(parts, 2)
        if best := min(pairs, key=cost, default=None):
            parts = [part for part in parts if part[0] not in (best[0][0], best[1][0])]
            parts.append(merged(*best))
    assert merge_components(theta, 12).tolist() == list(range(9))


def test_a_component_of_no_weight_is_merged_and_leaves_no_trace():
    theta = Mixture(
        torch.tensor([0.0, -torch.inf, -torch.inf]),
        torch.tensor([[0.0], [3.0], [9.0]]),
        torch.ones(3, 1),
    )
    found = reduce_mixture(theta, 1)
    torch.testing.assert_close(found.means, torch.zeros(1, 1))
    torch.testing.assert_close(found.scales, torch.ones(1, 1))


# --- priors, padding, alignment -------------------------------------------------------------------


def test_prior_draws_what_it_says():
    prior = GaussianMixturePrior(n_clusters=3, dim=5, n_points=(2000, 2000), scale=0.1)
    assert isinstance(prior, DatasetPrior)
    batch = prior.sample(4, torch.Generator().manual_seed(0))
    again = prior.sample(4, torch.Generator().manual_seed(0))
    assert torch.equal(batch.x, again.x)
    assert batch.x.shape == (4, 2000, 5)
    assert batch.truth.means.abs().max() <= 4
    residual = batch.x - batch.truth.means.gather(1, batch.labels[..., None].expand(-1, -1, 5))
    assert residual.std().item() == pytest.approx(0.1, rel=0.05)
    shares = torch.nn.functional.one_hot(batch.labels, 3).double().mean(1)
    assert (shares - batch.truth.log_weights.exp()).abs().max() < 0.05


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_points": (5, 2)}, r"n_points=\(5, 2\)"),
        ({"scale": 0}, "scale=0"),
        ({"dim": -1}, "dim=-1"),
    ],
)
def test_a_bad_prior_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        GaussianMixturePrior(**options)


def test_a_batch_checks_its_shapes():
    with pytest.raises(ValueError, match=r"\(4, 2\) and \(4,\)"):
        SetBatch(torch.zeros(4, 2), torch.ones(4, dtype=torch.bool))


@pytest.mark.parametrize(("rows", "columns"), [(50, 1), (50, 2), (50, 6), (4, 30)])
def test_alignment_centres_and_scales(rows, columns):
    X = 1e6 + 1e3 * np.random.default_rng(0).normal(size=(rows, columns))
    aligned = apply_alignment(X, *fit_alignment(X, 2, spread=1.5))
    assert aligned.shape == (rows, 2)
    np.testing.assert_allclose(aligned.mean(axis=0), 0, atol=1e-6)
    used = aligned.var(axis=0)[: min(columns, 2)]
    assert np.sqrt(used.mean()) == pytest.approx(1.5)


@pytest.mark.parametrize("rows", [30, 120, 900])
@pytest.mark.parametrize("columns", [2, 5])
def test_the_scale_of_clusters_is_found_whatever_their_number(rows, columns):
    rng = np.random.default_rng(0)
    for n_clusters in (1, 2, 5):
        centers = 1e3 + 30 * np.arange(n_clusters)[:, None] * np.ones(columns)
        X = centers[np.arange(rows) % n_clusters] + rng.normal(size=(rows, columns))
        found = group_scale(X)
        assert 0.4 < found < 1.4
        assert group_scale(7 * X) == pytest.approx(7 * found)
        assert group_scale(X[::-1]) == pytest.approx(found, rel=0.15)  # some rows of 900 are seen


def test_rows_without_a_scale_have_none():
    assert group_scale(np.full((9, 2), 3.3)) == 0
    assert group_scale(np.repeat([[0.0, 0.1], [5.0, 5.0]], 40, axis=0)) == 0
    assert group_scale(np.array([[0.0], [2.0]])) == pytest.approx(1)


def test_the_median_is_moved_to_zero_where_it_was_in_training():
    X = np.random.default_rng(0).exponential(size=(101, 6)) @ np.diag([9, 5, 1, 1, 1, 1])
    origin, matrix = fit_alignment(X, 2, 1.0, center="median")
    np.testing.assert_allclose(origin, np.median(X, axis=0))
    np.testing.assert_allclose(matrix, fit_alignment(X, 2, 1.0)[1])


def test_alignment_projects_on_the_leading_axes():
    plane = np.random.default_rng(0).normal(size=(80, 2)) * [5, 3]
    basis, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(10, 2)))
    X = plane @ basis.T + 0.01 * np.random.default_rng(2).normal(size=(80, 10))
    aligned = apply_alignment(X, *fit_alignment(X, 2, spread=1.0))
    distances = np.linalg.norm(X[:, None] - X[None], axis=-1)
    kept = np.linalg.norm(aligned[:, None] - aligned[None], axis=-1)
    assert np.corrcoef(distances.ravel(), kept.ravel())[0, 1] > 0.999


def test_thinned_sets_are_samples_in_order():
    sets = [torch.arange(n, dtype=torch.float32)[:, None] for n in (9, 4, 20)]
    batch = pad_sets(sets)
    generators = [torch.Generator().manual_seed(0) for _ in sets]
    thin, places = thin_sets(batch, 6, generators)
    assert thin.sizes.tolist() == [6, 4, 6]
    for x, keep, place, rows in zip(thin.x, thin.keep, places, sets, strict=True):
        torch.testing.assert_close(x[keep], rows[place])
        assert place.tolist() == sorted(set(place.tolist()))
    for most in (None, 20):
        whole, everywhere = thin_sets(batch, most, generators)
        assert whole is batch
        assert [len(place) for place in everywhere] == [9, 4, 20]
