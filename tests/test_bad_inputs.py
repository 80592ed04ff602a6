"""Every bad input gets one clear error, before any work is done; odd but legal ones get none."""

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.exceptions import NotFittedError

import asterism
from asterism import HDBSCAN, AEKMeans, AutoKMeans, SetTransformerMixture, cluster_table
from asterism._validation import LayerSizes
from asterism.base import Clusterer
from asterism.cli.app import _run
from asterism.exceptions import AsterismError, DataError, OutputError, WeightsError
from asterism.methods.registry import get_method, methods
from asterism.pipeline import TableModel
from bad_inputs import COMMANDS, LEGAL, PARAMETERS, ROWS, TWO
from conftest import light

FRAME = pd.DataFrame(TWO[:, :2], columns=["height", "weight"]).assign(kind=["a", "b", "a"] * 10)


COUNTING = [method.name for method in methods() if method.takes_k]
"""Methods that may be given the number of clusters."""


def quick(name, **parameters):
    """Estimator that fits in milliseconds."""
    few = {"max_steps": 5, "hidden_dims": (8,), "n_init": 1, "n_clusters": 2}
    return light(name, **{**(few if name == "ae-kmeans" else {}), **parameters})


# --- estimators -----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ROWS)
def test_rows_no_method_clusters(method_name, case):
    X, error, words = ROWS[case]
    model = quick(method_name)
    with pytest.raises(error, match=words) as caught:
        model.fit(X)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, AsterismError) == (error is DataError)
    assert not hasattr(model, "labels_")


@pytest.mark.parametrize(("name", "parameters", "words"), PARAMETERS)
def test_parameters_out_of_range(name, parameters, words):
    model = quick(name, **parameters)
    with pytest.raises((ValueError, AsterismError), match=words) as caught:
        model.fit(TWO)
    assert "\n" not in str(caught.value)
    assert not hasattr(model, "labels_")


@pytest.mark.filterwarnings("ignore:Initializing zero-element", "ignore:Number of distinct")
@pytest.mark.parametrize("sizes", [(0,), (-3,), ("a",), (2.5,), ([3],), (True,)])
def test_sizes_of_layers_out_of_range(sizes):
    with pytest.raises(ValueError, match=r"'hidden_dims' .*positive integers. Got"):
        quick("ae-kmeans", hidden_dims=sizes).fit(TWO)


def test_the_constraint_on_sizes_of_layers():
    assert all(map(LayerSizes().is_satisfied_by, [(), (3,), [8, 4], np.array([2, 2])]))
    wrong = [(0,), (-3,), ("a",), (2.5,), ([3],), (True,), 8, "ab", None]
    assert not any(map(LayerSizes().is_satisfied_by, wrong))
    assert str(LayerSizes()) == "a sequence of positive integers"


def test_no_hidden_layer_is_legal():
    assert quick("ae-kmeans", hidden_dims=()).fit(TWO).n_clusters_ == 2


@pytest.mark.parametrize("name", COUNTING)
@pytest.mark.parametrize("count", [0, -1, 2.5, "many", True, float("nan"), "2"])
def test_numbers_of_clusters_out_of_range(name, count):
    with pytest.raises(ValueError, match=rf"'n_clusters' .*Got {re.escape(repr(count))} instead"):
        quick(name, n_clusters=count).fit(TWO)


@pytest.mark.parametrize("name", COUNTING)
def test_more_clusters_than_rows(name):
    with pytest.raises(DataError, match=r"n_samples=3 .*n_clusters=4: ask for fewer"):
        quick(name, n_clusters=4).fit(TWO[:3])


@pytest.mark.parametrize("seed", ["abc", -1, 2.5, 2**40, np.random.default_rng(0)])
def test_seeds_out_of_range(method_name, seed):
    with pytest.raises(ValueError, match=r"'random_state' .*int in the range .*Got"):
        quick(method_name, random_state=seed).fit(TWO)


