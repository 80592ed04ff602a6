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
    again = TableEncoder.from_dict(state)
    np.testing.assert_array_equal(again.transform(frame), encoder.transform(frame))


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


def test_donors_are_few_and_the_same_every_time():
    assert np.array_equal(choose_donors(5000, 20), choose_donors(5000, 20))
    assert len(choose_donors(5000, 20)) == 1000
    assert len(np.unique(choose_donors(5000, 2000))) == 100


def test_clusters_of_a_table_with_gaps_and_of_new_rows(tmp_path):
    frame, _, _, kind = two_kinds(share=0.35)
    found = cluster_table(frame, "kmeans", 2)
    agreed = np.mean(found.labels == kind)
    assert max(agreed, 1 - agreed) > 0.97
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
