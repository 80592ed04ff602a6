"""From a table to its clusters and back: any kind of table, any method, the same rows."""

import json
from contextlib import nullcontext

import numpy as np
import pandas as pd
import polars as pl
import pytest

import asterism
from asterism import AEKMeans, Asterism, AutoKMeans, SetTransformerMixture, cluster_table
from asterism.exceptions import (
    AsterismWarning,
    DataError,
    TableError,
    UnknownMethodError,
    WeightsError,
)
from asterism.io import TableEncoder
from asterism.methods.registry import get_method
from asterism.pipeline import TableModel, make_estimator
from asterism.pipeline.models import assign_fitted
from conftest import LIGHT


def mixed(n=60, seed=0):
    """Two clear groups in numbers, categories, booleans and cells that are missing."""
    chance = np.random.default_rng(seed)
    group = np.arange(n) % 2
    frame = pd.DataFrame(
        {
            "height": 150 + 40 * group + chance.normal(0, 2, n),
            "weight": np.round(50 + 45 * group + chance.normal(0, 2, n)).astype(int),
            "colour": np.where(group == 1, "red", "blue"),
            "smokes": group == 1,
            "kind": np.where(group == 1, "giant", "dwarf"),
        },
        index=[f"row {i}" for i in range(n)],
    )
    frame.loc[["row 4", "row 7"], "height"] = np.nan
    return frame


def of_two(name):
    """Quick estimator of a method, told the number of clusters where it may be."""
    method = get_method(name)
    return make_estimator(
        method, 2 if method.takes_k else "auto", random_state=0, **LIGHT.get(name, {})
    )


GROUP = np.arange(60) % 2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_mixed_table_is_clustered_and_predicted_alike(method_name, tmp_path):
    frame = mixed()
    result = cluster_table(frame, of_two(method_name), label_column="kind")
    assert result.frame.columns.tolist() == [*frame.columns, "cluster", "probability"]
    pd.testing.assert_frame_equal(result.frame[frame.columns], frame)
    assert result.frame["cluster"].dtype == np.int64
    assert result.sizes == sorted(result.sizes, reverse=True)
    assert sum(result.sizes) == 60
    assert len(result.sizes) == result.n_clusters
    assert result.frame["probability"].isna().all() == (not result.method.soft)
    path = result.model.save(tmp_path / "model", command="a test")
    for model in (result.model, TableModel.load(path)):
        again = model.predict(frame)
        pd.testing.assert_frame_equal(again, result.frame)
        shuffled = frame.sample(frac=1, random_state=1)[frame.columns[::-1]]
        pd.testing.assert_series_equal(
            model.predict(shuffled)["cluster"].sort_index(), again["cluster"].sort_index()
        )


@pytest.mark.parametrize("method", ["kmeans", "gmm", "agglomerative"])
def test_clear_groups_are_found(method):
    result = cluster_table(mixed(), method, 2, drop=["kind"])
    assert set(zip(result.labels.tolist(), GROUP.tolist(), strict=True)) in (
        {(0, 0), (1, 1)},
        {(0, 1), (1, 0)},
    )


def test_every_kind_of_table_gives_the_same_clusters(tmp_path):
    frame = mixed().reset_index(drop=True)
    expected = cluster_table(frame, "kmeans", 2).labels
    frame.to_csv(tmp_path / "table.csv", index=False)
    for table in (pl.from_pandas(frame), tmp_path / "table.csv", str(tmp_path / "table.csv")):
        result = cluster_table(table, "kmeans", 2)
        np.testing.assert_array_equal(result.labels, expected)
        assert isinstance(result.frame, pd.DataFrame)
    numbers = frame[["height", "weight"]].fillna(170).to_numpy()
    result = cluster_table(numbers, "kmeans", 2)
    assert result.frame.columns.tolist() == ["x0", "x1", "cluster", "probability"]
    np.testing.assert_array_equal(
        result.labels, cluster_table(pl.DataFrame(numbers, schema=["x0", "x1"]), "kmeans", 2).labels
    )


def test_index_and_order_of_the_rows_are_kept():
    frame = mixed()
    frame.index = frame.index[::-1]
    result = cluster_table(frame, "kmeans", 2)
    assert result.frame.index.tolist() == frame.index.tolist()
    assert result.original is frame
    assert "cluster" not in frame


