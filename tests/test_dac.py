"""The estimator of deep amortised clustering."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from asterism import DAC
from asterism.exceptions import DataError
from asterism.functional.sets import SetBatch
from asterism.plotting import plot_filtering
from asterism.training import TrainingPlan

TINY = {"width": 16, "heads": 2, "n_inducing": 4, "depth": 2}
KINDS = {
    "min": {},
    "anchored": {"loss": "anchored"},
    "maf": {"density": "maf", "density_options": {"hidden": (8, 8)}},
    "no density": {"density": "none"},
}


class Blobs:
    """One to three Gaussians far apart."""

    dim = 2

    def sample(self, batch_size, generator):
        def normal(*shape):
            return torch.randn(*shape, generator=generator)

        weights = torch.rand(batch_size, 3, generator=generator) + 0.05
        weights[:, 1:] *= torch.rand(batch_size, 2, generator=generator) > 0.5
        labels = torch.multinomial(weights, 48, replacement=True, generator=generator)
        centers = 3 * normal(batch_size, 3, 2)
        x = centers.gather(1, labels[..., None].expand(-1, -1, 2)) + 0.2 * normal(batch_size, 48, 2)
        return SetBatch(x, torch.ones(batch_size, 48, dtype=torch.bool), labels)


def untrained(kind="min", bias=0.0, **parameters):
    """Network that knows nothing; it claims half of the usual rows first, with a bias fewer."""
    model = DAC(random_state=0, scaling="none", **parameters)
    model.pretrain(Blobs(), plan=TrainingPlan(steps=0), batch_size=1, **TINY, **KINDS[kind])
    network = model.module_
    with torch.no_grad():
        network.claim.weight.mul_(30)
        x = torch.from_numpy(blobs()[0]).float()[None]
        anchor = torch.tensor([0]) if network.anchored else None
        network.claim.bias -= network.step(x, None, anchor)[0].median() + bias
    return model


@pytest.fixture(scope="module")
def trained():
    """A small network, trained for some seconds; copies are handed out."""
    model = DAC(random_state=0, scaling="none").pretrain(
        Blobs(),
        plan=TrainingPlan(steps=200, lr=3e-3, schedule="cosine", warmup=0.05, clip=10.0),
        batch_size=8,
        width=32,
        n_inducing=8,
        depth=2,
        loss="anchored",
    )
    kept = pickle.dumps(model)
    return lambda **parameters: pickle.loads(kept).set_params(**parameters)


def blobs(sizes=(60, 40, 20), seed=1):
    centers = [[-3, -3], [3, -2], [0, 4]]
    return make_blobs(list(sizes), centers=centers, cluster_std=0.2, random_state=seed)


def test_training_lowers_the_loss_and_easy_clusters_are_found(trained):
    X, y = blobs()
    model = trained().fit(X)
    assert model.history_[-1]["loss"] < 0.5 * model.history_[0]["loss"]
    assert adjusted_rand_score(y, model.labels_) > 0.8
    assert model.n_leftover_ == 0
    refined = trained(refine="em").fit(X)
    assert adjusted_rand_score(y, refined.labels_) > 0.8
    assert refined.score(X) > model.score(X)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{}, {"max_iter": 3}, {"min_cluster_size": 8}])
def test_new_rows_are_read_by_themselves_and_as_the_old_ones_were(kind, options):
    X, _ = blobs((20, 20, 20))
    model = untrained(kind, **options).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    probability = model.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    np.testing.assert_array_equal(probability.argmax(axis=1), model.labels_)
    new = X[::-7] + 0.3
    alone = np.concatenate([model.predict(row[None]) for row in new])
    np.testing.assert_array_equal(alone, model.predict(new))
    assert np.isfinite(model.score(X))


@pytest.mark.parametrize("kind", KINDS)
def test_the_path_tells_what_happened(kind):
    X, _ = blobs((15, 10, 5))
    model = untrained(kind).fit(X)
    left = np.arange(len(X))
    for number, step in enumerate(model.filtering_path_):
        np.testing.assert_array_equal(step.indices, left)
        np.testing.assert_array_equal(step.taken, model.raw_labels_[left] == number)
        claimed = step.probabilities > 0.5
        assert step.taken.any()
        assert step.forced or (step.taken == claimed).all()
        assert (step.center is None) == (kind in ("maf", "no density"))
        left = left[~step.taken]
    assert len(left) == model.n_leftover_ == (model.raw_labels_ < 0).sum()
    assert model.n_passes_ == len(model.filtering_path_)


def test_a_network_that_claims_nothing_still_ends():
    X, _ = blobs((10, 5, 5))
    model = untrained(bias=1e4).fit(X)
    assert model.n_passes_ == len(X) == model.n_clusters_
    assert all(step.forced for step in model.filtering_path_)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    capped = untrained(bias=1e4, max_iter=3).fit(X)
    assert capped.n_leftover_ == len(X) - 3
    assert set(capped.labels_) == {0, 1, 2}
    assert np.bincount(capped.labels_).sum() == len(X)
    np.testing.assert_array_equal(capped.predict(X), capped.labels_)


def test_equal_rows_share_a_cluster():
    X = np.repeat(blobs((4, 3, 3))[0], 5, axis=0)
    for bias in (0.0, 1e4):
        model = untrained(bias=bias).fit(X)
        assert (model.labels_.reshape(-1, 5) == model.labels_[::5, None]).all()


def test_small_clusters_are_dissolved():
    X, _ = blobs((30, 20, 10))
    loose = untrained().fit(X)
    sizes = np.bincount(loose.labels_)
    assert sizes.min() < 6 <= sizes.max()
    tight = untrained(min_cluster_size=6).fit(X)
    assert np.bincount(tight.labels_).min() >= 6
    np.testing.assert_array_equal(tight.raw_labels_, loose.raw_labels_)
    # If all are too small the largest stays.
    assert untrained(min_cluster_size=10**6).fit(X).n_clusters_ == 1


@pytest.mark.parametrize("kind", ["min", "maf", "no density"])
def test_clusters_are_merged_to_the_number_asked_for(kind):
    X, _ = blobs((30, 20, 10))
    free = untrained(kind, bias=1e4, max_iter=6).fit(X)
    model = untrained(kind, bias=1e4, max_iter=6, n_clusters=2).fit(X)
    assert free.n_clusters_ > 2
    assert model.n_clusters_ == len(model.weights_) == 2
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert len(np.unique(model.labels_[X[:, 1] > 2])) == 1  # what lies together goes together
    if kind == "min":
        assert model.means_.shape == (2, 2)
    with pytest.warns(ConvergenceWarning, match=r"n_clusters=20, but the network finds \d+"):
        untrained(kind, max_iter=3, n_clusters=20).fit(X)


def test_reassignment_and_refinement_read_by_densities(trained):
    X, _ = blobs()
    model = trained(reassign=True).fit(X)
    normal = torch.distributions.Normal(*map(torch.from_numpy, (model.means_, model.scales_)))
    log_p = normal.log_prob(torch.from_numpy(X)[:, None]).sum(-1)
    log_p = log_p + torch.from_numpy(model.weights_).log()
    np.testing.assert_array_equal(log_p.argmax(dim=1), model.labels_)
    assert model.score(X) == pytest.approx(log_p.logsumexp(dim=1).mean().item(), rel=1e-4)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    more = [trained(refine="em", n_em=n).fit(X).score(X) for n in (1, 5)]
    assert more[1] >= more[0] - 1e-9


@pytest.mark.parametrize("reassign", [False, True])
def test_a_context_stands_for_all_rows(trained, reassign):
    X, y = blobs((120, 80, 40))
    model = trained(context_size=60, reassign=reassign, min_cluster_size=3).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.8
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    read = np.unique(model.path_indices_)
    assert len(read) == 60
    assert (np.delete(model.raw_labels_, read) == -1).all()
    for number, step in enumerate(model.filtering_path_):
        np.testing.assert_array_equal(model.raw_labels_[step.indices[step.taken]], number)
    again, small = model.fit_many([X, X[::10]])
    np.testing.assert_array_equal(again.labels_, model.labels_)
    assert len(np.unique(small.path_indices_)) == 24  # fewer than the context: all
    with pytest.raises(DataError, match="n_clusters=70 is more than the 60 rows"):
        trained(context_size=60, n_clusters=70).fit(X)


@pytest.mark.parametrize("kind", KINDS)
def test_every_network_reads_a_context(kind):
    X, _ = blobs((40, 30, 20))
    model = untrained(kind, context_size=25).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    again = untrained(kind, context_size=25).fit(X)
    np.testing.assert_array_equal(again.path_indices_, model.path_indices_)
    other = untrained(kind, context_size=25).set_params(random_state=5).fit(X)
    assert not np.array_equal(np.unique(other.path_indices_), np.unique(model.path_indices_))


def test_sizes_are_judged_by_all_rows_and_refined_on_them(trained):
    X, y = blobs((500, 300, 60))
    model = trained(context_size=100, min_cluster_size=20, refine="em").fit(X)
    assert model.n_clusters_ == 3  # the sample has some seven rows of the least
    assert adjusted_rand_score(y, model.labels_) > 0.95
    np.testing.assert_allclose(np.sort(model.weights_), np.sort(np.bincount(y) / len(y)), atol=0.01)


def test_batches_make_no_difference_to_what_is_drawn(trained):
    sets = [blobs((90, 60, 30), seed)[0] for seed in range(3)]

    def read(max_points):
        model = trained(context_size=40, random_state=np.random.RandomState(0))
        return [fitted.path_indices_ for fitted in model.fit_many(sets, max_points=max_points)]

    for one, other in zip(read(50_000), read(180), strict=True):
        np.testing.assert_array_equal(one, other)


def test_rows_outside_the_context_are_told_apart_in_the_picture(trained):
    X, _ = blobs()
    model = trained(context_size=50).fit(X)
    title = plot_filtering(X, model.filtering_path_)[-1].get_title(loc="right")
    assert title.endswith(f"{len(X) - 50} not read")


def test_a_context_as_large_as_the_data_changes_nothing(trained):
    X, _ = blobs()
    whole = trained().fit(X)
    for size in (len(X), 10 * len(X)):
        np.testing.assert_array_equal(
            trained(context_size=size).fit(X).raw_labels_, whole.raw_labels_
        )


def test_what_the_weights_cannot_do_is_refused():
    X, _ = blobs()
    with pytest.raises(DataError, match="refine='em' moves Gaussians"):
        untrained("maf", refine="em").fit(X)
    with pytest.raises(DataError, match="reassign=True needs densities"):
        untrained("no density", reassign=True).fit(X)
    with pytest.raises(DataError, match="n_samples=2 should be >= n_clusters=3"):
        untrained(n_clusters=3).fit(X[:2])


def test_anchors_depend_on_the_seed_alone():
    X, _ = blobs((20, 20, 20))
    sets = [X, X[:25] + 0.1, X[10:50] - 0.1]
    model = untrained("anchored")
    state = torch.get_rng_state()
    first = model.fit(X).raw_labels_
    np.testing.assert_array_equal(model.fit(X).raw_labels_, first)
    for twin, data in zip(model.fit_many(sets), sets, strict=True):
        np.testing.assert_array_equal(twin.raw_labels_, model.fit(data).raw_labels_)
    assert torch.equal(torch.get_rng_state(), state)
    others = [model.set_params(random_state=seed).fit(X).raw_labels_ for seed in range(1, 6)]
    assert any((other != first).any() for other in others)


def test_local_scaling_gives_clusters_the_width_of_training(tmp_path):
    model = untrained().set_params(scaling="local")
    chance = np.random.default_rng(0)
    for columns in (2, 4):
        for n_clusters in (1, 4):
            centers = 40 * chance.normal(size=(n_clusters, columns))
            X = centers.repeat(200 // n_clusters, axis=0) + 5 * chance.normal(size=(200, columns))
            model.fit(X)
            width = 5 * np.linalg.norm(model.projection_, axis=0).mean()
            assert 0.1 < width < 0.4  # in training 0.2
            model.set_params(scaling="global").fit(X)
            wide = 5 * np.linalg.norm(model.projection_, axis=0).mean()
            assert n_clusters > 1 or wide > 1.5
            model.set_params(scaling="local")
    line = np.repeat([-4.0, 4.0], 100) + chance.normal(size=200)
    wide = model.set_params(scaling="global").fit(line[:, None]).projection_[0, 0]
    for flat in (np.zeros(200), 3 * line, 1e-3 * chance.normal(size=200)):  # a line in the plane
        X = np.column_stack([line, flat])
        widths = np.linalg.norm(model.set_params(scaling="auto").fit(X).projection_, axis=1)
        assert widths[0] < 2 * wide
        assert not hasattr(model, "notes_")
        assert "fewer axes" in model.set_params(scaling="local").fit(X).notes_[0]
    outlier = np.concatenate([1e-3 * chance.normal(size=(100, 2)), [[50.0, 50.0]]])
    model.fit(outlier)
    spread = np.sqrt(model._aligned(outlier).var(axis=0).mean())
    assert spread == pytest.approx(model.place_["spreads"][1])  # bounded: no wider than any seen
    model.fit(np.repeat([[0.0, 0.0], [1.0, 1.0]], 10, axis=0))
    assert "most rows are equal" in model.notes_[0]
    assert "fewer axes than in training" in model.fit(outlier[:, :1]).notes_[0]
    twin = DAC.load(model.save(tmp_path / "model"))
    assert twin.place_ == model.place_
    del model.place_["scale"]
    with pytest.raises(DataError, match="do not tell how wide the clusters were"):
        model.fit(outlier)


def test_many_data_sets_are_read_as_if_alone():
    X, _ = blobs((20, 20, 20))
    sets = [X, X[:7], X[10:50]]
    model = untrained()
    for twin, data in zip(model.fit_many(sets), sets, strict=True):
        np.testing.assert_array_equal(twin.labels_, model.fit(data).labels_)


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_model_reads_on(kind, tmp_path):
    X, _ = blobs((20, 10, 10))
    model = untrained(kind).fit(X)
    model.save(tmp_path / "model")
    twin = DAC.load(tmp_path / "model")
    np.testing.assert_array_equal(twin.predict(X), model.labels_)
    np.testing.assert_allclose(twin.score(X), model.score(X))
    assert len(twin.filtering_path_) == model.n_passes_
    np.testing.assert_array_equal(clone(twin).fit(X).labels_, model.labels_)


def test_images_are_clustered_as_rows():
    class Images(Blobs):
        dim = 225

        def sample(self, batch_size, generator):
            batch = super().sample(batch_size, generator)
            spread = torch.linspace(-1, 1, 450).reshape(2, 225)
            return SetBatch((batch.x @ spread).sigmoid(), batch.keep, batch.labels)

    model = DAC(scaling="none", max_iter=4, random_state=0).pretrain(
        Images(),
        plan=TrainingPlan(steps=2),
        batch_size=1,
        **TINY,
        encoder="conv",
        density="vae",
        encoder_options={"widths": [8, 8, 8]},
        density_options={"widths": [8, 8, 8], "latent_dim": 4, "n_transforms": 1, "hidden": 8},
    )
    X = Images().sample(1, torch.Generator().manual_seed(0)).x[0].numpy()
    model.fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert np.isfinite(model.score(X))
    assert not model.has_density  # a bound of one
    np.testing.assert_array_equal(model.set_params(scaling="auto").fit(X).projection_, np.eye(225))
    with pytest.raises(DataError, match="read images as they are"):
        model.set_params(scaling="global").fit(X)


def test_rows_beyond_single_precision():
    X, _ = blobs()
    model = untrained()
    with pytest.raises(DataError, match=r"lies at 1\.0e\+20 in the network's coordinates"):
        model.fit(np.concatenate([X, [[1e20, 0]]]))
    far = np.array([[1e25, 0], [0, -1e90]])
    for reassign in (False, True):
        model.set_params(reassign=reassign).fit(X)
        np.testing.assert_allclose(model.predict_proba(far).sum(axis=1), 1)
        np.testing.assert_array_equal(model.predict_proba(far).argmax(axis=1), model.predict(far))
