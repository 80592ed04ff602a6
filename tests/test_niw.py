"""Evidence, modes and moves of Gaussian clusters against what they must equal."""

import math

import numpy as np
import pytest
import torch
from scipy import integrate
from scipy.stats import invgamma, invwishart, multivariate_normal, multivariate_t, norm

from asterism.functional import niw
from asterism.functional.niw import (
    COVARIANCES,
    NormalWishart,
    gather_statistics,
    label_statistics,
)
from asterism.functional.splits import (
    effective_columns,
    leading_axes,
    log_odds,
    log_split_ratio,
    merge_ratios,
    principal_cuts,
    search_splits,
)


def rows(n=37, dim=4, seed=0):
    chance = np.random.default_rng(seed)
    mixed = chance.normal(size=(n, dim)) @ chance.normal(size=(dim, dim)) + 1
    return torch.from_numpy(mixed)


def prior(dim=4, covariance="full", **more):
    settings = {"kappa": 0.7, "degrees": dim + 2.5, "covariance": covariance, **more}
    return NormalWishart(
        torch.full((dim,), 0.3, dtype=torch.float64),
        torch.linspace(0.5, 1.5, dim, dtype=torch.float64),
        **settings,
    )


def statistics(x, covariance):
    return gather_statistics(x, torch.ones(len(x), 1), covariance)


def test_evidence_is_the_product_of_student_predictives():
    x, p = rows(), prior()
    dim, mean, psi, kappa, nu = p.dim, p.mean.numpy(), np.diag(p.scale.numpy()), p.kappa, p.nu
    total = 0.0
    for row in x.numpy():
        freedom = nu - dim + 1
        shape = psi * (kappa + 1) / (kappa * freedom)
        total += multivariate_t.logpdf(row, mean, shape, freedom)
        psi = psi + kappa / (kappa + 1) * np.outer(row - mean, row - mean)
        mean, kappa, nu = (kappa * mean + row) / (kappa + 1), kappa + 1, nu + 1
    assert prior().log_evidence(statistics(x, "full")).item() == pytest.approx(total, abs=1e-9)


def test_diagonal_evidence_is_that_of_every_column_by_itself():
    x, p = rows(), prior(covariance="diagonal")
    alone = sum(
        NormalWishart(p.mean[[j]], p.scale[[j]], p.kappa, p.nu - p.dim + 1)
        .log_evidence(statistics(x[:, [j]], "full"))
        .item()
        for j in range(p.dim)
    )
    assert p.log_evidence(statistics(x, "diagonal")).item() == pytest.approx(alone, abs=1e-9)