@pytest.mark.parametrize("method", ["asterism", "kmeans"])
def test_known_labels_are_for_scores_only(method):
    frame = mixed()
    plain = cluster_table(frame.drop(columns="kind"), method, 2)
    scored = cluster_table(frame, method, 2, label_column="kind")
    dropped = cluster_table(frame, method, 2, drop=["kind"])
    wrong = frame.assign(kind=np.random.default_rng(0).permutation(frame["kind"]))
    misled = cluster_table(wrong, method, 2, label_column="kind")
    for result in (scored, dropped, misled):
        np.testing.assert_array_equal(result.labels, plain.labels)
        np.testing.assert_array_equal(result.X, plain.X)
    assert plain.scores is None
    assert dropped.scores is None
    assert scored.scores["acc"] == scored.scores["ari"] == 1
    assert misled.scores["ari"] < 0.2
    assert not scored.labels_used


def test_known_labels_guide_the_fit_when_asked():
    frame = mixed()
    frame["kind"] = None
    known = frame.index[:6]  # of both groups, and yet one class
    frame.loc[known, "kind"] = "mine"
    free = cluster_table(frame, label_column="kind")
    guided = cluster_table(frame, label_column="kind", use_labels=True)
    assert free.frame.loc[known, "cluster"].nunique() > 1
    assert guided.frame.loc[known, "cluster"].nunique() == 1
    assert guided.labels_used
    assert guided.scores["acc"] == 1


def test_what_a_method_cannot_do_is_refused_before_the_table_is_read():
    for wrong, words in (
        ({"method": "kmeans", "n_clusters": (2, 8)}, "no range of numbers .*got 2-8"),
        ({"method": "kmeans", "label_column": "kind", "use_labels": True}, "does not use labels"),
        ({"use_labels": True}, "needs label_column=NAME"),
        ({"method": "gmm", "details": True}, "no confidence and no outlier score"),
    ):
        with pytest.raises(DataError, match=words):
            cluster_table("no such table.csv", **wrong)


def test_one_cluster_is_told_of_as_one():
    frame = pd.DataFrame({"x": [1.0, 2.0, 4.0]})
    result = cluster_table(frame, method="kmeans", n_clusters=1)
    assert repr(result) == "<1 cluster of 3 rows by kmeans: 3>"


def test_details_of_fit_and_of_predict(tmp_path):
    frame = mixed()
    result = cluster_table(frame, details=True, drop=["kind"])
    new = ["cluster", "probability", "confidence", "outlier_score"]
    assert result.frame.columns.tolist()[-4:] == new
    # Of equal rows the first one's reading is taken for all: the same but for rounding.
    np.testing.assert_allclose(
        result.frame["confidence"], result.model.estimator.confidence_, atol=1e-5
    )
    model = TableModel.load(result.model.save(tmp_path / "model"))
    pd.testing.assert_frame_equal(model.predict(frame, details=True), result.frame, atol=1e-5)
    with pytest.raises(TableError, match="a column 'confidence' is to be added, and there is one"):
        cluster_table(frame.assign(confidence=1.0), details=True)


def test_what_fit_kept_is_not_computed_again(monkeypatch):
    estimator = AutoKMeans(2, random_state=0)
    X = np.array([[0.0], [0.1], [5.0], [5.1]])
    estimator.fit(X).probability_ = np.array([0.1234567, 1, 1, 1])
    monkeypatch.setattr(AutoKMeans, "predict_proba", None)
    assert assign_fitted(estimator, X).probability.tolist() == [0.123457, 1, 1, 1]


def test_unlabelled_rows_do_not_count_in_the_scores():
    frame = mixed()
    frame.loc[frame.index[:50], "kind"] = None
    assert cluster_table(frame, "kmeans", 2, label_column="kind").scores["ari"] == 1
    nobody = frame.assign(kind=-1)
    assert cluster_table(nobody, "kmeans", 2, label_column="kind").scores is None


