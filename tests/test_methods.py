"""What single methods promise beyond the contract."""

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

from asterism import (
    HDBSCAN,
    AEKMeans,
    AutoAgglomerative,
    AutoGaussianMixture,
    AutoKMeans,
    AutoSpectral,
    BayesianMixture,
    SetTransformerMixture,
)
from asterism._validation import draw_seed
from asterism.base.embedded import has_levelled
from asterism.exceptions import TrainingError
from asterism.functional.assignments import (
    by_decreasing_size,
    simplified_silhouette,
    spherical_log_responsibilities,
)
from asterism.functional.scaling import fit_scaling
from asterism.methods.baselines.linkage import laplacian_spectrum, neighbour_graph
from asterism.priors import GaussianMixturePrior
from asterism.training import TrainingPlan

FAR = np.array([[0.0, 0], [8, 0], [0, 8], [8, 8], [4, 16]])


def five(n=250, seed=0):
    return make_blobs(n, centers=FAR, cluster_std=0.6, random_state=seed)


# --- baselines ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [AutoKMeans(), AutoGaussianMixture(), AutoAgglomerative(), AutoSpectral(), HDBSCAN()],
    ids=lambda model: type(model).__name__,
)
def test_the_number_of_clusters_is_found(model):
    X, y = five()
    model.set_params(random_state=0).fit(X)
    assert model.n_clusters_ == 5
    assert adjusted_rand_score(y, model.labels_) > 0.98


def test_kmeans_is_scikit_learns():
    X, _ = five()
    ours = AutoKMeans(5, random_state=3).fit(X)
    theirs = KMeans(5, n_init=10, random_state=draw_seed(3)).fit(X)
    assert ours.inertia_ == pytest.approx(theirs.inertia_)
    assert adjusted_rand_score(ours.labels_, theirs.labels_) == 1
    assert ours.score(X) == pytest.approx(simplified_silhouette(X, ours.labels_))


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_mixtures_predict_as_scikit_learns(dim):
    X = make_blobs(200, dim, centers=3, cluster_std=2.0, random_state=1)[0]
    new = X + 0.5
    seed = draw_seed(4)
    pairs = [
        (
            AutoGaussianMixture(3, random_state=4),
            GaussianMixture(3, random_state=seed),
        ),
        (
            BayesianMixture(max_clusters=6, random_state=4),
            BayesianGaussianMixture(n_components=6, max_iter=300, random_state=seed),
        ),
    ]
    for ours, theirs in pairs:
        ours.fit(X)
        expected = theirs.fit(X).predict_proba(new)
        _, order = by_decreasing_size(theirs.predict(X))
        kept = expected[:, order] / expected[:, order].sum(axis=1, keepdims=True)
        np.testing.assert_allclose(ours.predict_proba(new), kept, atol=1e-8)
    assert pairs[0][0].score(new) == pytest.approx(pairs[0][1].score(new))


@pytest.mark.parametrize("linkage", ["ward", "single"])
@pytest.mark.parametrize("n_clusters", [2, 3, 4, 5])
def test_ties_do_not_cost_clusters(linkage, n_clusters):
    X = np.array([[0.0, 0], [0, 1], [10, 0], [10, 1], [20, 0], [20, 1]])
    assert AutoAgglomerative(n_clusters, linkage=linkage).fit(X).n_clusters_ == n_clusters


def test_the_order_of_rows_does_not_change_what_is_found():
    X = np.repeat(np.random.default_rng(0).normal(size=(6, 2)), 1000, axis=0)
    shuffled = np.random.default_rng(1).permutation(X)
    found = [AutoKMeans(random_state=0, n_init=2).fit(rows).n_clusters_ for rows in (X, shuffled)]
    assert found == [6, 6]


def test_a_new_fit_forgets_the_old_one():
    X, _ = five()
    model = AutoKMeans(random_state=0).fit(X)
    assert hasattr(model, "silhouettes_")
    assert not hasattr(model.set_params(n_clusters=2).fit(X), "silhouettes_")
    with pytest.raises(ValueError, match="NaN"):
        model.fit([[np.nan, 1, 2], [1, 2, 3]])
    with pytest.raises(ValueError, match="not fitted"):
        model.predict(X)


