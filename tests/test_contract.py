"""What every registered estimator promises."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._testing import SkipTest
from sklearn.utils.estimator_checks import estimator_checks_generator

import asterism
from asterism.methods.registry import get_method, methods
from conftest import light


def blobs(n=120, centers=3, seed=0, dim=2):
    return make_blobs(n, dim, centers=centers, cluster_std=0.3, random_state=seed)


def sized(name, n_clusters=3, **parameters):
    """Quick estimator with the number of clusters given where it may be."""
    if get_method(name).takes_k:
        parameters["n_clusters"] = n_clusters
    return light(name, random_state=0, **parameters)


def all_checks():
    for method in methods():
        for estimator, check in estimator_checks_generator(light(method.name)):
            name = getattr(check, "func", check).__name__
            yield pytest.param(estimator, check, id=f"{method.name}-{name}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "check"), list(all_checks()))
def test_scikit_learn_estimator_check(estimator, check):
    try:
        check(estimator)
    except SkipTest as skipped:
        pytest.fail(f"skipped: {skipped}")


def test_registry_tells_the_truth(method_name):
    method = get_method(method_name)
    cls = method.load()
    parameters = cls().get_params()
    assert cls.soft == method.soft
    assert ("n_clusters" in parameters) == method.takes_k
    assert hasattr(cls, "_sample_partitions") == method.posterior
    assert hasattr(cls(), "predict_proba") == method.soft
    if method.needs_k:
        assert isinstance(parameters["n_clusters"], int)
    assert getattr(asterism, method.class_name) is cls


def apart():
    """Three clusters beyond doubt, of different size."""
    centers = [[0, 0], [6, 0], [0, 6]]
    return make_blobs([80, 20, 40], centers=centers, cluster_std=0.3, random_state=1)


def test_easy_clusters_are_found_and_numbered_by_decreasing_size(method_name):
    X, y = apart()
    labels = sized(method_name).fit_predict(X)
    assert labels.dtype == np.int64
    assert adjusted_rand_score(y, labels) > 0.95
    sizes = np.bincount(labels)
    assert sizes.min() > 0
    assert sorted(sizes, reverse=True) == sizes.tolist()


def test_same_seed_same_labels_and_global_generators_untouched(method_name):
    X, _ = blobs()
    np.random.seed(5)  # noqa: NPY002
    torch.manual_seed(5)
    numpy_state, torch_state = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    first, second = (sized(method_name).fit(X) for _ in range(2))
    np.testing.assert_array_equal(first.labels_, second.labels_)
    sized(method_name).set_params(random_state=None).fit(X)
    assert (np.random.get_state()[1] == numpy_state).all()  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), torch_state)


def test_prediction_is_per_point(method_name):
    X, _ = blobs()
    model = sized(method_name).fit(X)
    new, _ = blobs(seed=1)
    whole = model.predict(new)
    order = np.random.default_rng(0).permutation(len(new))
    np.testing.assert_array_equal(model.predict(new[order]), whole[order])
    alone = np.concatenate([model.predict(row[None]) for row in new])
    np.testing.assert_array_equal(alone, whole)
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_probabilities(method_name):
    X, _ = blobs()
    model = sized(method_name).fit(X)
    if not model.soft:
        with pytest.raises(AttributeError, match="predict_proba"):
            model.predict_proba(X)
        return
    probability = model.predict_proba(X)
    assert probability.shape == (len(X), model.n_clusters_)
    np.testing.assert_allclose(probability.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(probability.argmax(axis=1), model.labels_)


def test_any_kind_of_table_gives_the_same_labels(method_name):
    X, _ = blobs(60)
    X = X.astype(np.float32)
    expected = sized(method_name).fit_predict(X)
    columns = ["a", "b"]
    tables = {
        "pandas": pd.DataFrame(X, columns=columns),
        "polars": pl.DataFrame(X, schema=columns),
        "torch": torch.from_numpy(X).requires_grad_(),
        "list": X.tolist(),
        "fortran": np.asfortranarray(X),
    }
    for kind, table in tables.items():
        model = sized(method_name).fit(table)
        assert adjusted_rand_score(expected, model.labels_) > 0.99, kind
        assert type(model.predict(table)) is np.ndarray
        if kind in ("pandas", "polars"):
            assert model.feature_names_in_.tolist() == columns


def test_save_load_pickle_and_clone(method_name, tmp_path):
    frame = pd.DataFrame(blobs()[0], columns=["a", "b"])
    model = sized(method_name).fit(frame)
    model.save(tmp_path / "model", command="a test")
    for twin in (
        type(model).load(tmp_path / "model.safetensors"),
        asterism.load(tmp_path / "model"),
        pickle.loads(pickle.dumps(model)),
    ):
        np.testing.assert_array_equal(twin.labels_, model.labels_)
        np.testing.assert_array_equal(twin.predict(frame), model.predict(frame))
        assert twin.feature_names_in_.tolist() == ["a", "b"]
        assert twin.score(frame) == pytest.approx(model.score(frame))
        # A network read from a file is found there again by a clone.
        changed = {"weights"} if twin.get_params().get("weights") != "default" else set()
        kept = {k: v for k, v in model.get_params().items() if k not in changed}
        assert kept.items() <= twin.get_params().items()
        np.testing.assert_array_equal(clone(twin).fit(frame).labels_, model.labels_)
    assert not hasattr(clone(model), "labels_")


def test_a_pickle_holds_its_module_on_the_cpu(monkeypatch):
    model = sized("set-transformer").fit(blobs()[0])
    assert model.__getstate__()["module_"] is model.module_
    monkeypatch.setattr("asterism.base.contract._device_of", lambda module: "cuda")
    state = model.__getstate__()
    assert state["module_"] is not model.module_
    assert {p.device.type for p in state["module_"].parameters()} == {"cpu"}


def test_partitions_are_sampled_only_where_there_is_a_posterior():
    class WithPosterior(asterism.SetTransformerMixture):
        def _sample_partitions(self, n_samples, seed):
            chance = np.random.default_rng(seed)
            return chance.integers(2, size=(n_samples, len(self.labels_))), np.zeros(n_samples)

    assert not hasattr(asterism.SetTransformerMixture(), "samples")
    with pytest.raises(NotFittedError):
        WithPosterior().samples()
    model = WithPosterior(random_state=0).fit(blobs()[0])
    labels, log_probability = model.samples(5)
    assert labels.shape == (5, 120)
    assert log_probability.shape == (5,)
    np.testing.assert_array_equal(model.samples(5)[0], labels)


def test_works_in_a_pipeline(method_name):
    X, y = apart()
    labels = make_pipeline(StandardScaler(), sized(method_name)).fit_predict(X * [1, 1000])
    assert adjusted_rand_score(y, labels) > 0.95


@pytest.mark.parametrize(
    "X",
    [
        pytest.param(np.zeros((30, 3)), id="identical rows"),
        pytest.param(np.c_[blobs(40)[0], np.full(40, 7.0)], id="constant column"),
        pytest.param(np.repeat(blobs(10)[0], 5, axis=0), id="duplicated rows"),
        pytest.param(blobs(30, dim=1)[0], id="one column"),
        pytest.param(blobs(30, dim=25)[0], id="more columns"),
        pytest.param(blobs(30)[0] * 1e12 + 1e12, id="large numbers"),
        pytest.param(np.array([[0.0, 1.0], [5.0, 2.0]]), id="two rows"),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_odd_but_legal_tables_are_clustered(method_name, X):
    model = sized(method_name, n_clusters=2).fit(X)
    assert model.labels_.shape == (len(X),)
    assert set(model.labels_) <= {-1, *range(model.n_clusters_)}
    assert np.isfinite(model.score(X))


def test_score_is_a_number_and_higher_for_data_that_fit(method_name):
    X, _ = blobs()
    model = sized(method_name).fit(X)
    noise = np.random.default_rng(0).uniform(X.min(), X.max(), X.shape)
    assert model.score(X) > model.score(noise)
