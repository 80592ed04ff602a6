"""What sets clusters apart, against answers computed by hand."""

import numpy as np
import pandas as pd
import pytest

from asterism.plotting import contrasts, prototypes, summarise_clusters

# --- contrasts -----------------------------------------------------------------------------


def test_numeric_contrast_is_the_standardised_difference_of_means():
    # All rows: mean 4, variance ((9 + 4 + 1) + (36)) / 4 = 12.5.
    table = pd.DataFrame({"size": [1.0, 2.0, 3.0, 10.0]})
    found = contrasts(table, [0, 0, 0, 1])
    (first,), (second,) = found[0], found[1]
    assert (first.feature, first.inside, first.outside) == ("size", 2.0, 10.0)
    assert first.effect == pytest.approx(-8 / np.sqrt(12.5))
    assert second.effect == pytest.approx(8 / np.sqrt(12.5))


def test_missing_numbers_are_left_out_of_the_means():
    table = pd.DataFrame({"a": [1.0, np.nan, 3.0, np.inf], "b": pd.array([1, None, 3, 5], "Int64")})
    by_name = {contrast.feature: contrast for contrast in contrasts(table, [0, 0, 1, 1])[0]}
    assert (by_name["a"].inside, by_name["a"].outside) == (1.0, 3.0)
    assert (by_name["b"].inside, by_name["b"].outside) == (1.0, 4.0)


def test_categorical_contrast_is_the_over_represented_value():
    table = pd.DataFrame({"colour": ["red", "red", "red", "blue", "blue", "red"]})
    found = contrasts(table, [0, 0, 0, 1, 1, 1])
    assert (found[0][0].value, found[0][0].inside) == ("red", 1.0)
    assert found[0][0].outside == pytest.approx(1 / 3)
    assert found[0][0].effect == pytest.approx(np.pi - 2 * np.arcsin(np.sqrt(1 / 3)))
    assert (found[1][0].value, found[1][0].outside) == ("blue", 0.0)


def test_a_missing_category_is_a_value():
    table = pd.DataFrame({"name": [None, np.nan, "x", "x"]})
    assert contrasts(table, [0, 0, 1, 1])[0][0].value == "(missing)"


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([True, True, False, False]),
        pd.Series(["a", "a", "b", "b"], dtype="category"),
        pd.Series(["a", "a", "b", "b"], dtype="string"),
        pd.Series([1, 1, "b", "b"], dtype=object),
    ],
)
def test_text_categories_and_booleans_are_categorical(column):
    (contrast,) = contrasts(pd.DataFrame({"c": column}), [0, 0, 1, 1])[0]
    assert contrast.value == str(column[0])
    assert contrast.effect == pytest.approx(np.pi)


def test_constant_columns_and_dates_set_nothing_apart():
    table = pd.DataFrame(
        {
            "constant": [0.1] * 4,
            "large": [1e12] * 4,
            "word": ["same"] * 4,
            "day": pd.to_datetime(["2020-01-01", "2020-01-02", "2021-01-01", "2021-01-02"]),
            "empty": [np.nan] * 4,
        }
    )
    assert contrasts(table, [0, 0, 1, 1]) == {0: (), 1: ()}


def test_contrasts_come_in_order_and_at_most_top():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 50)
    table = pd.DataFrame({f"f{j}": labels * j + rng.normal(size=100) for j in range(8)})
    found = contrasts(table, labels, top=3)[1]
    assert [contrast.feature for contrast in found] == ["f7", "f6", "f5"]


def test_a_single_cluster_has_nothing_to_differ_from():
    table = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})
    assert contrasts(table, [0, 0]) == {0: ()}
    assert contrasts(table, [-1, -1]) == {}


def test_noise_counts_as_outside():
    table = pd.DataFrame({"a": [0.0, 0.0, 8.0], "b": ["x", "x", "y"]})
    found = contrasts(table, [0, 0, -1])
    assert set(found) == {0}
    assert {contrast.outside for contrast in found[0]} == {8.0, 0.0}


def test_repeated_column_names_are_told_apart_by_place():
    table = pd.DataFrame([[0.0, 5.0], [1.0, 5.0]], columns=["x", "x"])
    assert len(contrasts(table, [0, 1])[0]) == 1


def test_identifiers_do_not_dominate():
    labels = np.repeat([0, 1], 500)
    table = pd.DataFrame({"id": [f"row {i}" for i in range(1000)], "x": labels * 1.0})
    assert [contrast.feature for contrast in contrasts(table, labels)[0]] == ["x"]


def test_means_agree_with_pandas_far_from_zero():
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 4, 300)
    values = pd.Series(1e8 + labels + rng.normal(size=300))
    found = contrasts(pd.DataFrame({"v": values}), labels)
    for k in (0, 3):
        inside, outside = values[labels == k].mean(), values[labels != k].mean()
        expected = (inside - outside) / values.std(ddof=0)
        assert found[k][0].effect == pytest.approx(expected, rel=1e-6)


# --- prototypes and summaries --------------------------------------------------------------


def test_prototypes_are_nearest_to_the_mean_and_skip_noise():
    X = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 0.1], [50.0, 50.0], [9.0, 9.0]])
    assert prototypes(X, [5, 5, 5, -1, 7], 2) == {5: (2, 0), 7: (4,)}


def test_summaries_hold_sizes_shares_and_confidence_with_noise_last():
    X = np.arange(5.0)[:, None]
    found = summarise_clusters(
        X, [1, 0, 0, -1, 0], pd.DataFrame(X), probability=[0.5, 1.0, 0.7, 0.0, 0.7]
    )
    assert [summary.label for summary in found] == [0, 1, -1]
    assert [summary.size for summary in found] == [3, 1, 1]
    assert [summary.share for summary in found] == pytest.approx([0.6, 0.2, 0.2])
    assert found[0].mean_probability == pytest.approx(0.8)
    assert (found[2].mean_probability, found[2].prototypes, found[2].contrasts) == (None, (), ())
