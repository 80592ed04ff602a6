"""The command line does what it says: tables in and out, models, pictures."""

# ruff: noqa: F811 (a fixture is imported, and named again by every test that uses it)

import io
import json
import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import asterism
from asterism.cli.app import _run
from asterism.cli.summary import _sureness
from asterism.io import read_table, write_table
from asterism.methods.registry import methods
from asterism.pipeline import TableModel
from command_line import process, succeed, table  # noqa: F401

# --- cluster --------------------------------------------------------------------------------------


def test_cluster_writes_the_table_with_two_more_columns(table, capfd):
    out, err = succeed(capfd, "cluster", "t.csv", "--drop", "kind")
    labelled = pd.read_csv("t.clusters.csv")
    pd.testing.assert_frame_equal(labelled[table.columns], table)
    assert labelled.columns.tolist()[3:] == ["cluster", "probability"]
    assert labelled.groupby("cluster")["kind"].agg(
        ["first", "nunique", "size"]
    ).values.tolist() == [
        ["a", 1, 30],
        ["b", 1, 20],
        ["c", 1, 10],
    ]
    assert labelled["probability"].between(0.5, 1).all()
    assert out == ""
    assert re.match(r"3 clusters of 60 rows by asterism \(\d+\.\d s\): sizes 30, 20, 10\n", err)
    assert "note: 'kind' left out: as asked\n" in err
    assert err.endswith("table: t.clusters.csv\n")


def test_cluster_compares_with_known_labels(table, capfd):
    _, err = succeed(capfd, "cluster", "t.csv", "--label", "kind")
    assert "agreement with the labels: ACC 1.000, NMI 1.000, ARI 1.000\n" in err


def test_missing_cells_are_filled_as_asked(table, capfd):
    numbers = table.drop(columns="kind")
    numbers.iloc[3, 0] = None
    numbers.to_csv("gaps.csv", index=False)
    arguments = ["cluster", "gaps.csv", "-m", "kmeans", "-k", "3"]
    _, err = succeed(capfd, *arguments, "--save", "model")
    assert f"note: '{numbers.columns[0]}': 1 missing, filled from the rows most alike\n" in err
    assert TableModel.load("model").encoder.missing == "neighbours"
    _, err = succeed(capfd, *arguments, "--missing", "column")
    assert "1 missing, filled with the median" in err
    assert _run([*arguments, "--missing", "mean"]) != 0
    assert "--missing 'mean' is none of neighbours, column" in capfd.readouterr().err


def test_labels_guide_only_when_asked_and_it_is_told(table, capfd):
    # Classes that no clustering of the numbers would find: rows of "a" and "b" are one.
    table.assign(kind=table["kind"].map({"a": "ab", "b": "ab", "c": "c"})).to_csv(
        "merged.csv", index=False
    )
    arguments = ["cluster", "merged.csv", "--label", "kind", "--json"]
    free = json.loads(succeed(capfd, *arguments)[0])
    guided = json.loads(succeed(capfd, *arguments, "--use-labels")[0])
    assert (free["n_clusters"], free["labels_used"]) == (3, False)
    assert (guided["sizes"], guided["labels_used"]) == ([50, 10], True)
    _, err = succeed(capfd, *arguments[:-1], "--use-labels")
    assert "agreement with the labels, which guided the fit: ACC 1.000" in err


def test_how_sure_the_method_is(table, capfd):
    _, err = succeed(capfd, "cluster", "t.csv", "--drop", "kind")
    line = err.splitlines()[1]
    assert re.fullmatch(
        r"probability of 3 clusters [01]\.\d\d( \(\d+: 0\.\d\d.*\))?, expected ARI [01]\.\d\d",
        line,
    )
    _, err = succeed(capfd, "cluster", "t.csv", "--drop", "kind", "-k", "2")
    assert re.fullmatch(r"expected ARI [01]\.\d\d", err.splitlines()[1])
    _, err = succeed(capfd, "cluster", "t.csv", "--drop", "kind", "-m", "kmeans")
    assert "expected ARI" not in err


