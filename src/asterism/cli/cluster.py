"""``asterism cluster``: a table in, the same table with its clusters out.

A table of more than 20 million cells is not held in memory: clusters are found on a sample, and the
rows are read, assigned and written in batches.
"""

import json
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.common import (
    DetailsOption,
    OutputOption,
    Quiet,
    SeedOption,
    SettingOption,
    command_line,
    fail,
    parse_count,
    parse_settings,
)
from asterism.cli.outputs import (
    check_file,
    check_folder,
    check_picture,
    check_report,
    default_output,
)
from asterism.cli.summary import describe, summary
from asterism.cli.tables import (
    DecimalOption,
    EncodingOption,
    FormatOption,
    HeaderOption,
    KeyOption,
    MissingOption,
    SepOption,
    SourceArgument,
    TableOptions,
)
from asterism.methods.registry import DEFAULT_METHOD, Method, get_method

if TYPE_CHECKING:
    from asterism.pipeline import FileClustering, TableClustering

__all__ = ["cluster"]


def cluster(
    source: SourceArgument,
    method: Annotated[
        str, typer.Option("--method", "-m", help="Method; 'asterism methods' lists them.")
    ] = DEFAULT_METHOD,
    n_clusters: Annotated[
        str,
        typer.Option(
            "--n-clusters", "-k", help="Number of clusters, a range such as 2-8, or auto."
        ),
    ] = "auto",
    output: OutputOption = None,
    report: Annotated[
        str | None, typer.Option("--report", help="Write a one-page HTML report.")
    ] = None,
    picture: Annotated[
        str | None, typer.Option("--plot", help="Draw the clusters: .png, .svg or .pdf.")
    ] = None,
    save: Annotated[
        str | None, typer.Option("--save", help="Keep the model for 'asterism predict'.")
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", help="Column that names the rows.")
    ] = None,
    label_column: Annotated[
        str | None, typer.Option("--label", help="Column of known classes, to compare with.")
    ] = None,
    use_labels: Annotated[
        bool, typer.Option("--use-labels", help="Let the known classes guide the clustering.")
    ] = False,
    drop: Annotated[
        list[str] | None, typer.Option("--drop", help="Column to leave out; may be given again.")
    ] = None,
    categorical: Annotated[
        list[str] | None,
        typer.Option("--categorical", help="Column of numbers that are names; may be repeated."),
    ] = None,
    scaling: Annotated[
        str, typer.Option("--scaling", help="Of numeric columns: standard, robust or none.")
    ] = "standard",
    missing: MissingOption = "neighbours",
    seed: SeedOption = 0,
    settings: SettingOption = None,
    device: Annotated[str | None, typer.Option("--device", help="auto, cpu, cuda, ...")] = None,
    details: DetailsOption = False,
    cluster_column: Annotated[str, typer.Option(help="Name of the column added.")] = "cluster",
    probability_column: Annotated[
        str, typer.Option(help="Name of the other column added.")
    ] = "probability",
    table_format: FormatOption = None,
    header: HeaderOption = "auto",
    sep: SepOption = None,
    decimal: DecimalOption = ".",
    encoding: EncodingOption = None,
    key: KeyOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show progress.")] = False,
    quiet: Quiet = False,
) -> None:
    """Cluster the rows of a table; the number of clusters is found unless given."""
    destination = output or default_output(source)
    if as_json and destination == "-":
        raise fail("--json and the table cannot both go to standard output: give --output FILE")
    check_folder(destination)
    if save is not None:
        check_file(save, "--save")
    if report is not None:
        check_report(report, "--report")
    if picture is not None:
        check_picture(picture, "--plot")
    parameters = parse_settings(settings)
    count = parse_count(n_clusters)
    if count != "auto" and (other := parameters.get("n_clusters", count)) != count:
        raise fail(f"--n-clusters {count} and --set n_clusters={other}: give one of them")

    from asterism.io.tables import check_destination, write_table
    from asterism.pipeline import (
        check_choices,
        cluster_file,
        cluster_table,
        is_large,
        make_estimator,
    )

    chosen = get_method(method)
    parameters = {"random_state": seed} | compute_options(chosen, device, verbose) | parameters
    estimator = make_estimator(chosen, count, **parameters)
    choices: dict[str, Any] = {
        "id_column": id_column,
        "label_column": label_column,
        "use_labels": use_labels,
        "drop": drop or [],
        "categorical": categorical or [],
        "scaling": scaling,
        "missing": missing,
        "details": details,
        "cluster_column": cluster_column,
        "probability_column": probability_column,
    }
    check_choices(chosen, label_column, use_labels=use_labels, details=details)
    reading = TableOptions(table_format, header, sep, decimal, encoding, key)
    result: TableClustering | FileClustering
    if is_large(source, destination, reading.layout):
        result = cluster_file(
            source, destination, estimator, reading=reading.layout, random_state=seed, **choices
        )
    else:
        table = reading.read(source, id_column)
        check_destination(table, destination)
        result = cluster_table(table, estimator, **choices)
        write_table(result.frame, destination)
    written = {"table": destination}
    if save:
        written["model"] = str(result.model.save(save, command=command_line()))
    if picture:
        draw(result.sample, picture)
        written["plot"] = picture
    if report:
        write_html(result.sample, report, source, result.notes)
        written["report"] = report
    if as_json:
        print(json.dumps(summary(result) | {"written": written}))
    else:
        describe(result, written, quiet)


