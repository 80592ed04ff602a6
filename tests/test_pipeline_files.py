"""Tables too large to hold: found on a sample, read, assigned and written in batches."""

# ruff: noqa: F811 (a fixture is imported, and named again by every test that uses it)

import json
import os
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from asterism import cluster_file
from asterism.exceptions import AsterismWarning, DataError, MissingExtraError, TableError
from asterism.io import batches, read_table, write_table
from asterism.io.batches import draw_rows, open_batches
from asterism.pipeline import FileClustering, TableModel, cluster_table, files, predict_file
from command_line import succeed, table  # noqa: F401


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """Seven rows a batch, so that a small table has many."""
    monkeypatch.setattr(batches, "_BATCH_ROWS", (1, 7))


def mixed(n=60):
    """Two clear groups; whole numbers, fractions, missing cells, truths, texts."""
    chance = np.random.default_rng(0)
    group = chance.integers(2, size=n)
    frame = pd.DataFrame(
        {
            "name": [f"{i:03d}" for i in range(n)],
            "height": 150 + 40 * group + chance.normal(0, 2, n),
            "age": 30 + 30 * group,
            "colour": np.where(group == 1, "red", "blue"),
            "smokes": group == 1,
        }
    )
    frame.loc[[4, 33], "height"] = np.nan
    return frame


def in_folder(folder, frame, name):
    write_table(frame, folder / name)
    return folder / name


# --- the same answer, row by row ------------------------------------------------------------------


@pytest.mark.parametrize("source", ["t.csv", "t.tsv.gz", "t.parquet"])
@pytest.mark.parametrize("output", ["o.csv", "o.jsonl.gz", "o.parquet"])
def test_every_row_gets_the_cluster_that_predict_gives(tmp_path, source, output):
    frame = mixed()
    path = in_folder(tmp_path, frame, source)
    result = cluster_file(path, tmp_path / output, "kmeans", id_column="name", sample_size=25)
    assert isinstance(result, FileClustering)
    assert len(result.sample.labels) == 25
    expected = result.model.predict(frame)
    found = read_table(tmp_path / output, text=["name"])
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)
    assert found["name"].tolist() == frame["name"].tolist()
    assert (result.n_rows, result.noise) == (60, 0)
    assert result.sizes == found["cluster"].value_counts().sort_index().tolist()
    assert result.mean_probability == pytest.approx(found["probability"].mean())
    assert result.notes[-1] == "clusters found on a sample of 25 rows, all 60 rows assigned"


def test_a_sample_of_everything_is_the_table_itself(tmp_path):
    frame = mixed()
    path = in_folder(tmp_path, frame, "t.csv")
    result = cluster_file(path, tmp_path / "o.csv", "gmm", 2, id_column="name")
    whole = cluster_table(path, "gmm", 2, id_column="name")
    pd.testing.assert_frame_equal(read_table(tmp_path / "o.csv", text=["name"]), whole.frame)
    assert result.sample.original.index.tolist() == list(range(60))
    assert result.notes == whole.notes


def test_the_default_method_and_its_details(tmp_path):
    frame = mixed().drop(columns="name")
    path = in_folder(tmp_path, frame, "t.parquet")
    result = cluster_file(path, tmp_path / "o.parquet", sample_size=40, details=True)
    found = pd.read_parquet(tmp_path / "o.parquet")
    assert result.method.name == "asterism"
    expected = result.model.predict(frame, details=True)
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, atol=1e-5)


def test_arrays_are_mapped(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 3)) + 9 * (np.arange(40) % 2)[:, None]
    np.save(tmp_path / "t.npy", X)
    result = cluster_file(tmp_path / "t.npy", tmp_path / "o.parquet", "kmeans", sample_size=20)
    found = pd.read_parquet(tmp_path / "o.parquet")
    np.testing.assert_array_equal(found[["x0", "x1", "x2"]], X)
    assert result.sizes == [20, 20]


def test_new_rows_in_a_file(tmp_path):
    frame = mixed()
    model = cluster_table(frame, "kmeans", 2, id_column="name").model
    path = in_folder(tmp_path, frame, "t.csv")
    told = predict_file(model, path, tmp_path / "o.csv", cluster_column="group")
    expected = model.predict(frame, cluster_column="group")
    pd.testing.assert_frame_equal(read_table(tmp_path / "o.csv", text=["name"]), expected)
    assert (told.n_rows, sum(told.sizes)) == (60, 60)


