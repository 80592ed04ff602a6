"""Clusters of widths of their own, and rows that are directions."""

import numpy as np
import pytest
import torch
from scipy import integrate
from scipy.stats import norm
from sklearn.metrics import adjusted_rand_score

from asterism import DeepDPM
from asterism.functional.niw import NormalWishart, Statistics, gather_statistics, label_statistics
from asterism.functional.pooling import pool_covariance
from asterism.functional.widths import OwnWidths, round_evidences, shared_shape

QUICK = {"epoch_steps": 10, "random_state": 0}


def rows(n=30, dim=3, width=1.0, seed=0):
    chance = np.random.default_rng(seed)
    return torch.from_numpy(width * chance.standard_normal((n, dim)) + [1.0, 0.0, -2.0][:dim])


def statistics(x):
    return gather_statistics(x, torch.ones(len(x), 1), "full")


def prior(spread, kind=OwnWidths, dim=3, **more):
    mean = torch.full((dim,), 0.3, dtype=torch.float64)
    scale = torch.linspace(4.0, 6.0, dim, dtype=torch.float64)
    known = {} if kind is NormalWishart else {"spread": spread}
    return kind(mean, scale, 0.4, dim + 6.0, **known, **more)


@pytest.mark.parametrize("width", [0.7, 1.0, 1.2])
def test_evidence_is_an_integral_over_widths(width):
    """Up to 2.5 deviations."""
    stats, tau = statistics(rows(width=width)), 0.7
    p = prior(0, NormalWishart)

    def of(log_s):
        s = float(np.exp(log_s))
        own = NormalWishart(p.mean, p.scale * s, p.kappa * s, p.nu)
        return own.log_evidence(stats).item()

    log_s = np.linspace(-2.5 * tau, 2.5 * tau, 801)
    logs, weights = np.array([of(v) for v in log_s]), norm.pdf(log_s, scale=tau)
    inside = integrate.trapezoid(np.exp(logs - logs.max()) * weights, log_s)
    expected = logs.max() + np.log(inside / integrate.trapezoid(weights, log_s))
    assert prior(tau).log_evidence(stats).item() == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize("shape", [(), (2,), (2, 3)])
def test_without_spread_all_is_as_before(shape):
    x = rows(60).expand(*shape, 60, 3)
    weights = torch.rand(*shape, 60, 4, generator=torch.Generator().manual_seed(0))
    stats = gather_statistics(x, weights, "full")
    own, plain = prior(0.0), prior(0, NormalWishart)
    torch.testing.assert_close(own.log_evidence(stats), plain.log_evidence(stats))
    for mine, theirs in zip(own.mode(stats), plain.mode(stats), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_grids_of_priors_agree_with_one_prior():
    x = rows(50)
    stats = label_statistics(x, torch.arange(50) % 4, 4, "full")
    strengths, kappas = torch.tensor([2.0, 30.0]), torch.tensor([0.1, 2.0])
    found = round_evidences(stats, strengths, kappas, 0.5)
    for s, m in enumerate(strengths.tolist()):
        for q, kappa in enumerate(kappas.tolist()):
            scale = torch.full((3,), m, dtype=torch.float64)
            one = OwnWidths(torch.zeros(3, dtype=torch.float64), scale, kappa, 4 + m, spread=0.5)
            torch.testing.assert_close(found[s, q], one.log_evidence(stats), rtol=1e-5, atol=1e-4)


def test_evidence_is_exact_where_widths_are_told_sharply():
    """Many rows of many columns, expected to be much alike: widths lie between those looked at."""
    dim = 32
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((400, dim)))
    stats, tau = statistics(x), 1.0
    log_s = np.linspace(-2.5, 2.5, 4001)
    for off in (0.0, 0.03, 0.1):
        scale = torch.full((dim,), 1000.0 * np.exp(off), dtype=torch.float64)
        mean = torch.zeros(dim, dtype=torch.float64)
        near = np.exp(log_s[np.abs(log_s) < 0.4])
        own = [NormalWishart(mean, scale * s, 0.1 * s, 1033.0).log_evidence(stats) for s in near]
        logs = torch.stack(own)[:, 0].numpy() - log_s[np.abs(log_s) < 0.4] ** 2 / 2
        total = np.exp(-(log_s**2) / 2).sum()
        expected = logs.max() + np.log(np.exp(logs - logs.max()).sum() / total)
        found = OwnWidths(mean, scale, 0.1, 1033.0, spread=tau).log_evidence(stats).item()
        assert found == pytest.approx(expected, abs=0.1)


