"""What a script has told torch is neither obeyed nor lost."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning

import asterism
from asterism import AEKMeans, DeepDPM, DPMeans, MoVB
from asterism.methods.registry import get_method
from asterism.training.surroundings import as_called, undisturbed
from conftest import LIGHT, light

FEW = {**LIGHT["deepdpm"], "random_state": 0}


@contextmanager
def double():
    torch.set_default_dtype(torch.float64)
    try:
        yield
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


SETTINGS = {
    "double": double,
    "no_grad": torch.no_grad,
    "inference": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "device": lambda: torch.device("meta"),
}


def blobs():
    X, _ = make_blobs([80, 20, 40], centers=[[0, 0], [6, 0], [0, 6]], cluster_std=0.3)
    return X


def model_of(name):
    given = {"n_clusters": 3} if get_method(name).takes_k else {}
    return light(name, random_state=0, **given)


def answers(model, X):
    """What every method that computes says of rows."""
    names = ("predict", "predict_proba", "transform", "score_samples", "score")
    return [getattr(model, name)(X) for name in names if hasattr(model, name)]


def test_all_methods_answer_in_double_precision_and_without_gradients(method_name, tmp_path):
    X = blobs()
    plain = model_of(method_name).fit(X)
    expected = answers(plain, X)
    with double(), torch.no_grad():
        model = model_of(method_name).fit(X)
        np.testing.assert_array_equal(model.labels_, plain.labels_)
        model.save(tmp_path / "model")
        again = asterism.load(tmp_path / "model")
        for found in (answers(model, X), answers(again, X)):
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other)
        assert not torch.is_grad_enabled()


@pytest.mark.parametrize("name", ["asterism", "deepdpm", "ae-kmeans", "dac"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_networks_answer_as_ever(name, setting):
    X = blobs()
    plain = model_of(name).fit(X)
    expected = answers(plain, X)
    with SETTINGS[setting]():
        found = answers(model_of(name).fit(X), X)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_encoder_finds_what_the_script_has_set():
    X = blobs()
    net = torch.nn.Linear(2, 2).double()

    def encoder(rows):
        return net(torch.tensor(rows.tolist())).numpy()  # of default precision, without gradients

    with double(), torch.no_grad():
        model = DeepDPM(encoder=encoder, **FEW).fit(X)
        labels, told = model.predict(X), model.score_samples(X)
    np.testing.assert_array_equal(labels, model.labels_)
    assert np.isfinite(told).all()


def test_an_encoder_may_be_a_method_of_ours():
    X = blobs()
    with double():
        inner = AEKMeans(3, hidden_dims=(8,), max_steps=20, random_state=0).fit(X)
        model = DeepDPM(encoder=inner, **FEW).fit(X)
        assert model.predict(X).shape == (140,)


def test_threads_that_end_at_different_times_do_not_disturb_each_other():
    X = blobs()

    def fit(steps):
        return AEKMeans(3, hidden_dims=(8,), max_steps=steps, tol=0, random_state=0).fit(X).labels_

    steps = [10, 120, 40, 80, 20, 160]
    expected = [fit(n) for n in steps]
    with double(), ThreadPoolExecutor(3) as pool:
        for one, other in zip(pool.map(fit, steps), expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_settings_come_back_after_an_error_and_inside_of_one_another():
    seen = []

    @undisturbed
    def outer():
        seen.append((torch.get_default_dtype(), torch.is_grad_enabled()))
        with as_called():
            seen.append((torch.get_default_dtype(), torch.is_grad_enabled()))
        seen.append((torch.get_default_dtype(), torch.is_grad_enabled()))
        raise KeyError

    with double(), torch.no_grad():
        with pytest.raises(KeyError):
            outer()
        assert not torch.is_grad_enabled()
    ours, theirs = (torch.float32, True), (torch.float64, False)
    assert seen == [ours, theirs, ours]
    with as_called():  # of nobody: nothing happens
        assert torch.is_grad_enabled()


@pytest.mark.parametrize(
    "model",
    [
        DeepDPM(max_rounds=1, epoch_steps=1, init_n_clusters=1, random_state=0),
        MoVB(max_laps=1, random_state=0),
        DPMeans(max_iter=1, penalty=0.01),
    ],
    ids=lambda model: type(model).__name__,
)
def test_warnings_name_the_line_that_called(model):
    X = np.random.default_rng(0).normal(size=(300, 2))
    with pytest.warns(ConvergenceWarning) as told:
        model.fit(X)
    assert {w.filename for w in told if w.category is ConvergenceWarning} == {__file__}
