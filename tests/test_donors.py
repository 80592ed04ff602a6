"""Missing cells filled from the rows most alike."""

import json

import numpy as np
import pandas as pd
import pytest

from asterism import cluster_table
from asterism.exceptions import TableError
from asterism.io import TableEncoder
from asterism.io.donors import choose_donors, fill_from_donors
from asterism.pipeline import TableModel


def two_kinds(n=200, share=0.3, seed=0):
    """Two kinds of rows, told apart by every column, with gaps; and the table without gaps."""
    chance = np.random.default_rng(seed)
    kind = np.arange(n) % 2
    whole = pd.DataFrame({f"x{j}": 8 * kind + chance.normal(size=n) for j in range(4)})
    whole["letter"] = np.where(kind == 1, "a", "b")
    gone = chance.random(whole.shape) < share
    gone[gone.all(axis=1), 0] = False
    return whole.mask(pd.DataFrame(gone, columns=whole.columns)), whole, gone, kind


def test_gaps_are_filled_by_rows_of_the_same_kind_and_not_half_way():
    frame, _, gone, kind = two_kinds()
    encoder = TableEncoder(scaling="none")
    X = encoder.fit_transform(frame)
    place = encoder.feature_names_.index("x1")
    filled = X[gone[:, 1], place]
    assert np.abs(filled - 8 * kind[gone[:, 1]]).max() < 3
    a = encoder.feature_names_.index("letter=a")
    lost = gone[:, 4]
    np.testing.assert_allclose(X[lost, a] * np.sqrt(2), kind[lost], atol=0.4)
    by_column = TableEncoder(scaling="none", missing="column").fit_transform(frame)
    assert len(np.unique(by_column[gone[:, 1], place])) == 1
    present = ~np.isnan(frame["x1"])
    np.testing.assert_array_equal(X[present, place], by_column[present, place])


def test_a_row_is_filled_alike_alone_in_company_and_after_a_journey():
    frame, *_ = two_kinds()
    encoder = TableEncoder().fit(frame)
    X = encoder.transform(frame)
    for rows in (slice(3, 4), slice(0, 50)):
        np.testing.assert_allclose(encoder.transform(frame.iloc[rows]), X[rows], atol=1e-6)
    state = json.loads(json.dumps(encoder.to_dict(), allow_nan=False))
    again = TableEncoder.from_dict(state)
    np.testing.assert_array_equal(again.transform(frame), X)
    assert again.missing == "neighbours"


def test_models_saved_before_fill_by_the_column():
    frame, *_ = two_kinds()
    encoder = TableEncoder(missing="column").fit(frame)
    state = encoder.to_dict()
    for name in ("missing", "donors"):
        state.pop(name)
    state["table_encoder"] = 1
    again = TableEncoder.from_dict(state)
    np.testing.assert_array_equal(again.transform(frame), encoder.transform(frame))
    assert again.missing == "column"


def test_complete_tables_keep_no_rows_and_fill_new_gaps_by_the_column():
    _, whole, *_ = two_kinds()
    encoder = TableEncoder(scaling="none").fit(whole)
    assert encoder.to_dict()["donors"] is None
    new = whole.iloc[:1].copy()
    new.loc[0, "x0"] = np.nan
    assert encoder.transform(new)[0, 0] == pytest.approx(whole["x0"].median(), rel=1e-5)


def test_rows_without_a_cell_and_cells_without_a_donor_stay():
    X = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    missing = np.array([[True, True, True], [True, False, True]])
    donors = np.array([[4.0, 2.0, np.nan], [6.0, 9.0, np.nan]])
    fill_from_donors(X, missing, donors)
    assert X.tolist() == [[1.0, 2.0, 3.0], [4.0, 2.0, 3.0]]


def test_donors_that_share_no_column_give_nothing():
    X = np.array([[7.0, 5.0, 7.0]])
    donors = np.array([[100.0, np.nan, 1.0], [103.0, np.nan, 2.0]])
    fill_from_donors(X, np.array([[True, False, True]]), donors)
    assert X.tolist() == [[7.0, 5.0, 7.0]]


