"""DeepDPM on features: of an autoencoder that learns with it, and of encoders trained elsewhere."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import adjusted_rand_score
from torch import nn

import asterism
from asterism import AEDeepDPM, AEKMeans, DeepDPM
from asterism.exceptions import AsterismWarning, DataError, WeightsError
from asterism.losses.kmeans import kmeans_loss
from asterism.metrics import stability
from conftest import LIGHT

FEW = {**LIGHT["deepdpm"], "random_state": 0}


def bent(n=400, dim=12):
    """Four clusters in two dimensions, seen through a random network."""
    centers = [[-3, -3], [3, -3], [-3, 3], [3, 3]]
    z, y = make_blobs(n, centers=centers, cluster_std=0.4, random_state=2)
    chance = np.random.default_rng(0)
    return np.tanh(z @ chance.normal(size=(2, dim)) / 4) + 0.02 * chance.normal(size=(n, dim)), y


def small(**parameters):
    settings = {"hidden_dims": (32,), "latent_dim": 2, "max_steps": 200, "alternation_steps": 60}
    return AEDeepDPM(**{**settings, **FEW, **parameters})


# --- loss -------------------------------------------------------------------------------------


def test_kmeans_loss_is_the_mean_squared_distance_to_the_nearest_centre():
    z = torch.randn(50, 3, dtype=torch.float64, requires_grad=True)
    centers = torch.randn(4, 3, dtype=torch.float64)
    apart = (z.unsqueeze(1) - centers).square().sum(dim=-1)
    assert torch.allclose(kmeans_loss(z, centers), apart.min(dim=1).values.mean())
    (gradient,) = torch.autograd.grad(kmeans_loss(z, centers), z)
    assert torch.allclose(gradient, 2 * (z - centers[apart.argmin(dim=1)]) / 50)


# --- end to end -------------------------------------------------------------------------------


def test_clusters_behind_a_bend_are_found():
    X, y = bent()
    model = small(n_alternations=1).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.9
    assert model.transform(X).shape == (400, 2)
    np.testing.assert_array_equal(model.labels_path_[-1], model.labels_)
    assert model.mixture_.means_.shape[1] == 2


def test_rows_of_codes_far_from_all_clusters_score_low():
    X, _ = bent()
    model = small(n_alternations=1).fit(X)
    told = model.score_samples(X)
    assert told.shape == (400,)
    assert told.mean() == pytest.approx(model.score(X))
    np.testing.assert_allclose(told[:3], model.mixture_.score_samples(model.transform(X[:3])))
    assert model.score_samples(-3 * X[:5]).max() < np.quantile(told, 0.05)


def test_no_turns_are_the_two_steps_and_turns_begin_where_they_end():
    X, _ = bent()
    two_step = small(n_alternations=0).fit(X)
    turned = small(n_alternations=2).fit(X)
    np.testing.assert_array_equal(turned.labels_path_[0], two_step.labels_)
    assert turned.labels_path_.shape == (3, 400)
    by_hand = DeepDPM(**FEW).fit(two_step.transform(X))
    assert by_hand.n_clusters_ == two_step.n_clusters_
    assert adjusted_rand_score(by_hand.labels_, two_step.labels_) > 0.95


def test_turns_draw_codes_to_their_centres_and_the_more_the_weightier():
    X, _ = bent()

    def scatter(weight):
        model = small(n_alternations=1, alternation_steps=400, clustering_weight=weight).fit(X)
        codes = model.transform(X)
        within = sum(codes[model.labels_ == k].var(axis=0).sum() for k in set(model.labels_))
        return within / codes.var(axis=0).sum()

    assert scatter(3.0) < 0.5 * scatter(0.0)


def test_history_goes_on_through_the_turns():
    model = small(n_alternations=2).fit(bent()[0])
    steps = [record["step"] for record in model.history_]
    assert steps == sorted(set(steps))
    assert steps[-1] == model.n_iter_
    assert {record["turn"] for record in model.history_} == {0, 1, 2}


def test_saved_model_holds_its_mixture(tmp_path):
    X, _ = bent()
    model = small(n_alternations=1).fit(X)
    model.save(tmp_path / "m")
    twin = AEDeepDPM.load(tmp_path / "m")
    np.testing.assert_array_equal(twin.mixture_.labels_, model.mixture_.labels_)
    np.testing.assert_allclose(twin.predict_proba(X), model.predict_proba(X))
    assert twin.mixture_.split_merge_history_ == model.mixture_.split_merge_history_


def test_a_file_without_the_mixture_is_refused(tmp_path):
    X, _ = bent(60)
    AEKMeans(2, hidden_dims=(8,), max_steps=5, random_state=0).fit(X).save(tmp_path / "m")
    card = (tmp_path / "m.json").read_text()
    (tmp_path / "m.json").write_text(card.replace('"AEKMeans"', '"AEDeepDPM"'))
    with pytest.raises(WeightsError):
        AEDeepDPM.load(tmp_path / "m")


def test_a_card_whose_mixture_was_changed_is_refused(tmp_path):
    X, _ = bent(80)
    small(max_steps=20, n_alternations=0).fit(X).save(tmp_path / "m")
    card = json.loads((tmp_path / "m.json").read_text())
    card["state"]["mixture_"]["state"]["n_clusters_"] = 77
    (tmp_path / "m.json").write_text(json.dumps(card))
    with pytest.raises(WeightsError):
        AEDeepDPM.load(tmp_path / "m").predict(X)


def test_mixture_follows_the_device_of_the_model(tmp_path):
    X, _ = bent(80)
    model = small(max_steps=20, n_alternations=0).fit(X)
    model.mixture_.device = "cuda:7"  # as if fitted elsewhere
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_what_the_mixture_refuses_is_refused_before_training():
    with pytest.raises(DataError, match="init_n_clusters=90"):
        AEDeepDPM(90).fit(bent(80)[0])  # a network of full size: this would take minutes


@pytest.mark.parametrize(
    "X",
    [np.zeros((20, 3)), np.repeat(np.eye(3), 8, axis=0), np.c_[np.arange(30.0), np.ones(30)]],
    ids=["all alike", "three places", "constant column"],
)
def test_degenerate_rows(X):
    model = small(max_steps=30, n_alternations=1, alternation_steps=10).fit(X)
    assert model.n_clusters_ >= 1
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1, rtol=1e-5)


# --- encoders ---------------------------------------------------------------------------------


def projection(X, network):
    """PCA of X as a network, and as a transformer."""
    pca = PCA(2).fit(X)
    layer = nn.Linear(X.shape[1], 2)
    layer.weight.data = torch.as_tensor(pca.components_, dtype=torch.float32)
    layer.bias.data = torch.as_tensor(-pca.components_ @ pca.mean_, dtype=torch.float32)
    return layer if network else pca


def wide():
    z, y = make_blobs(300, centers=3, cluster_std=0.4, random_state=5)
    return np.c_[z, 0.01 * np.random.default_rng(0).normal(size=(300, 6))], y


def test_every_kind_of_encoder_gives_the_same_clusters():
    X, _ = wide()
    pca = projection(X, network=False)
    expected = DeepDPM(**FEW).fit(pca.transform(X))
    encoders = {
        "transformer": pca,
        "frozen": FrozenEstimator(pca),
        "network": projection(X, network=True),
        "no estimator": SimpleNamespace(transform=pca.transform),
        "tensors": lambda rows: torch.from_numpy(pca.transform(rows)).requires_grad_(),
        "function": lambda rows: rows @ pca.components_.T - pca.components_ @ pca.mean_,
    }
    for kind, encoder in encoders.items():
        model = DeepDPM(encoder=encoder, **FEW).fit(X)
        assert adjusted_rand_score(expected.labels_, model.labels_) > 0.99, kind
        np.testing.assert_array_equal(model.predict(X), model.labels_)
        assert model.means_.shape[1] == 2
        assert not model.has_density  # of the rows
        assert model.score(X) == pytest.approx(expected.score(pca.transform(X)), abs=0.05)


def test_embedding_of_another_estimator():
    X, y = bent()
    encoder = AEKMeans(4, hidden_dims=(32,), latent_dim=2, max_steps=200, random_state=0).fit(X)
    assert adjusted_rand_score(y, DeepDPM(encoder=encoder, **FEW).fit(X).labels_) > 0.9


def test_network_is_left_as_it_was():
    X, _ = wide()
    network = nn.Sequential(projection(X, network=True), nn.Dropout(0.5), nn.BatchNorm1d(2)).train()
    network[2].eval()  # frozen by the user
    model = DeepDPM(encoder=network, **FEW).fit(X)
    assert [part.training for part in network.modules()] == [True, True, True, False]
    np.testing.assert_array_equal(model.predict(X), model.labels_)  # no dropout in between


def test_unfitted_encoder_is_refused_and_a_fitted_one_survives_cloning():
    X, _ = wide()
    with pytest.raises(DataError, match="not fitted: fit it first"):
        DeepDPM(encoder=PCA(2)).fit(X)
    with pytest.raises(DataError, match="the class PCA"):
        DeepDPM(encoder=PCA).fit(X)
    model = DeepDPM(encoder=PCA(2).fit(X), **FEW)
    twin = clone(model)
    assert twin.encoder is model.encoder
    assert twin.get_params() == model.get_params()
    assert stability(model, X, n_fits=2).agreement > 0.9


def test_failures_inside_an_encoder_are_told_to_be_its_own():
    X, _ = wide()
    with pytest.raises(DataError, match=r"the encoder failed on rows of shape \(300, 8\)"):
        DeepDPM(encoder=nn.Linear(3, 2)).fit(X)
    single, double = projection(X, network=True), projection(X, network=True).double()
    one, other = (DeepDPM(encoder=net, **FEW).fit(X).labels_ for net in (single, double))
    assert adjusted_rand_score(one, other) > 0.99
    half = DeepDPM(encoder=projection(X, network=True).bfloat16(), **FEW).fit(X)
    assert adjusted_rand_score(one, half.labels_) > 0.9


def test_loading_without_the_encoder_warns_and_overrides_are_checked(tmp_path):
    X, _ = wide()
    with pytest.warns(AsterismWarning):
        DeepDPM(encoder=PCA(2).fit(X), **FEW).fit(X).save(tmp_path / "m")
    for load in (DeepDPM.load, asterism.load):
        with pytest.warns(AsterismWarning, match="encoder"):
            load(tmp_path / "m")
    with pytest.raises(ValueError, match="encoder"):
        DeepDPM.load(tmp_path / "m", encoder="pca")


@pytest.mark.parametrize(
    ("encoder", "told"),
    [
        (lambda rows: rows[:, 0], r"shape \(300,\) for 300 rows"),
        (lambda rows: rows[:5], r"shape \(5, 8\) for 300 rows"),
        (lambda rows: rows[:, :0], r"shape \(300, 0\) for 300 rows"),
        (lambda rows: (rows, rows), "gave a tuple"),
        (lambda rows: rows.astype(str), "must be real numbers"),
        (lambda rows: rows + 1j, "must be real numbers"),
        (lambda rows: rows / 0, "size inf|size nan"),
        (lambda rows: rows * 1e200, r"size \d.*e\+200"),
    ],
    ids=[
        "a vector",
        "too few rows",
        "no features",
        "two answers",
        "text",
        "complex",
        "infinite",
        "huge",
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_encoder_that_gives_no_features_is_refused(encoder, told):
    with pytest.raises(DataError, match=told):
        DeepDPM(encoder=encoder, **FEW).fit(wide()[0])


def test_encoder_is_kept_by_the_user_and_asked_for(tmp_path):
    X, _ = wide()
    pca = projection(X, network=False)
    model = DeepDPM(encoder=pca, **FEW).fit(X)
    with pytest.warns(AsterismWarning, match="encoder is not saved"):
        model.save(tmp_path / "m")
    with pytest.warns(AsterismWarning, match="encoder"):
        alone = DeepDPM.load(tmp_path / "m")
    with pytest.raises(DataError, match=r"load\(path, encoder=...\)"):
        alone.predict(X)
    twin = DeepDPM.load(tmp_path / "m", encoder=pca)
    np.testing.assert_array_equal(twin.predict(X), model.labels_)
    with pytest.raises(DataError, match="gives 3 features, the model was fitted to 2"):
        DeepDPM.load(tmp_path / "m", encoder=PCA(3).fit(X)).predict(X)