@pytest.mark.parametrize(
    ("belief", "line"),
    [
        ({3: 0.7, 2: 0.3}, "probability of 3 clusters 0.70 (2: 0.30), expected ARI 0.50"),
        (
            {3: 0.2, 2: 0.8},
            "probability of 3 clusters 0.20 (2: 0.80), chosen for its expected ARI 0.50",
        ),
    ],
)
def test_a_number_that_is_not_the_likeliest_is_explained(belief, line):
    facts = {"k_posterior": belief, "n_clusters": 3, "n_clusters_given": False}
    assert _sureness(facts | {"expected_ari": 0.5}) == line


def test_details_are_two_more_columns(table, capfd):
    succeed(capfd, "cluster", "t.csv", "--drop", "kind", "--details", "--save", "m", "-q")
    labelled = pd.read_csv("t.clusters.csv")
    assert labelled.columns.tolist()[4:] == ["probability", "confidence", "outlier_score"]
    assert labelled[["confidence", "outlier_score"]].apply(lambda c: c.between(0, 1)).all(axis=None)
    succeed(capfd, "predict", "m", "t.csv", "--details", "-o", "again.csv", "-q")
    pd.testing.assert_frame_equal(pd.read_csv("again.csv"), labelled, atol=1e-5)


def test_a_range_of_numbers(table, capfd):
    out, _ = succeed(capfd, "cluster", "t.csv", "--drop", "kind", "-k", "4-6", "--json")
    assert 4 <= json.loads(out)["n_clusters"] <= 6
    out, _ = succeed(capfd, "cluster", "t.csv", "--set", "n_clusters=[2, 2]", "--json")
    assert json.loads(out)["n_clusters"] == 2


def test_quiet_is_silent_even_when_there_is_something_to_warn_of(table, capfd):
    table.assign(row=range(60)).to_csv("numbered.csv", index=False)
    assert succeed(capfd, "cluster", "numbered.csv", "-q") == ("", "")
    assert succeed(capfd, "cluster", "numbered.csv", "--quiet", "-v") == ("", "")
    _, err = succeed(capfd, "cluster", "numbered.csv")
    assert err.splitlines()[0] == (
        "asterism: warning: column 'row' merely counts the rows; if it is an identifier, leave it "
        "out with --id row or --drop row"
    )


def test_json_is_complete(table, capfd):
    arguments = ["cluster", "t.csv", "--label", "kind", "--json", "--seed", "3"]
    arguments += ["--report", "r.html", "--plot", "p.svg", "--save", "m", "-o", "o.csv"]
    out, err = succeed(capfd, *arguments)
    facts = json.loads(out)
    assert err == ""
    assert facts["method"] == "asterism"
    assert (facts["n_rows"], facts["n_features"], facts["n_clusters"]) == (60, 2, 3)
    assert facts["n_sample"] == 60
    assert facts["k_posterior"]["3"] > 0.5
    assert facts["expected_ari"] > 0.5
    assert facts["labels_used"] is False
    assert (facts["sizes"], facts["noise"]) == ([30, 20, 10], 0)
    assert 0.5 < facts["mean_probability"] <= 1
    assert {"acc", "nmi", "ari"} <= set(facts["scores"])
    assert facts["scores"]["ari"] == 1
    assert facts["seconds"] > 0
    assert any("scaled" in note for note in facts["notes"])
    assert facts["written"] == {
        "table": "o.csv",
        "model": "m.safetensors",
        "plot": "p.svg",
        "report": "r.html",
    }


def test_report_plot_and_model_are_written(table, capfd, tmp_path):
    arguments = ["cluster", "t.csv", "--report", "r.html", "--plot", "p.png", "--save", "m"]
    _, err = succeed(capfd, *arguments)
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "r.html").read_text()
    assert "Clusters of t.csv" in page
    assert "</html>" in page
    card = json.loads((tmp_path / "m.json").read_text())
    assert card["method"] == "Asterism"
    assert card["command"].startswith("asterism ")
    assert err.endswith("model: m.safetensors\nplot: p.png\nreport: r.html\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "m.json",
        "m.safetensors",
        "p.png",
        "r.html",
        "t.clusters.csv",
        "t.csv",
    ]