def test_only_evidence_and_modes_are_known_of_widths():
    stats = statistics(rows())
    with pytest.raises(NotImplementedError, match="widths"):
        prior(1.0).expected(stats)
    with pytest.raises(NotImplementedError, match="widths"):
        prior(1.0).draw(stats, np.random.default_rng(0))


def test_mode_takes_the_width_of_the_rows():
    """Nine rows hardly move a covariance expected with a hundred; its width they do."""
    x = rows(9, width=3.0)
    stats = statistics(x)
    scale = torch.full((3,), 100.0, dtype=torch.float64)
    settings = (x.mean(dim=0), scale, 1.0, 104.0)

    def deviation(p):
        return 1 / p.mode(stats).whitener[0].diagonal().mean().item()

    assert deviation(NormalWishart(*settings)) < 1.5
    assert deviation(OwnWidths(*settings, spread=1.0)) > 2


def test_empty_and_flat_clusters_have_finite_evidence():
    zero = Statistics(
        torch.tensor([0.0, 5.0], dtype=torch.float64),
        torch.zeros(2, 3, dtype=torch.float64),
        torch.zeros(2, 3, 3, dtype=torch.float64),
    )
    p = prior(1.0)
    assert p.log_evidence(zero).isfinite().all()
    assert p.log_evidence(zero)[0].abs() < 1e-9
    assert p.mode(zero).whitener.isfinite().all()


def test_shape_is_shared_by_clusters_of_all_widths():
    chance = np.random.default_rng(0)
    shape = np.array([[2.0, 0.6], [0.6, 0.5]])
    widths = np.exp(np.linspace(-1.5, 1.5, 12))
    n = torch.full((12,), 400.0, dtype=torch.float64)
    root = np.linalg.cholesky(shape)
    X = [np.sqrt(s) * chance.standard_normal((400, 2)) @ root.T for s in widths]
    scatters = torch.from_numpy(np.stack([x.T @ x for x in X]))
    found = shared_shape(scatters, n, torch.eye(2).double(), torch.eye(2).double())
    np.testing.assert_allclose(found / found[0, 0], shape / shape[0, 0], atol=0.05)


def uneven(seed=0, dim=3):
    """Six clusters of one shape, of which every other one is seven times as wide."""
    chance = np.random.default_rng(seed)
    labels = np.arange(6).repeat(80)
    widths = np.where(labels % 2, 1.0, 0.15)[:, None]
    means = 6 * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1]])
    return means[labels] + widths * chance.standard_normal((480, dim)), labels


def test_spread_is_learnt_where_it_may_be():
    X, labels = uneven()
    settings = {"alpha": 10.0, "spreads": (0.0, 0.5, 1.0)}
    found = pool_covariance(X, len(X), np.full(3, 0.01), **settings)
    assert found.shape.spread == 1.0
    assert adjusted_rand_score(labels, found.labels) > 0.98
    assert pool_covariance(X, len(X), np.full(3, 0.01), alpha=10.0).shape.spread == 0
    even = np.random.default_rng(1).standard_normal((480, 3)) + 9 * np.eye(3)[np.arange(480) % 3]
    assert pool_covariance(even, 480, np.full(3, 0.01), **settings).shape.spread == 0


# --- directions ---------------------------------------------------------------------------------


