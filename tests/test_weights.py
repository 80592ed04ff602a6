"""Weights on disk: whole, checked, and never code."""

import functools
import http.server
import json
import pickle
import threading
import warnings

import numpy as np
import pytest
from safetensors.numpy import save

import asterism
from asterism import NCP, AutoKMeans, SetTransformerMixture
from asterism.exceptions import AsterismWarning, OutputError, WeightsError
from asterism.io import (
    RemoteWeights,
    find_weights,
    pretrained_names,
    read_card,
    read_weights,
    register_weights,
    write_weights,
)
from asterism.io.weights import sha256_of, weight_paths

CARD = {"method": "AutoKMeans", "parameters": {}, "version": "0"}


@pytest.fixture
def model(tmp_path):
    """Stem of a saved model."""
    X = np.random.default_rng(0).normal(size=(30, 2))
    AutoKMeans(2, random_state=0).fit(X).save(tmp_path / "model", command="made by a test")
    return tmp_path / "model"


def test_round_trip_is_exact(tmp_path):
    tensors = {"a": np.arange(6.0).reshape(2, 3), "b": np.array(True), "c": np.zeros((0, 4), "f4")}
    path = write_weights(tmp_path / "new" / "w", tensors, CARD | {"note": "ä"})
    found, card = read_weights(path)
    assert set(found) == set(tensors)
    for name, array in tensors.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
    assert card["note"] == "ä"
    assert card["sha256"] == sha256_of(path.read_bytes())
    assert {p.name for p in path.parent.iterdir()} == {"w.safetensors", "w.json"}


def test_the_card_says_what_made_the_weights(model):
    card = read_card(model)
    assert card["method"] == "AutoKMeans"
    assert card["parameters"]["n_clusters"] == 2
    assert card["seed"] == 0
    assert card["command"] == "made by a test"
    assert card["version"] == asterism.__version__


@pytest.mark.parametrize("ending", ["", ".safetensors", ".json"])
def test_either_file_or_the_stem_may_be_named(model, ending):
    assert asterism.load(f"{model}{ending}").n_clusters_ == 2


def test_a_dotted_name_is_kept_whole(tmp_path):
    tensors, card = weight_paths(tmp_path / "v1.2")
    assert (tensors.name, card.name) == ("v1.2.safetensors", "v1.2.json")


def flip(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def recard(path, **changes):
    card = json.loads(path.read_text())
    path.write_text(json.dumps({k: v for k, v in (card | changes).items() if v is not ...}))


def foreign(path, content):
    """Bytes that match their card, so that only the format can be at fault."""
    path.write_bytes(content)
    recard(path.with_suffix(".json"), sha256=sha256_of(content))


DAMAGE = {
    "one bit": (lambda t, c: flip(t), "damaged or is not the file"),
    "truncated": (lambda t, c: t.write_bytes(t.read_bytes()[:-9]), "damaged or is not the file"),
    "no tensors": (lambda t, c: t.unlink(), "no tensor file at"),
    "no card": (lambda t, c: c.unlink(), "no weights card at .* is there without it"),
    "neither": (lambda t, c: (t.unlink(), c.unlink()), "no weights card at"),
    "card not JSON": (lambda t, c: c.write_text("{"), "not valid JSON"),
    "card not UTF-8": (lambda t, c: c.write_bytes(b"\xff\xfe\xff"), "not valid JSON"),
    "card a list": (lambda t, c: c.write_text("[]"), "not the card of asterism weights"),
    "card of others": (lambda t, c: c.write_text('{"a": 1}'), "not the card of asterism weights"),
    "newer": (lambda t, c: recard(c, format=99), "format 99, newer than .*--upgrade asterism"),
    "card incomplete": (lambda t, c: recard(c, parameters=...), "lacks 'parameters'"),
    "unknown method": (lambda t, c: recard(c, method="Alien"), "'Alien', which this version does"),
    "unknown parameter": (lambda t, c: recard(c, parameters={"no": 1}), "parameters do not fit"),
    "not safetensors": (lambda t, c: foreign(t, b"PK nonsense"), "not a safetensors file"),
    "empty": (lambda t, c: foreign(t, b""), "not a safetensors file"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_refused_with_one_clear_error(model, kind):
    spoil, message = DAMAGE[kind]
    spoil(*weight_paths(model))
    with pytest.raises(WeightsError, match=message):
        asterism.load(model)


def test_a_pickle_is_not_run(model, tmp_path):
    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "ran"), "w"))

    foreign(weight_paths(model)[0], pickle.dumps(Bomb()))
    with pytest.raises(WeightsError, match="not a safetensors file"):
        asterism.load(model)
    assert not (tmp_path / "ran").exists()


def test_tensors_that_do_not_fit_the_network_are_refused(tmp_path):
    good = SetTransformerMixture.from_pretrained("set-transformer-mog")
    path = good.save(tmp_path / "bad")
    arrays, _ = read_weights(path)
    arrays.pop("module_/head.bias")
    foreign(path, save(arrays))
    with pytest.raises(WeightsError, match=r"do not fit SetTransformer: .*head\.bias"):
        SetTransformerMixture(weights=path).fit([[0.0, 1], [1, 0], [2, 2], [3, 1], [5, 5]])


