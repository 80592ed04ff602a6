"""What the command line says when something is wrong: one line, with the options by their names.

asterism: error: ...      and an exit code, see :mod:`asterism.cli.common`
asterism: warning: ...    and the work goes on
"""

import re
import sys
import warnings
from typing import Any

from asterism.exceptions import AsterismError, AsterismWarning, TableError

__all__ = ["as_options", "complain", "explain", "usage", "warn_plainly"]


def usage(error: Any, arguments: list[str]) -> str:
    """What the parser has to say, with the value it met."""
    message = error.format_message()
    if message == "Missing command.":
        return f"give a command; {error.ctx.command_path} --help lists them"
    options = getattr(getattr(error, "param", None), "opts", [])
    pairs = list(zip(arguments, [*arguments[1:], ""], strict=True))
    for argument, following in reversed(pairs):  # of an option given again, the last one counts
        name, equals, value = argument.partition("=")
        received = value if equals else following
        if name in options and received and received not in message:
            return f"{message} (got {received!r})"
    return message


def explain(error: Exception) -> tuple[str, int]:
    """Message and exit code of an error."""
    if isinstance(error, TableError):
        return as_options(str(error)), 2
    # A ValueError is how scikit-learn refuses input; an OSError a file the user named.
    if isinstance(error, AsterismError | ValueError | OSError):
        return re.sub(*_SPELLED_OUT, str(error)), 2
    kind = type(error).__name__
    return f"unforeseen {kind}: {error} (asterism --debug ... shows where)", 1


_SPELLED_OUT = r"\b\w+=\S+ \((--[^)]+)\)", r"\1"
"""An argument with its option in brackets after it."""

_OPTIONS = (
    _SPELLED_OUT,
    (r"\bheader=False", "give --header no"),
    (r"\bheader=True", "give --header yes"),
    (r"\b(id|label)_column asks", r"--\1 asks"),
    (r"\bdrop asks", "--drop asks"),
    (r"\b(cluster|probability)_column\b", r"--\1-column"),
    (r"\b(format|sep|decimal|encoding|key|scaling|missing)=", r"--\1="),
    (r"(--[a-z-]+)=(?=[\s,;:.)]|$)", r"\1"),
    (r"(--[a-z-]+)=", r"\1 "),
)


def as_options(message: str) -> str:
    """Let a message that names the arguments of functions name the options instead.

    >>> as_options("leave it out with drop=['day'] (--drop day); or give its encoding=")
    'leave it out with --drop day; or give its --encoding'
    """
    for argument, option in _OPTIONS:
        message = re.sub(argument, option, message)
    return message


def warn_plainly(quiet: bool) -> None:
    """Show warnings in one line each, without the place in our code; or none at all."""
    if quiet:
        warnings.simplefilter("ignore")
    else:
        warnings.simplefilter("default", AsterismWarning)

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = as_options(" ".join(str(message).split()))
        print(f"asterism: warning: {text}", file=sys.stderr)

    warnings.showwarning = show


def complain(message: str, code: int) -> int:
    """Print the error in one line and hand back the exit code."""
    print("asterism: error: " + " ".join(message.split()), file=sys.stderr)
    return code
