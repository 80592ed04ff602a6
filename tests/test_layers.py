"""Imports point down only, and cheap things stay cheap."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import asterism

ROOT = Path(asterism.__file__).parent
ROWS = [
    {"exceptions"},
    {"functional"},
    {"io"},
    {"nn", "datasets"},
    {"training", "losses", "priors", "metrics"},
    {"_validation"},
    {"base"},
    {"methods"},
    {"pipeline", "plotting"},
    {"cli"},
    {"__main__"},
]
ROW_OF = {name: row for row, names in enumerate(ROWS) for name in names}
PURE = {"nn", "losses", "functional"}


def modules():
    return sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def room(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_down(path):
    own = room(path)
    assert own in ROW_OF, f"{own} has no row: add it to ROWS"
    for name in imports(path):
        package, _, rest = name.partition(".")
        if package == "asterism" and rest.split(".")[0] in ROW_OF:
            other = rest.split(".")[0]
            assert other == own or ROW_OF[other] < ROW_OF[own], f"{own} imports {name}"
        if own in PURE:
            assert package not in {"sklearn", "pandas"}, f"{own} imports {name}"


def loaded_by(statement):
    code = f"import sys; {statement}; print(*sorted(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in run.stdout.split()}


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import asterism", {"torch", "pandas", "sklearn", "numpy"}),
        ("import asterism.cli.app", {"torch", "pandas", "sklearn", "numpy"}),
        ("import asterism.io", {"torch", "pandas", "pyarrow"}),
        ("import asterism.plotting", {"torch", "matplotlib"}),
        ("import asterism.metrics, asterism.datasets", {"torch"}),
    ],
)
def test_import_is_light(statement, absent):
    assert not loaded_by(statement) & absent


def test_public_names_exist():
    for name in asterism.__all__:
        assert getattr(asterism, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        asterism.nonsense  # noqa: B018