def test_numbers_that_are_not_finite_are_refused(tmp_path):
    path = SetTransformerMixture.from_pretrained("set-transformer-mog").save(tmp_path / "bad")
    arrays, _ = read_weights(path)
    arrays["module_/head.bias"] = np.full_like(arrays["module_/head.bias"], np.nan)
    foreign(path, save(arrays))
    with pytest.raises(WeightsError, match=r"head\.bias holds numbers that are not finite"):
        SetTransformerMixture.from_pretrained(path)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"spread_": 0.0}, "spread_=0.0 is not a number above zero"),
        ({"spread_": "wide"}, "spread_='wide' is not a number"),
        ({"place_": {"scale": 1.0}}, "spreads=None are not two numbers"),
        ({"place_": {"scale": -1.0, "spreads": [1, 2]}}, "scale=-1.0 is not"),
        ({"place_": {"scale": 1.0, "spreads": [1, None]}}, "highest spread=None is not"),
        ({"place_": {"center": "left"}}, "tells no place"),
        ({"architecture_": {}}, "tells no dimension"),
    ],
)
def test_a_damaged_place_of_training_is_refused(tmp_path, change, told):
    path = NCP.from_pretrained("ncp-mog").save(tmp_path / "bad")
    arrays, card = read_weights(path)
    card["state"] |= change
    own = {key: value for key, value in card.items() if key not in ("format", "sha256")}
    write_weights(path, arrays, own)
    with pytest.raises(WeightsError, match=told):
        NCP.from_pretrained(path).fit([[0.0, 1], [1, 0], [2, 2]])


def test_weights_of_another_method_are_refused(model):
    with pytest.raises(WeightsError, match="trained for AutoKMeans, not SetTransformerMixture"):
        SetTransformerMixture.from_pretrained(f"{model}.safetensors")
    with pytest.raises(WeightsError, match="holds 'AutoKMeans', not SetTransformerMixture"):
        SetTransformerMixture.load(model)


def test_a_generator_as_seed_is_saved_as_none_with_a_warning(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 2))
    fitted = AutoKMeans(2, random_state=np.random.RandomState(0)).fit(X)
    with pytest.warns(AsterismWarning, match="saved as None"):
        fitted.save(tmp_path / "model")
    assert asterism.load(tmp_path / "model").random_state is None


def test_what_json_lacks_comes_back_as_it_was(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 2))
    AutoKMeans(max_clusters=3, random_state=0).fit(X).save(tmp_path / "kmeans")
    assert sorted(asterism.load(tmp_path / "kmeans").silhouettes_) == [2, 3]

    network = SetTransformerMixture.from_pretrained("set-transformer-mog").save(tmp_path / "net")
    fitted = SetTransformerMixture(weights=network).fit(X)
    path = fitted.save(tmp_path / "fitted")
    assert SetTransformerMixture.load(tmp_path / "fitted").weights == str(path)


def test_a_card_sets_fitted_attributes_only(model):
    recard(weight_paths(model)[1], state={"predict": 1})
    with pytest.raises(WeightsError, match="'predict', which is no fitted attribute"):
        asterism.load(model)


def test_parameters_may_be_changed_on_the_way_in(model):
    assert asterism.load(model, random_state=5).random_state == 5
    assert AutoKMeans.load(model, n_init=3).n_init == 3


def test_home_is_understood(model, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    asterism.load("~/model").save("~/deep/copy")
    assert (tmp_path / "deep" / "copy.safetensors").exists()
    assert asterism.load("~/deep/copy").n_clusters_ == 2


def test_saving_into_a_file_as_folder_says_so(model, tmp_path):
    (tmp_path / "full.safetensors").mkdir()
    with pytest.raises(OutputError, match="is a directory"):
        asterism.load(model).save(tmp_path / "full")


# --- names ----------------------------------------------------------------------------------------


def test_shipped_weights_are_found_by_name():
    assert "set-transformer-mog" in pretrained_names()
    card = read_card(find_weights("set-transformer-mog"))
    assert card["method"] == "SetTransformerMixture"


@pytest.mark.parametrize("name", pretrained_names())
def test_shipped_weights_say_how_they_were_trained(name):
    card = read_card(find_weights(name))
    assert card["command"]
    assert isinstance(card["seed"], int)
    training = card["training"]
    assert training["date"]
    assert isinstance(training.get("before", []), list)
    for stage in [training, *training.get("before", [])]:  # as the page of weights adds them up
        assert stage["curve"]
        assert min(stage["steps"], stage["cpu_seconds"], stage["wall_seconds"]) > 0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no-such", "no weights are named 'no-such'; known: .*mog"),
        ("./no.safetensors", "no weights file"),
    ],
)
def test_unknown_weights_are_named(name, message):
    with pytest.raises(WeightsError, match=message):
        find_weights(name)


@pytest.fixture
def server(tmp_path):
    """Address of a web server over ``tmp_path``."""
    handler = functools.partial(QuietHandler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{httpd.server_port}"
        httpd.shutdown()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


def test_remote_weights_are_fetched_once_and_checked(model, server, tmp_path, monkeypatch):
    monkeypatch.setenv("ASTERISM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("asterism.io.pretrained._REMOTE", {})
    tensors, card = weight_paths(model)
    digests = [sha256_of(path.read_bytes()) for path in (tensors, card)]
    register_weights("remote", RemoteWeights(f"{server}/model.safetensors", *digests))
    assert "remote" in pretrained_names()
    found = find_weights("remote")
    assert found.parent == tmp_path / "cache" / "weights"
    assert asterism.load(found).n_clusters_ == 2
    tensors.unlink()
    assert find_weights("remote") == found
    register_weights("forged", RemoteWeights(f"{server}/model.json", "0" * 64, "0" * 64))
    with warnings.catch_warnings(), pytest.raises(WeightsError, match="could not be fetched"):
        find_weights("forged")