@pytest.mark.parametrize(
    "ending", [".csv", ".tsv", ".csv.gz", ".jsonl", ".parquet", ".feather", ".npy"]
)
def test_every_format_makes_the_round_trip(table, capfd, ending):
    numbers = table.drop(columns="kind")
    write_table(numbers, f"in{ending}")
    succeed(capfd, "cluster", f"in{ending}", "-o", f"out{ending}", "-k", "3", "-q")
    labelled = read_table(f"out{ending}")
    np.testing.assert_allclose(labelled.iloc[:, :2], numbers)
    assert np.bincount(labelled.iloc[:, 2].astype(int)).tolist() == [30, 20, 10]


def test_an_archive_of_arrays_needs_a_key(table, capfd):
    np.savez("many.npz", a=table[["height", "weight"]], b=np.eye(3))
    succeed(capfd, "cluster", "many.npz", "--key", "a", "-q")
    assert pd.read_csv("many.clusters.csv").columns.tolist()[:2] == ["x0", "x1"]


def test_text_tables_of_other_lands(table, capfd):
    table.to_csv("t.txt", sep=";", decimal=",", index=False, header=False, encoding="utf-16")
    arguments = ["--sep", ";", "--decimal", ",", "--header", "no", "--encoding", "utf-16"]
    out, _ = succeed(capfd, "cluster", "t.txt", *arguments, "--drop", "x2", "--json")
    assert json.loads(out)["sizes"] == [30, 20, 10]


@pytest.mark.parametrize("method", [method for method in methods() if not method.soft])
def test_hard_methods_leave_the_probability_empty(table, capfd, method):
    out, _ = succeed(capfd, "cluster", "t.csv", "-m", method.name, "--drop", "kind", "--json")
    assert json.loads(out)["mean_probability"] is None
    assert sum(json.loads(out)["sizes"]) == 60
    assert pd.read_csv("t.clusters.csv")["probability"].isna().all()


def test_noise_is_counted_apart(table, capfd):
    odd = pd.concat([table, pd.DataFrame({"height": [50], "weight": [50], "kind": ["a"]})])
    odd.to_csv("odd.csv", index=False)
    arguments = ["-m", "hdbscan", "--set", "noise=keep", "--drop", "kind"]
    out, _ = succeed(capfd, "cluster", "odd.csv", *arguments, "--json")
    facts = json.loads(out)
    assert facts["noise"] >= 1
    assert sum(facts["sizes"]) + facts["noise"] == 61
    _, err = succeed(capfd, "cluster", "odd.csv", *arguments)
    assert f"noise {facts['noise']}\n" in err


def test_same_seed_same_clusters(table, capfd, tmp_path):
    arguments = ["cluster", "t.csv", "-m", "ae-kmeans", "-k", "5", "-q"]
    arguments += ["--set", "hidden_dims=[8]", "--set", "max_steps=20", "--set", "n_init=1"]
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        succeed(capfd, *arguments, "--seed", seed, "-o", f"{name}.csv")
    a, b, c = ((tmp_path / f"{name}.csv").read_bytes() for name in "abc")
    assert a == b != c


def test_parameters_of_the_method(table, capfd):
    out, _ = succeed(capfd, "cluster", "t.csv", "--set", "n_clusters=2", "--json")
    assert json.loads(out)["n_clusters"] == 2
    few = ["--set", "hidden_dims=[8]", "--set", "max_steps=3", "--set", "scaling=minmax"]
    succeed(capfd, "cluster", "t.csv", "-m", "ae-kmeans", "-k", "2", *few, "--save", "m", "-q")
    estimator = TableModel.load("m").estimator
    assert (estimator.scaling, estimator.max_steps, estimator.hidden_dims) == ("minmax", 3, [8])


def test_classical_methods_do_not_mind_the_processor_or_progress(table, capfd):
    succeed(capfd, "cluster", "t.csv", "-m", "kmeans", "--device", "cpu", "--verbose", "-q")


