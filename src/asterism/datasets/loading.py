"""The frame all loaders of one data set share.

A loader is written as a function of its catalogue row, the :class:`Source` and its own options;
``@loader(name)`` turns it into the function users call, with ``path``, ``fetch``, ``verify`` and
``return_X_y`` in front of those options.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeAlias, overload

from asterism.datasets.catalogue import dataset_info
from asterism.datasets.dataset import Dataset, Labels
from asterism.datasets.files import Source, StrPath

__all__ = ["XY", "Loader", "loader"]

XY: TypeAlias = tuple[Any, Labels]


class Loader(Protocol):
    """A function that loads one data set; see :func:`asterism.datasets.load_dataset`."""

    @overload
    def __call__(
        self,
        *,
        path: StrPath | None = None,
        fetch: bool = True,
        verify: bool = False,
        return_X_y: Literal[False] = False,
        **options: Any,
    ) -> Dataset: ...

    @overload
    def __call__(
        self,
        *,
        path: StrPath | None = None,
        fetch: bool = True,
        verify: bool = False,
        return_X_y: Literal[True],
        **options: Any,
    ) -> XY: ...


def loader(name: str) -> Callable[[Callable[..., Dataset]], Loader]:
    """Make a user's loader of the data set ``name`` from ``build(info, source, **options)``."""
    info = dataset_info(name)

    def decorate(build: Callable[..., Dataset]) -> Loader:
        # Annotations stay those of the wrapper: the parameters differ.
        @functools.wraps(build, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
        def load(
            *,
            path: StrPath | None = None,
            fetch: bool = True,
            verify: bool = False,
            return_X_y: bool = False,
            **options: Any,
        ) -> Any:
            dataset = build(info, Source(path, fetch, verify), **options)
            return (dataset.X, dataset.y) if return_X_y else dataset

        _show_signature(load, build)
        return load

    return decorate


def _show_signature(load: Callable[..., Any], build: Callable[..., Dataset]) -> None:
    """Let ``help`` and editors see the shared parameters followed by the loader's own."""
    shared = list(inspect.signature(load, follow_wrapped=False).parameters.values())[:-1]
    own = list(inspect.signature(build).parameters.values())[2:]
    signature = inspect.Signature(shared + own, return_annotation=Dataset | XY)
    load.__signature__ = signature  # type: ignore[attr-defined]