def test_isotropic_evidence_is_the_integral_over_its_variance():
    x, p = rows(5, 2), prior(2, "isotropic", degrees=6.0)
    n, d = x.shape
    shape, scale = (p.nu - d + 1) / 2, p.scale.mean().item() / 2

    def given(variance):  # rows and their mean integrated out: a normal of equal correlation
        cov = variance * (np.eye(n) + np.ones((n, n)) / p.kappa)
        log_p = sum(
            multivariate_normal.logpdf(x[:, j].numpy(), np.full(n, p.mean[j].item()), cov)
            for j in range(d)
        )
        return math.exp(log_p) * invgamma.pdf(variance, shape, scale=scale)

    integral, _ = integrate.quad(given, 1e-6, 500, limit=500, points=[0.5, 2, 10])
    found = p.log_evidence(statistics(x, "isotropic")).item()
    assert found == pytest.approx(math.log(integral), abs=1e-5)


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize("k", [3, 12])
def test_statistics_of_labels_are_those_of_weights_of_one(covariance, k, monkeypatch):
    monkeypatch.setattr(niw, "_ROWS", 7)  # in several parts
    monkeypatch.setattr(niw, "_ENTRIES", 50)
    x, labels = torch.randn(60, 4), torch.randint(k - 1, (60,))  # the last one is empty
    weights = torch.nn.functional.one_hot(labels, k).float()
    found = label_statistics(x, labels, k, covariance)
    product = "nk,ni,nj->kij" if covariance == "full" else "nk,ni,ni->ki"
    exact = (
        weights.sum(dim=0).double(),
        weights.mT.double() @ x.double(),
        torch.einsum(product, weights.double(), x.double(), x.double()),
    )
    for part, same in zip(found, exact, strict=True):
        torch.testing.assert_close(part, same)
    batch = gather_statistics(x.expand(2, 60, 4), weights.expand(2, 60, k), covariance)
    for part, same in zip(batch, exact, strict=True):
        torch.testing.assert_close(part, same.expand_as(part))
        assert part.shape == (2, *same.shape)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_statistics_of_a_union_add_up_and_weights_count(covariance):
    x = rows()
    whole, first, second = (statistics(part, covariance) for part in (x, x[:20], x[20:]))
    for one, other in zip(whole, first.plus(second), strict=True):
        torch.testing.assert_close(one, other)
    twice = gather_statistics(x, torch.full((len(x), 1), 2.0), covariance)
    for one, other in zip(whole.times(2), twice, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_mode_is_where_the_posterior_peaks(covariance):
    """No nearby variance has a larger joint density of rows, mean and variance, in one column."""
    x = rows(30, 1)
    p = prior(1, covariance, degrees=4.0)
    mode = p.mode(statistics(x, covariance))
    deviation = 1 / mode.whitener.flatten()[0].item()

    def log_joint(mean, variance):
        likelihood = norm.logpdf(x.numpy(), mean, math.sqrt(variance)).sum()
        about = norm.logpdf(mean, p.mean.item(), math.sqrt(variance / p.kappa))
        shape, scale = (p.nu - p.dim + 1) / 2, p.scale.item() / 2
        return likelihood + about + invgamma.logpdf(variance, shape, scale=scale)

    best = log_joint(mode.mean.item(), deviation**2)
    for factor in (0.97, 1.03):
        assert log_joint(mode.mean.item(), factor * deviation**2) < best
        assert log_joint(mode.mean.item() + (factor - 1), deviation**2) < best


def test_mode_of_a_full_covariance_peaks_in_every_direction():
    x, p = rows(30, 2), prior(2)
    stats = statistics(x, "full")
    mode = p.mode(stats)
    root = torch.linalg.inv(mode.whitener[0])
    covariance, mean = (root @ root.mT).numpy(), mode.mean[0].numpy()

    def log_joint(mean, covariance):
        likelihood = multivariate_normal.logpdf(x.numpy(), mean, covariance).sum()
        about = multivariate_normal.logpdf(mean, p.mean.numpy(), covariance / p.kappa)
        return likelihood + about + invwishart.logpdf(covariance, p.nu, np.diag(p.scale.numpy()))

    best = log_joint(mean, covariance)
    chance = np.random.default_rng(0)
    for _ in range(20):
        step = 0.05 * chance.normal(size=(2, 2))
        turned = (np.eye(2) + step) @ covariance @ (np.eye(2) + step).T
        assert log_joint(mean, turned) < best
        assert log_joint(mean + 0.05 * chance.normal(size=2), covariance) < best


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_densities_are_those_of_the_covariances_meant(covariance):
    x = rows(9, 3) + 100
    mode = prior(3, covariance).mode(statistics(x, covariance))
    whitener = mode.whitener if covariance == "full" else torch.diag_embed(mode.whitener)
    root = torch.linalg.inv(whitener[0])
    expected = multivariate_normal.logpdf(x, mode.mean[0], root @ root.mT)
    np.testing.assert_allclose(mode.log_prob(x)[:, 0], expected)


def test_densities_are_scipys():
    x = rows(9, 3)
    weights = torch.rand(9, 2, generator=torch.Generator().manual_seed(0))
    mode = prior(3).mode(gather_statistics(x, weights, "full"))
    for k in range(2):
        root = torch.linalg.inv(mode.whitener[k])
        expected = multivariate_normal.logpdf(x, mode.mean[k], root @ root.mT)
        np.testing.assert_allclose(mode.log_prob(x)[:, k], expected)


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize(
    "x",
    [
        torch.zeros(20, 3),
        torch.randn(20, 1, generator=torch.Generator().manual_seed(0)).repeat(1, 3),
        torch.randn(4, 30, generator=torch.Generator().manual_seed(0)),
        torch.cat([torch.full((10, 2), 1e6), torch.full((10, 2), 1e6 + 1e-3)]),
    ],
    ids=["equal rows", "equal columns", "more columns than rows", "far from zero"],
)
def test_covariances_stay_positive_definite(x, covariance):
    dim = x.shape[1]
    p = NormalWishart(torch.zeros(dim).double(), torch.full((dim,), 1e-6).double())
    p = NormalWishart(p.mean, p.scale, covariance=covariance)
    stats = statistics(x, covariance)
    assert p.log_evidence(stats).isfinite().all()
    mode = p.mode(stats)
    assert mode.whitener.isfinite().all()
    diagonal = mode.whitener
    if covariance == "full":
        diagonal = mode.whitener.diagonal(dim1=-2, dim2=-1)
    assert (diagonal > 0).all()


def two_clouds(n=400, apart=8.0, seed=0):
    chance = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 2, generator=chance).double()
    x[: n // 2, 0] += apart
    return x


def test_split_and_merge_ratios_are_each_others_inverse():
    x = two_clouds()
    half = torch.arange(len(x)) < 200
    stats = gather_statistics(x, torch.stack([half, ~half], dim=1), "full")
    p = prior(2, degrees=4.0)
    split = log_split_ratio(stats.of(0), stats.of(1), p, 10.0)
    merge = merge_ratios(stats, p, 10.0)
    assert split > 0
    assert merge[0, 1] == -split
    assert merge[1, 0] == -split
    assert merge.diagonal().isneginf().all()


def test_split_ratio_refuses_small_halves():
    x = two_clouds(20)
    half = torch.arange(20) < 3
    stats = gather_statistics(x, torch.stack([half, ~half], dim=1), "full")
    assert log_split_ratio(stats.of(0), stats.of(1), prior(2), 1.0, smallest=4).isneginf()


def test_neighbours_limit_what_is_merged():
    centers = torch.tensor([0.0, 1.0, 5.0, 6.0, 50.0])
    x = centers.repeat(6)[:, None].double() + torch.linspace(0, 0.1, 30)[:, None]
    member = torch.nn.functional.one_hot(torch.arange(30) % 5).double()
    ratios = merge_ratios(gather_statistics(x, member, "full"), prior(1), 1.0, n_neighbors=1)
    tried = ratios.isfinite()
    assert tried[0, 1]
    assert tried[2, 3]
    assert tried[4, 3]  # the nearest of the last, though not the other way round
    assert tried.sum() == 6


def test_cut_along_the_leading_axis_parts_two_clouds():
    x, keep = two_clouds()[None], torch.ones(1, 400, dtype=torch.bool)
    first = principal_cuts(x, keep, 1)[0, 0]
    assert len(set(first[:200].tolist())) == 1
    assert (first[:200] != first[200:]).float().mean() > 0.99


def test_search_finds_long_clusters_side_by_side_that_a_cut_along_the_axis_misses():
    chance = torch.Generator().manual_seed(0)
    x = torch.randn(600, 2, generator=chance).double() * torch.tensor([12.0, 0.3])
    x[:300, 1] += 3
    keep = torch.ones(1, 600, dtype=torch.bool)
    p = NormalWishart(torch.zeros(2).double(), torch.ones(2).double())
    halves = search_splits(x[None], keep, torch.tensor([600.0]).double(), p, 1.0)
    odds = log_odds(x[None], *halves)[0]
    agree = ((odds > 0) == (torch.arange(600) < 300)).float().mean()
    assert max(agree, 1 - agree) > 0.97


def test_fewer_columns_are_the_evidence_of_so_many():
    """Rows whose columns repeat count as the columns that do not, but for the unit of volume."""
    x = rows(dim=3)
    narrow = NormalWishart(torch.zeros(3).double(), torch.ones(3).double(), 0.7, 5.0, "isotropic")
    wide = NormalWishart(
        torch.zeros(6).double(), torch.ones(6).double(), 0.7, 8.0, "isotropic", columns=3.0
    )
    alone = narrow.log_evidence(statistics(x, "isotropic"))
    repeated = wide.log_evidence(statistics(torch.cat([x, x], dim=1), "isotropic"))
    assert repeated.item() == pytest.approx(alone.item())


def test_effective_columns_are_those_that_vary_by_themselves():
    chance = torch.Generator().manual_seed(0)
    x = torch.randn(3000, 8, generator=chance)
    labels = torch.randint(3, (3000,), generator=chance)
    apart = x + 50 * labels.unsqueeze(1)
    assert effective_columns(apart, labels) == pytest.approx(8, abs=0.2)
    assert effective_columns(apart[:, :4].repeat(1, 2), labels) == pytest.approx(4, abs=0.1)
    assert effective_columns(torch.ones(5, 3), torch.zeros(5).long()) == 3
    few = torch.randn(60, 300, generator=chance)
    assert effective_columns(few, labels[:60]) == pytest.approx(300, rel=0.15)
    assert effective_columns(few[:, :20].repeat(1, 15), labels[:60]) == pytest.approx(20, rel=0.15)
    assert effective_columns(few[:3], torch.arange(3)) == 300


@pytest.mark.parametrize("dim", [5, 60])
def test_leading_axes_are_those_of_the_covariance(dim):
    x = torch.randn(2, 300, dim, generator=torch.Generator().manual_seed(1)).double()
    x = x * torch.linspace(5, 0.5, dim) ** 2
    centred = x - x.mean(dim=1, keepdim=True)
    values = torch.linalg.eigvalsh(centred.mT @ centred)
    found = leading_axes(centred, 3)
    along = (centred @ found).square().sum(dim=1)
    assert torch.allclose(along, values[:, -3:].flip(-1), rtol=1e-2)
    assert leading_axes(torch.zeros(1, 4, dim), 3).isfinite().all()
