"""Run every example of the pages and compare what it prints with what the page says.

    python docs/check_pages.py [page.md ...]

A page is worked through from top to bottom in one empty folder that holds ``stars.csv``:

    ```pycon      lines after >>> are run as a doctest; all blocks of a page share their names
    ```console    lines after $ go to the shell, in that order
    ```python     run as it stands, silently; a comment in its first line may name a file to write

``...`` in an expected output stands for anything, and so does a number of seconds.
"""

import doctest
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# One thread: sums in another order differ in the last digit. None of scikit-learn's checks is
# skipped.
os.environ["OMP_NUM_THREADS"] = os.environ["SCIPY_ARRAY_API"] = "1"

HERE = Path(__file__).resolve().parent
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
BLOCK = re.compile(r"^```(pycon|console|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECONDS = re.compile(r"\d+\.\d+ s\b")


def check_page(page: Path) -> int:
    """Number of examples of a page that fail, told on standard output."""
    failures, names = 0, {"__name__": "page"}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(HERE.parent / "examples" / "stars.csv", folder)
        os.chdir(folder)
        sys.path.insert(0, folder)
        try:
            for match in BLOCK.finditer(page.read_text()):
                kind, text = match.groups()
                line = page.read_text()[: match.start()].count("\n") + 2
                failures += RUNNERS[kind](text, names, f"{page.name}:{line}")
        finally:
            sys.path.remove(folder)
            os.chdir(before)
    return failures


def run_pycon(text: str, names: dict, place: str) -> int:
    test = doctest.DocTestParser().get_doctest(text, names, place, place, 0)
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    runner.run(test, clear_globs=False)
    names.update(test.globs)
    return runner.failures


def run_python(text: str, names: dict, place: str) -> int:
    first = text.partition("\n")[0]
    if first.startswith("# ") and first.endswith(".py"):
        Path(first.removeprefix("# ")).write_text(text)
    else:
        exec(compile(text, place, "exec"), names)
    return 0


def run_console(text: str, _: dict, place: str) -> int:
    failures = 0
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        lines = part.splitlines()
        n_typed = typed_lines(lines)
        command, expected = "\n".join(lines[:n_typed]), "\n".join(lines[n_typed:]) + "\n"
        found = shell(command)
        same = doctest.OutputChecker().check_output
        if not same(SECONDS.sub("? s", expected), SECONDS.sub("? s", found), FLAGS):
            print(f"{place}: $ {command}\n--- expected\n{expected}--- found\n{found}")
            failures += 1
    return failures


def typed_lines(lines: list[str]) -> int:
    """How many lines the command takes: up to the first at which quotes and backslashes end."""
    for count in range(1, len(lines) + 1):
        typed = "\n".join(lines[:count])
        if not typed.endswith("\\") and typed.count('"') % 2 == 0:
            return count
    return len(lines)


def shell(command: str) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        env=os.environ | {"PATH": path, "COLUMNS": "80"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout


RUNNERS = {"pycon": run_pycon, "console": run_console, "python": run_python}

if __name__ == "__main__":
    pages = [Path(name).resolve() for name in sys.argv[1:]] or [
        page
        for page in sorted(HERE.rglob("*.md"))
        if not {"_build", "gallery", "generated"} & set(page.relative_to(HERE).parts)
    ]
    failed = {page.name: check_page(page) for page in pages}
    print(", ".join(f"{name}: {count or 'ok'}" for name, count in failed.items()))
    sys.exit(any(failed.values()))
