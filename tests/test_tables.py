"""Tables in and out: formats, labels attached, messages."""

import builtins
import gzip
import importlib.util
import io
import json
import sys
import types
import warnings

import numpy as np
import pandas as pd
import pytest

from asterism.exceptions import MissingExtraError, OutputError, TableError
from asterism.io.tables import as_frame, attach_labels, read_table, write_table
from encoding import text


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "name": ["ann", "bö, b", 'c"c', None],
            "height": [1.1, 0.1 + 0.2, np.nan, 1e-300],
            "count": [1, -2, 3, 2**53],
        }
    )


@pytest.mark.parametrize(
    "name",
    [
        *("t.csv", "t.TSV", "t.csv.gz", "t.tsv.bz2", "t.jsonl.xz", "t.jsonl", "t.ndjson", "t.txt"),
        *("t.parquet", "t.pq", "t.feather"),
    ],
)
def test_what_is_written_is_read_again(tmp_path, frame, name):
    if name.endswith(("parquet", "pq", "feather")):
        pytest.importorskip("pyarrow")
    write_table(frame.set_index(np.array([7, 5, 3, 1])), tmp_path / name)
    back = read_table(tmp_path / name)
    assert back.columns.tolist() == frame.columns.tolist()
    assert back.index.tolist() == [0, 1, 2, 3]
    assert back["count"].tolist() == frame["count"].tolist()
    np.testing.assert_array_max_ulp(back["height"].to_numpy(), frame["height"].to_numpy(), 1)
    assert back["name"].tolist()[:3] == frame["name"].tolist()[:3]
    assert pd.isna(back["name"][3])
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_packed_tables_are_packed(tmp_path, frame):
    write_table(frame, tmp_path / "t.csv.gz")
    assert gzip.decompress((tmp_path / "t.csv.gz").read_bytes()).startswith(b"name,height,count\n")


def test_zstandard_works_or_names_the_package(tmp_path, frame):
    path = tmp_path / "t.csv.zst"
    if importlib.util.find_spec("zstandard"):
        write_table(frame, path)
        assert path.read_bytes().startswith(b"\x28\xb5\x2f\xfd")
        assert read_table(path)["count"].tolist() == frame["count"].tolist()
        return
    with pytest.raises(TableError, match="pip install zstandard"):
        write_table(frame, path)
    assert not list(tmp_path.iterdir())
    path.write_bytes(b"\x28\xb5\x2f\xfd rest")
    with pytest.raises(TableError, match="pip install zstandard"):
        read_table(path)


def test_npy_holds_numeric_tables(tmp_path, frame):
    numbers = frame[["height", "count"]]
    write_table(numbers, tmp_path / "t.npy")
    back = read_table(tmp_path / "t.npy")
    assert back.columns.tolist() == ["x0", "x1"]
    np.testing.assert_array_equal(back.to_numpy(), numbers.to_numpy())
    write_table(pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}), tmp_path / "t.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "t.npy"), [[1.0], [np.nan]])
    with pytest.raises(TableError, match="column 'name' is not numeric"):
        write_table(frame, tmp_path / "t.npy")


def test_npz_needs_one_array_or_a_key(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, a=np.eye(3))
    assert read_table(path).shape == (3, 3)
    np.savez(path, a=np.eye(3), b=np.eye(2), c=np.zeros(3))
    with pytest.raises(TableError, match=r"3 arrays \('a', 'b', 'c'\): choose key="):
        read_table(path)
    assert read_table(path, key="b").shape == (2, 2)
    with pytest.raises(TableError, match="no array 'z'; it holds 'a', 'b', 'c'"):
        read_table(path, key="z")
    with pytest.raises(TableError, match=r"shape \(3,\)"):
        read_table(path, key="c")


@pytest.mark.parametrize("shape", [(4,), (2, 2, 2)])
def test_arrays_of_other_dimensions_are_refused(tmp_path, shape):
    np.save(tmp_path / "t.npy", np.zeros(shape))
    with pytest.raises(TableError, match="two dimensions"):
        read_table(tmp_path / "t.npy")


