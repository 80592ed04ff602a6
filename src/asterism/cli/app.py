"""``asterism``: the command line, one file a command.

Commands import what they need when they run; listing them imports neither torch nor pandas.
"""

import os
import re
import sys
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from asterism import __version__
from asterism.cli.cluster import cluster
from asterism.cli.common import DebugOption, arguments_given
from asterism.cli.evaluate import evaluate
from asterism.cli.messages import complain, explain, usage, warn_plainly
from asterism.cli.methods import methods
from asterism.cli.plot import plot
from asterism.cli.predict import predict
from asterism.cli.train import train

__all__ = ["app", "main"]


class _Stopped(Exception):  # noqa: N818
    """Carries an interruption past the parser, which would end the process its own way."""


class _Commands(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, BrokenPipeError) as error:
            raise _Stopped from error


app = typer.Typer(
    name="asterism",
    cls=_Commands,
    help="Cluster tables with neural networks, the number of clusters unknown or given.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(cluster)
app.command()(predict)
app.command()(train)
app.command()(evaluate)
app.command()(methods)
app.add_typer(plot, name="plot")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def options(
    debug: DebugOption = False,
    show_version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_print_version, help="Print and leave."),
    ] = False,
) -> None:
    """Cluster tables with neural networks, the number of clusters unknown or given."""


@app.command()
def version(
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Print the version."""
    if as_json:
        import json
        import platform
        from importlib.metadata import version as installed

        libraries = {name: installed(name) for name in ("torch", "scikit-learn", "numpy")}
        print(
            json.dumps({"asterism": __version__, "python": platform.python_version()} | libraries)
        )
    else:
        print(__version__)


_USAGE_ERROR: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
"""Base of the parser's errors; typer keeps its copy of the parser private."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    sys.exit(_run(arguments))


def _run(arguments: list[str]) -> int:
    arguments_given.set(arguments)
    with warnings.catch_warnings():
        warn_plainly(quiet=any(re.fullmatch("--quiet|-[a-z]*q[a-z]*", a) for a in arguments))
        try:
            code = app(arguments, prog_name="asterism", standalone_mode=False)
        except _USAGE_ERROR as error:
            return complain(usage(error, arguments), 2)
        except _Stopped as stopped:
            if isinstance(stopped.__cause__, BrokenPipeError):
                # Whoever read our output has enough of it; what is left must not fail at exit.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                return 0
            return complain(str(stopped.__cause__) or "interrupted", 130)
        except Exception as error:
            if "--debug" in arguments:
                raise
            return complain(*explain(error))
    return code if isinstance(code, int) else 0