def test_bic_is_recorded_for_every_candidate():
    X, _ = five()
    model = AutoGaussianMixture(max_clusters=7, random_state=0).fit(X)
    assert sorted(model.bics_) == list(range(1, 8))
    assert min(model.bics_, key=model.bics_.get) == model.n_clusters_


def test_hdbscan_keeps_or_fills_its_noise():
    X, _ = make_moons(300, noise=0.05, random_state=0)
    stray = np.array([[10.0, 10.0], [-9.0, 7.0]])
    X = np.r_[X, stray]
    kept, filled = (HDBSCAN(noise=noise).fit(X) for noise in ("keep", "fill"))
    assert kept.labels_[-2:].tolist() == [-1, -1]
    assert kept.predict([[10.1, 10.0], [0.0, 1.0]]).tolist() == [-1, kept.predict([[0.0, 1.0]])[0]]
    assert filled.labels_.min() == 0
    assert kept.n_clusters_ == filled.n_clusters_ == 2
    uniform = np.random.default_rng(0).uniform(size=(60, 8))
    nothing = HDBSCAN(noise="keep", min_cluster_size=25).fit(uniform)
    assert nothing.n_clusters_ == 0
    assert set(nothing.predict(uniform)) == {-1}
    assert HDBSCAN(min_cluster_size=25).fit(uniform).n_clusters_ == 1


@pytest.mark.parametrize("cls", [HDBSCAN, AutoSpectral, AutoAgglomerative])
def test_above_max_rows_a_sample_is_clustered_and_the_rest_join(cls):
    X, y = five(1000)
    model = cls(max_rows=200, random_state=0).fit(X)
    assert model.context_rows_.shape == (200, 2)
    assert adjusted_rand_score(y, model.labels_) > 0.98
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    sizes = np.bincount(model.labels_)
    assert sorted(sizes, reverse=True) == sizes.tolist()


def test_laplacian_spectrum_agrees_with_the_dense_one():
    X, _ = five(100)
    graph = neighbour_graph(X, 8)
    weights = graph.toarray()
    degree = weights.sum(axis=0)
    dense = np.eye(100) - weights / np.sqrt(degree[:, None] * degree[None])
    expected = np.linalg.eigvalsh(dense)[:8]
    np.testing.assert_allclose(laplacian_spectrum(graph, 8, seed=0), expected, atol=1e-6)
    assert np.isclose(expected, 0).sum() == 5


@pytest.mark.parametrize("n_rows", [2, 3, 4, 20])
@pytest.mark.parametrize("cls", [AutoKMeans, AutoGaussianMixture, AutoAgglomerative, AutoSpectral])
def test_few_rows_are_clustered_with_k_unknown(cls, n_rows):
    X = np.random.default_rng(0).normal(size=(n_rows, 2))
    assert 1 <= cls(random_state=0).fit(X).n_clusters_ <= n_rows


# --- set transformer ------------------------------------------------------------------------------


def four(n=300, seed=0, spread=0.5):
    return make_blobs(n, centers=FAR[:4], cluster_std=spread, random_state=seed)


def test_set_transformer_finds_four_gaussians():
    X, y = four()
    model = SetTransformerMixture().fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    assert model.weights_.sum() == pytest.approx(1, abs=1e-3)
    refined = SetTransformerMixture(refine="em", n_em=10).fit(X)
    assert refined.score(X) > model.score(X)


def test_refinement_ends_at_the_maximum_em_finds():
    X, _ = four()
    model = SetTransformerMixture(refine="em", n_em=100).fit(X)
    aligned = (X - model.origin_) @ model.projection_
    reference = GaussianMixture(4, covariance_type="diag", n_init=5, random_state=0).fit(aligned)
    assert model.score(X) == pytest.approx(reference.score(aligned), abs=1e-3)