def test_python_objects_are_never_unpickled(tmp_path):
    np.save(tmp_path / "t.npy", np.array([["a", 1]], dtype=object))
    with pytest.raises(TableError, match="never unpickled"):
        read_table(tmp_path / "t.npy")
    np.save(tmp_path / "c.npy", np.ones((2, 2), dtype=complex))
    with pytest.raises(TableError, match="complex128"):
        read_table(tmp_path / "c.npy")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        ("a,b\n", "only a header"),
        ("a,b\n1,2,3\n4,5,6\n", "line 2: expected 2 fields .* found 3"),
        ("a,b,a\n1,2,3\n", "names several columns 'a'"),
        (b"a,b\n\0\1,2\n", "binary data"),
        (b"\x89PNG\r\n\x1a\n\0\0\0", "binary data"),
        ("x" * 200_000 + ",b\n1,2\n", "cannot be parsed: field larger"),
        ('a,b\n1,"2\n', "cannot be parsed"),
        (b"\x1f\x8b\x08\x00damaged", "damaged"),
        (b"\x93NUMPY\x01\x00v", "cannot be read as NPY"),
        (b"PK\x03\x04 not a zip", "cannot be read as NPY or NPZ"),
        ('{"a": 1}\n{"a": \n', "line 2 is not JSON"),
        ('{"a": 1}\n[1]\n', "line 2 is not a JSON object"),
        ('{"a": 1}\n\n{"a": [1]}\n', "line 3: 'a' holds a list"),
        ("{}\n", "1 rows and 0 columns: nothing to read"),
    ],
)
def test_damaged_streams_are_refused(content, message):
    with pytest.raises(TableError, match=message):
        read_table(text(content))


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_damaged_arrow_files_are_refused(tmp_path, kind):
    pytest.importorskip("pyarrow")
    path = tmp_path / f"t.{kind}"
    path.write_bytes(b"PAR1 this is nothing of the kind PAR1")
    with pytest.raises(TableError, match=f"t.{kind} cannot be read"):
        read_table(path)


def test_places_without_a_table_are_refused(tmp_path):
    with pytest.raises(TableError, match=r"no such file: .*gone.csv"):
        read_table(tmp_path / "gone.csv")
    with pytest.raises(TableError, match="is a directory"):
        read_table(tmp_path)
    (tmp_path / "t.xlsx").write_bytes(b"1")
    with pytest.raises(TableError, match=r"'t.xlsx' names no table format: supported are .csv"):
        read_table(tmp_path / "t.xlsx")
    with pytest.raises(TableError, match="'excel' names no table format"):
        read_table(tmp_path / "t.xlsx", format="excel")
    (tmp_path / "t").write_bytes(b"1")
    with pytest.raises(TableError, match="'t' names no table format"):
        read_table(tmp_path / "t")
    with pytest.raises(TableError, match="from int"):
        read_table(3)
    with pytest.raises(TableError, match="sep='::'"):
        read_table(text("a::b\n1::2\n"), sep="::")


def test_a_missing_pyarrow_names_the_extra(tmp_path, frame, monkeypatch):
    original = builtins.__import__

    def without_pyarrow(name, *args, **kwargs):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return original(name, *args, **kwargs)

    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    monkeypatch.setattr(builtins, "__import__", without_pyarrow)
    with pytest.raises(MissingExtraError, match=r"reading parquet .*asterism\[data\]"):
        read_table(tmp_path / "t.parquet")
    with pytest.raises(MissingExtraError, match=r"writing feather .*asterism\[data\]"):
        write_table(frame, tmp_path / "t.feather")


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.npy", "t.parquet", "t.feather"])
def test_standard_input_is_sniffed(tmp_path, monkeypatch, name):
    if name.endswith(("parquet", "feather")):
        pytest.importorskip("pyarrow")
    write_table(pd.DataFrame({"a": [1.5, 2.5], "b": [3.0, 4.0]}), tmp_path / name)
    stdin = types.SimpleNamespace(buffer=io.BytesIO((tmp_path / name).read_bytes()))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert read_table("-").to_numpy().tolist() == [[1.5, 3.0], [2.5, 4.0]]


def test_standard_output(capfdbinary, frame):
    write_table(frame[["count"]], "-")
    write_table(frame[["count"]], "-", format="jsonl")
    out = capfdbinary.readouterr().out.decode().splitlines()
    assert out[:2] == ["count", "1"]
    assert json.loads(out[-1]) == {"count": 2**53}


def test_frames_and_arrays_pass_through():
    frame = pd.DataFrame({0: [1], "b": [2]}, index=[9])
    assert read_table(frame).columns.tolist() == ["0", "b"]
    assert frame.columns.tolist() == [0, "b"]
    assert read_table(frame).index.tolist() == [9]
    assert read_table(np.zeros((2, 3))).columns.tolist() == ["x0", "x1", "x2"]
    with pytest.raises(TableError, match=r"shape \(3,\)"):
        read_table(np.zeros(3))
    with pytest.raises(TableError, match="several columns '1'"):
        read_table(pd.DataFrame([[1, 2]], columns=[1, "1"]))
    with pytest.raises(TableError, match="is a Series"):
        read_table(pd.Series([1]))
    with pytest.raises(TableError, match="is a list"):
        as_frame([1])


