"""The command that draws how clusters are peeled off a table."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from asterism import DAC
from asterism.cli.app import _run
from asterism.plotting import plot_filtering
from asterism.priors import ClusterMixturePrior
from asterism.training import TrainingPlan
from command_line import succeed, table  # noqa: F401


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """Weights of a network that has learnt next to nothing."""
    model = DAC(random_state=0).pretrain(
        ClusterMixturePrior(n_points=(30, 40)),
        plan=TrainingPlan(steps=3),
        batch_size=2,
        width=8,
        heads=2,
        n_inducing=4,
        depth=2,
    )
    return str(model.save(tmp_path_factory.mktemp("weights") / "dac"))


@pytest.mark.usefixtures("table")
def test_a_panel_for_every_step(weights, capfd, tmp_path, monkeypatch):
    titles = []
    original = Figure.savefig

    def watched(figure, *arguments, **options):
        titles.extend(ax.get_title(loc="left") for ax in figure.axes if ax.get_visible())
        return original(figure, *arguments, **options)

    monkeypatch.setattr(Figure, "savefig", watched)
    arguments = ["plot", "filtering", "t.csv", "--weights", weights, "--label", "kind"]
    _, err = succeed(capfd, *arguments)
    *warned, last = err.splitlines()
    assert last == "plot: filtering.png"
    assert all("left over after max_iter" in line for line in warned)  # it knows nothing
    assert (tmp_path / "filtering.png").stat().st_size > 1000
    assert titles[0].startswith("step 1")
    assert titles[-1] == "all steps" or titles[-1].endswith("more")


@pytest.mark.usefixtures("table")
def test_parameters_of_the_method_may_be_set(weights, capfd, monkeypatch):
    fitted = []
    original = DAC.fit
    monkeypatch.setattr(
        DAC, "fit", lambda self, X, y=None: fitted.append(self) or original(self, X)
    )
    arguments = ["plot", "filtering", "t.csv", "--weights", weights, "--label", "kind", "-q"]
    succeed(capfd, *arguments, "--set", "max_iter=2", "--seed", "3")
    assert fitted[0].max_iter == 2
    assert fitted[0].random_state == 3


@pytest.mark.usefixtures("table")
def test_columns_are_encoded_as_for_clustering(weights, capfd):
    # Classes become columns of their own where they are not named a label, and are projected.
    _, err = succeed(capfd, "plot", "filtering", "t.csv", "--weights", weights, "-o", "f.svg")
    assert "projected on 2 principal axes" in err
    _, err = succeed(
        capfd, "plot", "filtering", "t.csv", "--weights", weights, "--drop", "kind", "-q"
    )
    assert err == ""


def test_missing_cells_are_filled_as_asked(table, weights, capfd, monkeypatch):  # noqa: F811
    table.loc[3, "height"] = np.nan
    table.to_csv("t.csv", index=False)
    filled = []
    monkeypatch.setattr(
        "asterism.plotting.plot_filtering",
        lambda X, *rest, **options: filled.append(X[3, 0]) or plot_filtering(X, *rest, **options),
    )
    for missing in ("neighbours", "column"):
        arguments = ["plot", "filtering", "t.csv", "--weights", weights, "--drop", "kind", "-q"]
        succeed(capfd, *arguments, "--missing", missing)
    assert filled[0] != filled[1]


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["t.csv", "--weights", "no-such"], "no-such"),
        (["t.csv", "--weights", "set-transformer-mog"], "were trained for SetTransformerMixture"),
        (["t.csv", "-o", "f.txt"], "must end in .png"),
        (["none.csv"], "none.csv"),
        (["t.csv", "--drop", "nothing"], "nothing"),
        (["t.csv", "--set", "max_iters=3"], "no parameter 'max_iters'"),
        (["t.csv", "--set", "seven"], "write NAME=VALUE"),
    ],
)
def test_bad_requests_are_refused(arguments, told, capfd):
    assert _run(["plot", "filtering", *arguments]) == 2
    assert told in capfd.readouterr().err
