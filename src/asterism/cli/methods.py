"""``asterism methods``: the registry as a table, and what can be set of one method."""

import inspect
import json
from dataclasses import asdict
from typing import Annotated

import typer

from asterism.methods.registry import DEFAULT_METHOD, get_method
from asterism.methods.registry import methods as registered

__all__ = ["methods"]

_HEAD = ("method", "family", "needs K?", "soft?", "uses labels?", "posterior?", "what it does")


def methods(
    name: Annotated[
        str | None, typer.Argument(metavar="[METHOD]", help="One of them: tell its parameters.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """List the methods and what each can do, or the parameters of one."""
    if name is not None:
        chosen = get_method(name)
        if as_json:
            print(json.dumps(asdict(chosen)))
            return
        told, _, _ = (inspect.getdoc(chosen.load()) or "").partition("\n\nAttributes\n")
        print(f"{told}\n\nSet one with 'asterism cluster ... --method {name} --set NAME=VALUE'.")
        return
    if as_json:
        print(json.dumps([asdict(method) for method in registered()]))
        return
    rows: list[tuple[str, ...]] = [_HEAD]
    for method in registered():
        needs_k = "yes" if method.needs_k else "no" if method.finds_k else "fixed"
        flags = (method.soft, method.uses_labels, method.posterior)
        answers = [needs_k, *("yes" if flag else "no" for flag in flags)]
        rows.append((method.name, method.family, *answers, method.summary))
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD))]
    for row in rows:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )
    print(f"\nThe default is {DEFAULT_METHOD}.")
