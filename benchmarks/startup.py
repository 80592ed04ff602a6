"""How long ``asterism --help`` takes, and that it imports no torch.

python benchmarks/startup.py
"""

import statistics
import subprocess
import sys
import time

from common import write_results

REPEATS = 10


def seconds(*arguments: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> None:
    commands = {
        "python -c pass": ("-c", "pass"),
        "asterism --help": ("-m", "asterism", "--help"),
        "asterism methods": ("-m", "asterism", "methods"),
        "python -c 'import torch'": ("-c", "import torch"),
    }
    rows = []
    for name, arguments in commands.items():
        times = [seconds(*arguments) for _ in range(REPEATS)]
        rows.append(
            {
                "command": f"`{name}`",
                "median s": f"{statistics.median(times):.3f}",
                "slowest s": f"{max(times):.3f}",
            }
        )
    trace = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "asterism", "--help"],
        check=True,
        capture_output=True,
        text=True,
    ).stderr
    imported = {line.rpartition("|")[2].strip().split(".")[0] for line in trace.splitlines()}
    heavy = sorted(imported & {"torch", "pandas", "sklearn", "scipy", "numpy", "matplotlib"})
    write_results(
        "startup",
        "Start-up time of the command line",
        f"{REPEATS} runs each. Heavy libraries imported by `--help`: {', '.join(heavy) or 'none'}.",
        rows,
    )


if __name__ == "__main__":
    main()