def test_identifiers_are_left_out():
    frame = mixed().reset_index(names="who")
    result = cluster_table(frame, "kmeans", 2, id_column="who")
    np.testing.assert_array_equal(result.labels, cluster_table(mixed(), "kmeans", 2).labels)
    assert result.frame["who"].tolist() == frame["who"].tolist()


def test_names_of_the_new_columns():
    frame = mixed().assign(cluster="mine")
    result = cluster_table(
        frame, "kmeans", 2, cluster_column="group", probability_column="certainty"
    )
    assert result.frame.columns.tolist()[-3:] == ["cluster", "group", "certainty"]
    again = result.model.predict(frame, cluster_column="g", probability_column="p")
    np.testing.assert_array_equal(again["g"], result.labels)


def test_same_seed_same_result():
    chance = np.random.default_rng(0)
    table = pd.DataFrame(chance.normal(size=(80, 4)))
    few = LIGHT["ae-kmeans"]
    first = cluster_table(table, "ae-kmeans", 5, random_state=3, **few)
    second = cluster_table(table, "ae-kmeans", 5, random_state=3, **few)
    other = cluster_table(table, "ae-kmeans", 5, random_state=4, **few)
    pd.testing.assert_frame_equal(first.frame, second.frame)
    assert (first.labels != other.labels).any()


def test_parameters_reach_the_method():
    assert cluster_table(mixed(), "kmeans", n_init=3).model.estimator.n_init == 3
    assert cluster_table(mixed(), "kmeans", 3).n_clusters == 3
    assert cluster_table(mixed(), "hdbscan", noise="keep", min_cluster_size=40).n_clusters == 0


def test_an_estimator_is_fitted_as_it_is():
    estimator = AEKMeans(2, scaling="minmax", **LIGHT["ae-kmeans"], random_state=0)
    result = cluster_table(mixed(), estimator, scaling="robust")
    assert result.model.estimator is estimator
    assert result.model.encoder.scaling == "robust"
    assert result.method.name == "ae-kmeans"
    for wrong, named in (({"n_clusters": 3}, "n_clusters"), ({"n_init": 3}, "n_init")):
        with pytest.raises(DataError, match=f"{named}: give it to AEKMeans itself"):
            cluster_table(mixed(), estimator, **wrong)


def test_the_reserved_names_of_make_estimator_are_parameters_like_others():
    assert make_estimator(get_method("kmeans"), n_clusters=3).n_clusters == 3
    with pytest.raises(DataError, match="no parameter 'method'"):
        make_estimator(get_method("kmeans"), method="x")


def told_of_tables():
    return pytest.warns(AsterismWarning, match=r"TableModel\.load\(path\) takes tables")


def test_the_class_is_taken_from_the_file(method_name, tmp_path):
    frame = mixed()[["weight"]].assign(more=np.arange(60) % 7)
    result = cluster_table(frame, of_two(method_name))
    result.model.estimator.save(tmp_path / "estimator")
    result.model.save(tmp_path / "model")
    for name in ("estimator", "model.safetensors", "model.json"):
        with told_of_tables() if name != "estimator" else nullcontext():
            loaded = asterism.load(tmp_path / name)
        assert type(loaded) is type(result.model.estimator)
        np.testing.assert_array_equal(loaded.labels_, result.labels)
        np.testing.assert_array_equal(loaded.predict(result.X), result.labels)


def test_what_a_card_tells(tmp_path):
    result = cluster_table(mixed(), "kmeans", 2)
    result.model.save(tmp_path / "model", command="asterism cluster x.csv")
    card = json.loads((tmp_path / "model.json").read_text())
    assert card["method"] == "AutoKMeans"
    assert card["command"] == "asterism cluster x.csv"
    assert card["parameters"]["n_clusters"] == 2
    assert TableEncoder.from_dict(card["encoder"]).feature_names_ == (
        result.model.encoder.feature_names_
    )


def test_new_rows_may_hold_what_training_had_not():
    model = cluster_table(mixed(), "kmeans", 2, drop=["kind"]).model
    new = mixed(8).drop(columns="kind")
    new.loc["row 0", "height"] = np.nan
    new.loc["row 1", "colour"] = "green"
    with pytest.warns(AsterismWarning, match="'colour' has categories unknown .*'green'"):
        labelled = model.predict(new.assign(shoes=40))
    assert labelled["cluster"].tolist() == model.assign(mixed(8))[0].tolist()


