"""``asterism predict``: the clusters of new rows under a model kept by ``cluster --save``."""

import json
from typing import Annotated, Any

import typer

from asterism.cli.common import DetailsOption, OutputOption, Quiet, fail, say
from asterism.cli.outputs import check_folder, default_output
from asterism.cli.tables import (
    DecimalOption,
    EncodingOption,
    FormatOption,
    HeaderOption,
    KeyOption,
    SepOption,
    SourceArgument,
    TableOptions,
)

__all__ = ["predict"]


def predict(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Model kept by 'asterism cluster --save'.")
    ],
    source: SourceArgument,
    output: OutputOption = None,
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
    quiet: Quiet = False,
) -> None:
    """Assign new rows to the clusters of a model, each row by itself."""
    destination = output or default_output(source)
    if as_json and destination == "-":
        raise fail("--json and the table cannot both go to standard output: give --output FILE")
    check_folder(destination)

    from asterism.io.tables import check_destination, write_table
    from asterism.pipeline import TableModel, count_rows, is_large, predict_file

    fitted = TableModel.load(model)
    columns: dict[str, Any] = {
        "details": details,
        "cluster_column": cluster_column,
        "probability_column": probability_column,
    }
    reading = TableOptions(table_format, header, sep, decimal, encoding, key)
    if is_large(source, destination, reading.layout):
        found = predict_file(fitted, source, destination, reading=reading.layout, **columns)
        sizes, noise = found.sizes, found.noise
    else:
        table = reading.read(source, fitted.encoder.id_column)
        check_destination(table, destination)
        labelled = fitted.predict(table, **columns)
        write_table(labelled, destination)
        noise, *sizes = count_rows(
            labelled[cluster_column].to_numpy(), fitted.estimator.n_clusters_
        )
    n_rows = sum(sizes) + noise
    if as_json:
        facts = {"n_rows": n_rows, "sizes": sizes, "noise": noise}
        print(json.dumps(facts | {"written": {"table": destination}}))
    else:
        say(f"{n_rows} rows assigned: sizes {', '.join(map(str, sizes))}", quiet)
        if destination != "-":
            say(f"table: {destination}", quiet)
