"""One thread of numpy's linear algebra, where a method goes to and fro between it and torch.

The threads of both wait for work by spinning, and so take the cores from each other: with several
threads, many small steps in turn are slower than with one. What numpy and scipy brought for
themselves is held to one thread for so long, in the whole process; a library that they share with
torch does not fight itself and is left alone. Where another thread of ours holds them already,
nothing is done, so that they are given back once and as they were.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from threadpoolctl import ThreadpoolController

__all__ = ["one_thread"]

_HELD = threading.Lock()


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold numpy and scipy to one thread of linear algebra inside the block."""
    if not _HELD.acquire(blocking=False):
        yield
        return
    try:
        with _linear_algebra().limit(limits=1):
            yield
    finally:
        _HELD.release()


@cache
def _linear_algebra() -> Any:
    every = ThreadpoolController().select(user_api="blas")
    return every.select(filepath=[one["filepath"] for one in every.info() if _own(one["filepath"])])


def _own(file: str) -> bool:
    """Whether the library is in the package, or in the folder that its wheel brought beside it."""
    homes = [Path(str(package.__file__)).resolve().parent for package in (np, scipy)]
    folders = [*homes, *(home.with_name(f"{home.name}.libs") for home in homes)]
    return any(Path(file).resolve().is_relative_to(folder) for folder in folders)
