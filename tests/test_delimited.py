"""Text tables: separators, headers, what is missing, what is ragged."""

import numpy as np
import pytest

from asterism.exceptions import TableError
from asterism.io.cells import MISSING_TOKENS
from asterism.io.delimited import detect_separator
from asterism.io.tables import read_table
from encoding import text


@pytest.mark.parametrize(
    ("rows", "header"),
    [
        ("a,b\n1,2\n", True),
        ("2001,2002\n3,4\n", False),  # all numeric is data, whatever it looks like
        ("id,2001,2002\nx,3,4\ny,5,6\n", False),  # a number, and no text above numbers
        ("5.1,setosa\n4.9,virginica\n", False),
        ("length,species\n4.9,setosa\n", True),
        (",length\n0,4.9\n1,5.0\n", True),  # an unnamed index
        ("?,2\n3,4\n", False),
        ("0,1,2\n0.5,3,4\n1,2,2\n", True),  # columns that pandas has counted
        ("1,2,3\n0.5,3,4\n1,2,2\n", True),
        (",0,1,2\n0,0.5,3,4\n1,1,2,2\n", True),  # behind an unnamed index
        ("0,1\n0.5,3\n", False),
        ("0,1,2\n2,1,0\n1,1,2\n", False),  # codes of categories
        ("0,1,2.0\n0.5,3,4\n", False),
        ("0,1,2,3,4,5,6,7\n16,0,3,2,9,9,1,0\n", True),  # pixels
        ("0,1,2,3,4,5,6,7\n8,9,10,11,12,13,14,15\n", False),  # goes on counting
        ("1,2,3,4,5,6,7,8\n9,10,11,12,13,14,15,16\n", False),
        ("0,1,2,3,4,5,6,7\n1,0,1,2,3,4,5,6\n2,1,0,1,2,3,4,5\n", False),  # distances
        ("0,1,2,3,4,5,6,7\n2,1,0,3,4,5,7,6\n", False),  # ranks
        ("0,1,2,kind\n0.5,3,4,a\n1,2,2,b\n", True),
        ("word,0,1,2\nhouse,3,4,0.25\ntree,0,0,1.5\n", True),
        ("0,1,2,a\n0.5,3,4,a\n1,2,2,b\n", False),  # a is met again
        ("a,0,1,2,a\nc,0.5,3,4,b\n", False),
        (",0,1,2\n0,3,4,5\n1,6,7,0\n", True),  # whole, but behind an unnamed index
        ("0,1,2\nred,big,old\nblue,small,new\n", True),
        ("0,1,2\n1,2,odd\n2,0,1\n", False),
        ("0,1,2,3,4,5,6,7\n", False),
        ("length,width\n?,?\n1,2\n", True),
        ("colour,size\nred,big\nblue,small\n", True),
        ("red,big\nblue,small\nred,small\n", False),  # red occurs again
        ("red,red\nblue,small\n", False),
        ("red,\nblue,small\n", False),
    ],
)
def test_header_detection(rows, header):
    frame = read_table(text(rows))
    assert len(frame) == rows.count("\n") - header
    assert (frame.columns[-1] == f"x{frame.shape[1] - 1}") == (not header)


def test_counted_columns_can_be_data():
    rows = "0,1,2\n0.5,3,4\n"
    assert read_table(text(rows)).columns.tolist() == ["0", "1", "2"]
    assert read_table(text(rows), header=False).iloc[0].tolist() == [0, 1, 2]


def test_header_can_be_forced():
    assert read_table(text("1,2\n3,4\n"), header=True).columns.tolist() == ["1", "2"]
    assert read_table(text("a,b\n3,4\n"), header=False).iloc[0].tolist() == ["a", "b"]
    with pytest.raises(TableError, match="header='no'"):
        read_table(text("a,b\n3,4\n"), header="no")


@pytest.mark.parametrize("sep", [",", ";", "\t", "|"])
def test_separator_detection(sep):
    lines = [sep.join(["a", "b", "c"]), sep.join(["1", '"x, y; z|w"', "2"]), "", sep.join("345")]
    frame = read_table(text("\n".join(lines)))
    assert frame.columns.tolist() == ["a", "b", "c"]
    assert frame["b"].tolist() == ["x, y; z|w", "4"]
    assert frame["c"].tolist() == [2, 5]
    wide = sep.join(["0.123456789"] * 12_000)  # longer than the csv module lets one cell be
    assert read_table(text(f"{wide}\n{wide}\n")).shape == (2, 12_000)


def test_separator_of_names_with_commas_and_of_decimal_commas():
    assert detect_separator(["Smith, Ann;3;4", "Jones, Bob;5;6"]) == ";"
    assert detect_separator(["1,5;2,5", "1,0;3,5"]) == ";"
    frame = read_table(text("1,5;2,5\n1,0;3,5\n"), decimal=",")
    np.testing.assert_array_equal(frame.to_numpy(), [[1.5, 2.5], [1.0, 3.5]])


def test_runs_of_blanks_separate_numbers_but_not_words():
    points = read_table(text("   664159   550946\n   665845   557965\n"))
    assert points.to_numpy().tolist() == [[664159, 550946], [665845, 557965]]
    towns = read_table(text("town\nNew York\nLos Angeles\n"))
    assert towns["town"].tolist() == ["New York", "Los Angeles"]
    with pytest.raises(TableError, match=r"line 2: expected 2 fields .* found 1"):
        read_table(text("1 2\n3\n4 5\n6 7\n8 9\n"))


def test_missing_tokens_are_missing():
    cells = sorted(MISSING_TOKENS)
    frame = read_table(text("a,b\n1,2\n" + "".join(f"{cell},0\n" for cell in cells)))
    assert frame["a"].isna().sum() == len(cells)
    for rows in ("a, b\n1, ?\n2, 3\n", "a,b\n1,\n3,4\n"):
        assert read_table(text(rows))["b"].isna().tolist() == [True, False]


def test_blank_lines_and_byte_order_marks_are_skipped():
    frame = read_table(text(b"\xef\xbb\xbfa,b\r\n\r\n1,2\r\n\r\n"))
    assert frame.to_dict("list") == {"a": [1], "b": [2]}


def test_other_encodings(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("größe,b\n1,2\n".encode("latin-1"))
    with pytest.raises(TableError, match=r"t.csv is not text in UTF-8: .*encoding='latin-1'"):
        read_table(path)
    assert read_table(path, encoding="latin-1").columns[0] == "größe"
    path.write_bytes("größe,b\n1,2\n".encode("utf-16"))
    with pytest.raises(TableError, match="encoding='utf-16'"):
        read_table(path)
    assert read_table(path, encoding="utf-16").columns[0] == "größe"
    with pytest.raises(TableError, match="encoding='klingon'"):
        read_table(path, encoding="klingon")
    path.write_bytes(b"a,b\n" + b"1,x\n" * 100_000 + b"2,\xff\n")  # far down
    with pytest.raises(TableError, match="not text in UTF-8"):
        read_table(path)


@pytest.mark.parametrize(
    ("bad", "line"),
    [(["1,2,3", "4,5"], 3), (["1,2,3", "4,5,6,7"], 3), (["4,5,6,7", "1,2,3"], 2)],
)
@pytest.mark.parametrize("far", [0, 500])
def test_ragged_rows_are_named(bad, line, far):
    rows = ["a,b,c", *(["7,8,9"] * far), *bad, "1,2,3"]
    with pytest.raises(TableError, match=f"line {line + far}: expected 3 fields"):
        read_table(text("\n".join(rows)), sep=",")