def test_known_labels_in_the_sample(tmp_path):
    frame = mixed().assign(kind=lambda f: np.where(f["age"] > 40, "old", None))
    path = in_folder(tmp_path, frame, "t.parquet")
    choices = {"id_column": "name", "label_column": "kind", "sample_size": 30}
    result = cluster_file(path, tmp_path / "o.csv", **choices)
    assert result.sample.scores["acc"] == 1
    guided = cluster_file(path, tmp_path / "o.csv", **choices, use_labels=True)
    assert guided.sample.labels_used


# --- types ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["o.csv", "o.parquet"])
def test_a_column_has_one_type_throughout(tmp_path, output):
    rows = [f"{i},{i},{i % 2},{10 * (i % 2)}.5,True" for i in range(40)]
    rows[30] = "30,2.5,x,,"
    (tmp_path / "t.csv").write_text("\n".join(["whole,part,text,gap,truth", *rows]) + "\n")
    with pytest.warns(AsterismWarning, match="'whole' merely counts the rows"):
        cluster_file(tmp_path / "t.csv", tmp_path / output, "kmeans", 2)
    found = read_table(tmp_path / output)
    whole = read_table(tmp_path / "t.csv")
    kinds = found.dtypes.map(lambda dtype: dtype.kind)
    assert kinds[["whole", "part", "gap"]].tolist() == ["i", "f", "f"]
    assert found["text"].astype(str).tolist() == whole["text"].tolist()
    pd.testing.assert_frame_equal(found[["whole", "part", "gap"]], whole[["whole", "part", "gap"]])


@pytest.mark.parametrize("output", ["o.csv", "o.parquet"])
def test_whole_numbers_stay_whole_beside_missing_cells(tmp_path, output):
    big = 2**53 + 1
    frame = pd.DataFrame(
        {"x": [0.0, 9.0] * 10, "n": pd.array([big, None] * 5 + [3] * 10, dtype="Int64")},
        index=[f"row {i}" for i in range(20)],
    )
    frame.to_parquet(tmp_path / "t.parquet")
    cluster_file(tmp_path / "t.parquet", tmp_path / output, "kmeans", 2, drop=["n"])
    if output == "o.csv":
        lines = (tmp_path / output).read_text().splitlines()
        assert lines[0] == "x,n,cluster,probability"
        numbers = [line.split(",")[1] for line in lines[1:]]
        assert numbers == [str(big), ""] * 5 + ["3"] * 10
    else:
        found = pq.read_table(tmp_path / output)
        assert found.column_names == ["x", "n", "cluster", "probability"]
        assert found["n"].to_pylist() == [big, None] * 5 + [3] * 10


def test_what_the_sample_lacked_is_unknown_and_told_once(tmp_path):
    frame = mixed(200).drop(columns="name")
    path = in_folder(tmp_path, frame, "t.csv")
    result = cluster_file(path, tmp_path / "o.csv", "kmeans", 2, sample_size=20)
    late = np.setdiff1d(np.arange(200), result.sample.original.index)[[3, 60, 150]]
    frame.loc[late, "colour"] = ["green", "grey", "green"]
    path = in_folder(tmp_path, frame, "t.csv")
    with pytest.warns(AsterismWarning, match=r"'colour' has .* \('green'\): they") as caught:
        again = cluster_file(path, tmp_path / "o.csv", "kmeans", 2, sample_size=20)
    assert len([w for w in caught if w.category is AsterismWarning]) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = again.model.predict(frame)
    pd.testing.assert_frame_equal(read_table(tmp_path / "o.csv"), expected)


# --- the sample -----------------------------------------------------------------------------------