@pytest.mark.parametrize("n_clusters", [1, 2, 3])
def test_fewer_clusters_are_had_by_merging(n_clusters):
    X, _ = four()
    model = SetTransformerMixture(n_clusters).fit(X)
    assert model.n_clusters_ == n_clusters
    assert model.means_.shape == (n_clusters, 2)


def test_fit_many_is_fit_for_each():
    sets = [four(n, seed=n)[0] for n in (40, 300, 90)]
    sets.append(np.random.default_rng(0).normal(size=(50, 6)))
    together = SetTransformerMixture(refine="em").fit_many(sets, max_points=400)
    for X, model in zip(sets, together, strict=True):
        alone = SetTransformerMixture(refine="em").fit(X)
        np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X), atol=1e-3)
        assert model.n_features_in_ == X.shape[1]
    assert together[0].module_ is together[1].module_
    assert SetTransformerMixture().fit_many([]) == []


def test_components_without_rows_stay_in_the_mixture():
    X = make_blobs([60, 60], centers=[[0, 0], [9, 9]], cluster_std=0.3, random_state=0)[0]
    model = SetTransformerMixture().fit(X)
    assert model.weights_.shape == (4,)
    assert model.weights_.sum() == pytest.approx(1)
    assert model.predict_proba(X).shape == (120, model.n_clusters_)
    sharp = SetTransformerMixture(refine="em", n_em=20).fit(X)
    np.testing.assert_allclose(sharp.predict_proba(X).sum(axis=1), 1)


def test_a_failed_training_leaves_the_estimator_as_it_was():
    class Broken(GaussianMixturePrior):
        def sample(self, batch_size, generator):
            if batch_size == 3:
                raise OSError("disk full")
            return super().sample(batch_size, generator)

    X, _ = four()
    model = SetTransformerMixture().fit(X)
    before = model.labels_
    with pytest.raises(OSError, match="disk full"):
        model.pretrain(Broken(), batch_size=3, plan=TrainingPlan(steps=2))
    np.testing.assert_array_equal(model.fit(X).labels_, before)