def test_polars_frames_pass_through():
    polars = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    frame = polars.DataFrame({"a": [1, 2], "b": ["x", None]})
    for source in (frame, frame.lazy()):
        assert read_table(source)["a"].tolist() == [1, 2]
    with pytest.raises(TableError, match="is a Series"):
        read_table(frame["a"])


def test_a_named_index_comes_back_as_a_column(tmp_path):
    pytest.importorskip("pyarrow")
    pd.DataFrame({"a": [1, 2]}, index=pd.Index([5, 6], name="id")).to_parquet(tmp_path / "t.pq")
    assert read_table(tmp_path / "t.pq")["id"].tolist() == [5, 6]


def test_absent_keys_of_json_lines_are_missing():
    frame = read_table(text('{"a": 1, "b": "x"}\n{"b": "y", "c": true}\n'))
    assert frame.columns.tolist() == ["a", "b", "c"]
    assert frame["a"].isna().tolist() == [False, True]


def test_a_failed_write_leaves_the_old_file(tmp_path, frame):
    path = tmp_path / "t.npy"
    path.write_bytes(b"precious")
    with pytest.raises(TableError):
        write_table(frame, path)
    assert path.read_bytes() == b"precious"
    assert list(tmp_path.iterdir()) == [path]


def test_writing_follows_links_and_names_bad_places(tmp_path, frame):
    write_table(frame, tmp_path / "real.csv")
    link = tmp_path / "link.csv"
    try:
        link.symlink_to(tmp_path / "real.csv")
    except OSError:
        pytest.skip("no symbolic links here")
    write_table(frame[["count"]], link)
    assert link.is_symlink()
    assert read_table(tmp_path / "real.csv").columns.tolist() == ["count"]
    with pytest.raises(OutputError, match="cannot be written: No such file"):
        write_table(frame, tmp_path / "gone" / "t.csv")
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(OutputError, match="is a directory"):
        write_table(frame, tmp_path / "d.csv")
    with pytest.raises(TableError, match=r"'t\.npz' names no table format"):
        write_table(frame, tmp_path / "t.npz")
    with pytest.raises(TableError, match=r"leave out \.gz"):
        write_table(frame, tmp_path / "t.parquet.gz")


def test_labels_are_attached_in_order(frame):
    frame = frame.set_index(np.array([3, 1, 2, 0]))
    out = attach_labels(frame, np.array([1, 0, -1, 1], dtype=np.int32), [0.5, 1, 0, 0.25])
    assert out.columns.tolist() == [*frame.columns, "cluster", "probability"]
    assert out.index.tolist() == [3, 1, 2, 0]
    assert out["cluster"].tolist() == [1, 0, -1, 1]
    assert out["cluster"].dtype == np.int64
    assert out["probability"].tolist() == [0.5, 1, 0, 0.25]
    assert "cluster" not in frame
    assert attach_labels(frame, [0, 0, 0, 0])["probability"].isna().all()


def test_labels_join_wide_tables_without_a_word():
    frame = pd.concat([pd.DataFrame({f"c{j}": [j, 1]}) for j in range(200)], axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = attach_labels(frame, [1, 0], further=[0.5, 0.25])
    assert found.columns[-3:].tolist() == ["cluster", "probability", "further"]
    assert found["cluster"].tolist() == [1, 0]


def test_labels_never_overwrite(frame):
    labels = [0, 0, 0, 1]
    once = attach_labels(frame, labels)
    with pytest.raises(TableError, match="'cluster': name the new one with cluster_column="):
        attach_labels(once, labels)
    with pytest.raises(TableError, match=r"'probability': .*probability_column="):
        attach_labels(once, labels, cluster_column="c2")
    twice = attach_labels(once, labels, cluster_column="c2", probability_column="p2")
    assert twice.columns.tolist()[-2:] == ["c2", "p2"]
    with pytest.raises(TableError, match="both 'k'"):
        attach_labels(frame, labels, cluster_column="k", probability_column="k")
    with pytest.raises(TableError, match=r"labels of shape \(2,\) for a table of 4 rows"):
        attach_labels(frame, [0, 1])
    with pytest.raises(TableError, match=r"probability of shape \(1,\)"):
        attach_labels(frame, labels, [0.5])
    with pytest.raises(TableError, match="integers needed"):
        attach_labels(frame, [0.5, 0, 0, 0])
