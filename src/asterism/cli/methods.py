"""``asterism methods``: the registry as a table."""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from asterism.methods.registry import DEFAULT_METHOD
from asterism.methods.registry import methods as registered

__all__ = ["methods"]

_HEAD = ("method", "family", "needs K?", "soft?", "uses labels?", "posterior?", "what it does")


def methods(
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """List the methods and what each can do."""
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
