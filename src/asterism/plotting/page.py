"""A self-contained HTML page: escaping by type, tables, style sheet.

``Html`` is text that is already safe. Every helper takes plain values or ``Html`` and returns
``Html``; plain values are escaped on the way in, so user text cannot become markup. The page loads
nothing: one inline style sheet, pictures as inline SVG, and a content policy that forbids the
rest. It follows the reader's light or dark scheme, and prints light.
"""

import html
import math
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = [
    "Html",
    "document",
    "element",
    "format_column",
    "format_value",
    "join",
    "safe",
    "section",
    "table",
]

_CSS = """
:root { color-scheme: light; --paper: #fff; --ink: #1f2933; --muted: #5b6773; --line: #dde2e7;
  --wash: #f5f7f9; --accent: #0072b2; }
@media screen and (prefers-color-scheme: dark) {
  :root { color-scheme: dark; --paper: #16191d; --ink: #e4e8ec; --muted: #9aa5b1; --line: #333a42;
    --wash: #1e2328; --accent: #56b4e9; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.5rem 3rem; max-width: 62rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.55 system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .6rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.4rem 0 .7rem; padding-bottom: .3rem;
  border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 0 0 .5rem; display: flex; align-items: center; gap: .5rem; }
p { margin: .4rem 0; }
.lead { font-size: 1.1rem; }
.muted, h3 small { color: var(--muted); font-weight: 400; font-size: .88rem; }
ul.notes { margin: .9rem 0 0; padding: .7rem 1rem .7rem 2rem; background: var(--wash);
  border-left: 3px solid var(--accent); border-radius: 0 6px 6px 0; }
figure { margin: 0; }
figure svg { display: block; width: 100%; height: auto; max-width: 48rem; margin: 0 auto; }
figure svg text { font-family: system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif
  !important; }
figcaption { color: var(--muted); font-size: .88rem; margin-top: .5rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem;
  font-variant-numeric: tabular-nums; }
.narrow table { width: auto; min-width: min(22rem, 100%); }
th, td { padding: .3rem .6rem; text-align: left; border-bottom: 1px solid var(--line);
  vertical-align: middle; overflow-wrap: break-word; max-width: 20rem; }
th { font-weight: 600; }
thead th { color: var(--muted); font-weight: 500; font-size: .82rem; vertical-align: bottom; }
td.number, .name { white-space: nowrap; }
.number { text-align: right; }
.wide { width: 45%; }
.bar { display: block; height: .7rem; border-radius: 3px; min-width: 2px; }
.swatch { flex: none; display: inline-block; width: .8rem; height: .8rem; border-radius: 50%;
  margin-right: .4rem; vertical-align: -.06rem; }
h3 .swatch { margin-right: 0; }
.grid { display: grid; gap: 1rem; align-items: start;
  grid-template-columns: repeat(auto-fill, minmax(min(27rem, 100%), 1fr)); }
.card { border: 1px solid var(--line); border-radius: 8px; padding: .9rem 1rem; min-width: 0;
  break-inside: avoid; }
.card tbody th { overflow-wrap: anywhere; min-width: 8rem; }
.card tbody tr:last-child > * { border-bottom: 0; }
.first > * { border-top: 2px solid var(--line); }
footer { margin-top: 2.5rem; color: var(--muted); font-size: .88rem; }
* { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
@media print {
  :root { font-size: 9.5pt; }
  body { max-width: none; padding: 0; }
  h2, .muted { break-after: avoid; }
  figure, tr, .narrow { break-inside: avoid; }
  .scroll { overflow: visible; }
  .grid { grid-template-columns: 1fr 1fr; }
}
"""


class Html(str):
    """Text that is already safe to place in a page."""

    __slots__ = ()


def safe(value: Any) -> Html:
    """Escape a plain value; leave ``Html`` as it is.

    Examples
    --------
    >>> safe("<b>"), safe(Html("<b>"))
    ('&lt;b&gt;', '<b>')
    """
    return value if isinstance(value, Html) else Html(html.escape(str(value)))


