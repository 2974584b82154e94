"""Reports with headings, text, tables and pictures, written as report.md and as a self-contained report.html.

A report is a list of blocks. Text may contain `code` and **bold**, and a backslash before a punctuation mark that is
shown as it is. Names that come from users or from rules must go through `literal`. The style of the HTML page is in
report.css.
"""

from __future__ import annotations

import base64
import math
import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from ..drawing.position import escaped, printed
from ..files import write_whole
from ..rulesheets import title
from .figures import VERDICT_COLOURS, ReportPicture
from .stats import Interval


@dataclass(frozen=True)
class Heading:
    text: str
    level: int = 2


@dataclass(frozen=True)
class Text:
    text: str
    lead: bool = False  # whether this is the headline, which is shown in larger type


@dataclass(frozen=True)
class Bullets:
    items: Sequence[str]


@dataclass(frozen=True)
class Pictures:
    """Several pictures. HTML shows `columns` pictures in a row; Markdown shows one picture below the other."""

    pictures: Sequence[ReportPicture]
    columns: int = 1


@dataclass(frozen=True)
class TableBlock:
    """A table of text. Columns with an index in `numbers` are aligned right. Cells that are a verdict are coloured."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[int] = ()
    caption: str = ""


Block: TypeAlias = Heading | Text | Bullets | Pictures | TableBlock


@dataclass(frozen=True)
class ReportPaths:
    """The folder and the files of a report, and its headline as plain text."""

    folder: Path
    markdown: Path
    html: Path
    headline: str


def write_report(heading: str, headline: str, blocks: Sequence[Block], folder: Path) -> ReportPaths:
    """Write report.md and report.html into the folder."""
    page = [Heading(heading, 1), Text(headline, lead=True), *blocks]
    markdown = "\n\n".join(_to_markdown(block, folder) for block in page) + "\n"
    paths = ReportPaths(folder, folder / "report.md", folder / "report.html", without_backslashes(headline))
    write_whole(paths.markdown, markdown)
    write_whole(paths.html, _html(heading, page, folder))
    return paths


_PUNCTUATION = r"[!-/:-@\[-`{-~]"


def literal(name: str) -> str:
    """Return a name as text of a report, in which all characters are shown as they are."""
    return re.sub(_PUNCTUATION, r"\\\g<0>", printed(" ".join(name.split())))


def without_backslashes(text: str) -> str:
    """Return text of a report as it is read: punctuation after a backslash stands alone, as in names of `literal`."""
    return re.sub(rf"\\({_PUNCTUATION})", r"\1", text)


def span(interval: Interval | None, decimals: int = 2, sign: bool = False) -> str:
    """Return a mean and its interval as text, such as `98.12 [97.90, 98.34]` or `98.12 (too few runs)`.

    The text has only the number if the number does not come from samples. It is "not met" if there is no number (NaN),
    and empty for None. With `sign`, positive numbers have a plus sign.
    """
    if interval is None:
        return ""
    if math.isnan(interval.mean):
        return "not met"
    plus = "+" if sign else ""
    mean = f"{interval.mean:{plus}.{decimals}f}"
    if interval.num == 0:
        return f"{interval.mean:{plus}g}" if interval.mean == round(interval.mean) else mean
    if interval.too_few:
        return f"{mean} (too few runs)"
    return f"{mean} [{interval.low:{plus}.{decimals}f}, {interval.high:{plus}.{decimals}f}]"


def p_text(p: float | None) -> str:
    """Return a p-value as text, such as `0.012` or `< 0.001`. The text is empty for None."""
    return "" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def provenance_table(version: str, rows: Mapping[str, str], rules: Mapping[str, str]) -> TableBlock:
    """Return the table of the origin of all numbers.

    Its rows are `rows` and the rows that every report has: version, memory, machine, rules and date. `rules` maps each
    game to the hash of its rules.
    """
    hashes = (f"{literal(title(game))} `{rules_hash[:12]}`" for game, rules_hash in rules.items())
    every = {
        "gamelore": version,
        **rows,
        "memory": peak_memory(),
        "machine": machine(),
        "rules": ", ".join(hashes),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return TableBlock(("", ""), list(every.items()))


def machine() -> str:
    """Return the operating system, processor, number of cores and Python version as text."""
    try:
        model = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    except OSError:
        model = None
    processor = model.group(1) if model else platform.processor() or "unknown processor"
    computer = f"{platform.system()} {platform.machine()}, {processor}, {os.cpu_count()} cores"
    return f"{computer}, Python {platform.python_version()}"


def peak_memory() -> str:
    """Return the peak memory (resident size) of this process and of its largest finished child process, as text.

    The text is "unknown" on Windows.
    """
    try:
        import resource
    except ImportError:  # on Windows
        return "unknown"
    unit = 1 << 20 if platform.system() == "Darwin" else 1 << 10  # macOS counts in bytes, other systems in kilobytes
    own, child = (resource.getrusage(who).ru_maxrss / unit for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return f"{own:.0f} MiB, largest worker {child:.0f} MiB"


# ---- Markdown ----


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
        case TableBlock():
            return _table_markdown(block)


def _picture_markdown(picture: ReportPicture, folder: Path) -> str:
    png, svg, rows = (path.relative_to(folder).as_posix() for path in (picture.png, picture.svg, picture.csv))
    return f"![{picture.caption}]({png})\n\n*{picture.caption}* ([SVG]({svg}), [rows]({rows}))"


def _table_markdown(table: TableBlock) -> str:
    rules = ["---:" if i in table.numbers else "---" for i in range(len(table.header))]
    lines = [table.header, rules, *([re.sub(r"(?<!\\)\|", r"\|", cell) for cell in row] for row in table.rows)]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"*{table.caption}*\n\n{text}" if table.caption else text


# ---- HTML ----

_HIDDEN = 0xE000  # the first private character of Unicode
_STYLE = Path(__file__).with_name("report.css")


def _html(heading: str, blocks: Sequence[Block], folder: Path) -> str:
    body = "\n".join(_to_html(block, folder) for block in blocks)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{_plain(heading)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>\n{_STYLE.read_text(encoding='utf-8')}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
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
        case TableBlock():
            return _table_html(block)


def _picture_html(picture: ReportPicture, folder: Path) -> str:
    data = base64.b64encode(picture.svg.read_bytes()).decode()
    rows = escaped(picture.csv.relative_to(folder).as_posix())
    return (
        f'<figure><img alt="{_plain(picture.caption)}" src="data:image/svg+xml;base64,{data}">'
        f"<figcaption>{_inline(picture.caption)} Rows: <code>{rows}</code></figcaption></figure>"
    )


def _table_html(table: TableBlock) -> str:
    def row(cells: Sequence[str], tag: str) -> str:
        opening = [f'{tag} class="number"' if i in table.numbers else tag for i in range(len(cells))]
        return "".join(f"<{first}>{_cell(cell)}</{tag}>" for first, cell in zip(opening, cells, strict=True))

    caption = f"<caption>{_inline(table.caption)}</caption>" if table.caption else ""
    head, body = row(table.header, "th"), "".join(f"<tr>{row(cells, 'td')}</tr>" for cells in table.rows)
    return f'<div class="scroll"><table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(text: str) -> str:
    return f'<span class="verdict {text}">{text}</span>' if text in VERDICT_COLOURS else _inline(text)


def _inline(text: str) -> str:
    """Return text as HTML. Punctuation after a backslash has no meaning: it is in private characters meanwhile."""
    hidden = re.sub(rf"\\({_PUNCTUATION})", lambda match: chr(_HIDDEN + ord(match[1])), text)
    marked = re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped(hidden))
    marked = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", marked)
    return re.sub("[\ue021-\ue07e]", lambda match: escaped(chr(ord(match[0]) - _HIDDEN)), marked)


def _plain(text: str) -> str:
    """Return text without its markup, for the title and for attributes."""
    return re.sub("<[^>]*>", "", _inline(text))
