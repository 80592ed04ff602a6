"""Where results go, checked before the work begins so that none of it is lost."""

from pathlib import Path

from asterism.cli.common import fail

__all__ = [
    "PAGES",
    "PICTURES",
    "check_file",
    "check_folder",
    "check_picture",
    "check_report",
    "default_output",
]

PICTURES = (".png", ".svg", ".pdf")
PAGES = (".html", ".htm")


def check_folder(path: str) -> None:
    """Refuse a file whose folder is missing; ``-`` is standard output."""
    if path != "-" and not Path(path).expanduser().absolute().parent.is_dir():
        raise fail(f"{path}: there is no folder {Path(path).parent}; make it first")


def check_file(path: str, option: str) -> None:
    """Refuse what is not the name of a file in a folder that exists."""
    if path == "-":
        raise fail(f"{option} -: this cannot go to standard output, give the name of a file")
    check_folder(path)
    if Path(path).expanduser().is_dir():
        raise fail(f"{option} {path}: this is a directory, give the name of a file in it")


def check_picture(path: str, option: str) -> None:
    """Refuse what is not the name of a picture."""
    check_file(path, option)
    if Path(path).suffix.lower() not in PICTURES:
        raise fail(f"{option} {path}: the name must end in {', '.join(PICTURES)}")


def check_report(path: str, option: str) -> None:
    """Refuse what is not the name of a page."""
    check_file(path, option)
    if Path(path).suffix.lower() not in PAGES:
        raise fail(f"{option} {path}: a report is a page, give a name ending in {PAGES[0]}")


def default_output(source: str) -> str:
    """Name the output after the input: data.csv gives data.clusters.csv, stdin gives stdout.

    >>> default_output("tables/data.csv.gz"), default_output("x.npz"), default_output("-")
    ('data.clusters.csv', 'x.clusters.csv', '-')
    """
    if source == "-":
        return "-"
    path = Path(Path(source).name)
    if path.suffix.lower() in {".gz", ".bz2", ".xz", ".zst"}:
        path = path.with_suffix("")
    kept = {".tsv", ".parquet", ".feather", ".jsonl", ".ndjson"}
    return f"{path.stem}.clusters{path.suffix if path.suffix in kept else '.csv'}"