def test_prediction_of_another_table(method_name):
    model = quick(method_name, random_state=0).fit(pd.DataFrame(TWO, columns=list("abc")))
    with pytest.raises(DataError, match=r"X has 2 features, but .* expecting 3"):
        quick(method_name, random_state=0).fit(TWO).predict(TWO[:, :2])
    with pytest.raises(DataError, match=r"feature names should match(.|\n)*\n- d"):
        model.predict(pd.DataFrame(TWO, columns=list("abd")))
    with pytest.raises(DataError, match=r"feature names should match(.|\n)*same order"):
        model.predict(pd.DataFrame(TWO, columns=list("cba")))
    with pytest.raises(DataError, match=r"NaN, first at row 4, column 2 \('b'\)"):
        model.predict(pd.DataFrame(ROWS["NaN"][0], columns=list("abc")))
    with pytest.raises(DataError, match=r"0 sample.*minimum of 1"):
        model.predict(pd.DataFrame(TWO[:0], columns=list("abc")))


def test_what_needs_a_fit(method_name, tmp_path):
    model = quick(method_name)
    calls = [lambda: model.predict(TWO), lambda: model.score(TWO)]
    calls += [lambda: model.predict_proba(TWO)] if model.soft else []
    for call in [*calls, lambda: model.save(tmp_path / "model")]:
        with pytest.raises(NotFittedError, match=r"not fitted yet. Call 'fit'"):
            call()
    assert not list(tmp_path.iterdir())


def test_hard_methods_have_no_probabilities():
    with pytest.raises(AttributeError, match="no attribute 'predict_proba'"):
        HDBSCAN().fit(TWO).predict_proba(TWO)


def test_a_bad_data_set_among_many_is_named():
    with pytest.raises(DataError, match="data set 2 of fit_many: X contains NaN"):
        SetTransformerMixture().fit_many([TWO, TWO, ROWS["NaN"][0]])
    with pytest.raises(DataError, match=r"list of data sets, got one of shape .*fit_many\(\[X\]\)"):
        SetTransformerMixture().fit_many(TWO)
    with pytest.raises(DataError, match="data set 0 of fit_many: Expected 2D"):
        SetTransformerMixture().fit_many(list(TWO))


def test_an_unsuitable_data_set_among_many_is_named():
    with pytest.raises(DataError, match=r"data set 1 .*n_samples=2"):
        SetTransformerMixture(n_clusters=3).fit_many([TWO, TWO[:2]])
    with pytest.raises(DataError, match=r"data set 1 .*scaling='none'"):
        SetTransformerMixture(scaling="none").fit_many([TWO[:, :2], TWO])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("case", LEGAL)
def test_odd_but_legal_rows(method_name, case):
    X = LEGAL[case]
    given = {"n_clusters": 2} if get_method(method_name).takes_k else {}
    model = quick(method_name, random_state=0, **given).fit(X)
    assert model.labels_.shape == (len(X),)
    assert set(model.labels_.tolist()) <= {-1, *range(model.n_clusters_)}
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("name", ["kmeans", "agglomerative", "hdbscan", "spectral"])
@pytest.mark.parametrize("scale", [1e30, 1e-30])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_squares_neither_overflow_nor_vanish(name, scale, dtype):
    given = {"n_clusters": 2} if get_method(name).takes_k else {}
    labels = quick(name, random_state=0, **given).fit_predict((TWO * scale).astype(dtype))
    assert labels.tolist() in ([0] * 15 + [1] * 15, [1] * 15 + [0] * 15)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_mixture_of_few_rows_in_large_units_does_not_collapse():
    model = quick("gmm", random_state=0).fit(TWO * 1e6)  # fifteen components want thirty rows
    assert np.isfinite(model.predict_proba(TWO * 1e6)).all()


def test_fewer_rows_than_the_network_has_components():
    assert SetTransformerMixture().fit(TWO[:2]).n_clusters_ <= 2


