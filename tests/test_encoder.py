"""The table encoder: what each kind of column becomes, what survives JSON."""

import decimal
import io
import json
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asterism.exceptions import AsterismWarning, TableError
from asterism.io.encoder import TableEncoder
from asterism.io.tables import read_table
from encoding import encode, through_json


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(6)],
            "age": [20.0, np.nan, 40.0, 60.0, 20.0, 40.0],
            "colour": ["red", "blue", None, "red", "green", "red"],
            "member": [True, False, True, True, False, True],
            "species": ["b", "a", None, "b", "a", "c"],
        }
    )


def test_mixed_columns_end_to_end(frame):
    encoder = TableEncoder(id_column="id", label_column="species")
    X = encoder.fit_transform(frame)
    assert X.dtype == np.float32
    assert X.flags.c_contiguous
    assert encoder.feature_names_ == [
        *("age", "age_missing", "colour=blue", "colour=green", "colour=red", "colour_missing"),
        "member",
    ]
    half = np.float32(1 / np.sqrt(2))
    np.testing.assert_array_equal(X[:, 1], [0, 1, 0, 0, 0, 0])
    np.testing.assert_array_equal(X[2, 2:6], [0, 0, half, 1])  # as rows 0, 3 and 5, which are red
    np.testing.assert_array_equal(X[1, 2:6], [half, 0, 0, 0])
    assert encoder.labels(frame).tolist() == [1, 0, -1, 1, 0, 2]
    assert encoder.label_names_ == ["a", "b", "c"]
    notes = "\n".join(encoder.notes_)
    for told in (
        "'id' left out: identifier",
        "'species' left out: label",
        "'age': 1 missing, filled from the rows most alike",
        "'colour': 1 missing, filled from the rows most alike",
        "'colour' one-hot encoded: 3 categories",
        "'age_missing' tells where 'age' was missing",
        "numeric columns (2) scaled: (x - mean) / standard deviation",
    ):
        assert told in notes


