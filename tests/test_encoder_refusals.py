"""Columns that the table encoder refuses or warns of."""

import datetime
import warnings

import numpy as np
import pandas as pd
import pytest

from asterism.exceptions import AsterismWarning, TableError
from asterism.io.encoder import TableEncoder
from encoding import encode, through_json


def test_numbers_beyond_single_precision_are_refused():
    with pytest.raises(TableError, match="'a', row 2: 1e\\+60 is too large"):
        encode({"a": [1.0, 1e60]}, scaling="none")
    with pytest.raises(TableError, match="'a' reaches 1e\\+308"):
        encode({"a": [1e308, -1e308, 1e308, 1e308]})


@pytest.mark.parametrize("column", [[1.0, 2.0, -np.inf], ["1", "2", "-inf"]])
def test_infinities_are_refused(column):
    with pytest.raises(TableError, match="column 'a', row 3: -inf is not a finite number"):
        encode({"a": column, "b": [1, 2, 3]})
    encoder = TableEncoder().fit(pd.DataFrame({"a": [1, 2]}))
    with pytest.raises(TableError, match="column 'a', row 3"):
        encoder.transform(pd.DataFrame({"a": column}))


def test_odd_texts_among_numbers_count_as_missing():
    column = [str(i) for i in range(30)] + ["?", "NA", "", None, "<5", "unknown"]
    frame = pd.DataFrame({"a": column})
    encoder = TableEncoder(scaling="none").fit(frame)
    X = encoder.transform(frame)
    assert encoder.feature_names_ == ["a", "a_missing"]
    assert X[30:].tolist() == [[14.5, 1]] * 6
    assert "'a' holds numbers, but for '<5', 'unknown': taken for missing" in encoder.notes_
    again = through_json(encoder).transform(pd.DataFrame({"a": ["<5", "7"]}))
    assert again.tolist() == [[14.5, 1], [7, 0]]
    with pytest.raises(TableError, match="column 'a', row 2: '<6' is not a number"):
        encoder.transform(pd.DataFrame({"a": ["<5", "<6"]}))


def test_unknown_categories_are_zeros_with_a_warning():
    encoder = TableEncoder().fit(pd.DataFrame({"a": ["x", "y"]}))
    with pytest.warns(AsterismWarning, match=r"'a' has categories unknown .*\('z'\), 1") as caught:
        X = encoder.transform(pd.DataFrame({"a": ["z", "x"]}))
    assert X.tolist() == [[0, 0], [np.float32(1 / np.sqrt(2)), 0]]
    assert caught[0].filename == __file__


def test_identifiers_are_refused():
    ids = [f"p{i}" for i in range(21)]
    with pytest.raises(TableError, match=r"'who' looks like an identifier.*--id who.*--drop who"):
        encode({"who": ids, "x": np.arange(21) ** 2})
    assert encode({"who": ids, "x": np.arange(21) ** 2}, id_column="who").shape == (21, 1)
    assert encode({"who": ids[:20]}).shape == (20, 20)
    with pytest.raises(TableError, match="decimal=','"):
        encode({"who": [f"{i},5" for i in range(30)]})


def test_row_numbers_are_warned_of():
    for start in (0, 1, 1000):
        with pytest.warns(AsterismWarning, match="'n' merely counts the rows.*--id n"):
            encode({"n": np.arange(start, start + 30)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encode({"n": np.arange(0, 60, 2)})


@pytest.mark.parametrize(
    "column",
    [
        pd.date_range("2024-01-01", periods=3),
        pd.date_range("2024-01-01", periods=3, tz="UTC"),
        pd.to_timedelta([1, 2, 3], unit="D"),
        pd.period_range("2024-01", periods=3, freq="M"),
        ["2024-01-01", "2024-01-02", "2024-12-31"],
        ["2024-01-01T10:00:00Z", "2024-01-02 11:30", "2024-12-31T01:02:03.5+01:00"],
        ["31/12/2024", "1/2/2024", "03/04/2025"],
        ["12.31.2024", "01.02.2024 10:30", "3.4.2025"],
        ["2024/12/31", "2024/1/2", "2025/03/04"],
        [datetime.date(2024, 1, 1)] * 3,
    ],
)
def test_dates_are_refused(column):
    with pytest.raises(TableError, match=r"'when' holds dates.*age in days.*--drop when"):
        encode({"when": column, "x": [1, 2, 4]})
    assert encode({"when": column, "x": [1, 2, 4]}, drop=["when"]).shape == (3, 1)


def test_columns_of_other_things_are_refused():
    with pytest.raises(TableError, match=r"'a' holds values of type list.*drop"):
        encode({"a": [[1], [2]]})
    with pytest.raises(TableError, match="complex"):
        encode({"a": [1j, 2j]})