@pytest.mark.parametrize("name", ["kmeans", "set-transformer", "gmm"])
def test_many_rows(name):
    X = np.random.RandomState(0).randn(100_000, 2)
    X[:60_000] += 12
    given = {"n_init": 1} if name == "kmeans" else {}
    model = quick(name, n_clusters=2, random_state=0, **given).fit(X)
    assert np.bincount(model.labels_).tolist() == [60_000, 40_000]


# --- files of weights -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder with a k-means, an autoencoder, a network and a table's model."""
    folder = tmp_path_factory.mktemp("saved")
    AutoKMeans(2, random_state=0).fit(TWO).save(folder / "kmeans")
    quick("ae-kmeans", random_state=0).fit(TWO).save(folder / "ae")
    SetTransformerMixture().fit(TWO).save(folder / "network")
    cluster_table(FRAME, "kmeans").model.save(folder / "table")
    return folder


def edit_card(**changes):
    def edit(tensors, card):
        content = json.loads(card.read_text()) | changes
        card.write_text(json.dumps({k: v for k, v in content.items() if v is not ...}))

    return edit


def with_right_checksum(content):
    def edit(tensors, card):
        tensors.write_bytes(content)
        edit_card(sha256=hashlib.sha256(content).hexdigest())(tensors, card)

    return edit


DAMAGE = {
    "truncated": (lambda t, c: t.write_bytes(t.read_bytes()[:-9]), "is damaged .*train it again"),
    "foreign": (with_right_checksum(b"hello world"), "is not a safetensors file"),
    "newer": (edit_card(format=99), "format 99, newer than the 1 .*pip install --upgrade"),
    "format is text": (edit_card(format="x"), "damaged: format is 'x'"),
    "no card": (lambda t, c: c.unlink(), "no weights card .*there without it: put both"),
    "no tensors": (lambda t, c: t.unlink(), r"no (tensor|weights) file at"),
    "card is text": (lambda t, c: c.write_text("hello"), "is damaged: not valid JSON"),
    "card is binary": (lambda t, c: c.write_bytes(b"\xff\xfe\x00"), "is damaged: not valid JSON"),
    "card is a list": (lambda t, c: c.write_text("[]"), "is not the card of asterism weights"),
    "no method": (edit_card(method=...), "damaged: it lacks 'method'"),
    "method is a list": (edit_card(method=[5]), "damaged: 'method' holds a list"),
    "unknown method": (edit_card(method="Foo"), "Foo"),
    "state is text": (edit_card(state="x"), "damaged: 'state' holds a str"),
    "other weights": (
        lambda t, c: t.write_bytes(t.with_name("ae.safetensors").read_bytes()),
        "is damaged or is not the file its card describes",
    ),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damaged_files_of_weights(saved, case):
    edit, words = DAMAGE[case]
    tensors, card = saved / "copy.safetensors", saved / "copy.json"
    tensors.write_bytes((saved / "network.safetensors").read_bytes())
    card.write_bytes((saved / "network.json").read_bytes())
    edit(tensors, card)
    for read in (
        lambda: asterism.load(saved / "copy"),
        lambda: SetTransformerMixture(weights=tensors).fit(TWO),
    ):
        with pytest.raises(WeightsError, match=words):
            read()


def test_weights_of_another_method(saved):
    with pytest.raises(WeightsError, match="were trained for AEKMeans, not SetTransformerMixture"):
        SetTransformerMixture(weights=saved / "ae.safetensors").fit(TWO)
    with pytest.raises(WeightsError, match=r"holds 'AutoKMeans', not AEKMeans; asterism.load"):
        AEKMeans.load(saved / "kmeans")
    with pytest.raises(WeightsError, match=r"without a table's encoder; .*asterism.load"):
        TableModel.load(saved / "kmeans")


def test_models_that_cannot_be_written(tmp_path):
    model = AutoKMeans(2).fit(TWO)
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "model.safetensors").mkdir()
    with pytest.raises(OutputError, match="cannot be written: "):
        model.save(tmp_path / "file" / "model")
    with pytest.raises(OutputError, match=r"model.safetensors is a directory: give"):
        model.save(tmp_path / "model")