def directions(n=1200, classes=48, dim=128, seed=0):
    """Unit rows of classes that come in fours, each with a concentration of its own."""
    chance = np.random.default_rng(seed)
    means = chance.standard_normal((classes, dim))
    groups = np.repeat(chance.standard_normal((classes // 4 + 1, dim)), 4, axis=0)[:classes]
    means, groups = (m / np.linalg.norm(m, axis=1, keepdims=True) for m in (means, groups))
    labels = np.arange(n) % classes
    widths = chance.permutation(np.geomspace(0.3, 1.5, classes))[labels, None] / np.sqrt(dim)
    X = (0.7 * groups + 0.7 * means)[labels] + widths * chance.standard_normal((n, dim))
    return X / np.linalg.norm(X, axis=1, keepdims=True), labels


@pytest.fixture(scope="module")
def directed():
    X, labels = directions()
    return DeepDPM(**QUICK).fit(X), X, labels


def test_directions_are_told_apart(directed):
    model, _, labels = directed
    assert model.length_ is not None
    assert adjusted_rand_score(labels, model.labels_) > 0.97


def test_rows_that_are_not_taken_for_directions_are_told_apart_worse(directed, monkeypatch):
    model, X, labels = directed
    monkeypatch.setattr(DeepDPM, "_are_directions", lambda self, X: False)
    other = DeepDPM(**QUICK).fit(X)
    assert other.length_ is None
    assert other.n_clusters_ < model.n_clusters_ == 48
    assert adjusted_rand_score(labels, other.labels_) < 0.96


def test_directions_have_one_length_along_the_axes(directed):
    model, X, _ = directed
    basis = np.linalg.qr(model.axes_)[0]
    inside = model._turned(X) @ np.linalg.pinv(model.axes_) @ basis
    np.testing.assert_allclose(np.linalg.norm(inside, axis=1), model.length_, rtol=1e-6)


def test_only_the_direction_of_new_rows_counts(directed):
    model, X, _ = directed
    centre = model.offset_
    longer = centre + 0.7 * (X[:50] - centre)
    np.testing.assert_allclose(model.predict_proba(longer), model.predict_proba(X[:50]), atol=1e-9)


def test_predictions_do_not_depend_on_the_rows_beside(directed):
    model, X, _ = directed
    np.testing.assert_allclose(
        model.predict_proba(X[:7]), model.predict_proba(X)[:7], rtol=0, atol=1e-9
    )


def test_directions_survive_saving(directed, tmp_path):
    model, X, _ = directed
    model.save(tmp_path / "model")
    loaded = DeepDPM.load(tmp_path / "model")
    assert loaded.length_ == model.length_
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_allclose(loaded.score_samples(X[:5]), model.score_samples(X[:5]))


def test_rows_of_other_lengths_are_outliers(directed):
    model, X, _ = directed
    usual = model.score_samples(X)
    for times in (0.0, 10.0, 1e6):
        assert (model.score_samples(times * X[:50]) < np.quantile(usual, 0.01)).all()
    for times in (0.5, 1.5):
        assert (model.score_samples(times * X[:50]) < usual[:50]).mean() > 0.9


def test_other_directions_are_outliers(directed):
    model, X, _ = directed
    others = np.random.default_rng(5).standard_normal((50, X.shape[1]))
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    assert (model.score_samples(others) < np.quantile(model.score_samples(X), 0.01)).all()


def test_a_few_rows_of_other_lengths_do_not_matter():
    X, labels = directions(400, 6, 48)
    X[7] = 0
    model = DeepDPM(**QUICK).fit(X)
    assert model.length_ is not None
    assert adjusted_rand_score(labels, model.labels_) > 0.95


def test_an_empty_column_makes_no_directions():
    angles = np.arange(400) % 4 * np.pi / 2 + 0.2 * np.random.default_rng(0).standard_normal(400)
    X = np.column_stack([np.cos(angles), np.sin(angles), np.zeros(400)])
    model = DeepDPM(**QUICK).fit(X)
    assert model.length_ is None
    assert model.n_clusters_ == DeepDPM(**QUICK).fit(X[:, :2]).n_clusters_


@pytest.mark.parametrize("kind", ["other lengths", "one side", "standard", "few columns", "prior"])
def test_other_rows_are_no_directions(kind):
    X, _ = directions(300, 6, 48)
    settings = {}
    if kind == "other lengths":
        X = X * np.linspace(0.9, 1.1, len(X))[:, None]
    elif kind == "one side":  # such as images, whose pixels are not negative
        X = np.abs(X)
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    elif kind == "standard":
        settings["scaling"] = "standard"
    elif kind == "few columns":
        X = X[:, :8] / np.linalg.norm(X[:, :8], axis=1, keepdims=True)
    else:
        settings.update(prior="data", n_components=8)
    assert DeepDPM(**settings, **QUICK).fit(X).length_ is None


def test_a_common_length_does_not_matter():
    X, _ = directions(300, 6, 48)
    one, other = (DeepDPM(**QUICK).fit(scale * X) for scale in (1.0, 64.0))
    np.testing.assert_array_equal(one.labels_, other.labels_)
    assert other.length_ == pytest.approx(one.length_)


def test_rows_asked_to_be_of_unit_length_are_directions():
    X, labels = directions(300, 6, 48)
    model = DeepDPM(scaling="rows", **QUICK).fit(X * np.linspace(0.5, 2, len(X))[:, None])
    assert model.length_ is not None
    assert adjusted_rand_score(labels, model.labels_) > 0.95
