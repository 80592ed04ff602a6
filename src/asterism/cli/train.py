"""``asterism train``: pre-train an amortised method on data sets drawn from a prior.

Run the same command again to resume; the weights appear when the run is complete. Start it under
``torchrun -m asterism train ...`` to share the work between processes.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli.cluster import check_folder
from asterism.cli.common import (
    Quiet,
    SeedOption,
    SettingOption,
    command_line,
    fail,
    parse_settings,
    say,
)

if TYPE_CHECKING:
    from asterism.base import AmortizedClusterer

__all__ = ["train"]


def train(
    method: Annotated[
        str, typer.Argument(help="An amortised method, for example set-transformer.")
    ],
    output: Annotated[
        str,
        typer.Option("--output", "-o", help="Where the weights go, and their card beside them."),
    ],
    n_clusters: Annotated[
        int | None, typer.Option("--n-clusters", "-k", help="Clusters of the training data.")
    ] = None,
    prior: Annotated[
        list[str] | None,
        typer.Option(
            "--prior", metavar="NAME=VALUE", help="Setting of the prior; may be repeated."
        ),
    ] = None,
    batch_size: Annotated[int, typer.Option("--batch-size", "-B", help="Data sets a step.")] = 10,
    steps: Annotated[int, typer.Option(help="Optimiser steps.")] = 50_000,
    lr: Annotated[float, typer.Option(help="Learning rate.")] = 1e-3,
    schedule: Annotated[str, typer.Option(help="constant, cosine or drop.")] = "cosine",
    warmup: Annotated[float, typer.Option(help="Fraction of the run.")] = 0.02,
    clip: Annotated[float | None, typer.Option(help="Largest gradient norm.")] = 10.0,
    ema: Annotated[float | None, typer.Option(help="Decay of the weights' average.")] = 0.999,
    max_seconds: Annotated[float | None, typer.Option(help="Let wall time drive the run.")] = None,
    run_dir: Annotated[
        str | None, typer.Option("--run-dir", help="Checkpoints; by default beside the output.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes that draw data.")] = 0,
    threads: Annotated[int | None, typer.Option(help="Threads of the arithmetic.")] = None,
    seed: SeedOption = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    settings: SettingOption = None,
    quiet: Quiet = False,
) -> None:
    """Train the network of an amortised method; run again to resume."""
    from asterism.methods.registry import get_method

    check_folder(output)
    chosen = get_method(method)
    if chosen.family != "amortised":
        raise fail(
            f"method {method!r} is trained on your data by 'asterism cluster', not beforehand"
        )

    import torch

    from asterism.training import TrainingPlan

    if threads is not None:
        torch.set_num_threads(threads)
    plan = TrainingPlan(
        steps=steps,
        lr=lr,
        schedule=schedule,
        warmup=warmup,
        clip=clip,
        ema=ema,
        max_seconds=max_seconds,
        workers=workers,
    )
    options = {} if n_clusters is None else {"n_clusters": n_clusters}
    estimator: Any = chosen.load()(random_state=seed, device=device, verbose=not quiet, **options)
    distribution = _prior(estimator, parse_settings(prior))
    folder = Path(run_dir or Path(output).with_suffix(".run"))
    estimator.pretrain(
        distribution,
        plan=plan,
        batch_size=batch_size,
        run_dir=folder,
        **parse_settings(settings),
    )
    if int(os.environ.get("RANK", "0")) == 0:
        path = estimator.save(output, command=command_line(), training=_account(estimator))
        say(f"weights: {path}", quiet)


def _prior(estimator: "AmortizedClusterer", changes: dict[str, Any]) -> Any:
    """The method's published prior with some settings changed."""
    from dataclasses import fields, replace

    default: Any = estimator._default_prior()
    known = [field.name for field in fields(default)]
    for name in changes:
        if name not in known:
            raise fail(f"--prior {name}: the prior has {', '.join(known)}")
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in changes.items()}
    return replace(default, **values)


def _account(estimator: "AmortizedClusterer") -> dict[str, Any]:
    """How the weights came about, for their card: time, and the curve at some hundred points."""
    records = estimator.history_
    stride = max(1, len(records) // 100)
    thinned = [*records[stride - 1 :: stride]] if records else []
    return {
        "steps": records[-1]["step"] if records else 0,
        "wall_seconds": records[-1]["seconds"] if records else 0.0,
        "cpu_seconds": records[-1]["cpu_seconds"] if records else 0.0,
        "curve": [[record["step"], round(record["loss"], 4)] for record in thinned],
    }