_BELIEFS = {
    "k_posterior": "k_posterior_",
    "overall_confidence": "overall_confidence_",
    "confidence": "confidence_",
    "outlier_score": "outlier_score_",
    "similarity": "similarity_",
    "similarity_rows": "context_indices_",
}
"""Arguments of a report, and the attributes they come from."""


def compute_options(method: Method, device: str | None, verbose: bool) -> dict[str, Any]:
    """Parameters for ``--device`` and ``--verbose``, which the classical methods do not have."""
    known = signature(method.load()).parameters
    options: dict[str, Any] = {}
    if device is not None and "device" in known:
        options["device"] = device
    elif device not in (None, "auto", "cpu"):
        raise fail(f"--device {device}: method {method.name!r} computes on the CPU only")
    if verbose and "verbose" in known:
        options["verbose"] = True
    return options


def draw(result: "TableClustering", path: str) -> None:
    """Write the scatter picture."""
    from asterism.plotting import plot_clusters

    axes = plot_clusters(
        result.X,
        result.labels,
        probability=result.probability,
        feature_names=result.model.encoder.feature_names_,
    )
    save_picture(axes, path)


def row_names(result: "TableClustering") -> Any:
    """What a report calls the rows: by their identifier, or counted from 1."""
    column = result.model.encoder.id_column
    return result.original.index + 1 if column is None else result.original[column]


def save_picture(axes: Any, path: str) -> None:
    """Write the figure of some axes; the ending of the name sets the format."""
    from asterism.io.files import replacing

    ending = Path(path).suffix.removeprefix(".")
    with replacing(path) as file:
        axes.figure.savefig(file, format=ending, dpi=150, bbox_inches="tight")


def write_html(result: "TableClustering", path: str, source: str, notes: list[str]) -> None:
    """Write the report."""
    from asterism import __version__
    from asterism.plotting import write_report

    estimator, encoder = result.model.estimator, result.model.encoder
    name = "standard input" if source == "-" else Path(source).name
    write_report(
        path,
        X=result.X,
        labels=result.labels,
        method=result.method.name,
        title=f"Clusters of {name}",
        probability=result.probability,
        feature_names=encoder.feature_names_,
        parameters=estimator.get_params(deep=False),
        notes=notes,
        history=getattr(estimator, "history_", None),
        moves=getattr(estimator, "split_merge_history_", None),
        scores=result.scores,
        original=encoder.readable(result.original).set_axis(row_names(result), axis=0),
        seconds=result.seconds,
        version=__version__,
        **_beliefs(estimator),
    )


def _beliefs(estimator: Any) -> dict[str, Any]:
    """What a report shows of an estimator that is of two minds."""
    told = {name: getattr(estimator, attribute, None) for name, attribute in _BELIEFS.items()}
    if hasattr(estimator, "partitions_"):  # a posterior by its samples
        from asterism.plotting.posterior import similarity_shown

        shown = similarity_shown(estimator.partitions_, estimator.labels_)
        told["similarity"], told["similarity_rows"] = shown
    return told