BAD = {
    "no such method": (lambda f: cluster_table(f, "kmean"), UnknownMethodError, "kmean.*kmeans"),
    "needs a number": (lambda f: cluster_table(f, "ae-kmeans"), DataError, "n_clusters=K"),
    "takes no number": (lambda f: cluster_table(f, "hdbscan", 3), DataError, "itself, got 3"),
    "no such parameter": (
        lambda f: cluster_table(f, "kmeans", n_inits=3),
        DataError,
        r"no parameter 'n_inits' \(did you mean 'n_init'\?\); it has",
    ),
    "no such column": (
        lambda f: cluster_table(f, drop=["heigth"]),
        TableError,
        "'heigth'.*did you mean 'height'",
    ),
    "a column for a list": (lambda f: cluster_table(f, drop="kind"), TableError, r"\['kind'\]"),
    "no such scaling": (lambda f: cluster_table(f, scaling="x"), TableError, "'x' is none of"),
    "one row": (lambda f: cluster_table(f[:1]), TableError, "1 row: clustering needs two"),
    "no rows": (lambda f: cluster_table(f[:0]), TableError, "0 rows:"),
    "nothing left": (lambda f: cluster_table(f[[]].assign(x=1)), TableError, "no column is left"),
    "a vector": (lambda f: cluster_table(np.arange(5)), TableError, "two dimensions"),
    "a number": (lambda f: cluster_table(5), TableError, "cannot read a table from int"),
    "no such file": (lambda f: cluster_table("nope.csv"), TableError, "no such file"),
    "column taken": (
        lambda f: cluster_table(f.assign(cluster=1)),
        TableError,
        "already has a column 'cluster'",
    ),
    "no name": (lambda f: cluster_table(f, cluster_column=""), TableError, "no name"),
    "column absent": (
        lambda f: cluster_table(f, "kmeans", 2).model.predict(f.drop(columns="height")),
        TableError,
        "'height', which the table does not have",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_tables_that_are_refused(case):
    call, error, words = BAD[case]
    with pytest.raises(error, match=words):
        call(mixed())


def test_a_model_without_an_encoder_is_no_table_model(tmp_path):
    AutoKMeans(2).fit(np.eye(4)).save(tmp_path / "model")
    with pytest.raises(WeightsError, match=r"without a table's encoder; .*asterism.load"):
        TableModel.load(tmp_path / "model")
    with pytest.raises(WeightsError, match=r"no weights card at .*check the path"):
        TableModel.load(tmp_path / "other")


def test_an_encoder_of_another_version_is_refused(tmp_path):
    path = cluster_table(mixed(), "kmeans", 2).model.save(tmp_path / "model")
    card = json.loads(path.with_suffix(".json").read_text())
    card["encoder"]["table_encoder"] = 99
    path.with_suffix(".json").write_text(json.dumps(card))
    with pytest.raises(TableError, match=r"encoder of version 2 \(found 99\)"):
        TableModel.load(path)


def test_a_method_of_a_later_version_is_refused(tmp_path):
    path = SetTransformerMixture().fit(np.eye(8)).save(tmp_path / "model")
    card = json.loads(path.with_suffix(".json").read_text())
    path.with_suffix(".json").write_text(json.dumps(card | {"method": "Later"}))
    with pytest.raises(WeightsError, match="method 'Later', which this version does not know"):
        asterism.load(path)


def test_the_default_takes_the_encoder_s_scale_as_it_is():
    chance = np.random.default_rng(0)
    kind = np.repeat([0, 1], 60)
    frame = pd.DataFrame(
        {
            "a": chance.standard_normal(120) + 8 * kind,
            "b": chance.standard_normal(120),
            "rare": np.where(chance.random(120) < 0.05, "yes", "no"),
        }
    )
    found = cluster_table(frame)
    assert found.model.estimator.scaling == "none"
    expected = Asterism(scaling="none", random_state=0).fit(found.X)
    np.testing.assert_array_equal(found.labels, expected.labels_)
    assert cluster_table(frame, scaling="standard").model.estimator.scaling == "none"
