"""Estimators of the clusterwise processes: CCP and ACP."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from asterism import ACP, CCP
from asterism.priors import RestaurantMixturePrior
from asterism.training import TrainingPlan

METHODS = pytest.mark.parametrize("method", [CCP, ACP])


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """Weights of small networks after a moment of training, by class."""
    directory = tmp_path_factory.mktemp("weights")
    prior = RestaurantMixturePrior(n_points=(20, 25), max_clusters=4)
    plan = TrainingPlan(steps=60, lr=5e-3, clip=20.0, log_every=20)
    found = {}
    for cls in (CCP, ACP):
        model = cls(random_state=0).pretrain(
            prior, plan=plan, batch_size=8, width=16, latent_dim=4, n_inducing=4, n_draws=2
        )
        losses = [record["loss"] for record in model.history_]
        assert losses[-1] < 0.9 * losses[0]
        found[cls] = str(model.save(directory / cls.__name__))
    return found


def quick(method, weights, **parameters):
    options = {"n_threads": 10, "n_samples": 10, "n_draws": 2, "scaling": "local"}
    options |= {"random_state": 0}
    return method(weights=weights[method], **(options | parameters))


def blobs(n=60, seed=0):
    return make_blobs(n, 2, centers=3, cluster_std=0.5, random_state=seed)


@METHODS
def test_rows_are_judged_one_by_one(method, weights):
    X, _ = blobs()
    model = quick(method, weights).fit(X)
    assert model.n_clusters_ > 1
    new, _ = blobs(15, seed=1)
    whole = model.predict_proba(new)
    alone = np.concatenate([model.predict_proba(row[None]) for row in new])
    np.testing.assert_allclose(alone, whole, atol=1e-10)
    np.testing.assert_allclose(whole.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    # The partition found, and what single rows make of it, hardly differ.
    assert adjusted_rand_score(model.context_labels_, model.labels_) > 0.5


@METHODS
def test_same_seed_same_answer_alone_or_among_many(method, weights):
    X, _ = blobs()
    first, second = (quick(method, weights).fit(X) for _ in range(2))
    np.testing.assert_array_equal(first.labels_, second.labels_)
    np.testing.assert_array_equal(first.partitions_, second.partitions_)
    many = quick(method, weights).fit_many([blobs(40, seed=3)[0], X])
    np.testing.assert_array_equal(many[1].labels_, first.labels_)
    labels, log_probability = first.samples(7)
    assert labels.shape == (7, 60)
    assert log_probability.shape == (7,)
    assert (log_probability < 0).all()
    np.testing.assert_array_equal(first.samples(7)[0], labels)


@METHODS
def test_a_large_table_is_read_through_some_of_its_rows(method, weights, tmp_path):
    X, _ = blobs(300)
    model = quick(method, weights, max_points=40, draw="sample").fit(X)
    assert len(model.context_indices_) == len(model.context_labels_) == 40
    assert model.labels_.shape == model.nearest_.shape == (300,)
    assert model.partitions_.shape == (10, 300)
    np.testing.assert_array_equal(model.nearest_[model.context_indices_], np.arange(40))
    model.save(tmp_path / "model")
    twin = method.load(tmp_path / "model")
    np.testing.assert_array_equal(twin.predict(X), model.labels_)
    np.testing.assert_array_equal(twin.samples(3)[0], model.samples(3)[0])


def test_the_most_probable_partition_is_kept(weights, monkeypatch):
    X, _ = blobs()
    seen = []
    original = CCP._estimate

    def watched(self, codes, labels, chance):
        found = original(self, codes, labels, chance)
        seen.append((labels, found))
        return found

    monkeypatch.setattr(CCP, "_estimate", watched)
    model = quick(CCP, weights, draw="sample").fit(X)
    labels, log_q = seen[0]
    assert len(labels) > 1
    assert model.log_probability_ == float(log_q.max())
    assert adjusted_rand_score(labels[log_q.argmax()], model.context_labels_) == 1


@pytest.mark.parametrize(
    "parameters", [{"draw": "mode"}, {"n_threads": 0}, {"n_draws": 0}, {"max_points": 1}]
)
def test_bad_parameters_are_refused(weights, parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        quick(CCP, weights, **parameters).fit(blobs()[0])
