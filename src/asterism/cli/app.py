"""``asterism``: the command line, one file a command.

Commands import what they need when they run; listing them imports neither torch nor pandas.
"""

import sys
from typing import Annotated, Any

import typer

from asterism import __version__
from asterism.cli.cluster import cluster
from asterism.cli.common import DebugOption
from asterism.cli.methods import methods
from asterism.cli.plot import plot
from asterism.cli.predict import predict
from asterism.cli.train import train

__all__ = ["app", "main"]

app = typer.Typer(
    name="asterism",
    help="Cluster tables with neural networks, the number of clusters unknown or given.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(cluster)
app.command()(predict)
app.command()(train)
app.command()(methods)
app.add_typer(plot, name="plot")


@app.callback()
def options(debug: DebugOption = False) -> None:
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
    try:
        code = app(arguments, standalone_mode=False)
    except _USAGE_ERROR as error:
        return _complain(error.format_message() or "give a command; --help lists them", 2)
    except typer.Abort:
        return _complain("interrupted", 130)
    except KeyboardInterrupt as error:
        return _complain(str(error) or "interrupted", 130)
    except BrokenPipeError:
        # Whoever read our output has enough of it.
        sys.stderr.close()
        return 0
    except Exception as error:
        if "--debug" in arguments:
            raise
        return _complain(*_explain(error))
    return code if isinstance(code, int) else 0


def _explain(error: Exception) -> tuple[str, int]:
    """Message and exit code of an error."""
    from asterism.exceptions import AsterismError

    # A ValueError is how scikit-learn refuses input; an OSError a file the user named.
    if isinstance(error, AsterismError | ValueError | OSError):
        return str(error), 2
    kind = type(error).__name__
    return f"unforeseen {kind}: {error} (asterism --debug ... shows where)", 1


def _complain(message: str, code: int) -> int:
    print("asterism: error: " + " ".join(message.split()), file=sys.stderr)
    return code
