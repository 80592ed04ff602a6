"""The command line: training, and priors chosen by name and size."""

# ruff: noqa: F811 (a fixture is imported, and named again by every test that uses it)

import json
from dataclasses import replace

import pytest

from asterism.cli.app import _run
from asterism.priors import ClusterMixturePrior
from command_line import process, succeed, table  # noqa: F401

TINY = ["--set", "width=16", "--set", "heads=2", "--set", "n_inducing=4"]
TINY += ["--prior", "n_points=[20,30]", "--batch-size", "4", "-k", "3"]


def test_train_resume_and_use_the_weights(table, capfd, tmp_path):
    command = ["train", "set-transformer", "-o", "w", "--steps", "5", *TINY]
    _, err = succeed(capfd, *command)
    assert "weights: w.safetensors\n" in err
    assert err.endswith("--set weights=w.safetensors\n")
    first = (tmp_path / "w.safetensors").read_bytes()
    card = json.loads((tmp_path / "w.json").read_text())
    assert card["training"]["steps"] == 5
    assert card["state"]["architecture_"]["n_components"] == 3
    assert (tmp_path / "w.run" / "checkpoint.pt").exists()
    assert succeed(capfd, *command, "-q") == ("", "")
    assert (tmp_path / "w.safetensors").read_bytes() == first

    use = ["cluster", "t.csv", "-m", "set-transformer", "--set", "weights=./w.safetensors"]
    out, _ = succeed(capfd, *use, "--json")
    assert json.loads(out)["n_clusters"] <= 3
    succeed(capfd, "plot", "history", "w.run", "-o", "history.png", "-q")
    assert (tmp_path / "history.png").exists()


def test_a_prior_is_chosen_by_name_and_size(table, capfd, monkeypatch):
    seen = []

    def pretrain(estimator, prior, **options):
        seen.append((prior, options))
        raise KeyboardInterrupt

    monkeypatch.setattr("asterism.base.AmortizedClusterer.pretrain", pretrain)
    command = ["train", "set-transformer", "-o", "w", "--prior", "mog", "--prior", "scale=0.5"]
    assert _run([*command, "-K", "7", "-N", "100", "--set", "width=16", "-q"]) == 130
    ((prior, options),) = seen
    assert prior == ClusterMixturePrior(max_clusters=7, n_points=(30, 99), scale=0.5)
    assert options["width"] == 16


def test_training_goes_by_the_plan_of_the_method_but_for_what_is_given(capfd, monkeypatch):
    seen = []

    def pretrain(estimator, prior, *, plan, **_):
        seen.append((estimator._default_plan(), plan))
        raise KeyboardInterrupt

    monkeypatch.setattr("asterism.base.AmortizedClusterer.pretrain", pretrain)
    for method in ("asterism", "set-transformer"):
        assert _run(["train", method, "-o", "w", "-q"]) == 130
        assert _run(["train", method, "-o", "w", "-q", "--lr", "0.5", "--clip", "3"]) == 130
    for published, plan in seen[::2]:
        assert plan == published
    for published, plan in seen[1::2]:
        assert plan == replace(published, lr=0.5, clip=3.0)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--prior", "mgo"], "--prior mgo: choose from mixture, mog, warped"),
        (["--prior", "mog", "--prior", "warped"], "name one prior"),
        (["--prior", "images"], "it needs data, so train with pretrain() in Python"),
        (["-K", "3"], "--prior max_clusters: the prior has n_clusters"),
        (["--loss", "min"], "--set loss: the network has dim"),
    ],
)
def test_a_prior_that_cannot_be_had_is_refused(table, capfd, arguments, told):
    assert _run(["train", "set-transformer", "-o", "w", *arguments, "-q"]) == 2
    assert told in capfd.readouterr().err


def test_a_fixed_number_of_clusters_is_refused_where_it_varies(table, capfd):
    for method in ("dac", "ncp"):
        assert _run(["train", method, "-o", "w", "-k", "3", "-q"]) == 2
        assert "set the largest with --max-clusters" in capfd.readouterr().err


def test_a_run_of_other_settings_is_not_resumed(table, capfd):
    succeed(capfd, "train", "set-transformer", "-o", "w", "--steps", "2", *TINY, "-q")
    code = _run(["train", "set-transformer", "-o", "w", "--steps", "3", *TINY, "-q"])
    assert code == 2
    assert "holds a run with steps=2, not 3: resume with the same" in capfd.readouterr().err


def test_an_interrupted_training_says_how_to_go_on(table, capfd, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt("stopped after step 2; run again to resume from w.run")

    monkeypatch.setattr("asterism.base.amortized.train", interrupted)
    assert _run(["train", "set-transformer", "-o", "w", "--steps", "5", *TINY]) == 130
    err = capfd.readouterr().err
    assert err.strip() == "asterism: error: stopped after step 2; run again to resume from w.run"
