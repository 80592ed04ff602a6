"""``asterism predict``: the clusters of new rows under a model kept by ``cluster --save``."""

import json
from typing import Annotated

import typer

from asterism.cli.common import OutputOption, Quiet, fail, say
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

    import numpy as np

    from asterism.io.tables import check_destination, write_table
    from asterism.pipeline import TableModel

    fitted = TableModel.load(model)
    table = TableOptions(table_format, header, sep, decimal, encoding, key).read(
        source, fitted.encoder.id_column
    )
    check_destination(table, destination)
    labelled = fitted.predict(
        table, cluster_column=cluster_column, probability_column=probability_column
    )
    write_table(labelled, destination)
    labels = labelled[cluster_column].to_numpy()
    sizes = np.bincount(labels[labels >= 0], minlength=fitted.estimator.n_clusters_).tolist()
    if as_json:
        facts = {"n_rows": len(labels), "sizes": sizes, "noise": int((labels < 0).sum())}
        print(json.dumps(facts | {"written": {"table": destination}}))
    else:
        say(f"{len(labels)} rows assigned: sizes {', '.join(map(str, sizes))}", quiet)
        if destination != "-":
            say(f"table: {destination}", quiet)