def parts(n, size=10):
    return (pd.DataFrame({"x": r}, index=r) for r in np.array_split(np.arange(n), n // size))


def test_every_row_is_as_likely_as_any_other():
    drawn = [draw_rows(parts(100), 10, seed)["x"].to_numpy() for seed in range(400)]
    assert all(len(rows) == 10 and (np.diff(rows) > 0).all() for rows in drawn)
    counts = np.bincount(np.concatenate(drawn), minlength=100)  # 40 expected, deviation 6
    assert counts.min() > 15
    assert counts.max() < 70
    assert abs(np.concatenate(drawn).mean() - 49.5) < 2
    np.testing.assert_array_equal(drawn[0], draw_rows(parts(100), 10, 0)["x"])


def test_fewer_rows_than_asked_for_are_all_taken():
    assert draw_rows(parts(30), 100, 0)["x"].tolist() == list(range(30))


def test_the_seed_fixes_the_sample(tmp_path):
    path = in_folder(tmp_path, mixed(), "t.csv")
    picks = [
        cluster_file(
            path, tmp_path / "o.csv", "kmeans", id_column="name", sample_size=9, random_state=seed
        ).sample.original.index.tolist()
        for seed in (1, 1, 2)
    ]
    assert picks[0] == picks[1] != picks[2]


def test_wide_tables_give_fewer_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_SAMPLE_CELLS", 2500 * 4)
    np.save(tmp_path / "t.npy", np.random.default_rng(0).normal(size=(3000, 4)))
    monkeypatch.setattr(batches, "_BATCH_ROWS", (1, 1000))
    result = cluster_file(tmp_path / "t.npy", tmp_path / "o.csv", "kmeans", 2)
    assert len(result.sample.labels) == 2500


# --- whole or not at all --------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["o.csv", "o.parquet", "o.csv.gz"])
def test_a_run_that_fails_leaves_the_old_file(tmp_path, monkeypatch, output):
    path = in_folder(tmp_path, mixed(), "t.csv")
    (tmp_path / output).write_text("old")
    assign, calls = TableModel.assign, []

    def failing(self, table):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return assign(self, table)

    monkeypatch.setattr(TableModel, "assign", failing)
    with pytest.raises(KeyboardInterrupt):
        cluster_file(path, tmp_path / output, "kmeans", id_column="name")
    assert (tmp_path / output).read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([output, "t.csv"])


KILLED = """
import os, sys
from asterism.io import batches
from asterism.pipeline import TableModel, cluster_file
batches._BATCH_ROWS = (1, 7)
assign, calls = TableModel.assign, []
def dying(self, table):
    calls.append(1)
    if len(calls) == 4:
        os.kill(os.getpid(), 9)
    return assign(self, table)
TableModel.assign = dying
cluster_file("t.csv", "o.csv", "kmeans", id_column="name")
"""


def test_a_killed_run_leaves_the_old_file_and_the_next_one_tidies_up(tmp_path):
    path = in_folder(tmp_path, mixed(), "t.csv")
    (tmp_path / "o.csv").write_text("old")
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    done = subprocess.run([sys.executable, "-c", KILLED], cwd=tmp_path, env=environment)
    assert done.returncode == -9
    assert (tmp_path / "o.csv").read_text() == "old"
    (left,) = tmp_path.glob(".o.csv.*.tmp")
    os.utime(left, (0, 0))
    cluster_file(path, tmp_path / "o.csv", "kmeans", id_column="name")
    assert len(read_table(tmp_path / "o.csv")) == 60
    assert sorted(p.name for p in tmp_path.iterdir()) == ["o.csv", "t.csv"]


def test_a_file_may_be_replaced_by_itself(tmp_path):
    frame = mixed()
    path = in_folder(tmp_path, frame, "t.csv")
    cluster_file(path, path, "kmeans", id_column="name", sample_size=20)
    assert read_table(path, text=["name"])["name"].tolist() == frame["name"].tolist()


# --- refusals -------------------------------------------------------------------------------------


def test_rows_are_counted_through_the_file(tmp_path):
    X = np.random.default_rng(0).normal(size=(50, 2))
    X[37, 1] = np.inf
    np.save(tmp_path / "t.npy", X)
    for size in (50, 5):  # met in the sample, or in a batch
        with pytest.raises(TableError, match=r"column 'x1', row 38: inf is not a finite number"):
            cluster_file(tmp_path / "t.npy", tmp_path / "o.csv", "kmeans", sample_size=size)
    assert not (tmp_path / "o.csv").exists()


def test_a_text_among_numbers_is_named_by_its_row(tmp_path):
    frame = pd.DataFrame({"x": np.arange(50) % 2 + np.arange(50) / 100})
    path = in_folder(tmp_path, frame, "t.csv")
    result = cluster_file(path, tmp_path / "o.csv", "kmeans", 2, sample_size=9)
    row = np.setdiff1d(np.arange(50), result.sample.original.index)[-5]
    frame["x"] = frame["x"].astype(object)
    frame.loc[row, "x"] = "tall"
    path = in_folder(tmp_path, frame, "t.csv")
    with pytest.raises(TableError, match=f"column 'x', row {row + 1}: 'tall' is not a number"):
        cluster_file(path, tmp_path / "o.csv", "kmeans", 2, sample_size=9)


def test_ragged_lines_are_named(tmp_path):
    rows = ["1,2"] * 300
    rows[250] = "1"
    (tmp_path / "t.csv").write_text("\n".join(["a,b", *rows]) + "\n")
    with pytest.raises(TableError, match="line 252: expected 2 fields"):
        cluster_file(tmp_path / "t.csv", tmp_path / "o.csv", "kmeans", 2)
    rows[250] = "1,2,3"
    (tmp_path / "t.csv").write_text("\n".join(["a,b", *rows]) + "\n")
    with pytest.raises(TableError, match="line 252: expected 2 fields"):
        cluster_file(tmp_path / "t.csv", tmp_path / "o.csv", "kmeans", 2)


def test_what_cannot_be_done_in_batches_is_refused(tmp_path):
    frame = mixed()
    path = in_folder(tmp_path, frame, "t.csv")
    lines = in_folder(tmp_path, frame, "t.jsonl")
    with pytest.raises(TableError, match="can only be read whole: give a Parquet"):
        cluster_file(lines, tmp_path / "o.csv")
    with pytest.raises(TableError, match=r"o.npy: give a name that ends in .parquet"):
        cluster_file(path, tmp_path / "o.npy")
    with pytest.raises(DataError, match="does not use labels"):
        cluster_file(path, tmp_path / "o.csv", "kmeans", label_column="age", use_labels=True)
    with pytest.raises(TableError, match="already has a column 'age'"):
        cluster_file(path, tmp_path / "o.csv", "kmeans", id_column="name", cluster_column="age")
    (tmp_path / "bad.parquet").write_text("junk")
    with pytest.raises(TableError, match=r"bad.parquet cannot be read as parquet"):
        cluster_file(tmp_path / "bad.parquet", tmp_path / "o.csv")


def test_parquet_needs_its_package(tmp_path, monkeypatch):
    path = in_folder(tmp_path, mixed(), "t.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"reading parquet needs pyarrow"):
        open_batches(path)


# --- the command line -----------------------------------------------------------------------------


@pytest.fixture
def everything_is_large(monkeypatch):
    monkeypatch.setattr(files, "LARGE", 10)
    monkeypatch.setattr(files, "_SAMPLE_ROWS", 40)


def test_large_tables_are_not_held(table, capfd, everything_is_large, monkeypatch, tmp_path):
    monkeypatch.setattr("asterism.pipeline.cluster_table", None)
    arguments = ["cluster", "t.csv", "--label", "kind", "--save", "m", "--report", "r.html"]
    out, _ = succeed(capfd, *arguments, "--plot", "p.png", "--json")
    facts = json.loads(out)
    assert (facts["n_rows"], facts["n_sample"], facts["n_clusters"]) == (60, 40, 3)
    assert facts["sizes"] == [30, 20, 10]
    labelled = pd.read_csv("t.clusters.csv")
    pd.testing.assert_frame_equal(labelled[table.columns], table)
    assert "sample of 40 rows" in (tmp_path / "r.html").read_text()
    _, err = succeed(capfd, *arguments)
    assert "note: clusters found on a sample of 40 rows, all 60 rows assigned\n" in err
    succeed(capfd, "predict", "m", "t.csv", "-o", "again.csv", "-q")
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "t.clusters.csv").read_bytes()
    out, _ = succeed(capfd, "predict", "m", "t.csv", "--json")
    assert json.loads(out)["sizes"] == [30, 20, 10]


def test_large_tables_to_standard_output(table, capfd, everything_is_large):
    out, err = succeed(capfd, "cluster", "t.csv", "-m", "kmeans", "--drop", "kind", "-o", "-")
    assert len(out.splitlines()) == 61
    assert out.splitlines()[0] == "height,weight,kind,cluster,probability"
    assert err.startswith("3 clusters of 60 rows by kmeans")


def test_formats_that_are_read_whole_still_are(table, capfd, everything_is_large):
    write_table(table, "t.feather")
    out, _ = succeed(capfd, "cluster", "t.feather", "-o", "o.csv", "-m", "kmeans", "--json")
    assert json.loads(out)["n_sample"] == 60
    out, _ = succeed(capfd, "cluster", "t.csv", "-o", "o.feather", "-m", "kmeans", "--json")
    assert json.loads(out)["n_sample"] == 60
