"""From a name and settings to an estimator; what a method cannot do is refused before any work."""

import difflib
import inspect
from collections.abc import Iterable, Sequence
from typing import Any

from asterism.base import Clusterer
from asterism.exceptions import DataError, UnknownMethodError
from asterism.methods.registry import Method, get_method, method_of_class, methods

__all__ = [
    "Count",
    "check_choices",
    "choose_method",
    "described",
    "make_estimator",
]

Count = int | str | Sequence[int]
"""Number of clusters: K, "auto", or a pair of the lowest and the highest."""


def choose_method(
    method: "str | Clusterer",
    n_clusters: Count = "auto",
    *,
    random_state: Any = 0,
    **parameters: Any,
) -> tuple[Method, Clusterer]:
    """Row of the registry and estimator, made here or given; refused before any work."""
    if not isinstance(method, Clusterer):
        chosen = get_method(method)
        return chosen, make_estimator(chosen, n_clusters, random_state=random_state, **parameters)
    if n_clusters != "auto" or parameters:
        named = ", ".join(["n_clusters"] * (n_clusters != "auto") + [*parameters])
        raise DataError(f"{named}: give it to {type(method).__name__} itself, which is fitted")
    return described(type(method)), method


def check_choices(
    method: Method,
    label_column: str | None = None,
    *,
    use_labels: bool = False,
    details: bool = False,
) -> None:
    """Refuse to use labels, or to tell details, where that cannot be."""
    if use_labels and label_column is None:
        raise DataError("use_labels=True (--use-labels) needs label_column=NAME (--label NAME)")
    if use_labels and not method.uses_labels:
        raise DataError(
            f"method {method.name!r} does not use labels: leave out use_labels=True "
            f"(--use-labels), or choose one that does: {_those('uses_labels')}"
        )
    if details and not method.details:
        raise DataError(
            f"method {method.name!r} has no confidence and no outlier score: leave out "
            f"details=True (--details), or choose one that has: {_those('details')}"
        )


def _those(capability: str) -> str:
    return ", ".join(method.name for method in methods() if getattr(method, capability))


def make_estimator(method: Method, n_clusters: Count = "auto", /, **parameters: Any) -> Clusterer:
    """Estimator of a method; a parameter it does not have is refused, before any work."""
    cls = method.load()
    n_clusters = parameters.pop("n_clusters", n_clusters)
    parameters = {**dict(method.on_tables), **parameters}
    known = inspect.signature(cls).parameters
    if "random_state" not in known:
        parameters.pop("random_state", None)
    if unknown := sorted(set(parameters) - set(known)):
        raise DataError(
            f"method {method.name!r} has no parameter {unknown[0]!r}{_closest(unknown[0], known)}; "
            f"it has: {', '.join(known)}"
        )
    if n_clusters == "auto":
        if method.needs_k:
            raise DataError(
                f"method {method.name!r} needs the number of clusters: give n_clusters=K "
                "(--n-clusters K), or choose a method that finds it"
            )
        return cls(**parameters)
    if not method.takes_k:
        raise DataError(
            f"method {method.name!r} finds the number of clusters itself, got {n_clusters}: leave "
            "n_clusters='auto' (--n-clusters auto)"
            + (", and bound it by max_clusters (--set max_clusters=K)" * ("max_clusters" in known))
        )
    if isinstance(n_clusters, list | tuple):
        if not method.takes_range:
            raise DataError(
                f"method {method.name!r} takes no range of numbers of clusters, got "
                f"{'-'.join(map(str, n_clusters))}: give n_clusters=K (--n-clusters K), or choose "
                f"one that does: {_those('takes_range')}"
            )
        n_clusters = tuple(n_clusters)
    return cls(n_clusters=n_clusters, **parameters)


def _closest(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def described(cls: type[Clusterer]) -> Method:
    """Row of the registry for a class; one is made up where it is not registered."""
    try:
        return method_of_class(cls.__name__)
    except UnknownMethodError:
        target = f"{cls.__module__}:{cls.__qualname__}"
        return Method(
            cls.__name__, target, "own", "given by the user", soft=cls.soft, uses_labels=True
        )