def test_cells_that_few_donors_have_are_still_taken_from_the_nearest_of_these():
    chance = np.random.default_rng(0)
    kind = np.arange(400) % 2
    donors = 10.0 * kind[:, None] + chance.normal(size=(400, 3))
    donors[chance.random(400) > 0.1, 2] = np.nan
    X = donors.copy()
    X[:, 2] = 5.0
    fill_from_donors(X, np.isnan(donors), donors)
    gaps = np.isnan(donors[:, 2])
    assert np.abs(X[gaps, 2] - 10 * kind[gaps]).max() < 3


def test_large_offsets_and_wide_categories_do_not_blur_who_is_alike():
    chance = np.random.default_rng(1)
    kind = np.arange(200) % 2
    x = (1e6 + 8 * kind[:, None] + chance.normal(size=(200, 2))).astype(np.float32)
    donors = x.astype(np.float64)
    x[:100, 1] = 0
    gone = np.zeros((200, 2), dtype=bool)
    gone[:100, 1] = True
    donors[:100, 1] = np.nan
    fill_from_donors(x, gone, donors)
    assert np.abs(x[:100, 1] - 1e6 - 8 * kind[:100]).max() < 4
    # A category of many levels is one column: differing there is no reason to be alike.
    row = np.r_[0.0, np.eye(25)[0], 0.0][None]
    near, far = np.r_[0.3, np.full(25, np.nan), 1.0], np.r_[1.0, np.eye(25)[1], 2.0]
    hidden = np.zeros(row.shape, dtype=bool)
    hidden[0, -1] = True
    fill_from_donors(row, hidden, np.stack([near, far]), [1, 25, 1])
    assert row[0, -1] == 1.0


@pytest.mark.parametrize("damage", [{"float32": "?"}, {"shape": [3, 5]}, {"shape": [1, -1]}, {}])
def test_damaged_donors_are_refused(damage):
    state = TableEncoder().fit(two_kinds()[0]).to_dict()
    state["donors"] = {**state["donors"], **damage} if damage else {"shape": [1, 5]}
    with pytest.raises(TableError, match="damaged"):
        TableEncoder.from_dict(state)


def test_an_oversized_cell_is_reported_with_its_row():
    frame = pd.DataFrame({"x": np.ones(3000), "y": np.arange(3000) % 7})
    frame.loc[2612, "x"], frame.loc[5, "y"] = 1e300, np.nan
    with pytest.raises(TableError, match="row 2613"):
        TableEncoder(scaling="none").fit(frame)


def test_donors_are_few_and_the_same_every_time():
    assert np.array_equal(choose_donors(5000, 20), choose_donors(5000, 20))
    assert len(choose_donors(5000, 20)) == 1000
    assert len(np.unique(choose_donors(5000, 2000))) == 100


def test_clusters_of_a_table_with_gaps_and_of_new_rows(tmp_path):
    frame, _, _, kind = two_kinds(share=0.5)

    def agreement(missing):
        labels = cluster_table(frame, "kmeans", 2, missing=missing).labels
        return max(np.mean(labels == kind), np.mean(labels != kind))

    assert agreement("neighbours") > agreement("column")
    found = cluster_table(frame, "kmeans", 2)
    found.model.save(tmp_path / "model")
    model = TableModel.load(tmp_path / "model")
    again = model.predict(frame)["cluster"].to_numpy()
    assert np.array_equal(again, found.labels)
    assert "from the rows most alike" in "\n".join(found.notes)
    by_column = cluster_table(frame, "kmeans", 2, missing="column")
    assert "with the median" in "\n".join(by_column.notes)


def test_an_unknown_way_to_fill_is_refused():
    with pytest.raises(TableError, match="missing='mean' is none of neighbours, column"):
        TableEncoder(missing="mean").fit(two_kinds()[0])
