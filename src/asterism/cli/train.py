"""``asterism train``: pre-train an amortised method on data sets drawn from a prior.

Run the same command again to resume; the weights appear when the run is complete. Start it under
``torchrun -m asterism train ...`` to share the work between processes.
"""

import json
import os
from dataclasses import fields, replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.common import (
    Quiet,
    SeedOption,
    SettingOption,
    command_line,
    fail,
    parse_settings,
    say,
)
from asterism.cli.outputs import check_file

if TYPE_CHECKING:
    from asterism.base import AmortizedClusterer

__all__ = ["train"]


def train(
    method: Annotated[
        str,
        typer.Argument(metavar="METHOD", help="An amortised method: set-transformer, ..."),
    ],
    output: Annotated[
        str,
        typer.Option("--output", "-o", help="Where the weights go, and their card beside them."),
    ],
    n_clusters: Annotated[
        int | None,
        typer.Option("--n-clusters", "-k", min=1, help="Clusters of the training data."),
    ] = None,
    prior: Annotated[
        list[str] | None,
        typer.Option(
            "--prior",
            metavar="NAME or NAME=VALUE",
            help="A prior (mog, warped, ...) or a setting of it; may be repeated.",
        ),
    ] = None,
    max_clusters: Annotated[
        int | None, typer.Option("--max-clusters", "-K", min=1, help="Most clusters a data set.")
    ] = None,
    max_points: Annotated[
        int | None,
        typer.Option("--max-points", "-N", min=2, help="Most points a data set; 0.3 N at least."),
    ] = None,
    loss: Annotated[
        str | None, typer.Option("--loss", help="What the network minimises, if it has a choice.")
    ] = None,
    batch_size: Annotated[
        int, typer.Option("--batch-size", "-B", min=1, help="Data sets a step.")
    ] = 10,
    steps: Annotated[int | None, typer.Option(min=0, help="Optimiser steps.")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate.")] = None,
    schedule: Annotated[str | None, typer.Option(help="constant, cosine or drop.")] = None,
    warmup: Annotated[float | None, typer.Option(min=0, max=1, help="Fraction of the run.")] = None,
    clip: Annotated[float | None, typer.Option(help="Largest gradient norm.")] = None,
    ema: Annotated[float | None, typer.Option(help="Decay of the weights' average.")] = None,
    optimizer: Annotated[str | None, typer.Option(help="adam, adamw or muon.")] = None,
    weight_decay: Annotated[float | None, typer.Option(min=0, help="Of the optimiser.")] = None,
    max_seconds: Annotated[float | None, typer.Option(help="Let wall time drive the run.")] = None,
    start: Annotated[
        str | None, typer.Option("--start", help="Weights to go on from: a name or a file.")
    ] = None,
    run_dir: Annotated[
        str | None, typer.Option("--run-dir", help="Checkpoints; by default beside the output.")
    ] = None,
    workers: Annotated[int, typer.Option(min=0, help="Processes that draw data.")] = 0,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads of the arithmetic.")] = None,
    seed: SeedOption = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    settings: SettingOption = None,
    quiet: Quiet = False,
) -> None:
    """Train the network of an amortised method; run again to resume.

    What is not given is as the method was published: steps, learning rate, schedule and the rest.
    """
    from asterism.methods.registry import get_method

    check_file(output, "--output")
    for option, value in (("--lr", lr), ("--clip", clip), ("--max-seconds", max_seconds)):
        if value is not None and not value > 0:
            raise fail(f"{option} {value:g}: give a number above 0")
    folder = Path(run_dir or Path(output).with_suffix(".run"))
    if folder.exists() and not folder.is_dir():
        raise fail(f"--run-dir {folder}: this is a file, give the name of a folder")
    chosen = get_method(method)
    if chosen.family != "amortised":
        raise fail(
            f"method {method!r} is trained on your data by 'asterism cluster', not beforehand"
        )

    import torch

    if threads is not None:
        torch.set_num_threads(threads)
    cls: Any = chosen.load()
    if n_clusters is not None and not hasattr(cls()._default_prior(), "n_clusters"):
        raise fail(
            f"--n-clusters {n_clusters}: the data sets of {method!r} have no fixed number of "
            "clusters: set the largest with --max-clusters"
        )
    options = {} if n_clusters is None else {"n_clusters": n_clusters}
    estimator = cls(random_state=seed, device=device, verbose=not quiet, **options)
    asked = {
        "steps": steps,
        "lr": lr,
        "optimizer": optimizer,
        "weight_decay": weight_decay,
        "schedule": schedule,
        "warmup": warmup,
        "clip": clip,
        "ema": ema,
        "max_seconds": max_seconds,
        "workers": workers,
    }
    given = {name: value for name, value in asked.items() if value is not None}
    plan = replace(estimator._default_plan(), **given)
    sizes: dict[str, Any] = {} if max_clusters is None else {"max_clusters": max_clusters}
    if max_points is not None:
        sizes["n_points"] = (max(1, 3 * max_points // 10), max(1, max_points - 1))
    distribution = _prior(estimator, prior or [], sizes)
    chosen_loss = {} if loss is None else {"loss": loss}
    architecture = _architecture(estimator, chosen_loss | parse_settings(settings))
    estimator.pretrain(
        distribution,
        plan=plan,
        batch_size=batch_size,
        run_dir=folder,
        start=start,
        **architecture,
    )
    if int(os.environ.get("RANK", "0")) == 0:
        account = _account(estimator)
        del estimator.history_  # the card keeps the thinned curve
        estimator.set_params(verbose=False)
        path = estimator.save(output, command=command_line(), training=account)
        say(f"weights: {path}", quiet)
        say(f"use them: asterism cluster TABLE -m {method} --set weights={path}", quiet)


def _prior(estimator: "AmortizedClusterer", told: list[str], sizes: dict[str, Any]) -> Any:
    """The method's published prior, or the one named, with some settings changed."""
    names = [text for text in told if "=" not in text]
    changes = sizes | parse_settings([text for text in told if "=" in text], "--prior")
    if len(names) > 1:
        raise fail(f"--prior {' '.join(names)}: name one prior")
    default: Any = _named_prior(names[0]) if names else estimator._default_prior()
    known = {field.name: getattr(default, field.name) for field in fields(default)}
    return replace(default, **_alike("--prior", changes, known, "the prior"))


def _named_prior(name: str) -> Any:
    """A prior of the library, with its published settings."""
    from asterism.priors import PRIORS

    if name not in PRIORS:
        known = ", ".join(PRIORS)
        raise fail(f"--prior {name}: choose from {known}, or write NAME=VALUE for a setting")
    try:
        return PRIORS[name]()
    except TypeError as error:
        raise fail(f"--prior {name}: it needs data, so train with pretrain() in Python") from error


def _architecture(estimator: "AmortizedClusterer", changes: dict[str, Any]) -> dict[str, Any]:
    """Sizes of the network that differ from the default ones."""
    given = {p.name: p.default for p in signature(estimator._module_class).parameters.values()}
    return _alike("--set", changes, given, "the network")


def _alike(
    option: str, changes: dict[str, Any], known: dict[str, Any], owner: str
) -> dict[str, Any]:
    """The changes, each of a known name and of the kind of value it replaces."""
    values = {}
    for name, value in changes.items():
        if name not in known:
            raise fail(f"{option} {name}: {owner} has {', '.join(known)}")
        values[name] = tuple(value) if isinstance(value, list) else value
        kind, wanted = _kind(known[name]), _kind(values[name])
        if kind != wanted and (kind, wanted) != ("a number", "a whole number"):
            example = json.dumps(known[name])
            raise fail(f"{option} {name}={value}: give {kind}, for example {name}={example}")
        if kind == "a whole number" and value < (0 if name.endswith("_blocks") else 1):
            raise fail(f"{option} {name}={value}: give a larger number")
    return values


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int):
        return "a whole number"
    if isinstance(value, float):
        return "a number"
    if isinstance(value, tuple):
        return f"a list of {len(value)}: " + ", ".join(map(_kind, value))
    return "text"


def _account(estimator: "AmortizedClusterer") -> dict[str, Any]:
    """How the weights came about, for their card: time, and the curve at some hundred points."""
    import platform
    from datetime import datetime, timezone

    import torch

    records = estimator.history_
    stride = max(1, len(records) // 100)
    thinned = records[stride - 1 :: stride]
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "machine": f"{platform.machine()}, {torch.get_num_threads()} threads",
        "torch": torch.__version__,
        "steps": records[-1]["step"] if records else 0,
        "wall_seconds": records[-1]["seconds"] if records else 0.0,
        "cpu_seconds": records[-1]["cpu_seconds"] if records else 0.0,
        "curve": [[record["step"], round(record["loss"], 4)] for record in thinned],
    }
