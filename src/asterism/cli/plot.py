"""``asterism plot``: pictures of what the other commands wrote, and of how clusters are found."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.cluster import save_picture
from asterism.cli.common import Quiet, SeedOption, SettingOption, fail, parse_settings, say
from asterism.cli.outputs import check_picture
from asterism.cli.tables import MissingOption, SourceArgument, TableOptions

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["plot"]

plot = typer.Typer(help="Draw clusters, how they were found, learning curves and confusions.")

Picture = Annotated[str, typer.Option("--output", "-o", help="Picture: .png, .svg or .pdf.")]
Labelled = Annotated[str, typer.Argument(metavar="TABLE", help="Table with a column of clusters.")]
ClusterColumn = Annotated[str, typer.Option(help="Column of clusters.")]
IdColumn = Annotated[str | None, typer.Option("--id", help="Column that names the rows.")]
LabelColumn = Annotated[str | None, typer.Option("--label", help="Column of known classes.")]
DropColumns = Annotated[
    list[str] | None, typer.Option("--drop", help="Column to leave out; may be given again.")
]


@plot.command("clusters")
def clusters(
    source: Labelled,
    output: Picture = "clusters.png",
    projection: Annotated[str, typer.Option(help="auto, pca, tsne or none.")] = "auto",
    cluster_column: ClusterColumn = "cluster",
    probability_column: Annotated[
        str, typer.Option(help="Column of probabilities.")
    ] = "probability",
    id_column: IdColumn = None,
    label_column: LabelColumn = None,
    drop: DropColumns = None,
    missing: MissingOption = "neighbours",
    quiet: Quiet = False,
) -> None:
    """Scatter of a table that 'asterism cluster' wrote."""
    check_picture(output, "--output")
    from asterism.io import TableEncoder
    from asterism.pipeline.models import DETAILS
    from asterism.plotting import plot_clusters

    frame = _read(source, cluster_column)
    written = [probability_column, *DETAILS]  # beside the clusters, by 'asterism cluster'
    extra = [cluster_column, *(column for column in written if column in frame)]
    dropped = [*extra, *(drop or [])]
    encoder = TableEncoder(id_column, label_column, dropped, missing=missing)  # type: ignore[arg-type]
    probability = frame[probability_column].to_numpy() if probability_column in frame else None
    if probability is not None and not (probability == probability).all():
        probability = None  # a hard method leaves the column empty
    axes = plot_clusters(
        encoder.fit_transform(frame),
        frame[cluster_column].to_numpy(),
        probability=probability,
        projection=projection,
        feature_names=encoder.feature_names_,
    )
    _save(axes, output, quiet)


@plot.command("history")
def history(
    source: Annotated[str, typer.Argument(metavar="RUN", help="history.jsonl, or its folder.")],
    output: Picture = "history.png",
    quiet: Quiet = False,
) -> None:
    """Learning curve of a training run."""
    check_picture(output, "--output")
    from asterism.plotting import plot_history
    from asterism.training.history import read_history

    path = Path(source)
    path = path / "history.jsonl" if path.is_dir() else path
    if not path.exists():
        raise fail(f"no such file: {path}")
    if not (records := read_history(path)):
        raise fail(f"{path} holds no training records: give the history.jsonl of a run")
    _save(plot_history(records), output, quiet)


@plot.command("confusion")
def confusion(
    source: Labelled,
    label: Annotated[str, typer.Option("--label", help="Column of known classes.")],
    output: Picture = "confusion.png",
    cluster_column: ClusterColumn = "cluster",
    quiet: Quiet = False,
) -> None:
    """Known classes against the clusters matched to them."""
    check_picture(output, "--output")
    from asterism.plotting import plot_confusion

    frame = _read(source, cluster_column)
    if label not in frame:
        raise fail(f"--label {label}: the table has the columns {', '.join(frame.columns)}")
    known = frame[frame[label].notna()]
    codes, names = known[label].astype(str).factorize(sort=True)
    axes = plot_confusion(codes, known[cluster_column].to_numpy(), class_names=list(names))
    _save(axes, output, quiet)


@plot.command("moves")
def moves(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Model kept by 'asterism cluster --save'.")
    ],
    output: Picture = "moves.png",
    quiet: Quiet = False,
) -> None:
    """Splits and merges by which a model, of deepdpm or ae-deepdpm, came to its clusters."""
    check_picture(output, "--output")
    from asterism.pipeline import TableModel
    from asterism.plotting import plot_split_merge

    _save(plot_split_merge(TableModel.load(model).estimator)[0], output, quiet)


@plot.command("filtering")
def filtering(
    source: SourceArgument,
    output: Picture = "filtering.png",
    weights: Annotated[
        str, typer.Option("--weights", help="Of deep amortised clustering: a name or a file.")
    ] = "default",
    id_column: IdColumn = None,
    label_column: LabelColumn = None,
    drop: DropColumns = None,
    missing: MissingOption = "neighbours",
    settings: SettingOption = None,
    seed: SeedOption = 0,
    quiet: Quiet = False,
) -> None:
    """Clusters of a table, peeled off one by one by deep amortised clustering."""
    check_picture(output, "--output")
    from asterism.io import TableEncoder, find_weights
    from asterism.methods.registry import get_method
    from asterism.pipeline.choosing import make_estimator
    from asterism.plotting import plot_filtering

    if weights != "default":
        find_weights(weights)  # refused before the table is read
    parameters = {"weights": weights, "random_state": seed} | parse_settings(settings)
    estimator: Any = make_estimator(get_method("dac"), **parameters)
    frame = TableOptions().read(source, id_column)
    encoder = TableEncoder(id_column, label_column, drop or [], missing=missing)  # type: ignore[arg-type]
    X = encoder.fit_transform(frame)
    estimator.fit(X)
    for note in getattr(estimator, "notes_", []):
        say(note, quiet)
    axes = plot_filtering(
        X, estimator.filtering_path_, feature_names=encoder.feature_names_, random_state=seed
    )
    _save(axes[0], output, quiet)


def _read(source: str, cluster_column: str) -> "pd.DataFrame":
    from asterism.io import read_table

    frame = read_table(source)
    if cluster_column not in frame:
        raise fail(
            f"{source} has no column {cluster_column!r}: give a table that 'asterism cluster' "
            "wrote, or name the column with --cluster-column"
        )
    if frame[cluster_column].dtype.kind not in "iu":
        raise fail(
            f"--cluster-column {cluster_column}: this column of {source} holds "
            f"{frame[cluster_column].dtype}, not the whole numbers of clusters"
        )
    return frame


def _save(axes: Any, path: str, quiet: bool) -> None:
    save_picture(axes, path)
    say(f"plot: {path}", quiet)
