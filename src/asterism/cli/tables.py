"""Options of every command that reads a table."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.common import fail

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "DecimalOption",
    "EncodingOption",
    "FormatOption",
    "HeaderOption",
    "KeyOption",
    "MissingOption",
    "SepOption",
    "SourceArgument",
    "TableOptions",
]

SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="CSV, TSV, Parquet, Feather, JSON lines, NPY or NPZ file; - is standard input.",
    ),
]
FormatOption = Annotated[
    str | None, typer.Option("--format", help="Format of the input, when its name does not say.")
]
HeaderOption = Annotated[
    str, typer.Option("--header", help="Whether the first row names the columns: auto, yes or no.")
]
SepOption = Annotated[str | None, typer.Option("--sep", help="Separator; detected by default.")]
DecimalOption = Annotated[str, typer.Option("--decimal", help="Decimal sign.")]
EncodingOption = Annotated[str | None, typer.Option("--encoding", help="By default UTF-8.")]
KeyOption = Annotated[str | None, typer.Option("--key", help="Array of an NPZ file.")]
MissingOption = Annotated[
    str,
    typer.Option("--missing", help="What fills missing cells: neighbours (rows alike) or column."),
]


@dataclass(frozen=True)
class TableOptions:
    """How to read a table."""

    format: str | None = None
    header: str = "auto"
    sep: str | None = None
    decimal: str = "."
    encoding: str | None = None
    key: str | None = None

    def read(self, source: str, id_column: str | None = None) -> "pd.DataFrame":
        """Table at ``source``; identifiers stay letter for letter."""
        from asterism.io.tables import read_table

        text = [] if id_column is None else [id_column]
        return read_table(source, key=self.key, text=text, **self.layout)

    @property
    def layout(self) -> dict[str, Any]:
        """Arguments of :func:`asterism.io.read_table` that say how the table is written."""
        choices: dict[str, Any] = {"auto": "auto", "yes": True, "no": False}
        if self.header not in choices:
            raise fail(f"--header {self.header}: give auto, yes or no")
        return {
            "format": self.format,
            "header": choices[self.header],
            "sep": {"tab": "\t", "\\t": "\t", "space": r"\s+"}.get(self.sep or "", self.sep),
            "decimal": self.decimal,
            "encoding": self.encoding,
        }
