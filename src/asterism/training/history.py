"""The record of a run: one JSON object a line, in memory and, where asked, in a file.

After a kill the file may run ahead of the checkpoint, or end in half a line; ``rewind`` cuts it
back to the step from which training goes on.
"""

import json
from pathlib import Path
from typing import Any

from asterism.io.files import replacing

__all__ = ["History", "Record"]

Record = dict[str, Any]


class History:
    """A list of records, mirrored to ``path`` when one is given and it is ours to write."""

    def __init__(self, path: Path | None = None, *, writes: bool = True) -> None:
        self.path = path
        self.writes = writes
        self.records: list[Record] = []

    def rewind(self, step: int) -> None:
        """Keep the records up to ``step``; drop the rest from memory and file."""
        if self.path is None:
            return
        self.records = [record for record in read_history(self.path) if record["step"] <= step]
        if self.writes:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(self.path) as file:
                file.write("".join(json.dumps(record) + "\n" for record in self.records).encode())

    def append(self, record: Record) -> None:
        """Add a record; the file is flushed at once."""
        self.records.append(record)
        if self.path is not None and self.writes:
            with self.path.open("a") as file:
                file.write(json.dumps(record) + "\n")


def read_history(path: Path) -> list[Record]:
    """Whole records of a history file; half a line at its end is passed over."""
    if not path.exists():
        return []
    records = []
    for line in path.read_text().splitlines():
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return records
