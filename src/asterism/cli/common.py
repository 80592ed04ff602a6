"""What the commands share: option types, errors on one line, exit codes.

    0    done
    1    something unforeseen; ``--debug`` before the command shows where
    2    bad usage or bad input: one line on standard error says what and how to mend it
    130  interrupted

Nothing here imports torch or pandas, so that ``--help`` is quick.
"""

import json
import re
import shlex
import sys
from contextvars import ContextVar
from typing import Annotated, Any

import typer

from asterism.exceptions import AsterismError

__all__ = [
    "DebugOption",
    "DetailsOption",
    "OutputOption",
    "Quiet",
    "SeedOption",
    "SettingOption",
    "UsageError",
    "arguments_given",
    "command_line",
    "fail",
    "parse_count",
    "parse_settings",
    "say",
]

_AS_JSON = {"None": "null", "True": "true", "False": "false"}
"""What error messages of parameters call a value, and JSON."""

SeedOption = Annotated[
    int, typer.Option("--seed", min=0, max=2**32 - 1, help="Fixes everything that is random.")
]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
DetailsOption = Annotated[
    bool, typer.Option("--details", help="Add columns 'confidence' and 'outlier_score'.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
OutputOption = Annotated[
    str | None,
    typer.Option("--output", "-o", help="File to write; its ending sets the format, - is stdout."),
]
SettingOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Parameter of the method, as JSON or text; may be given again.",
    ),
]


class UsageError(AsterismError, ValueError):
    """The command line asks for something that cannot be."""


def fail(message: str) -> UsageError:
    """Error of usage, to be raised: the command line ends with code 2."""
    return UsageError(message)


def say(message: str, quiet: bool = False) -> None:
    """Tell the user something on standard error, which leaves standard output to data."""
    if not quiet:
        print(message, file=sys.stderr)


arguments_given: ContextVar[list[str]] = ContextVar("arguments_given")
"""Arguments of the command that runs."""


def command_line() -> str:
    """The command as it was typed, for a model's card."""
    return shlex.join(["asterism", *arguments_given.get()])


def parse_count(text: str) -> int | str | tuple[int, int]:
    """Read the value of ``--n-clusters``: "auto", a whole number, or a range of them.

    >>> parse_count("auto"), parse_count("7"), parse_count("2-8")
    ('auto', 7, (2, 8))
    """
    if text == "auto":
        return text
    found = re.fullmatch(r"(-?\d+)(?:-(\d+))?", text)
    if found is None:
        raise fail(f"--n-clusters {text}: give 'auto' or a whole number, or a range: 2-8")
    low, high = int(found[1]), int(found[2] or found[1])
    if low < 1:
        raise fail(f"--n-clusters {text}: give at least 1")
    if high < low:
        raise fail(f"--n-clusters {text}: give the lower number first, {high}-{low}")
    return low if found[2] is None else (low, high)


def parse_settings(settings: list[str] | None, option: str = "--set") -> dict[str, Any]:
    """Turn ``["lr=0.1", "refine=em"]`` into keyword arguments.

    Values are JSON where they can be, or None, True and False, else text; numbers between commas
    are a list.

    >>> parse_settings(["lr=0.1", "refine=em", "hidden_dims=64,32", "coarsening=None"])
    {'lr': 0.1, 'refine': 'em', 'hidden_dims': [64, 32], 'coarsening': None}
    """
    values: dict[str, Any] = {}
    for setting in settings or []:
        name, equals, text = setting.partition("=")
        if not equals or not name.isidentifier():
            raise fail(f"{option} {setting}: write NAME=VALUE, for example {option} lr=0.001")
        text = _AS_JSON.get(text, text)
        for form in (text, f"[{text}]") if text[:1].isdigit() else (text,):
            try:
                values[name] = json.loads(form)
                break
            except ValueError:
                values[name] = text
    return values