# --- pipes ----------------------------------------------------------------------------------------


def test_standard_input_to_standard_output(table, tmp_path):
    done = process("cluster", "-", "--drop", "kind", stdin=(tmp_path / "t.csv").read_bytes())
    assert done.returncode == 0, done.stderr
    labelled = pd.read_csv(io.BytesIO(done.stdout))
    assert labelled["cluster"].value_counts().tolist() == [30, 20, 10]
    assert done.stderr.startswith(b"3 clusters of 60 rows")
    assert b"table:" not in done.stderr


def test_pipes_in_process(table, capfd, monkeypatch):
    text = "\n".join(json.dumps(row) for row in table.to_dict(orient="records"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    out, err = succeed(capfd, "cluster", "-", "-k", "3", "-q")
    assert len(pd.read_csv(io.StringIO(out))) == 60
    assert err == ""


def test_a_reader_that_has_enough_is_no_error(table):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "asterism", "cluster", "t.csv", "-k", "2", "-o", "-", "-q"],
        stdout=writing,
        stderr=subprocess.PIPE,
        env=dict(os.environ, OMP_NUM_THREADS="1"),
        timeout=120,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


# --- predict --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["asterism", "kmeans", "gmm", "hdbscan", "set-transformer"])
def test_predict_reproduces_the_clusters_of_training(table, capfd, method):
    succeed(capfd, "cluster", "t.csv", "-m", method, "--save", "m", "-o", "fit.csv", "-q")
    _, err = succeed(capfd, "predict", "m", "t.csv", "-o", "again.csv")
    # Rows read in other company may differ in the sixth digit of their probability.
    fit, again = pd.read_csv("fit.csv"), pd.read_csv("again.csv")
    pd.testing.assert_frame_equal(fit, again, rtol=0, atol=2e-6)
    assert err.startswith("60 rows assigned: sizes ")
    assert err.endswith("table: again.csv\n")


def test_predict_counts_and_is_quiet(table, capfd):
    succeed(capfd, "cluster", "t.csv", "-k", "3", "--drop", "kind", "--save", "m", "-q")
    table[table["kind"] == "b"].drop(columns="kind").to_csv("b.csv", index=False)
    out, err = succeed(capfd, "predict", "m.safetensors", "b.csv", "--json")
    assert json.loads(out) == {
        "n_rows": 20,
        "sizes": [0, 20, 0],
        "noise": 0,
        "written": {"table": "b.clusters.csv"},
    }
    assert err == ""
    assert succeed(capfd, "predict", "m", "b.csv", "-q") == ("", "")
    out, err = succeed(capfd, "predict", "m", "b.csv", "-o", "-")
    assert pd.read_csv(io.StringIO(out))["cluster"].tolist() == [1] * 20


# --- plot, methods, version -----------------------------------------------------------------------


def test_plots_of_a_labelled_table(table, capfd, tmp_path):
    succeed(capfd, "cluster", "t.csv", "-q")
    _, err = succeed(capfd, "plot", "clusters", "t.clusters.csv", "--drop", "kind")
    assert err == "plot: clusters.png\n"
    arguments = ["plot", "confusion", "t.clusters.csv", "--label", "kind", "-o", "c.svg", "-q"]
    assert succeed(capfd, *arguments) == ("", "")
    assert (tmp_path / "clusters.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "c.svg").read_text()
    succeed(capfd, "plot", "clusters", "t.clusters.csv", "--missing", "column", "-q")
    refused = process("plot", "clusters", "t.clusters.csv", "--missing", "rows")
    assert b"--missing 'rows' is none of neighbours, column" in refused.stderr


def test_what_was_written_beside_the_clusters_is_not_drawn(table, capfd, tmp_path):
    succeed(capfd, "cluster", "t.csv", "--label", "kind", "--plot", "own.png", "-q", "--details")
    succeed(capfd, "plot", "clusters", "t.clusters.csv", "--label", "kind", "-q")
    own, again = ((tmp_path / name).read_bytes() for name in ("own.png", "clusters.png"))
    assert own == again


def test_a_plot_of_hard_clusters(table, capfd, tmp_path):
    succeed(capfd, "cluster", "t.csv", "-m", "hdbscan", "-q")
    succeed(capfd, "plot", "clusters", "t.clusters.csv", "-o", "c.pdf")
    assert (tmp_path / "c.pdf").read_bytes().startswith(b"%PDF")


def test_a_plot_of_the_moves_of_a_model(table, capfd, tmp_path):
    fast = ["--set", "epoch_steps=2", "--set", "max_rounds=2", "-q"]
    succeed(capfd, "cluster", "t.csv", "-m", "deepdpm", "--save", "m", *fast)
    assert succeed(capfd, "plot", "moves", "m") == ("", "plot: moves.png\n")
    assert (tmp_path / "moves.png").read_bytes().startswith(b"\x89PNG")
    succeed(capfd, "cluster", "t.csv", "-m", "kmeans", "--save", "k", "-q")
    refused = process("plot", "moves", "k")
    assert refused.returncode != 0
    assert b"AutoKMeans holds no split_merge_history_" in refused.stderr


def test_methods_tells_the_parameters_of_one(capfd):
    out, _ = succeed(capfd, "methods", "deepdpm")
    assert all(f"{name} : " in out for name in ("coarsening", "min_rows", "random_state"))
    assert "Attributes" not in out
    assert json.loads(succeed(capfd, "methods", "deepdpm", "--json")[0])["name"] == "deepdpm"
    assert b"did you mean 'deepdpm'?" in process("methods", "depdpm").stderr


def test_methods_lists_the_registry(capfd):
    out, _ = succeed(capfd, "methods")
    lines = out.splitlines()
    assert [line.split()[0] for line in lines[1 : len(methods()) + 1]] == [
        method.name for method in methods()
    ]
    assert lines[-1] == "The default is asterism."
    rows = json.loads(succeed(capfd, "methods", "--json")[0])
    assert [row["name"] for row in rows] == [method.name for method in methods()]
    assert {"family", "needs_k", "takes_k", "soft", "summary"} <= set(rows[0])


def test_version(capfd):
    assert succeed(capfd, "version") == (asterism.__version__ + "\n", "")
    facts = json.loads(succeed(capfd, "version", "--json")[0])
    assert facts["asterism"] == asterism.__version__
    assert {"python", "torch", "scikit-learn", "numpy"} <= set(facts)


def test_python_dash_m():
    done = process("version")
    assert (done.returncode, done.stdout.decode().strip()) == (0, asterism.__version__)


def test_identifiers_come_back_letter_for_letter(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{i:03d},{10 * (i % 2)},{i % 3}" for i in range(30)]
    (tmp_path / "t.csv").write_text("\n".join(["name,a,b", *rows]) + "\n")
    assert _run(["cluster", "t.csv", "--id", "name", "-k", "2", "-o", "out.csv", "-q"]) == 0
    assert (tmp_path / "out.csv").read_text().splitlines()[1].startswith("000,0,0,")


def test_a_projection_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("t.npy", np.random.default_rng(0).normal(size=(40, 5)))
    assert _run(["cluster", "t.npy", "-m", "set-transformer", "-o", "out.csv"]) == 0
    assert "5 features projected on 2 principal axes" in capsys.readouterr().err


def test_the_version_is_an_option_too(capsys):
    assert _run(["--version"]) == 0
    assert capsys.readouterr().out.strip() == asterism.__version__


def test_a_report_calls_rows_by_their_name_and_codes_may_be_categories(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"star-{i},{10 * (i % 2)},{[10115, 80331][i % 2]}" for i in range(30)]
    (tmp_path / "t.csv").write_text("\n".join(["name,a,zip", *rows]) + "\n")
    options = ["--id", "name", "--categorical", "zip", "--report", "r.html", "-o", "out.csv", "-q"]
    assert _run(["cluster", "t.csv", "-k", "2", *options]) == 0
    page = (tmp_path / "r.html").read_text()
    assert "star-" in page
    assert "zip = 10115" in page or "zip = 80331" in page
