"""The command line is quick to help, says one line when it fails, and leaves with its code."""

# ruff: noqa: F811 (a fixture is imported, and named again by every test that uses it)

import re
import sys
import traceback
import warnings

import pytest

from asterism.cli import app as app_module
from asterism.cli.app import _run, main
from asterism.cli.common import parse_count, parse_settings
from asterism.cli.outputs import default_output
from command_line import process, succeed, table  # noqa: F401


def test_help_offers_completion_and_imports_nothing_heavy():
    done = process("--help", options=("-X", "importtime"))
    assert done.returncode == 0
    imported = {line.split("|")[-1].strip() for line in done.stderr.decode().splitlines()}
    assert "typer" in imported
    heavy = {"torch", "pandas", "sklearn", "numpy", "scipy", "matplotlib", "polars", "pyarrow"}
    assert not heavy & {name.partition(".")[0] for name in imported}
    text = done.stdout.decode()
    assert "--install-completion" in text
    for command in ("cluster", "predict", "train", "methods", "plot", "version"):
        assert re.search(rf"^  {command}\b", text, re.MULTILINE)


@pytest.mark.parametrize("command", ["cluster", "predict", "train", "methods", "plot", "version"])
def test_every_command_has_help(capfd, command):
    for flag in ("-h", "--help"):
        out, _ = succeed(capfd, command, flag)
        assert out.startswith(f"Usage: asterism {command} ")


def test_an_interruption_ends_with_130(table, capfd, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("asterism.pipeline.cluster_table", interrupted)
    assert _run(["cluster", "t.csv"]) == 130
    assert capfd.readouterr().err.strip() == "asterism: error: interrupted"


def test_the_unforeseen_ends_with_1_and_debug_shows_where(table, capfd, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("by\nnought")

    monkeypatch.setattr("asterism.pipeline.cluster_table", broken)
    assert _run(["cluster", "t.csv"]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("asterism: error: unforeseen ZeroDivisionError: by nought (asterism --d")
    assert err.count("\n") == 1
    with pytest.raises(ZeroDivisionError) as caught:
        _run(["--debug", "cluster", "t.csv"])
    assert any(frame.name == "broken" for frame in traceback.extract_tb(caught.value.__traceback__))


def test_debug_shows_the_traceback_of_a_real_process(table):
    done = process("--debug", "cluster", "nope.csv")
    assert done.returncode == 1
    assert b"Traceback" in done.stderr
    assert b"TableError: no such file: nope.csv" in done.stderr


def test_main_leaves_with_the_code(monkeypatch, capfd):
    monkeypatch.setattr(sys, "argv", ["asterism", "version"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 0
    with pytest.raises(SystemExit) as left:
        main(["clustr"])
    assert left.value.code == 2
    capfd.readouterr()


def test_warnings_of_the_caller_are_left_as_they_were(capfd):
    shown, filters = warnings.showwarning, list(warnings.filters)
    succeed(capfd, "methods", "--json")
    assert warnings.showwarning is shown
    assert warnings.filters == filters


# --- small parts ----------------------------------------------------------------------------------


def test_counts_and_settings_are_read():
    assert parse_count("auto") == "auto"
    assert parse_count("7") == 7
    assert parse_count("2-8") == (2, 8)
    assert parse_count("3-3") == (3, 3)
    assert parse_settings(None) == {}
    assert parse_settings(["a=1", "b=x=y", "c=null", "d=true", 'e="7"', "f="]) == {
        "a": 1,
        "b": "x=y",
        "c": None,
        "d": True,
        "e": "7",
        "f": "",
    }


@pytest.mark.parametrize(
    ("source", "output"),
    [
        ("a/b/data.csv", "data.clusters.csv"),
        ("data.tsv.gz", "data.clusters.tsv"),
        ("data.parquet", "data.clusters.parquet"),
        ("data.npy", "data.clusters.csv"),
        ("data", "data.clusters.csv"),
        ("my.data.csv", "my.data.clusters.csv"),
    ],
)
def test_the_output_is_named_after_the_input(source, output):
    assert default_output(source) == output


def test_the_parser_s_errors_are_recognised():
    assert app_module._USAGE_ERROR.__name__ == "ClickException"
