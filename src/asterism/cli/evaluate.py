"""``asterism evaluate``: weights of an amortised method on a frozen benchmark."""

import json
from dataclasses import asdict
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer

from asterism.cli.common import Quiet, SeedOption, SettingOption, fail, parse_settings, say
from asterism.cli.outputs import check_file

__all__ = ["evaluate"]

_OF_POINTS = ("filtering", "clustering")  # those of images need a collection


def evaluate(
    weights: Annotated[str, typer.Argument(metavar="WEIGHTS", help="A name or a file.")],
    benchmark: Annotated[str, typer.Option(help="filtering or clustering.")] = "clustering",
    prior: Annotated[
        str, typer.Option(help="What the data sets are drawn from: mog or warped.")
    ] = "mog",
    batches: Annotated[
        int | None, typer.Option(min=1, help="Only so many batches of ten data sets.")
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Scores of every data set, as JSON.")
    ] = None,
    settings: SettingOption = None,
    seed: SeedOption = 0,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
    quiet: Quiet = False,
) -> None:
    """Cluster the data sets of a benchmark and compare with the truth."""
    if output is not None:
        check_file(output, "--output")
    from asterism.pipeline.evaluation import evaluate as run
    from asterism.pipeline.evaluation import summarise
    from asterism.priors.benchmarks import BENCHMARKS, benchmark_batches

    if benchmark not in _OF_POINTS:
        raise fail(f"--benchmark {benchmark}: choose from {', '.join(_OF_POINTS)}")
    drawn = benchmark_batches(benchmark, prior, seed=seed, n_batches=batches)
    estimator = _estimator(weights, parse_settings(settings), seed)
    total = min(batches or BENCHMARKS[benchmark].n_batches, BENCHMARKS[benchmark].n_batches)
    rows = run(estimator, drawn, total=total, verbose=not quiet)
    summary = summarise(rows)
    if output is not None:
        told = {
            "weights": weights,
            "benchmark": benchmark,
            "prior": prior,
            "seed": seed,
            "summary": _json_able(summary),
            "data sets": [_json_able(asdict(row)) for row in rows],
        }
        Path(output).write_text(json.dumps(told, indent=1))
        say(f"scores: {output}", quiet)
    if as_json:
        print(json.dumps(_json_able(summary)))
        return
    width = max(map(len, summary))
    for name, value in summary.items():
        text = f"{value:d}" if isinstance(value, int) else f"{value:.4f}"
        print(f"{name.ljust(width)}  {text}")


def _json_able(values: dict[str, Any]) -> dict[str, Any]:
    """The same with null for NaN, which JSON does not have."""
    return {name: None if value != value else value for name, value in values.items()}


def _estimator(weights: str, settings: dict[str, Any], seed: int) -> Any:
    """Estimator of the method that these weights are for, reading data as they were drawn."""
    from asterism.io import find_weights, read_card
    from asterism.methods.registry import method_of_class

    method = method_of_class(read_card(find_weights(weights))["method"])
    if method.family != "amortised":
        raise fail(f"{weights}: weights of {method.name}, which is not trained beforehand")
    cls = method.load()
    known = [name for name in signature(cls).parameters if name != "weights"]
    for name in settings:
        if name not in known:
            raise fail(f"--set {name}: {cls.__name__} has {', '.join(known)}")
    choices = {"scaling": "none", "random_state": seed, **settings}
    return cls.from_pretrained(weights, **choices)
