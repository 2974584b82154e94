"""One page, twice: report.md beside its pictures, and report.html with everything inside.

A page is a list of blocks. Text may hold `code` and **bold**; everything else in it is taken literally.
"""

from __future__ import annotations

import base64
import html
import math
import os
import platform
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from .figures import Picture
from .stats import Interval


@dataclass(frozen=True)
class Heading:
    text: str
    level: int = 2


@dataclass(frozen=True)
class Text:
    text: str
    lead: bool = False  # the headline: larger


@dataclass(frozen=True)
class Bullets:
    items: Sequence[str]


@dataclass(frozen=True)
class Pictures:
    """Pictures in rows of `columns` (in the HTML; below one another in Markdown)."""

    pictures: Sequence[Picture]
    columns: int = 1


@dataclass(frozen=True)
class Table:
    """Rows of text; columns named in `numbers` are set right. A cell that is a verdict gets its colour."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[int] = ()
    caption: str = ""


Block: TypeAlias = Heading | Text | Bullets | Pictures | Table


@dataclass(frozen=True)
class ReportPaths:
    """Where a report is, and its headline."""

    folder: Path
    markdown: Path
    html: Path
    headline: str


def write_report(title: str, headline: str, blocks: Sequence[Block], folder: Path) -> ReportPaths:
    """Writes both pages into the folder."""
    whole = [Text(headline, lead=True), *blocks]
    markdown, page = folder / "report.md", folder / "report.html"
    markdown.write_text(_markdown(title, whole, folder), encoding="utf-8")
    page.write_text(_html(title, whole, folder), encoding="utf-8")
    return ReportPaths(folder, markdown, page, headline)


def span(interval: Interval, decimals: int = 2, sign: bool = False) -> str:
    """`98.12 [97.90, 98.34]`; just the number where nothing was sampled, "not met" where there is none."""
    if math.isnan(interval.mean):
        return "not met"
    plus = "+" if sign else ""
    mean = f"{interval.mean:{plus}.{decimals}f}"
    if interval.num == 0:
        return f"{interval.mean:{plus}g}" if interval.mean == round(interval.mean) else mean
    return f"{mean} [{interval.low:{plus}.{decimals}f}, {interval.high:{plus}.{decimals}f}]"


def machine() -> str:
    """What this runs on, in words."""
    where = f"{platform.system()} {platform.machine()}, {_cpu_name()}, {os.cpu_count()} cores"
    return f"{where}, Python {platform.python_version()}"


def peak_memory() -> str:
    """The largest resident size of this process and of its largest finished child, in words."""
    try:
        import resource
    except ImportError:  # Windows
        return "unknown"
    unit = 1 << 20 if platform.system() == "Darwin" else 1 << 10  # bytes there, kilobytes elsewhere
    own, child = (resource.getrusage(who).ru_maxrss / unit for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return f"{own:.0f} MiB, largest worker {child:.0f} MiB"


def _cpu_name() -> str:
    try:
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    except OSError:
        found = None
    return found.group(1) if found else platform.processor() or "unknown processor"


# ---- Markdown ----


def _markdown(title: str, blocks: Sequence[Block], folder: Path) -> str:
    parts = [f"# {title}", *(_to_markdown(block, folder) for block in blocks)]
    return "\n\n".join(parts) + "\n"


def _to_markdown(block: Block, folder: Path) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {text}"
        case Text(text, lead):
            return f"**{text}**" if lead else text
        case Bullets(items):
            return "\n".join(f"- {item}" for item in items)
        case Pictures(pictures):
            return "\n\n".join(_picture_markdown(picture, folder) for picture in pictures)
        case Table():
            return _table_markdown(block)


def _picture_markdown(picture: Picture, folder: Path) -> str:
    png, svg, rows = (path.relative_to(folder).as_posix() for path in (picture.png, picture.svg, picture.csv))
    return f"![{picture.caption}]({png})\n\n*{picture.caption}* ([SVG]({svg}), [rows]({rows}))"


def _table_markdown(table: Table) -> str:
    rules = ["---:" if i in table.numbers else "---" for i in range(len(table.header))]
    lines = [table.header, rules, *([cell.replace("|", "\\|") for cell in row] for row in table.rows)]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"*{table.caption}*\n\n{text}" if table.caption else text


# ---- HTML ----

_STYLE = """
:root { --ink: #22262b; --faint: #69717a; --rule: #e3e6e9; --paper: #fdfdfb; --accent: #1f6fb4; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1080px; padding: 2.2rem 1.4rem 4rem; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 1rem; }
h2 { font-size: 1.25rem; margin: 2.6rem 0 .7rem; padding-top: .9rem; border-top: 1px solid var(--rule); }
h3 { font-size: 1.02rem; margin: 1.6rem 0 .5rem; }
p, li { max-width: 46rem; }
p.lead { font-size: 1.12rem; border-left: 4px solid var(--accent); padding: .1rem 0 .1rem 1rem; max-width: 52rem; }
code { font: .88em ui-monospace, "SF Mono", Menlo, Consolas, monospace; background: #f1f2f0; padding: .06em .3em;
  border-radius: 3px; }
.pictures { display: grid; gap: 1.2rem; grid-template-columns: repeat(var(--columns), minmax(0, 1fr)); }
@media (max-width: 720px) { .pictures { grid-template-columns: 1fr; } }
figure { margin: .6rem 0; }
figure img { width: 100%; height: auto; background: white; border: 1px solid var(--rule); border-radius: 4px; }
figcaption { font-size: .82rem; color: var(--faint); margin-top: .3rem; }
.scroll { overflow-x: auto; margin: .8rem 0 1.2rem; }
table { border-collapse: collapse; font-size: .84rem; line-height: 1.4; }
caption { text-align: left; color: var(--faint); font-size: .82rem; padding-bottom: .4rem; }
th { text-align: left; font-weight: 600; border-bottom: 1.5px solid #b9bfc5; white-space: nowrap; }
th, td { padding: .28rem .7rem .28rem 0; vertical-align: top; }
td { border-bottom: 1px solid var(--rule); }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.verdict { color: white; border-radius: 3px; padding: .05rem .45rem; font-size: .76rem; white-space: nowrap; }
.reproduced { background: #2c8a4b; } .contradicted { background: #c9403a; }
.equivalent { background: #5b6fb0; } .undecided { background: #8d949b; }
"""
_VERDICTS = ("reproduced", "contradicted", "equivalent", "undecided")


def _html(title: str, blocks: Sequence[Block], folder: Path) -> str:
    body = "\n".join(_to_html(block, folder) for block in blocks)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{html.escape(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<style>{_STYLE}</style>\n</head>\n'
        f"<body>\n<h1>{_inline(title)}</h1>\n{body}\n</body>\n</html>\n"
    )


def _to_html(block: Block, folder: Path) -> str:
    match block:
        case Heading(text, level):
            return f"<h{level}>{_inline(text)}</h{level}>"
        case Text(text, lead):
            return f'<p class="lead">{_inline(text)}</p>' if lead else f"<p>{_inline(text)}</p>"
        case Bullets(items):
            return f"<ul>{''.join(f'<li>{_inline(item)}</li>' for item in items)}</ul>"
        case Pictures(pictures, columns):
            inside = "".join(_picture_html(picture, folder) for picture in pictures)
            return f'<div class="pictures" style="--columns: {columns}">{inside}</div>'
        case Table():
            return _table_html(block)


def _picture_html(picture: Picture, folder: Path) -> str:
    data = base64.b64encode(picture.svg.read_bytes()).decode()
    caption = html.escape(picture.caption)
    rows = html.escape(picture.csv.relative_to(folder).as_posix())
    return (
        f'<figure><img alt="{caption}" src="data:image/svg+xml;base64,{data}">'
        f"<figcaption>{caption} Rows: <code>{rows}</code></figcaption></figure>"
    )


def _table_html(table: Table) -> str:
    def line(cells: Sequence[str], tag: str, write: Callable[[str], str]) -> str:
        classes = [' class="number"' if i in table.numbers else "" for i in range(len(cells))]
        return "".join(f"<{tag}{kind}>{write(cell)}</{tag}>" for cell, kind in zip(cells, classes, strict=True))

    caption = f"<caption>{_inline(table.caption)}</caption>" if table.caption else ""
    body = "".join(f"<tr>{line(row, 'td', _cell)}</tr>" for row in table.rows)
    head = line(table.header, "th", _inline)
    return f'<div class="scroll"><table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(text: str) -> str:
    return f'<span class="verdict {text}">{text}</span>' if text in _VERDICTS else _inline(text)


def _inline(text: str) -> str:
    escaped = html.escape(text, quote=False)
    escaped = re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped)
    return re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", escaped)
