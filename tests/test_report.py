"""The page of a report against what may break it."""

import re
import time
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from asterism.exceptions import DataError
from asterism.plotting import write_report
from asterism.plotting.belief import confidence_sentence, count_sentence
from asterism.plotting.page import format_column, format_value

VOID = {"meta", "br", "image", "link", "path", "use"}


class Outline(HTMLParser):
    """Tags and text of a page; fails on tags that do not nest."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.words, self.ids = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.ids += [value for name, value in attributes if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def report(tmp_path, **arguments):
    path = write_report(tmp_path / "report.html", **({"method": "DEC"} | arguments))
    return path.read_text(encoding="utf-8")


# --- numbers -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-2.5, "-2.5"),
        (123456.789, "123,457"),
        (np.int64(7), "7"),
        (True, "True"),
        ("12", "12"),
        (pd.NaT, "–"),
        (pd.NA, "–"),
        (float("inf"), "inf"),
        ([1, 2], "[1, 2]"),
        ("x" * 100, "x" * 79 + "…"),
    ],
)
def test_values_are_formatted(value, text):
    assert format_value(value) == text


def test_columns_share_their_decimals():
    assert format_column([5.0, 4.25, float("nan"), "a"]) == ["5.00", "4.25", "–", "a"]
    assert format_column([1e-9, 2.0]) == ["1e-09", "2"]
    assert format_column([0.00012, 20000.5]) == ["0.00012", "20,000"]


# --- the page ------------------------------------------------------------------------------


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 30)
    return rng.normal(size=(90, 4)) + 6 * labels[:, None], labels


def test_the_page_tells_everything_given(tmp_path, rows):
    X, labels = rows
    text = Outline(
        report(
            tmp_path,
            X=X,
            labels=labels,
            title="Stars",
            probability=np.full(90, 0.75),
            parameters={"random_state": 7, "lr": 0.001},
            notes=["Two rows were dropped."],
            history=[{"step": i, "loss": 1.0 / (i + 1)} for i in range(30)],
            moves=[
                {"move": "split", "n_before": 1, "n_after": 3, "accepted": 1, "best_log_ratio": 4.0}
            ],
            scores={"ARI": 0.9321},
            k_posterior={3: 1.0},
            seconds=12.34,
            version="9.8.7",
        )
    ).text
    assert (
        "DEC grouped 90 rows with 4 features into 3 clusters (seed 7) in 12.3 s. "
        "The mean probability of an assignment is 0.750." in text
    )
    for piece in (
        *("Stars", "Two rows were dropped.", "Cluster sizes", "33.3%", "0.9321", "9.8.7", "0.001"),
        *("What sets each cluster apart", "Typical rows", "Number of clusters", "Learning curve"),
        "Splits and merges",
    ):
        assert piece in text


def test_what_is_not_given_is_left_out(tmp_path, rows):
    text = Outline(report(tmp_path, X=rows[0], labels=rows[1])).text
    for piece in (
        *("Learning curve", "Number of clusters", "Agreement", "Parameters", "probability"),
        *("Confidence", "Least certain", "Outlier", "belong together", "Splits and merges"),
    ):
        assert piece not in text


# --- how sure it is ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("belief", "shown", "text"),
    [
        ({5: 0.83, 4: 0.12, 3: 0.05}, 5, "5 clusters: probability 0.83; next 4: 0.12."),
        ([0, 1.0], 1, "1 cluster: probability 1.00."),
        ([0, 0.1, 0.5, 0.4], 3, "2 clusters: probability 0.50; next 3, as shown: 0.40."),
        (
            np.array([0, 0.1, 0.5, 0.4]),
            1,
            "2 clusters: probability 0.50; next 3: 0.40. The partition shown has 1: 0.10.",
        ),
        ({2: 0.999}, 7, "2 clusters: probability 1.00. The partition shown has 7: 0.00."),
    ],
)
def test_belief_over_k_is_told_in_a_sentence(belief, shown, text):
    assert count_sentence(belief, shown) == text


@pytest.mark.parametrize(
    ("value", "word"),
    [(1.0, "very high"), (0.8, "high"), (0.5, "moderate"), (0.3, "low"), (-0.1, "very low")],
)
def test_confidence_is_told_in_words(value, word):
    assert confidence_sentence(value).startswith(f"Confidence is {word}: ")
    assert confidence_sentence(value).endswith(f" is {value:.2f}.")


def test_confidence_is_a_number_up_to_one():
    with pytest.raises(DataError, match="overall_confidence"):
        confidence_sentence(float("nan"))


def test_the_page_tells_how_sure_it_is(tmp_path, rows):
    X, labels = rows
    confidence, outlier_score = np.linspace(0.2, 0.9, 90), np.zeros(90)
    outlier_score[[70, 4]] = 0.95, 0.6
    page = report(
        tmp_path,
        X=X,
        labels=labels,
        k_posterior=[0, 0.1, 0.1, 0.8],
        overall_confidence=0.912,
        confidence=confidence,
        outlier_score=outlier_score,
        similarity=np.eye(5),
        similarity_rows=[0, 1, 30, 31, 60],
    )
    text = Outline(page).text
    assert "Confidence is very high: the expected agreement with the true clusters" in text
    assert "3 clusters: probability 0.80; next 1: 0.10." in text
    assert "5 of 90 rows are shown, those read together." in text
    assert "2 of 90 rows have 0.5 or more." in text
    least, outliers = text.split("Least certain rows")[1].split("Outliers")
    assert "feature 4 0 Cluster 0 0.20 0.00 " in least
    assert "Cluster 2 0.75 0.95 " in outliers
    assert "70 Cluster 2" in outliers
    assert outliers.index("70 Cluster 2") < outliers.index("4 Cluster 0")
    assert page.count("<svg") == 3
    ids = Outline(page).ids
    assert len(ids) == len(set(ids))


def test_doubtful_rows_are_few_and_named_as_given(tmp_path, rows):
    X, labels = rows
    original = pd.DataFrame({"price": np.arange(90)}, index=[f"no. {i}" for i in range(90)])
    page = report(
        tmp_path, X=X, labels=labels, original=original, confidence=np.arange(90)[::-1] / 90
    )
    listed = Outline(page).text.split("Least certain rows")[1]
    assert re.findall(r"no\. \d+", listed) == [f"no. {i}" for i in range(89, 81, -1)]
    assert "Outliers" not in listed


def test_where_no_row_lies_apart_no_outliers_are_listed(tmp_path, rows):
    page = report(tmp_path, X=rows[0], labels=rows[1], outlier_score=np.full(90, 0.1))
    assert "Outliers" not in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"confidence": np.zeros(3)}, r"confidence must have shape \(90,\)"),
        ({"outlier_score": np.full(90, 2.0)}, r"outlier_score must lie in \[0, 1\]"),
        ({"similarity": np.eye(3)}, r"similarity has shape \(3, 3\) for 90 rows"),
        ({"similarity": np.eye(3), "similarity_rows": [0, 1]}, "for 2 rows"),
        ({"overall_confidence": 3.0}, "overall_confidence"),
    ],
)
def test_bad_beliefs_are_refused(tmp_path, rows, arguments, message):
    with pytest.raises(DataError, match=message):
        report(tmp_path, X=rows[0], labels=rows[1], **arguments)


def test_hostile_text_stays_text(tmp_path):
    evil = "<script>alert('x')</script>\"'&--></style>"
    original = pd.DataFrame(
        {evil: [1.0, 2.0, 9.0], "c": [evil, evil, "ok"]}, index=[evil, "b", "c"]
    )
    page = report(
        tmp_path,
        X=np.array([[1.0, 0.0], [2.0, 0.0], [9.0, 1.0]]),
        labels=[0, 0, 1],
        title=evil,
        method=evil,
        feature_names=[evil, evil],
        parameters={evil: evil},
        notes=[evil],
        scores={evil: 1.0},
        original=original,
        version=evil,
    )
    outline = Outline(page)
    assert "script" not in outline.tags
    assert "<script" not in page
    assert page.count("</style>") == page.count("<style")
    assert evil in outline.text


def test_the_page_loads_nothing(tmp_path, rows):
    page = report(tmp_path, X=rows[0], labels=rows[1], history=[{"loss": 1.0}, {"loss": 0.5}])
    names_only = re.sub(r'xmlns(:\w+)?="[^"]*"', "", page)
    assert "http://" not in names_only
    assert "https://" not in names_only
    assert re.findall(r'(?:src|href)="(?!data:|#)', names_only) == []
    assert "<link" not in page
    assert "default-src 'none'" in page


def test_pictures_have_text_alternatives_and_their_own_identifiers(tmp_path, rows):
    page = report(
        tmp_path, X=rows[0], labels=rows[1], history=[{"loss": 1.0}] * 50, k_posterior={3: 1.0}
    )
    assert page.count("<svg") == page.count('role="img" aria-label="') == 3
    ids = Outline(page).ids
    assert len(ids) == len(set(ids))
    for name in re.findall(r'(?:url\(|href=")#([^")]+)', page):
        assert name in ids


def test_pictures_follow_the_colour_scheme(tmp_path, rows):
    page = report(tmp_path, X=rows[0], labels=rows[1])
    assert "prefers-color-scheme: dark" in page
    assert "currentColor" in page
    assert "#000000" not in page
    assert "#ffffff" not in page


def test_tables_have_header_cells(tmp_path, rows):
    page = report(tmp_path, X=rows[0], labels=rows[1])
    assert page.count("<thead>") == page.count("<table>") == 4  # sizes, clusters 0 and 2, rows
    assert page.count('scope="row"') >= 6


def test_contrasts_and_rows_are_in_original_units(tmp_path):
    original = pd.DataFrame(
        {
            "price": [100.0, 102.0, 900.0],
            "kind": ["old", "old", "new"],
            "note": [None, "n", np.nan],
        },
        index=["first", "second", "third"],
    )
    text = Outline(
        report(tmp_path, X=np.array([[-1.0], [-0.9], [1.9]]), labels=[0, 0, 1], original=original)
    ).text
    assert "price 101 900" in text
    assert "kind = old 100% 0%" in text
    assert "Cluster 1 third 900 new –" in text


def test_wide_tables_show_the_telling_columns(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 100))
    labels = np.repeat([0, 1], 30)
    X[:, 70] += 9 * labels
    text = Outline(report(tmp_path, X=X, labels=labels)).text
    assert "8 of 100 columns are shown" in text
    assert "feature 71" in text.split("Typical rows")[1]


@pytest.mark.parametrize(
    ("X", "labels", "summary"),
    [
        (np.ones((1, 1)), [0], "1 row with 1 feature into 1 cluster."),
        (np.ones((5, 3)), [-1] * 5, "into 0 clusters. 5 rows (100.0%) belong to no cluster."),
        (np.ones((5, 2)), [0] * 5, "5 rows with 2 features into 1 cluster."),
        (np.eye(60), list(range(60)), "60 rows with 60 features into 60 clusters."),
        (np.ones((4, 2)), [0, 1, -1, 3], "into 3 clusters. 1 row (25.0%)"),
    ],
)
def test_edge_cases_are_reported(tmp_path, X, labels, summary):
    page = report(tmp_path, X=X, labels=labels, probability=np.full(len(X), 0.5))
    assert summary in Outline(page).text


def test_the_same_input_gives_the_same_bytes(tmp_path, rows):
    X, labels = rows
    assert report(tmp_path, X=X, labels=labels) == report(tmp_path, X=X, labels=labels)


def test_a_hundred_thousand_rows_take_seconds(tmp_path):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 60, 100_000)
    X = rng.normal(size=(100_000, 10)) + labels[:, None]
    original = pd.DataFrame(X).assign(kind=labels.astype(str), id=np.arange(len(X)).astype(str))
    start = time.perf_counter()
    page = report(tmp_path, X=X, labels=labels, original=original)
    assert time.perf_counter() - start < 20
    assert len(page) < 2_000_000


def test_folders_are_made_and_nothing_else_is_left(tmp_path, rows):
    path = write_report(tmp_path / "a" / "b.html", X=rows[0], labels=rows[1], method="DEC")
    assert [p.name for p in path.parent.iterdir()] == ["b.html"]


def test_a_failed_write_keeps_the_old_report(tmp_path, rows, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")

    def fail(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr("pathlib.Path.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_report(path, X=rows[0], labels=rows[1], method="DEC")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_global_plot_settings_are_left_alone(tmp_path, rows):
    from matplotlib import rcParams

    before = dict(rcParams)
    report(tmp_path, X=rows[0], labels=rows[1])
    assert dict(rcParams) == before


def test_original_must_match_the_rows(tmp_path, rows):
    X, labels = rows
    with pytest.raises(DataError, match="2 rows for 90 labels"):
        report(tmp_path, X=X, labels=labels, original=pd.DataFrame({"a": [1, 2]}))
    with pytest.raises(DataError, match="must be a pandas DataFrame; got list"):
        report(tmp_path, X=X, labels=labels, original=[1, 2])
