"""What the benchmarks share: rows that survive a kill, and a results file that says where from.

A benchmark computes rows, each with a key; finished rows are kept in a cache (``runs/``, not in the
repository) and not computed again. ``write_results`` puts a table, or several by heading, under
``benchmarks/results`` as Markdown for people and JSON for machines, with command, date, versions
and hardware.
"""

import argparse
import json
import platform
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

from asterism.training.history import read_history

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"

Row = dict[str, Any]
Tables = Sequence[Row] | Mapping[str, Sequence[Row]]


def cached_rows(name: str, keys: Sequence[Row], compute: Callable[[Row], Row]) -> list[Row]:
    """Rows for all keys, in order; those already in the cache are not computed again."""
    path = ROOT / "runs" / f"{name}.jsonl"
    path.parent.mkdir(exist_ok=True)
    known = read_history(path)
    rows = []
    for key in ({**key, "version": version("asterism")} for key in keys):
        found = next((row for row in known if key.items() <= row.items()), None)
        if found is None:
            found = key | compute(key)
            with path.open("a") as file:
                file.write(json.dumps(found) + "\n")
            print(json.dumps(found), flush=True)
        rows.append(found)
    return rows


def markdown_table(rows: Sequence[Row]) -> str:
    """Rows of equal keys as a Markdown table."""
    head = list(rows[0])
    lines = [head, ["---"] * len(head), *([str(row[name]) for name in head] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def network_options(description: str, **numbers: int) -> argparse.Namespace:
    """Options of a benchmark of the default network: a smoke test, other weights, ``numbers``."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--quick", action="store_true", help="a few fits; nothing is written")
    parser.add_argument("--weights", default="default", help="a name or a file")
    return parser.parse_args()


def mean_and_error(values: Sequence[float]) -> str:
    """Mean ± standard error."""
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / len(values)
    return f"{mean:.3f} ± {(variance / len(values)) ** 0.5:.3f}"


def markdown_tables(tables: Mapping[str, Sequence[Row]]) -> str:
    """Tables, each under its heading."""
    return "\n\n".join(f"## {head}\n\n{markdown_table(rows)}" for head, rows in tables.items())


def write_results(
    name: str,
    title: str,
    notes: str,
    rows: Tables,
    *,
    details: Sequence[Row] | None = None,
    **facts: Any,
) -> None:
    """Write ``results/name.md`` and ``results/name.json``.

    ``rows`` is one table, or several by heading. ``details`` stand in the JSON file only.
    """
    about = {
        "command": shlex.join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]]),
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "hardware": hardware(),
        "versions": {p: version(p) for p in ("asterism", "torch", "scikit-learn", "numpy")},
        **facts,
    }
    RESULTS.mkdir(exist_ok=True)
    several = isinstance(rows, Mapping)
    body = [f"# {title}", notes, markdown_tables(rows) if several else markdown_table(rows)]
    body.append("\n".join(f"- {what}: `{value}`" for what, value in about.items()))
    (RESULTS / f"{name}.md").write_text("\n\n".join(body) + "\n")
    content = {"title": title, **about, **({"tables": rows} if several else {"rows": list(rows)})}
    (RESULTS / f"{name}.json").write_text(as_json(content, details))
    print("\n\n".join(body))


def as_json(content: Row, details: Sequence[Row] | None = None) -> str:
    """Indented, but for ``details``: as many lines as rows."""
    text = json.dumps(content, indent=1)
    if details is not None:
        lines = ",\n  ".join(json.dumps(row) for row in details)
        text = f'{text[:-2]},\n "details": [\n  {lines}\n ]\n}}'
    return text + "\n"


def resident(name: str = "VmRSS") -> float:
    """Memory of this process in MiB: now, or with ``VmHWM`` at its peak since it was forgotten."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def forget_peak() -> None:
    """Let the peak of the memory be what the process has now."""
    Path("/proc/self/clear_refs").write_text("5")


def hardware() -> str:
    """Processor and threads in use."""
    import torch

    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = lines[0].partition(":")[2].strip() if lines else model
        return f"{model}, {len(lines)} cores, {torch.get_num_threads()} threads"
    return f"{model}, {torch.get_num_threads()} threads"