# --- the command line -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory, saved):
    """A working folder with tables and models, good and bad."""
    here = tmp_path_factory.mktemp("tables")
    (here / "folder").mkdir()
    (here / "folder.csv").mkdir()
    frames = {
        "t": FRAME,
        "short": FRAME.drop(columns="height"),
        "text": FRAME.assign(height="tall"),
        "date": FRAME.assign(day=pd.date_range("2020", periods=30)),
        "id": FRAME.assign(code=[f"id{i}" for i in range(30)]),
        "done": FRAME.assign(cluster=0),
    }
    for name, frame in frames.items():
        frame.to_csv(here / f"{name}.csv", index=False)
    texts = {
        "empty.csv": "",
        "blank.csv": "\n\n",
        "header.csv": "a,b\n",
        "one.csv": "a,b\n1,2\n",
        "t.foo": "a,b\n1,2\n",
        "ragged.csv": "a,b\n1,2\n3,4,5\n",
        "twice.csv": "a,a\n1,2\n3,4\n",
        "constant.csv": "a,b\n1,2\n1,2\n",
        "junk.jsonl": "{]",
    }
    for name, text in texts.items():
        (here / name).write_text(text)
    junk = bytes(range(256)) * 20
    for name in ("junk.csv", "junk.parquet", "junk.npy"):
        (here / name).write_bytes(junk)
    (here / "junk.csv.gz").write_bytes(b"\x1f\x8bjunk")
    (here / "latin.csv").write_bytes("a,b\n1,é\n".encode("latin-1"))
    np.savez(here / "many.npz", a=TWO, b=TWO)
    np.save(here / "vector.npy", TWO[:, 0])
    np.save(here / "complex.npy", TWO.astype(complex))
    np.save(here / "infinite.npy", ROWS["inf"][0])
    for ending in (".json", ".safetensors"):
        (here / f"model{ending}").write_bytes((saved / f"table{ending}").read_bytes())
        (here / f"bare{ending}").write_bytes((saved / f"kmeans{ending}").read_bytes())
        (here / f"damaged{ending}").write_bytes((saved / f"table{ending}").read_bytes())
    (here / "damaged.safetensors").write_bytes(b"hello")
    return here


def contents(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def forbidden(*_, **__):
    raise RuntimeError("work was done before the error was found")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.arguments or "nothing")
def test_commands_that_are_refused(folder, command, monkeypatch, capfd):
    monkeypatch.chdir(folder)
    if not command.late:
        monkeypatch.setattr(Clusterer, "fit", forbidden)
        monkeypatch.setattr(TableModel, "assign", lambda self, table: self.encoder.transform(table))
        monkeypatch.setattr("asterism.base.amortized.train", forbidden)
    before = contents(folder)
    code = _run(shlex.split(command.arguments))
    out, err = capfd.readouterr()
    assert code == 2, err
    assert re.fullmatch(r"asterism: error: [^\n]+\n", err), err
    assert re.search(command.words, err.strip()), err
    assert out == ""
    assert contents(folder) == before


@pytest.mark.parametrize(
    "arguments", [["cluster", "nope.csv"], ["cluster", "t.csv", "-k", "many"], ["clustr"]]
)
def test_refusals_of_a_real_process(folder, arguments):
    before = contents(folder)
    done = subprocess.run(
        [sys.executable, "-m", "asterism", *arguments],
        cwd=folder,
        env=dict(os.environ, OMP_NUM_THREADS="1"),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2
    assert re.fullmatch(r"asterism: error: [^\n]+\n", done.stderr)
    assert done.stdout == ""
    assert contents(folder) == before


def test_the_tables_of_bad_inputs_are_long_enough():
    assert len(ROWS) + len(PARAMETERS) + len(DAMAGE) + len(COMMANDS) >= 60


def test_a_generator_is_left_alone_by_a_refusal():
    before = torch.get_rng_state()
    with pytest.raises(DataError):
        quick("ae-kmeans", random_state=0, n_clusters=31).fit(TWO)
    assert torch.equal(before, torch.get_rng_state())