def test_rows_of_one_length_are_told_of():
    X = np.random.default_rng(0).normal(size=(50, 8))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    told = "rows had one length, as embeddings do"
    assert told in TableEncoder().fit(X).notes_[-1]
    for table, scaling in (
        (X, "none"),
        (2 * np.eye(7)[np.arange(50) % 7], "standard"),  # too few columns
        (2 * np.eye(9)[np.arange(50) % 9], "standard"),  # dummies
        (X * np.arange(1, 51)[:, None], "standard"),
        (np.where(np.arange(400).reshape(50, 8) == 9, np.nan, X), "standard"),
    ):
        assert told not in "".join(TableEncoder(scaling=scaling).fit(table).notes_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        far = X * np.linspace(1e160, 2e160, 50)[:, None]
        assert told not in "".join(TableEncoder().fit(far).notes_)
        shuffled = pd.DataFrame(X, index=np.random.default_rng(0).permutation(50) / 10)
        assert told in TableEncoder().fit(shuffled).notes_[-1]


@pytest.mark.parametrize(
    "column",
    [
        [1, 2, 5],
        np.array([1, 2, 5], dtype=np.uint8),
        pd.array([1, 2, 5], dtype="Int64"),
        pd.array([1, 2, 5], dtype="Float32"),
        [decimal.Decimal(1), decimal.Decimal(2), decimal.Decimal(5)],
        np.array([1, 2.0, 5], dtype=object),
        ["1", " 2 ", "5.0"],
        pd.array(["1", "2", "5"], dtype="string"),
    ],
)
def test_all_sorts_of_numbers_are_numeric(column):
    X = encode({"a": column})
    expected = (np.array([1, 2, 5]) - 8 / 3) / np.std([1, 2, 5])
    np.testing.assert_allclose(X[:, 0], expected, rtol=1e-6)


@pytest.mark.parametrize(
    "column",
    [
        [True, False, True],
        np.array([True, False, True], dtype=object),
        pd.array([True, False, True], dtype="boolean"),
        ["TRUE", "false", "True"],
    ],
)
def test_booleans_are_zero_and_one(column):
    assert encode({"a": column}, scaling="none")[:, 0].tolist() == [1, 0, 1]


def test_missing_cells_of_nullable_columns():
    column = pd.array([1, None, 3, 8], dtype="Int64")
    X = encode({"a": column}, scaling="none")
    assert X.tolist() == [[1, 0], [3, 1], [3, 0], [8, 0]]
    X = encode({"a": pd.array([True, None, False, True], dtype="boolean")}, scaling="none")
    assert X[:, 1].tolist() == [0, 1, 0, 0]


def test_scalings_follow_their_formulas():
    x = np.array([1.0, 2.0, 3.0, 4.0, 100.0])
    quartiles = np.percentile(x, [25, 75])
    expected = {
        "standard": (x - x.mean()) / x.std(),
        "robust": (x - 3.0) / ((quartiles[1] - quartiles[0]) / 1.349),
        "none": x,
    }
    for scaling, wanted in expected.items():
        np.testing.assert_allclose(encode({"a": x}, scaling=scaling)[:, 0], wanted, rtol=1e-6)


def test_robust_scaling_without_a_middle_falls_back_on_the_deviation():
    x = np.array([0.0] * 9 + [1.0])
    np.testing.assert_allclose(encode({"a": x}, scaling="robust")[:, 0], x / x.std(), rtol=1e-6)


@pytest.mark.parametrize(("offset", "spread"), [(1e9, 1e-2), (0, 1e-200), (0, 1e200), (-3e15, 4)])
def test_extreme_numbers_survive(offset, spread):
    x = offset + spread * np.arange(100.0)[::-1]
    X = encode({"a": x})
    np.testing.assert_allclose(X[:, 0], encode({"a": -np.arange(100.0)})[:, 0], atol=1e-4)


def test_below_nine_tenths_texts_are_categories():
    encoder = TableEncoder().fit(pd.DataFrame({"a": ["1", "2"] * 4 + ["x", "y"]}))
    assert encoder.feature_names_ == ["a=1", "a=2", "a=x", "a=y"]


def test_two_categories_are_at_distance_one():
    X = encode({"a": ["x", "y", "z", "x"]})
    distances = np.linalg.norm(X[:, None] - X[None], axis=-1)
    np.testing.assert_allclose(distances[0], [0, 1, 1, 0], rtol=1e-6)


def test_a_category_type_is_never_numeric():
    encoder = TableEncoder().fit(pd.DataFrame({"a": pd.Categorical([3, 1, 3])}))
    assert encoder.feature_names_ == ["a=1", "a=3"]
    # Another reader, another type: the same categories.
    for column in ([1, 3], [1.0, 3.0], ["1", "3"], ["01", "3.0"]):
        X = encoder.transform(pd.DataFrame({"a": column}))
        np.testing.assert_array_equal(X != 0, np.eye(2, dtype=bool))


def test_rare_categories_share_a_column():
    column = ["a"] * 30 + ["b"] * 20 + ["c"] * 3 + ["d"] * 2
    encoder = TableEncoder(max_categories=2).fit(pd.DataFrame({"k": column}))
    assert encoder.feature_names_ == ["k=a", "k=b", "k=(other)"]
    assert any("and 2 rarer ones together as other" in note for note in encoder.notes_)
    X = encoder.transform(pd.DataFrame({"k": ["a", "c", "never seen"]}))
    np.testing.assert_array_equal(X != 0, [[1, 0, 0], [0, 0, 1], [0, 0, 1]])


def test_columns_that_tell_nothing_are_dropped():
    frame = pd.DataFrame(
        {
            "same": [7, 7, 7],
            "word": ["x", "x", "x"],
            "void": [None, None, None],
            "nan": [np.nan] * 3,
            "there": ["x", None, "x"],
            "seven": [7, np.nan, 7],
            "x": [1, 2, 4],
        }
    )
    encoder = TableEncoder().fit(frame)
    assert encoder.feature_names_ == ["there_missing", "seven_missing", "x"]
    assert through_json(encoder).transform(frame)[:, :2].tolist() == [[0, 0], [1, 1], [0, 0]]
    for told in (
        "'same' dropped: always 7",
        "'word' dropped: always 'x'",
        "'void' dropped: every cell is missing",
        "'nan' dropped: every cell is missing",
    ):
        assert told in encoder.notes_
    with pytest.raises(TableError, match="no column is left to cluster on: 'same' dropped"):
        encode({"same": [7, 7]})
    with pytest.raises(TableError, match="no column is left"):
        encode({"x": [1, 2]}, drop=["x"])
    with pytest.raises(TableError, match="no rows"):
        encode({"x": []})


def test_names_are_checked(frame):
    for options, message in (
        ({"id_column": "idd"}, r"id_column asks for column 'idd'.*did you mean 'id'\?.*'colour'"),
        ({"label_column": "specie"}, "label_column asks for .*did you mean 'species'"),
        ({"drop": ["colour", "zzz"]}, "drop asks for column 'zzz'"),
        ({"drop": ["colour,age"]}, r"'colour,age'.*give each column by itself"),
        ({"drop": "age"}, r"give a list, \['age'\]"),
        ({"scaling": "minmax"}, "scaling='minmax' is none of standard, robust, none"),
        ({"max_categories": 0}, "max_categories=0"),
    ):
        with pytest.raises(TableError, match=message):
            TableEncoder(**options).fit(frame)


def test_new_tables_need_the_fitted_columns_and_no_others(frame):
    encoder = TableEncoder(id_column="id", label_column="species").fit(frame)
    X = encoder.transform(frame)
    shuffled = frame[["colour", "member", "age"]].assign(extra="?")
    np.testing.assert_array_equal(encoder.transform(shuffled), X)
    assert encoder.labels(shuffled) is None
    with pytest.raises(TableError, match="fitted on column 'age', which the table does not have"):
        encoder.transform(frame.drop(columns="age"))
    unnamed = frame.set_axis([f"x{j}" for j in range(frame.shape[1])], axis=1)
    with pytest.raises(TableError, match=r"if the first row of a text table has them, header=True"):
        encoder.transform(unnamed)
    with pytest.raises(TableError, match=r"columns without names, by their places: rename"):
        TableEncoder().fit(np.eye(3)).transform(frame)
    with pytest.raises(TableError, match="column 'age', row 2: 'old' is not a number"):
        encoder.transform(frame.assign(age=["1", "old", "2", "3", "4", "5"]))
    assert encoder.transform(frame[:0]).shape == (0, X.shape[1])


def test_rows_are_encoded_alone_as_in_company(frame):
    encoder = TableEncoder(id_column="id", label_column="species").fit(frame)
    X = encoder.transform(frame)
    for i in range(len(frame)):
        np.testing.assert_array_equal(encoder.transform(frame[i : i + 1])[0], X[i])


def test_missing_cells_where_training_had_none():
    encoder = TableEncoder(scaling="none").fit(pd.DataFrame({"a": [1, 2, 6], "k": ["x", "x", "y"]}))
    X = encoder.transform(pd.DataFrame({"a": [np.nan], "k": [None]}))
    np.testing.assert_allclose(X, [[2, 1 / np.sqrt(2), 0]], rtol=1e-6)


def test_labels_are_coded_in_order():
    frame = pd.DataFrame({"x": [1, 2, 4, 8], "y": [10, 9, -1, 10]})
    encoder = TableEncoder(label_column="y").fit(frame)
    assert encoder.label_names_ == ["9", "10"]
    codes = encoder.labels(frame)
    assert codes.dtype == np.int64
    assert codes.tolist() == [1, 0, -1, 1]
    with pytest.warns(AsterismWarning, match=r"classes unknown to the encoder \('11'\)"):
        assert encoder.labels(frame.assign(y=[11, 9.0, np.nan, 10])).tolist() == [-1, 0, -1, 1]
    assert TableEncoder().fit(frame).labels(frame) is None


def test_arrays_and_polars_frames_are_encoded():
    polars = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    x = np.array([[1.0, 2.0], [3.0, 5.0]])
    X = TableEncoder().fit_transform(x)
    np.testing.assert_array_equal(X, [[-1, -1], [1, 1]])
    np.testing.assert_array_equal(TableEncoder().fit_transform(polars.DataFrame(x)), X)


def test_text_and_typed_files_give_the_same_features(tmp_path, frame):
    pytest.importorskip("pyarrow")
    frame.to_parquet(tmp_path / "t.parquet")
    encoder = TableEncoder(id_column="id", label_column="species")
    X = encoder.fit_transform(read_table(tmp_path / "t.parquet"))
    csv = read_table(io.BytesIO(frame.to_csv(index=False).encode()))
    np.testing.assert_array_equal(encoder.transform(csv), X)
    np.testing.assert_array_equal(through_json(encoder).fit_transform(csv), X)


def test_the_state_is_checked(frame):
    encoder = TableEncoder(id_column="id", scaling="robust")
    with pytest.raises(TableError, match="not fitted"):
        encoder.transform(frame)
    with pytest.raises(TableError, match="not fitted"):
        encoder.to_dict()
    state = encoder.fit(frame).to_dict()
    assert repr(TableEncoder.from_dict(state)) == "TableEncoder(id_column='id', scaling='robust')"
    with pytest.raises(TableError, match="found 99"):
        TableEncoder.from_dict({**state, "table_encoder": 99})
    with pytest.raises(TableError, match="found None"):
        TableEncoder.from_dict({})
    with pytest.raises(TableError, match="damaged: 'features'"):
        TableEncoder.from_dict({k: v for k, v in state.items() if k != "features"})
    with pytest.raises(TableError, match="damaged"):
        TableEncoder.from_dict({**state, "features": [{"kind": "numeric"}]})


def test_fitting_leaves_the_table_alone(frame):
    before = frame.copy(deep=True)
    TableEncoder(id_column="id", label_column="species").fit_transform(frame)
    pd.testing.assert_frame_equal(frame, before)


numbers = st.one_of(st.integers(-(2**60), 2**60), st.floats(-1e6, 1e6).map(lambda x: round(x, 3)))
words = st.one_of(st.none(), st.text(max_size=3), st.sampled_from(["x", "1", "?", "True", "01"]))


def test_a_loaded_encoder_rounds_as_the_fitted_one_did():
    """Squares of cells this large cancel, and which rows are nearest hangs on the last digit."""
    numbers = [None, None, 0, 5, 0, 140667657, -215_803_853_012_991_984, None]
    frame = pd.DataFrame({"a": numbers, "k": [None, None, "0", "0", "0", ":", None, None]})
    encoder = TableEncoder(scaling="none", max_categories=3).fit(frame)
    new = pd.DataFrame({"a": [0] * 5, "k": pd.Series([None] * 5, dtype=object)})
    np.testing.assert_array_equal(through_json(encoder).transform(new), encoder.transform(new))


@settings(max_examples=60, deadline=None)
@given(data=st.data(), n=st.integers(1, 12), scaling=st.sampled_from(["standard", "none"]))
def test_the_dictionary_holds_everything(data, n, scaling):
    def draw(cells, rows):
        return data.draw(st.lists(cells, min_size=rows, max_size=rows))

    holes = st.one_of(st.none(), numbers)
    frame = pd.DataFrame({"a": draw(holes, n), "k": draw(words, n), "y": draw(words, n)})
    encoder = TableEncoder(label_column="y", scaling=scaling, max_categories=3)
    try:
        encoder.fit(frame)
    except TableError:
        return
    copy = through_json(encoder)
    assert copy.to_dict() == encoder.to_dict()
    assert copy.feature_names_ == encoder.feature_names_
    kinds = {feature.column: feature.kind for feature in encoder.features_}
    cells = words if kinds.get("k") == "categorical" else numbers
    new = pd.DataFrame({"a": draw(numbers, 5), "k": draw(cells, 5), "y": draw(words, 5)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AsterismWarning)
        for table in (frame, new):
            X = encoder.transform(table)
            assert np.isfinite(X).all()
            np.testing.assert_array_equal(copy.transform(table), X)
            np.testing.assert_array_equal(copy.labels(table), encoder.labels(table))


def test_numbers_that_are_names_are_categories_when_asked():
    frame = pd.DataFrame({"zip": [10115, 80331] * 15, "age": np.linspace(20, 60, 30)})
    encoder = TableEncoder(categorical=["zip"]).fit(frame)
    assert encoder.feature_names_ == ["zip=10115", "zip=80331", "age"]
    again = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    np.testing.assert_array_equal(again.transform(frame), encoder.transform(frame))
    with pytest.raises(TableError, match="categorical asks for"):
        TableEncoder(categorical=["city"]).fit(frame)
    with pytest.raises(TableError, match="give a list"):
        TableEncoder(categorical="zip").fit(frame)


def test_odd_cells_of_numbers_are_numbers_to_a_reader():
    frame = pd.DataFrame(
        {"age": [str(age) for age in range(20, 59)] + ["unknown"], "id": range(40)}
    )
    readable = TableEncoder(id_column="id").fit(frame).readable(frame)
    assert readable.columns.tolist() == ["age"]
    assert readable["age"].dtype == float
    assert readable["age"].isna().sum() == 1
