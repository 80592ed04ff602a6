"""What sets each cluster apart, as an object that prints as a table."""

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from asterism.functional.contrasts import Contrast

__all__ = ["ClusterExplanation", "Explanation"]

_WIDEST = 40  # characters of a column's name in text


class ClusterExplanation(NamedTuple):
    """One cluster."""

    cluster: int
    size: int
    share: float
    """Of all rows."""
    confidence: float
    """Mean of ``confidence_`` over its rows."""
    contrasts: tuple[Contrast, ...]
    """Columns in which it differs from the other rows, the most telling first."""
    prototypes: tuple[int, ...]
    """Numbers of its most typical rows."""


@dataclass(frozen=True, repr=False)
class Explanation(Sequence[ClusterExplanation]):
    """Clusters in order of size; indexed by cluster, printed as text or, in a notebook, as HTML."""

    clusters: tuple[ClusterExplanation, ...]
    confidence: float
    """Expected adjusted Rand index of the whole partition."""

    def __iter__(self) -> Iterator[ClusterExplanation]:
        return iter(self.clusters)

    def __len__(self) -> int:
        return len(self.clusters)

    def __getitem__(self, cluster: int) -> ClusterExplanation:  # type: ignore[override]
        return self.clusters[cluster]

    def __str__(self) -> str:
        entries = [self._headline()]
        for entry in self.clusters:
            lines = _columns(entry.contrasts) if entry.contrasts else ["no column sets it apart"]
            entries.append("\n    ".join([f"cluster {_facts(entry)}", *lines]))
        return "\n\n".join(entries)

    __repr__ = __str__

    def _headline(self) -> str:
        rows = sum(entry.size for entry in self.clusters)
        return (
            f"{_plural(len(self), 'cluster')} of {_plural(rows, 'row')}; "
            f"expected adjusted Rand index {self.confidence:.2f}"
        )

    def _repr_html_(self) -> str:
        heads = ("cluster", "rows", "share", "confidence", "typical rows", "what sets it apart")
        rows = [
            (
                entry.cluster,
                f"{entry.size:,}",
                f"{entry.share:.1%}",
                f"{entry.confidence:.2f}",
                ", ".join(map(str, entry.prototypes)),
                "; ".join(_phrase(contrast) for contrast in entry.contrasts),
            )
            for entry in self.clusters
        ]
        body = "".join(f"<tr>{_cells('td', row)}</tr>" for row in rows)
        head = f"<thead><tr>{_cells('th', heads)}</tr></thead>"
        return f"<p>{self._headline()}</p><table>{head}<tbody>{body}</tbody></table>"


def _facts(entry: ClusterExplanation) -> str:
    facts = f"{entry.cluster}: {_plural(entry.size, 'row')} ({entry.share:.1%}), "
    facts += f"confidence {entry.confidence:.2f}"
    typical = ", ".join(map(str, entry.prototypes))
    return facts + (f", typical rows {typical}" if typical else "")


def _columns(contrasts: Sequence[Contrast]) -> list[str]:
    """Contrasts as lines of aligned text."""
    rows = [("column", "inside", "elsewhere", "effect")]
    rows += [
        (_short(c.feature), f"{c.inside:.4g}", f"{c.outside:.4g}", f"{c.effect:+.2f}")
        for c in contrasts
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([name.ljust(widths[0]), *map(str.rjust, numbers, widths[1:])])
        for name, *numbers in rows
    ]


def _phrase(contrast: Contrast) -> str:
    direction = "▲" if contrast.effect > 0 else "▼"
    return f"{contrast.feature} {direction} {contrast.inside:.4g} (else {contrast.outside:.4g})"


def _short(name: str) -> str:
    return name if len(name) <= _WIDEST else name[: _WIDEST - 1] + "…"


def _plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _cells(tag: str, values: Sequence[object]) -> str:
    return "".join(f"<{tag}>{html.escape(str(value))}</{tag}>" for value in values)