def join(parts: Iterable[Any], separator: str = "") -> Html:
    """Parts side by side, escaped where they are plain."""
    return Html(separator.join(safe(part) for part in parts))


def element(tag: str, *content: Any, **attributes: str) -> Html:
    """One element; ``class_`` stands for ``class`` and ``aria_label`` for ``aria-label``.

    Examples
    --------
    >>> element("td", "a < b", class_="number")
    '<td class="number">a &lt; b</td>'
    """
    named = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{html.escape(value)}"'
        for name, value in attributes.items()
    )
    return Html(f"<{tag}{named}>{join(content)}</{tag}>")


def section(heading: str, *content: Any) -> Html:
    """Place content under a heading of its own."""
    return element("section", element("h2", heading), *content)


def table(
    headers: Sequence[Any],
    rows: Iterable[Sequence[Any]],
    *,
    numeric: Iterable[int] = (),
    wide: int | None = None,
    first_rows: Iterable[int] = (),
    narrow: bool = False,
) -> Html:
    """Build a table; the first cell of each row is its header.

    ``numeric`` columns are aligned right, column ``wide`` takes the spare width, a line is drawn
    above each of ``first_rows``, and a ``narrow`` table is no wider than its content.
    """
    classes = dict.fromkeys(numeric, "number") | ({} if wide is None else {wide: "wide"})

    def cell(tag: str, place: int, content: Any, **more: str) -> Html:
        kind = {"class_": classes[place]} if place in classes else {}
        return element(tag, content, **kind, **more)

    head = join(cell("th", j, text, scope="col") for j, text in enumerate(headers))
    starts = set(first_rows)
    body = []
    for i, row in enumerate(rows):
        cells = join(
            cell("td", j, content) if j else cell("th", j, content, scope="row")
            for j, content in enumerate(row)
        )
        body.append(element("tr", cells, **({"class_": "first"} if i in starts else {})))
    parts = [element("thead", element("tr", head)), element("tbody", *body)]
    whole = element("table", *parts)
    if narrow:
        return element("div", whole, class_="scroll narrow")
    return element("div", whole, class_="scroll", tabindex="0")  # scrolls by keyboard too


def format_value(value: Any) -> str:
    """Numbers to four significant digits, with grouped thousands; long text cut; dash if missing.

    Examples
    --------
    >>> [format_value(v) for v in (3.14159265, 1234567, 98765.4321, 1e-9, float("nan"), None)]
    ['3.142', '1,234,567', '98,765', '1e-09', '–', '–']
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return str(value)
    try:
        number = float(value)
    except (TypeError, ValueError):
        text = str(value)
        if text in ("NaT", "<NA>"):
            return "–"
        return text if len(text) <= 80 else text[:79] + "…"
    if isinstance(value, str):
        return value
    if math.isnan(number):
        return "–"
    if number.is_integer() and abs(number) < 1e15:
        return f"{int(number):,}"
    return f"{number:,.0f}" if 1e4 <= abs(number) < 1e15 else f"{number:.4g}"


def format_column(values: Sequence[Any]) -> list[str]:
    """Values as by ``format_value``, with as many decimals in every fraction as in the longest.

    Examples
    --------
    >>> format_column([4.0, 3.75, None]), format_column([4, 3])
    (['4.00', '3.75', '–'], ['4', '3'])
    """
    texts = [format_value(value) for value in values]
    plain = [
        isinstance(v, float) and "e" not in text for v, text in zip(values, texts, strict=True)
    ]
    lengths = [
        len(text.partition(".")[2]) for text, is_plain in zip(texts, plain, strict=True) if is_plain
    ]
    decimals = max(lengths, default=0)
    if decimals > 4:  # of very different sizes: a common number of decimals would mislead
        return texts
    return [
        f"{value:,.{decimals}f}" if is_plain and math.isfinite(value) else text
        for value, text, is_plain in zip(values, texts, plain, strict=True)
    ]


def document(title: str, *content: Any) -> str:
    """Return the whole page as text."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"{element('title', title)}\n<style>{_CSS}</style>\n</head>\n<body>\n"
        f"{join(content, chr(10))}\n</body>\n</html>\n"
    )