def test_pretraining_without_a_seed_resumes(tmp_path):
    prior = GaussianMixturePrior(n_points=(10, 12))
    sizes = {"width": 8, "heads": 2, "n_inducing": 2}
    options = {"plan": TrainingPlan(steps=4), "batch_size": 2, "run_dir": tmp_path, **sizes}
    first, second = (SetTransformerMixture().pretrain(prior, **options) for _ in range(2))
    for ours, theirs in zip(first.module_.parameters(), second.module_.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    with pytest.raises(TrainingError, match="prior="):
        SetTransformerMixture().pretrain(GaussianMixturePrior(n_points=(10, 13)), **options)


def test_place_scale_and_order_of_rows_do_not_matter():
    X, _ = four([100, 80, 70, 50])
    expected = SetTransformerMixture().fit(X)
    moved = SetTransformerMixture().fit(1e4 + 250 * X)
    np.testing.assert_array_equal(moved.labels_, expected.labels_)
    order = np.random.default_rng(0).permutation(len(X))
    shuffled = SetTransformerMixture().fit(X[order])
    np.testing.assert_array_equal(shuffled.labels_, expected.labels_[order])


def test_pretraining_learns_and_its_weights_are_used(tmp_path):
    prior = GaussianMixturePrior(n_clusters=2, dim=3, n_points=(20, 40))
    plan = TrainingPlan(steps=150, lr=3e-3, log_every=30)
    model = SetTransformerMixture(2, random_state=0)
    model.pretrain(prior, plan=plan, width=32, n_inducing=8, run_dir=tmp_path / "run")
    losses = [record["loss"] for record in model.history_]
    assert losses[-1] < 0.8 * losses[0]
    X = np.random.default_rng(0).normal(size=(50, 3))
    probability = model.fit(X).predict_proba(X)
    model.save(tmp_path / "mine", command="test")
    reused = SetTransformerMixture(2, weights=tmp_path / "mine.safetensors").fit(X)
    np.testing.assert_allclose(reused.predict_proba(X), probability, atol=1e-6)
    assert reused.module_.dim == 3
    again = SetTransformerMixture(2, random_state=0).pretrain(
        prior, plan=plan, width=32, n_inducing=8
    )
    for ours, theirs in zip(model.module_.parameters(), again.module_.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_pretrained_but_not_fitted_can_be_saved_but_not_used(tmp_path):
    model = SetTransformerMixture.from_pretrained("set-transformer-mog")
    with pytest.raises(ValueError, match="not fitted"):
        model.predict([[0.0, 1.0]])
    model.save(tmp_path / "copy")
    X, _ = four()
    copy = SetTransformerMixture.load(tmp_path / "copy").fit(X)
    np.testing.assert_array_equal(copy.labels_, model.fit(X).labels_)


# --- autoencoder ----------------------------------------------------------------------------------


def test_ae_kmeans_embeds_clusters_and_stops_when_level():
    X, y = five()
    model = AEKMeans(5, hidden_dims=(32, 32), max_steps=600, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.9
    assert model.history_[-1]["loss"] < 0.2 * model.history_[0]["loss"]
    codes = model.transform(X)
    assert codes.shape == (250, 2)
    nearest = ((codes[:, None] - model.cluster_centers_) ** 2).sum(-1).argmin(1)
    np.testing.assert_array_equal(nearest, model.labels_)
    flat = [{"loss": 1.0}] * 20
    falling = [{"loss": 0.9**i} for i in range(20)]
    assert has_levelled(flat, 0.01)
    assert not has_levelled(falling, 0.01)
    assert not has_levelled(flat, 0.0)
    assert not has_levelled(flat[:19], 0.01)


def test_ae_kmeans_shows_progress_only_when_asked(capsys):
    X, _ = five(40)
    AEKMeans(2, hidden_dims=(4,), max_steps=3).fit(X)
    assert capsys.readouterr().err == ""
    AEKMeans(2, hidden_dims=(4,), max_steps=3, verbose=True).fit(X)
    assert "autoencoder" in capsys.readouterr().err


@pytest.mark.parametrize("scaling", ["none", "unit_ms", "minmax", "standard"])
def test_scalings(scaling):
    X = np.array([[1.0, 10, 7], [3.0, 30, 7], [5.0, 20, 7]])
    offset, factor = fit_scaling(X, scaling)
    scaled = (X - offset) * factor
    expected = {
        "none": lambda: np.testing.assert_array_equal(scaled, X),
        "unit_ms": lambda: np.testing.assert_allclose((scaled**2).mean(), 1),
        "minmax": lambda: np.testing.assert_allclose([scaled.min(), scaled.max()], [0, 1]),
        "standard": lambda: np.testing.assert_allclose(scaled.std(axis=0), [1, 1, 0]),
    }
    expected[scaling]()
    with pytest.raises(ValueError, match="scaling='log'"):
        fit_scaling(X, "log")


# --- assignments ----------------------------------------------------------------------------------


def test_spherical_memberships_are_those_of_equal_gaussians():
    X, centers = np.array([[0.0], [1.0], [3.0]]), np.array([[0.0], [2.0]])
    log_r = spherical_log_responsibilities(X, centers, variance=0.5)
    density = np.exp(-((X - centers.T) ** 2))
    np.testing.assert_allclose(np.exp(log_r), density / density.sum(axis=1, keepdims=True))
    certain = spherical_log_responsibilities(X, centers, variance=0.0)
    np.testing.assert_allclose(np.exp(certain), [[1, 0], [0.5, 0.5], [0, 1]])


def test_simplified_silhouette_by_hand():
    X = np.array([[0.0], [2.0], [10.0], [12.0]])
    # Centres 1 and 11: own distance 1, other distance 11, 9, 9, 11.
    expected = np.mean([10 / 11, 8 / 9, 8 / 9, 10 / 11])
    assert simplified_silhouette(X, np.array([0, 0, 1, 1])) == pytest.approx(expected)
    assert simplified_silhouette(X, np.array([0, 0, 0, 0])) == 0
    assert simplified_silhouette(X, np.array([0, 0, -1, -1])) == 0
